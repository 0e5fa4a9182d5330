"""The preset `palaver`: what can be had without loss first, then what later work made pointless, then a record of the oldest.

Ours. What each part is for, and where it was seen to work, is in docs/presets.md.
"""

from __future__ import annotations

from typing import ClassVar

from palaver.context.ground import Room
from palaver.context.keeps import first_asks, latest_plan
from palaver.context.ledger import Ledger
from palaver.context.operators import (
    DEDUPE,
    DEGRADE_MEDIA,
    DROP_OLDEST,
    DROP_REASONING,
    DROP_SUPERSEDED,
    OUTDATED_READS,
    PURGE_FAILED,
    Cap,
    Clear,
    Loss,
    Operator,
    cap,
    clear,
    in_phases,
    together,
)
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import RecordOf
from palaver.context.schedule.due import Schedule, Waiting
from palaver.context.summary.request import HEADINGS
from palaver.context.texts import compact, kept_ends

__all__ = ["Palaver"]

_LARGEST, _SHOWN = 40_000, 10_000
"""Characters beyond which an output is shown in part from the first, and how many are shown: mini-swe-agent shows 10,000 of anything."""

_NEWEST = 0.75
"""Of what a cut leaves, the share that may be the newest results, as they came. Measured with a half, three quarters and all of it: ADR 74."""


class Palaver(Preset):
    """The default: reversible first, all of it at once, when it pays; the goal and the newest plan stay; a record stands for the rest."""

    name: ClassVar[str] = "palaver"
    headings: ClassVar[tuple[str, ...]] = HEADINGS

    @property
    def paced(self) -> bool:
        """False: what it is given is as good a limit as any other."""
        return False

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Clean up, then fold."""
        old = clear(Clear(keep=1, protect=int(room.low * _NEWEST), words=compact))
        cleaning = Operator("clean", Loss.REVERSIBLE, together(DEDUPE, OUTDATED_READS, PURGE_FAILED, old), old.respects)
        return Recipe(
            room=room,
            always=cap(Cap(characters=_LARGEST, shown=_SHOWN, words=kept_ends)),
            edit=in_phases(cleaning, DEGRADE_MEDIA, DROP_REASONING, DROP_SUPERSEDED, DROP_OLDEST),
            stand_in=RecordOf(ledger.sources, ledger.constraints),
            keeps=(first_asks(), latest_plan),
            schedule=Schedule(waiting=Waiting(newest=None)),
        )
