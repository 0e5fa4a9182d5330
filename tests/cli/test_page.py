"""The page about the command line tells the truth: its commands print what it says, and no command, option or exit code is missing in it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from palaver.cli.commands import COMMANDS, loaded
from palaver.cli.outcome import Exit
from tests.cli.commands import Ran, run

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IDS = re.compile(r"(?<![0-9a-zA-Z])(?:[0-9a-f]{32}|[0-9a-f]{12}|[0-9a-f]{8})(?![0-9a-zA-Z])")


class Said(NamedTuple):
    """A command of the page, and what the page says that it prints."""

    command: str
    output: str


def blocks(text: str) -> Iterator[list[Said]]:
    """Give the commands of each console block."""
    for block in BLOCK.finditer(text):
        parts = re.split(r"^\$ (.*)\n", block[1], flags=re.MULTILINE)
        yield [Said(command, output) for command, output in zip(parts[1::2], parts[2::2], strict=True)]


class Shell:
    """Runs the commands of the page, one after another, in the working folder."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.code = 0

    def run(self, command: str) -> str:
        """Give what a command prints; ids of the page stand for those of this store."""
        words = shlex.split(IDS.sub(lambda found: self.ids.get(found[0], found[0]), command))
        match words:
            case ["palaver", *rest]:
                ran = _fed(rest)
                self.code = ran.code
                assert ran.code in {Exit.OK, Exit.FOUND, Exit.INFEASIBLE, Exit.MISSING}, (command, ran.err)
                return ran.out + ran.err
            case ["echo", "$?"]:
                return f"{self.code}\n"
            case ["tail", "-n", count, source, ">", target]:
                lines = Path(source).read_bytes().splitlines(keepends=True)
                Path(target).write_bytes(b"".join(lines[-int(count) :]))
                return ""
        raise AssertionError(command)

    def learn(self, page: str, here: str) -> None:
        """Take down which id of this store stands where the page has one of its own."""
        self.ids |= dict(zip(IDS.findall(page), IDS.findall(here), strict=True))


def _fed(words: list[str]) -> Ran:
    """Run a command; `< FILE` at its end is its standard input."""
    if "<" not in words:
        return run(*words)
    before = sys.stdin
    with Path(words[-1]).open(encoding="utf-8") as source:
        sys.stdin = source
        try:
            return run(*words[: words.index("<")])
        finally:
            sys.stdin = before


def test_the_commands_print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Every line after `$` is run in one folder; `--update-examples` writes what came out into the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PALAVER_STORE", str(tmp_path / "store.db"))
    monkeypatch.setenv("COLUMNS", "100")
    page = PAGE.read_text(encoding="utf-8")
    samples = re.findall(r'^```\w+ title="([\w./]+)"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    assert samples
    for name, text in samples:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    update = request.config.getoption("update_examples", default=False)
    shell, written = Shell(), []
    for block in blocks(page):
        done = []
        for command, output in block:
            real = shell.run(command)
            if update:
                if len(IDS.findall(output)) == len(IDS.findall(real)):
                    shell.learn(output, real)  # a handle in a later command of the old page
                done.append(f"$ {command}\n{real}")
                continue
            assert IDS.sub("#", real) == IDS.sub("#", output), command
            shell.learn(output, real)
        written.append("".join(done))
    if update:
        names = {here: there for there, here in shell.ids.items()}
        written = [
            IDS.sub(lambda found: names.get(found[0], found[0]), one) for one in written
        ]  # the page keeps its ids
        outputs = iter(written)
        PAGE.write_text(BLOCK.sub(lambda _: f"```console\n{next(outputs)}```", page), encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_on_the_page(command: str) -> None:
    """A command has a section and an example; each of its options is named in that section, or at the top for all."""
    page = PAGE.read_text(encoding="utf-8")
    top, *_ = page.partition("\n## ")
    section = page.partition(f"\n## {command}\n")[2].partition("\n## ")[0]

    assert f"$ palaver {command}" in section
    options = [name for one in loaded(command).params for name in (*one.opts, *one.secondary_opts)]
    missing = [name for name in options if name.startswith("--") and name not in section + top]
    assert missing == []


def test_every_exit_code_is_on_the_page() -> None:
    """The table has a row for each code, and no other."""
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(code) for code, _ in rows] == sorted(int(code) for code in Exit)
    assert all(words for _, words in rows)
