"""What stands for exchanges that were left out, when they are folded: a record of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from palaver.context.ground import Ground, Layout
from palaver.context.notice import NOTICE
from palaver.context.record.facts import Facts
from palaver.context.record.recorder import Recorder, Sources
from palaver.context.record.telling import told
from palaver.context.texts import left
from palaver.log import Run
from palaver.view import Exchange, Insert, Reason

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
    """

    sources: Sources | None = field(default=None, compare=False)
    reason: Reason = Reason.FOLDED

    def room(self, ground: Ground, upto: int) -> int:
        """Give the tokens that a record has at most."""
        return max(_room(ground), NOTICE.room(ground, upto))

    def insert(self, ground: Ground, layout: Layout) -> Insert:
        """Make the record of what a layout leaves out: older records go on, and what came after them is added."""
        gone = [ground.view.exchanges[index] for index in ground.missing(layout)]
        facts = Recorder(sources=self.sources).take(gone).facts()
        head = left(ground.dropped(layout))
        around = ground.inserted("", "record")
        free = _room(ground) - around
        if free < _LEAST or facts == Facts():
            return NOTICE.insert(ground, layout)
        return Insert(
            before=ground.gap(layout),
            text=told(facts, head, free, ground.meter.text),
            label="record",
            sources=_sources(gone),
            facts=facts.to_json(),
            trust=min(block.trust for exchange in gone for block in exchange.blocks()),
        )


def _room(ground: Ground) -> int:
    return min(ground.high // SHARE, MOST)


def _sources(gone: list[Exchange]) -> tuple[Run, ...]:
    """Give the entries that the record was made from, neighbours as one run; of older records theirs."""
    runs: list[Run] = []
    for exchange in gone:
        older = (run for block in exchange.blocks() for run in block.sources) if exchange.derived else ()
        own = (Run(dialog=run.dialog, start=run.start, stop=run.stop) for run in exchange.runs)
        for run in (*older, *own):
            if runs and runs[-1].dialog == run.dialog and runs[-1].start <= run.start <= runs[-1].stop:
                runs[-1] = Run(dialog=run.dialog, start=runs[-1].start, stop=max(run.stop, runs[-1].stop))
            else:
                runs.append(run)
    return tuple(runs)
