"""What a call did to files, by declaration (`@tool(reads=..., writes=...)`) or by a table of well-known tools.

Only names of tools and arguments are looked at, never what an argument or a result says. The one exception is the patch format of `apply_patch`, a machine's format
that names its files in header lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from palaver.log import ToolSpec


class Effect(NamedTuple):
    """What a call did.

    Attributes:
        reads: Paths that it read.
        writes: Paths that it wrote.
        command: The command that it ran, or empty.
        plan: Whether its arguments are the model's plan or list of tasks.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    command: str = ""
    plan: bool = False


_TOOLS = {
    "read": "read readfile readfiles readmanyfiles view viewfile viewimage openfile cat notebookread",
    "write": """write writefile writetofile create createfile edit editfile multiedit notebookedit replace replaceinfile strreplace insertedit insert
        deletefile""",
    "editor": "strreplaceeditor strreplacebasededittool texteditor fileeditor",
    "shell": """bash shell sh terminal execcommand execbash executebash executecommand runcommand runshellcommand runinterminal runterminalcmd localshell
        shellcommand powershell""",
    "plan": "todowrite writetodos todo todos updatetodos updatetodolist managetodolist updateplan exitplanmode tasktracker",
    "patch": "applypatch patch",
}
"""Names of well-known tools by what they do. An editor does one of several things, named by its argument `command`: `view` reads, the others write."""

_KINDS = {name: kind for kind, names in _TOOLS.items() for name in names.split()}

_PATHS = ("file_path", "filePath", "path", "absolute_path", "notebook_path", "target_file", "filename", "file", "paths")
_COMMANDS = ("command", "cmd", "script")
_PATCHES = ("input", "patch", "patchText", "patch_text")

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
"""The header lines of the patch format of Codex (openai/codex, codex-rs/apply-patch)."""


def effect(tool: str, arguments: Mapping[str, object], declared: ToolSpec | None = None) -> Effect:
    """Return what a call did; an empty effect for tools that are neither declared nor in the table.

    Args:
        tool: The tool's name. The name of its server before it, case and punctuation do not matter.
        arguments: The call's arguments.
        declared: The tool's declaration, whose `reads` and `writes` name the arguments that are paths.
    """
    if declared is not None and (declared.reads or declared.writes):
        return Effect(tuple(_texts(arguments, declared.reads or ())), tuple(_texts(arguments, declared.writes or ())))
    kind = _KINDS.get(_key(tool))
    if kind == "editor":
        kind = "read" if arguments.get("command") == "view" else "write"
    paths = tuple(_texts(arguments, _PATHS)) if kind in {"read", "write"} else ()
    if kind == "patch":
        paths = tuple(path for text in _texts(arguments, _PATCHES) for path in _PATCHED.findall(text))
    return Effect(
        reads=paths if kind == "read" else (),
        writes=() if kind == "read" else paths,
        command=" ".join(_texts(arguments, _COMMANDS)) if kind == "shell" else "",
        plan=kind == "plan",
    )


def _key(tool: str) -> str:
    own = re.split(r"__|[.:/]", tool)[-1]
    return "".join(letter for letter in own if letter.isalnum()).lower()


def _texts(arguments: Mapping[str, object], names: Sequence[str] | None) -> Iterator[str]:
    """Iterate over the texts of some arguments: a text itself, or the texts of a list."""
    for name in names or ():
        value = arguments.get(name)
        texts = (value,) if isinstance(value, str) else value if isinstance(value, Sequence) else ()
        yield from (text for text in texts if isinstance(text, str) and text)
