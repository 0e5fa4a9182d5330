"""What an agent call returns: its answer, or its trace with answers, repairs, rounds of tools, and how it ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic, Literal, Self, TypeAlias

from pydantic import PrivateAttr
from typing_extensions import TypeVar  # typing.TypeVar has no default before Python 3.13

from palaver.agent.invoking import InvokeResult
from palaver.errors import ProviderError
from palaver.messages import AssistantMessage, FunctionCall, InvokeCost, Message, ToolCallContent
from palaver.prompts import Format

OutputT = TypeVar("OutputT", default=str)
"""The type of an agent's output: `Agent` alone is an `Agent[str]`."""


class Answer(AssistantMessage, Generic[OutputT]):
    """The message that an agent returns, with its `output`. It equals the message in the dialog and is stored as that."""

    _format: Format | None = PrivateAttr(default=None)
    _read: tuple[Any] | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, message: Message, output: Format | None) -> Self:
        """Return a message as an answer in a format; None for text."""
        answer = cls.from_dict(dict(message))
        answer._format = output  # noqa: SLF001 - its own class's
        return answer

    @property
    def output(self) -> OutputT:
        """The output: an instance of the type `Agent(output=...)`, or by default the text.

        Raises:
            ParseError: A tool ended the turn, and its result does not fit the type.
        """
        if self._read is None:
            text = self.text_content()
            self._read = (text if self._format is None else self._format.read(text),)
        output: OutputT = self._read[0]
        return output

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the answer; see `Message.model_copy`."""
        return self.of(super().model_copy(update=update, deep=deep), self._format)

    def __eq__(self, other: object) -> bool:
        """Compare the fields of the messages."""
        return isinstance(other, AssistantMessage) and dict(self) == dict(other)

    __hash__ = AssistantMessage.__hash__


# --- the trace -----------------------------------------------------------------------------------------------------------

State: TypeAlias = Literal[
    "initial", "exception", "interrupt", "llm_recall", "success", "failure", "interrupted", "waiting"
]
"""The state of a call, or how it ended (the last four).

`exception`: an answer is being repaired. `interrupt`: tools run. `llm_recall`: the model is asked again after its provider failed.
`interrupted`: it was cancelled. `waiting`: a person has to decide.
"""


@dataclass(kw_only=True)
class Trace:
    """The trace of one agent call in this process. The log has the rest.

    The keys of the mappings are rounds of tools, from 0. An answer before any result has the key 0, one after the first round's results the
    key 1. A tool call has the key of the answer that made it.

    Attributes:
        agent_name: The agent.
        dialog_id: The dialog.
        dialog: The dialog object.
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
    subagents: list[Trace] = field(default_factory=list)
    late: tuple[Message, ...] = ()
    resumed: bool = False
    _elsewhere: InvokeCost = field(default_factory=InvokeCost, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: everything but the dialog, which is in a store."""
        return {**vars(self), "dialog": None}

    def add_answer(self, step: int, result: InvokeResult) -> None:
        """Add an answer. Only the newest keeps its request, which contains the whole conversation; the log can rebuild the others."""
        earlier = next((results for results in reversed(self.invoke_traces.values()) if results), None)
        if earlier is not None:
            earlier[-1] = replace(earlier[-1], request=None)
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
        return tuple(chain.from_iterable(self.invoke_traces.values()))

    def add_cost(self, cost: InvokeCost) -> None:
        """Add what was paid for besides the answers in `invokes`: a summary, or an answer that was cut off."""
        self._elsewhere += cost

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of everything that the call paid for: all answers, those of sub-agents and refused ones, too, and summaries.

        `Session.cost` counts the same for a whole session.
        """
        nested = (trace.cost for trace in self.subagents)
        return sum((*(answer.cost for answer in self.invokes), *nested), self._elsewhere)

    @property
    def all_subagents(self) -> tuple[Trace, ...]:
        """The calls of sub-agents within it, and within those."""
        return tuple(chain.from_iterable((trace, *trace.all_subagents) for trace in self.subagents))

    def __repr__(self) -> str:
        calls = self.interrupts_count
        return f"<Trace {self.agent_name} {self.state}: answers={len(self.invokes)} tool_calls={calls}>"

    def to_dict(self) -> dict[str, Any]:
        """Return what a log line or a page would say of it, as JSON values."""
        return {
            "agent_name": self.agent_name,
            "dialog_id": self.dialog_id,
            "state": self.state,
            "exception_retries": {str(step): list(errors) for step, errors in self.exception_retries.items()},
            "interrupts": {str(step): [call.name for call in calls] for step, calls in self.interrupts.items()},
            "llm_recalls": {str(step): list(map(str, errors)) for step, errors in self.llm_recalls.items()},
            "invokes": len(self.invokes),
            "cost": {"tokens": self.cost.total_tokens, "dollars": self.cost.cost},
            "delivery": None if self.delivery is None else self.delivery.text_content(),
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
            "waiting": [call.id for call in self.waiting],
            "subagents": [trace.to_dict() for trace in self.subagents],
        }


def _count(by_step: Mapping[int, Sequence[object]]) -> int:
    return sum(map(len, by_step.values()))
