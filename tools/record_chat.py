"""Record the screen of `palaver chat` for the documentation: docs/chat.svg, and the same as text in docs/chat.md.

    .venv/bin/python tools/record_chat.py

A scripted model answers, in a real terminal (tmux), in an empty folder; only ids differ from one recording to the next, so they are replaced.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "chat.md"
PICTURE = ROOT / "docs" / "chat.svg"

COLUMNS, LINES = 96, 33
PATIENCE = 60.0
"""Seconds to wait for something to appear on the screen."""

COMMAND = "palaver chat --model scripted:answers.json --tools tools.py --session oslo"
TOOLS = '''
from palaver import tool


@tool
def forecast(city: str, days: int = 1) -> str:
    """Tell the weather of the next days."""
    return f"{city}: 7 degrees, rain from noon on"


@tool(needs_approval=True)
def remove(path: str) -> str:
    """Remove a file."""
    return f"{path} is removed"
'''
ANSWERS: list[object] = [
    {
        "thinking": "Clothes depend on the weather, so I look that up first.",
        "tool_calls": [{"name": "forecast", "arguments": {"city": "Oslo", "days": 1}, "id": "c1"}],
    },
    {
        "text": "It is 7 degrees in Oslo, with rain from noon on. Take a coat that keeps the water out.",
        "usage": {"prompt_tokens": 412, "completion_tokens": 23},
    },
    {"tool_calls": [{"name": "remove", "arguments": {"path": "packing-2019.txt"}, "id": "c2"}]},
    {"text": "The old list is gone.", "usage": {"prompt_tokens": 468, "completion_tokens": 6}},
    {"text": "Then you need no coat: a sweater will do.", "usage": {"prompt_tokens": 491, "completion_tokens": 11}},
]
STEPS = (
    ("What should I wear in Oslo today?", "23 written"),
    ("Remove my packing list of 2019.", "its arguments:"),
    ("y", "6 written"),
    ("/fork sunny", "goes back."),
    ("And if it stays dry?", "11 written"),
    ("/tree", "8 of them from main"),
    ("/switch main", "the last:"),
)
"""What is typed, and what is then waited for."""

BLOCK = re.compile(r"(?<=^```text\n)(\$ palaver chat .*?)(?=^```$)", re.MULTILINE | re.DOTALL)
IDS = re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{8}(?:[0-9a-f]{4})?(?![0-9a-zA-Z])")


class Tmux:
    """A terminal of tmux's."""

    def __init__(self, folder: Path, command: str) -> None:
        """Run a command in a folder, below a line that shows it, on a server of its own."""
        self._socket = folder / "tmux"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"  # noqa: TID251 - to find tmux
        self._environment = {"PATH": path, "HOME": str(folder), "LC_ALL": "C.UTF-8", "SHELL": "/bin/sh"}
        size = ["-x", str(COLUMNS), "-y", str(LINES), "-c", str(folder)]
        line = f"printf '$ {command}\\n'; PATH={shlex.quote(path)}; exec {command}"  # a shell's profile may set another one
        self._run("-f", os.devnull, "new-session", "-d", *size, line)

    def _run(self, *words: str) -> str:
        command = ["tmux", "-u", "-S", str(self._socket), *words]
        ran = subprocess.run(command, check=True, capture_output=True, text=True, env=self._environment)  # noqa: S603 - tmux
        return ran.stdout

    def type(self, text: str) -> None:
        """Type a line."""
        self._run("send-keys", "-l", text)
        self._run("send-keys", "Enter")

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names for them, such as `C-c`."""
        self._run("send-keys", *names)

    def screen(self, *, styled: bool = False) -> str:
        """Give what is on the screen, with or without its escape sequences."""
        return self._run("capture-pane", "-p", "-J", *(["-e"] if styled else [])).rstrip("\n")

    def wait(self, text: str, times: int = 1) -> None:
        """Wait until a text stands on the screen so many times, and behind it a line that waits for input."""

        def there() -> bool:
            shown = self.screen()
            return shown.count(text) >= times and shown.rstrip()[-1:] in {">", ":", ")"}

        self._until(there, text)

    def gone(self) -> None:
        """Wait until the command has ended, and the terminal with it."""

        def ended() -> bool:
            return not self._socket.exists() or self._asked("has-session") != 0

        self._until(ended, "the end")

    def _until(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > deadline:
                raise SystemExit(f"{what!r} does not appear on the screen:\n{self.screen()}")
            time.sleep(0.05)

    def _asked(self, *words: str) -> int:
        command = ["tmux", "-u", "-S", str(self._socket), *words]
        return subprocess.run(command, check=False, capture_output=True, env=self._environment).returncode  # noqa: S603 - tmux

    def end(self) -> None:
        """End the server, and everything in it; it has ended already when the chat has."""
        with suppress(subprocess.CalledProcessError):
            self._run("kill-server")


@contextmanager
def terminal() -> Iterator[Tmux]:
    """Give a terminal in an empty folder that holds the script and the tools."""
    with tempfile.TemporaryDirectory(prefix="palaver") as name:
        folder = Path(name)
        (folder / "answers.json").write_text(json.dumps(ANSWERS), encoding="utf-8")
        (folder / "tools.py").write_text(TOOLS, encoding="utf-8")
        found = Tmux(folder, COMMAND)
        try:
            yield found
        finally:
            found.end()


def without_ids(text: str) -> str:
    """Replace ids by fixed ones, in the order in which they appear."""
    known: dict[str, str] = {}

    def fixed(found: re.Match[str]) -> str:
        key = found[0][:8]
        known.setdefault(key, f"{len(known) + 1}f3a9c2e5b17"[:12])
        return known[key][: len(found[0])]

    return IDS.sub(fixed, text)


def record() -> tuple[str, str]:
    """Chat as the steps say, and give the screen: with its escape sequences, and as text."""
    with terminal() as here:
        here.wait("Ctrl-D ends.")
        for line, shown in STEPS:
            here.type(line)
            here.wait(shown)
        return without_ids(here.screen(styled=True)), without_ids(here.screen())


def picture(styled: str) -> str:
    """Draw a screen. The picture fetches no fonts: it takes what the reader has."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(styled), soft_wrap=True)  # the whole: tmux lets a style go on over the end of a line
    drawn = console.export_svg(title="palaver chat", unique_id="chat")
    return re.sub(r"\s*@font-face\s*\{[^}]*\}", "", drawn)


def block(screen: str) -> str:
    """Give a screen as it stands in the page."""
    return "".join(f"{line.rstrip()}\n" for line in screen.splitlines())


def main() -> int:
    """Record, and write both files."""
    if shutil.which("tmux") is None:
        sys.stderr.write("record_chat: tmux is not installed.\n")
        return 1
    styled, plain = record()
    PICTURE.write_text(f"{picture(styled)}\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda _: block(plain), page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
