"""The trace of one call of a tactic: every call of its agents, every tactic it called, and how it ended."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from palaver.agent.call_session import AgentCallSession
from palaver.messages import InvokeCost

__all__ = ["TacticCallSession", "TacticState"]

TacticState: TypeAlias = Literal["initial", "running", "success", "failure"]
"""Where a call of a tactic is, or how it ended."""


@dataclass(kw_only=True)
class TacticCallSession:
    """What happened in one call of a tactic. Threads may add to it at the same time.

    Attributes:
        tactic_name: The tactic.
        tactic_path: The key it is registered under; its name when it is not registered.
        state: Where it is, or how it ended.
        agent_sessions: The calls of its agents, by the agent's name, failed ones included.
        sub_tactic_sessions: The calls of tactics it holds, by the attribute that holds them.
        delivery: What `call` returned.
        error: What it failed with, as `Class: message`, or None.
        error_traceback: Where that was raised, or None.
        exception: The exception itself, or None.
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
        """Add the call of an agent."""
        with self._lock:
            self.agent_sessions.setdefault(session.agent_name, []).append(session)

    def record_sub_tactic_call(self, name: str, session: TacticCallSession) -> None:
        """Add the call of a tactic."""
        with self._lock:
            self.sub_tactic_sessions.setdefault(name, []).append(session)

    def success(self, delivery: object) -> None:
        """Note that the call ended with a result."""
        self.state, self.delivery = "success", delivery

    def failure(self, error: BaseException) -> None:
        """Note that the call ended with an error."""
        self.state, self.exception = "failure", error
        self.error = f"{type(error).__name__}: {error}"
        self.error_traceback = "".join(traceback.format_exception(error))

    @property
    def agent_cost(self) -> InvokeCost:
        """Tokens and dollars of its own agents, failed calls included."""
        return sum((each.cost for each in _all(self.agent_sessions)), InvokeCost())

    @property
    def sub_tactic_cost(self) -> InvokeCost:
        """Tokens and dollars of the tactics it called."""
        return sum((each.cost for each in _all(self.sub_tactic_sessions)), InvokeCost())

    @property
    def cost(self) -> InvokeCost:
        """Both; `total_cost` is another name for it."""
        return self.agent_cost + self.sub_tactic_cost

    total_cost = cost

    @property
    def agent_call_count(self) -> int:
        """How many calls of its own agents there were."""
        return len(_all(self.agent_sessions))

    @property
    def sub_tactic_call_count(self) -> int:
        """How many calls of other tactics there were."""
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
            "agent_sessions": _dicts(self.agent_sessions),
            "sub_tactic_sessions": _dicts(self.sub_tactic_sessions),
            "delivery": None if self.delivery is None else str(self.delivery),
            "error": self.error,
            "error_traceback": self.error_traceback,
        }


def _all(lists: Mapping[str, Iterable[Any]]) -> list[Any]:
    return [each for found in list(lists.values()) for each in found]


def _dicts(lists: Mapping[str, Iterable[Any]]) -> dict[str, list[dict[str, Any]]]:
    return {name: [each.to_dict() for each in found] for name, found in lists.items()}
