"""Applying a plan: a view in, a smaller view out, every omission recorded."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from palaver.errors import InvalidInput
from palaver.log import Handle, Span, gaps
from palaver.messages import Role, Speaker, TextContent, ToolCallContent, ToolResultContent, Trust
from palaver.view.edits import rewrite
from palaver.view.plan import Insert, Plan, Remove, Rewrite
from palaver.view.reasons import Reason
from palaver.view.view import Block, Exchange, Omission, Turn, View

_Change: TypeAlias = Rewrite | Remove


class Applied:
    """The exchanges that plans showed in another form, to be found again.

    A policy that is asked before every call shows the same exchanges in the same forms every time; then they are the same objects, and what is
    known of them by whoever goes on from the view before (their sizes, what they are sent as) need not be found again.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._shown: dict[tuple[int, bool], tuple[Exchange, Sequence[_Change], Exchange]] = {}

    def shown(self, exchange: Exchange, changes: Mapping[Handle, _Change], *, stale: bool) -> Exchange:
        """Give an exchange with the changes that are of it; the very same one where nothing of it changes.

        Args:
            exchange: The exchange.
            changes: The changes of a plan, by the block that they are of.
            stale: Whether what stands before it has been edited since it was said.
        """
        places = (block.origin for block in exchange.blocks()) if changes else ()
        own = [changes[place] for place in places if place is not None and place in changes]
        if not own and stale is exchange.stale:
            return exchange
        known = self._shown.get((id(exchange), stale))
        if known is not None and known[1] == own:
            return known[2]
        made = replace(_changed(exchange, changes) if own else exchange, stale=stale)
        self._shown[id(exchange), stale] = (exchange, own, made)  # it is held, so that its id stays its own
        return made


def apply(view: View, plan: Plan, applied: Applied | None = None) -> View:
    """Give the view as the plan wants it.

    Pure: neither the view nor the log is changed, and the same plan on the same view gives the same view.

    Args:
        view: The view the plan was made for.
        plan: The plan.
        applied: What earlier plans made, where the caller keeps it from call to call.

    Returns:
        The new view: valid by construction, with an omission for everything that was dropped.

    Raises:
        InvalidInput: The plan drops what every view must hold, or names an exchange or block that is not in the view, or one that cannot be changed so.
    """
    if not plan:
        return view
    dropped = _dropped(view, plan)
    rewrites: dict[Handle, _Change] = {change.target: change for change in plan.rewrites}
    changes = rewrites | {change.target: change for change in plan.removes}
    kept = {index: exchange for index, exchange in enumerate(view.exchanges) if index not in dropped}
    _all_met(view, plan, kept.values())
    system = tuple(as_rewritten(block, rewrites) for block in view.system)
    known = applied or Applied()
    first = 0 if system != view.system else _first_change(view, plan, kept, changes)
    outdated = [range(each.before, each.since) for each in plan.inserts if each.since is not None]
    changed = {
        index: known.shown(each, changes, stale=each.stale or index >= first or any(index in some for some in outdated))
        for index, each in kept.items()
    }
    still = _entries(run for exchange in kept.values() for run in exchange.runs)
    gone = tuple(
        omission
        for drop in plan.drops
        for omission in _omissions(view.exchanges[drop.index], still, Omission(reason=drop.reason, by=plan.policy))
    )
    removed = tuple(Omission(reason=change.reason, handle=change.target, by=plan.policy) for change in plan.removes)
    exchanges = tuple(_with_inserts(changed, plan.inserts, len(view.exchanges)))
    return replace(
        view,
        system=system,
        exchanges=exchanges,
        settled=len(exchanges),
        omissions=merged((*view.omissions, *gone, *removed), still | _entries(view.state), view.shared),
        policies=view.policies if plan.policy in view.policies else (*view.policies, plan.policy),
    )


