"""The common part of the adapters for vendors' clients: one client per event loop, and the mapping of exceptions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from json import JSONDecodeError
from typing import Any, Generic, TypeVar

from anyio.lowlevel import RunVar

from palaver.errors import ProviderError
from palaver.messages import thaw
from palaver.messages.frozen import EMPTY
from palaver.providers.failures import described, failed, unreadable
from palaver.providers.models import own_columns
from palaver.providers.provider import Event
from palaver.providers.reader import AnswerReader
from palaver.providers.registry import APIS
from palaver.wire import Profile, Request

C = TypeVar("C")


class ClientProvider(ABC, Generic[C]):
    """A provider that uses a vendor's own client.

    The client is created on first use, so that a missing key fails the call and not the program's start. It does not retry. Connections
    belong to the event loop they were opened in, so each loop has its own client. A client that the caller passed is used unchanged, and the
    caller closes it.
    """

    def __init__(self, name: str, api: str, client: C | None) -> None:
        """Set the provider's name, the API of its requests, and the caller's client, if any."""
        self._name = name
        self._api = APIS[api]
        self._given = client
        self._made: RunVar[C | None] = RunVar(f"palaver.providers.{name}")

    @property
    def name(self) -> str:
        """The name that errors and messages use."""
        return self._name

    def profile_for(self, model: str) -> Profile:
        """Return the profile to compile requests for a model with."""
        return self._api.profile(model, {**own_columns(self._api.maker, model), **self._columns()})

    def _columns(self) -> Mapping[str, Any]:
        """Return what this client knows of every model better than the tables, by column."""
        return EMPTY

    async def listed(self) -> list[Mapping[str, Any]]:
        """Return the provider's list of models, as JSON.

        Raises:
            ProviderError: There is no complete answer.
        """
        try:
            return [model async for model in self._list()]
        except ProviderError:
            raise
        except Exception as error:  # the exceptions of transports have no common base
            known = self._mapped(error, "") or transport_error(error, self._name, "")
            if known is None:
                raise
            raise known from error

    def _list(self) -> AsyncGenerator[Mapping[str, Any], None]:
        """Yield the models of the provider's list."""
        raise ProviderError(f"{self._name} has no list of models.", kind="refused", provider=self._name)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask a model, and yield the events of its answer.

        Raises:
            ProviderError: There is no complete answer.
        """
        reader = self._reader(request)
        try:
            async with aclosing(self._answers(request)) as answers:
                async for data in answers:
                    for event in self._read(reader, data, request):
                        yield event
        except ProviderError:
            raise
        except Exception as error:  # the exceptions of transports have no common base
            known = self._error(error, reader, request)
            if known is None:
                raise
            if not (known.kind == "broken" and reader.complete):
                raise known from error
        yield reader.end()

    async def aclose(self) -> None:
        """Close the client of the running event loop. The provider may be asked again."""
        made = self._made.get(None)
        if made is not None:
            self._made.set(None)
            await self._close(made)

    def _client(self) -> C:
        client = self._given if self._given is not None else self._made.get(None)
        if client is None:
            client = self._make()
            self._made.set(client)
        return client

    def _read(self, reader: AnswerReader, data: object, request: Request) -> Iterator[Event]:
        if not isinstance(data, dict):
            raise reader.broken("The answer is not a JSON object.")
        return reader.piece(data) if streamed(request) else reader.whole(data)

    def _error(self, error: Exception, reader: AnswerReader, request: Request) -> ProviderError | None:
        """Return the error for a client's exception, or None for an exception that is not a failure of the call."""
        known = self._mapped(error, request.model) or transport_error(error, self._name, request.model)
        if known is None:
            return None
        if known.kind == "broken":
            return reader.broken(known.message)
        if known.status is None and known.retryable and reader.begun:
            return reader.broken("The connection broke in the middle of the answer.")
        known.partial = reader.assembly.partial if reader.assembly.partial.contents else None
        return known

    @abstractmethod
    def _make(self) -> C:
        """Create a client."""

    @abstractmethod
    async def _close(self, client: C) -> None:
        """Close a client that was created here."""

    def _reader(self, request: Request) -> AnswerReader:
        """Return a reader for the answer to a request."""
        return APIS[request.profile.name].reader(request, self._name)

    @abstractmethod
    def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        """Send a request, and yield the JSON of its answer: each piece of a stream, or the whole."""

    @abstractmethod
    def _mapped(self, error: Exception, model: str) -> ProviderError | None:
        """Return the error for a client's exception, or None for an exception of another package."""


def streamed(request: Request) -> bool:
    """Return whether a request asks for a stream. For Gemini, the address says so, not the body."""
    return request.call.stream if request.call is not None else bool(request.fields.get("stream"))


async def posted(client: Any, path: str, request: Request, stream_class: type) -> AsyncGenerator[object, None]:  # noqa: ANN401
    """Send a request as it was compiled through the client's own `post`, and yield the JSON of its answer.

    OpenAI's and Anthropic's clients share this method. It supplies address, key and transport, and adds nothing to the body. Headers that the
    client has anyway stay, next to those of the request.
    """
    client, body = client.with_options(max_retries=0), thaw(request.fields)
    own = {name.lower(): value for name, value in client.default_headers.items() if isinstance(value, str)}
    headers = {name: ",".join(filter(None, (own.get(name), value))) for name, value in request.headers.items()}
    options = {"headers": headers} if headers else {}
    if not streamed(request):
        yield await client.post(path, body=body, cast_to=object, options=options)
        return
    async with await client.post(
        path, body=body, cast_to=object, options=options, stream=True, stream_cls=stream_class
    ) as stream:
        async for data in stream:
            yield data


_TRANSPORT = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "h11", "h2", "anyio", "aiohttp"})
"""Packages whose exceptions mean that the connection failed. They are not imported: each client brings its own."""


def transport_error(error: BaseException, provider: str, model: str) -> ProviderError | None:
    """Return the error for a transport's exception, or None for any other exception."""
    if isinstance(error, JSONDecodeError | UnicodeError):
        return unreadable(provider, model, error)
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if isinstance(error, OSError | EOFError) or packages & _TRANSPORT:
        return failed(provider, described(error), model=model)
    return None
