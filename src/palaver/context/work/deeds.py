"""What a call did: the files it read and wrote, and the command it ran, from its arguments and from common shell commands."""

from __future__ import annotations

import re
import shlex
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from palaver.context.work.naming import folded
from palaver.messages import ToolCallContent

__all__ = ["LOOKS", "PATH_KEYS", "Deed", "command_of", "deed"]

_COMMAND_KEYS = ("command", "cmd", "script", "bash_command", "keystrokes")
PATH_KEYS = (
    "file_path",
    "path",
    "filepath",
    "filename",
    "file",
    "notebook_path",
    "target_file",
    "absolute_path",
    "relative_path",
    "file_name",
    "AbsolutePath",
    "TargetFile",
)
_SHELLS = re.compile(r"bash|shell|terminal|exec|run|command|console|powershell|\bsh\b", re.IGNORECASE)
_WRITES = re.compile(
    r"write|edit|apply|create|replace|insert|patch|update|append|save|delete|remove|rename|move|undo", re.IGNORECASE
)
_SHELL_RUNS = re.compile(r"(?:/(?:usr/(?:local/)?)?bin/)?(?:ba|z|da|k)?sh\0-l?c\0([^\0]*)")
"""The words of a shell that is given a command, and no names for its parameters: `sh -c command`."""

_PATCHED = re.compile(
    r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$|^\+\+\+ b/([^\t\n]+)", re.MULTILINE
)
LOOKS = frozenset({"view", "read", "open", "cat", "list", "show"})
"""What a tool that does one of several things is asked to do where it is to look."""

_READERS = frozenset(
    {
        "cat",
        "head",
        "tail",
        "less",
        "more",
        "nl",
        "wc",
        "sed",
        "awk",
        "grep",
        "rg",
        "diff",
        "sort",
        "python",
        "python3",
        "node",
        "source",
        ".",
    }
)
_WRITERS = frozenset({"touch", "tee", "rm", "mv", "cp", "patch", "truncate"})
_JOINTS = re.compile(r"&&|\|\||;|\||\n")
_INTO = re.compile(r"(?<![0-9&<>=-])>{1,2}\s*(['\"]?)([\w./~+@-]+)\1")
_FILE = re.compile(
    r"(?:[\w@~.+-]*/)*[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,7}\Z|(?:[\w@~.+-]*/)+[\w@.+-]+\Z|Makefile\Z|Dockerfile\Z"
)
_LONGEST = 300
_MANY = 20_000
_REMEMBERED = 4_096
"""Commands whose files are remembered: every view of a session shows them again, and to take one apart costs a tenth of a millisecond and more."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What a call did.

    Attributes:
        of: What it was about, by which a later call is known as the same: the command, or the tool and its path.
        run: The command it ran, or empty.
        read: The files it read.
        wrote: The files it changed.
    """

    of: str
    run: str = ""
    read: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()


def deed(call: ToolCallContent) -> Deed:
    """Tell what a call did, as far as its name and arguments say."""
    command = command_of(call)
    if command:
        read, wrote = _of_shell(command[:_MANY])
        return Deed(of=_short(command), run=_short(command), read=read, wrote=wrote)
    paths = tuple(dict.fromkeys((*_paths(call.args), *_patched(call))))
    changed = _changes(call)
    about = " ".join((call.name, *paths[:1]))
    return Deed(of=_short(about), read=() if changed else paths, wrote=paths if changed else ())


def command_of(call: ToolCallContent) -> str:
    """Give the shell command that a call runs, or an empty text."""
    for key in _COMMAND_KEYS:
        value = call.args.get(key)
        if isinstance(value, str) and value.strip() and (_SHELLS.search(call.name) or key != "command"):
            return value.strip()
        if isinstance(value, list | tuple) and value and all(isinstance(word, str) for word in value):
            runs = _SHELL_RUNS.fullmatch("\0".join(value))
            return runs[1].strip() if runs else shlex.join(value)
    return ""


def _short(text: str) -> str:
    """Give a command on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "[...]"


def _paths(args: Mapping[str, Any]) -> Iterator[str]:
    named = {folded(name): value for name, value in args.items()}
    for key in map(folded, PATH_KEYS):
        value = named.get(key)
        if isinstance(value, str) and value.strip() and "\n" not in value and len(value) <= _LONGEST:
            yield _unquoted(value.strip())
    for key in ("paths", "files"):
        value = args.get(key)
        if isinstance(value, list | tuple):
            yield from (one for one in value if isinstance(one, str) and one.strip() and len(one) <= _LONGEST)


_QUOTED = re.compile(r"([`'\"])([^`'\"]+)\1")


def _unquoted(path: str) -> str:
    """Give a path without the quotes that a model put around it."""
    found = _QUOTED.fullmatch(path)
    return path if found is None else found[2]


def _patched(call: ToolCallContent) -> Iterator[str]:
    """Give the files that a patch among the arguments names."""
    for value in call.args.values():
        if isinstance(value, str) and ("*** " in value or "+++ b/" in value):
            yield from (next(filter(None, found.groups())).strip() for found in _PATCHED.finditer(value))


def _changes(call: ToolCallContent) -> bool:
    """Tell whether a call changes the files it names; one tool for both says so in its `command`."""
    verb = call.args.get("command")
    if isinstance(verb, str) and verb in LOOKS:
        return False
    return bool(_WRITES.search(call.name) or (isinstance(verb, str) and _WRITES.search(verb)))


@lru_cache(_REMEMBERED)
def _of_shell(command: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give the files that a shell command reads and changes, by the usual commands; what is unusual is passed over."""
    read: dict[str, None] = {}
    wrote: dict[str, None] = dict.fromkeys(_patch_paths(command))
    for part in _JOINTS.split(_without_heredocs(command)):
        wrote.update(dict.fromkeys(found[2] for found in _INTO.finditer(part) if found[2] != "/dev/null"))
        words = _words(_INTO.sub(" ", part))
        if not words:
            continue
        name = words[0].rsplit("/", 1)[-1]
        files = [word for word in words[1:] if _FILE.fullmatch(word)]
        if name in _WRITERS or (name == "sed" and any(word.startswith("-i") for word in words)):
            wrote.update(dict.fromkeys(files))
        elif name in _READERS:
            read.update(dict.fromkeys(files))
    return tuple(path for path in read if path not in wrote), tuple(wrote)


def _patch_paths(command: str) -> Iterator[str]:
    for found in _PATCHED.finditer(command):
        yield next(filter(None, found.groups())).strip()


_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)(?!\w)\1")


def _without_heredocs(command: str) -> str:
    """Leave out the text that a command reads from itself; what stands behind it on its first line stays. What has no end is no such text."""
    lines, kept = command.split("\n"), []
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        ends.setdefault(line.strip(" \t"), []).append(number)
    number = 0
    while number < len(lines):
        line = lines[number]
        while (found := _HEREDOC.search(line)) is not None:
            places = ends.get(found[2], ())
            end = bisect_right(places, number)
            if end == len(places):
                break
            line, number = line[: found.start()] + line[found.end() :], places[end]
        kept.append(line)
        number += 1
    return "\n".join(kept)


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:
        return part.split()
