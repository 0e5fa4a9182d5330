"""What a tool may ask for besides its arguments: whose call it answers, whether to stop, and a way to say how far it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from palaver.messages import ToolCallContent

__all__ = ["CallContext", "Progress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a call is, as the tool tells it.

    Attributes:
        call_id: The call.
        tool: The tool's name.
        message: What it is doing, for a human; never sent to a model.
        done: How much is done, in units of the tool's own; None where it does not say.
        total: How much there is to do, in the same units; None where it is not known.
    """

    call_id: str = ""
    tool: str = ""
    message: str = ""
    done: float | None = None
    total: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The surroundings of a call. A function that annotates a parameter with this class gets one; the model never sees that parameter.

    In an isolated function `dialog`, `agent` and `deps` are None: they do not cross to another process.

    Attributes:
        call_id: The call that is answered.
        tool: The name it was called by.
        dialog: The dialog the call stands in, for programs that know its class.
        agent: The agent that calls.
        deps: Whatever the program wants its tools to have: a database, a client, a user.
        on_progress: What is told of progress, in the event loop's thread; None when nobody listens.
    """

    call_id: str = ""
    tool: str = ""
    dialog: Any = None
    agent: Any = None
    deps: Any = None
    on_progress: Callable[[Progress], None] | None = field(default=None, compare=False)
    stop: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more: a function in a thread should look at this and return."""
        return self.stop.is_set()

    def emit_progress(self, message: str = "", done: float | None = None, total: float | None = None) -> None:
        """Tell whoever listens how far the call is. After the call was cancelled nobody is told."""
        if self.on_progress is not None and not self.cancelled:
            self.on_progress(
                Progress(call_id=self.call_id, tool=self.tool, message=message, done=done, total=total),
            )

    def of(self, call: ToolCallContent) -> CallContext:
        """Give the context of one call: the same surroundings, and an end of its own."""
        return replace(self, call_id=call.id, tool=call.name, stop=threading.Event())
