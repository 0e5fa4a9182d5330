"""The running summary: what a model's summaries said so far. It stays in the view until another one takes its place.

A summary is the only text of a view that no code can make again, and it may have cost a call of a model. So no plan leaves it out: while it has
room it stands where it stood, and only a summary that went on from it replaces it. Where it has none its beginning is told by the record, its
whole goes with the facts of whatever stands in its place, and the next summariser gets it from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from palaver.context.record.carried import sources_of
from palaver.context.record.facts import Facts
from palaver.context.record.recorder import Recorder, running_of
from palaver.context.record.telling import RUNNING
from palaver.context.texts import ranges
from palaver.log import Run, Span
from palaver.messages import TextContent
from palaver.view import Block, Exchange, Insert, Omission, Reason, View

__all__ = ["SHARE", "carrying", "holding", "is_line", "line_for", "outdated", "released", "running", "standing"]

SHARE = 4
"""At most a quarter of what a request may occupy is for the running summary; as much as for what else stands for exchanges that were left out."""


_CARRIED = '"running":'
_LINE = "[The summary so far, by a model, has no room here"


def standing(view: View) -> int | None:
    """Give the index of the exchange of the newest summary of a model of ours, or None."""
    found = (index for index, x in enumerate(view.exchanges) if x.derived and _said(x))
    return max(found, default=None)


def _said(exchange: Exchange) -> bool:
    return any(running_of(block) is not None for block in exchange.blocks())


def carrying(view: View) -> int | None:
    """Give the index of the newest exchange whose facts carry a running summary that has no place of its own, or None."""
    found = (
        index
        for index, x in enumerate(view.exchanges)
        if x.derived and any(_CARRIED in each.facts for each in x.blocks())
    )
    return max(found, default=None)


def running(view: View, *, shown: bool = False) -> str:
    """Give the text of the running summary of a view: where it stands, or as the facts of what stands there carry it; else an empty text.

    Args:
        view: The view.
        shown: True to have it only where it stands.
    """
    place = standing(view)
    if place is not None or shown:
        return "" if place is None else text_of(view.exchanges[place])
    facts = Recorder().take(x for x in view.known() if x.derived).facts()
    return facts.running.text if facts.running is not None else ""


def outdated(view: View) -> frozenset[int]:
    """Give the exchanges that a new summary takes the place of: the one before, and lines that say that it had no room."""
    place = standing(view)
    lines = {index for index, x in enumerate(view.exchanges) if x.derived and is_line(text_of(x))}
    return frozenset(lines if place is None else lines | {place})


def is_line(text: str) -> bool:
    """Tell whether a text is the line for a summary that had no room."""
    return text.startswith(_LINE)


def text_of(exchange: Exchange) -> str:
    """Give the words of the summary that an exchange is."""
    return "\n".join(block.content.content for block in exchange.blocks() if isinstance(block.content, TextContent))


def holding(view: View, place: int) -> View:
    """Give a view in which the summary stays, whoever plans."""
    held = replace(view.exchanges[place], pinned=True)
    return replace(view, exchanges=(*view.exchanges[:place], held, *view.exchanges[place + 1 :]))


def released(view: View, was: Exchange) -> View:
    """Give a view in which the summary is no longer held: that it was is no fact of the log."""

    def let_go(exchange: Exchange) -> Exchange:
        if not (exchange.derived and exchange.pinned and exchange.turns == was.turns):
            return exchange
        return was if exchange.stale is was.stale else replace(was, stale=exchange.stale)

    return replace(view, exchanges=tuple(map(let_go, view.exchanges)))


def line_for(view: View, place: int, final: View, before: int, count: Callable[[str], int]) -> Insert | None:
    """Give the line that says that a summary had to leave, with how to have back what it was made from; None where something says so already.

    Args:
        view: The view in which it stood.
        place: Where, or what carried it.
        final: The view without it.
        before: Where the line is to be put.
        count: Counts tokens.
    """
    was = view.exchanges[place]
    told = Recorder().take([was]).facts().running
    said = any(RUNNING in text or _LINE in text for text in _derived(final))
    if told is None or said or was.turns in (x.turns for x in final.exchanges):
        return None
    sources = sources_of([was])
    gone = [Omission(reason=Reason.FOLDED, span=span) for span in _hidden(sources, final)]
    where = f"; recall {ranges(gone, final.shared)}" if gone else ""
    return Insert(
        before=before,
        text=f"{_LINE} ({count(told.text):,} tokens){where}]",
        label="notice",
        sources=sources,
        facts=Facts(running=told).to_json(),
        trust=min(block.trust for block in was.blocks()),
    )


def _hidden(sources: Sequence[Run], final: View) -> Iterator[Span]:
    """Give what something was made of, without what a view still shows: a summariser is told of that, too."""
    runs = (run for x in final.exchanges if not x.derived for run in x.runs)
    shown = sorted(runs, key=lambda one: (one.dialog, one.start))
    for run in sources:
        start = run.start
        for one in shown:
            if one.dialog == run.dialog and start < one.stop and one.start < run.stop:
                if start < one.start:
                    yield Span(run.dialog, start, one.start)
                start = one.stop
        if start < run.stop:
            yield Span(run.dialog, start, run.stop)


def _derived(view: View) -> Iterator[str]:
    blocks: Iterator[Block] = (block for x in view.exchanges if x.derived for block in x.blocks())
    return (block.content.content for block in blocks if isinstance(block.content, TextContent))
