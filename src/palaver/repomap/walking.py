"""Walking: which files of a folder are a repository's own. No link is followed, and what cannot be looked at is counted, never raised."""

from __future__ import annotations

import os
import stat
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from palaver.errors import InvalidInput
from palaver.repomap.ignoring import Ignore, ignore_of

__all__ = ["Limits", "Walk", "read", "walk"]

_NEVER = frozenset({".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__"})
"""Folders that are no source, whether or not somebody says so."""

_ENVIRONMENT = "pyvenv.cfg"
"""A folder that has this file is an environment of Python's (PEP 405)."""

_DEEPEST = 64
"""Folders within each other that are gone into."""

_RULES = 1 << 20
"""Bytes of a `.gitignore` that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is looked at. What is beyond is left out, and counted: the map says so.

    Attributes:
        entries: Names in folders.
        files: Source files that are parsed.
        file_bytes: Bytes of one of them.
        total_bytes: Bytes of all of them.
        given_up: Bytes of files that turned out to be no source after all, or made to be slow; after that nothing more is parsed.
    """

    entries: int = 200_000
    files: int = 20_000
    file_bytes: int = 500_000
    total_bytes: int = 100_000_000
    given_up: int = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What was found.

    Attributes:
        paths: The files, relative to the folder, with slashes; those nearer to the top first, then by name.
        left_out: How many names were left out, by why.
    """

    paths: tuple[str, ...]
    left_out: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def walk(folder: Path, limits: Limits) -> Walk:
    """Go through a folder.

    Args:
        folder: Where to begin. It may be a part of a repository: what the folders above it ignore is ignored.
        limits: How much is looked at.

    Raises:
        InvalidInput: It is no folder, or cannot be looked into.
        MissingExtra: pathspec is not installed.
    """
    above, prefix = _above(folder)
    walker = _Walker(folder, prefix, limits)
    waiting: deque[_Folder] = deque([_Folder("", 0, above)])
    while waiting:
        waiting.extend(walker.look(waiting.popleft()))
    return Walk(paths=tuple(walker.found), left_out=MappingProxyType(dict(sorted(walker.left_out.items()))))


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder that was not looked into yet: its path with a slash at the end, how deep it is, and what is ignored above it."""

    path: str
    depth: int
    rules: tuple[Ignore, ...]


@dataclass(slots=True)
class _Walker:
    folder: Path
    prefix: str
    limits: Limits
    found: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    seen: int = 0

    def look(self, inner: _Folder) -> Iterator[_Folder]:
        """Look into a folder; give those in it."""
        entries = _names(self.folder / inner.path, top=not inner.path)
        if entries is None:
            self.left_out["unreadable"] += 1
            return
        names = {entry.name for entry in entries}
        if _ENVIRONMENT in names and inner.path:
            return
        rules = inner.rules
        if ".gitignore" in names:
            rules = (*rules, *self._rules(inner.path))
        room = max(self.limits.entries - self.seen, 0)
        self.seen += len(entries)
        if len(entries) > room:
            self.left_out["beyond the limit"] += len(entries) - room
        for entry in entries[:room]:
            yield from self._take(entry, _Folder(inner.path + entry.name, inner.depth, rules))

    def _rules(self, inner: str) -> Iterator[Ignore]:
        for rule in _read_rules(self.folder / inner / ".gitignore", self.prefix + inner):
            if rule.unread:
                self.left_out["lines of .gitignore"] += rule.unread
            yield rule

    def _take(self, entry: os.DirEntry[str], place: _Folder) -> Iterator[_Folder]:
        """Take a file; give a folder."""
        kind, path = _kind(entry), self.prefix + place.path
        if kind == "file":
            if not _ignored(path, place.rules):
                self.found.append(place.path)
        elif kind != "folder":
            self.left_out[kind] += 1
        elif entry.name not in _NEVER and not _ignored(path + "/", place.rules):
            if place.depth < _DEEPEST:
                yield _Folder(place.path + "/", place.depth + 1, place.rules)
            else:
                self.left_out["too deep"] += 1


def _names(folder: Path, *, top: bool) -> list[os.DirEntry[str]] | None:
    """Give what is in a folder, by name; None where nobody may look."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        if top:
            raise InvalidInput(
                f"{folder} cannot be mapped: {error.strerror or error}.", hint="Name a folder that can be read."
            ) from error
        return None


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if entry.is_file(follow_symlinks=False) else "no file"
    except OSError:
        return "unreadable"


def _ignored(path: str, rules: Sequence[Ignore]) -> bool:
    """Tell whether a path is ignored: the innermost folder that speaks of it decides (gitignore(5))."""
    for rule in reversed(rules):
        said = rule.says(path)
        if said is not None:
            return said
    return False


def _above(folder: Path) -> tuple[tuple[Ignore, ...], str]:
    """Give what the repository ignores that the folder is a part of, and where in it the folder is."""
    try:
        here = folder.resolve(strict=True)
    except (OSError, RuntimeError):  # it is not there, or a link to itself: whoever looks into it is told
        return (), ""
    root = next((each for each in (here, *here.parents) if _has_git(each)), here)
    steps = here.relative_to(root).parts
    rules = list(_read_rules(root / ".git" / "info" / "exclude", ""))
    for depth in range(len(steps)):
        outer = "".join(f"{step}/" for step in steps[:depth])
        rules += _read_rules(root / outer / ".gitignore", outer)
    prefix = "".join(f"{step}/" for step in steps)
    if any(_ignored("".join(f"{step}/" for step in steps[: depth + 1]), rules) for depth in range(len(steps))):
        return (), ""  # who names a folder that is ignored wants it all the same
    return tuple(rules), prefix


def _has_git(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:
        return False


def _read_rules(path: Path, inner: str) -> Iterator[Ignore]:
    said = read(path, _RULES)
    if isinstance(said, bytes):
        yield ignore_of(inner, said.decode(errors="replace").splitlines())


def read(path: Path, most: int) -> bytes | str:
    """Give what a file says; in words why not: `link`, `no file`, `unreadable` or `too large`.

    A file that somebody made a link or a pipe of, since it was seen, is not followed and not waited for.

    Args:
        path: The file.
        most: How many bytes it may have.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        number = os.open(path, flags)
    except OSError:
        return "unreadable"
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            return "no file"
        if about.st_size > most:
            return "too large"
        with os.fdopen(os.dup(number), "rb") as stream:
            text = stream.read(most + 1)
    except OSError:
        return "unreadable"
    finally:
        os.close(number)
    return text if len(text) <= most else "too large"
