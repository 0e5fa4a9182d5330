"""The door: which requests are answered at all, and the headers of every response.

The server listens on this machine only, but any page that the user visits can send requests to it, and any program of another user can. The door
answers requests that name this server, come from its own page or from the address bar, and have the cookie that a one-time token was changed for.
"""

from __future__ import annotations

import json
import secrets
import sys
import traceback
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
LOGIN = "/api/login"
MOST_BYTES = 65_536
"""The largest body of a request."""

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
"""The headers of every response."""

_ASKING, _CHANGING = frozenset({"GET", "HEAD"}), frozenset({"POST"})
_ALLOWED = ", ".join(sorted(_ASKING | _CHANGING))
_AGAIN = "Run `palaver open` with the address of this page, and use the page that it opens."


def problem(status: int, kind: str, message: str, hint: str = "", **facts: Any) -> JSONResponse:  # noqa: ANN401 - JSON values
    """Return the response for an error."""
    return JSONResponse({"error": {"kind": kind, "message": message, "hint": hint, **facts}}, status)


class Door:
    """Admits requests to an application.

    Attributes:
        token: What the page sends once to log in.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        """Draw a new token and a new cookie.

        Args:
            app: What answers the requests that are admitted.
            port: Where the server listens.
        """
        self.token = secrets.token_urlsafe(32)
        self._app = app
        self._spent = False
        self._host = f"{HOST}:{port}"
        self._name = f"palaver_{port}"  # browsers send cookies to every port of a host
        self._cookie = secrets.token_hex(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it. An unexpected exception is printed, and the client learns no more than that there was one."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def headed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers.setdefault("Cache-Control", "no-store")
                headers.update(HEADERS)
            await send(message)

        try:
            await self._admitted(scope, receive, headed)
        except Exception:  # noqa: BLE001 - a defect may raise anything
            traceback.print_exc(file=sys.stderr)
            if not started:
                response = problem(
                    500, "Defect", "This is a defect of palaver.", "The terminal of `palaver open` has the details."
                )
                await response(scope, receive, headed)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path, headers = scope["method"], scope["path"], Headers(scope=scope)
        if not self._ours(headers, changing=method not in _ASKING):
            await problem(403, "Refused", "This request does not come from the explorer's page.")(scope, receive, send)
        elif method not in _ASKING | _CHANGING:
            response = problem(405, "Refused", f"There is no method {method} here.")
            response.headers["Allow"] = _ALLOWED
            await response(scope, receive, send)
        elif path.startswith("/api/") and path != LOGIN and not self._known(headers):
            await problem(401, "Unknown", "This page is not logged in.", _AGAIN)(scope, receive, send)
        elif method in _ASKING:
            await self._app(scope, receive, send)
        elif (body := await _body(receive)) is None:
            await problem(413, "TooLarge", f"The body of a request has at most {MOST_BYTES:,} bytes.")(
                scope, receive, send
            )
        elif path == LOGIN and method == "POST":
            await self._login(body)(scope, receive, send)
        else:
            await self._app(scope, _replayed(body, receive), send)

    def _ours(self, headers: Headers, *, changing: bool) -> bool:
        """Return whether a request names this server and comes from its page; one that may change something must prove it."""
        hosts, origins, sites = (headers.getlist(name) for name in ("host", "origin", "sec-fetch-site"))
        from_page = origins == [f"http://{self._host}"]
        if hosts != [self._host] or (origins and not from_page) or sites not in ([], ["none"], ["same-origin"]):
            return False
        return not changing or from_page or sites == ["same-origin"]

    def _known(self, headers: Headers) -> bool:
        """Return whether one of the cookies is ours."""
        pairs = (pair.strip().partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
        given = [value.encode() for name, _, value in pairs if name == self._name]
        return any(secrets.compare_digest(value, self._cookie.encode()) for value in given)

    def _login(self, body: bytes) -> Response:
        """Return the cookie for the token, once."""
        try:
            token = json.loads(body)["token"]
        except (ValueError, LookupError, TypeError, RecursionError):
            token = None
        if not isinstance(token, str):
            return problem(400, "InvalidInput", "A login is a JSON object with a token.")
        if not secrets.compare_digest(token.encode(errors="replace"), self.token.encode()) or self._spent:
            return problem(403, "Refused", "This address was used before.", _AGAIN)
        self._spent = True
        response = Response(status_code=204)
        response.set_cookie(self._name, self._cookie, path="/", httponly=True, samesite="strict")
        return response


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request, or None where it is too large or the client went away."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] != "http.request" or len(body) > MOST_BYTES:
            return None
        if not message.get("more_body"):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that repeats a body, then continues with the messages after it."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again
