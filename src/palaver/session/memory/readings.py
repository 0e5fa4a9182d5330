r"""Readings: how else a pattern may have been meant that finds nothing as it stands.

A model that reads "nothing is found" takes it for a fact and goes on by it. Often its pattern is spelt for another tool: `a\|b` for grep's basic
expressions, where a bar without a backslash is a bar, capitals that do not fit, a parenthesis that was meant as it stands, a glob for a regular expression or
the other way round. So what finds nothing is read in those ways too, and the first that finds something is given, with the words how it was read. (The same
was found elsewhere: inspect_ai #5112, oh-my-pi #4543, the probe behind a search without results of hermes-agent, #79782.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from palaver.errors import InvalidInput
from palaver.session.memory.files import File, Files, Grep, search
from palaver.session.memory.patterns import Pattern, as_text

__all__ = ["Looked", "Named", "looked_for", "named_like"]

_BASIC = re.compile(r"\\[|(){}+?]")
"""What has its meaning behind a backslash in a basic expression of grep, and without one everywhere else."""

_PIECE = re.compile(r"\\.|\[\^?\]?[^\]]*\]|.", re.DOTALL)
_SPECIAL = frozenset("|(){}+?")
_SLASHED = re.compile(r"/(.+)/([gimsu]*)", re.DOTALL)
_REGULAR = re.compile(r"\\\.|\.\*|\.\+|[\^$|+]|\[")
"""What globs do not have, and regular expressions have."""

_WILD = re.compile(r"[*?\[]")


class _Reading(NamedTuple):
    """A way to read a pattern.

    Attributes:
        pattern: The expression that it is then.
        ignore_case: Whether capitals do not matter.
        how: How it was read, to be said to whoever gave it.
    """

    pattern: str
    ignore_case: bool
    how: str


class Looked(NamedTuple):
    """What a search found, and how its pattern was read for that.

    Attributes:
        grep: What was found.
        how: How the pattern was read; empty where it was taken as it stands.
        none: Whether no line at all fits, however it is read; else there may be some before those that were asked for.
    """

    grep: Grep
    how: str = ""
    none: bool = False


class Named(NamedTuple):
    """Files that a pattern names, and how it was read for that.

    Attributes:
        files: The files.
        how: How the pattern was read; empty where it was taken as it stands.
    """

    files: tuple[File, ...]
    how: str = ""


def looked_for(files: Sequence[File], pattern: str, *, ignore_case: bool, limit: int, skip: int) -> Looked:
    """Find lines in files by a pattern as it stands; where it finds none at all, by what it may have been meant as.

    Raises:
        InvalidInput: It is no pattern, and stands nowhere as a text either; or it is too large, by itself or for so much text.
    """
    wrong: InvalidInput | None = None
    try:
        found = search(files, Pattern(pattern, ignore_case=ignore_case), limit, skip)
        if found.found or found.more or (skip and _any(files, pattern, ignore_case=ignore_case)):
            return Looked(found)
    except InvalidInput as error:
        wrong = error
    for reading in _readings(pattern, ignore_case=ignore_case):
        try:
            wanted = Pattern(reading.pattern, ignore_case=reading.ignore_case)
            if search(files, wanted, 1, 0).found:
                return Looked(search(files, wanted, limit, skip), reading.how)
        except InvalidInput:
            continue  # it is no pattern in this reading, or too large for so much text
    if wrong is not None:
        raise wrong
    return Looked(Grep((), more=False, files=len(files)), none=True)


def named_like(files: Files, pattern: str) -> Named:
    """Give the files whose name fits a glob; where none does, those that it may have been meant for."""
    found = files.glob(pattern)
    if found:
        return Named(found)
    every = files.list()
    bare = pattern.strip().strip("/").removesuffix("/**").removesuffix("/*")
    for glob, how in (
        (f"{bare}/**", f"{bare!r} is a folder, and these are the files in it"),
        (f"**/*{bare}*", f"no whole name fits, and these hold {bare!r}"),
    ):
        if bare and not _WILD.search(bare) and (found := files.glob(glob)):
            return Named(found, how)
    if found := files.glob(pattern, ignore_case=True):
        return Named(found, "no name fits with these capitals, and without regard to them these do")
    if _REGULAR.search(pattern):
        try:
            wanted = Pattern(pattern)
        except InvalidInput:
            return Named(())
        if found := tuple(file for file in every if wanted.found(file.path)):
            return Named(
                found,
                "as a glob it fits no name (* stands for anything, a dot for itself), and as a regular expression these",
            )
    return Named(())


def _any(files: Sequence[File], pattern: str, *, ignore_case: bool) -> bool:
    return bool(search(files, Pattern(pattern, ignore_case=ignore_case), 1, 0).found)


def _readings(pattern: str, *, ignore_case: bool) -> Iterator[_Reading]:
    """Give the ways in which a pattern may have been meant, the likeliest first."""
    ways = [(pattern, "")]
    pieces = _PIECE.findall(pattern)
    if basic := next(filter(_BASIC.fullmatch, pieces), ""):
        some = "".join(piece[1] if _BASIC.fullmatch(piece) else piece for piece in pieces)
        ways += [
            (spelt, f"`{basic}` stands for `{basic[1]}` itself here; read as `{spelt}`")
            for spelt in dict.fromkeys(("".join(map(_swapped, pieces)), some))
        ]
    if slashed := _SLASHED.fullmatch(pattern):
        flags = "(?i)" if "i" in slashed[2] else ""
        ways.append((flags + slashed[1], f"the slashes around it are looked for here; read as `{slashed[1]}`"))
    literal = as_text(pattern)
    if literal != pattern:
        ways.append((literal, f"taken as a text, `{literal}`"))
    yield from (_Reading(spelt, ignore_case=ignore_case, how=how) for spelt, how in ways if how)
    if not ignore_case:
        for spelt, how in ways:
            also = f"{how}, and without regard to capitals" if how else "without regard to capitals these do"
            yield _Reading(spelt, ignore_case=True, how=also)


def _swapped(piece: str) -> str:
    """Spell a piece of a basic expression of grep as an extended one does (POSIX.1-2017, base definitions, 9.3 and 9.4)."""
    if _BASIC.fullmatch(piece):
        return piece[1]
    return f"\\{piece}" if piece in _SPECIAL else piece
