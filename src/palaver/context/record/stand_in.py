"""What stands for exchanges that were left out, when they are folded: a record of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from palaver.context.ground import Ground, Layout
from palaver.context.notice import NOTICE
from palaver.context.record.carried import begun, sources_of
from palaver.context.record.constraints import Constraints
from palaver.context.record.facts import Facts
from palaver.context.record.notice_of import MOST, SHARE, NoticeOf
from palaver.context.record.recorder import Recorder, Sources
from palaver.context.record.telling import told
from palaver.context.texts import left
from palaver.view import Insert, Reason

__all__ = ["MOST", "SHARE", "RecordOf"]

_LEAST = 200
"""Tokens below which a record says too little to be worth its place; a notice stands there instead."""


@dataclass(frozen=True, slots=True)
class RecordOf:
    """A record stands for what was left out.

    Attributes:
        sources: Gives blocks as they were recorded, or None.
        constraints: What the user changed by hand in the list of his constraints.
        most: Tokens that it has at most, where the room is large.
        reason: Why exchanges are left out.
        bare: What stands for them where there is too little room for a record.
    """

    sources: Sources | None = field(default=None, compare=False)
    constraints: Constraints = field(default_factory=Constraints)
    most: int = MOST
    reason: Reason = Reason.FOLDED
    bare: NoticeOf = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Have a notice ready for where there is too little room."""
        object.__setattr__(self, "bare", NoticeOf(self.sources, self.constraints))

    def room(self, ground: Ground, upto: int) -> int:
        """Give the tokens that a record has at most."""
        return (
            max(self._most(ground, upto), NOTICE.room(ground, upto))
            if self._tells(ground)
            else self.bare.room(ground, upto)
        )

    def inserts(self, ground: Ground, layout: Layout) -> tuple[Insert, ...]:
        """Make the record of what a layout leaves out: older records go on, and what came after them is added."""
        if not self._tells(ground):
            return self.bare.inserts(ground, layout)
        missing = tuple(ground.missing(layout))
        gone = [*ground.view.carried, *(ground.view.exchanges[index] for index in missing)]
        facts = Recorder(sources=self.sources, begun=begun(ground.view, missing)).take(gone).facts()
        facts = self.constraints.applied(facts)
        head = left(ground.dropped(layout), ground.view.shared)
        if facts == Facts():
            return NOTICE.inserts(ground, layout)
        record = Insert(
            before=ground.gap(layout),
            text=told(facts, head, self._most(ground, max(missing)) - ground.inserted("", "record"), ground.meter.text),
            label="record",
            sources=sources_of(gone),
            facts=facts.to_json(),
            trust=min(block.trust for exchange in gone for block in exchange.blocks()),
        )
        return (record,)

    def _tells(self, ground: Ground) -> bool:
        return self._free(ground) >= _LEAST

    def _free(self, ground: Ground) -> int:
        return self._room(ground) - ground.inserted("", "record")

    def _most(self, ground: Ground, upto: int) -> int:
        """Give the size of a record of what was said up to an exchange: more than it has at most where its constraints need more than half of that."""
        needed = self.bare.rules(ground, upto) + self.most // 2
        return max(self._room(ground), min(ground.room.high // SHARE, needed))

    def _room(self, ground: Ground) -> int:
        return min(ground.room.high // SHARE, self.most)
