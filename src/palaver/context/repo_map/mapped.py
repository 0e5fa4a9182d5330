"""A map of the repository in a view: before the first words of the user, and beside what stands for exchanges that were left out.

Nothing but what a conversation begins with, or what is left out of it, decides what a map shows: so it stays the same to the byte until more
is left out, when the prefix is lost anyhow. What the last recorded call showed goes before what would be drawn now: a process that goes on
with a conversation sends the map that another one drew.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from palaver.context.beside import Beside
from palaver.context.ground import Ground, Layout
from palaver.context.measure import Measure, Meter
from palaver.context.record.carried import sources_of
from palaver.context.repo_map.interest import Interest, interest_of
from palaver.context.repo_map.repo_map import RepoMap
from palaver.messages import TextContent, Trust
from palaver.repomap import Drawing
from palaver.view import Exchange, Insert, View

__all__ = ["FIRST", "FOLDED", "LABEL", "Mapped", "Maps"]

LABEL = "repo map"
"""What the model is told that the text is, and under which its figures are kept with the call."""

FIRST, FOLDED = "first words", "fold"
"""Why a map was drawn."""

_UNDONE = "undo"
"""What a commit is recorded as that takes another one back: the view is what it was, and nothing made it smaller."""


@dataclass(eq=False, kw_only=True)
class Maps:
    """The maps of one plan.

    Attributes:
        repo_map: Draws them.
        first: The most that the one has that a conversation begins with, in the unit of the measure.
        folded: The most that the one has beside what was folded.
        sent: What the last call was sent, or None: while all of that is shown, its map is, too.
    """

    repo_map: RepoMap
    first: int
    folded: int
    sent: View | None = None
    _standing: tuple[View, tuple[int, ...]] | None = field(default=None, repr=False)

    def opening(self, ground: Ground, layout: Layout) -> Iterator[Insert]:
        """Make the map that stands before the user's first words, drawn for them; none where the view holds one, or was made smaller already.

        Such a view had no room for one: the next fold may have.
        """
        if ground.asks and self._begins(ground):
            first = ground.asks[0]
            begun, acts = ground.view.exchanges[: first + 1], ground.acts.upto(first)
            yield from self._insert(ground, layout, interest_of(begun, acts), self.first, before=first, why=FIRST)

    def behind(self, ground: Ground, layout: Layout) -> Iterator[Insert]:
        """Make the map that stands behind what was left out, drawn for that; none where the view still holds one."""
        missing = frozenset(ground.missing(layout))
        if missing.issuperset(self._shown(ground)):
            gone = [ground.view.exchanges[index] for index in sorted(missing)]
            interest = interest_of(gone, [act for act in ground.acts.all if act.index in missing], shown=False)
            before = ground.gap(layout)
            yield from self._insert(ground, layout, interest, self.folded, before=before, why=FOLDED, gone=gone)

    def sizes(self, ground: Ground, upto: int, layout: Layout) -> tuple[int, int]:
        """Give what maps have of the size of a layout, and what one may have besides: the one to begin with, whatever it will say.

        Both are told without a disk: where a conversation is folded must not depend on what a map says.
        """
        shown, kept = self._shown(ground), set(layout.kept)
        within = sum(ground.whole(index) for index in shown if index <= upto and (index >= layout.cut or index in kept))
        if next(ground.missing(layout), None) is not None:
            return within + self.folded, 0
        begun = bool(ground.asks) and ground.asks[0] <= upto
        return within, self.first if begun and self._begins(ground) else 0

    def _begins(self, ground: Ground) -> bool:
        return not self._shown(ground) and not set(ground.view.policies) - {_UNDONE}

    def _shown(self, ground: Ground) -> tuple[int, ...]:
        """Give the exchanges of a view that are maps: a commit wrote them down."""
        if self._standing is None or self._standing[0] is not ground.view:
            exchanges = enumerate(ground.view.exchanges)
            self._standing = (ground.view, tuple(index for index, each in exchanges if _text(each)))
        return self._standing[1]

    def _insert(  # noqa: PLR0913 - a map, and where and why it stands
        self,
        ground: Ground,
        layout: Layout,
        interest: Interest,
        most: int,
        *,
        before: int,
        why: str,
        gone: list[Exchange] | None = None,
    ) -> Iterator[Insert]:
        text, figures = self._still(ground, layout), None
        if not text:
            free = most - ground.inserted("", LABEL)
            drawing = self.repo_map.drawn(interest, free, ground.meter.text, _measure(ground.meter))
            text, figures = drawing.text, _figures(drawing, why)
        if text:
            yield Insert(
                before=before,
                text=text,
                label=LABEL,
                sources=sources_of(gone or []),
                trust=Trust.OUTSIDE,
                standing=True,
                since=None if figures is not None else self._since(ground, before),
                figures=figures,
            )

    def _since(self, ground: Ground, before: int) -> int:
        """Give the first exchange that was said after the map that the last call was sent: those sent with it that are outdated were said before."""
        sent = () if self.sent is None else self.sent.exchanges
        stale = {each.first for each in sent if each.stale and each.first is not None}
        found = (index for index, each in enumerate(ground.view.exchanges) if each.first in stale)
        return max(found, default=before - 1) + 1

    def _still(self, ground: Ground, layout: Layout) -> str:
        """Give the map that the last call was sent, where nothing is left out that it was sent; else an empty text."""
        if self.sent is None:
            return ""
        exchanges = ground.view.exchanges
        shown = {exchanges[index].first for index in layout.shown(len(exchanges) - 1)}
        if any(each.first is not None and each.first not in shown for each in self.sent.exchanges):
            return ""
        return next(filter(None, map(_text, self.sent.exchanges)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped(Beside):
    """Stands for exchanges with what another stand-in says, and a map drawn for what they were at.

    Attributes:
        maps: The maps.
    """

    maps: Maps = field(compare=False)

    def own_room(self, ground: Ground) -> int:  # noqa: ARG002 - it was settled when the room was
        """Give what the map has at most."""
        return self.maps.folded

    def own(self, ground: Ground, layout: Layout) -> Iterator[Insert]:
        """Make the map."""
        return self.maps.behind(ground, layout)


def _text(exchange: Exchange) -> str:
    """Give the text of a map; an empty one where the exchange is none."""
    block = exchange.turns[0].blocks[0]
    return block.content.content if block.derived == LABEL and isinstance(block.content, TextContent) else ""


def _figures(drawing: Drawing, why: str) -> dict[str, Any]:
    """Give what is kept of a drawing with the call that shows it first."""
    return {
        "why": why,
        "tokens": drawing.tokens,
        "files": len(drawing.files),
        "definitions": drawing.definitions,
        "of_files": drawing.of_files,
        "of_definitions": drawing.of_definitions,
        "digest": drawing.digest,
    }


class _Same:
    """Something that is nothing else but itself; it is held, so that its id stays its own."""

    def __init__(self, of: object) -> None:
        self._of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._of is other._of

    def __hash__(self) -> int:
        return id(self._of)


def _measure(meter: Measure) -> Hashable:
    """Tell one measure from another: by its unit, or, of tokens, by what counts them."""
    counter: Any = meter.counter if isinstance(meter, Meter) else meter.unit
    try:
        hash(counter)
    except TypeError:  # one of the caller's own
        return _Same(counter)
    found: Hashable = counter
    return found
