"""Which files a call may have changed: none, where it is known to look; those that it names, where it is known to edit; else any.

It is asked where something is told as what a file says: rather too many files are taken for changed than one too few.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from palaver.context.work.deeds import PATH_KEYS, Deed, command_of
from palaver.context.work.shell import changed_by, words_of
from palaver.messages import ToolCallContent

__all__ = ["ANYTHING", "NOTHING", "Reach", "normal", "reach_of", "reach_of_command", "same_file"]


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
"""The words of a tool's name: `str_replace_editor`, `NotebookEdit`, `list-dir`."""

_LOOKS = words_of(
    "blame cat check count diagnostics diff exists fetch find get glob grep head info list log look ls open outline peek read "
    "readfile retrieve scroll search show stat status tail tree view viewfile"
)
"""Words of tools that look."""

_EDITS = words_of(
    "append apply create delete edit editor insert multi patch remove replace str undo update write writefile"
)
"""Words of tools that change the file they name, and no other."""

_OF = words_of(
    "a and at base based block by cell class code content contents doc docs document documentation entry file from fs function id "
    "image in item line lines local mcp method name notebook of page pages path range result results semantic string structure "
    "text the to tool url web"
)
"""Words beside them that say of what."""

_FAR = words_of(
    "all codebase dir directories directory files filesystem folder git items many multiple names paths project references repo "
    "several symbol symbols tree workspace"
)
"""Such words of tools that may change more than one file, where they change any."""

_ELSEWHERE = words_of(
    "askfollowupquestion askuser askuserquestion attemptcompletion enterplanmode exitplanmode finalanswer finish recall "
    "sequentialthinking submit think todoread todowrite updateplan updatetodolist writetodos webfetch websearch"
)
"""Tools that have nothing to do with the files worked on: plans, questions, pages of the web, the end."""

_SPACES = re.compile(r"__|[.:/]")
_ELSE = re.compile(r"dest|output|(?:new|to|target|second|other)_?(?:path|file|name)|(?:path|file)_?2", re.IGNORECASE)
"""Arguments by which a tool names another file than the one it edits."""

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


@dataclass(frozen=True, slots=True)
class Reach:
    """Which files something may have changed.

    Attributes:
        everything: Whether it may be any file.
        names: The last parts of the paths that it names.
        folders: Last parts of paths that may be folders: any file in them may be changed.
    """

    everything: bool = False
    names: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()

    @property
    def far(self) -> bool:
        """Whether it reaches files that it does not name."""
        return self.everything or bool(self.folders)

    def has(self, path: str) -> bool:
        """Tell whether a file, by its normal path, is among them. One with a relative path may be in any folder."""
        if self.everything or (self.folders and not _absolute(path)):
            return True
        *_, name = parts = [part.strip() for part in path.split("/")]  # as `normal` gives them alone
        return name in self.names or not self.folders.isdisjoint(parts)


NOTHING = Reach()
ANYTHING = Reach(everything=True)


def reach_of(call: ToolCallContent, deed: Deed) -> Reach:
    """Tell which files a call may have changed.

    Args:
        call: The call.
        deed: What it did, as far as its name and arguments say.
    """
    command = command_of(call)
    if command:
        return reach_of_command(command)
    if _edits(call, deed):
        return Reach(names=_names(deed.wrote))
    return NOTHING if _only_looks(call.name, deed) else ANYTHING


@lru_cache(_REMEMBERED)
def reach_of_command(command: str) -> Reach:
    """Tell which files a shell command may have changed."""
    changed = changed_by(command)
    return ANYTHING if changed is None else Reach(names=_names(changed.files), folders=_names(changed.folders))


def _names(paths: tuple[str, ...]) -> frozenset[str]:
    return frozenset(posixpath.basename(normal(path)) for path in paths)


def _edits(call: ToolCallContent, deed: Deed) -> bool:
    """Tell whether a call changes the files that it names, and no other."""
    words = _words(call.name)
    if not deed.wrote or not words & _EDITS or not words <= (_EDITS | _LOOKS | _OF):
        return False
    return not any(_names_more(name, value) for name, value in call.args.items())


def _names_more(name: str, value: object) -> bool:
    """Tell whether an argument names a file beyond the one that is edited."""
    if isinstance(value, list | tuple):
        return any(_names_more("", each) for each in value)
    if isinstance(value, Mapping):
        return any(part in PATH_KEYS or _names_more(str(part), each) for part, each in value.items())
    return name not in PATH_KEYS and _ELSE.search(name) is not None


def _only_looks(name: str, deed: Deed) -> bool:
    """Tell whether a tool is known by its name to change no file; one for both looks where what it was asked is to look."""
    words = _words(name)
    if "".join(_WORDS.findall(_own(name))).lower() in _ELSEWHERE:
        return True
    if deed.wrote or not words & (_LOOKS | _EDITS):
        return False
    return words <= (_LOOKS | _OF | _FAR) or (bool(deed.read) and words <= (_LOOKS | _OF | _EDITS))


@lru_cache(_REMEMBERED)
def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(_own(name)))


def _own(name: str) -> str:
    """Give a tool's own name, without that of its server."""
    return _SPACES.split(name)[-1]
