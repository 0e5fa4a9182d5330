"""Who speaks: whether a user's message holds his words, or what a tool gave back in a text protocol, is told by what was said before it.

It depends on nothing but what the log holds before the message, in its own dialog and in what that dialog was forked from: never on what is left of that in
a view. So no compaction, fork or look back changes whose words they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice

from palaver.errors import InvalidInput, StoreDamaged, UnknownHandle
from palaver.ids import DialogId
from palaver.log import (
    LOST,
    Compaction,
    Entry,
    Handle,
    Header,
    Instructions,
    MessageEntry,
    Reader,
    Run,
    Span,
    decode_entry,
)
from palaver.messages import Message, Role, Speaker
from palaver.view.announced import begins_step
from palaver.view.protocol import answers, is_marked, looks_like_output, may_answer
from palaver.view.spelling import NEWEST, SECOND, Spelling

__all__ = ["ASSISTANT", "Hearing", "speaker_at"]

ASSISTANT = frozenset({Role.ASSISTANT, Role.TOOL_CALL})
"""Roles in which a model speaks."""

_HEARD = frozenset({*ASSISTANT, Role.USER})
_BACK = 64
"""Entries before a message among which the one is looked for that it answers; between them stand what calls cost and what was changed."""

_AT_ONCE = 64
"""Headers that are asked for at a time, where it is not known how far back is looked."""

_RECENT = 4
"""Messages that are kept as they are read: the one before is as a rule the one that is answered."""


class _Before(Enum):
    """What stands before a message where no model's words do."""

    USER = "the user's words, or nothing"
    CUT = "a text of ours for what was left out of a list"
    GONE = "what was erased, or cannot be read"


@dataclass(slots=True)
class Hearing:
    """Who speaks in the messages of a log; what was read for one is not read again for the next.

    Attributes:
        reader: Where the log is read from.
        spelling: How protocols are spelt.
    """

    reader: Reader
    spelling: Spelling = NEWEST
    _recent: dict[Handle, MessageEntry] = field(default_factory=dict)
    _in_force: dict[DialogId, tuple[int, Handle | None]] = field(default_factory=dict)
    _leading: dict[DialogId, str | None] = field(default_factory=dict)
    _told: dict[tuple[DialogId, Handle | None], str | None] = field(default_factory=dict)

    @classmethod
    def by(cls, rules: int, reader: Reader) -> Hearing:
        """Begin to hear by a version of the fold's rules."""
        return cls(reader, NEWEST if rules > 2 else SECOND)  # noqa: PLR2004 - the version whose spelling that is

    def reads(self, place: Handle, entry: MessageEntry) -> None:
        """Keep a message that was read anyway, but for what stands for one that is not there any more: that has its place for its id."""
        if entry.erased is not None or entry.message.id == str(place):
            return
        if len(self._recent) >= _RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[place] = entry

    def speaker(self, place: Handle, message: Message) -> Speaker:
        """Give who said a message."""
        return Speaker.TOOL if self.observed(place, message) else message.speaker

    def observed(self, place: Handle, message: Message) -> bool:
        """Tell whether a message is what a tool gave back, in a conversation whose model calls its tools in words.

        Args:
            place: Where it stands.
            message: The message.
        """
        if message.role is not Role.USER or message.speaker is not Speaker.HUMAN:
            return False
        text = message.text_content()
        told = self._told_at(place, text)
        if not may_answer(text, told, self.spelling):
            return False
        before = self._before(place)
        match before:
            case _Before.USER:
                return False
            case _Before.CUT:  # what it answered was left out of a list before: what stands for that does not say
                return looks_like_output(text, told, self.spelling)
            case _Before.GONE:  # what is not there any more makes nobody's words the user's that may be a tool's
                return True
        return answers(before.text_content(), text, told, self.spelling)

    def _before(self, place: Handle) -> Message | _Before:
        """Give what the model said before a message, outputs passed over, or what stands in the place of that."""
        for at, header in islice(_backwards(self.reader, place), _BACK):
            if header is None:
                return _Before.GONE
            if header.kind != "message" or header.role not in _HEARD:
                continue
            entry = self._recent.get(at) or _read(self.reader, at)
            model = header.role in ASSISTANT
            if not isinstance(entry, MessageEntry) or entry.message.metadata.get(LOST):
                if model:
                    return _Before.GONE
            elif model:
                return entry.message
            else:
                heard = self._heard(at, entry.message)
                if heard is not None:
                    return heard
        return _Before.USER

    def _heard(self, place: Handle, message: Message) -> _Before | None:
        """Tell what a message in the user's turn is to one behind it; None for what is passed over: outputs, and what no person says."""
        text = message.text_content()
        if is_marked(text):
            return _Before.CUT
        if message.speaker is not Speaker.HUMAN or may_answer(text, self._told_at(place, text), self.spelling):
            return None
        return _Before.USER

    def _told_at(self, place: Handle, text: str) -> str | None:
        """Give what the instructions said when a text was said, where anything may depend on it; None where that was erased or cannot be read."""
        if not self.spelling.structure or not begins_step(text):
            return ""
        found = self._instructions_at(place)
        key = (place.dialog, found)
        if key not in self._told:
            leads = self._leads(place)
            said = "" if found is None else _sections(_read(self.reader, found))
            gone = said is None or (
                leads is None and found is None
            )  # newer ones that can be read stand for what is gone
            self._told[key] = None if gone else f"{said}\n{leads or ''}".strip()
        return self._told[key]

    def _instructions_at(self, place: Handle) -> Handle | None:
        """Give the instructions in force where a message stands: the newest before it, or what was lost behind them."""
        known, found = self._in_force.get(place.dialog, (-1, None))
        if not 0 <= known <= place.seq:
            found = self._newest(place)
        else:
            since = _down(self.reader, Span(place.dialog, known, place.seq))
            found = next((at for at, header in since if _instructs(header)), found)
        self._in_force[place.dialog] = (place.seq, found)
        return found

    def _newest(self, place: Handle) -> Handle | None:
        """Look for the newest instructions before a place: a compaction holds those that were in force, so nothing before one is looked through."""
        checkpoint: tuple[DialogId, Compaction] | None = None
        for at, header in _backwards(self.reader, place):
            if checkpoint is not None and (at.dialog != checkpoint[0] or at.seq <= checkpoint[1].base):
                break
            if header is None or header.kind == "instructions":
                return at
            if header.kind == "compaction" and checkpoint is None:
                entry = _read(self.reader, at)
                checkpoint = (at.dialog, entry) if isinstance(entry, Compaction) else None
        return None if checkpoint is None else self._held(checkpoint[1])

    def _held(self, checkpoint: Compaction) -> Handle | None:
        runs = [piece for piece in checkpoint.pieces if isinstance(piece, Run)]
        for run in reversed(runs):
            for at, header in _down(self.reader, Span(run.dialog, run.start, run.stop)):
                if _instructs(header):
                    return at
        return None

    def _leads(self, place: Handle) -> str | None:
        """Give the system messages that stand before a conversation; None where one was erased or cannot be read."""
        if place.dialog not in self._leading:
            found = [_read(self.reader, at) for at in _leading(self.reader, place)]
            said = [entry.message.text_content() for entry in found if isinstance(entry, MessageEntry)]
            self._leading[place.dialog] = "\n".join(said) if len(said) == len(found) else None
        return self._leading[place.dialog]


