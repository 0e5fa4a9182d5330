"""Checkpoints: a view recorded as one entry, and where a later fold starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from palaver.ids import DialogId
from palaver.log import (
    NOTHING,
    BlockEdit,
    Compaction,
    Derived,
    Entry,
    Handle,
    Header,
    Reader,
    Run,
    Span,
    entry_at,
    lineage,
)
from palaver.messages import Role, TextContent
from palaver.view.blocks import Block, BlockChange, Reason, to_edit
from palaver.view.view import Omission, View


def checkpoint(view: View, spans: Sequence[Span], *, policy: str, tokens_before: int, tokens_after: int) -> Compaction:
    """Return the entry that records a view: a fold that starts from it returns the same view.

    Args:
        view: The view.
        spans: The dialog's spans up to `view.at`, oldest first (`held`).
        policy: The policy that made the view.
        tokens_before: The size of the view before, in tokens.
        tokens_after: The size of this view, in tokens.
    """
    firsts = {exchange.first for exchange in view.exchanges}
    return Compaction(
        base=view.at,
        pieces=tuple(_pieces(view, spans)),
        edits=tuple(_edits(view)),
        omitted=tuple(map(Omission.stored, view.omissions)),
        leading=view.leading,
        closed=view.response is None or view.response not in firsts,
        policy=policy,
        tokens_before=tokens_before,
        tokens_after=tokens_after,
    )


def _pieces(view: View, spans: Sequence[Span]) -> Iterator[Run | Derived]:
    """Return the runs that the view is made of and the derived texts between them, in the order of the log.

    A view whose exchanges have another order, as a compaction of another agent may leave them, is recorded exchange by exchange.
    """
    before: dict[Handle, list[Derived]] = {}
    waiting: list[Derived] = []
    for exchange in view.exchanges:
        if exchange.first is None:
            waiting.extend(map(_derived, exchange.blocks()))
        elif (
            waiting
        ):  # a text belongs before the exchange that follows it, because only entries have a place in the log
            before.setdefault(exchange.first, []).extend(waiting)
            waiting = []
    ranks = [_rank(exchange.first, spans) for exchange in view.exchanges if exchange.first is not None]
    ordered = all(rank <= other for rank, other in pairwise(ranks))
    yield from (_in_log_order if ordered else _in_view_order)(view, spans, before)
    yield from waiting


def _rank(place: Handle, spans: Sequence[Span]) -> tuple[int, int]:
    """Return a place's order in the log."""
    return next((index for index, span in enumerate(spans) if place in span), len(spans)), place.seq


def _in_view_order(view: View, spans: Sequence[Span], before: dict[Handle, list[Derived]]) -> Iterator[Run | Derived]:
    """Return what the view depends on in the order of the log, then its exchanges in their own order."""
    for span in sorted(set(view.state), key=lambda span: _rank(Handle(span.dialog, span.start), spans)):
        yield Run.of(span)
    for exchange in view.exchanges:
        if exchange.first is not None:
            yield from before.get(exchange.first, ())
        yield from map(Run.of, exchange.runs)


def _in_log_order(view: View, spans: Sequence[Span], before: dict[Handle, list[Derived]]) -> Iterator[Run | Derived]:
    """Return the runs of each span. A run includes entries that no view shows, and ends before a derived text and at what this view leaves out."""
    parts: dict[DialogId, list[tuple[int, bool, int]]] = {}
    for span in chain(view.state, (run for exchange in view.exchanges for run in exchange.runs)):
        cuts = (seq for seq in range(span.start + 1, span.stop) if Handle(span.dialog, seq) in before)
        edges = pairwise((span.start, *cuts, span.stop))
        parts.setdefault(span.dialog, []).extend((start, False, stop) for start, stop in edges)
    for gone in (omission.span for omission in view.omissions if omission.span is not None):
        parts.setdefault(gone.dialog, []).append((gone.start, True, gone.stop))
    for part in parts.values():
        part.sort()
    for span in spans:
        yield from _of_span(span, parts.get(span.dialog, ()), before)


def _of_span(
    span: Span, parts: Iterable[tuple[int, bool, int]], before: dict[Handle, list[Derived]]
) -> Iterator[Run | Derived]:
    """Return the runs of one span, from the sorted parts of its dialog: first entry, whether it is left out, number after the last entry."""
    run = Run(dialog=span.dialog, start=span.start, stop=span.start)
    hole = 0
    for first, omitted, last in parts:
        start, stop = max(first, span.start), min(last, span.stop)
        if omitted or start >= stop:
            hole = max(hole, stop)
            continue
        texts = before.pop(Handle(span.dialog, start), ())
        joins = run.start < run.stop and not texts and hole <= run.stop
        if not joins and run.start < run.stop:
            yield run
        yield from texts
        run = Run(dialog=span.dialog, start=run.start if joins else start, stop=max(run.stop, stop) if joins else stop)
    if run.start < run.stop:
        yield run


