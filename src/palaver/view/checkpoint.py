"""Checkpoints: a view written down as one entry, from which later views are computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from palaver.log import BlockEdit, Compaction, Derived, Handle, Omitted, Place, Run, Span, clip
from palaver.messages import TextContent, ToolResultContent
from palaver.view.reasons import Reason
from palaver.view.view import Block, Omission, View


def checkpoint(
    view: View, spans: Sequence[Span], *, policy: str, tokens_before: int, tokens_after: int, apart: bool = False
) -> Compaction:
    """Write a view down.

    Folding the entry gives the view back: `fold(append(checkpoint(view))) == view`, up to the number of the entry itself.

    Args:
        view: The view.
        spans: All that the dialog holds up to `view.at`, oldest first (`palaver.view.lines.held`).
        policy: The policy that made it.
        tokens_before: The size of the view before, in tokens.
        tokens_after: The size of this view, in tokens.
        apart: Whether a run stops wherever the view shows nothing. Else it goes on over entries that no view shows, which makes fewer of them; but one
            that was damaged since is shown by a line that says so.
    """
    blocks = (*view.system, *(block for exchange in view.exchanges for block in exchange.blocks()))
    return Compaction(
        base=view.at,
        pieces=(
            *(_derived(block) for each in view.carried for block in each.blocks()),
            *_pieces(view, spans, apart=apart),
        ),
        edits=tuple(_edits(blocks)),
        omitted=tuple(map(omitted, view.omissions)),
        leading=view.leading,
        closed=view.response is None or view.response not in {exchange.first for exchange in view.exchanges},
        policy=policy,
        tokens_before=tokens_before,
        tokens_after=tokens_after,
    )


def _pieces(view: View, spans: Sequence[Span], *, apart: bool) -> Iterator[Run | Derived]:
    """Give the runs that the view is made of, in the order of the log, and each derived text before the exchange it precedes.

    A foreign compaction may have put exchanges into another order: then they are written down one by one, as the view has them.
    """
    before: dict[Handle, list[Derived]] = {}
    waiting: list[Derived] = []
    for exchange in view.exchanges:
        if exchange.first is None:
            waiting.extend(_derived(block) for block in exchange.blocks())
        elif waiting:
            before.setdefault(exchange.first, []).extend(waiting)
            waiting = []
    if not _as_logged(view, spans):
        yield from _as_shown(view, before, spans)
        yield from waiting
        return
    shown = sorted(set(_needed(view)))
    gone = sorted({omission.span for omission in view.omissions if omission.span is not None})
    for span in spans:
        yield from _of_span(list(clip((span,), shown)), None if apart else list(clip((span,), gone)), before)
    yield from waiting


def _as_logged(view: View, spans: Sequence[Span]) -> bool:
    """Tell whether the exchanges stand in the order of the log."""
    places = [_rank(exchange.first, spans) for exchange in view.exchanges if exchange.first is not None]
    return all(one <= other for one, other in pairwise(places))


def _rank(place: Handle, spans: Sequence[Span]) -> tuple[int, int]:
    """Give a place's order in the log."""
    return next((index for index, span in enumerate(spans) if place in span), len(spans)), place.seq


def _as_shown(view: View, before: Mapping[Handle, Sequence[Derived]], spans: Sequence[Span]) -> Iterator[Run | Derived]:
    """Give what the view depends on, in the order of the log, then its exchanges in their own order."""
    for span in sorted(set(view.state), key=lambda one: _rank(Handle(one.dialog, one.start), spans)):
        yield Run(dialog=span.dialog, start=span.start, stop=span.stop)
    for exchange in view.exchanges:
        if exchange.first is not None:
            yield from before.get(exchange.first, ())
        yield from (Run(dialog=run.dialog, start=run.start, stop=run.stop) for run in exchange.runs)


def _of_span(
    shown: Sequence[Span], gone: Sequence[Span] | None, before: Mapping[Handle, Sequence[Derived]]
) -> Iterator[Run | Derived]:
    """Give the pieces of one span: a run goes on over entries that no view shows, and stops at what this view leaves out."""
    run: Span | None = None
    for part in sorted(shown):
        for piece in _split(part, before):
            derived = before.get(Handle(piece.dialog, piece.start), ())
            if run is not None and not derived and not _parted(run, piece, gone):
                run = Span(run.dialog, run.start, max(run.stop, piece.stop))
                continue
            if run is not None:
                yield Run(dialog=run.dialog, start=run.start, stop=run.stop)
            yield from derived
            run = piece
    if run is not None:
        yield Run(dialog=run.dialog, start=run.start, stop=run.stop)


def _parted(run: Span, piece: Span, gone: Sequence[Span] | None) -> bool:
    """Tell whether something is left out between a run and a piece; anything at all where nobody says what is."""
    if gone is None:
        return piece.start > run.stop
    return any(hole.start < piece.start and hole.stop > run.stop for hole in gone)


def _split(part: Span, before: Mapping[Handle, object]) -> Iterator[Span]:
    """Cut a span where a derived text goes before an entry in it."""
    cuts = sorted(place.seq for place in before if place.dialog == part.dialog and part.start < place.seq < part.stop)
    edges = [part.start, *cuts, part.stop]
    yield from (Span(part.dialog, start, stop) for start, stop in pairwise(edges))


def _needed(view: View) -> Iterator[Span]:
    yield from view.state
    for exchange in view.exchanges:
        yield from exchange.runs


def _derived(block: Block) -> Derived:
    text = block.content.content if isinstance(block.content, TextContent) else ""
    return Derived(
        text=text,
        label=block.derived,
        speaker=block.speaker.value,
        trust=block.trust.name.lower(),
        sources=block.sources,
        facts=block.facts or None,
    )


def _edits(blocks: Iterable[Block]) -> Iterator[BlockEdit]:
    for block in blocks:
        # What is quarantined is found again by itself: its entry is among the state.
        if block.reason is None or block.reason is Reason.QUARANTINED or block.origin is None:
            continue
        content = block.content
        text = (
            content.text()
            if isinstance(content, ToolResultContent)
            else content.content
            if isinstance(content, TextContent)
            else ""
        )
        yield BlockEdit(
            target=_place(block.origin),
            text=text,
            reason=block.reason.value,
            reversible=block.reversible,
            sources=block.sources or None,
            trust=block.trust.name.lower() if block.sources else None,
        )


def omitted(omission: Omission) -> Omitted:
    """Give what a view leaves out in the form that an entry records."""
    span = omission.span
    return Omitted(
        run=None if span is None else Run(dialog=span.dialog, start=span.start, stop=span.stop),
        target=None if omission.handle is None else _place(omission.handle),
        reason=omission.reason.value,
        by=omission.by,
        messages=omission.messages,
        size=omission.size,
    )


def _place(handle: Handle) -> Place:
    return Place(dialog=handle.dialog, seq=handle.seq, block=handle.block)
