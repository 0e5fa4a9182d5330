"""What the user types: messages over one line or several, answers to questions, and the history of both.

A message is a line; a line that ends with a backslash goes on in the next one, and a line that is three quotes begins a block that ends
with such a line. A pasted text of many lines is one message where the terminal marks it as pasted and `readline` knows (GNU readline does).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

try:
    import readline as _editor
except ImportError:  # Windows has none; lines are then read as they come
    _EDITOR: Any = None
else:
    _EDITOR = _editor

__all__ = ["Keys", "Lines", "Pipe"]

_BLOCK = '"""'
_REMEMBERED = 2_000
"""Lines of history that are kept."""


class Lines(Protocol):
    """Where messages come from."""

    asks: bool
    """Whether there is somebody who can be asked."""

    def message(self, prompt: str) -> str | None:
        """Give the next message; None at the end.

        Raises:
            KeyboardInterrupt: The user threw the line away.
        """
        ...

    def ask(self, question: str, prefill: str = "") -> str | None:
        """Give the answer to a question, without the white space around it; None where there is none."""
        ...

    def close(self) -> None:
        """Keep the history."""
        ...


def _gathered(line: Callable[[str], str | None], prompt: str) -> str | None:
    """Put a message together from its lines; None at the end of the input."""
    first = line(prompt)
    if first is None:
        return None
    if first.strip() == _BLOCK:
        return "\n".join(_until_the_end_of_the_block(line))
    found = [first]
    while found[-1].endswith("\\"):
        found[-1] = found[-1][:-1]
        more = line("… ")
        if more is None:
            break
        found.append(more)
    return "\n".join(found)


def _until_the_end_of_the_block(line: Callable[[str], str | None]) -> Iterator[str]:
    while (found := line("… ")) is not None and found.strip() != _BLOCK:
        yield found


class Pipe:
    """Messages from a file or a program: nothing is drawn, nobody can be asked."""

    asks = False

    def message(self, prompt: str) -> str | None:  # noqa: ARG002 - nothing is drawn
        """Give the next message."""
        return _gathered(self._line, "")

    def _line(self, prompt: str) -> str | None:  # noqa: ARG002 - nothing is drawn
        buffer = getattr(sys.stdin, "buffer", None)
        # one byte that is no UTF-8 ends no chat
        line = sys.stdin.readline() if buffer is None else buffer.readline().decode("utf-8", "replace")
        return line.rstrip("\r\n") if line else None

    def ask(self, question: str, prefill: str = "") -> str | None:  # noqa: ARG002 - nobody can be asked
        """Give None."""
        return None

    def close(self) -> None:
        """Do nothing."""


class Keys:
    """Messages from the keyboard."""

    asks = True

    def __init__(self, history: Path | None, words: Iterable[str]) -> None:
        """Take the file of the history, None for none, and the words that the tabulator completes."""
        self._history = history
        self._words = sorted(words)
        if _EDITOR is not None:
            self._prepare(_EDITOR)

    def _prepare(self, editor: Any) -> None:  # noqa: ANN401 - the module, where there is one
        editor.parse_and_bind("set enable-bracketed-paste on")
        editor.parse_and_bind("tab: complete")
        editor.set_completer_delims(" \t\n")
        editor.set_completer(self._completed)
        editor.set_history_length(_REMEMBERED)
        if self._history is not None:
            with suppress(OSError):  # there is none yet, or it is not ours to read: a chat needs no history
                editor.read_history_file(self._history)

    def _completed(self, begun: str, index: int) -> str | None:
        fitting = [word for word in self._words if begun.startswith("/") and word.startswith(begun)]
        return fitting[index] if index < len(fitting) else None

    def message(self, prompt: str) -> str | None:
        """Give the next message."""
        return _gathered(self._line, prompt)

    def _line(self, prompt: str) -> str | None:
        try:
            return input(prompt).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        except EOFError:
            return None

    def ask(self, question: str, prefill: str = "") -> str | None:
        """Give the answer to a question; what is prefilled can be edited. Answers are not remembered as messages are."""
        with _prefilled(prefill):
            answer = self._line(question)
        if answer and _EDITOR is not None and _EDITOR.get_current_history_length():
            _EDITOR.remove_history_item(_EDITOR.get_current_history_length() - 1)
        return None if answer is None else answer.strip()

    def close(self) -> None:
        """Keep the history, where only this user can read it."""
        if _EDITOR is None or self._history is None:
            return
        with suppress(OSError):
            self._history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._history.touch(mode=0o600)
            _EDITOR.write_history_file(self._history)


@contextmanager
def _prefilled(text: str) -> Iterator[None]:
    """Let the next line that is read begin with a text, where the editor can do that."""
    if not text or _EDITOR is None:
        yield
        return
    _EDITOR.set_startup_hook(lambda: _EDITOR.insert_text(text))
    try:
        yield
    finally:
        _EDITOR.set_startup_hook(None)
