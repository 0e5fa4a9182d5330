"""What a chat shows: to people on a terminal or in a pipe, or as JSON, one object an event.

On a terminal everything goes to standard output. Where that is a pipe, it gets what was asked for, answers and what commands print; all else
(thinking, calls of tools, notes, errors) goes to standard error. Whatever a model or a tool said is text: control characters stand as pictures.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from typing import TextIO

from palaver.cli.outcome import as_data
from palaver.cli.surroundings import visible
from palaver.errors import PalaverError
from palaver.messages import canonical_json

__all__ = ["JsonScreen", "Screen", "one_line"]

_STYLES = {"dim": "2", "bold": "1", "red": "31", "yellow": "33", "cyan": "36"}
"""Select Graphic Rendition, ECMA-48 section 8.3.117."""

_ERROR = 600
"""Characters of an error that are shown: some providers answer with a whole page."""


def one_line(text: str, length: int = _ERROR) -> str:
    """Give a text as one line, cut where it is longer."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


class Screen:
    """Shows a chat to people.

    Attributes:
        json: Whether events are to be shown as JSON: never here.
        terminal: Whether somebody looks at it.
    """

    json = False

    def __init__(self) -> None:
        """Take the standard streams as they are now: what tools print into them later is another matter."""
        self.terminal = sys.stdout.isatty()
        self._styled = self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
        self._out = _kept(sys.stdout)
        self._aside = self._out if self.terminal else _kept(sys.stderr)
        self._lock = threading.Lock()
        self._begun: TextIO | None = None  # the stream whose line is not at its beginning
        self._printing = False  # whether that line was printed by a tool

    def say(self, text: str) -> None:
        """Show more of an answer, without ending its line."""
        self._more(self._out, text)

    def murmur(self, text: str, style: str = "dim") -> None:
        """Show more of what is no answer, without ending its line."""
        self._more(self._aside, text, style)

    def _more(self, stream: TextIO, text: str, style: str = "") -> None:
        if self._printing:  # what a tool printed ends where somebody else speaks
            self.end_line()
        self._write(stream, text, style)

    def printed(self, text: str) -> None:
        """Show what a tool printed by itself, on lines of its own."""
        if not self._printing:
            self.end_line()
        self._write(self._aside, text, "dim")
        self._printing = self._begun is not None

    def end_line(self) -> None:
        """End a line that was begun."""
        if self._begun is not None:
            self._write(self._begun, "\n")

    def show(self, text: str, style: str = "") -> None:
        """Show lines that were asked for."""
        self.end_line()
        self._write(self._out, f"{text}\n", style)

    def show_lines(self, lines: Iterable[str]) -> None:
        """Show lines that were asked for, one after another."""
        for line in lines:
            self.show(line)

    def note(self, text: str, style: str = "dim") -> None:
        """Say something beside the conversation."""
        self.end_line()
        self._write(self._aside, f"{text}\n", style)

    def fail(self, error: PalaverError | str) -> None:
        """Say in one line what went wrong."""
        self.note(f"! {one_line(str(error))}", "red")

    def prompt(self, text: str) -> str:
        """Give a prompt as it stands out on a terminal. The two marks tell the editor of lines what takes no room."""
        return f"\001\x1b[1m\002{visible(text)}\001\x1b[0m\002" if self._styled else visible(text)

    def close(self) -> None:
        """End the line that was begun; a terminal that is gone is not missed."""
        try:
            self.end_line()
        except OSError:
            self._begun = None

    def _write(self, stream: TextIO, text: str, style: str = "") -> None:
        if not text:
            return
        shown = visible(text)
        with self._lock:
            self._begun = None if shown.endswith("\n") else stream
            self._printing = False
            if style and self._styled:
                lines = shown.split("\n")  # a style ends with its line: what scrolls or is cut then stays plain
                shown = "\n".join(f"\x1b[{_STYLES[style]}m{line}\x1b[0m" if line else "" for line in lines)
            stream.write(shown)
            stream.flush()


def _kept(stream: TextIO) -> TextIO:
    """Give a stream of our own to where a standard stream leads now; a stream in memory is itself."""
    try:
        number = os.dup(stream.fileno())
    except OSError:
        return stream
    stream.flush()
    return open(number, "w", encoding=stream.encoding, errors="replace", newline="\n")  # noqa: PTH123 - for the whole chat


class JsonScreen(Screen):
    """Shows a chat to a program: one JSON object a line, told apart by `type`, on standard output."""

    json = True

    def __init__(self) -> None:
        super().__init__()
        self.terminal = False

    def row(self, kind: str, **fields: object) -> None:
        """Show one object."""
        line = canonical_json({"type": kind, **fields}).decode()
        with self._lock:
            self._out.write(f"{line}\n")
            self._out.flush()

    def say(self, text: str) -> None:
        """Do nothing: the event was shown."""

    def murmur(self, text: str, style: str = "dim") -> None:
        """Do nothing: the event was shown."""

    def printed(self, text: str) -> None:
        """Show what a tool printed by itself."""
        self.row("printed", text=text)

    def show(self, text: str, style: str = "") -> None:  # noqa: ARG002 - nothing has a style here
        """Show lines that were asked for."""
        self.row("shown", text=text)

    def show_lines(self, lines: Iterable[str]) -> None:
        """Show lines that were asked for, as one object."""
        self.show("\n".join(lines))

    def note(self, text: str, style: str = "dim") -> None:  # noqa: ARG002 - nothing has a style here
        """Say something beside the conversation."""
        self.row("note", text=text)

    def fail(self, error: PalaverError | str) -> None:
        """Say what went wrong."""
        self.row("error", **(as_data(error) if isinstance(error, PalaverError) else {"error": {"message": error}}))