def _derived(block: Block) -> Derived:
    return Derived(
        text=block.content.content if isinstance(block.content, TextContent) else "",
        label=block.derived,
        speaker=block.speaker.value,
        trust=block.trust.name.lower(),
        sources=block.sources,
    )


def _edits(view: View) -> Iterator[BlockEdit]:
    """Return the blocks in another form. Quarantines and omissions are recorded elsewhere: as an entry of the state, as an omission."""
    for block in view.system:
        if block.reason is not None and block.reason is not Reason.QUARANTINED and block.origin is not None:
            text = block.content.content if isinstance(block.content, TextContent) else ""
            trust = block.trust if block.sources else None
            yield to_edit(block.origin, BlockChange(block.reason, text, block.reversible, block.sources, trust))
    for exchange in view.exchanges:
        if exchange.role is not Role.ASSISTANT:
            unpaired = (handle for handle, letter in exchange.shape() if letter == "r")
            yield from (to_edit(handle, BlockChange(Reason.UNPAIRED)) for handle in unpaired)
        for target, change in exchange.changes.items():
            if change.text is not None and change.reason is not Reason.QUARANTINED:
                yield to_edit(target, change)


def held(reader: Reader, dialog_id: DialogId, at: int | None) -> tuple[Span, ...]:
    """Return the spans of a dialog up to its own entry `at`, inclusive (None: the newest; -1: inherited entries only)."""
    length = reader.last(dialog_id).seq + 1 if at is None else at + 1
    return lineage(reader.node(dialog_id), length)


def header_at(reader: Reader, dialog_id: DialogId, at: int | None) -> Header:
    """Return the header of a dialog's own entry, or of the newest when `at` is None or beyond it.

    Raises:
        NotFound: The log has no such dialog.
    """
    newest = reader.last(dialog_id)
    if at is None or at >= newest.seq:
        return newest
    return reader.header(dialog_id, at) if at >= 0 else NOTHING


def find_start(
    reader: Reader, spans: Sequence[Span], upto: Header
) -> tuple[Compaction | None, tuple[Span, ...], list[Handle]]:
    """Find the newest checkpoint that is valid for these spans.

    An ancestor's checkpoint is valid for a fork only when the fork shares everything that the checkpoint was made of. A fork that keeps a window wants
    exactly those messages.

    Args:
        reader: The log.
        spans: The dialog's spans, oldest first; the last one ends at `upto`.
        upto: The header of the last own entry, or `NOTHING`.

    Returns:
        The checkpoint, None to start at the beginning; the spans to read after it; and compactions that cannot be read.
    """
    damaged: list[Handle] = []
    for index in range(len(spans) - 1, -1, -1):
        span = spans[index]
        own = index == len(spans) - 1 and upto.seq == span.stop - 1
        base = (upto if own else reader.header(span.dialog, span.stop - 1)).view_base
        base, entry = in_force(reader, span.dialog, base)
        if base < span.start:
            continue
        if not isinstance(entry, Compaction):
            damaged.append(Handle(span.dialog, base))
        elif _complete(entry, spans[: index + 1]):
            meanwhile = max(
                entry.base + 1, span.start
            )  # what was said before it was committed is read with its own header
            after = Span(span.dialog, meanwhile if meanwhile < base else base + 1, span.stop)
            return entry, tuple(part for part in (after, *spans[index + 1 :]) if len(part)), damaged
    return None, tuple(spans), damaged


def in_force(reader: Reader, dialog_id: DialogId, base: int) -> tuple[int, Entry | None]:
    """Return the number of a dialog's newest compaction up to a number that was not erased, and the entry; -1 and None if there is none.

    Args:
        reader: The log.
        dialog_id: The dialog.
        base: The number of its newest compaction (`Header.view_base`).
    """
    while base >= 0:
        entry = entry_at(reader, Handle(dialog_id, base))
        if entry.erased is None:
            return base, entry
        base = header_at(reader, dialog_id, base - 1).view_base
    return -1, None


def _complete(entry: Compaction, spans: Iterable[Span]) -> bool:
    """Return whether the spans contain every entry that a checkpoint shows or leaves out."""
    held_of: dict[DialogId, list[Span]] = {}
    for span in spans:
        held_of.setdefault(span.dialog, []).append(span)
    runs = [piece for piece in entry.pieces if isinstance(piece, Run)]
    runs += [gone.run for gone in entry.omitted if gone.run is not None]
    return all(
        sum(max(0, min(run.stop, span.stop) - max(run.start, span.start)) for span in held_of.get(run.dialog, ()))
        == run.stop - run.start
        for run in runs
    )
