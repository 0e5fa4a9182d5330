"""Lineage: which recorded dialog a request continues, and where it leaves it.

Conversations are compared by what is said in them: texts, calls and results, in order. Programs send an answer back in another form than it came in:
in other pieces, without thinking, with cache marks. None of that makes it another conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from operator import itemgetter
from typing import NamedTuple

from palaver.log import Handle
from palaver.messages import (
    Content,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    canonical_json,
    media_of,
    thaw,
)
from palaver.providers import Item
from palaver.proxy.requests import ReadRequest
from palaver.session import Dialog
from palaver.wire.binding import without

_MODEL, _TEXT = "model", "text"
_MARK = "cache_control"
_FORM = frozenset({_MARK, "id", "status"})
"""Fields of a block that say nothing, and differ between an answer and its repetition."""


class Spoken:
    """What is said in a conversation, a digest for each piece.

    Attributes:
        pieces: The digests.
        ends: The number of pieces after each message; -1 where the next message continues its text.
        answered: The number of pieces up to the first one of the model; None where it said nothing.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.pieces: list[bytes] = []
        self.ends: list[int] = []
        self.answered: int | None = None
        self._texts: list[str] = []  # after each message, the model's text that a next one would continue

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages."""
        for message in messages:
            text = self._texts[-1] if self._texts and message.is_assistant_side else ""
            for side, kind, words in _pieces(message):
                if side == _MODEL and kind == _TEXT and text:
                    text += words
                    self.pieces.pop()
                    self.ends = [-1 if end > len(self.pieces) else end for end in self.ends]
                elif kind == _TEXT and not words.strip():
                    continue
                else:
                    text = words if side == _MODEL and kind == _TEXT else ""
                self.pieces.append(
                    sha256(f"{side} {kind} {(text or words).strip()}".encode(errors="replace")).digest()[:16]
                )
                if side == _MODEL and self.answered is None:
                    self.answered = len(self.pieces)
            self.ends.append(len(self.pieces))
            self._texts.append(text)

    def upto(self, count: int) -> Spoken:
        """Return what so many messages say, or one fewer for each whose text the next one continues. More can be added to it."""
        while count and self.ends[count - 1] < 0:
            count -= 1
        made = Spoken()
        made.ends, made._texts = self.ends[:count], self._texts[:count]
        made.pieces = self.pieces[: made.ends[-1] if made.ends else 0]
        if self.answered is not None and self.answered <= len(made.pieces):
            made.answered = self.answered
        return made

    def shared(self, other: Spoken) -> int:
        """Return the number of pieces with which both begin."""
        pairs = zip(self.pieces, other.pieces, strict=False)
        return next(
            (index for index, (mine, theirs) in enumerate(pairs) if mine != theirs),
            min(len(self.pieces), len(other.pieces)),
        )


def _pieces(message: Message) -> Iterator[tuple[str, str, str]]:
    """Yield the side, the kind and the words of each block that says something."""
    side = _MODEL if message.is_assistant_side else message.role.value
    for block in message.contents:
        if isinstance(block, TextContent):
            yield side, _TEXT, block.content
        elif isinstance(block, ToolCallContent):
            args = block.arguments if block.error else canonical_json(thaw(block.args)).decode()
            yield side, "call", f"{block.name} {args}"
        elif isinstance(block, ToolResultContent):
            yield side, "result", block.text()
        elif not isinstance(block, ThinkingContent):
            yield from _other(side, block)
    if media := " ".join(str(medium.digest or medium.url) for medium in media_of(message)):
        yield side, "media", media


def _other(side: str, block: Content) -> Iterator[tuple[str, str, str]]:
    fields = {name: value for name, value in (block.model_extra or {}).items() if name not in _FORM}
    yield side, block.type, canonical_json(thaw(fields)).decode()


@dataclass(slots=True)
class KnownDialog:
    """A recorded dialog.

    Attributes:
        dialog: The dialog.
        said: What is said in it.
        items: The conversation of its newest request, whose messages are the first in `said`; empty where that is not known.
        ends: The entry after which so many pieces are said.
        instructions: The digest of its newest instructions and tools.
        response: The provider's id of its newest answer, or of the conversation that the provider keeps; or empty.
        asked: Whether a request is not answered yet.
        calls: Whether the newest answer calls tools.
    """

    dialog: Dialog
    said: Spoken
    items: Sequence[Item] = ()
    ends: dict[int, Handle] = field(default_factory=dict)
    instructions: bytes = b""
    response: str = ""
    asked: bool = False
    calls: bool = False

    def repeated(self, items: Sequence[Item]) -> int:
        """Return how many items of its newest request a list begins with; marks for caches make no difference."""
        pairs = zip(self.items, items, strict=False)
        return next(
            (at for at, (mine, new) in enumerate(pairs) if mine != new and without(mine, _MARK) != without(new, _MARK)),
            min(len(self.items), len(items)),
        )


def heard(lines: Sequence[KnownDialog], asked: ReadRequest) -> Spoken:
    """Return what the conversation of a request says. Only what no known dialog asked before is read.

    Raises:
        InvalidMessage: An item is not a message of its API.
    """
    count, line = max(((line.repeated(asked.items), line) for line in lines), key=itemgetter(0), default=(0, None))
    said = line.said.upto(count) if line else Spoken()
    said.add(asked.messages(len(said.ends)))
    return said


class Continuation(NamedTuple):
    """Where a request belongs.

    Attributes:
        line: The dialog; None for a new one.
        shared: The number of pieces that it shares with the dialog, which end with an entry of it.
        fork: Whether the dialog goes on differently after them.
    """

    line: KnownDialog | None = None
    shared: int = 0
    fork: bool = False


def place(lines: Sequence[KnownDialog], said: Spoken, instructions: bytes) -> Continuation:
    """Return where a request belongs among the dialogs of a session.

    A request continues the dialog with which it shares most. What both have in common must include an answer of the model, or the instructions and
    tools must be the same: two agents that are told the same differ in those.
    """
    best, most = Continuation(), (0, False)
    places = {0, *said.ends}
    for line in reversed(lines):  # of several, the newest
        shared = line.said.shared(said)
        same = line.instructions == instructions
        if (shared, same) <= most or not (same or (said.answered is not None and said.answered <= shared)):
            continue
        whole = shared == len(line.said.pieces) and not line.asked
        point = (
            shared
            if whole and shared in places
            else max((end for end in line.ends if end <= shared and end in places), default=0)
        )
        if point:
            best, most = Continuation(line, point, fork=not (whole and point == shared)), (shared, same)
    return best
