"""Ask a model for a dialog: the protocol that an agent calls, and its implementation for any provider."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from palaver.agent.events import Asking
from palaver.agent.turn import unfinished
from palaver.context import WorkingDialog
from palaver.errors import ContextOverflow, InvalidInput, ParseError, ProviderError
from palaver.messages import APITypes, InvokeCost, Message, StopReason
from palaver.messages.frozen import EMPTY
from palaver.prompts import Prompt
from palaver.providers import End, Event, Provider
from palaver.session import Dialog
from palaver.store.records import payloads_of
from palaver.tokens.pricing import cost_of
from palaver.tools import run_in_worker
from palaver.view import View
from palaver.wire import Call, Memo, Profile, Request
from palaver.wire import compile as compile_request

StreamHandler: TypeAlias = Callable[[Any], object]
"""Called with each event. An awaitable result is awaited; any other result is ignored."""

_CALL_FIELDS = frozenset(each.name for each in fields(Call)) - {"model", "parameters", "then"}


class WorkingCopy:
    """The dialog as one model call sees it. Invokers get it.

    Attributes:
        dialog: The dialog object.
        top_prompt: The prompt that governs the call.
        fallback: What a refusal left for the next model, as in a Call; None where no other is asked.
    """

    def __init__(self, dialog: Dialog, view: View, prompt: Prompt | None = None, memo: Memo | None = None) -> None:
        self.dialog = dialog
        self.top_prompt = prompt
        self.fallback: Mapping[str, Any] | None = None
        self._view = view
        self._memo = memo

    @property
    def dialog_id(self) -> str:
        """The dialog's id."""
        return self.dialog.dialog_id

    @property
    def owner(self) -> str:
        """The agent that owns the dialog."""
        return self.dialog.owner

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that the model sees, with instructions first."""
        return WorkingDialog(self._view).messages

    def view(self) -> View:
        """Return the view of the model."""
        return self._view

    def request(self, profile: Profile, model: str, **call: Any) -> Request:  # noqa: ANN401 - the fields of a Call
        """Compile the request for a provider.

        Raises:
            InvalidRequest: It breaks a rule of its provider, which is a bug in palaver.
        """
        made = Call(model=model, **{"fallback": self.fallback, **call})
        request = compile_request(
            self._view, profile, made, payloads_of(self.dialog.store, self.dialog.session_id), self._memo
        )
        request.check(as_history=True)  # a paused answer is sent back as it is, and the model continues it
        return request


@dataclass(frozen=True, kw_only=True)
class InvokeResult:
    """One answer of a model, and its request.

    Attributes:
        message: The answer, or None if there is none.
        raw_response: The provider's own answer, as the adapter returns it.
        model_args: The arguments of the request, besides the conversation.
        execution_errors: The errors of the answer, such as a parser's.
        request: The request that was sent, if the invoker reports it.
    """

    message: Message | None = None
    raw_response: Any = field(default=None, repr=False)
    model_args: Mapping[str, Any] = EMPTY
    execution_errors: tuple[BaseException, ...] = ()
    request: Request | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: everything but the request, which `dialog.calls` can rebuild."""
        return {**vars(self), "request": None}

    @property
    def has_errors(self) -> bool:
        """Whether the answer has errors."""
        return bool(self.execution_errors)

    @property
    def error_message(self) -> str:
        """The errors as text for the model; empty if there are none."""
        return "\n".join(
            error.message if isinstance(error, ParseError) else f"{type(error).__name__}: {error}"
            for error in self.execution_errors
        )

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of the answer. Dollars are estimated if the provider reports none."""
        answer = self.message
        return InvokeCost() if answer is None else cost_of(answer.usage, answer.model or "", answer.timestamp)


@runtime_checkable
class Invoker(Protocol):
    """Asks a model to continue a dialog.

    If the prompt's parser refuses an answer, return it with `execution_errors`. Raise only if the provider returns no complete answer.
    """

    async def invoke(  # noqa: PLR0913 - the parts of a call, all but two by keyword
        self,
        dialog: WorkingCopy,
        model: str,
        *,
        prompt: Prompt | None = None,
        model_args: Mapping[str, Any] = EMPTY,
        parser_args: Mapping[str, Any] | None = None,
        responder: str = "assistant",
        metadata: Mapping[str, Any] | None = None,
        api_type: APITypes | str | None = None,
        stream_handler: StreamHandler | None = None,
    ) -> InvokeResult:
        """Ask once.

        Args:
            dialog: The model's view of the dialog, including tools.
            model: The model.
            prompt: The prompt that governs the answer, with its parser, format and options.
            model_args: Fields of `palaver.wire.Call`, and the provider's own parameters.
            parser_args: Further arguments of the parser.
            responder: The name of the answer's sender.
            metadata: Stored with the answer.
            api_type: The provider's interface, if the invoker supports several.
            stream_handler: Called with `Asking` before the model is asked, and with each event of the answer. Without one the answer need
                not be streamed. If it raises before the model is asked, the call ends.

        Raises:
            ProviderError: The provider returned no complete answer.
        """
        ...


class ProviderInvoker:
    """Asks any provider: compiles the view, sends the request, waits for the complete answer, and checks it against the prompt.

    Attributes:
        provider: The provider.
    """

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    async def invoke(  # noqa: PLR0913 - the protocol's
        self,
        dialog: WorkingCopy,
        model: str,
        *,
        prompt: Prompt | None = None,
        model_args: Mapping[str, Any] = EMPTY,
        parser_args: Mapping[str, Any] | None = None,
        responder: str = "assistant",
        metadata: Mapping[str, Any] | None = None,
        api_type: APITypes | str | None = None,
        stream_handler: StreamHandler | None = None,
    ) -> InvokeResult:
        """Ask once; see `Invoker.invoke`."""
        asked = {"stream": stream_handler is not None, **model_args}  # a caller's own word wins
        fields = {name: asked.pop(name) for name in asked.keys() & _CALL_FIELDS}
        if prompt is not None:
            fields = {"format": prompt.answer, "provider_tools": prompt.addon_args, **fields}
        profile = self.provider.profile_for(model)
        request = await run_in_worker(partial(dialog.request, profile, model, parameters=asked, **fields))
        await _tell(stream_handler, Asking(request))
        end = await self._answer(request, stream_handler)
        message = end.message
        require_usable(message, self.provider.name, request.model)
        known: dict[str, Any] = {"metadata": {**message.metadata, **(metadata or {})}}
        if responder != "assistant":
            known["name"] = responder
        if api_type is not None:
            known["api_type"] = api_type
        errors: tuple[BaseException, ...] = ()
        if prompt is not None and not message.is_function_call and not unfinished(message):
            try:
                known["parsed"] = prompt.parse(message.text_content(), **(parser_args or {}))
            except InvalidInput:  # no answer can satisfy this parser: do not ask again
                raise
            except Exception as error:  # noqa: BLE001 - any exception of the caller's parser refuses the answer
                errors = (error,)
        return InvokeResult(
            message=message.model_copy(update=known),
            raw_response=end.raw,
            model_args=dict(model_args),
            execution_errors=errors,
            request=request,
        )

    async def _answer(self, request: Request, handler: StreamHandler | None) -> End:
        """Read the events, pass each to the handler, and return the last one, which has the complete answer."""
        end: End | None = None
        async with aclosing(self.provider.stream(request)) as events:
            async for event in events:
                await _tell(handler, event)
                end = event if isinstance(event, End) else end
        if end is None:
            raise ProviderError(
                "The answer stops before its end.",
                kind="broken",
                provider=self.provider.name,
                model=request.model,
                retryable=True,
            )
        return end


async def _tell(handler: StreamHandler | None, event: Event | Asking) -> None:
    if handler is not None:
        waiting = handler(event)
        if inspect.isawaitable(waiting):
            await waiting


_UNUSABLE: Mapping[StopReason, tuple[str, str, bool]] = {
    StopReason.RETRY: ("broken", "The model's answer cannot be used", True),
    StopReason.DEFECT: (
        "refused",
        "The request lacked what the provider wants back, which is a defect of palaver",
        False,
    ),
    StopReason.REFUSAL: ("declined", "The model refused to answer", False),
    StopReason.CONTENT_FILTER: ("filtered", "The provider's filter stopped the answer", False),
}
"""The stop reasons after which there is no answer: the kind of the error, what it says, and whether the same request may succeed."""


def require_usable(message: Message, provider: str, model: str) -> None:
    """Raise the error of an answer that is none.

    Raises:
        ContextOverflow: The window was full before the answer ended.
        ProviderError: The model refused, a filter stopped it, or it wrote what cannot be used; the error has the answer as its partial one.
    """
    word = message.metadata.get("stop_reason") or message.stop_reason
    facts: dict[str, Any] = {"provider": provider, "model": model, "code": str(word or ""), "partial": message}
    if message.stop_reason is StopReason.OVERFLOW:
        raise ContextOverflow("The model's context window was full before the answer ended.", **facts)
    unusable = None if message.stop_reason is None else _UNUSABLE.get(message.stop_reason)
    if unusable is not None:
        kind, what, retryable = unusable
        details = message.metadata.get("stop_details")
        said = details if isinstance(details, Mapping) else {}
        refused = (block for block in message.contents if block.model_extra.get("part_type") == "refusal")
        why = said.get("explanation") or "".join(str(getattr(block, "content", "")) for block in refused) or word
        other = said.get("recommended_model") if kind == "declined" else None
        hint = (
            f"The provider recommends {other}."
            if other
            else "Ask another model, or in other words."
            if kind == "declined"
            else ""
        )
        raise ProviderError(f"{what}: {why}.", kind=kind, retryable=retryable, hint=hint, **facts)


def require_invoker(given: object) -> None:
    """Raise InvalidInput unless the value has an async `invoke`."""
    invoke = getattr(given, "invoke", None)
    if not callable(invoke):
        hint = 'Pass a provider, or an object with `async def invoke(...)`; Agent(model="openai/gpt-5") finds the provider itself.'
        raise InvalidInput(f"llm_invoker is {given!r}.", hint=hint)
    if not inspect.iscoroutinefunction(invoke):
        raise InvalidInput(
            f"The invoke of {type(given).__name__} is not async.", hint="Write `async def invoke(...)`; see Invoker."
        )
