"""Paths of files as calls name them: in which folder a relative one begins is not known, nor whose home `~` is."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterator

__all__ = ["absolute", "ends_of", "normal", "said_by", "same_file"]


def normal(path: str) -> str:
    """Give a path as it is compared: without `.`, doubled slashes and case, with `/` between its parts, in one form of Unicode.

    Whether a file system tells case and forms apart is not known here.
    """
    plain = re.sub(r"[/\\]+", "/", path.strip().removeprefix("file://"))
    return _DRIVE.sub(r"\1:/", posixpath.normpath(unicodedata.normalize("NFC", plain.casefold())))


_DRIVE = re.compile(r"\A/(?:mnt/|cygdrive/|\?/)?([a-z]):?/")
"""How a drive is spelt on Windows by WSL, Git Bash, Cygwin, and by Windows itself."""


def same_file(one: str, other: str) -> bool:
    """Tell whether two normal paths may be of one file: the same, or a relative one is the end of an absolute one.

    In which folder a relative path begins is not known here; so one that ends as the other does is taken for it.
    """
    if one == other:
        return True
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    shorter = shorter.removeprefix("~/")  # whose home that is, is not known either
    return absolute(longer) and not absolute(shorter) and longer.endswith(f"/{shorter}")


_ODD = re.compile(r"[~$@%`'\"{}<>*?|]|:.|\A\.\.\Z")


def said_by(path: str) -> str:
    """Give what a normal path says for sure: all of it, or what is behind the last of its folders that stands for something else, or leads upwards.

    Two paths that are of one file say the same, or what one says is the end of what the other does.
    """
    *folders, _ = parts = path.split("/")
    odd = max((place for place, part in enumerate(folders) if _ODD.search(part)), default=-1)
    return "/".join(parts[odd + 1 :])


def ends_of(path: str) -> Iterator[str]:
    """Give a normal path, and what is left of it behind each `/`."""
    yield path
    at = path.find("/")
    while at >= 0:
        yield path[at + 1 :]
        at = path.find("/", at + 1)


def absolute(path: str) -> bool:
    """Tell whether a normal path says in which folder it begins."""
    return path.startswith(("/", "~")) or path[1:2] == ":"
