"""Chats for tests: over a pipe in this process, and over a real pseudo-terminal in another one."""

from __future__ import annotations

import codecs
import fcntl
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.commands import Ran, run

TOOLS = '''
import subprocess
import sys
import threading

from palaver import tool


@tool
def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"{city}: 7 degrees"


@tool(needs_approval=True)
def remove(path: str) -> str:
    """Remove a file."""
    return f"{path} is gone"


@tool
def hang() -> str:
    """Never end."""
    threading.Event().wait()
    return "never"


@tool
def prints() -> str:
    """Print by itself, here and in a child."""
    print("from python \\x1b]0;owned\\x07")
    print("on standard error", file=sys.stderr)
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    return "printed"

'''

CONTROLLED = """
import fcntl, sys, termios
from palaver.cli import main
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.exit(main())
"""
"""The entry point on a terminal that controls it: Ctrl-C is a signal. PROMPT_TOOLKIT_NO_CPR: nobody answers where the cursor is."""

COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]")
PROMPTED = "\x1b[?2004h"  # a prompt asks for marked pastes once, after it switched the terminal to single keys


def call(name: str, call_id: str = "", **arguments: object) -> dict[str, object]:
    """Return an answer of a script that calls a tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments, "id": call_id or f"call_{name}"}]}


@dataclass(frozen=True)
class Chats:
    """Chats over one store."""

    folder: Path

    @property
    def store(self) -> Path:
        """The store's file."""
        return self.folder / "chat.db"

    def script(self, *answers: object, name: str = "answers.json") -> str:
        """Write a script, and return the model's string."""
        path = self.folder / name
        path.write_text(json.dumps(answers), encoding="utf-8")
        return f"scripted:{path}"

    def tools(self, text: str = TOOLS, name: str = "chat_tools.py") -> Path:
        """Write a file of tools."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        sys.modules.pop(path.stem, None)  # the file of an earlier test
        return path

    def pipe(self, lines: str | bytes, *words: object) -> Ran:
        """Chat in this process; what is typed comes from a pipe."""
        before = sys.stdin
        data = lines.encode() if isinstance(lines, str) else lines
        sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        try:
            return run("chat", *words, "--store", self.store)
        finally:
            sys.stdin = before

    @contextmanager
    def terminal(self, *words: object, **environment: str) -> Iterator[Terminal]:
        """Chat in another process, on a terminal; it is killed at the end of the block if it still runs."""
        home = {"XDG_DATA_HOME": str(self.folder / "data"), "LC_ALL": "C.UTF-8", "PROMPT_TOOLKIT_NO_CPR": "1"}
        found = Terminal(CONTROLLED, "chat", *words, "--store", self.store, **home | environment)
        try:
            yield found
        finally:
            found.end()


class Terminal:
    """A Python program on a pseudo-terminal."""

    PATIENCE = 40.0

    def __init__(self, program: str, *words: object, **environment: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 220, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, words)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=os.environ | {"TERM": "xterm-256color"} | environment,
        )
        os.close(slave)
        self.raw = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._seen = 0

    @property
    def text(self) -> str:
        """What was shown so far, without colours; a bell stands where a prompt began."""
        return COLOURS.sub("", self.raw.replace(PROMPTED, "\a")).replace("\r\n", "\n")

    def expect(self, text: str) -> str:
        """Wait until a text is shown after what was expected before, and return what came in between."""
        deadline = time.monotonic() + self.PATIENCE
        while (at := self.text.find(text, self._seen)) < 0:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} is not shown:\n{self.text[self._seen :]}")
        found = self.text[self._seen : at]
        self._seen = at + len(text)
        return found

    def _read(self, deadline: float) -> bool:
        if not select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        try:
            piece = os.read(self._master, 65_536)
        except OSError:  # nobody has the other side open any more
            return False
        self.raw += self._decoder.decode(piece)  # a character may come in two pieces
        return bool(piece)

    def prompt(self, text: str = ">") -> None:
        """Wait for a fresh prompt: an earlier one may be drawn again, and keys before a prompt reach a terminal that still edits lines."""
        self.expect("\a")
        self.expect(text)

    def type(self, text: str, prompt: str = ">") -> None:
        """Wait for a fresh prompt, and type a line."""
        self.prompt(prompt)
        self.keys(f"{text}\r")

    def keys(self, text: str) -> None:
        """Type as it is; Ctrl-C is character 3, Ctrl-D character 4."""
        os.write(self._master, text.encode())

    def interrupt(self, text: str) -> None:
        """Press Ctrl-C until a text is shown.

        A signal that comes between the prompt and the wait behind it is noticed with the next one only, and both are one: people are not that fast.
        """
        for _ in range(int(self.PATIENCE)):
            self.keys("\x03")
            deadline = time.monotonic() + 1.0
            while text not in self.text[self._seen :] and self._read(deadline):
                pass
            if text in self.text[self._seen :]:
                break
        self.expect(text)

    def ended(self) -> int:
        """Wait for the end, and return the exit code."""
        deadline = time.monotonic() + self.PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(self.PATIENCE)

    def end(self) -> None:
        """Kill it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)
