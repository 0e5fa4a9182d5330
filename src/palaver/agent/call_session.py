"""Traces of calls: of an agent (answers, repairs, rounds of tools) and of a tactic (calls of its agents and sub-tactics)."""

from __future__ import annotations

import threading
import traceback
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from palaver.agent.answer import Answer
from palaver.agent.invoking import InvokeResult
from palaver.errors import ProviderError
from palaver.messages import FunctionCall, InvokeCost, Message, ToolCallContent

__all__ = ["USUAL_ROUNDS", "AgentCallSession", "State", "TacticCallSession", "TacticState"]

USUAL_ROUNDS = 20
"""The maximum number of rounds of tools in a turn where nobody sets one: the default of Vercel's AI SDK and of smolagents, between those of the
OpenAI Agents SDK (10) and Pydantic AI (50 requests)."""

State: TypeAlias = Literal[
    "initial", "exception", "interrupt", "llm_recall", "success", "failure", "interrupted", "waiting"
]
"""The state of a call, or how it ended (the last four).

`exception`: an answer is being repaired. `interrupt`: tools run. `llm_recall`: the model is asked again after its provider failed.
`interrupted`: it was cancelled. `waiting`: a person has to decide.
"""


@dataclass(slots=True, kw_only=True)
class AgentCallSession:
    """The trace of one agent call in this process. The log has the rest.

    The keys of the mappings are rounds of tools, from 0. An answer before any result has the key 0, one after the first round's results the
    key 1. A tool call has the key of the answer that made it.

    Attributes:
        agent_name: The agent.
        dialog_id: The dialog.
        dialog: The dialog object.
        max_exception_retry: The maximum number of repairs.
        max_interrupt_steps: The maximum number of rounds of tools.
        max_llm_recall: The maximum number of retries after the provider failed.
        state: The state of the call, or how it ended.
        exception_retries: The errors of the refused answers.
        interrupts: The tool calls with their results.
        llm_recalls: The failures after which the provider was asked again.
        invoke_traces: Every answer of the model, including refused ones; the newest with its request (`dialog.calls` has all).
        delivery: The answer, once it exists.
        error: The error that ended the call, or None.
        error_message: The error of the newest answer, for handlers; empty if the answer was accepted.
        call_results: The newest result of a tool, as text, for handlers.
        waiting: The calls that wait for a decision, also those of sub-agents.
        subagents: The calls of sub-agents within it.
        late: Messages that came too late for this turn. They are in the dialog, and the next call answers them.
        resumed: Whether an earlier call, perhaps in another process, began the turn.
    """

    agent_name: str = ""
    dialog_id: str = ""
    dialog: Any = field(default=None, repr=False)
    max_exception_retry: int = 3
    max_interrupt_steps: int = USUAL_ROUNDS
    max_llm_recall: int = 0
    state: State = "initial"
    exception_retries: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    interrupts: dict[int, list[FunctionCall]] = field(default_factory=lambda: defaultdict(list))
    llm_recalls: dict[int, list[ProviderError]] = field(default_factory=lambda: defaultdict(list))
    invoke_traces: dict[int, list[InvokeResult]] = field(default_factory=lambda: defaultdict(list))
    delivery: Answer[Any] | None = None
    error: BaseException | None = None
    error_message: str = ""
    call_results: str = ""
    waiting: tuple[ToolCallContent, ...] = ()
    subagents: list[AgentCallSession] = field(default_factory=list)
    late: tuple[Message, ...] = ()
    resumed: bool = False
    _beside: InvokeCost = field(default_factory=InvokeCost, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: everything but the dialog, which is in a store."""
        return {each.name: None if each.name == "dialog" else getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def add_answer(self, step: int, result: InvokeResult) -> None:
        """Add an answer. Only the newest keeps its request, which contains the whole conversation; the log can rebuild the others."""
        last = next((found for found in reversed(self.invoke_traces.values()) if found), None)
        if last is not None:
            last[-1] = replace(last[-1], request=None)
        self.invoke_traces[step].append(result)

    @property
    def exception_retries_count(self) -> int:
        """The number of refused answers."""
        return _count(self.exception_retries)

    @property
    def interrupts_count(self) -> int:
        """The number of tool calls."""
        return _count(self.interrupts)

    @property
    def llm_recalls_count(self) -> int:
        """The number of retries after the provider failed."""
        return _count(self.llm_recalls)

    @property
    def invokes(self) -> tuple[InvokeResult, ...]:
        """Every answer of the model, in order."""
        return tuple(one for found in self.invoke_traces.values() for one in found)

    def add_cost(self, cost: InvokeCost) -> None:
        """Add what was paid for besides the answers in `invokes`: a summary, or an answer that was cut off."""
        self._beside += cost

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of everything that the call paid for: all answers, those of sub-agents and refused ones, too, and summaries.

        `Session.cost` counts the same for a whole session.
        """
        nested = (one.cost for one in self.subagents)
        return sum((*(one.cost for one in self.invokes), *nested), self._beside)

    @property
    def all_subagents(self) -> tuple[AgentCallSession, ...]:
        """The calls of sub-agents within it, and within those."""
        return tuple(each for one in self.subagents for each in (one, *one.all_subagents))

    @property
    def ended(self) -> bool:
        """Whether this call has ended."""
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
            "subagents": [each.to_dict() for each in self.subagents],
        }


