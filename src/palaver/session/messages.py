"""The messages of a dialog: a read-only sequence that reads the store on demand and keeps only places in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from palaver.errors import StoreDamaged
from palaver.ids import BlobId
from palaver.log import (
    Handle,
    MessageEntry,
    Reader,
    Span,
    Stretch,
    decoded,
    every_body,
    stretches,
)
from palaver.messages import (
    Content,
    ImageContent,
    Message,
    TextContent,
    ToolCallContent,
    ToolResultContent,
    hydrate,
)
from palaver.plurals import counted
from palaver.store.protocol import Store


def place_of_message(reader: Reader, parts: Sequence[Stretch], index: int) -> tuple[int, int]:
    """Return where message `index` begins: the index of its stretch in `parts`, and the entry's number in its dialog.

    An entry begins at most one message, which bounds the place from both sides. If every entry is a message this reads nothing; otherwise it
    bisects headers.
    """
    at = bisect_right(parts, index, key=lambda stretch: stretch.first) - 1
    span, before, first, count = parts[at]
    wanted = before + index - first + 1
    low = span.start + index - first
    high = span.stop - (count - (index - first))
    while low < high:
        middle = (low + high) // 2
        if reader.header(span.dialog, middle).number >= wanted:
            high = middle
        else:
            low = middle + 1
    return at, low


class _Fragment(NamedTuple):
    handle: Handle
    message: Message
    begins: bool


def _fragments(reader: Reader, parts: Iterable[Stretch]) -> Iterator[_Fragment]:
    """Yield the message entries in order."""
    for span, number, _, _ in parts:
        headers = reader.headers(span.dialog, span.start, span.stop)
        ahead = next(headers, None)
        for seq, body in every_body(reader, span):
            header, ahead = (ahead, next(headers, None)) if ahead and ahead.seq == seq else (None, ahead)
            if header is None:  # lost with its header: a message, if the next entry counts it
                said = ahead is None or ahead.number > number + (ahead.kind == "message")
            else:
                said = header.kind == "message"
            if said:
                handle = Handle(span.dialog, seq)
                message = _message(reader, handle, body)
                yield _Fragment(handle, message, begins=header is None or header.begins)
            number = header.number if header else number + said  # noqa: PLW2901 - the count continues


def _message(reader: Reader, handle: Handle, body: bytes) -> Message:
    entry = decoded(reader, handle, body)
    if not isinstance(entry, MessageEntry):
        raise StoreDamaged(str(handle), f"its header says message, its body {entry.kind}")
    return entry.message


def _merged(fragments: Sequence[_Fragment]) -> tuple[Handle, Message]:
    """Join the fragments of one response: blocks in order, usage and ending from the last fragment that has them."""
    handle, first, _ = fragments[0]
    if len(fragments) == 1:
        return handle, first
    parts = [fragment.message for fragment in fragments]
    fields: dict[str, object] = {"contents": tuple(block for part in parts for block in part.contents)}
    for name in ("usage", "stop_reason", "error", "parsed"):
        fields[name] = next((value for part in reversed(parts) if (value := getattr(part, name))), getattr(first, name))
    fields["logprobs"] = tuple(item for part in parts for item in part.logprobs)
    # where fragments differ, the first one's value counts
    fields["metadata"] = {key: value for part in reversed(parts) for key, value in part.metadata.items()}
    return handle, first.model_copy(update=fields)


def _joined(fragments: Iterable[_Fragment]) -> Iterator[tuple[Handle, Message]]:
    """Join the fragments of each response, in the order in which the messages begin, each with the handle of its first entry.

    Results may come between the fragments of a response, because a harness records them when they arrive. A fragment whose beginning is not in
    the dialog is not a message of it.
    """
    growing: list[list[_Fragment]] = []
    for fragment in fragments:
        response = fragment.message.response_id
        if fragment.begins:
            if response or not (growing and growing[0][0].message.response_id):
                yield from map(_merged, growing)
                growing = []
            growing.append([fragment])
        elif growing and growing[0][0].message.response_id == response:
            growing[0].append(fragment)
    yield from map(_merged, growing)


class Messages(Sequence[Message]):
    """The messages of a dialog at one moment: a read-only sequence that reads on demand.

    Entries never change, and later appends are not included. Equal to any list or tuple of equal messages.
    """

    def __init__(self, store: Store, parts: Sequence[Stretch]) -> None:
        self._store = store
        self._stretches = parts
        self._count = parts[-1].first + parts[-1].messages if parts else 0

    @classmethod
    def of(cls, store: Store, spans: Iterable[Span]) -> Messages:
        """Return the messages in spans."""
        return cls(store, stretches(store, spans))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        """Return one message, or several as a tuple."""
        if isinstance(index, slice):
            chosen = range(self._count)[index]
            if len(chosen) > 1 and chosen.step == 1:  # neighbours are read in one pass
                run = zip(chosen, _joined(_fragments(self._store, self._after(chosen.start))), strict=False)
                return tuple(self._with_media(message) for _, (_, message) in run)
            return tuple(self[at] for at in chosen)
        place = range(self._count)[index]
        return self._with_media(next(_joined(_fragments(self._store, self._after(place))))[1])

    def __iter__(self) -> Iterator[Message]:
        return map(self._with_media, self.bare())

    def bare(self) -> Iterator[Message]:
        """Yield the messages without the bytes of their media."""
        return (message for _, message in self.placed())

    def placed(self) -> Iterator[tuple[Handle, Message]]:
        """Yield the messages without the bytes of their media, each with the handle of the entry that begins it."""
        return _joined(_fragments(self._store, self._stretches))

    def handle(self, index: int) -> Handle:
        """Return the handle of the entry that begins a message."""
        at, seq = place_of_message(self._store, self._stretches, range(self._count)[index])
        return Handle(self._stretches[at].span.dialog, seq)

    def __eq__(self, other: object) -> bool:
        """Compare with another sequence of messages, one by one."""
        if isinstance(other, Messages | list | tuple):
            return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment] # equal to lists, which have no hash

    def __repr__(self) -> str:
        return f"<{counted(self._count, 'message')}>"

    def _with_media(self, message: Message) -> Message:
        return hydrate(message, self._payload)

    def _payload(self, digest: str) -> bytes:
        session_id = self._store.node(self._stretches[0].span.dialog).session_id
        return self._store.blob(session_id, BlobId(digest))

    def _after(self, index: int) -> tuple[Stretch, ...]:
        """Return the stretches from the entry that begins message `index` on."""
        at, seq = place_of_message(self._store, self._stretches, index)
        span, before, first, count = self._stretches[at]
        passed = index - first
        rest = Stretch(Span(span.dialog, seq, span.stop), before + passed, index, count - passed)
        return (rest, *self._stretches[at + 1 :])


def message_line(index: int, message: Message, max_length: int) -> str:
    """Return one message with its number on one line, cut after `max_length` characters."""
    return f"[{index}. {message.name} ({message.role.value})]: {_preview(message, max_length)}"


def placed_line(place: Handle, message: Message, max_length: int) -> str:
    """Return one message with its handle on one line, cut after `max_length` characters."""
    return f"{place}  {message.role.value}: {_preview(message, max_length)}"


def _preview(message: Message, max_length: int) -> str:
    text = " ".join(" ".join(map(_gist, message.contents)).split())
    return text if len(text) <= max_length else text[:max_length] + "..."


def _gist(block: Content) -> str:
    match block:
        case TextContent(content=text):
            return text
        case ToolCallContent(name=name):
            return f"[call {name}({block.arguments})]"
        case ToolResultContent():
            return block.text()
        case ImageContent(images=images):
            return "[image]" if len(images) == 1 else f"[{len(images)} images]"
        case _:
            return f"[{block.type}]"
