"""When an agent makes what its model sees smaller, and how: a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from palaver.context import Summarizer
from palaver.context.summary import SECONDS
from palaver.context.triggers import Tokens, Trigger
from palaver.ids import now
from palaver.session.calls.composing import BudgetLike, PolicyLike

__all__ = ["AutoCompact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoCompact:
    """When and how an agent makes what its model sees smaller, without being asked.

    Triggers are looked at before every call of the model; that the provider refuses a request as too long always counts.

    Attributes:
        policy: Who decides what goes.
        triggers: What it is done for.
        summarizer: What puts a summary beside the record that code makes; None for the record alone. Whatever goes wrong with it, the turn
            goes on.
        budget: What one request may occupy then; half of what it occupies when not given.
        focus: What to dwell on.
        seconds: After so many seconds an answer of the summariser is given up.
        input_tokens: What the summariser can read at once, in tokens.
        clock: Gives the time, in seconds since 1970-01-01 UTC.
    """

    policy: PolicyLike = "palaver"
    triggers: tuple[Trigger, ...] = (Tokens(),)
    summarizer: Summarizer | None = None
    budget: BudgetLike | None = None
    focus: str = ""
    seconds: float = SECONDS
    input_tokens: int = 100_000
    clock: Callable[[], float] = now
