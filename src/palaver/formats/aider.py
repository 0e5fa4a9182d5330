"""aider's chat history: a Markdown file of all chats of a folder. Only its marks say who spoke.

`# aider chat started at` begins a chat, `#### ` a line of the person, `> ` a line of aider's output; all else is the model's. The output is what the screen
showed, not what the model saw. Based on aider's own parser (`aider/utils.py`) and on a history of versions 0.47 to 0.50.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Origin, guarded, no_instructions
from palaver.formats.events import Conversation, Event, Loss
from palaver.formats.lists import digest_of
from palaver.formats.sources import Member, SourceFile
from palaver.log import Custom
from palaver.messages import AssistantMessage, Message, TextContent, Usage, UserMessage, clean_text

NAME = "aider"
_START, _PERSON, _OUTPUT = "# aider chat started at ", "#### ", "> "
_MODEL = re.compile(r"(?:Main model|Models?): (\S+) ")
_TOKENS = re.compile(
    r"Tokens: (?P<sent>[\d.,]+k?) sent,.* (?P<received>[\d.,]+k?) received\.(?: Cost: \$(?P<cost>[\d.]+))?"
)


class AiderHistory:
    """aider's chat histories: one conversation a chat."""

    name = NAME
    title = "aider"
    signs = "Markdown with lines that begin with `# aider chat started at`"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is a history of aider, from 0.0 to 1.0."""
        text = source.opening.text
        return 1.0 if text.startswith(_START) or f"\n{_START}" in text else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every chat in which something was said or shown as a conversation."""
        member, ordinal, early = source.member, 0, ""
        chat = _Chat(member, ordinal, "")
        for number, line, ended in member.text_lines():
            if not ended:
                early = f"line {number}"
            elif line.startswith(_START):
                yield from chat.closed()
                ordinal += chat.begun
                chat = _Chat(member, ordinal, line.removeprefix(_START).strip())
            else:
                yield from guarded(member.place(f"line {number}"), chat.read(number, line))
        yield from chat.closed(last=True)
        if early:
            reason = "The line is cut off, and not read."
            yield Loss(place=member.place(early), reason=reason, code="torn_tail", severity="loss")


class _Chat:
    """One chat. Its lines are grouped by who spoke; a blank line separates nothing.

    Attributes:
        begun: Whether something was said or shown.
    """

    def __init__(self, member: Member, ordinal: int, started: str) -> None:
        self.begun = False
        self._member = member
        self._ordinal = ordinal
        self._at = fields.moment(started)
        self._writer = DialogWriter("main", NAME)
        self._mark = ""
        self._lines: list[str] = []
        self._first = 0
        self._records = 0
        self._answer: tuple[str, int] | None = None

    def read(self, number: int, line: str) -> Iterator[Event]:
        """Read a line."""
        mark = next((mark for mark in (_OUTPUT, _PERSON) if line.startswith(mark)), "")
        if not line.removeprefix(mark).strip() and not (self._lines and mark == self._mark):
            return
        if not self.begun:
            self.begun = True
            yield Conversation(key="", ordinal=self._ordinal, started_at=self._at)
            yield self._writer.branch(NAME)
            yield no_instructions(self._member.place(f"line {number}"))
        if mark == _OUTPUT:
            text = clean_text(line.removeprefix(mark).strip(), "", [])
            fresh = self._mark != _OUTPUT or not self._records
            yield from self._group()
            yield from self._said(_usage(text))
            self._mark = mark
            if model := _MODEL.match(f"{text} "):
                yield from self._writer.use_model(model[1], "", self._at, self._origin(number, text))
            entry = Custom(custom_type=f"{NAME}/output", data=text, at=self._at)
            if text:
                yield self._writer.put(entry, self._origin(number, text), counted=int(fresh))
            return
        if mark != self._mark or not self._lines:
            yield from self._group()
            yield from self._said(Usage())
            self._mark, self._first = mark, number
        self._lines.append(line.removeprefix(mark).rstrip(" \n") if mark else line)

    def closed(self, *, last: bool = False) -> Iterator[Event]:
        """Put what is open. At the end of the file, something said is read when something follows it, since it may go on."""
        if last and self._lines:
            reason = "Nothing follows it yet; importing again adds it when something does."
            yield Loss(
                place=self._member.place(f"line {self._first}"), reason=reason, code="unfinished", severity="loss"
            )
            self._lines = []
        yield from self._group()
        yield from self._said(Usage())

    def _group(self) -> Iterator[Event]:
        """Put what the person said; keep what the model said until its usage is known."""
        text, self._lines = "\n".join(self._lines) if self._mark else "".join(self._lines), []
        text = clean_text(text.strip("\n"), "", [])
        if not text.strip():
            return
        if self._mark == _PERSON:
            yield from self._put(
                UserMessage(contents=(TextContent(content=text),), timestamp=self._at), text, self._first
            )
        else:
            self._answer = (text, self._first)

    def _said(self, usage: Usage) -> Iterator[Event]:
        """Put the model's answer."""
        if self._answer is not None:
            (text, first), self._answer = self._answer, None
            about: dict[str, Any] = {"model": self._writer.model or None, "usage": usage, "timestamp": self._at}
            yield from self._put(AssistantMessage(contents=(TextContent(content=text),), **about), text, first)

    def _put(self, message: Message, text: str, number: int) -> Iterator[Event]:
        key = f"{NAME}:{self._ordinal}:{self._records}"
        message = message.model_copy(update={"id": key})
        yield from self._writer.say(message, self._origin(number, text), counted=1)

    def _origin(self, number: int, text: str) -> Origin:
        self._records += 1
        return Origin(str(self._records), self._records, digest_of(text), self._member.place(f"line {number}"))


def _usage(text: str) -> Usage:
    """Return the usage that a line of output tells."""
    told = _TOKENS.match(text)
    if told is None:
        return Usage()
    cost = {"cost": float(told["cost"].rstrip("."))} if told["cost"] else {}
    return Usage({"input_tokens": _count(told["sent"]), "output_tokens": _count(told["received"]), **cost})


def _count(figure: str) -> int:
    thousands = figure.endswith("k")
    return round(float(figure.rstrip("k").replace(",", "")) * (1000 if thousands else 1))
