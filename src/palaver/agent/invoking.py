"""Asking a model on behalf of a dialog: the protocol that an agent calls, and its one implementation over any provider."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from palaver.agent.events import Asking
from palaver.agent.turn import paused
from palaver.context.working import WorkingDialog
from palaver.errors import InvalidInput, NotFound, ParseError, ProviderError
from palaver.ids import BlobId
from palaver.messages import APITypes, InvokeCost, Message
from palaver.messages.frozen import EMPTY
from palaver.models import End, Event, Provider
from palaver.models.connect import PROVIDERS, connect_provider
from palaver.models.retry import Retry
from palaver.prompts import Prompt, Runtime, get_default_runtime
from palaver.session import Dialog
from palaver.tokens.pricing import cost_of
from palaver.tools import run_in_worker
from palaver.view import View
from palaver.wire import Call, Memo, Profile, Request
from palaver.wire import compile as compile_request

__all__ = [
    "InvokeResult",
    "Invoker",
    "ProviderInvoker",
    "StreamHandler",
    "build_invoker",
    "register_invoker",
]

StreamHandler: TypeAlias = Callable[[Any], object]
"""Called with each event. What it returns is awaited if it is awaitable, and ignored otherwise."""

_CALL_FIELDS = frozenset(each.name for each in fields(Call)) - {"model", "parameters", "then"}


class WorkingCopy:
    """The dialog as one model call sees it: what an invoker gets.

    Attributes:
        dialog: The dialog itself.
        top_prompt: The prompt that governs the call.
    """

    def __init__(self, dialog: Dialog, view: View, prompt: Prompt | None = None, memo: Memo | None = None) -> None:
        self.dialog = dialog
        self.top_prompt = prompt
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
        """What the model sees, as messages; instructions first."""
        return WorkingDialog(self._view).messages

    def view(self) -> View:
        """Return what the model sees."""
        return self._view

    def request(self, profile: Profile, model: str, **call: Any) -> Request:  # noqa: ANN401 - the fields of a Call
        """Compile the request for a provider.

        Raises:
            InvalidRequest: It breaks a rule of its provider: a defect of palaver.
        """
        store = self.dialog.store
        made = Call(model=model, **call)
        request = compile_request(self._view, profile, made, lambda digest: store.blob(BlobId(digest)), self._memo)
        request.check()
        return request


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeResult:
    """One answer of a model, and how it was asked for.

    Attributes:
        message: What it said, or None where nothing came.
        raw_response: The provider's own answer, as its adapter gives it.
        model_args: What it was asked with besides the conversation.
        execution_errors: What was wrong with the answer: a parser's error, or several.
        request: The request that was sent, where the invoker says.
    """

    message: Message | None = None
    raw_response: Any = field(default=None, repr=False)
    model_args: Mapping[str, Any] = EMPTY
    execution_errors: tuple[BaseException, ...] = ()
    request: Request | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return what can go to another process: everything but the request, which `dialog.calls` gives back."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "request"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in {"request": None, **state}.items():
            object.__setattr__(self, name, value)

    @property
    def has_errors(self) -> bool:
        """Whether something was wrong with the answer."""
        return bool(self.execution_errors)

    @property
    def error_message(self) -> str:
        """What was wrong, in words for the model; empty when nothing was."""
        return "\n".join(
            error.message if isinstance(error, ParseError) else f"{type(error).__name__}: {error}"
            for error in self.execution_errors
        )

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of the answer; estimated where the provider gave none."""
        answer = self.message
        return InvokeCost() if answer is None else cost_of(answer.usage, answer.model or "", answer.timestamp)


