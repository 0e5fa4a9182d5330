"""What the adapters over vendors' clients share: one client for each event loop, and what becomes of their exceptions."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from json import JSONDecodeError
from typing import Generic, Self, TypeVar
from weakref import WeakKeyDictionary

from palaver.errors import BrokenAnswer, ProviderError
from palaver.models.answers import AnswerReader
from palaver.models.events import Event
from palaver.models.failures import Fault, failed
from palaver.wire import Profile, ProfileName, Request, profile

__all__ = ["ClientProvider", "PerLoop", "streamed", "told", "transport_failed"]

C = TypeVar("C")


class PerLoop(Generic[C]):
    """One thing for each event loop: connections belong to the loop they were opened in, and break in another one."""

    def __init__(self, make: Callable[[], C], close: Callable[[C], Awaitable[object]]) -> None:
        self._make = make
        self._close = close
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, C] = WeakKeyDictionary()

    def get(self) -> C:
        """Give the one of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._made:
            self._made[loop] = self._make()
        return self._made[loop]

    async def aclose(self) -> None:
        """Close the one of the running loop; the next `get` makes a new one."""
        made = self._made.pop(asyncio.get_running_loop(), None)
        if made is not None:
            await self._close(made)


class ClientProvider(ABC, Generic[C]):
    """A provider over a vendor's own client.

    The client is made when it is first needed, so that a missing key is an error of the call and not of the program's start. It does
    not retry. A client that was passed in is used as it is, and is its owner's to close.
    """

    def __init__(self, name: str, profile: ProfileName, client: C | None) -> None:
        """Name the provider, the profile of its requests, and the client that was passed in."""
        self._name = name
        self._profile = profile
        self._given = client
        self._clients: PerLoop[C] = PerLoop(self._make, self._close)

    @property
    def name(self) -> str:
        """Who is asked, as errors and messages name it."""
        return self._name

    def profile_for(self, model: str) -> Profile:
        """Give the profile that requests for a model are compiled with."""
        return profile(self._profile, model)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask a model, and yield the events of its answer.

        Raises:
            ProviderError: There is no whole answer.
        """
        reader = self._reader(request)
        try:
            async with aclosing(self._answers(request)) as answers:
                async for data in answers:
                    for event in self._read(reader, data, request):
                        yield event
        except ProviderError:
            raise
        except Exception as error:  # what a client's transport raises is of no common class
            known = self._judged(error, reader, request)
            if known is None:
                raise
            if not (isinstance(known, BrokenAnswer) and reader.told):
                raise known from error
        yield reader.end()

    async def aclose(self) -> None:
        """Close the client that was made for the running loop. The provider may be asked again."""
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        """Give the provider itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self.aclose()

    def _client(self) -> C:
        return self._clients.get() if self._given is None else self._given

    def _read(self, reader: AnswerReader, data: object, request: Request) -> Iterator[Event]:
        if not isinstance(data, dict):
            raise reader.broken("The answer is no JSON object")
        return reader.piece(data) if streamed(request) else reader.whole(data)

    def _judged(self, error: Exception, reader: AnswerReader, request: Request) -> ProviderError | None:
        """Give palaver's error for a client's exception, or None for one that is no failure of the call."""
        partial = reader.assembly.partial
        begun = partial if partial.contents else None
        fault = self._fault(error, request.model)
        if fault is None:
            fault = transport_failed(error, self._name, request.model)
        if isinstance(fault, Fault):
            known = failed(fault)
            known.partial = begun
            return reader.broken("The connection broke in the middle of the answer") if _cut(known, reader) else known
        return reader.broken(fault) if isinstance(fault, str) else None

    @abstractmethod
    def _make(self) -> C:
        """Make a client."""

    @abstractmethod
    async def _close(self, client: C) -> None:
        """Close a client that was made here."""

    @abstractmethod
    def _reader(self, request: Request) -> AnswerReader:
        """Begin to read the answer to a request."""

    @abstractmethod
    def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        """Send a request, and yield the answer's JSON: a piece each, or the whole."""

    @abstractmethod
    def _fault(self, error: Exception, model: str) -> Fault | str | None:
        """Say what a client's exception means: a fault, in a text how the answer is broken, or None for what is not the client's own."""


def streamed(request: Request) -> bool:
    """Tell whether a request asks for its answer in pieces. Gemini's body does not say it: there it stands in the address."""
    return request.call.stream if request.call is not None else bool(request.body.get("stream"))


def _cut(known: ProviderError, reader: AnswerReader) -> bool:
    """Tell whether a failure without a status is an answer that was cut: something of it had come."""
    return known.status is None and known.retryable and reader.begun


# --- transport -----------------------------------------------------------------------------------------------------------

_TRANSPORT = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "h11", "h2", "anyio", "aiohttp"})
"""Packages whose exceptions mean that bytes did not get through. They are not imported: each client brings its own."""


def transport_failed(error: BaseException, provider: str, model: str) -> Fault | str | None:
    """Say what an exception of the transport means: a fault, in a text how the answer is broken, or None for any other exception."""
    if isinstance(error, JSONDecodeError | UnicodeError):
        return f"The answer is no JSON: {error}"
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if isinstance(error, OSError | EOFError) or packages & _TRANSPORT:
        return Fault(provider=provider, model=model, message=told(error))
    return None


def told(error: BaseException) -> str:
    """Give what an exception says, and the one it comes from: clients say «Connection error.» and keep the reason."""
    cause = error.__cause__ or error.__context__
    said = str(error) or type(error).__name__
    reason = "" if cause is None else str(cause) or type(cause).__name__
    return said if not reason or reason in said else f"{said} ({reason})"
