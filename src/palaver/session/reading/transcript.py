"""The messages of a dialog, read where they lie: nothing is held in memory but the places."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from palaver.errors import StoreDamaged
from palaver.ids import BlobId, DialogId
from palaver.log import NOTHING, Handle, Header, MessageEntry, Reader, Span, decoded, every_body
from palaver.messages import Message, hydrate
from palaver.plurals import counted
from palaver.store.protocol import Store

__all__ = ["Messages", "Stretch", "begins", "merged", "place", "stretches"]


class Stretch(NamedTuple):
    """A span of a dialog's lineage with what is needed to count in it.

    Attributes:
        span: The entries.
        before: How many messages the span's dialog holds before the span.
        first: How many messages the whole lineage holds before the span.
        messages: How many messages begin in the span.
    """

    span: Span
    before: int
    first: int
    messages: int


def stretches(reader: Reader, spans: Iterable[Span]) -> tuple[tuple[Stretch, ...], int]:
    """Give the spans with their counts, and how many messages they hold; reads two headers a span."""
    found: list[Stretch] = []
    count = 0
    for span in spans:
        before = _header(reader, span.dialog, span.start - 1).number
        begun = reader.header(span.dialog, span.stop - 1).number - before
        found.append(Stretch(span, before, count, begun))
        count += begun
    return tuple(found), count


def _header(reader: Reader, dialog: DialogId, seq: int) -> Header:
    return NOTHING if seq < 0 else reader.header(dialog, seq)


def begins(header: Header, number: int) -> bool:
    """Tell whether the entry begins a message, `number` being the count before it."""
    return header.kind == "message" and header.number > number


def place(reader: Reader, held: Sequence[Stretch], index: int) -> tuple[int, int]:
    """Find where the message with this index begins.

    An entry begins one message at most, which bounds the place from both ends: where every entry is a message, nothing is read;
    otherwise headers, O(log of the entries that are none).

    Returns:
        The stretch's index in `held`, and the entry's number in its dialog.
    """
    at = bisect_right(held, index, key=lambda stretch: stretch.first) - 1
    span, before, first, count = held[at]
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


def merged(parts: Sequence[Message]) -> Message:
    """Join the fragments of one response: their blocks in order; of usage and ending the last that says something."""
    first = parts[0]
    if len(parts) == 1:
        return first
    told: dict[str, object] = {"contents": tuple(block for part in parts for block in part.contents)}
    for name in ("usage", "stop_reason", "error", "parsed"):
        told[name] = next((value for part in reversed(parts) if (value := getattr(part, name))), getattr(first, name))
    told["logprobs"] = tuple(item for part in parts for item in part.logprobs)
    told["metadata"] = {key: value for part in reversed(parts) for key, value in part.metadata.items()}
    return first.model_copy(update=told)


class _Fragment(NamedTuple):
    """A message entry on its way to being a message."""

    message: Message
    begins: bool


def _fragments(reader: Reader, held: Iterable[Stretch]) -> Iterator[_Fragment]:
    """Give the message entries in order."""
    for span, number, _, _ in held:
        headers = reader.headers(span.dialog, span.start, span.stop)
        header = next(headers, None)
        for seq, body in every_body(reader, span):
            handle = Handle(span.dialog, seq)
            if (
                header is None or header.seq != seq
            ):  # lost with its header: a message, if the next one counts on from it
                if header is None or header.number > number + (header.kind == "message"):
                    number += 1  # noqa: PLW2901 - it counts on from what the stretch begins with
                    yield _Fragment(message_in(reader, handle, body), begins=True)
                continue
            if header.kind == "message":
                yield _Fragment(message_in(reader, handle, body), begins(header, number))
            number, header = header.number, next(headers, None)  # noqa: PLW2901


def message_in(reader: Reader, handle: Handle, body: bytes) -> Message:
    """Read the message of a message entry, or what stands for it where its bytes are no entry any more.

    Raises:
        StoreDamaged: It is another entry.
    """
    entry = decoded(reader, handle, body)
    if not isinstance(entry, MessageEntry):
        raise StoreDamaged(str(handle), f"its header says message, its body {entry.kind}")
    return entry.message


def _joined(fragments: Iterable[_Fragment]) -> Iterator[Message]:
    """Join fragments that belong together, in the order in which the messages begin.

    Fragments of a response may have other messages between them (a harness records results as they come), until another response
    begins. A fragment whose beginning is not held is no message of this dialog.
    """
    growing: list[list[Message]] = []
    for message, begins_one in fragments:
        if begins_one:
            if message.response_id or not (growing and growing[0][0].response_id):
                yield from map(merged, growing)
                growing = []
            growing.append([message])
        elif growing and growing[0][0].response_id == message.response_id:
            growing[0].append(message)
    yield from map(merged, growing)


class Messages(Sequence[Message]):
    """The messages of a dialog as they were when this was asked for: a read-only sequence that reads as it goes.

    What the log holds never changes, so this never changes either: a later append does not show. Equal to any list or tuple of
    equal messages.
    """

    def __init__(self, store: Store, held: Sequence[Stretch], count: int) -> None:
        self._store = store
        self._held = held
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        """Give one message, or several as a tuple."""
        if isinstance(index, slice):
            chosen = range(self._count)[index]
            if len(chosen) > 1 and chosen.step == 1:
                return tuple(self._run(chosen))
            return tuple(self._message(at) for at in chosen)
        return self._message(range(self._count)[index])

    def __iter__(self) -> Iterator[Message]:
        return map(self._with_media, _joined(_fragments(self._store, self._held)))

    def bare(self) -> Iterator[Message]:
        """Give the messages without loading the bytes of their media."""
        return _joined(_fragments(self._store, self._held))

    def handle(self, index: int) -> Handle:
        """Give the handle of the entry that begins a message."""
        at, seq = place(self._store, self._held, range(self._count)[index])
        return Handle(self._held[at].span.dialog, seq)

    def __eq__(self, other: object) -> bool:
        """Compare with another sequence of messages, one by one."""
        if isinstance(other, Messages | list | tuple):
            return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment] # equal to lists, which have no hash

    def __repr__(self) -> str:
        return f"<{counted(self._count, 'message')}>"

    def _with_media(self, message: Message) -> Message:
        return hydrate(message, lambda digest: self._store.blob(BlobId(digest)))

    def _after(self, index: int) -> tuple[Stretch, ...]:
        """Give the stretches from the entry on that begins a message."""
        at, seq = place(self._store, self._held, index)
        span, before, first, count = self._held[at]
        passed = index - first
        rest = Stretch(Span(span.dialog, seq, span.stop), before + passed, index, count - passed)
        return (rest, *self._held[at + 1 :])

    def _message(self, index: int) -> Message:
        fragments = _fragments(self._store, self._after(index))
        return self._with_media(next(_joined(fragments)))

    def _run(self, chosen: range) -> Iterator[Message]:
        """Give neighbouring messages in one reading."""
        joined = _joined(_fragments(self._store, self._after(chosen.start)))
        return (self._with_media(message) for _, message in zip(chosen, joined, strict=False))
