"""Forwarding: each request goes to its vendor as it came, and the answer comes back as the vendor sends it, piece by piece."""

from __future__ import annotations

import sys
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
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
        body, rest = await _received(receive)
        if body is None:
            return
        way = route(scope["method"], scope["raw_path"].decode("latin-1"), scope["headers"], self._to)
        call = None
        if way.api and rest:
            self.recording.failed(_TOO_LARGE, lasting=False)
        elif way.api:
            call = await self._call(way, body, scope)
        request = self._request(way, scope, body, receive if rest else None, call)
        fault = _TOO_LARGE if way.api and rest else ""
        broken = False
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            if not rest:
                group.start_soon(watch)
            broken = await self._answer(request, call, fault, send)
            group.cancel_scope.cancel()
        if broken:
            raise _BrokenOff

    async def _call(self, way: VendorRoute, body: bytes, scope: Scope) -> ProxiedCall:
        """Return the call that a request makes, mended where that is asked for."""
        headers: Headers = scope["headers"]
        call = ProxiedCall(
            way.api,
            body,
            way.model,
            way.streams,
            session=session_named(headers),
            keys=keys(headers, scope["query_string"]),
            encoding=dict(headers).get(b"content-encoding", b"").decode("latin-1"),
        )
        if self.recording.mends:
            call.mended = await self.recording.mended(call)
        return call

    def _request(
        self, way: VendorRoute, scope: Scope, body: bytes, rest: Receive | None, call: ProxiedCall | None
    ) -> httpx.Request:
        """Return what is sent to the vendor. A call is recorded when that is done: while the vendor thinks, no answer waits for the recorder."""
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        url, headers = way.base + (scope["raw_path"] + query).decode("latin-1"), passed(scope["headers"])
        if call is None:
            content = body if rest is None else _pieces(body, rest, lambda: None)
            return httpx.Request(scope["method"], url, headers=headers, content=content)
        gone = _OF_BODY if call.sent is not body else frozenset({b"content-length"})
        headers = [
            *(
                (name, value)
                for name, value in readable(headers, self._client.headers["accept-encoding"])
                if name not in gone
            ),
            (b"content-length", str(len(call.sent)).encode()),  # it may have arrived in chunks, or be mended
        ]
        content = _pieces(call.sent, None, lambda: self.recording.begin(call))
        return httpx.Request(scope["method"], url, headers=headers, content=content)

    async def _answer(self, request: httpx.Request, call: ProxiedCall | None, fault: str, send: Send) -> bool:
        """Send a request on and its answer back, and return whether the vendor's connection broke in the middle of it."""
        copy = AnswerCopy(fault=CLIENT_LEFT)
        try:
            response = await self._client.send(request, stream=True)
            try:
                await _passed_back(response, copy, _notes(fault or self.recording.fault, call), send)
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()
        except httpx.HTTPError as error:
            if copy.status:
                copy.fault = BROKEN
                return True
            copy.fault = (
                f"palaver proxy cannot reach {request.url.netloc.decode()}: {str(error) or type(error).__name__}"
            )
            await _error(502, "upstream_unreachable", copy.fault, send)
        finally:
            if call is not None:
                self.recording.end(call, copy)
        return False


def _notes(fault: str, call: ProxiedCall | None) -> list[tuple[bytes, bytes]]:
    """Return the headers that say what is not as the client expects; none where all is."""
    changes = "; ".join(call.mended.changes) if call is not None and call.mended is not None else ""
    said = ((NOT_RECORDED, fault), (MENDED, changes))
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


async def _passed_back(
    response: httpx.Response, copy: AnswerCopy, notes: Sequence[tuple[bytes, bytes]], send: Send
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
