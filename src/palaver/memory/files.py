"""Files for a model: named texts, stored as entries of a dialog. Nothing touches a disk: a name is not a path of the machine.

(Manus, "Context Engineering for AI Agents": the file system as unlimited memory, searched by grep and glob.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pydantic_core import SchemaError, SchemaValidator, core_schema

from palaver.errors import InvalidInput
from palaver.log import Handle
from palaver.memory.notes import Data, HasPlace, Note, Notebook, replaced_once
from palaver.messages.frozen import clean_text, is_clean

LARGEST = 256_000
"""The maximum characters of a file; each write is an entry."""

MOST_FILES = 1_000
MOST_CHARACTERS = 16_000_000
"""The maximum characters of all files together."""

_KIND = "palaver.file"
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\\:*?\"<>|]{1,255}\Z")
"""Characters that names must not contain: they end or reverse a line in a list of names."""

_LONGEST_PATTERN = 500
_SHOWN = 400  # characters of a line that was found
_GLOB = re.compile(r"\*\*/|\*\*|\*|\?|\{[^{}]*,[^{}]*\}|.", re.DOTALL)
_GLOBS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """The current state of a file.

    Attributes:
        path: Its name, with `/` between its parts.
        text: Its text.
        handle: The entry that wrote it.
        at: When it was written, in seconds since 1970-01-01 UTC.
        by: Who wrote it, or empty.
    """

    path: str
    text: str
    handle: Handle
    at: float
    by: str = ""


class FoundLine(NamedTuple):
    """A line that a search found.

    Attributes:
        path: The file.
        line: The line's number, from 1.
        text: The line, or its first 400 characters.
    """

    path: str
    line: int
    text: str


class Grep(NamedTuple):
    """The result of a search.

    Attributes:
        found: The lines, by file and number.
        more: Whether there are more: search again with a larger `skip`.
    """

    found: tuple[FoundLine, ...]
    more: bool


class Files:
    """The files of a dialog. A fork starts with its parent's files; later changes are separate."""

    def __init__(self, dialog: HasPlace) -> None:
        """Open the files of a dialog."""
        self._notes = Notebook(dialog, _KIND, "path", _file)
        self.store, self.dialog_id = dialog.store, dialog.dialog_id

    def read(self, path: str) -> MemoryFile:
        """Return a file.

        Raises:
            InvalidInput: The path is not a valid name.
            NotFound: No file has this name; the error has close matches.
        """
        return self._notes.find(_named(path), "file")

    def glob(self, pattern: str = "**") -> tuple[MemoryFile, ...]:
        """Return the files whose name matches a pattern, by name: `*` and `?` stay within a folder, `**` crosses folders, `{a,b}` matches either.

        A pattern without `/` matches in every folder.

        Raises:
            InvalidInput: The pattern is too long.
        """
        spelt = pattern.strip().removeprefix("./")
        spelt = spelt if "/" in spelt else f"**/{spelt}"
        matches = _matcher("^(?:" + "".join(map(_globbed, _GLOB.findall(spelt))) + ")$", spelt)
        files = self._notes.in_force()
        return tuple(files[path] for path in sorted(files) if matches(path))

    def grep(
        self, pattern: str, *, glob: str = "**", ignore_case: bool = False, limit: int = 100, skip: int = 0
    ) -> Grep:
        """Find lines by a regular expression, in time linear in the text.

        Args:
            pattern: The expression, in the syntax of Rust's `regex`: as in Python, without backreferences and look-around.
            glob: The files to search.
            ignore_case: Whether to ignore case.
            limit: The maximum number of lines.
            skip: The number of matching lines to skip.

        Raises:
            InvalidInput: The pattern is invalid or too long.
        """
        matches = _matcher(f"(?i){pattern}" if ignore_case else pattern, pattern)
        lines: list[FoundLine] = []
        for file in self.glob(glob):
            for number, line in enumerate(file.text.splitlines(), 1):
                if matches(line):
                    if len(lines) >= skip + limit:
                        return Grep(tuple(lines[skip:]), more=True)
                    lines.append(FoundLine(file.path, number, line[:_SHOWN]))
        return Grep(tuple(lines[skip:]), more=False)

    def history(self, path: str) -> tuple[MemoryFile, ...]:
        """Return all states of a file, oldest first. Erase their handles to forget them permanently."""
        return self._notes.history(_named(path))

    # --- writing ----------------------------------------------------------------------------------------------------------------------

    def write(self, path: str, text: str, *, by: str = "") -> MemoryFile:
        """Create or overwrite a file.

        Raises:
            InvalidInput: The path is not a valid name, or the file or all files together would be too large.
        """
        name = _named(path)
        return self._written(name, lambda _: text, by)

    def edit(self, path: str, old: str, new: str, *, by: str = "") -> MemoryFile:
        """Replace a text that occurs in a file exactly once.

        Raises:
            NotFound: The file does not exist.
            Conflict: The old text does not occur exactly once.
            InvalidInput: As for `write`, or the old text is empty.
        """
        name = _named(path)

        def edited(files: Mapping[str, MemoryFile]) -> str:
            return replaced_once(name, self._notes.find(name, "file", files).text, old, new)

        return self._written(name, edited, by)

    def delete(self, path: str, *, by: str = "") -> Handle:
        """Remove a file, and return the entry of its last text, which stays in the log.

        Raises:
            NotFound: The file does not exist.
        """
        name = _named(path)
        last = self.read(name).handle
        self._notes.delete(name, "file", by=by)
        return last

    def _written(self, path: str, make: Callable[[Mapping[str, MemoryFile]], str], by: str) -> MemoryFile:
        def data(files: Mapping[str, MemoryFile]) -> Data:
            text = clean_text(make(files), "text", [])
            _require_room(files, path, text)
            return {"path": path, "text": text, "by": by}

        return self._notes.write(data)


