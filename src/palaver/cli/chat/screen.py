"""What a chat shows and reads: a terminal with an editor of lines, or a pipe.

On a terminal everything goes to standard output. In a pipe standard output gets the answers and what commands print; thinking, calls, notes and
errors go to standard error. Control characters of models and tools are shown escaped everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from io import TextIOBase
from pathlib import Path
from typing import TextIO

from palaver.cli.terminal import styled
from palaver.errors import MissingExtra


class Screen(TextIOBase):
    """Shows a chat. As the standard output of tools it shows what they print, escaped and in its place.

    Attributes:
        terminal: Whether a person sits at it.
        lines: Where messages come from.
    """

    def __init__(self, history: Path | None, commands: Iterable[str]) -> None:
        """Use the standard streams as they are now: what tools print later is redirected.

        Args:
            history: Where a person's messages are remembered, readable by their author alone; None for nowhere.
            commands: The words to complete.

        Raises:
            MissingExtra: A terminal needs prompt_toolkit, which is not installed.
        """
        self.terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self.lines = Keyboard(history, commands) if self.terminal else Pipe()
        self._out = sys.stdout
        self._aside = sys.stdout if self.terminal else sys.stderr
        self._part = ""  # what the line that is being written belongs to
        self._begun: TextIO | None = None  # where a line is not ended yet

    def more(self, part: str, text: str) -> None:
        """Show more of a part: `text` is the answer; `thinking` and `printed` are on lines of their own."""
        if part != self._part:
            self.end_line()
            self._part = part
        self._show(self._out if part == "text" else self._aside, text, "" if part == "text" else "dim")

    def end_line(self) -> None:
        """End a line that was begun."""
        if self._begun is not None:
            self._show(self._begun, "\n")
        self._part = ""

    def show(self, text: str) -> None:
        """Show what a command prints."""
        self.end_line()
        self._show(self._out, f"{text}\n")

    def note(self, text: str, style: str = "dim") -> None:
        """Show a line that is not part of the conversation."""
        self.end_line()
        self._show(self._aside, f"{text}\n", style)

    def cut(self, text: str, length: int) -> str:
        """Return a text as one line of at most so many characters."""
        line = " ".join(text.split())
        return line if len(line) <= length else f"{line[: length - 1]}…"

    def write(self, text: str) -> int:
        """Show what a tool prints."""
        self.more("printed", text)
        return len(text)

    def _show(self, stream: TextIO, text: str, style: str = "") -> None:
        if text:
            self._begun = None if text.endswith("\n") else stream
        stream.write(styled(stream, text, style))
        stream.flush()


class Pipe:
    """Messages from a file or a program: each line is one, and nobody can be asked."""

    def message(self, prompt: str) -> str | None:  # noqa: ARG002 - nothing is drawn
        """Return the next message; None at the end."""
        line = sys.stdin.buffer.readline().decode("utf-8", "replace")
        return line.rstrip("\r\n") if line else None

    def ask(self, question: str) -> str:  # noqa: ARG002 - as above
        """Return an empty answer."""
        return ""


class Keyboard:
    """Messages from a person: lines with an editor, a history and completion. Alt-Enter begins a new line."""

    def __init__(self, history: Path | None, commands: Iterable[str]) -> None:
        try:
            from prompt_toolkit import PromptSession, completion  # noqa: PLC0415 - an extra
            from prompt_toolkit import history as histories  # noqa: PLC0415 - as above
            from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415 - as above
        except ImportError as error:
            raise MissingExtra("palaver chat", "chat", package="prompt_toolkit") from error
        keys = KeyBindings()
        for enter in ("enter", "c-j"):  # some terminals send a line feed
            keys.add("escape", enter)(lambda event: event.current_buffer.insert_text("\n"))
        if history is not None:
            history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            history.touch(mode=0o600)
        self._lines: PromptSession[str] = PromptSession(
            history=None if history is None else histories.FileHistory(str(history)),
            completer=completion.WordCompleter(sorted(commands), sentence=True),
            complete_while_typing=False,
            key_bindings=keys,
        )
        self._answers: PromptSession[str] = PromptSession()

    def message(self, prompt: str) -> str | None:
        """Return the next message, an empty one after Ctrl-C; None at the end."""
        try:
            return self._lines.prompt(prompt)
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None

    def ask(self, question: str) -> str:
        """Return the answer to a question; an empty one after Ctrl-C or Ctrl-D."""
        try:
            return self._answers.prompt(question).strip()
        except (EOFError, KeyboardInterrupt):
            return ""
