"""The values of a tool call: the function's context, its reply, and the outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from palaver.log import Handle
from palaver.messages import FunctionCall, ToolResultContent
from palaver.messages.frozen import EMPTY

Ending: TypeAlias = Literal[
    "done",
    "failed",
    "timeout",
    "repeated",
    "unknown_tool",
    "arguments",
    "unavailable",
    "unlinked",
]
"""How a call ended. The function ran only with the first three.

`done`: it returned. `failed`: it raised, or reported an error. `timeout`: it was abandoned; its effect is unknown.
`repeated`: the same call already has an answer. `unknown_tool`: no tool has the name.
`arguments`: they are not valid. `unavailable`: the tool is switched off. `unlinked`: the tool has no implementation.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A progress report of a running call.

    Attributes:
        call_id: The call.
        tool: The tool's name.
        message: What the tool is doing, for people; never sent to a model.
        done: How much is done, in the tool's own units, or None.
        total: How much there is to do, in the same units, or None.
    """

    call_id: str = ""
    tool: str = ""
    message: str = ""
    done: float | None = None
    total: float | None = None
    type: Literal["call_progress"] = field(default="call_progress", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The surroundings of a call.

    A function that annotates a parameter with this class receives one; the model never sees that parameter.

    Attributes:
        call_id: The id of the call.
        tool: The tool's name.
        dialog: The dialog of the call.
        agent: The agent that runs it.
        trace: The trace of the agent's call, to which a sub-agent adds its own.
        fence: The entry with which this process began or continued the turn, or None outside a turn. Of two processes the later one has the larger number in
            the dialog, so an effect outside that keeps the largest it saw can refuse a call of a process that was taken for dead.
        guard: Checks the limits of the agent's turn, against which the calls of sub-agents count, too; or None.
        tracer: Called with every event of the agent's turn, and of sub-agents without a tracer of their own; or None.
        deps: Objects that the program provides for tools: a database, a client, a user.
        on_progress: Called with each progress report, in the event loop's thread, or None.
    """

    call_id: str = ""
    tool: str = ""
    dialog: Any = None
    agent: Any = None
    trace: Any = field(default=None, repr=False, compare=False)
    fence: Handle | None = None
    guard: Any = field(default=None, repr=False, compare=False)
    tracer: Callable[[Any], object] | None = field(default=None, repr=False, compare=False)
    deps: Any = None
    on_progress: Callable[[Progress], None] | None = field(default=None, compare=False)
    stop: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether the call was abandoned. A function in a thread should check this and return."""
        return self.stop.is_set()

    def emit_progress(self, message: str = "", done: float | None = None, total: float | None = None) -> None:
        """Report progress. Does nothing after the call was abandoned."""
        if self.on_progress is not None and not self.cancelled:
            self.on_progress(Progress(call_id=self.call_id, tool=self.tool, message=message, done=done, total=total))


@dataclass(frozen=True, slots=True)
class ToolReply:
    """A result with details that a plain value cannot express.

    Attributes:
        content: The content for the model: any value that a tool may return.
        terminate: Whether the loop may stop without asking the model again, if every result of the batch agrees.
        is_error: Whether the content reports an error.
        metadata: For the program; never sent to a model.
    """

    content: Any = ""
    terminate: bool = False
    is_error: bool = False
    metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of one call. Every call has one, even if its tool failed.

    Attributes:
        result: The block that answers the call.
        function_call: The call with its outcome; later calls are compared with these to find repeats.
        seconds: How long the call took, without waiting for other calls.
        ending: How it ended.
    """

    result: ToolResultContent
    function_call: FunctionCall
    seconds: float = 0.0
    ending: Ending = "done"

    @property
    def error(self) -> str | None:
        """The error as text for the model, or None."""
        return self.function_call.error_message

    @property
    def executed(self) -> bool:
        """Whether the function ran, with or without success."""
        return self.ending in {"done", "failed", "timeout"}
