"""The preset `manus`: raw, then compact, then summary. What can be brought back goes first; the newest half stays in full.

Source: Manus, "Context Engineering for AI Agents: Lessons from Building Manus" (manus.im/blog), and the published notes of the talk on it
(rlancemartin.github.io, 2025-10-15): every tool result has a full and a compact form; the oldest half of the calls is made compact first, the newest
stay full as examples; only when that yields little a summary is made, from the full data, the last calls verbatim. The plan, todo.md or
what a tool for plans was given, is recited into the tail; here with every edit, where the tail is new anyway. Prefixes stay as they are between edits,
and failures are kept.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar

from palaver.context.ground import Room
from palaver.context.keeps import first_asks, latest_plan
from palaver.context.ledger import Ledger
from palaver.context.operators import Clear, Cut, clear, dropping, in_phases
from palaver.context.parameters import Parameters
from palaver.context.parameters import share as share_of_all
from palaver.context.plans import Reciting
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import RecordOf
from palaver.context.texts import compact

__all__ = ["Manus"]


class Manus(Preset):
    """Makes the oldest half of the results compact; folds the oldest exchanges only if that is not enough.

    Attributes:
        share: Which share of the results stays in full.
    """

    name: ClassVar[str] = "manus"
    parameters: ClassVar[Parameters] = MappingProxyType(
        {
            "share": share_of_all(),
        }
    )
    headings: ClassVar[tuple[str, ...]] = (
        "Goal",
        "What was done",
        "Files",
        "Findings",
        "Errors",
        "Where the work stands",
        "Next step",
    )

    def __init__(
        self, model_name: str = "", max_tokens: int | None = None, *, share: float = 0.5, **budget: object
    ) -> None:
        """Make the policy for a model."""
        self.share = share
        super().__init__(model_name, max_tokens, **budget)

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Compact, then summarise."""
        reciting = Reciting(stand_in=RecordOf(ledger.sources, ledger.constraints))
        return Recipe(
            room=room,
            edit=in_phases(clear(Clear(keep=1, share=self.share, words=compact)), dropping(Cut(border=False))),
            stand_in=reciting,
            keeps=(first_asks(), latest_plan),
            when=reciting.crowded,
            opening=reciting.own,
        )