def _file(note: Note) -> MemoryFile:
    path, text = note.data.get("path"), note.data.get("text")
    if not isinstance(path, str) or not isinstance(text, str):
        raise TypeError(f"{note.handle} does not say what is in a file.")
    return MemoryFile(path, text, note.handle, note.at, str(note.data.get("by", "")))


def _named(path: str) -> str:
    """Return a normalised name: parts separated by `/`, none of them empty, `.` or `..`.

    Raises:
        InvalidInput: The name leads upward, is empty, absolute or too long, or has forbidden characters.
    """
    given = str(path).strip()
    parts = [part for part in given.split("/") if part not in {"", "."}]
    name = "/".join(parts)
    if not parts or given.startswith(("/", "~")) or ".." in parts or not _NAME.match(name) or not is_clean(name):
        raise InvalidInput(
            f"{given[:80]!r} cannot be the name of a file here.",
            hint="A name is like notes/plan.md: no / before it, no .. in it, at most 255 characters.",
        )
    return name


def _require_room(files: Mapping[str, MemoryFile], path: str, text: str) -> None:
    others = sum(len(file.text) for name, file in files.items() if name != path)
    if len(text) > LARGEST:
        raise InvalidInput(
            f"{path!r} would have {len(text):,} characters; the maximum is {LARGEST:,}.", hint="Write several files."
        )
    if others + len(text) > MOST_CHARACTERS or (path not in files and len(files) >= MOST_FILES):
        raise InvalidInput(
            f"The maximum is {MOST_FILES:,} files with {MOST_CHARACTERS:,} characters in total.",
            hint="Delete some first.",
        )


def _globbed(piece: str) -> str:
    if piece in _GLOBS:
        return _GLOBS[piece]
    if piece.startswith("{") and len(piece) > 1:
        return "(?:" + "|".join(map(re.escape, piece[1:-1].split(","))) + ")"
    return re.escape(piece)


def _matcher(pattern: str, given: str) -> Callable[[str], bool]:
    """Return a matcher for a regular expression that runs in linear time for any pattern (Rust's `regex`, in pydantic-core).

    Raises:
        InvalidInput: The pattern is invalid or too long.
    """
    if len(given) > _LONGEST_PATTERN:
        raise InvalidInput(f"The pattern has {len(given):,} characters; the maximum is {_LONGEST_PATTERN}.")
    try:
        matcher = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError as error:
        why = str(error).rpartition("error: ")[2].strip().splitlines()[0]
        raise InvalidInput(
            f"{given!r} is not a pattern: {why}.", hint="Write \\ before a literal special character."
        ) from error
    return matcher.isinstance_python