def _count(by_step: Mapping[int, Iterable[Any]]) -> int:
    return sum(len(list(found)) for found in by_step.values())


# --- calls of tactics ---------------------------------------------------------------------------------------------------


TacticState: TypeAlias = Literal["initial", "running", "success", "failure"]
"""The state of a tactic's call, or how it ended."""


@dataclass(kw_only=True)
class TacticCallSession:
    """The trace of one call of a tactic. Several threads may add to it at the same time.

    Attributes:
        tactic_name: The tactic.
        tactic_path: The key it is registered under, or its name if it is not registered.
        state: The state of the call, or how it ended.
        agent_sessions: The calls of its agents, by the agent's name, including failed ones.
        sub_tactic_sessions: The calls of its sub-tactics, by their attribute.
        delivery: The return value of `call`.
        error: The error, as `Class: message`, or None.
        error_traceback: The traceback of the error, or None.
        exception: The exception, or None.
    """

    tactic_name: str
    tactic_path: str = ""
    state: TacticState = "initial"
    agent_sessions: dict[str, list[AgentCallSession]] = field(default_factory=dict)
    sub_tactic_sessions: dict[str, list[TacticCallSession]] = field(default_factory=dict)
    delivery: Any = None
    error: str | None = None
    error_traceback: str | None = field(default=None, repr=False)
    exception: BaseException | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def record_agent_call(self, session: AgentCallSession) -> None:
        """Add a call of an agent."""
        with self._lock:
            self.agent_sessions.setdefault(session.agent_name, []).append(session)

    def record_sub_tactic_call(self, name: str, session: TacticCallSession) -> None:
        """Add a call of a sub-tactic."""
        with self._lock:
            self.sub_tactic_sessions.setdefault(name, []).append(session)

    def success(self, delivery: object) -> None:
        """Record that the call ended with a result."""
        self.state, self.delivery = "success", delivery

    def failure(self, error: BaseException) -> None:
        """Record that the call ended with an error."""
        self.state, self.exception = "failure", error
        self.error = f"{type(error).__name__}: {error}"
        self.error_traceback = "".join(traceback.format_exception(error))

    @property
    def agent_cost(self) -> InvokeCost:
        """Tokens and dollars of the tactic's own agents, including failed calls. An agent that another one called as its sub-agent counts once."""
        calls = _all(self.agent_sessions)
        nested = {id(each) for call in calls for each in call.all_subagents}
        return sum((each.cost for each in calls if id(each) not in nested), InvokeCost())

    @property
    def sub_tactic_cost(self) -> InvokeCost:
        """Tokens and dollars of the tactics it called."""
        return sum((each.cost for each in _all(self.sub_tactic_sessions)), InvokeCost())

    @property
    def cost(self) -> InvokeCost:
        """The sum of both; `total_cost` is an alias."""
        return self.agent_cost + self.sub_tactic_cost

    total_cost = cost

    @property
    def agent_call_count(self) -> int:
        """The number of calls of its own agents."""
        return len(_all(self.agent_sessions))

    @property
    def sub_tactic_call_count(self) -> int:
        """The number of calls of other tactics."""
        return len(_all(self.sub_tactic_sessions))

    def summary(self) -> dict[str, Any]:
        """Return the call in a few figures."""
        return {
            "tactic": self.tactic_name,
            "state": self.state,
            "agent_calls": self.agent_call_count,
            "sub_tactic_calls": self.sub_tactic_call_count,
            "tokens": self.cost.total_tokens,
            "dollars": self.cost.cost,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return what a log line or a page would say of it, as JSON values."""
        return {
            **self.summary(),
            "tactic_path": self.tactic_path,
            "agent_sessions": {name: [each.to_dict() for each in found] for name, found in self.agent_sessions.items()},
            "sub_tactic_sessions": {
                name: [each.to_dict() for each in found] for name, found in self.sub_tactic_sessions.items()
            },
            "delivery": None if self.delivery is None else str(self.delivery),
            "error": self.error,
            "error_traceback": self.error_traceback,
        }


def _all(lists: Mapping[str, Iterable[Any]]) -> list[Any]:
    return [each for found in list(lists.values()) for each in found]
