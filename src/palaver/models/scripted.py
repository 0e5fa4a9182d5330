"""A provider whose answers are written down beforehand: for tests, demonstrations, and programs tried out without a key."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from typing import Any, TypeAlias

import anyio

from palaver.errors import ProviderError, ScriptExhausted
from palaver.messages import AssistantMessage
from palaver.models.assembly import Assembly
from palaver.models.client import streamed
from palaver.models.events import End, Event, UsageEvent
from palaver.models.offline import Offline
from palaver.models.script import Answer, read_answer
from palaver.models.spoken import spoken
from palaver.wire import Profile, ProfileName, Request

__all__ = ["Script", "ScriptedProvider", "Sleep"]

Script: TypeAlias = Iterable[object] | Callable[[Request], object]
"""Answers in order, or a function that gives an answer to each request."""

Sleep: TypeAlias = Callable[[float], Awaitable[Any]]
"""Anything that waits a number of seconds, as :func:`anyio.sleep` does; tests inject their own."""


class ScriptedProvider(Offline):
    """Gives the answers of a script, one a request, in order.

    An answer is a text, an AssistantMessage, an object in the form of :mod:`palaver.models.script`, an exception, which is raised, or a
    function of the request that gives one of these (a coroutine function may). A script that is one function answers every request.

    Attributes:
        requests: The requests it got, oldest first.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        profile: ProfileName | Profile = "openai-chat",
        chunk: int = 8,
        start: int = 0,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        """Take a script.

        Args:
            script: The answers. Of an iterable no more is read than is asked for.
            name: Who it says it is.
            profile: The profile that its requests are compiled with, or its name.
            chunk: Characters of a delta where a request asks for an answer in pieces.
            start: Answers to pass over, which an earlier process has given.
            sleep: How it waits where an answer says that it comes late.
        """
        super().__init__(name, profile)
        self._chunk = chunk
        self._sleep = sleep
        self._script: Callable[[Request], object] | None = script if callable(script) else None
        self._answers: Iterator[object] = iter(()) if callable(script) else iter(script)
        self._start = start

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the events of the next answer.

        Raises:
            ScriptExhausted: There is none left.
            ProviderError: The script says so.
        """
        self.requests.append(request)
        answer = await self._next(request)
        if answer.delay:
            await self._sleep(answer.delay)
        assembly = Assembly(model=request.model, provider=self._name)
        for event in self._events(answer, request):
            if isinstance(event, End) and answer.error is not None:
                break
            assembly.add(event)
            yield event
        if answer.error is not None:
            raise self._failed(answer.error, assembly.partial if answer.message is not None else None, request)

    async def _next(self, request: Request) -> Answer:
        for _ in range(self._start):
            next(self._answers, None)
        self._start = 0
        given = self._script or next(self._answers, _NONE)
        if given is _NONE:
            raise ScriptExhausted(
                f"The script has no answer for request {len(self.requests)}.", provider=self._name, model=request.model
            )
        while callable(given):
            given = given() if _is_error(given) else given(request)
            if inspect.isawaitable(given):
                given = await given
        return read_answer(given)

    def _events(self, answer: Answer, request: Request) -> Iterator[Event]:
        if answer.message is None:
            return
        yield from spoken(answer.message, self._chunk if streamed(request) else 0)
        if answer.message.usage:
            yield UsageEvent(answer.message.usage)
        yield End(self._signed(answer.message, request))

    def _signed(self, message: AssistantMessage, request: Request) -> AssistantMessage:
        """Give a message with who said it, where the script does not say."""
        own = {"model": request.model, "provider": self._name}
        missing = {key: value for key, value in own.items() if not getattr(message, key, None)}
        return message.model_copy(update=missing) if missing else message

    def _failed(self, error: BaseException, partial: AssistantMessage | None, request: Request) -> BaseException:
        """Give the error of an answer with what is known here; any other exception as it is."""
        if isinstance(error, ProviderError):
            error.provider = error.provider or self._name
            error.model = error.model or request.model
            error.partial = error.partial if partial is None else partial
        return error


def _is_error(given: object) -> bool:
    return isinstance(given, type) and issubclass(given, BaseException)


_NONE = object()