def _first_change(view: View, plan: Plan, kept: Mapping[int, Exchange], changes: Mapping[Handle, _Change]) -> int:
    """Give the index from which on the exchanges no longer stand behind what they were said after: a result outdates the next."""
    touched = [drop.index for drop in plan.drops] + [each.before for each in plan.inserts if each.since is None]
    first = min(touched, default=len(view.exchanges))
    for index, exchange in kept.items() if changes else ():
        if index >= first:
            break
        shown = _changed(exchange, changes)
        if shown != exchange:
            return min(first, index if shown.turns[0] != exchange.turns[0] else index + 1)
    return first


def _dropped(view: View, plan: Plan) -> frozenset[int]:
    dropped = frozenset(drop.index for drop in plan.drops)
    outside = [index for index in dropped if not 0 <= index < len(view.exchanges)]
    if outside:
        message = f"the plan of {plan.policy} drops exchange {outside[0]}, and the view has {len(view.exchanges)}"
        raise InvalidInput(message)
    forbidden = sorted(dropped & view.protected())
    if forbidden:
        message = (
            f"the plan of {plan.policy} drops exchange {forbidden[0]}, which every view must hold: "
            "the newest user message, what is pinned and what is open stay"
        )
        raise InvalidInput(message)
    return dropped


def _all_met(view: View, plan: Plan, kept: Iterable[Exchange]) -> None:
    """Refuse a plan that names a block which is not there, or one that may not be changed so."""
    standing = {block.origin: block for block in view.system if block.origin is not None}
    standing |= {block.origin: block for exchange in kept for block in exchange.blocks() if block.origin is not None}
    changes: tuple[Rewrite | Remove, ...] = (*plan.rewrites, *plan.removes)
    for change in changes:
        block = standing.get(change.target)
        if block is None:
            message = f"the plan of {plan.policy} changes block {change.target}, which the view does not hold"
            raise InvalidInput(message)
        fixed = (ToolCallContent,) if isinstance(change, Rewrite) else (ToolCallContent, ToolResultContent)
        if isinstance(block.content, fixed):
            message = f"the plan of {plan.policy} changes block {change.target}: a call stays whole, and a result stays with it"
            raise InvalidInput(message)


def as_rewritten(block: Block, changes: Mapping[Handle, _Change]) -> Block:
    """Give a block as a plan shows it: itself, where it is not among those that the plan shows in another form."""
    change = None if block.origin is None else changes.get(block.origin)
    if not isinstance(change, Rewrite):
        return block
    return rewrite(
        block,
        change.text,
        change.reason,
        reversible=change.reversible,
        sources=change.sources,
        trust=change.trust,
    )


def _changed(exchange: Exchange, changes: Mapping[Handle, _Change]) -> Exchange:
    if not any(block.origin in changes for block in exchange.blocks()):
        return exchange
    turns = []
    for turn in exchange.turns:
        kept = (block for block in turn.blocks if not (block.origin and isinstance(changes.get(block.origin), Remove)))
        shown = tuple(as_rewritten(block, changes) for block in kept)
        if not shown:
            message = f"the plan removes every block of a {turn.role.value} turn: drop the exchange instead"
            raise InvalidInput(message)
        turns.append(turn if shown == turn.blocks else replace(turn, blocks=shown))
    return replace(exchange, turns=tuple(turns))


def _entries(spans: Iterable[Span]) -> frozenset[Handle]:
    """Give the entries of spans, to be asked for in one step each: a view may have as many exchanges as a log has turns."""
    return frozenset(Handle(span.dialog, seq) for span in spans for seq in range(span.start, span.stop))


def _omissions(exchange: Exchange, still: frozenset[Handle], pattern: Omission) -> Iterator[Omission]:
    """Give what dropping an exchange leaves out: whole entries, but single blocks of an entry that another exchange still shows."""
    shared: set[Handle] = set()
    for run in exchange.runs:
        for seq in range(run.start, run.stop):
            entry = Handle(run.dialog, seq)
            if entry in still:
                shared.add(entry)
            else:
                yield Omission(reason=pattern.reason, span=Span(run.dialog, seq, seq + 1), by=pattern.by)
    for block in exchange.blocks():
        if block.origin is not None and Handle(block.origin.dialog, block.origin.seq) in shared:
            yield replace(pattern, handle=block.origin)
    if exchange.messages or exchange.size:
        yield replace(pattern, messages=exchange.messages, size=exchange.size)


