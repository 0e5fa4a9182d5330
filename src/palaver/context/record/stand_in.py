"""What stands for exchanges that were left out, when they are folded: a record of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from palaver.context.ground import Ground, Layout
from palaver.context.notice import NOTICE
from palaver.context.record.carried import begun, sources_of
from palaver.context.record.constraints import Constraints
from palaver.context.record.facts import Facts
from palaver.context.record.recorder import Recorder, Sources
from palaver.context.record.telling import told
from palaver.context.texts import left
from palaver.view import Insert, Reason

__all__ = ["MOST", "SHARE", "RecordOf"]

SHARE = 4
"""At most a quarter of the room is for the record."""

MOST = 4_000
"""Tokens that a record has at most: its facts are carried beside its text, and all of them can be recalled."""

_LEAST = 200
"""Tokens below which a record says too little to be worth its place; a notice stands there instead."""


@dataclass(frozen=True, slots=True)
class RecordOf:
    """A record stands for what was left out.

    Attributes:
        sources: Gives blocks as they were recorded, or None.
        constraints: What the user changed by hand in the list of his constraints.
        most: Tokens that it has at most, where the room is large.
    """

    sources: Sources | None = field(default=None, compare=False)
    constraints: Constraints = field(default_factory=Constraints)
    most: int = MOST
    reason: Reason = Reason.FOLDED

    def room(self, ground: Ground, upto: int) -> int:
        """Give the tokens that a record has at most."""
        return max(self._room(ground), NOTICE.room(ground, upto))

    def inserts(self, ground: Ground, layout: Layout) -> tuple[Insert, ...]:
        """Make the record of what a layout leaves out: older records go on, and what came after them is added."""
        missing = tuple(ground.missing(layout))
        gone = [ground.view.exchanges[index] for index in missing]
        facts = Recorder(sources=self.sources, begun=begun(ground.view, missing)).take(gone).facts()
        facts = self.constraints.applied(facts)
        head = left(ground.dropped(layout))
        around = ground.inserted("", "record")
        free = self._room(ground) - around
        if free < _LEAST or facts == Facts():
            return NOTICE.inserts(ground, layout)
        record = Insert(
            before=ground.gap(layout),
            text=told(facts, head, free, ground.meter.text),
            label="record",
            sources=sources_of(gone),
            facts=facts.to_json(),
            trust=min(block.trust for exchange in gone for block in exchange.blocks()),
        )
        return (record,)

    def _room(self, ground: Ground) -> int:
        return min(ground.room.high // SHARE, self.most)
