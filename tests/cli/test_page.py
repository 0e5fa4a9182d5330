"""The page about the command line: its commands print what it shows, and the reference is that of the commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from palaver.cli.app import COMMANDS, loaded
from palaver.cli.outcome import Exit
from tests.cli.commands import run

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REFERENCE = PAGE.parent / "reference" / "commands.md"
IDS = re.compile(r"(?<![0-9a-zA-Z])(?:[0-9a-f]{32}|[0-9a-f]{12})(?![0-9a-zA-Z])")
COMMON = {"--store", "--json", "--help"}
"""Options that the page explains once."""
SPOKEN = ("acp", "chat", "mcp")
"""Commands without `--json`: a person or a program talks with them."""
STORELESS = ("lab", "models", "queue", "sync", "work")
"""Commands without `--store`: they need no store, or their arguments name it."""


class Shown(NamedTuple):
    """A command of the page, and the output that the page shows."""

    command: str
    output: str


def blocks(text: str) -> Iterator[list[Shown]]:
    """Yield the commands of each console block."""
    for block in BLOCK.finditer(text):
        parts = re.split(r"^\$ (.*)\n", block[1], flags=re.MULTILINE)
        yield [Shown(command, output) for command, output in zip(parts[1::2], parts[2::2], strict=True)]


class Shell:
    """Runs the commands of the page, one after another, in the working folder."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.code = 0

    def run(self, command: str) -> str:
        """Return what a command prints; ids of the page stand for those of this store."""
        words = shlex.split(IDS.sub(lambda found: self.ids.get(found[0], found[0]), command))
        match words:
            case ["palaver", *rest]:
                ran = run(*rest)
                self.code = ran.code
                assert ran.code in {Exit.OK, Exit.FOUND, Exit.INFEASIBLE}, (command, ran.err)
                return ran.out + ran.err
            case ["echo", "$?"]:
                return f"{self.code}\n"
            case ["tail", "-n", count, source, ">", target]:
                lines = Path(source).read_bytes().splitlines(keepends=True)
                Path(target).write_bytes(b"".join(lines[-int(count) :]))
                return ""
        raise AssertionError(command)

    def learn(self, page: str, here: str) -> None:
        """Note which id of this store replaces an id of the page."""
        self.ids |= dict(zip(IDS.findall(page), IDS.findall(here), strict=True))


def reference() -> str:
    """Return the reference of all commands, from the commands."""
    sections = "".join(_section(name, loaded(name)) for group in COMMANDS.values() for name in group)
    common = f"Every command takes `--help`, every one but {_and(SPOKEN)} takes `--json`, and every one but {_and(STORELESS)} takes `--store`; [the command line](../cli.md) shows examples."
    return f"# Commands\n\n{common}\n\n{sections}".rstrip() + "\n"


def _and(names: tuple[str, ...]) -> str:
    return f"{', '.join(f'`{name}`' for name in names[:-1])} and `{names[-1]}`"


def _section(name: str, command: Any, above: str = "palaver") -> str:  # noqa: ANN401 - of a class that Typer keeps to itself
    below = getattr(command, "commands", None)
    if below:
        lines = "".join(_section(each, found, f"{above} {name}") for each, found in below.items())
        return f"## {name}\n\n{command.help}\n\n{lines}"
    names = {name for one in command.params for name in one.opts}
    assert all(one.help for one in command.params), f"{name} has an option without a word about it"
    assert ("--json" in names or name in SPOKEN, "--store" in names or name in STORELESS) == (True, True), name
    shown = [one for one in command.params if not COMMON & set(one.opts)]
    words = [_word(one) for one in shown if one.param_type_name == "argument"]
    usage = " ".join([above, name, *words])
    sentence = " ".join((command.help or "").split("\n\n")[0].split())
    options = "".join(f"- {_names(one)}: {one.help}\n" for one in shown if one.param_type_name == "option")
    head = f"## {name}\n\n" if above == "palaver" else ""
    return f"{head}`{usage}`: {sentence}\n\n{options}{chr(10) if options else ''}"


def _word(argument: Any) -> str:  # noqa: ANN401 - as above
    word = f"{argument.metavar}{'' if argument.nargs == 1 else '...'}"
    return word if argument.required else f"[{word}]"


def _names(option: Any) -> str:  # noqa: ANN401 - as above
    return ", ".join(f"`{name}`" for name in sorted((*option.opts, *option.secondary_opts), key=len, reverse=True))


def test_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Every line after `$` is run in one folder; `--update-examples` writes the output and the reference into the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PALAVER_STORE", str(tmp_path / "store.db"))
    monkeypatch.setenv("COLUMNS", "100")
    page = PAGE.read_text(encoding="utf-8")
    for name, text in re.findall(r'^```\w+ title="([\w./]+)"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL):
        Path(name).write_text(text, encoding="utf-8")
    update = request.config.getoption("update_examples", default=False)
    shell, written = Shell(), []
    for block in blocks(page):
        done = []
        for command, output in block:
            real = shell.run(command)
            if not update:
                assert IDS.sub("#", real) == IDS.sub("#", output), command
            if len(IDS.findall(output)) == len(IDS.findall(real)):
                shell.learn(output, real)
            elif command.endswith("--entries"):
                shell.ids["336e9291a84b"] = IDS.findall(real)[0]  # the page is new
            done.append(f"$ {command}\n{real}")
        written.append("".join(done))
    if update:
        names = {here: there for there, here in shell.ids.items()}
        outputs = iter(IDS.sub(lambda found: names.get(found[0], found[0]), one) for one in written)
        PAGE.write_text(BLOCK.sub(lambda _: f"```console\n{next(outputs)}```", page), encoding="utf-8")
        REFERENCE.write_text(reference(), encoding="utf-8")


def test_the_reference_is_that_of_the_commands() -> None:
    """Every command, argument and option, in the words of its help; help of each goes to standard output."""
    assert REFERENCE.read_text(encoding="utf-8") == reference()
    for group in COMMANDS.values():
        for name in group:
            ran = run(name, "--help")
            assert (ran.code, ran.err) == (Exit.OK, ""), name
