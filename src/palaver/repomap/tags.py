"""What a source file defines, and which names it uses: all that a map needs of it, so that no file is read twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from palaver.repomap.grammars import Catch, caught
from palaver.repomap.languages import Language

__all__ = ["Definition", "Line", "Tags", "Use", "plain", "tags_of"]

WIDTH = 100
"""Characters of a line that are shown. (Aider shows as many: a minified file has all of itself in one line.)"""

CUT = "[...]"
"""Stands for the rest of a line."""

_HEAD = 6
"""Lines of a head that are shown: more parameters than that are looked up in the file."""

_MANY = 5_000
"""Definitions of one file that are looked at: a file with more was made by a program."""

_NAME = 200
"""Bytes of a name; what is longer is none."""

_CONTROL = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # shows words in another order (CVE-2021-42574)
    r"\U000e0000-\U000e0fff]"  # tags and the like: nobody sees them, and models read them
)


class Line(NamedTuple):
    """A line of a file, as it is shown.

    Attributes:
        number: Its number, counted from 1.
        text: What it says, at most `WIDTH` characters of it and a mark.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A name that a file defines.

    Attributes:
        name: The name.
        head: The lines that say what it is.
        within: The first lines of the definitions that it stands in, the outermost first.
        member: Whether it belongs to a type, and is used as part of it.
    """

    name: str
    head: tuple[Line, ...]
    within: tuple[Line, ...] = ()
    member: bool = False


class Use(NamedTuple):
    """A name that a file uses.

    Attributes:
        name: The name.
        times: How often.
        plain: Whether it cannot be that of a member.
        module: What the file imports it from, as it says it; empty where it does not.
    """

    name: str
    times: int = 1
    plain: bool = False
    module: str = ""


@dataclass(frozen=True, slots=True)
class Tags:
    """What a source file says to a map.

    Attributes:
        definitions: The names that it defines, in the order of the file.
        uses: The names that it uses, sorted.
    """

    definitions: tuple[Definition, ...] = ()
    uses: tuple[Use, ...] = ()


def tags_of(language: Language, source: bytes) -> Tags | None:
    """Give what a source file defines and uses; None where it cannot be told within reason.

    Args:
        language: The language.
        source: The file. It may be broken: what can be made out is used.

    Raises:
        MissingExtra: A grammar is not installed.
    """
    catches = caught(language, source)
    if catches is None:
        return None
    own = {
        catch.at: catch
        for catch in sorted(catches, key=lambda each: _ORDER.index(each.kind))
        if len(catch.name) <= _NAME
    }
    defined = [catch for catch in own.values() if catch.defines]
    return Tags(
        tuple(_definitions(defined, source.split(b"\n"))),
        tuple(_uses([catch for catch in own.values() if not catch.defines])),
    )


_ORDER = ("reference", "plain", "import", "constant", "scope", "members", "type", "function")
"""What is found at one place in two ways is the later of them: a name where it is defined is no use of it, and a constant may be a function."""


def _uses(catches: Sequence[Catch]) -> Iterator[Use]:
    """Give the names in use; what a name was imported as counts for all of its uses that are not those of a member."""
    modules = {catch.name: catch.module for catch in catches if catch.module}
    times = Counter((catch.name, catch.kind != "reference") for catch in catches)
    for (name, plain_), count in sorted(times.items()):
        module = modules.get(name, b"") if plain_ else b""
        yield Use(name.decode(errors="replace"), count, plain_, module.decode(errors="replace")[:_NAME])


def _definitions(catches: Sequence[Catch], lines: Sequence[bytes]) -> Iterator[Definition]:
    """Give the definitions with what they stand in; what stands in a function is nobody else's business."""
    around: list[tuple[Catch, tuple[Line, ...]]] = []  # each with the lines for what stands in it
    given = 0
    for catch in sorted(catches, key=lambda each: (each.start, -each.stop, each.at)):
        while around and around[-1][0].stop <= catch.start:
            around.pop()
        if any(each.kind == "function" for each, _ in around):
            continue
        within = around[-1][1] if around else ()
        if catch.kind not in {"scope", "members"}:
            if given == _MANY:
                return
            given += 1
            last = catch.first if catch.kind == "constant" else min(catch.last, catch.first + _HEAD - 1)
            head = tuple(_line(lines, row) for row in range(catch.first, last + 1))
            member = any(each.kind in {"type", "members"} for each, _ in around)
            yield Definition(catch.name.decode(errors="replace"), head, within, member)
        if catch.kind != "constant":
            around.append((catch, (*within, _line(lines, catch.first))))


def _line(lines: Sequence[bytes], row: int) -> Line:
    text = plain(lines[row][: WIDTH * 8].decode("utf-8", errors="replace").rstrip())
    return Line(row + 1, text if len(text) <= WIDTH else text[:WIDTH] + CUT)


def plain(text: str) -> str:
    """Give a text without what a terminal, or a reader of lines, would take for more than a character, and without what no reader can see."""
    return _CONTROL.sub("�", text)
