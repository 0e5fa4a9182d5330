"""Which entries a fork shares: found in headers, never in bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from palaver.errors import InvalidInput
from palaver.log import Reader, Span, clip, rule
from palaver.session.reading.transcript import Stretch, begins, place
from palaver.store.protocol import Store

__all__ = ["check_window", "window"]


def check_window(last_n: object, first_k: object) -> None:
    """Refuse a window that is none.

    Raises:
        TypeError: One of the numbers is no whole number.
        InvalidInput: One of them is negative.
    """
    for name, value in (("last_n", last_n), ("first_k", first_k)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} is a whole number of messages, not a {type(value).__name__}.")
        if value < 0:
            raise InvalidInput(f"{name} is {value}: a fork cannot keep fewer than no messages.")


def window(reader: Store, held: Sequence[Stretch], count: int, last_n: int, first_k: int) -> tuple[Span, ...]:
    """Give the spans that hold the first `first_k` and the last `last_n` of `count` messages.

    What is no message goes with the message before it. A fragment of a response goes with the response's first one, wherever it
    stands. Of what is left out, the entries stay that hold beyond their place: else the model would be told other things than before.
    The cost does not depend on the length of the log.
    """
    spans = [stretch.span for stretch in held]
    if last_n == 0 or first_k + last_n >= count:
        return _joined(spans)
    front, after, strays = _cut(reader, held, first_k) if first_k else ([], spans, [])
    before, back, late = _cut(reader, held, count - last_n)
    order = {span.dialog: index for index, span in enumerate(spans)}
    between = [*strays, *_holding(reader, list(clip(before, after)))]
    between.sort(key=lambda span: (order[span.dialog], span.start))
    return _joined([*front, *between, *_without(back, late)])


def _holding(store: Store, left_out: Sequence[Span]) -> Iterator[Span]:
    """Give the entries that are left out and hold all the same."""
    told: set[str] = set()
    for span in reversed(left_out):
        for header in store.holding(span.dialog, span.start, span.stop):
            if header.kind not in told:
                yield Span(span.dialog, header.seq, header.seq + 1)
            if rule(header.kind).holds == "newest":
                told.add(header.kind)


def _cut(reader: Reader, held: Sequence[Stretch], index: int) -> tuple[list[Span], list[Span], list[Span]]:
    """Part the spans where the message with this index begins.

    Returns:
        What stands before, what stands from there on, and the entries in the latter that continue a message in the former.
    """
    at, seq = place(reader, held, index)
    cut = held[at].span
    front = [*(stretch.span for stretch in held[:at]), Span(cut.dialog, cut.start, seq)]
    back = [Span(cut.dialog, seq, cut.stop), *(stretch.span for stretch in held[at + 1 :])]
    return front, back, list(_strays(reader, _joined(front), _joined(back)))


def _strays(reader: Reader, front: Sequence[Span], back: Sequence[Span]) -> Iterator[Span]:
    """Give the entries behind a cut that continue the response before it.

    That response ends where the next one begins, perhaps in a part of the log that is not held.
    """
    if not front:
        return
    dialog = front[-1].dialog
    last = reader.header(dialog, front[-1].stop - 1)
    behind = [span for span in back if span.dialog == dialog]
    if not last.response or all(_begin_all(reader, span) for span in behind):
        return
    number = last.number
    for seq in range(last.seq + 1, max(span.stop for span in behind)):  # one by one, because the next response is near
        header = reader.header(dialog, seq)
        if header.response != last.response:
            return
        if (
            header.kind == "message"
            and not begins(header, number)
            and any(span.start <= seq < span.stop for span in behind)
        ):
            yield Span(dialog, seq, seq + 1)
        number = header.number


def _begin_all(reader: Reader, span: Span) -> bool:
    """Tell whether every entry of a span begins a message, as in a log without fragments."""
    before = reader.header(span.dialog, span.start - 1).number if span.start else 0
    return reader.header(span.dialog, span.stop - 1).number - before == len(span)


def _without(spans: Iterable[Span], holes: Sequence[Span]) -> Iterator[Span]:
    """Give the spans without single entries, both in the order of the log."""
    gone = iter(holes)
    hole = next(gone, None)
    for span in spans:
        start = span.start
        while hole is not None and hole.dialog == span.dialog and start <= hole.start < span.stop:
            yield Span(span.dialog, start, hole.start)
            start = hole.stop
            hole = next(gone, None)
        yield Span(span.dialog, start, span.stop)


def _joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Leave out what is empty, and join spans that touch."""
    found: list[Span] = []
    for span in spans:
        if not len(span):
            continue
        if found and found[-1].dialog == span.dialog and found[-1].stop == span.start:
            found[-1] = Span(span.dialog, found[-1].start, span.stop)
        else:
            found.append(span)
    return tuple(found)
