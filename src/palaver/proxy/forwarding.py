"""Forwarding: each request goes to its vendor as it came, and the answer comes back as the vendor sends it, piece by piece."""

from __future__ import annotations

import sys
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import anyio
import httpx
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from palaver.proxy.answers import BROKEN, CLIENT_LEFT, MOST_KEPT, AnswerCopy
from palaver.proxy.recorder import ProxiedCall
from palaver.proxy.recording import RecorderThread
from palaver.proxy.routes import Headers, VendorRoute, keys, passed, readable, route, session_named

HOST = "127.0.0.1"
NAMES = (HOST, "localhost", "[::1]")
"""The hosts that a request may name. A page of another name that resolves to this machine is refused (DNS rebinding)."""

NOT_RECORDED = "palaver-not-recorded"
"""The header of an answer that says why its call, or the one before, is not recorded."""

MENDED = "palaver-mended"
"""The header of an answer that says what was changed in its request, or why it was not."""

_LONGEST = 4096
"""The most characters of such a header; all changes are in the log."""

_TOO_LARGE = f"The request is larger than {MOST_KEPT >> 20} MB."

_BASE_URL = (
    f"This proxy answers requests to {HOST} only. Programs need its address as their base URL: it is no HTTP proxy."
)

_OF_BODY = frozenset({b"content-length", b"content-encoding"})
"""Headers that no longer hold for a body that was mended."""


class _BrokenOff(Exception):
    """The vendor's connection broke in the middle of an answer: the client's breaks, too."""


class _Forwarded(NamedTuple):
    """A request.

    Attributes:
        method: The method.
        path: The path and query, as they were sent.
        headers: The headers.
        route: Where it goes.
        call: The call that is recorded, or None.
    """

    method: str
    path: str
    headers: Headers
    route: VendorRoute
    call: ProxiedCall | None


class Proxy:
    """An ASGI application that forwards all requests.

    Attributes:
        recording: What records the calls.
    """

    def __init__(self, client: httpx.AsyncClient, recording: RecorderThread, to: str = "") -> None:
        """Forward through a client.

        Args:
            client: Sends the requests. It must not follow redirects.
            recording: Records the calls.
            to: Where all requests go; empty for the vendor to whom a request belongs.
        """
        self.recording = recording
        self._client = client
        self._to = to

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward one request, until its answer is sent or its client leaves."""
        if scope["type"] != "http":
            return
        if problem := _problem(scope):
            await problem(scope, receive, send)
            return
        try:
            await self._forward(scope, receive, send)
        except _BrokenOff:
            raise
        except Exception:  # a defect may raise anything
            traceback.print_exc(file=sys.stderr)
            raise

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = list(scope["headers"])
        path = scope["raw_path"].decode("latin-1")
        query: bytes = scope["query_string"]
        body, rest = await _received(receive)
        if body is None:
            return
        way = route(scope["method"], path, headers, self._to)
        call = None
        if way.api and rest:
            self.recording.failed(_TOO_LARGE, lasting=False)
        elif way.api:
            call = await self._call(way, body, headers, query)
        asking = _Forwarded(
            scope["method"], path + ("?" + query.decode("latin-1") if query else ""), headers, way, call
        )
        broken = False
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            if not rest:
                group.start_soon(watch)
            broken = await self._answer(asking, self._content(asking, body, receive if rest else None), send)
            group.cancel_scope.cancel()
        if broken:
            raise _BrokenOff

    async def _call(self, way: VendorRoute, body: bytes, headers: Headers, query: bytes) -> ProxiedCall:
        """Return the call that a request makes, mended where that is asked for."""
        call = ProxiedCall(
            way.api,
            body,
            way.model,
            way.streams,
            session=session_named(headers),
            keys=keys(headers, query),
            encoding=dict(headers).get(b"content-encoding", b"").decode("latin-1"),
        )
        if self.recording.mends:
            call.mended = await self.recording.mended(call)
        return call

    def _content(self, asking: _Forwarded, body: bytes, rest: Receive | None) -> bytes | AsyncIterator[bytes]:
        """Return what is sent to the vendor. A call is recorded when that is done: while the vendor thinks, no answer waits for the recorder."""
        call = asking.call
        if call is not None:
            mended = call.mended and call.mended.body
            return _pieces(mended or body, rest, lambda: self.recording.begin(call))
        return body if rest is None else _pieces(body, rest, lambda: None)

    async def _answer(self, asking: _Forwarded, content: bytes | AsyncIterator[bytes], send: Send) -> bool:
        """Send a request on and its answer back, and return whether the vendor's connection broke in the middle of it."""
        headers, call, copy = passed(asking.headers), asking.call, _Copying()
        if call is not None:
            headers = readable(headers, self._client.headers["accept-encoding"])
            headers = _measured(headers, call)
        request = httpx.Request(asking.method, f"{asking.route.base}{asking.path}", headers=headers, content=content)
        try:
            response = await self._client.send(request, stream=True)
            try:
                await _passed_back(response, copy, self._notes(asking), send)
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()
        except httpx.HTTPError as error:
            if copy.status:
                copy.fault = BROKEN
                return True
            host = urlsplit(asking.route.base).netloc
            copy.fault = f"palaver proxy cannot reach {host}: {str(error) or type(error).__name__}"
            await _error(502, "upstream_unreachable", copy.fault, send)
        finally:
            if call is not None:
                self.recording.end(call, copy.made())
        return False

    def _notes(self, asking: _Forwarded) -> list[tuple[bytes, bytes]]:
        """Return the headers that say what is not as the client expects; none where all is."""
        why = self.recording.fault
        if asking.route.api and asking.call is None:
            why = _TOO_LARGE
        mended = None if asking.call is None else asking.call.mended
        changes = "" if mended is None else "; ".join(mended.changes)
        said = ((NOT_RECORDED, why), (MENDED, changes))
        return [
            (name.encode(), " ".join(text.split()).encode("ascii", "replace")[:_LONGEST]) for name, text in said if text
        ]


