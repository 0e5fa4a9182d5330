"""Find the files of a repository. Links are not followed; unreadable files are counted and do not raise.

Only this module imports pathspec, which reads `.gitignore` patterns as git does.
"""

from __future__ import annotations

import importlib
import os
import re
import stat
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.errors import InvalidInput, MissingExtra

_SKIPPED = frozenset({".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__"})
_ENVIRONMENT = "pyvenv.cfg"
"""A folder with this file is a virtual environment (PEP 405)."""

_DEPTH = 64
_IGNORE_BYTES, _IGNORE_LINES = 1 << 20, 5_000
_STARS = 3
"""The maximum number of stars in one part of a pattern, and of `**`: each multiplies the time of a match, and patterns come from the repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanLimits:
    """How much of a folder is read. Files beyond a limit are omitted and counted.

    Attributes:
        entries: Names in folders.
        files: Source files that are parsed.
        file_bytes: Bytes of one source file.
        total_bytes: Bytes of all source files.
    """

    entries: int = 200_000
    files: int = 20_000
    file_bytes: int = 500_000
    total_bytes: int = 100_000_000


@dataclass(slots=True)
class FolderWalk:
    """The files of a folder.

    Attributes:
        paths: The files, relative to the folder, with slashes; nearest to the top first, then by name.
        left_out: The number of omitted names, by reason.
    """

    paths: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Rules:
    """The patterns of one `.gitignore`, for paths below `folder`."""

    folder: str
    spec: Any

    def ignores(self, path: str) -> bool | None:
        """Return whether a path is ignored, or None if no pattern matches it."""
        matched: bool | None = self.spec.check_file(path.removeprefix(self.folder)).include
        return matched


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str  # relative, with a slash at its end; empty for the top
    depth: int
    rules: tuple[_Rules, ...]


def walk(folder: Path, limits: ScanLimits) -> FolderWalk:
    """Find the files of a folder. If the folder is part of a git repository, the rules above it apply.

    Raises:
        InvalidInput: The folder does not exist or cannot be read.
        MissingExtra: pathspec is not installed.
    """
    walked = FolderWalk()
    above, prefix = _rules_above(folder, walked)
    waiting = deque([_Folder("", 0, above)])
    room = limits.entries
    while waiting:
        inner = waiting.popleft()
        entries = _entries(folder / inner.path, top=not inner.path)
        names = {entry.name for entry in entries or ()}
        if entries is None:
            walked.left_out["unreadable"] += 1
            continue
        if _ENVIRONMENT in names and inner.path:
            continue
        rules = inner.rules
        if ".gitignore" in names:
            rules = (*rules, *_rules(folder / inner.path / ".gitignore", prefix + inner.path, walked))
        if len(entries) > room:
            walked.left_out["beyond the limit"] += len(entries) - room
        for entry in entries[:room]:
            waiting.extend(_take(walked, entry, _Folder(inner.path + entry.name, inner.depth, rules), prefix))
        room = max(room - len(entries), 0)
    return walked


def _take(walked: FolderWalk, entry: os.DirEntry[str], place: _Folder, prefix: str) -> Iterator[_Folder]:
    """Add a file, or yield a folder to look into."""
    kind, path = _kind(entry), prefix + place.path
    if kind == "file":
        if not _ignored(path, place.rules):
            walked.paths.append(place.path)
    elif kind != "folder":
        walked.left_out[kind] += 1
    elif entry.name not in _SKIPPED and not _ignored(path + "/", place.rules):
        if place.depth < _DEPTH:
            yield _Folder(place.path + "/", place.depth + 1, place.rules)
        else:
            walked.left_out["too deep"] += 1


def _entries(folder: Path, *, top: bool) -> list[os.DirEntry[str]] | None:
    """Return the entries of a folder by name, or None if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        if not top:
            return None
        raise InvalidInput(f"{folder} cannot be mapped: {error.strerror or error}.") from error


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if entry.is_file(follow_symlinks=False) else "not a file"
    except OSError:
        return "unreadable"


def _ignored(path: str, rules: Sequence[_Rules]) -> bool:
    """Return whether a path is ignored. The innermost file with a matching pattern decides (gitignore(5))."""
    verdicts = (rule.ignores(path) for rule in reversed(rules))
    return next((ignored for ignored in verdicts if ignored is not None), False)


def _rules_above(folder: Path, walked: FolderWalk) -> tuple[tuple[_Rules, ...], str]:
    """Return the rules of the git repository that contains the folder, and the path of the folder in it."""
    try:
        here = folder.resolve(strict=True)
        root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    except (OSError, RuntimeError):  # missing, or a link to itself: scandir reports it
        return (), ""
    steps = [f"{step}/" for step in here.relative_to(root).parts]
    outer = ["".join(steps[:depth]) for depth in range(len(steps) + 1)]
    rules = [*_rules(root / ".git" / "info" / "exclude", "", walked)]
    for path in outer[:-1]:
        rules += _rules(root / path / ".gitignore", path, walked)
    if any(_ignored(path, rules) for path in outer[1:]):
        return (), ""  # an ignored folder that the caller names is wanted
    return tuple(rules), outer[-1]


def _rules(path: Path, folder: str, walked: FolderWalk) -> Iterator[_Rules]:
    text = read(path, _IGNORE_BYTES)
    if isinstance(text, str):
        return
    pathspec = require_pathspec()
    patterns: list[Any] = []
    for line in text.decode(errors="replace").splitlines():
        rules = _patterns(pathspec, line) if len(patterns) < _IGNORE_LINES else []
        if not rules and line.strip() and not line.startswith("#"):
            walked.left_out["lines of .gitignore"] += 1
        patterns += rules
    yield _Rules(folder, pathspec.GitIgnoreSpec(patterns))


def _patterns(pathspec: Any, line: str) -> list[Any]:  # noqa: ANN401 - pathspec is optional
    parts = line.split("/")
    if parts.count("**") > _STARS or any(len(re.findall(r"\*+", part)) > _STARS for part in parts):
        return []
    try:
        return [*pathspec.GitIgnoreSpec.from_lines([line]).patterns]
    except (ValueError, re.error):  # git ignores invalid patterns, too
        return []


def require_pathspec() -> Any:  # noqa: ANN401 - the same
    """Return the module pathspec.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        return importlib.import_module("pathspec")
    except ImportError as error:
        raise MissingExtra("A repo map", "repomap", package="pathspec") from error


def read(path: Path, most: int) -> bytes | str:
    """Return the content of a file of at most `most` bytes, or the reason why not: "unreadable", "not a file" or "too large".

    A file that became a link or a pipe since it was listed is not followed and does not block.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        number = os.open(path, flags)
    except OSError:
        return "unreadable"
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return "not a file"
        with os.fdopen(os.dup(number), "rb") as stream:
            content = stream.read(most + 1)
    except OSError:
        return "unreadable"
    finally:
        os.close(number)
    return content if len(content) <= most else "too large"
