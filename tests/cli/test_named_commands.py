"""Commands that errors, hints, the page and documents name: each is there, with its options."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palaver.cli.app import COMMANDS, loaded
from tests.cli.commands import run

ROOT = Path(__file__).parents[2]
INLINE = re.compile(r"`(palaver [a-z][^`]*)`")
FENCED = re.compile(r"^(?:\$ )?(palaver [a-z].*)$", re.MULTILINE)
KNOWN = {name for group in COMMANDS.values() for name in group}


def texts(path: Path) -> Iterator[str]:
    """Yield the strings of a module; whatever is put into one is an `X`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named() -> dict[str, str]:
    """Return the command lines that something names, and where."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        found.update((line, path.name) for text in texts(path) for line in INLINE.findall(text))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for path in (*pages, *(ROOT / "src/palaver/explorer/static").glob("*.js")):
        text = path.read_text("utf-8").replace("\\`", "`")
        found.update((line, path.name) for line in INLINE.findall(text))
        for block in re.findall(r"^```.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            found.update((line, path.name) for line in FENCED.findall(block))
    return found


def command_of(line: str) -> tuple[list[str], Any, list[str]]:
    """Return the names of a command, the command, and the options that a line has."""
    line = re.split(r" (?:#|\||>|2>|&&) ?", line)[0]
    _, *words = shlex.split(line.replace("'", "") if line.count("'") % 2 else line)
    names, command = words[:1], loaded(words[0])
    if hasattr(command, "commands") and len(words) > 1:
        names, command = words[:2], command.commands[words[1]]
    return names, command, [word.partition("=")[0] for word in words if word.startswith("--")]


def test_every_command_that_something_names_is_there() -> None:
    """Its help can be asked for, and it has the options that are named with it."""
    lines = named()
    assert len(lines) > 100
    wrong: list[str] = []
    asked: set[tuple[str, ...]] = set()
    for line, place in lines.items():
        try:
            names, command, options = command_of(line)
        except (LookupError, StopIteration):
            wrong.append(f"{place}: {line}")
            continue
        asked.add(tuple(names))
        known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
        wrong += [f"{place}: {line} ({option})" for option in options if option not in known]
    assert wrong == []
    assert {names[0] for names in asked} >= KNOWN
    for command_names in asked:
        assert run(*command_names, "--help").code == 0, command_names