def merged(
    omissions: Iterable[Omission], standing: frozenset[Handle], shared: Sequence[Span] = ()
) -> tuple[Omission, ...]:
    """Give the same omissions with neighbouring ones of one reason as one span, and bare counts added to the span before them.

    Two spans are neighbours when nothing stands between them, and nothing of it was taken out by another decision: entries that no view ever
    shows do not part them. Entries that the dialog does not hold do: a window was cut there, and a view never leaves out what was never in it.
    What says nothing, and lies where everything around it leaves, leaves with it.

    Args:
        omissions: What is left out.
        standing: The entries that are shown, or that the view depends on.
        shared: What the dialog holds of its ancestors (`View.shared`).
    """
    each = tuple(omissions)
    decided = (gone.span for gone in each if gone.span is not None and gone.reason in _DECIDED)
    taken = sorted(_run(span) for span in (*decided, *gaps(shared)))
    out: list[Omission] = []
    for gone in each:
        if out and (joined := _joined(out[-1], gone, standing, taken)) is not None:
            out[-1] = joined
        elif gone.span is not None or gone.handle is not None:
            out.append(gone)
    left = sorted(_run(gone.span) for gone in out if gone.span is not None and gone.reason in _DECIDED)
    return tuple(
        gone for gone in out if gone.reason is not Reason.EMPTY or gone.span is None or not _reached(gone.span, left)
    )


_DECIDED = frozenset({Reason.OVER_BUDGET, Reason.FOLDED, Reason.COMPACTED, Reason.MANAGER})
"""Why whole entries leave that a view showed; all other reasons are of entries that no view shows."""

_Run: TypeAlias = tuple[str, int, int]


def _run(span: Span) -> _Run:
    """Give a span as it is sorted."""
    return (span.dialog, span.start, span.stop)


def _joined(last: Omission, gone: Omission, standing: frozenset[Handle], taken: Sequence[_Run]) -> Omission | None:
    if last.span is None or last.reason is not gone.reason or last.by != gone.by or gone.handle is not None:
        return None
    messages, size = last.messages + gone.messages, last.size + gone.size
    if gone.span is None:
        return replace(last, messages=messages, size=size)
    gap = Span(last.span.dialog, last.span.stop, gone.span.start)
    if (
        gone.span.dialog != gap.dialog
        or gap.stop < gap.start
        or any(Handle(gap.dialog, seq) in standing for seq in range(gap.start, gap.stop))
        or _reached(gap, taken)
    ):
        return None
    span = Span(gap.dialog, last.span.start, gone.span.stop)
    return Omission(reason=last.reason, span=span, by=last.by, messages=messages, size=size)


def _reached(span: Span, runs: Sequence[_Run]) -> bool:
    """Tell whether one of some sorted runs has an entry of a span."""
    place = bisect_left(
        runs, (span.dialog, span.stop, 0)
    )  # of those that begin before it ends, the last reaches furthest
    dialog, _, stop = runs[place - 1] if place else ("", 0, 0)
    return dialog == span.dialog and stop > span.start and len(span) > 0


def _with_inserts(kept: Mapping[int, Exchange], inserts: Sequence[Insert], end: int) -> Iterator[Exchange]:
    for index in range(end + 1):
        for insert in inserts:
            if insert.before == index:
                yield inserted(insert)
        if index in kept:
            yield kept[index]


def inserted(insert: Insert) -> Exchange:
    """Give the exchange of a derived text. It never speaks with the user's authority, whoever its sources are."""
    block = Block(
        content=TextContent(content=insert.text),
        derived=insert.label,
        sources=insert.sources,
        facts=insert.facts,
        speaker=Speaker.SUMMARY,
        trust=min(insert.trust, Trust.MODEL),
    )
    return Exchange(turns=(Turn(role=Role.USER, blocks=(block,)),), derived=True)
