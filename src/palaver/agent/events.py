"""The events of a turn: the models' and the loop's own, one closed union distinguished by `type`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from palaver.errors import ProviderError
from palaver.messages import Message, ToolCallContent, ToolResultContent, Usage
from palaver.models import BlockEvent, End, TextDelta, ThinkingDelta, ToolCallDelta, UsageEvent
from palaver.tools import Progress
from palaver.wire import Request

__all__ = [
    "AgentEvent",
    "AnswerRefused",
    "Asking",
    "CallEnded",
    "CallProgress",
    "CallStarting",
    "Compacted",
    "DecisionAwaited",
    "Delivered",
    "Retrying",
    "TurnFinished",
    "TurnStarting",
]


@dataclass(frozen=True, slots=True)
class TurnStarting:
    """A turn begins or continues: always the first event.

    Attributes:
        session: The `AgentCallSession`.
        model: The model.
        provider: The provider's name, or empty.
    """

    session: Any
    model: str = ""
    provider: str = ""
    type: Literal["turn_starting"] = field(default="turn_starting", init=False)


@dataclass(frozen=True, slots=True)
class Asking:
    """The model is about to be asked; that, and what it sees, is already durable."""

    request: Request
    type: Literal["asking"] = field(default="asking", init=False)


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message that arrived during the turn is now part of the conversation."""

    message: Message
    type: Literal["delivered"] = field(default="delivered", init=False)


@dataclass(frozen=True, slots=True)
class CallStarting:
    """A call is about to run; that is already durable."""

    call: ToolCallContent
    type: Literal["call_starting"] = field(default="call_starting", init=False)


CallProgress: TypeAlias = Progress
"""A tool reports progress."""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has its result; that is already durable.

    Attributes:
        call: The call.
        result: Its result.
        ending: How it ended, a word of `palaver.tools.Ending`, or `unknown` or `given_up`.
        seconds: How long it took.
    """

    call: ToolCallContent
    result: ToolResultContent
    ending: str = "done"
    seconds: float = 0.0
    type: Literal["call_ended"] = field(default="call_ended", init=False)


@dataclass(frozen=True, slots=True)
class AnswerRefused:
    """An answer was not what the prompt declared: the model is asked again, and what it streamed is void.

    Attributes:
        message: The answer.
        error: What was wrong with it.
    """

    message: Message
    error: str
    type: Literal["answer_refused"] = field(default="answer_refused", init=False)


@dataclass(frozen=True, slots=True)
class Retrying:
    """The provider failed and is asked again: what it streamed is void.

    Attributes:
        error: How it failed.
        wait: Seconds until it is asked again.
    """

    error: ProviderError
    wait: float = 0.0
    type: Literal["retrying"] = field(default="retrying", init=False)


@dataclass(frozen=True, slots=True)
class Compacted:
    """The policy's plan was committed as an entry of the log: the view is smaller from here on.

    Attributes:
        tokens_before: The size of the view before, in tokens.
        tokens_after: Its size now.
        policy: The policy that made the plan.
        trigger: What it was made for: `limit`, `overflow`, or the name of a trigger.
        summarizer: The model that wrote a summary, or empty.
        usages: What that model read and wrote.
        restored: The files that were read again.
    """

    tokens_before: int
    tokens_after: int
    policy: str
    trigger: str = ""
    summarizer: str = ""
    usages: tuple[Usage, ...] = ()
    restored: tuple[str, ...] = ()
    type: Literal["compacted"] = field(default="compacted", init=False)


@dataclass(frozen=True, slots=True)
class DecisionAwaited:
    """Calls wait for a person's decision."""

    calls: tuple[ToolCallContent, ...]
    type: Literal["decision_awaited"] = field(default="decision_awaited", init=False)


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn is over: always the last event, however it ended.

    Attributes:
        session: The `AgentCallSession`.
    """

    session: Any
    type: Literal["turn_finished"] = field(default="turn_finished", init=False)


AgentEvent: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ToolCallDelta
    | BlockEvent
    | UsageEvent
    | End
    | TurnStarting
    | Asking
    | Delivered
    | CallStarting
    | CallProgress
    | CallEnded
    | AnswerRefused
    | Retrying
    | Compacted
    | DecisionAwaited
    | TurnFinished
)
"""Everything that `Agent.stream` yields."""
