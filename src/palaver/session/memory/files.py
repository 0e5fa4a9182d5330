"""Files for a model: texts under names, kept as entries of a dialog. Nothing of it touches a disk: a name is a name and no path of the machine.

(Manus, "Context Engineering for AI Agents": the file system as memory without a limit, found again by grep and glob; R310.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import translate
from typing import Any, NamedTuple

from palaver.errors import InvalidInput, MemoryFull, NotFound
from palaver.log import Handle
from palaver.messages.normalize import clean_text, is_clean
from palaver.session.memory.notes import Held, Note, Notes, replaced_once
from palaver.session.memory.patterns import Pattern

__all__ = ["File", "Files", "Found", "Grep", "search"]

LARGEST = 256_000
"""Characters that a file may have: each writing is an entry of its own."""

MOST_FILES = 1_000
MOST_CHARACTERS = 16_000_000
"""Characters that all files together may have."""

_MOST_WORK = 2_000_000_000
"""What a search may cost: the characters of the files times what the pattern weighs."""

_SHOWN = 400
"""Characters of a line that is found that are given."""

_KIND = "palaver.file"
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\\:*?\"<>|]{1,255}\Z")
"""What a name may hold: nothing that ends a line where names are listed, or turns it round."""

_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MOST_EITHER = 64
_LONGEST_GLOB = 1_000
"""Characters of a glob: names have 255."""

_QUOTED = 80
"""Characters of what cannot be a name that are said again."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it stands.

    Attributes:
        path: Its name, with `/` between its parts.
        text: What it says.
        handle: The entry that wrote it.
        at: When, in seconds since 1970-01-01 UTC.
        by: Who wrote it, or empty.
    """

    path: str
    text: str
    handle: Handle
    at: float
    by: str = ""


class Found(NamedTuple):
    """A line that a search found.

    Attributes:
        path: The file.
        line: The line's number, from 1.
        text: The line, or its beginning.
    """

    path: str
    line: int
    text: str


class Grep(NamedTuple):
    """What a search found.

    Attributes:
        found: The lines, by file and number.
        more: Whether there may be more: go on with a larger `skip`.
        files: How many files were read to their end.
    """

    found: tuple[Found, ...]
    more: bool
    files: int


class Files:
    """The files of a dialog. A fork has those that there were when it was made; from then on each side has its own.

    Every writing is durable when it returns, and every earlier state stays in the log.
    """

    def __init__(self, dialog: Held) -> None:
        """Open the files of a dialog."""
        self._notes = Notes(dialog, _KIND)
        self.store, self.dialog_id = dialog.store, dialog.dialog_id

    # --- reading ----------------------------------------------------------------------------------------------------------------

    def read(self, path: str) -> File:
        """Give a file.

        Raises:
            InvalidInput: This cannot be the name of one.
            NotFound: There is none of this name; the error has close matches.
        """
        return _there(self._standing(), named(path))

    def list(self, under: str = "") -> tuple[File, ...]:
        """Give the files below a folder, or all of them, by name."""
        begin = f"{named(under)}/" if under.strip("/. ") else ""
        standing = self._standing()
        return tuple(standing[path] for path in sorted(standing) if path.startswith(begin))

    def glob(self, pattern: str, *, ignore_case: bool = False) -> tuple[File, ...]:
        """Give the files whose name fits a pattern, by name: `*` and `?` stay within a folder, `**` goes through them.

        A pattern without `/` is looked for in every folder; `{a,b}` stands for either.

        Args:
            pattern: The pattern.
            ignore_case: Whether capitals do not matter.

        Raises:
            InvalidInput: It is longer than a name can be.
        """
        if len(pattern) > _LONGEST_GLOB:
            raise InvalidInput(f"The pattern has {len(pattern):,} characters, and may have {_LONGEST_GLOB}.")
        fold = str.casefold if ignore_case else str
        fits = [_glob(each) for each in _either(fold(pattern))]
        return tuple(file for file in self.list() if any(each(fold(file.path)) for each in fits))

    def grep(
        self, pattern: str, *, glob: str = "**", ignore_case: bool = False, limit: int = 100, skip: int = 0
    ) -> Grep:
        """Find lines by a regular expression; costs what the files have, whatever the pattern is.

        Args:
            pattern: The expression (`palaver.session.memory.patterns`).
            glob: Which files.
            ignore_case: Whether capitals do not matter.
            limit: How many lines to give at most.
            skip: How many lines that are found to pass over.

        Raises:
            InvalidInput: The pattern is none, or too large for the text of so many files.
        """
        return search(self.glob(glob), Pattern(pattern, ignore_case=ignore_case), limit, skip)

    def history(self, path: str) -> tuple[File, ...]:
        """Give all that a file ever was, the oldest first; what is to be forgotten for good is erased by these handles."""
        name = named(path)
        written = (_file(note) for note in self._notes.all() if note.data.get("path") == name)
        return tuple(file for file in written if file is not None)

    # --- writing ----------------------------------------------------------------------------------------------------------------

    def write(self, path: str, text: str, *, by: str = "") -> File:
        """Write a file, whether there is one of this name or not.

        Raises:
            InvalidInput: This cannot be the name of a file.
            MemoryFull: It, or all files together, would be too large; nothing was written.
        """
        name = named(path)
        return self._written(name, lambda _: text, by)

    def append(self, path: str, text: str, *, by: str = "") -> File:
        """Add a text to the end of a file, which is made where there is none; as `write`."""
        name = named(path)
        return self._written(name, lambda files: (files[name].text if name in files else "") + text, by)

    def edit(self, path: str, old: str, new: str, *, by: str = "") -> File:
        """Put another text in the place of one that stands in a file exactly once.

        Raises:
            NotFound: There is no such file.
            MemoryConflict: The old text is not there, or stands there several times; the error has what does.
            MemoryFull: It would be too large; nothing was written.
            InvalidInput: This cannot be the name of a file, or the old text is empty.
        """
        name = named(path)
        return self._written(name, lambda files: replaced_once(name, _there(files, name).text, old, new), by)

    def delete(self, path: str, *, by: str = "") -> Handle:
        """Take a file away; what it said stays in the log.

        Raises:
            NotFound: There is no such file.
        """
        name = named(path)
        return self._notes.write(lambda: {"path": _there(self._standing(), name).path, "deleted": True, "by": by})[0]

    def _written(self, path: str, make: Callable[[Mapping[str, File]], str], by: str) -> File:
        made: list[str] = []

        def note() -> Mapping[str, Any]:
            standing = self._standing()
            text = clean_text(make(standing), "text", [])
            _require_room(standing, path, text)
            made.append(text)
            return {"path": path, "text": text, "by": by}

        handle, header = self._notes.write(note)
        return File(path, made[-1], handle, header.at, by)

    def _standing(self) -> dict[str, File]:
        files: dict[str, File] = {}
        for note in self._notes.all():
            file = _file(note)
            if file is None:
                files.pop(str(note.data.get("path", "")), None)
            else:
                files[file.path] = file
        return files


def search(files: Sequence[File], wanted: Pattern, limit: int, skip: int) -> Grep:
    """Find the lines of files that a pattern fits; as `Files.grep`.

    Raises:
        InvalidInput: The pattern is too large for so much text.
    """
    if wanted.weight * sum(len(file.text) for file in files) > _MOST_WORK:
        raise InvalidInput("The pattern is too large for so much text.", hint="Repeat less, or search fewer files.")
    found: list[Found] = []
    for read, file in enumerate(files):
        for number, line in enumerate(file.text.splitlines(), 1):
            if wanted.found(line):
                if len(found) >= skip + limit:
                    return Grep(tuple(found[skip:]), more=True, files=read)
                found.append(Found(file.path, number, line[:_SHOWN]))
    return Grep(tuple(found[skip:]), more=False, files=len(files))


def named(path: str) -> str:
    """Give the name of a file in its one spelling: parts with `/` between them, none of which is empty, `.` or `..`.

    Raises:
        InvalidInput: It cannot be a name: it leads upward, is empty or too long, or has characters that no name has.
    """
    path = str(path)
    given = path.strip()
    parts = [part for part in given.split("/") if part not in {"", "."}]
    name = "/".join(parts)
    absolute = given.startswith(("/", "~"))
    if not parts or absolute or ".." in parts or not _NAME.match(name) or not is_clean(name):
        raise InvalidInput(
            f"{path[:_QUOTED]!r} cannot be the name of a file here.",
            hint="A name is like notes/plan.md: no / before it, no .. in it, at most 255 characters.",
        )
    return name


def _require_room(standing: Mapping[str, File], path: str, text: str) -> None:
    """Insist that a file and all of them together are small enough.

    Raises:
        MemoryFull: They are not.
    """
    if len(text) > LARGEST:
        raise MemoryFull(path, size=len(text), limit=LARGEST, hint="Write several files, or only what matters.")
    others = sum(len(file.text) for name, file in standing.items() if name != path)
    if others + len(text) > MOST_CHARACTERS:
        raise MemoryFull("all files", size=others + len(text), limit=MOST_CHARACTERS, hint="Delete some first.")
    if path not in standing and len(standing) >= MOST_FILES:
        raise MemoryFull("all files", size=len(standing) + 1, limit=MOST_FILES, unit="files", hint="Delete some first.")


def _there(files: Mapping[str, File], path: str) -> File:
    if path not in files:
        raise NotFound(path, what="file", close=get_close_matches(path, files, cutoff=0.5))
    return files[path]


def _file(note: Note) -> File | None:
    """Give the file that a note says; None for one that was taken away, or that another program spelt differently."""
    path, text = note.data.get("path"), note.data.get("text")
    if not isinstance(path, str) or not isinstance(text, str) or note.data.get("deleted"):
        return None
    return File(path, text, note.handle, note.at, str(note.data.get("by", "")))


def _either(pattern: str) -> list[str]:
    """Give the patterns that one with `{a,b}` stands for, itself included, for a name may have braces; at most 64."""
    done: list[str] = []
    open_ = [pattern]
    while open_ and len(done) + len(open_) < _MOST_EITHER:
        one = open_.pop()
        done.append(one)
        if braces := _BRACES.search(one):
            open_ += [f"{one[: braces.start()]}{each}{one[braces.end() :]}" for each in braces[1].split(",")]
    return [*done, *open_][:_MOST_EITHER]


def _glob(pattern: str) -> Callable[[str], bool]:
    """Give the test whether a name fits; costs what pattern and name have, multiplied."""
    parts = [part for part in pattern.strip().removeprefix("./").split("/") if part]
    parts = ["**", *parts] if len(parts) == 1 else parts
    tests = [None if part == "**" else re.compile(_simple(part)) for part in parts]

    def fits(path: str) -> bool:
        alive = _freely({0}, tests)
        for part in path.split("/"):
            alive = _freely(set(_after(alive, part, tests)), tests)
        return len(tests) in alive

    return fits


def _freely(alive: set[int], tests: Sequence[re.Pattern[str] | None]) -> set[int]:
    """Give the places in a glob that are reached without a part: `**` may stand for none."""
    for at in range(len(tests)):
        if at in alive and tests[at] is None:
            alive.add(at + 1)
    return alive


def _after(alive: set[int], part: str, tests: Sequence[re.Pattern[str] | None]) -> Iterator[int]:
    """Give the places that a part of a name leads to."""
    for at in alive:
        if at < len(tests):
            test = tests[at]
            if test is None:
                yield at
            elif test.match(part):
                yield at + 1


def _simple(part: str) -> str:
    """Give a part of a glob as an expression; stars beside each other are one, so that none of them multiplies."""
    return translate(re.sub(r"\*+", "*", part))
