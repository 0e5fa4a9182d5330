"""The options of an agent, and the settings of one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Self, TypeAlias, TypedDict, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from palaver.agent.approvals import Approver
from palaver.agent.checkpoints import Checkpoint
from palaver.agent.invoking import Invoker, StreamHandler
from palaver.agent.limits import Limits, limits_of
from palaver.context import ContextManager
from palaver.context.summary import Summarizer
from palaver.context.triggers import Trigger
from palaver.errors import InvalidInput, require_known
from palaver.memory import CoreMemory, SubjectMemory
from palaver.messages import APITypes, Message
from palaver.providers.retry import Retry
from palaver.tokens import Budget
from palaver.tools import CallContext

_MOST_ROUNDS = 100
"""The maximum number of rounds of tools if `max_interrupt_steps` is 0; LLLM's figure."""

_MOST_PARALLEL = 8
"""The number of calls of one answer that run in parallel."""


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """The options of an agent, each by keyword: `Agent(..., max_interrupt_steps=20, summarizer=...)`.

    Attributes:
        approve: A function that decides at once about calls that need a decision. Without one they wait.
        decide_within: Seconds that a call waits for a decision; then it is refused. None for as long as it takes.
        max_exception_retry: The maximum number of repairs in a turn.
        max_interrupt_steps: The maximum number of rounds of tools in a turn; 0 means 100. 20 is the default of Vercel's AI SDK; that of
            the OpenAI Agents SDK is 10.
        max_llm_recall: The maximum number of retries when the provider fails; 0 follows `retry`.
        limits: What a turn, a session or a subject may spend; several as a list. A turn that reaches one ends with `AgentFailure`.
        retry: When and how often to retry; None for never.
        fallback_models: The models to ask in turn when one refuses to answer, by the provider's names. The dialog stays with the one that accepts.
        fallback: The policy to use if the context manager raises. By default the turn fails with `PolicyFailed`.
        summarizer: Writes a summary in addition to the record when exchanges leave the view. Default: none.
        triggers: When to compact although the view still fits its limit.
        recall: Whether the agent has the recall tools. By default, if a policy may leave something out and there is no format.
        memory: The core memory in its instructions, with tools to edit it; a `SubjectMemory` for one memory per subject.
        parallel_tools: Whether calls of one answer run in parallel.
        inherit_system_contract: Whether the system prompt's parser, tools and handler are in force after plain text.
        checkpoint: Keeps the state of the files when a turn begins, so that a rewind can bring them back, such as `git_checkpoint()`. If it
            fails, the log and a warning say so, and the turn goes on.
        api_type: The provider's interface, if the invoker supports several.
        stream_handler: Called with every event.
        tracer: Called with every event too, such as `palaver.agent.telemetry.Telemetry`.
        deps: Objects that tools need: a database, a client, a user.
    """

    approve: Approver | None = None
    decide_within: float | None = None
    max_exception_retry: int = 3
    max_interrupt_steps: int = 20
    max_llm_recall: int = 0
    limits: Limits | Sequence[Limits] | None = None
    retry: Retry | None = None
    fallback_models: Sequence[str] = ()
    fallback: str | None = None
    summarizer: Summarizer | None = None
    triggers: Sequence[Trigger] = ()
    recall: bool | None = None
    memory: CoreMemory | SubjectMemory | None = None
    parallel_tools: bool = True
    inherit_system_contract: bool = True
    checkpoint: Checkpoint | None = None
    api_type: APITypes | str | None = None
    stream_handler: StreamHandler | None = field(default=None, repr=False)
    tracer: StreamHandler | None = field(default=None, repr=False)
    deps: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidInput: A value is not of its declared type, or a number is too small.
        """
        require_types(AgentOptions, vars(self))
        for name in ("max_exception_retry", "max_interrupt_steps", "max_llm_recall"):
            if (number := getattr(self, name)) < 0:
                raise InvalidInput(f"{name} is {number!r}.", hint="Pass a whole number, at least 0.")
        if self.decide_within is not None and not self.decide_within > 0:
            raise InvalidInput(f"decide_within is {self.decide_within!r}.", hint="Pass seconds, or None.")

    @property
    def all_limits(self) -> tuple[Limits, ...]:
        """The limits as a tuple."""
        return limits_of(self.limits)

    @classmethod
    def of(cls, keywords: OptionKeywords) -> Self:
        """Return the options of a caller's keywords.

        Raises:
            InvalidInput: An option does not exist, or has a wrong value.
        """
        require_known("An agent has no option", keywords, [option.name for option in fields(cls)])
        return cls(**keywords)

    @property
    def rounds(self) -> int:
        """The maximum number of rounds of tools in a turn."""
        return self.max_interrupt_steps or _MOST_ROUNDS

    @property
    def parallel(self) -> int:
        """The number of calls of one answer that run in parallel."""
        return _MOST_PARALLEL if self.parallel_tools else 1


@cache
def _declared(owner: type) -> Mapping[str, Any]:
    return get_type_hints(owner)


@cache
def _adapter(declared: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type
    return TypeAdapter(declared, config=ConfigDict(arbitrary_types_allowed=True, strict=True))


def require_types(owner: type, given: Mapping[str, object]) -> None:
    """Require that values are of the types that a class declares. Nothing is converted: `True` is not a number.

    Args:
        owner: The class.
        given: Values by name.

    Raises:
        InvalidInput: One is not.
    """
    for name, value in given.items():
        try:
            _adapter(_declared(owner)[name]).validate_python(value)
        except ValidationError as error:
            reasons = dict.fromkeys(str(each["msg"]).replace("Input should", "it should") for each in error.errors())
            hint = f"Pass {owner.__annotations__[name]}: {', or '.join(reasons)}."
            raise InvalidInput(f"{name} is {value!r}.", hint=hint) from error


class OptionKeywords(TypedDict, total=False):
    """The fields of `AgentOptions` as keywords: type checkers cannot derive them from it."""

    approve: Approver | None
    decide_within: float | None
    max_exception_retry: int
    max_interrupt_steps: int
    max_llm_recall: int
    limits: Limits | Sequence[Limits] | None
    retry: Retry | None
    fallback_models: Sequence[str]
    fallback: str | None
    summarizer: Summarizer | None
    triggers: Sequence[Trigger]
    recall: bool | None
    memory: CoreMemory | SubjectMemory | None
    parallel_tools: bool
    inherit_system_contract: bool
    checkpoint: Checkpoint | None
    api_type: APITypes | str | None
    stream_handler: StreamHandler | None
    tracer: StreamHandler | None
    deps: Any


Conversation: TypeAlias = Sequence[Message | Mapping[str, Any]]
"""Messages that the caller keeps, or dicts in a provider's format."""


