"""The preset `letta`: when the window is full the oldest part is evicted into a summary that goes on.

Source: letta-ai/letta 0.16.1, letta/services/summarizer and settings.py: triggers at the whole window; sliding_window_percentage 0.30, ten points
more at a time until at most 70 % of the window is kept; the cut falls before an assistant's message; summaries of about 100 words that fold
the earlier one in. What was evicted stays in recall memory: here, in the log, by its handle.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar

from palaver.context.ground import Room
from palaver.context.ledger import Ledger
from palaver.context.operators import Cut, dropping
from palaver.context.parameters import Parameters, share
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import RecordOf

__all__ = ["Letta"]


class Letta(Preset):
    """Evicts the oldest part when the window is full.

    Attributes:
        evict: Which share of the window is evicted, more than 0 and less than 1.
    """

    name: ClassVar[str] = "letta"
    parameters: ClassVar[Parameters] = MappingProxyType(
        {
            "evict": share(inside=True),
        }
    )
    words: ClassVar = {"safety_buffer": 0}
    headings: ClassVar[tuple[str, ...]] = ("Summary",)

    def __init__(
        self, model_name: str = "", max_tokens: int | None = None, *, evict: float = 0.30, **budget: object
    ) -> None:
        """Make the policy for a model.

        Raises:
            InvalidInput: The share is none.
        """
        self.evict = evict
        super().__init__(model_name, max_tokens, **budget)

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Evict the oldest."""
        low = int(room.high * (1 - self.evict))
        return Recipe(
            room=Room(high=room.high, low=low, keep_last=room.keep_last, keep_recent=room.keep_recent),
            edit=dropping(Cut(border=False)),
            stand_in=RecordOf(ledger.sources, ledger.constraints),
        )
