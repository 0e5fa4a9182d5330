"""The preset `pi`: beyond the window less a reserve, everything but the newest tokens becomes a summary with lists of files.

Source: badlogic/pi-mono, packages/agent/src/harness/compaction/compaction.ts: reserveTokens 16,384, keepRecentTokens 20,000; a cut never falls
before a tool's result; where it falls inside a turn, a summary of the turn's beginning stands with that of the history ("Turn Context (split turn)"):
here it is a section of the one summary; the lists of read and changed files are carried from one compaction to the next: here by the record.
"""

from __future__ import annotations

from typing import ClassVar

from palaver.context.ground import Room
from palaver.context.ledger import Ledger
from palaver.context.operators import Cut, dropping
from palaver.context.presets.preset import Preset, Recipe, tail
from palaver.context.record import RecordOf
from palaver.context.summary.request import SPLIT

__all__ = ["Pi"]

_KEEP_RECENT = 20_000


class Pi(Preset):
    """Keeps the newest tokens and a record of the rest."""

    name: ClassVar[str] = "pi"
    words: ClassVar = {"reserve_tokens": 16_384}
    headings: ClassVar[tuple[str, ...]] = (
        "Goal",
        "Constraints & Preferences",
        "Progress",
        "Key Decisions",
        "Next Steps",
        "Critical Context",
    )

    split: ClassVar[str] = SPLIT

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Keep the newest."""
        wanted = self.left_alone.get("keep_recent", room.keep_recent or _KEEP_RECENT)
        keep = min(wanted, max(room.high // 2, 0))
        return Recipe(
            room=tail(Room(high=room.high, low=room.low, keep_last=room.keep_last), keep),
            edit=dropping(Cut(border=False)),
            stand_in=RecordOf(ledger.sources, ledger.constraints),
        )
