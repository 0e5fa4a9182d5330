"""When an agent makes what its model sees smaller, and how: a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from palaver.context import Summarizer
from palaver.context.summary import SECONDS
from palaver.context.triggers import Fired, Own, Tokens, Trigger, fired, grown
from palaver.ids import now
from palaver.session import CompactionPreview, Dialog
from palaver.session.calls.composing import BudgetLike, PolicyLike

__all__ = ["AutoCompact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoCompact:
    """When and how an agent makes what its model sees smaller, without being asked.

    Triggers are looked at before every call of the model; that the provider refuses a request as too long always counts.

    Attributes:
        policy: Who decides what goes.
        triggers: What it is done for; None for the policy's own limit where it has one (a preset of another system), else four fifths of the
            model's window.
        summarizer: What puts a summary beside the record that code makes; None for the record alone. Whatever goes wrong with it, the turn
            goes on.
        budget: What one request may occupy then; when not given, what the policy's own limit leaves, or half of what it occupies.
        focus: What to dwell on.
        seconds: After so many seconds an answer of the summariser is given up.
        input_tokens: What the summariser can read at once, in tokens; None for three quarters of its model's window, where that is known.
        clock: Gives the time, in seconds since 1970-01-01 UTC.
    """

    policy: PolicyLike = "palaver"
    triggers: tuple[Trigger, ...] | None = None
    summarizer: Summarizer | None = None
    budget: BudgetLike | None = None
    focus: str = ""
    seconds: float = SECONDS
    input_tokens: int | None = None
    clock: Callable[[], float] = now

    def due(self, dialog: Dialog, model: str) -> Fired | None:
        """Give the first trigger that fires for a dialog, or None.

        Args:
            dialog: What is perhaps to be made smaller.
            model: The model whose tokens count.
        """
        figures = dialog.figures(at=self.clock(), model=model)
        triggers, own = self.triggers, ""
        if triggers is None or any(isinstance(each, Own) for each in triggers):
            said = dialog.due(self.policy, model=model) if grown(figures) else ""
            own = said or ""
            triggers = triggers or ((Tokens(),) if said is None else (Own(),))
        return fired(triggers, replace(figures, own=own))

    def preview(self, dialog: Dialog, model: str, *, focus: str = "") -> CompactionPreview:
        """Look at what one compaction would do that somebody asks for by hand, made as the agent makes its own.

        Args:
            dialog: What is to be made smaller.
            model: The model whose tokens count.
            focus: What to dwell on, in place of the agent's own focus.

        Raises:
            InfeasibleBudget: What every view must hold is larger than the budget.
            UnknownPolicy: There is none of this name.
        """
        return dialog.compact(**{**self._wanted(model), "focus": focus or self.focus})

    async def apreview(self, dialog: Dialog, model: str, cause: Fired) -> CompactionPreview:
        """Look at what one compaction would do that a trigger fired for; raises as `preview` does."""
        return await dialog.acompact(**self._wanted(model), trigger=cause)

    def _wanted(self, model: str) -> Mapping[str, Any]:
        """Give the words of a compaction: all that is settled here, whoever asks for it."""
        return {
            "policy": self.policy,
            "focus": self.focus,
            "budget": self.budget,
            "summarizer": self.summarizer,
            "model": model,
            "seconds": self.seconds,
            "input_tokens": self.input_tokens,
        }
