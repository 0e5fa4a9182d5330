"""Carrying on: what is known of exchanges that leave the view goes with what stands in their place, whichever policy puts it there.

A notice shows one line and a summary its own words, but the facts go with either; so the record that a later policy makes begins where
the conversation began, not where the view does (design, decision 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from palaver.context.ground import GONE
from palaver.context.record.recorder import Recorder, Sources
from palaver.log import Handle, Run, Span
from palaver.messages import Role, Speaker
from palaver.view import Exchange, Plan, View

__all__ = ["begun", "carried", "sources_of", "united", "within"]


def carried(view: View, plan: Plan, sources: Sources | None = None) -> Plan:
    """Give the same plan, the facts of what it drops with the next text that it puts in; a plan without one is given back.

    Args:
        view: The view that the plan was made for.
        plan: The plan.
        sources: Gives blocks as they were recorded.
    """
    dropped = sorted({drop.index for drop in plan.drops if 0 <= drop.index < len(view.exchanges)})
    bare = [place for place, insert in enumerate(plan.inserts) if not insert.facts and not insert.standing]
    told = [run for insert in plan.inserts if insert.facts for run in insert.sources]
    untold = [index for index in dropped if not within(view.exchanges[index], told)]
    if not bare or not untold:
        return plan
    inserts = list(plan.inserts)
    unseen = [exchange for exchange in view.carried if not within(exchange, told)]
    for place, indexes in _shared(untold, plan, bare).items():
        gone = [*unseen, *(view.exchanges[index] for index in indexes)]
        unseen = []
        facts = Recorder(sources=sources, begun=begun(view, indexes)).take(gone).facts()
        insert = inserts[place]
        inserts[place] = replace(insert, facts=facts.to_json(), sources=insert.sources or sources_of(gone))
    return replace(plan, inserts=tuple(inserts))


def within(exchange: Exchange, told: Sequence[Run]) -> bool:
    """Tell whether the facts of an exchange go with some text already."""
    runs: tuple[Span | Run, ...] = exchange.runs
    if exchange.derived:
        runs = tuple(run for block in exchange.blocks() for run in block.sources)
    return bool(told) and all(any(_holds(one, run) for one in told) for run in runs)


def _holds(one: Run, other: Span | Run) -> bool:
    return one.dialog == other.dialog and one.start <= other.start and other.stop <= one.stop


def _shared(dropped: Sequence[int], plan: Plan, bare: Sequence[int]) -> Mapping[int, list[int]]:
    """Give to each text, by its place, the exchanges whose facts go with it: those before it, from the text before on."""
    shares: dict[int, list[int]] = {}
    for index in dropped:
        after = [place for place in bare if plan.inserts[place].before > index]
        place = min(after, key=lambda each: plan.inserts[each].before, default=bare[-1])
        shares.setdefault(place, []).append(index)
    return shares


def begun(view: View, dropped: Sequence[int]) -> bool:
    """Tell whether the user's first words are not among some exchanges, so that none of theirs may be taken for his goal."""
    first = next((index for index, exchange in enumerate(view.exchanges) if _asks(exchange)), None)
    if first is None or first not in dropped:
        return True
    place = view.exchanges[first].first
    return place is None or any(
        _before(gone.span, place, view) for gone in view.omissions if gone.span is not None and gone.reason in GONE
    )


def _asks(exchange: Exchange) -> bool:
    said = (block.speaker is Speaker.HUMAN for block in exchange.blocks())
    return exchange.role is Role.USER and not exchange.derived and any(said)


def _before(span: Span, place: Handle, view: View) -> bool:
    """Tell whether entries stand before a place; of two ancestors of the dialog nobody knows here, so they may."""
    return span.start < place.seq if span.dialog == place.dialog else span.dialog != view.dialog_id


def sources_of(gone: Sequence[Exchange]) -> tuple[Run, ...]:
    """Give the entries that something was made from, neighbours as one run; of older records theirs.

    What a block in another form was made from besides itself stands before them, where it is not among them.
    """
    runs: list[Run] = []
    for exchange in gone:
        older = (run for block in exchange.blocks() for run in block.sources) if exchange.derived else ()
        own = (Run(dialog=run.dialog, start=run.start, stop=run.stop) for run in exchange.runs)
        for run in (*older, *own):
            if runs and runs[-1].dialog == run.dialog and runs[-1].start <= run.start <= runs[-1].stop:
                runs[-1] = Run(dialog=run.dialog, start=runs[-1].start, stop=max(run.stop, runs[-1].stop))
            else:
                runs.append(run)
    shown = (block for exchange in gone if not exchange.derived for block in exchange.blocks())
    beside = {run for block in shown for run in block.sources}
    return (*united(run for run in beside if not any(_holds(one, run) for one in runs)), *runs)


def united(runs: Iterable[Run]) -> Iterator[Run]:
    """Give runs without what they have twice, in order: from text to text there are no more of them than there are gaps."""
    before: Run | None = None
    for run in sorted(runs, key=lambda one: (one.dialog, one.start)):
        if before is None or before.dialog != run.dialog or before.stop < run.start:
            if before is not None:
                yield before
            before = run
        elif run.stop > before.stop:
            before = Run(dialog=run.dialog, start=before.start, stop=run.stop)
    if before is not None:
        yield before
