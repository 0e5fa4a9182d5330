"""What `.gitignore` says: the only place that knows pathspec, which reads patterns as git does. Needs the extra `repomap`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from palaver.errors import MissingExtra

__all__ = ["Ignore", "ignore_of"]

_MOST_STARS = 3
"""Stars of one part of a pattern, and parts that are two of them: each more multiplies the time that a name can be made to take, and whose
repository it is chooses both the pattern and the name."""

_MOST_LINES = 5_000
"""Lines of one file that are read."""

_STARS = re.compile(r"\*+")


@dataclass(frozen=True)
class Ignore:
    """The patterns of one folder, for what lies below it.

    Attributes:
        folder: The folder, relative to where everything begins, with a slash at its end; empty for that place.
        spec: The patterns.
        unread: Lines that are no patterns, or too costly to be tried.
    """

    folder: str
    spec: Any
    unread: int = 0

    def says(self, path: str) -> bool | None:
        """Tell whether a path is ignored: None where nothing here speaks of it. A folder's path ends with a slash."""
        said: bool | None = self.spec.check_file(path.removeprefix(self.folder)).include
        return said


def ignore_of(folder: str, lines: Iterable[str]) -> Ignore:
    """Read patterns.

    Args:
        folder: The folder that they are of.
        lines: The lines of its file.

    Raises:
        MissingExtra: pathspec is not installed.
    """
    pathspec = _pathspec()
    patterns: list[Any] = []
    unread = 0
    for line in lines:
        read = list(_read(pathspec, line)) if len(patterns) < _MOST_LINES else None
        unread += not read and _meant(line)
        patterns += read or ()
    return Ignore(folder, pathspec.GitIgnoreSpec(patterns), unread)


def _read(pathspec: Any, line: str) -> Iterator[Any]:  # noqa: ANN401 - it is not installed everywhere
    parts = line.split("/")
    if parts.count("**") > _MOST_STARS or any(len(_STARS.findall(part)) > _MOST_STARS for part in parts):
        return
    try:
        yield from pathspec.GitIgnoreSpec.from_lines([line]).patterns
    except (ValueError, re.error):  # git passes over what is no pattern, too
        return


def _meant(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _pathspec() -> Any:  # noqa: ANN401 - the same
    try:
        return importlib.import_module("pathspec")
    except ImportError as error:
        raise MissingExtra("A repo map", "repomap", package="pathspec") from error
