"""A snapshot of a repository: its files, and the tags of its source files. Drawing does not read the disk."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from palaver.repomap.files import ScanLimits, read, require_pathspec, walk
from palaver.repomap.languages import LANGUAGES, Language, language_of
from palaver.repomap.parsing import Tags, parse

_HEAD = 8_192
"""Bytes in which a zero marks a binary file (git reads 8,000)."""

_LINE_BYTES = 500
"""The average bytes per line above which a file counts as generated."""

_UNPARSED = 20
"""How many times its size a file counts against `ScanLimits.total_bytes` if parsing it exceeds its bounds, because that is slow."""


@dataclass(frozen=True, slots=True)
class RepoFile:
    """A file.

    Attributes:
        path: Its path from the folder, with slashes.
        family: The family of its language, or empty.
        tags: Its definitions and uses. If None, they are unknown and a map shows only its name.
    """

    path: str
    family: str = ""
    tags: Tags | None = None


@dataclass(frozen=True, kw_only=True)
class Repository:
    """The content of a folder.

    Attributes:
        files: The files, nearest to the top first.
        left_out: The number of omitted files, by reason.
    """

    files: tuple[RepoFile, ...]
    left_out: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @cached_property
    def definitions(self) -> int:
        """The number of definitions."""
        return sum(len(file.tags.definitions) for file in self.files if file.tags is not None)

    def find(self, names: Iterable[str]) -> frozenset[str]:
        """Return the files that match these names from other machines or folders; unknown names are skipped.

        A path matches the file with the longest common end. A bare name matches only if one file has it.
        """
        paths = frozenset(file.path for file in self.files)
        same: dict[str, list[str]] = {}
        for path in sorted(paths):
            same.setdefault(path.rsplit("/", 1)[-1], []).append(path)
        matched: set[str] = set()
        for name in names:
            parts = [part for part in name.replace("\\", "/").split("/") if part not in {"", "."}]
            ends = ("/".join(parts[first:]) for first in range(len(parts)))
            exact = next((path for path in ends if path in paths), None)
            below = [path for path in same.get(parts[-1], ()) if path.endswith("/" + "/".join(parts))] if parts else []
            matched.update([exact] if exact is not None else below if len(below) == 1 else [])
        return frozenset(matched)


def look(
    folder: Path, limits: ScanLimits | None = None, known: MutableMapping[str, Tags | None] | None = None
) -> Repository:
    """Read a folder.

    Args:
        folder: The folder.
        limits: How much of the folder is read.
        known: Tags from an earlier look, by language and content; updated in place. Files in it are not parsed again.

    Raises:
        InvalidInput: The folder does not exist or cannot be read.
        MissingExtra: A package of the extra `repomap` is not installed.
    """
    reader = _FileReader(folder, limits or ScanLimits(), {} if known is None else known)
    walked = walk(folder, reader.limits)
    files = tuple(reader.file(path) for path in walked.paths)
    for gone in [key for key in reader.known if key not in reader.used]:
        del reader.known[gone]
    left_out = MappingProxyType(dict(sorted((walked.left_out + reader.left_out).items())))
    return Repository(files=files, left_out=left_out)


def require() -> None:
    """Raise MissingExtra if a package of the extra `repomap` is not installed."""
    require_pathspec()
    for language in LANGUAGES:
        parse(language, b"")


@dataclass(slots=True)
class _FileReader:
    folder: Path
    limits: ScanLimits
    known: MutableMapping[str, Tags | None]
    left_out: Counter[str] = field(default_factory=Counter)
    used: set[str] = field(default_factory=set)
    parsed: int = 0
    size: int = 0

    def file(self, path: str) -> RepoFile:
        """Read one file."""
        language = language_of(path)
        if language is None:
            return RepoFile(path)
        content = self._content(path)
        if isinstance(content, str):
            self.left_out[content] += 1
            return RepoFile(path)
        self.parsed += 1
        self.size += len(content)
        return RepoFile(path, language.family or language.name, self._tags(language, content))

    def _content(self, path: str) -> bytes | str:
        """Return the content of a source file, or why it is not parsed."""
        if self.parsed >= self.limits.files or self.size >= self.limits.total_bytes:
            return "beyond the limit"
        content = read(self.folder / path, self.limits.file_bytes)
        if isinstance(content, str):
            return content
        if b"\0" in content[:_HEAD]:
            return "binary"
        generated = len(content) > _HEAD and len(content) > _LINE_BYTES * (content.count(b"\n") + 1)
        return "generated" if generated else content

    def _tags(self, language: Language, content: bytes) -> Tags | None:
        key = f"{language.name} {hashlib.sha256(content).hexdigest()}"
        self.used.add(key)
        if key not in self.known:
            self.known[key] = parse(language, content.removeprefix(b"\xef\xbb\xbf"))
        tags = self.known[key]
        if tags is None:
            self.left_out["too intricate"] += 1
            self.size += (_UNPARSED - 1) * len(content)
        return tags
