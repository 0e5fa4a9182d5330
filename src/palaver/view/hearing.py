"""Who speaks: whether a user's message holds his words, or what a tool gave back in a text protocol, is told by what was said before it."""

from __future__ import annotations

from dataclasses import dataclass

from palaver.log import Handle, MessageEntry, Reader, entry_at
from palaver.messages import Message, Role, Speaker
from palaver.view.protocol import answers, is_marked, may_answer, observes
from palaver.view.spelling import NEWEST, SECOND, Spelling

__all__ = ["ASSISTANT", "Hearing", "speaker_at"]

ASSISTANT = frozenset({Role.ASSISTANT, Role.TOOL_CALL})
"""Roles in which a model speaks."""

_BACK = 64
"""Entries before a message among which the one is looked for that it answers; between them stand what calls cost and what was changed."""


@dataclass(slots=True)
class Hearing:
    """Who spoke last, while entries are read in order.

    Attributes:
        reader: Where the log is read from, where what was said before left the view.
        spelling: How protocols are spelt.
        read_last: The entry that was read last.
        said_last: What was said last.
        cut: Whether what was said before was left out of a list, and a text of ours stands for it.
    """

    reader: Reader
    spelling: Spelling = NEWEST
    read_last: Handle | None = None
    said_last: Message | None = None
    cut: bool = False

    @classmethod
    def by(cls, rules: int, reader: Reader) -> Hearing:
        """Begin to hear by a version of the fold's rules."""
        return cls(reader, NEWEST if rules > 2 else SECOND)  # noqa: PLR2004 - the version whose spelling that is

    def reads(self, place: Handle) -> None:
        """Take notice of the next entry: what stands between it and the one before was not heard."""
        if not _adjacent(self.read_last, place):
            self.said_last = None
        self.read_last = place

    def hear(self, message: Message) -> None:
        """Remember who spoke last, and what he said."""
        if _speaks(message):
            self.said_last, self.cut = message, False
        elif message.role is Role.USER and is_marked(message.text_content()):
            self.said_last, self.cut = None, True

    def observed(self, place: Handle, message: Message, told: str) -> bool:
        """Tell whether a message is what a tool gave back, in a conversation whose model calls its tools in words.

        Args:
            place: Where it stands.
            message: The message.
            told: What the instructions say; by early rules nothing depends on it.
        """
        if message.role is not Role.USER or message.speaker is not Speaker.HUMAN:
            return False
        text = message.text_content()
        if not may_answer(text, told, self.spelling):
            return False
        if self.cut:  # what it answered was left out of a list before: what stands for that does not say
            return observes(text, self.spelling)
        before = self._said_before(place, told) if self.said_last is None else self.said_last
        if before is None or before.role not in ASSISTANT:
            return False
        return answers(before.text_content(), text, told, self.spelling)

    def _said_before(self, place: Handle, told: str) -> Message | None:
        """Give the message before an entry that may have left the view, observations passed over; None where there is none to be read."""
        for seq in range(place.seq - 1, max(place.seq - _BACK, 0) - 1, -1):
            entry = entry_at(self.reader, Handle(place.dialog, seq))
            if isinstance(entry, MessageEntry) and _speaks(entry.message):
                message = entry.message
                if message.role in ASSISTANT or not may_answer(message.text_content(), told, self.spelling):
                    return message
        return None


def speaker_at(reader: Reader, place: Handle, message: Message, told: str = "") -> Speaker:
    """Give who said a message that stands in a log, by the newest rules.

    Args:
        reader: Where the log is read from.
        place: Where it stands.
        message: The message.
        told: What the instructions say.
    """
    return Speaker.TOOL if Hearing(reader).observed(place, message, told) else message.speaker


def _adjacent(last: Handle | None, place: Handle) -> bool:
    """Tell whether nothing stands between two entries; a dialog begins where it was forked off."""
    if last is None or last.dialog != place.dialog:
        return place.seq == 0
    return place.seq == last.seq + 1


def _speaks(message: Message) -> bool:
    """Tell whether the model or the user says something, so that what comes next answers it."""
    if message.role in ASSISTANT:
        return True
    human = message.role is Role.USER and message.speaker is Speaker.HUMAN
    return human and not is_marked(message.text_content())
