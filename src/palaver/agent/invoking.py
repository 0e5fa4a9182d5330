"""Asking a model on behalf of a dialog: the seam that an agent calls through, and the one implementation over any provider."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from palaver.agent.events import Asking
from palaver.agent.turn import paused
from palaver.errors import BrokenAnswer, InvalidInput, ParseError
from palaver.messages import APITypes, InvokeCost, Message
from palaver.messages.frozen import EMPTY
from palaver.models import End, Event, Provider
from palaver.models.retry import Retry
from palaver.prompts import Prompt
from palaver.session import Dialog
from palaver.tools.aside import aside
from palaver.wire import Call, Request

__all__ = ["InvokeResult", "Invoker", "ProviderInvoker", "StreamHandler"]

StreamHandler: TypeAlias = Callable[[Any], object]
"""Anything that is called with each event. What it gives is awaited where that can be done, and is nothing otherwise."""

_CALL_FIELDS = frozenset(each.name for each in fields(Call)) - {"model", "parameters", "then"}


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeResult:
    """One answer of a model, and how it was asked for.

    Attributes:
        message: What it said, or None where nothing came.
        raw_response: The provider's own answer, as its adapter gives it.
        model_args: What it was asked with beside the conversation.
        execution_errors: What was wrong with the answer: a parser's error, or several.
        request: The request that was sent, where the invoker says.
    """

    message: Message | None = None
    raw_response: Any = field(default=None, repr=False)
    model_args: Mapping[str, Any] = EMPTY
    execution_errors: tuple[BaseException, ...] = ()
    request: Request | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Give what can go to another process: everything but the request, which `dialog.invocations` gives back."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "request"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take it."""
        for name, value in {"request": None, **state}.items():
            object.__setattr__(self, name, value)

    @property
    def has_errors(self) -> bool:
        """Whether something was wrong with the answer."""
        return bool(self.execution_errors)

    @property
    def error_message(self) -> str:
        """What was wrong, in words for the model; empty when nothing was."""
        return "\n".join(map(_said, self.execution_errors))

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of the answer."""
        return InvokeCost() if self.message is None else self.message.cost


def _said(error: BaseException) -> str:
    return error.message if isinstance(error, ParseError) else f"{type(error).__name__}: {error}"


@runtime_checkable
class Invoker(Protocol):
    """Asks a model to go on with a dialog.

    The dialog is a working copy: whatever is done to it is thrown away. An answer that the prompt's parser does not take is a result with
    `execution_errors`; only a provider that gives no whole answer raises.
    """

    async def invoke(  # noqa: PLR0913 - the call's facts, all but two by keyword
        self,
        dialog: Dialog,
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
            dialog: The conversation as the model is to see it, tools included.
            model: The model.
            prompt: What governs the answer: its parser, format and options.
            model_args: What it is asked with: fields of `palaver.wire.Call`, and the provider's own parameters.
            parser_args: What the parser is called with beside the text.
            responder: The name of the answer's sender.
            metadata: What is to be kept with the answer.
            api_type: Which of a provider's interfaces, where an invoker has several.
            stream_handler: What is told that the model is asked, and of each event of its answer; without one the answer may come whole.
                What it raises before the model is asked ends the call.

        Raises:
            ProviderError: The provider gave no whole answer.
        """
        ...


def call_words(prompt: Prompt | None, args: Mapping[str, Any]) -> dict[str, Any]:
    """Give the words of a `palaver.wire.Call`: what a prompt asks for, over it the fields among some arguments, and the rest as parameters."""
    call = {name: value for name, value in args.items() if name in _CALL_FIELDS}
    options = {} if prompt is None else {"format": prompt.answer, "provider_tools": prompt.addon_args}
    parameters = {name: value for name, value in args.items() if name not in _CALL_FIELDS}
    return {"parameters": parameters, **options, **call}


class ProviderInvoker:
    """Asks any provider: compiles the dialog's view, sends it, waits for the end of the answer, and holds it to the prompt.

    Attributes:
        provider: Who is asked.
        retry: When the agent's loop asks again after a failure; None for what `max_llm_recall` says.
    """

    def __init__(self, provider: Provider, retry: Retry | None = None) -> None:
        """Take a provider."""
        self.provider = provider
        self.retry = retry

    async def invoke(  # noqa: PLR0913 - the protocol's
        self,
        dialog: Dialog,
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
        """Ask once; as `Invoker.invoke`."""
        asked = {"stream": stream_handler is not None, **model_args}
        request = await aside(partial(self._request, dialog, model, prompt, asked))
        await _tell(stream_handler, Asking(request))
        end = await self._answer(request, stream_handler)
        message = end.message
        known: dict[str, Any] = {"metadata": {**message.metadata, **(metadata or {})}}
        if responder != "assistant":
            known["name"] = responder
        if api_type is not None:
            known["api_type"] = api_type
        errors: tuple[BaseException, ...] = ()
        if prompt is not None and not message.is_function_call and not paused(message):
            try:
                known["parsed"] = prompt.parse(message.text_content(), **(parser_args or {}))
            except InvalidInput:  # no answer could please this parser: asking again would only cost
                raise
            except Exception as error:  # noqa: BLE001 - whatever a parser of the caller's raises, the answer is refused for it
                errors = (error,)
        return InvokeResult(
            message=message.model_copy(update=known),
            raw_response=end.raw,
            model_args=dict(model_args),
            execution_errors=errors,
            request=request,
        )

    def _request(self, dialog: Dialog, model: str, prompt: Prompt | None, args: Mapping[str, Any]) -> Request:
        profile = self.provider.profile_for(model)
        return dialog.request(profile, model, **call_words(prompt, args))

    async def _answer(self, request: Request, handler: StreamHandler | None) -> End:
        """Read the events to the last one, which has the whole answer, as its provider put it together; each is passed on as it comes."""
        end: End | None = None
        async with aclosing(self.provider.stream(request)) as events:
            async for event in events:
                await _tell(handler, event)
                end = event if isinstance(event, End) else end
        if end is None:
            raise BrokenAnswer("The answer stops before its end.", provider=self.provider.name, model=request.model)
        return end


async def _tell(handler: StreamHandler | None, event: Event | Asking) -> None:
    if handler is not None:
        waiting = handler(event)
        if inspect.isawaitable(waiting):
            await waiting
