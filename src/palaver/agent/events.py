"""What happens in a turn while it happens: the models' events, and the loop's own. One closed union, told apart by `type`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from palaver.errors import ProviderError
from palaver.messages import Message, ToolCallContent, ToolResultContent, Usage
from palaver.models import BlockEvent, End, TextDelta, ThinkingDelta, ToolCallDelta, UsageEvent
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
    "Quarantined",
    "Retrying",
    "TurnFinished",
]


@dataclass(frozen=True, slots=True)
class Asking:
    """The model is about to be asked; that, and what it sees, is durable already."""

    request: Request
    type: Literal["asking"] = field(default="asking", init=False)


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message that had arrived during the turn is now part of the conversation."""

    message: Message
    type: Literal["delivered"] = field(default="delivered", init=False)


@dataclass(frozen=True, slots=True)
class CallStarting:
    """A call is about to run; that is durable already."""

    call: ToolCallContent
    type: Literal["call_starting"] = field(default="call_starting", init=False)


@dataclass(frozen=True, slots=True)
class CallProgress:
    """A tool says how far it is.

    Attributes:
        call_id: The call.
        tool: The tool's name.
        message: What it is doing.
        done: How much is done, in units of the tool's own, or None.
        total: How much there is to do, in the same units, or None.
    """

    call_id: str
    tool: str
    message: str = ""
    done: float | None = None
    total: float | None = None
    type: Literal["call_progress"] = field(default="call_progress", init=False)


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has its result; that is durable already.

    Attributes:
        call: The call.
        result: What came of it.
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
    """The view was made smaller by an entry of the log: a trigger fired before the model was asked, or its request was too long.

    Attributes:
        tokens_before: The size of the view before, in tokens as estimated.
        tokens_after: Its size now.
        policy: The policy that made the plan.
        trigger: The name of what it was made for: `tokens`, `events`, `idle`, `overflow`.
        why: Why that fired, in one clause.
        summarizer: The model that was asked for a summary, or empty.
        refused: Why there is no summary although one was asked for; empty where there is, or none was.
        usages: What the answers of that model read and wrote.
    """

    tokens_before: int
    tokens_after: int
    policy: str
    trigger: str = ""
    why: str = ""
    summarizer: str = ""
    refused: str = ""
    usages: tuple[Usage, ...] = ()
    type: Literal["compacted"] = field(default="compacted", init=False)


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A block that the provider refuses was set aside by an entry of the log, and the model is asked again without it.

    Attributes:
        handle: The block; `recall` gives it, and `dialog.lift_quarantine` shows it again.
        reason: What the provider said.
    """

    handle: str
    reason: str
    type: Literal["quarantined"] = field(default="quarantined", init=False)


@dataclass(frozen=True, slots=True)
class DecisionAwaited:
    """Calls wait for a human's decision."""

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
    | Asking
    | Delivered
    | CallStarting
    | CallProgress
    | CallEnded
    | AnswerRefused
    | Retrying
    | Compacted
    | Quarantined
    | DecisionAwaited
    | TurnFinished
)
"""Everything that `Agent.stream` yields."""
