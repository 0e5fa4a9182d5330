"""What came of a call, and what a tool may say besides its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from palaver.messages import FunctionCall, ToolResultContent
from palaver.messages.frozen import EMPTY

__all__ = ["Ending", "ToolOutcome", "ToolReply"]

Ending: TypeAlias = Literal[
    "done",
    "failed",
    "timeout",
    "crashed",
    "repeated",
    "unknown_tool",
    "arguments",
    "unavailable",
    "unlinked",
    "refused",
]
"""How a call ended. Only with the first four did the function run.

`done`: it returned. `failed`: it raised, or said itself that it failed. `timeout`: it was given up, and what it did is unknown.
`crashed`: its process ended under it. `repeated`: the same call was answered before. `unknown_tool`: no function has the name.
`arguments`: they cannot be read or do not fit. `unavailable`: declared, but not to be used now. `unlinked`: declared without an
implementation. `refused`: somebody said no.
"""


@dataclass(frozen=True, slots=True)
class ToolReply:
    """A result with what a plain value cannot say.

    Attributes:
        content: What the model is told: any value a tool may return.
        terminate: The loop need not ask the model again when every result of the batch says so.
        is_error: The content says what went wrong.
        metadata: For the program; never sent to a model.
    """

    content: Any = ""
    terminate: bool = False
    is_error: bool = False
    metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of one call. There is one for every call, whatever the tool did.

    Attributes:
        result: The block that answers the call.
        function_call: The call as a loop sees it, with its outcome; the next call's `earlier` is made of these.
        seconds: How long it took, waiting for other calls aside.
        ending: How it ended.
    """

    result: ToolResultContent
    function_call: FunctionCall
    seconds: float = 0.0
    ending: Ending = "done"

    @property
    def error(self) -> str | None:
        """What went wrong, in words for the model; None when nothing did."""
        return self.function_call.error_message

    @property
    def repeated(self) -> bool:
        """Whether the call was not executed because the same one was answered before."""
        return self.ending == "repeated"

    @property
    def executed(self) -> bool:
        """Whether the function was called, however that ended."""
        return self.ending in {"done", "failed", "timeout", "crashed"}
