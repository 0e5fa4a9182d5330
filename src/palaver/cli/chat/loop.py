"""The chat itself: take a line, run a command or have the agent answer, until the end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from palaver.cli.chat.commands import COMMANDS, Next, run_command
from palaver.cli.chat.lines import Keys, Lines, Pipe
from palaver.cli.chat.screen import JsonScreen, Screen, one_line
from palaver.cli.chat.talk import MAIN, Talk
from palaver.cli.chat.turns import answer
from palaver.cli.outcome import Exit, exit_code
from palaver.cli.surroundings import data_folder
from palaver.errors import PalaverError
from palaver.messages import Message, Role
from palaver.plurals import counted

__all__ = ["Chat", "lines_for", "signals_end_it"]

_RECALLED = 12
"""Lines of the last answer that are shown when a session is taken up."""

_GOES_ON = {
    "open": "Its last turn was cut off: going on with it.",
    "interrupted": "Its last turn was interrupted: going on with it.",
    "waiting": "Its last turn waits for a decision.",
    "unanswered": "Its last message was not answered: going on with it.",
}


class Chat:
    """A chat on a screen."""

    def __init__(self, talk: Talk, screen: Screen, lines: Lines, *, agree: bool) -> None:
        """Take what talks, where it is shown, where messages come from, and whether calls run without a question."""
        self._talk = talk
        self._screen = screen
        self._lines = lines
        self._agree = agree
        self._ended = Exit.OK

    def run(self) -> Exit:
        """Talk until the end. Whoever typed gets 0; a program gets how its last message ended."""
        self._greet()
        if self._talk.unfinished() in _GOES_ON:
            self._answer()
        tired = False
        while True:
            try:
                line = self._lines.message(self._prompt())
            except KeyboardInterrupt:
                self._screen.note("")
                if tired:
                    break
                tired = True
                self._screen.note("(Ctrl-C again, or Ctrl-D, ends the chat.)")
                continue
            tired = False
            if line is None or self._take(line) == Next.QUIT:
                break
        self._leave()
        return Exit.OK if self._lines.asks else self._ended

    def _prompt(self) -> str:
        branch = self._talk.branch
        return self._screen.prompt("> " if branch == MAIN else f"{branch}> ")

    def _take(self, line: str) -> str:
        """Do what a line says. A Ctrl-C that comes a moment too late to interrupt anything ends nothing."""
        if not line.strip():
            return Next.READ
        try:
            what = self._done(line)
            if what == Next.ANSWER:
                self._answer()
        except PalaverError as error:
            self._screen.fail(error)
            self._ended = exit_code(error)
            return Next.READ
        except KeyboardInterrupt:
            self._screen.note("Interrupted.", "yellow")
            return Next.READ
        return what

    def _done(self, line: str) -> str:
        if line.startswith("/"):
            return run_command(line.strip(), self._talk, self._screen, self._lines)
        self._talk.begin()
        self._talk.agent.receive(line.removeprefix(" ") if line.startswith(" /") else line)
        return Next.ANSWER

    def _answer(self) -> None:
        self._ended = answer(self._talk, self._screen, self._lines, agree=self._agree)
        if self._lines.asks:
            self._screen.note("")

    # --- the beginning and the end ----------------------------------------------------------------------------------------------

    def _greet(self) -> None:
        talk = self._talk
        session = talk.session
        if isinstance(self._screen, JsonScreen):
            self._screen.row(
                "session",
                session=None if session is None else session.session_id,
                name=talk.name if session is None else session.name,
                branch=talk.branch,
                model=talk.spec or talk.agent.model,
                unfinished=talk.unfinished(),
            )
        elif session is None and self._lines.asks:
            self._screen.note(
                f"palaver chat with {talk.spec or talk.agent.model}. /help lists the commands; Ctrl-D ends."
            )
        elif session is not None:
            self._screen.note(
                f"{session.name} ({session.session_id[:12]}), branch {talk.branch}, {counted(len(talk.dialog.messages), 'message')}, "
                f"with {talk.spec or talk.agent.model}."
            )
            self._recall()
        told = _GOES_ON.get(talk.unfinished())
        if told is None and talk.unfinished() == "failed":
            told = "Its last turn failed; /continue tries again."
        if told is not None:
            self._screen.note(told, "yellow")

    def _recall(self) -> None:
        """Show the user's last message, and the answer to it."""
        said: list[Message] = []
        for message in reversed(self._talk.dialog.messages[-20:]):
            if message.role in {Role.USER, Role.ASSISTANT} and message.text_content().strip():
                said.insert(0, message)
            if message.role is Role.USER:
                break
        for message in said:
            if message.role is Role.USER:
                self._screen.note(f"> {one_line(message.text_content())}")
            else:
                lines = message.text_content().splitlines()
                more = [f"… {counted(len(lines) - _RECALLED, 'more line')}"] if len(lines) > _RECALLED else []
                self._screen.note("\n".join([*lines[:_RECALLED], *more]))

    def _leave(self) -> None:
        session = self._talk.session
        if session is not None and self._lines.asks:
            self._screen.note(
                f"Kept as {session.name!r}: `palaver chat --session {session.session_id[:12]}` takes it up again."
            )


def lines_for(screen: Screen, *, remember: bool) -> Lines:
    """Give where messages come from: the keyboard, where somebody sits at it and looks at the screen; else whatever is piped in."""
    if sys.stdin.isatty() and screen.terminal:
        return Keys(data_folder() / "chat_history" if remember else None, COMMANDS)
    return Pipe()


@contextmanager
def signals_end_it() -> Iterator[None]:
    """End the chat in order when the terminal goes away or the system asks for it: a turn that goes on is left interrupted, to be taken up.

    A second signal ends the process as it would without this.
    """
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]

    def end(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise SystemExit(int(Exit.INTERRUPTED))

    before = [(number, signal.signal(number, end)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
