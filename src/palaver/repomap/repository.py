"""A repository at one moment: its files, and what its source files say. From then on the disk is not looked at."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from palaver.repomap.ignoring import ignore_of
from palaver.repomap.languages import LANGUAGES, Language, language_of
from palaver.repomap.ranking import Graph, Node
from palaver.repomap.tags import Tags, tags_of
from palaver.repomap.walking import Limits, read, walk

__all__ = ["File", "Repository", "look", "require"]

_HEAD = 8_192
"""Bytes in which a zero says that a file is no text (git looks at 8,000)."""

_MADE = 500
"""Bytes of a line, on average, from which on nobody wrote a file by hand."""


@dataclass(frozen=True, slots=True)
class File:
    """A file.

    Attributes:
        path: Its path from the folder, with slashes.
        family: The family of its language, or empty.
        tags: What it defines and uses; None where that is not known: then it has only a name.
    """

    path: str
    family: str = ""
    tags: Tags | None = None


@dataclass(frozen=True, kw_only=True)
class Repository:
    """What was found in a folder.

    Attributes:
        files: The files, those nearer to the top first.
        left_out: How much was left out, by why: links, files too large or not text, what was beyond a limit.
        digest: The SHA-256 of all that a map depends on: the names of the files, and what those say that were parsed.
    """

    files: tuple[File, ...]
    left_out: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    digest: str = ""

    @cached_property
    def graph(self) -> Graph:
        """The ways between the files."""
        return Graph([Node(file.family, file.tags or Tags(), _parts(file.path)) for file in self.files])

    @cached_property
    def definitions(self) -> int:
        """How many definitions there are."""
        return sum(len(file.tags.definitions) for file in self.files if file.tags is not None)


def _parts(path: str) -> tuple[str, ...]:
    *folders, name = path.split("/")
    return (*folders, name.partition(".")[0])


def look(
    folder: Path, limits: Limits | None = None, known: MutableMapping[str, Tags | None] | None = None
) -> Repository:
    """Look at a folder.

    Args:
        folder: The folder.
        limits: How much of it is looked at.
        known: What files were found to say before, by their language and content; it is brought up to date.

    Raises:
        InvalidInput: It is no folder, or nobody may look into it.
        MissingExtra: What parses is not installed.
    """
    bounds = limits or Limits()
    walked = walk(folder, bounds)
    reader = _Reader(folder, bounds, {} if known is None else known)
    files = tuple(reader.file(path) for path in walked.paths)
    for gone in [key for key in reader.known if key not in reader.used]:
        del reader.known[gone]
    left_out = Counter(walked.left_out) + reader.left_out
    return Repository(
        files=files, left_out=MappingProxyType(dict(sorted(left_out.items()))), digest=reader.digest.hexdigest()
    )


def require() -> None:
    """See that what a map needs is installed.

    Raises:
        MissingExtra: It is not.
    """
    ignore_of("", ())
    for language in LANGUAGES:
        tags_of(language, b"")


@dataclass(slots=True)
class _Reader:
    folder: Path
    limits: Limits
    known: MutableMapping[str, Tags | None]
    left_out: Counter[str] = field(default_factory=Counter)
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    used: set[str] = field(default_factory=set)
    parsed: int = 0
    size: int = 0
    given_up: int = 0

    def file(self, path: str) -> File:
        """Read a file; of one that is not parsed only its name is given."""
        name = os.fsencode(path)
        self.digest.update(b"%d:%b" % (len(name), name))
        language = language_of(path)
        if language is None:
            return File(path)
        if self._enough():
            self.left_out["beyond the limit"] += 1
            return File(path)
        said = read(self.folder / path, self.limits.file_bytes)
        why = said if isinstance(said, str) else _no_source(said)
        if why or isinstance(said, str):
            self.left_out[why] += 1
            return File(path)
        self.parsed += 1
        self.size += len(said)
        return self._parsed(path, language, said)

    def _enough(self) -> bool:
        limits = self.limits
        return self.parsed >= limits.files or self.size >= limits.total_bytes or self.given_up >= limits.given_up

    def _parsed(self, path: str, language: Language, said: bytes) -> File:
        key = f"{language.name} {hashlib.sha256(said).hexdigest()}"
        self.digest.update(key.encode())
        self.used.add(key)
        if key not in self.known:
            self.known[key] = tags_of(language, said.removeprefix(b"\xef\xbb\xbf"))
        tags = self.known[key]
        if tags is None:
            self.left_out["too intricate"] += 1
            self.given_up += len(said)
        return File(path, language.family, tags)


def _no_source(said: bytes) -> str:
    if b"\0" in said[:_HEAD]:
        return "no text"
    return "made by a program" if len(said) > _HEAD and len(said) > _MADE * (said.count(b"\n") + 1) else ""