def speaker_at(reader: Reader, place: Handle, message: Message) -> Speaker:
    """Give who said a message that stands in a log, by the newest rules.

    Args:
        reader: Where the log is read from.
        place: Where it stands.
        message: The message.
    """
    return Hearing(reader).speaker(place, message)


def _backwards(reader: Reader, place: Handle) -> Iterator[tuple[Handle, Header | None]]:
    """Give what stands before a place, the newest first: in its dialog, and before the beginning of that in what it was forked from."""
    yield from _down(reader, Span(place.dialog, 0, place.seq))
    for span in reversed(reader.node(place.dialog).ranges):
        yield from _down(reader, span)


def _down(reader: Reader, span: Span) -> Iterator[tuple[Handle, Header | None]]:
    """Give places and headers of a span, the newest first; None for the header of one that is lost."""
    stop = span.stop
    while stop > span.start:
        start = max(span.start, stop - _AT_ONCE)
        found = {header.seq: header for header in reader.headers(span.dialog, start, stop, reverse=True)}
        for seq in range(stop - 1, start - 1, -1):
            yield Handle(span.dialog, seq), found.get(seq)
        stop = start


def _leading(reader: Reader, place: Handle) -> Iterator[Handle]:
    """Give the places of the system messages before a conversation."""
    for span in (*reader.node(place.dialog).ranges, Span(place.dialog, 0, place.seq)):
        for header in reader.headers(span.dialog, span.start, span.stop):
            if header.role == Role.SYSTEM:
                yield Handle(span.dialog, header.seq)
            elif header.role and header.role != Role.CUSTOM:
                return


def _instructs(header: Header | None) -> bool:
    """Tell whether an entry is instructions; what is lost may have been, and cannot be read."""
    return header is None or header.kind == "instructions"


def _read(reader: Reader, place: Handle) -> Entry | None:
    """Read an entry; None where it was erased or cannot be read."""
    try:
        entry = decode_entry(reader.body(place.dialog, place.seq))
    except (InvalidInput, StoreDamaged, UnknownHandle):
        return None
    return None if entry.erased is not None and not entry.erased.part else entry


def _sections(entry: Entry | None) -> str | None:
    """Give what instructions say before the conversation; what stands behind them changes as the model writes it, and announces nothing."""
    if not isinstance(entry, Instructions):
        return None
    return "\n".join(section.text for section in entry.sections if not section.behind)