async def _pieces(begun: bytes, rest: Receive | None, sent: Callable[[], None]) -> AsyncIterator[bytes]:
    """Yield the body of a request: what came, and the rest while it arrives; then call `sent`."""
    yield begun
    while rest is not None:
        message = await rest()
        if message["type"] == "http.disconnect":
            raise httpx.ReadError("The client left while it sent its request.")
        yield message.get("body", b"")
        if not message.get("more_body"):
            break
    sent()


def _measured(headers: list[tuple[bytes, bytes]], call: ProxiedCall) -> list[tuple[bytes, bytes]]:
    """Return the headers of a call with the length of its body: it may have arrived in chunks, or be mended."""
    body = call.mended and call.mended.body
    if body:
        headers = [(name, value) for name, value in headers if name not in _OF_BODY]
    known = any(name == b"content-length" for name, _ in headers)
    return headers if known else [*headers, (b"content-length", str(len(body or call.body)).encode())]


class _Copying:
    """A copy of an answer while it is passed on.

    Attributes:
        status: The status; 0 before the answer begins.
        headers: The headers, names in lower case.
        fault: Why it ended early. Until it has ended, the client could be the one that left.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.fault = CLIENT_LEFT
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= MOST_KEPT:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def made(self) -> AnswerCopy:
        body = None if self._size > MOST_KEPT else b"".join(self._pieces)
        return AnswerCopy(self.status, self.headers, body, self.fault)


async def _passed_back(
    response: httpx.Response, copy: _Copying, notes: Sequence[tuple[bytes, bytes]], send: Send
) -> None:
    """Send an answer to the client while it arrives.

    Raises:
        httpx.HTTPError: The vendor's connection broke.
    """
    copy.status, copy.headers = response.status_code, dict(response.headers)
    headers = [*passed((name.lower(), value) for name, value in response.headers.raw), *notes]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    async for piece in response.aiter_raw():
        copy.add(piece)
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    copy.fault = ""
    await send({"type": "http.response.body"})


async def _received(receive: Receive) -> tuple[bytes | None, bool]:
    """Return the body of a request, and whether there is more of it than may be kept; None where the client left before its end."""
    body = bytearray()
    while len(body) <= MOST_KEPT:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            return None, False
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body), False
    return bytes(body), True


def _problem(scope: Scope) -> JSONResponse | None:
    """Return the answer to a request that is not forwarded, or None."""
    hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
    origins = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"origin"]
    if len(hosts) != 1 or _name(hosts[0]) not in NAMES:
        return _told(403, "host_refused", _BASE_URL)
    pages = [urlsplit(origin).netloc for origin in origins if origin.startswith(("http://", "https://"))]
    if any(_name(page) not in NAMES for page in pages):
        return _told(403, "origin_refused", "This proxy answers no pages of other sites.")
    if any(name == b"upgrade" and value.lower() == b"websocket" for name, value in scope["headers"]):
        # Codex goes on with HTTP after this status only (openai/codex issue 43353)
        return _told(426, "websocket_refused", "palaver proxy forwards no WebSockets; send the request over HTTP.")
    if not scope["raw_path"].startswith(b"/"):
        return _told(400, "path_refused", "The path of a request begins with a slash.")
    return None


def _name(host: str) -> str:
    """Return a host without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _told(status: int, kind: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"type": kind, "message": message}}, status)


async def _error(status: int, kind: str, message: str, send: Send) -> None:
    response = _told(status, kind, message)
    await send({"type": "http.response.start", "status": status, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body})
