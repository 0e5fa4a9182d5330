"""A provider with scripted answers: for tests, demonstrations, and programs that run without a key."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Any, TypeAlias

from palaver.errors import ProviderError
from palaver.messages import AssistantMessage
from palaver.models.assembly import Assembly, events_of
from palaver.models.client import streamed
from palaver.models.events import End, Event, UsageEvent
from palaver.models.script import ScriptedAnswer, read_answer
from palaver.wire import Profile, ProfileName, Request, profile

__all__ = ["Script", "ScriptedProvider"]

Script: TypeAlias = Iterable[object] | Callable[[Request], object]
"""Answers in order, or a function that answers each request."""


class ScriptedProvider:
    """Answers each request with the next answer of a script.

    An answer is a text, an AssistantMessage, an object in the form of :mod:`palaver.models.script`, an exception to raise, or a function of
    the request that returns one of these (a coroutine function may). A script that is one function answers every request.

    Attributes:
        requests: The requests received, oldest first.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        profile: ProfileName | Profile = "openai-chat",
        chunk: int = 8,
    ) -> None:
        """Set the script.

        Args:
            script: The answers. An iterable is read only as far as it is asked.
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
        return profile(self._profile, model) if isinstance(self._profile, str) else self._profile

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
        return read_answer(given)

    def _events(self, answer: ScriptedAnswer, request: Request) -> Iterator[Event]:
        if answer.message is None:
            return
        yield from events_of(answer.message, self._chunk if streamed(request) else 0)
        if answer.message.usage:
            yield UsageEvent(answer.message.usage)
        yield End(self._signed(answer.message, request))

    def _signed(self, message: AssistantMessage, request: Request) -> AssistantMessage:
        """Return a message with model and provider, where the script does not set them."""
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
