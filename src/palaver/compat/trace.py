"""The trace of a tactic's call: the calls of its agents and of its sub-tactics."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from palaver.agent.trace import Trace
from palaver.messages import InvokeCost

__all__ = ["AgentCallSession", "TacticCallSession", "TacticState"]

AgentCallSession: TypeAlias = Trace
"""The name that LLLM's documents use for the trace of an agent's call."""

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
    agent_sessions: dict[str, list[Trace]] = field(default_factory=dict)
    sub_tactic_sessions: dict[str, list[TacticCallSession]] = field(default_factory=dict)
    delivery: Any = None
    error: str | None = None
    error_traceback: str | None = field(default=None, repr=False)
    exception: BaseException | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def record_agent_call(self, session: Trace) -> None:
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
        nested = {id(part) for call in calls for part in call.all_subagents}
        return sum((call.cost for call in calls if id(call) not in nested), InvokeCost())

    @property
    def sub_tactic_cost(self) -> InvokeCost:
        """Tokens and dollars of the tactics it called."""
        return sum((call.cost for call in _all(self.sub_tactic_sessions)), InvokeCost())

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
            "agent_sessions": _as_json(self.agent_sessions),
            "sub_tactic_sessions": _as_json(self.sub_tactic_sessions),
            "delivery": None if self.delivery is None else str(self.delivery),
            "error": self.error,
            "error_traceback": self.error_traceback,
        }


def _all(lists: Mapping[str, Iterable[Any]]) -> list[Any]:
    return [call for calls in list(lists.values()) for call in calls]  # a copy: other threads may add a name meanwhile


def _as_json(lists: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
    return {name: [call.to_dict() for call in calls] for name, calls in lists.items()}
