"""The trace of one agent call: every time the model was asked, every repair, every round of tools, and how it ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from palaver.agent.invoking import InvokeResult
from palaver.errors import ProviderError
from palaver.messages import FunctionCall, InvokeCost, Message, ToolCallContent

__all__ = ["AgentCallSession", "State"]

State: TypeAlias = Literal[
    "initial", "exception", "interrupt", "llm_recall", "success", "failure", "interrupted", "waiting"
]
"""Where a call is, or how it ended: the last four.

`exception`: an answer is being repaired. `interrupt`: tools run. `llm_recall`: the model is asked again after its provider failed.
`interrupted`: it was cancelled. `waiting`: a person has to decide.
"""


@dataclass(slots=True, kw_only=True)
class AgentCallSession:
    """What happened in one agent call, as far as this process saw it. The log has the rest.

    The keys of the mappings are rounds of tools, from 0: an answer before any result has the key 0, one after the first round's results the
    key 1. Calls have the key of the answer that made them.

    Attributes:
        agent_name: The agent.
        dialog_id: The dialog.
        dialog: The dialog itself.
        max_exception_retry: How many repairs it may ask for.
        max_interrupt_steps: How many rounds of tools it may have.
        max_llm_recall: How often it may ask again after its provider failed.
        state: Where it is, or how it ended.
        exception_retries: What was wrong with the answers that were refused.
        interrupts: The calls of tools with their results.
        llm_recalls: The failures after which the provider was asked again.
        invoke_traces: Every answer of the model, refused ones included; the newest with its request (`dialog.calls` has all).
        delivery: The answer, once there is one.
        error: What the call failed with, or None.
        error_message: What was wrong with the newest answer, for handlers; empty when nothing was.
        call_results: What the newest call of a tool returned, as text, for handlers.
        waiting: The calls that wait for a decision.
        late: Messages that came too late for this turn: they are in the dialog, and the next call answers them.
        resumed: Whether an earlier call began the turn, perhaps of another process.
    """

    agent_name: str = ""
    dialog_id: str = ""
    dialog: Any = field(default=None, repr=False)
    max_exception_retry: int = 3
    max_interrupt_steps: int = 5
    max_llm_recall: int = 0
    state: State = "initial"
    exception_retries: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    interrupts: dict[int, list[FunctionCall]] = field(default_factory=lambda: defaultdict(list))
    llm_recalls: dict[int, list[ProviderError]] = field(default_factory=lambda: defaultdict(list))
    invoke_traces: dict[int, list[InvokeResult]] = field(default_factory=lambda: defaultdict(list))
    delivery: Message | None = None
    error: BaseException | None = None
    error_message: str = ""
    call_results: str = ""
    waiting: tuple[ToolCallContent, ...] = ()
    late: tuple[Message, ...] = ()
    resumed: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Return what can go to another process: everything but the dialog, which is in a store."""
        return {each.name: None if each.name == "dialog" else getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def add_answer(self, step: int, result: InvokeResult) -> None:
        """Keep an answer. Only the newest keeps its request, which holds the whole conversation; the log gives back each."""
        last = next((found for found in reversed(self.invoke_traces.values()) if found), None)
        if last is not None:
            last[-1] = replace(last[-1], request=None)
        self.invoke_traces[step].append(result)

    @property
    def exception_retries_count(self) -> int:
        """How many answers were refused."""
        return _count(self.exception_retries)

    @property
    def interrupts_count(self) -> int:
        """How many calls of tools there were."""
        return _count(self.interrupts)

    @property
    def llm_recalls_count(self) -> int:
        """How often the provider failed and was asked again."""
        return _count(self.llm_recalls)

    @property
    def invokes(self) -> tuple[InvokeResult, ...]:
        """Every answer of the model, in order."""
        return tuple(one for found in self.invoke_traces.values() for one in found)

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of every answer, refused ones included."""
        return sum((one.cost for one in self.invokes), InvokeCost())

    @property
    def ended(self) -> bool:
        """Whether this call is over, one way or another."""
        return self.state in {"success", "failure", "interrupted", "waiting"}

    def __repr__(self) -> str:
        calls = self.interrupts_count
        return f"<AgentCallSession {self.agent_name} {self.state}: answers={len(self.invokes)} tool_calls={calls}>"

    def to_dict(self) -> dict[str, Any]:
        """Return what a log line or a page would say of it, as JSON values."""
        return {
            "agent_name": self.agent_name,
            "dialog_id": self.dialog_id,
            "state": self.state,
            "exception_retries": {str(step): list(found) for step, found in self.exception_retries.items()},
            "interrupts": {str(step): [call.name for call in found] for step, found in self.interrupts.items()},
            "llm_recalls": {str(step): [str(one) for one in found] for step, found in self.llm_recalls.items()},
            "invokes": len(self.invokes),
            "cost": {"tokens": self.cost.total_tokens, "dollars": self.cost.cost},
            "delivery": None if self.delivery is None else self.delivery.text_content(),
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
            "waiting": [call.id for call in self.waiting],
        }


def _count(by_step: Mapping[int, Iterable[Any]]) -> int:
    return sum(len(list(found)) for found in by_step.values())
