"""Which files a call may have changed, beyond those that its arguments say it did: what its command names, or a folder, or any file.

It is asked where something is told as what a file says: rather too many files are taken for changed than one too few. A command that does nothing but
look changes none.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

__all__ = ["Reach", "is_word", "normal", "reach_of", "same_file"]

_LOOKING = frozenset(
    {"cat", "head", "tail", "less", "more", "nl", "wc", "grep", "rg", "diff", "ls", "cd", "pwd", "echo"}
)
"""Commands that change no file, whatever they are given."""

_EVERYWHERE = re.compile(
    r"\bgit\s+(?:-\S+\s+)*(?:am|apply|checkout|cherry-pick|clean|merge|pull|rebase|reset|restore|revert|stash|switch)\b"
    r"|(?<![\w/.-])(?:autopep8|black|fmt|format|gofmt|isort|pre-commit|prettier|rustfmt)(?![\w/.-])|(?<!\S)--(?:fix|write)\b"
)
"""What changes files without naming them: another state of the repository, and what puts files into a form."""

_TOKEN = re.compile(r"[^\s'\"`;|&<>()={}\[\],:/\\]+")
_JOINTS = re.compile(r"&&|\|\||[;|\n]")
_HIDDEN = re.compile(r"[>`]|\$\(")
_GLOB = re.compile(r"[*?\[]")
_MOVERS = frozenset({"rm", "mv"})
_MANY = 20_000
_REMEMBERED = 4_096


def normal(path: str) -> str:
    """Give a path as it is compared: without `.` and doubled slashes, with `/` between its parts."""
    plain = re.sub(r"[/\\]+", "/", path.strip().removeprefix("file://"))
    return posixpath.normpath(plain)


def same_file(one: str, other: str) -> bool:
    """Tell whether two normal paths may be of one file: the same, or a relative one is the end of an absolute one.

    In which folder a relative path begins is not known here; so one that ends as the other does is taken for it.
    """
    if one == other:
        return True
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return _absolute(longer) and not _absolute(shorter) and longer.endswith(f"/{shorter}")


def _absolute(path: str) -> bool:
    return path.startswith(("/", "~")) or path[1:2] == ":"


def is_word(name: str) -> bool:
    """Tell whether the last part of a path is one word of a command; one with spaces is not."""
    return _TOKEN.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Reach:
    """Which files something may have changed.

    Attributes:
        everything: Whether it may be any file.
        names: The last parts of the paths that it names, among other words.
        text: All that it says: a name may have spaces.
        patterns: Patterns of such last parts.
        folders: Folders of which it may be any file.
    """

    everything: bool = False
    names: frozenset[str] = frozenset()
    text: str = ""
    patterns: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def far(self) -> bool:
        """Whether it reaches files that it does not name."""
        return self.everything or bool(self.patterns or self.folders)

    def has(self, path: str) -> bool:
        """Tell whether a file, by its normal path, is among them."""
        name = posixpath.basename(path)
        return (
            self.everything
            or (name in self.names if is_word(name) else name in self.text)
            or any(fnmatchcase(name, pattern) for pattern in self.patterns)
            or any(folder == "." or f"/{folder.strip('/')}/" in f"/{path}" for folder in self.folders)
        )


@lru_cache(_REMEMBERED)
def reach_of(text: str, *, command: bool) -> Reach:
    """Tell which files a text of a call reaches.

    Args:
        text: A shell command, or the arguments of a call of which nothing is known.
        command: Whether it is a command.
    """
    said = text[:_MANY]
    names = frozenset(_TOKEN.findall(said))
    if not command:
        return Reach(names=names, text=said)
    if len(text) > _MANY or _EVERYWHERE.search(said):
        return Reach(everything=True)
    parts = [words for part in _JOINTS.split(said) if (words := _words(part))]
    if not _HIDDEN.search(said) and all(posixpath.basename(words[0]) in _LOOKING for words in parts):
        return Reach()
    patterns = tuple(posixpath.basename(word) for words in parts for word in words[1:] if _GLOB.search(word))
    moved = tuple(
        normal(word)
        for words in parts
        if posixpath.basename(words[0]) in _MOVERS
        for word in words[1:]
        if not word.startswith("-")
    )
    return Reach(names=names, text=said, patterns=tuple(filter(None, patterns)), folders=moved)


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:
        return part.split()