class CallArguments(TypedDict, total=False):
    """The keyword arguments of one call of an agent.

    Attributes:
        alias: The dialog's alias. Default: the active dialog.
        metadata: Stored with the answer.
        args: Arguments of this call, which override `model_args`.
        parser_args: Further arguments of the prompt's parser.
        take_over: Whether to continue a turn that another process began and did not end, because the caller knows that it runs no more: its queue
            runs one job a session. Should it run after all, its next step raises `Conflict`. Default: False.
        more: What this call allows in addition to the limit of the same `per`, for the turn, the session or the subject. The log records it.
        abandon: Whether to continue without deciding the waiting calls. The model reads that they were not run. Default: False.
        messages: A conversation that the caller keeps, answered in a new dialog. The last message is the user's.
        prompt_args: The variables of the system prompt, if the call opens a dialog: with `messages`, or the first of an agent.
    """

    alias: str | None
    metadata: Mapping[str, Any] | None
    args: Mapping[str, Any] | None
    parser_args: Mapping[str, Any] | None
    take_over: bool
    more: Limits | None
    abandon: bool
    messages: Conversation | None
    prompt_args: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """The settings of one call: the agent's, and the call's arguments.

    Attributes:
        agent: The agent.
        options: Its options.
        model: The model.
        invoker: Sends requests to the model.
        model_args: Arguments of the request.
        context_manager: Shapes each request, or None; with a budget alone the policy `palaver`.
        budget: The budget of one request, or None.
        fallback: The policy to use if the context manager raises, or None.
        call: The call's arguments.
        within: The tool call that a sub-agent answers, or None.
        instructions: The text that replaces the dialog's instructions; empty to keep them.
    """

    agent: Any
    options: AgentOptions
    model: str
    invoker: Invoker
    model_args: Mapping[str, Any]
    context_manager: ContextManager | None
    budget: Budget | None
    fallback: ContextManager | None
    call: CallArguments
    within: CallContext | None = None
    instructions: str = ""

    @property
    def tracer(self) -> StreamHandler | None:
        """The agent's tracer, or else that of the agent whose call this one is within."""
        return self.options.tracer or (None if self.within is None else self.within.tracer)

    @property
    def retrying(self) -> Retry:
        """When and how often to retry: `retry`, or else never. `max_llm_recall` sets the number."""
        policy = self.options.retry
        if self.options.max_llm_recall:
            return replace(policy or Retry(), attempts=self.options.max_llm_recall + 1)
        return policy or Retry(attempts=1)

    @property
    def provider(self) -> str:
        """The provider's name, or empty."""
        return str(getattr(getattr(self.invoker, "provider", None), "name", ""))
