"""A provider with scripted answers: for tests, demonstrations, and programs that run without a key.

The JSON form is a list of answers, or an object with the list under `answers`. An answer is a string, its text, or an object:

    {"thinking": "…", "text": "…", "tool_calls": [{"name": "…", "arguments": {…}, "id": "…"}],
     "usage": {…}, "stop_reason": "…", "error": {"kind": "rate", "message": "…", "retry_after": 2}}

All keys are optional. Arguments that are a string are the model's own words, valid JSON or not. An error is raised after the rest of its
answer, as when a connection breaks. `contents` lists blocks in palaver's own format, instead of thinking, text and calls.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from palaver.errors import ContextOverflow, InvalidInput, PalaverError, ProviderError, RateLimited
from palaver.ids import derive_id, new_message_id
from palaver.messages import AssistantMessage, StopReason, TextContent, ThinkingContent, ToolCallContent
from palaver.messages.value import own_error
from palaver.providers.assembly import Assembly, events_of
from palaver.providers.client import streamed
from palaver.providers.provider import End, Event, UsageEvent
from palaver.providers.registry import profile as profile_of
from palaver.wire import Profile, Request

Script: TypeAlias = Iterable[object] | Callable[[Request], object]
"""Answers in order, or a function that answers each request."""


class ScriptedProvider:
    """Answers each request with the next answer of a script.

    An answer is a text, an AssistantMessage, an object in the form above, an exception to raise, or a function of
    the request that returns one of these (a coroutine function may). A script that is one function answers every request.

    Attributes:
        requests: The requests received, oldest first.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        profile: str | Profile = "openai-chat",
        chunk: int = 8,
    ) -> None:
        """Set the script.

        Args:
            script: The answers. An iterable is read only as far as needed.
            name: The provider's name.
            profile: The profile of its requests, or the profile's name.
            chunk: Characters of a delta when a request asks for a stream.
        """
        self.requests: list[Request] = []
        self._name = name
        self._profile = profile
        self._chunk = chunk
        self._script: Callable[[Request], object] | None = script if callable(script) else None
        self._answers: Iterator[object] = iter(()) if callable(script) else iter(script)

    @property
    def name(self) -> str:
        """The name that errors and messages use."""
        return self._name

    def profile_for(self, model: str) -> Profile:
        """Return the profile to compile requests for a model with."""
        return profile_of(self._profile, model) if isinstance(self._profile, str) else self._profile

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the events of the next answer.

        Raises:
            ProviderError: The script raises it; or no answer is left, with kind `script`.
        """
        self.requests.append(request)
        answer = await self._next(request)
        assembly = Assembly(model=request.model, provider=self._name)
        for event in self._events(answer, request):
            if isinstance(event, End) and answer.error is not None:
                break
            assembly.add(event)
            yield event
        if answer.error is not None:
            raise self._completed(answer.error, assembly.partial if answer.message is not None else None, request)

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

    async def _next(self, request: Request) -> ScriptedAnswer:
        given: Any = self._script or next(self._answers, _NONE)
        if given is _NONE:
            raise ProviderError(
                f"The script has no answer for request {len(self.requests)}.",
                kind="script",
                provider=self._name,
                model=request.model,
                hint="Add an answer to the script, or check why the model was asked again.",
            )
        while callable(given):
            given = given() if isinstance(given, type) and issubclass(given, BaseException) else given(request)
            if inspect.isawaitable(given):
                given = await given
        return _read_answer(given)

    def _events(self, answer: ScriptedAnswer, request: Request) -> Iterator[Event]:
        if answer.message is None:
            return
        yield from events_of(answer.message, self._chunk if streamed(request) else 0)
        if answer.message.usage:
            yield UsageEvent(answer.message.usage)
        yield End(self._signed(answer.message, request))

    def _signed(self, message: AssistantMessage, request: Request) -> AssistantMessage:
        """Return a message with model and provider, if the script does not set them."""
        missing = {
            key: value
            for key, value in (("model", request.model), ("provider", self._name))
            if not getattr(message, key, None)
        }
        return message.model_copy(update=missing) if missing else message

    def _completed(self, error: BaseException, partial: AssistantMessage | None, request: Request) -> BaseException:
        """Return a scripted error with the facts of the request; any other exception unchanged."""
        if isinstance(error, ProviderError):
            error.provider = error.provider or self._name
            error.model = error.model or request.model
            error.partial = error.partial if partial is None else partial
        return error


_NONE = object()


# --- scripts -----------------------------------------------------------------------------------------------------------

_ID_DIGITS = 24


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """One answer of a script.

    Attributes:
        message: The model's message, or None.
        error: The exception raised after it, or None.
    """

    message: AssistantMessage | None = None
    error: BaseException | None = None


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _ScriptedCall(_Spec):
    """A tool call of a scripted answer."""

    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""


class _Failure(_Spec):
    """An error of a scripted answer."""

    kind: Literal["auth", "model", "refused", "overflow", "rate", "down", "broken"] = "down"
    message: str = ""
    status: int | None = None
    code: str = ""
    retry_after: float | None = None
    retryable: bool | None = None
    limit: int | None = None
    asked: int | None = None

    def error(self) -> ProviderError:
        """Return the error."""
        message = self.message or f"The script raises an error of kind {self.kind!r}."
        facts: dict[str, Any] = self.model_dump(include={"status", "code", "retry_after", "retryable"})
        if self.kind == "overflow":
            return ContextOverflow(message, limit=self.limit, asked=self.asked, **facts)
        if self.kind == "rate":
            return RateLimited(message, **facts)
        return ProviderError(message, kind=self.kind, **facts)


class _Scripted(_Spec):
    """An answer in the JSON form."""

    thinking: str = ""
    text: str = ""
    tool_calls: list[_ScriptedCall] = []
    contents: list[Any] | None = None
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None
    response_id: str | None = None
    metadata: dict[str, Any] | None = None
    error: Annotated[
        _Failure | None, BeforeValidator(lambda error: {"kind": error} if isinstance(error, str) else error)
    ] = None

    def answer(self) -> ScriptedAnswer:
        """Return the answer."""
        said = self.model_fields_set & {"thinking", "text", "tool_calls", "contents"}
        if not said and self.error is None:
            raise InvalidInput("The answer is empty.", hint="Add 'text', 'tool_calls' or 'error'.")
        return ScriptedAnswer(self._message() if said else None, None if self.error is None else self.error.error())

    def _message(self) -> AssistantMessage:
        message_id = new_message_id()
        blocks: list[Any] = [
            kind(text) for kind, text in ((ThinkingContent, self.thinking), (TextContent, self.text)) if text
        ]
        for number, call in enumerate(self.tool_calls):
            fresh_id = f"call_{derive_id(message_id, str(number))[:_ID_DIGITS]}"
            blocks.append(ToolCallContent(call.id or fresh_id, call.name, args=call.arguments))
        fields = self.model_dump(include={"usage", "response_id", "metadata"}, exclude_none=True)
        message = AssistantMessage(id=message_id, contents=blocks if self.contents is None else self.contents, **fields)
        reason = self.stop_reason or (StopReason.TOOL_CALLS if message.is_function_call else StopReason.STOP)
        return message.model_copy(update={"stop_reason": reason})


def read_script(path: str | Path) -> tuple[ScriptedAnswer, ...]:
    """Read a script from a JSON file.

    Raises:
        InvalidInput: The file does not exist or is not a script; the error names the answer.
    """
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"The script {str(path)!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidInput(f"The script {str(path)!r} is not valid JSON: {error}.") from error
    answers = read.get("answers") if isinstance(read, dict) else read
    if not isinstance(answers, list):
        raise InvalidInput(
            f"The script {str(path)!r} is not a list of answers, nor an object with a list under 'answers'."
        )
    return tuple(_numbered(path, number, answer) for number, answer in enumerate(answers, start=1))


def _numbered(path: str | Path, number: int, answer: object) -> ScriptedAnswer:
    try:
        return _read_answer(answer)
    except PalaverError as error:
        raise InvalidInput(f"Answer {number} of {str(path)!r}: {error.message}", hint=error.hint) from error


def _read_answer(answer: object) -> ScriptedAnswer:
    """Read one answer: a ScriptedAnswer, a message, an exception, a text, or an object in the JSON form.

    Raises:
        InvalidInput: It is none of these.
    """
    match answer:
        case ScriptedAnswer():
            return answer
        case AssistantMessage():
            return ScriptedAnswer(answer)
        case BaseException():
            return ScriptedAnswer(error=answer)
        case str() | Mapping():
            fields = {"text": answer} if isinstance(answer, str) else dict(answer)
            try:
                return _Scripted.model_validate(fields).answer()
            except ValidationError as error:
                raise InvalidInput(own_error("scripted answer", error).message) from error
        case _:
            raise InvalidInput(
                f"A {type(answer).__name__} is not an answer of a script.", hint="Pass a text, a message or an object."
            )