@runtime_checkable
class Invoker(Protocol):
    """Asks a model to continue a dialog.

    An answer that the prompt's parser refuses is a result with `execution_errors`; only a provider that gives no whole answer raises.
    """

    async def invoke(  # noqa: PLR0913 - the call's facts, all but two by keyword
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
            dialog: What the model is to see, tools included.
            model: The model.
            prompt: What governs the answer: its parser, format and options.
            model_args: What it is asked with: fields of `palaver.wire.Call`, and the provider's own parameters.
            parser_args: Further arguments of the parser.
            responder: The name of the answer's sender.
            metadata: Kept with the answer.
            api_type: Which of a provider's interfaces, where the invoker has several.
            stream_handler: Called before the model is asked, with `Asking`, and with each event of its answer; without one the answer may
                come whole. What it raises before the model is asked ends the call.

        Raises:
            ProviderError: The provider gave no whole answer.
        """
        ...


class ProviderInvoker:
    """Asks any provider: compiles what the model sees, sends it, waits for the whole answer, and checks it against the prompt.

    Attributes:
        provider: The provider.
        retry: When the loop asks again after a failure; None for what the agent's options say.
    """

    def __init__(self, provider: Provider, retry: Retry | None = None) -> None:
        self.provider = provider
        self.retry = retry

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
        """Ask once; as `Invoker.invoke`."""
        asked = {"stream": stream_handler is not None, **model_args}
        fields = {name: asked.pop(name) for name in asked.keys() & _CALL_FIELDS}
        if prompt is not None:
            fields = {"format": prompt.answer, "provider_tools": prompt.addon_args, **fields}
        profile = self.provider.profile_for(model)
        request = await run_in_worker(partial(dialog.request, profile, model, parameters=asked, **fields))
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
            except InvalidInput:  # no answer could satisfy this parser: asking again would only cost
                raise
            except Exception as error:  # noqa: BLE001 - whatever the caller's parser raises, the answer is refused for it
                errors = (error,)
        return InvokeResult(
            message=message.model_copy(update=known),
            raw_response=end.raw,
            model_args=dict(model_args),
            execution_errors=errors,
            request=request,
        )

    async def _answer(self, request: Request, handler: StreamHandler | None) -> End:
        """Read the events, pass each on, and return the last one, which has the whole answer."""
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


# --- invokers by name ----------------------------------------------------------------------------------------------------

Builder: TypeAlias = Callable[[dict[str, Any]], Invoker]
"""Builds an invoker from a configuration without its key `invoker`."""


def build_invoker(config: Mapping[str, Any] | str, *, runtime: Runtime | None = None) -> Invoker:
    """Build an invoker by name.

    Args:
        config: Its name, or a mapping with the name under `invoker`, a `retry` policy or its figures, and the provider's own arguments:
            `build_invoker({"invoker": "openai", "base_url": "..."})`.
        runtime: Whose registered invokers come before the providers; the default runtime when not given.

    Raises:
        NotFound: There is no invoker of this name; `close` has similar names.
        MissingExtra: The provider's package is not installed.
        InvalidInput: The configuration has a key that the invoker does not know.
    """
    rest = {"invoker": config} if isinstance(config, str) else dict(config)
    name = rest.pop("invoker", None)
    if not isinstance(name, str):
        raise InvalidInput("An invoker's configuration names it.", hint='Give {"invoker": "litellm"}.')
    runtime = runtime or get_default_runtime()
    known = (*runtime.invokers(), *PROVIDERS)
    if name not in known:
        raise NotFound(name, what="invoker", close=get_close_matches(name, known))
    try:
        if name in runtime.invokers():
            made: Invoker = runtime.get_invoker(name)(rest)
            return made
        retry = retry_of(rest.pop("retry", None))
        return ProviderInvoker(connect_provider(name, **rest), retry)
    except TypeError as error:
        raise InvalidInput(f"The invoker {name!r} cannot be built from {sorted(rest)}: {error}.") from error


def register_invoker(name: str, builder: Builder) -> Builder:
    """Register an invoker with the default runtime, and return its builder."""
    return get_default_runtime().register_invoker(name, builder, overwrite=True)


def retry_of(given: object) -> Retry | None:
    """Return a retry policy: as given, from a mapping of its figures, or from a number of retries.

    Raises:
        InvalidInput: It is something else.
    """
    if given is None or isinstance(given, Retry):
        return given
    if isinstance(given, Mapping):
        return Retry(**given)
    if isinstance(given, int) and not isinstance(given, bool):
        return Retry(attempts=given + 1)
    raise InvalidInput(f"retry is {given!r}.", hint="Give a Retry, a mapping of its figures, or a number of retries.")
