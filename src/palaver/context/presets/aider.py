"""The preset `aider`: what is done is summarised within a small budget; what the user asked last, and what came of it, stays in full.

Source: Aider-AI/aider, aider/history.py and aider/models.py: max_chat_history_tokens = clamp(max_input / 16, 1,024, 8,192); the tail of what is
done may have half of it, the rest is summarised, again and again until it fits. The recursion is not needed where code makes the record:
one pass is within the budget.
"""

from __future__ import annotations

from typing import ClassVar

from palaver.context.ground import Ground, Layout, Room, asks
from palaver.context.ledger import Ledger
from palaver.context.operators import Cut, dropping
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import RecordOf
from palaver.context.steps import over

__all__ = ["Aider"]

_SHARE, _LEAST, _MOST = 16, 1_024, 8_192


class Aider(Preset):
    """Summarises what is done when it outgrows its budget.

    Attributes:
        history: Tokens that what is done may have; a sixteenth of the room, at least 1,024 and at most 8,192, unless given.
    """

    name: ClassVar[str] = "aider"

    def __init__(
        self, model_name: str = "", max_tokens: int | None = None, *, history: int | None = None, **budget: object
    ) -> None:
        """Make the policy for a model."""
        self.history = history
        super().__init__(model_name, max_tokens, **budget)

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Fold what is done."""
        share = min(max(room.high // _SHARE, _LEAST), _MOST) if self.history is None else self.history
        history = min(share, max(room.high, 0))

        def when(ground: Ground, upto: int, layout: Layout) -> bool:
            """Tell whether the user has just begun something new and what is done is too large."""
            begun = asks(ground.view.exchanges[upto])
            return (begun and layout.size - ground.whole(upto) > history) or over(ground, upto, layout)

        return Recipe(
            room=Room(high=room.high, low=history // 2, keep_last=room.keep_last, keep_recent=room.keep_recent),
            edit=dropping(Cut(border=False, done=True)),
            stand_in=RecordOf(ledger.sources, ledger.constraints, most=history // 2),
            when=when,
        )
