"""The options of an agent, and the settings of one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, TypedDict

from palaver.agent.approvals import Approver
from palaver.agent.invoking import Invoker, StreamHandler
from palaver.context.policy import require_policy
from palaver.context.summary import Summarizer
from palaver.context.triggers import Trigger
from palaver.errors import InvalidInput
from palaver.messages import APITypes
from palaver.messages.frozen import EMPTY
from palaver.models.retry import Retry
from palaver.session.memory import CoreMemory, SubjectMemory

__all__ = ["MOST_ROUNDS", "AgentOptions", "CallSettings"]

MOST_ROUNDS = 100
"""Rounds of tools that a turn may have without a cap of its own (`max_interrupt_steps=0`); LLLM's figure."""

_MOST_PARALLEL = 8
"""Calls of one answer that run side by side."""


class AgentOptions(TypedDict, total=False):
    """The options of an agent, each by keyword: `Agent(..., max_interrupt_steps=20, summarizer=...)`.

    Attributes:
        max_exception_retry: How many refused answers a turn may have repaired; 3 by default.
        max_interrupt_steps: How many rounds of tools a turn may have; 5 by default, 0 for 100.
        max_llm_recall: How often the provider is asked again when it fails; 0, the default, for what `retry` says.
        retry: When and how often to ask again, in place of the invoker's own policy.
        fallback: The policy that stands in for a context manager that raises; by default the turn fails with `PolicyFailed`.
        summarizer: Writes a summary beside the record when exchanges leave the view; none by default.
        triggers: When to compact although the view still fits its limit.
        recall: Whether the agent has the recall tools; by default where a policy may leave something out and no format is asked for.
        memory: The core memory in its instructions, with the tools to edit it; a `SubjectMemory` for one of each subject.
        parallel_tools: Whether calls of one answer run side by side; True by default.
        inherit_system_contract: Whether plain text leaves the system prompt's parser, tools and handler in force; True by default.
        api_type: Which of a provider's interfaces, where the invoker has several.
        stream_handler: Called with every event.
        tracer: Called with every event too, such as `palaver.agent.telemetry.Telemetry`.
        deps: What tools may ask for: a database, a client, a user.
    """

    max_exception_retry: int
    max_interrupt_steps: int
    max_llm_recall: int
    retry: Retry | None
    fallback: str | None
    summarizer: Summarizer | None
    triggers: Sequence[Trigger]
    recall: bool | None
    memory: CoreMemory | SubjectMemory | None
    parallel_tools: bool
    inherit_system_contract: bool
    api_type: APITypes | str | None
    stream_handler: StreamHandler | None
    tracer: StreamHandler | None
    deps: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """The settings of one call: the agent's options, and the call's arguments.

    Attributes:
        name: The agent's name.
        model: The model.
        invoker: Sends requests to the model.
        model_args: Arguments of the request.
        context_manager: What shapes each request, or None.
        budget: What one request may occupy, or None.
        approve: Decides about calls at once, or None.
        agent: The agent, for tools that ask for it.
        parser_args: Further arguments of the prompt's parser.
        metadata: Kept with each answer.
    """

    name: str
    model: str
    invoker: Invoker
    model_args: Mapping[str, Any] = EMPTY
    context_manager: Any = None
    budget: Any = None
    approve: Approver | None = None
    agent: Any = None
    parser_args: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    max_exception_retry: int = 3
    max_interrupt_steps: int = 5
    max_llm_recall: int = 0
    retry: Retry | None = None
    fallback: str | None = None
    summarizer: Summarizer | None = None
    triggers: Sequence[Trigger] = ()
    recall: bool | None = None
    memory: CoreMemory | SubjectMemory | None = None
    parallel_tools: bool = True
    inherit_system_contract: bool = True
    api_type: APITypes | str | None = None
    stream_handler: StreamHandler | None = field(default=None, repr=False)
    tracer: StreamHandler | None = field(default=None, repr=False)
    deps: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check what a caller may have got wrong.

        Raises:
            InvalidInput: A value has the wrong type.
        """
        for name in ("max_exception_retry", "max_interrupt_steps", "max_llm_recall"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise InvalidInput(f"{name} is {number!r}.", hint="Give a whole number, at least 0.")
        if not isinstance(self.model, str):
            raise InvalidInput(f"model is {self.model!r}.", hint="Give the name of a model.")
        if not callable(getattr(self.invoker, "invoke", None)):
            raise InvalidInput(
                f"llm_invoker is {self.invoker!r}.", hint='Give a provider, or build_invoker("openai") and the like.'
            )
        require_policy(self.context_manager, "context_manager")

    @property
    def rounds(self) -> int:
        """How many rounds of tools a turn may have."""
        return self.max_interrupt_steps or MOST_ROUNDS

    @property
    def parallel(self) -> int:
        """How many calls of one answer run at a time."""
        return _MOST_PARALLEL if self.parallel_tools else 1

    @property
    def retrying(self) -> Retry:
        """When and how often to ask again: `retry`, else the invoker's own policy, else never; `max_llm_recall` sets the number."""
        policy = self.retry or getattr(self.invoker, "retry", None)
        if self.max_llm_recall:
            return replace(policy or Retry(), attempts=self.max_llm_recall + 1)
        return policy or Retry(attempts=1)

    @property
    def provider(self) -> str:
        """The provider's name, or empty."""
        return str(getattr(getattr(self.invoker, "provider", None), "name", ""))


def require_options(options: Mapping[str, Any]) -> None:
    """Raise InvalidInput if an option does not exist."""
    known = AgentOptions.__annotations__
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"Did you mean {near[0]!r}?" if near else f"Options: {', '.join(sorted(known))}."
            raise InvalidInput(f"An agent has no option {name!r}.", hint=meant)
