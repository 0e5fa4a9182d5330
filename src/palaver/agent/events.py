"""The events of a turn, from models and from the loop: one closed union, distinguished by `type`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from palaver.errors import ProviderError
from palaver.messages import Message, ToolCallContent, ToolResultContent, Usage
from palaver.providers import BlockEvent, End, TextDelta, ThinkingDelta, ToolCallDelta, UsageEvent
from palaver.tools import Progress
from palaver.wire import Request


@dataclass(frozen=True, slots=True)
class TurnStarting:
    """A turn begins or continues: always the first event.

    Attributes:
        trace: The `Trace`.
        model: The model.
        provider: The provider's name, or empty.
        tools: The names of the declared tools.
    """

    trace: Any
    model: str = ""
    provider: str = ""
    tools: tuple[str, ...] = ()
    type: Literal["turn_starting"] = field(default="turn_starting", init=False)


@dataclass(frozen=True, slots=True)
class Asking:
    """The model is about to be asked. This, and the model's view, is already durable."""

    request: Request
    type: Literal["asking"] = field(default="asking", init=False)


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message that arrived during the turn is now part of the conversation."""

    message: Message
    type: Literal["delivered"] = field(default="delivered", init=False)


@dataclass(frozen=True, slots=True)
class CallStarting:
    """A tool call is about to run. This is already durable."""

    call: ToolCallContent
    type: Literal["call_starting"] = field(default="call_starting", init=False)


CallProgress: TypeAlias = Progress
"""A tool reports progress."""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A tool call has its result. This is already durable.

    Attributes:
        call: The call.
        result: Its result.
        ending: How it ended: a `palaver.tools.Ending`, `unknown` or `given_up`.
        seconds: The duration.
    """

    call: ToolCallContent
    result: ToolResultContent
    ending: str = "done"
    seconds: float = 0.0
    type: Literal["call_ended"] = field(default="call_ended", init=False)


@dataclass(frozen=True, slots=True)
class AnswerRefused:
    """An answer did not fit the prompt's declaration. The model is asked again; discard its streamed text.

    Attributes:
        message: The answer.
        error: The reason.
    """

    message: Message
    error: str
    type: Literal["answer_refused"] = field(default="answer_refused", init=False)


@dataclass(frozen=True, slots=True)
class Retrying:
    """The provider failed and is asked again; discard its streamed text.

    Attributes:
        error: The failure.
        wait: Seconds until the retry.
    """

    error: ProviderError
    wait: float = 0.0
    type: Literal["retrying"] = field(default="retrying", init=False)


@dataclass(frozen=True, slots=True)
class Compacted:
    """The policy's plan was committed as an entry of the log. The view is smaller from now on.

    Attributes:
        tokens_before: The size of the view before, in tokens.
        tokens_after: Its size now.
        policy: The policy that made the plan.
        trigger: The reason: `limit`, `overflow`, or the name of a trigger.
        summarizer: The model that wrote a summary, or empty.
        usages: The usage of that model.
        summary: The running summary, the new one or an older one that stays; empty if there is none.
        restored: The files that were read again.
    """

    tokens_before: int
    tokens_after: int
    policy: str
    trigger: str = ""
    summarizer: str = ""
    usages: tuple[Usage, ...] = ()
    summary: str = ""
    restored: tuple[str, ...] = ()
    type: Literal["compacted"] = field(default="compacted", init=False)


@dataclass(frozen=True, slots=True)
class DecisionAwaited:
    """Calls wait for a person's decision."""

    calls: tuple[ToolCallContent, ...]
    type: Literal["decision_awaited"] = field(default="decision_awaited", init=False)


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn ended, with or without an answer: always the last event.

    Attributes:
        trace: The `Trace`.
    """

    trace: Any
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
