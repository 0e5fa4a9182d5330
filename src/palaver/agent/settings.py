"""What an agent's loop goes by, fixed for the length of one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from palaver.agent.approvals import Decision
from palaver.agent.auto_compact import AutoCompact
from palaver.agent.invoking import Invoker
from palaver.messages import APITypes, ToolCallContent
from palaver.messages.frozen import EMPTY
from palaver.models.retry import Retry
from palaver.session.calls.composing import BudgetLike, PolicyLike
from palaver.session.memory import CoreMemory

__all__ = ["MOST_ROUNDS", "Approver", "OnRefused", "Settings", "Verdict"]

MOST_ROUNDS = 100
"""Rounds of tools that a turn may have when it is given no cap of its own (`max_interrupt_steps=0`)."""

OnRefused: TypeAlias = Literal["raise", "quarantine"]
"""What becomes of a turn whose request is refused for good: its error names the block, or the block is set aside and the model asked again."""

Verdict: TypeAlias = bool | Decision | None
"""True to run a call, False to refuse it, a decision with its reasons; None to leave it to somebody else."""

Approver: TypeAlias = Callable[[ToolCallContent], Verdict | Awaitable[Verdict]]
"""Whoever decides about a call at once, plainly or to be awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an agent's loop goes by.

    Attributes:
        name: The agent's name.
        model: The model.
        invoker: What asks it.
        model_args: What it is asked with.
        parser_args: What the prompt's parser is called with besides the text.
        metadata: What is kept with each answer.
        api_type: Which of a provider's interfaces, or None.
        max_exception_retry: Repairs that a turn may have.
        max_interrupt_steps: Rounds of tools that it may have; 0 for `MOST_ROUNDS`.
        max_llm_recall: How often the provider is asked again when it fails; 0 for what `retry` says.
        retry: How long to wait between, and what is worth another try.
        context_manager: What shapes each request, or None.
        budget: What a request may occupy, or None.
        compact: When and how the view is made smaller by itself; None where only an overflow does it.
        on_refused: What becomes of a turn whose request is refused because of one block.
        memory: The core memory that stands in its instructions, or None.
        approve: Who decides about calls at once, or None.
        parallel: How many calls of one response may run at a time.
        deps: What tools may ask for besides.
        agent: The agent, for tools that ask for it.
    """

    name: str
    model: str
    invoker: Invoker
    model_args: Mapping[str, Any] = EMPTY
    parser_args: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    api_type: APITypes | str | None = None
    max_exception_retry: int = 3
    max_interrupt_steps: int = 5
    max_llm_recall: int = 0
    retry: Retry = field(default_factory=lambda: Retry(attempts=1))
    context_manager: PolicyLike | None = None
    budget: BudgetLike | None = None
    compact: AutoCompact | None = None
    on_refused: OnRefused = "raise"
    memory: CoreMemory | None = None
    approve: Approver | None = None
    parallel: int = 8
    deps: Any = None
    agent: Any = None

    @property
    def rounds(self) -> int:
        """How many rounds of tools a turn may have."""
        return self.max_interrupt_steps or MOST_ROUNDS
