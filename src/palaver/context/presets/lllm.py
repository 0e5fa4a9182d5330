"""The preset `lllm`: the first message, the newest ones that fit, and of the one at the border a part.

Source: Productive-Superintelligence/lllm, lllm/core/dialog.py, DefaultContextManager: SAFETY_BUFFER 5,000; the first message stays; the border
message is truncated behind a mark. What differs: its *end* is kept, where the original keeps the beginning; calls stay with their results; the
cut moves in steps; instructions and tool schemas count.
"""

from __future__ import annotations

from typing import ClassVar

from palaver.context.ground import Room
from palaver.context.keeps import first_messages
from palaver.context.ledger import Ledger
from palaver.context.operators import DROP_OLDEST
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import NoticeOf

__all__ = ["LLLM"]


class LLLM(Preset):
    """Keeps the first message and the newest ones, and drops what lies between when the budget is reached."""

    name: ClassVar[str] = "lllm"

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Drop the oldest but the first."""
        return Recipe(
            room=room,
            edit=DROP_OLDEST,
            stand_in=NoticeOf(ledger.sources, ledger.constraints),
            keeps=(first_messages(1),),
        )
