"""The presets `swe-agent` and `cat`: observations of the last steps in full; a workspace of task, memory and last turns.

Sources: SWE-agent/SWE-agent, sweagent/agent/history_processors.py, LastNObservations: n 5, polling 1, the task stays;
the text in the place of others. Oversized output goes to a file with a warning (window_length 105 lines of releases before 1.0,
sweagent/agent/summarizer.py), or is summarised with the problem statement in view; here its handle is the file, and a summariser makes the summary
when the view is compacted. CAT: "Context as a Tool", arXiv 2512.22087: stable task, condensed memory, turns of
high fidelity; no sizes are published, so the half that every cut leaves is for the turns.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar

from palaver.context.ground import Room
from palaver.context.keeps import first_asks, latest_plan
from palaver.context.ledger import Ledger
from palaver.context.operators import DROP_OLDEST, Cap, Cut, Mask, cap, dropping, mask, together
from palaver.context.parameters import Parameters, count
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import NoticeOf, RecordOf
from palaver.context.texts import lines_omitted, preview

__all__ = ["CAT", "SWEAgent"]

_WINDOW = 105 * 80
"""Characters of an output that are shown: 105 lines of 80."""


class SWEAgent(Preset):
    """Shows the observations of the last steps, and lines in the place of older ones.

    Attributes:
        n: How many observations stay.
        polling: How many steps pass before more are cleared.
        largest: Characters beyond which an output is shown in part from the first.
    """

    name: ClassVar[str] = "swe-agent"
    parameters: ClassVar[Parameters] = MappingProxyType(
        {
            "n": count(1),
            "polling": count(1),
            "largest": count(1),
        }
    )

    def __init__(
        self,
        model_name: str = "",
        max_tokens: int | None = None,
        *,
        n: int = 5,
        polling: int = 1,
        largest: int = 100_000,
        **budget: object,
    ) -> None:
        """Make the policy for a model."""
        self.n = n
        self.polling = polling
        self.largest = largest
        super().__init__(model_name, max_tokens, **budget)

    @property
    def digest_beyond(self) -> int:
        """Characters beyond which a summariser, where there is one, says of an output what matters for the problem."""
        return self.largest

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Mask at every step; drop the oldest only where even that is too large."""
        masked = mask(Mask(n=self.n, polling=self.polling, words=lines_omitted))
        capped = cap(Cap(characters=self.largest, shown=_WINDOW, words=preview))
        return Recipe(
            room=room,
            always=together(capped, masked),
            edit=DROP_OLDEST,
            stand_in=NoticeOf(ledger.sources, ledger.constraints),
            keeps=(first_asks(),),
        )


class CAT(Preset):
    """Keeps the task as it was said, a condensed memory of the past, and the last turns in full."""

    name: ClassVar[str] = "cat"
    headings: ClassVar[tuple[str, ...]] = ("Task", "What was found", "What was changed", "What failed", "What is open")

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Fold what is neither task nor last turns."""
        return Recipe(
            room=room,
            edit=dropping(Cut(border=False)),
            stand_in=RecordOf(ledger.sources, ledger.constraints),
            keeps=(first_asks(), latest_plan),
        )
