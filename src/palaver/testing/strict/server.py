"""A small HTTP server on this machine that answers as one API: it checks each request, refuses it or sends the next scripted answer."""

from __future__ import annotations

import json
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import unquote, urlsplit

from palaver.testing.strict.seal import Json

__all__ = ["Api", "HttpRequest", "NextAnswer", "Refused", "Reply", "Script", "Served", "StrictServer"]


class Refused(Exception):
    """A request that the API refuses: the status and the body of its answer."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(status, json.dumps(body))
        self.status, self.body = status, body


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as the server received it: header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NextAnswer:
    """What a model says next.

    Attributes:
        content: Blocks, items, parts or steps in the form of the API; a string is a text. The server adds ids and signatures.
        stop: Why the answer ends, in the word of the API; empty where the content says it.
        fields: Further fields of the answer, such as `stop_details`.
        cut: The number of events after which a stream breaks off.
    """

    content: Sequence[Json | str] = ()
    stop: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    cut: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server sends.

    Attributes:
        body: The answer.
        events: The events of the same answer as a stream; None where it was not asked for. An event without a name has only data.
        dropped: Bound content that the API withheld from the model, as it reports it.
        cut: The number of events after which the stream breaks off.
    """

    body: Json
    events: Sequence[tuple[str, Json | str]] | None = None
    dropped: Sequence[Json] = ()
    cut: int | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """A request, with its outcome."""

    asked: HttpRequest
    status: int
    body: Json
    dropped: Sequence[Json] = ()

    @property
    def message(self) -> str:
        """The text of the refusal, or empty."""
        error = self.body.get("error")
        return str(error.get("message", "")) if isinstance(error, dict) and self.status >= 400 else ""  # noqa: PLR2004


class Script:
    """The answers that a test wrote down, in order; after them a function, or the same short answer each time."""

    def __init__(self) -> None:
        self._answers: deque[NextAnswer] = deque()
        self._lock = threading.Lock()
        self.otherwise: Callable[[HttpRequest], NextAnswer] | None = None

    def add(self, *answers: NextAnswer | Sequence[Json | str] | str) -> None:
        """Append answers; a string is an answer with one text, a list the content of an answer."""
        with self._lock:
            self._answers.extend(map(as_answer, answers))

    def clear(self) -> None:
        """Forget the unused answers."""
        with self._lock:
            self._answers.clear()

    def next(self, asked: HttpRequest, usual: NextAnswer) -> NextAnswer:
        """Return the answer to a request; `usual` is the one where nothing is written down."""
        with self._lock:
            if self._answers:
                return self._answers.popleft()
        return self.otherwise(asked) if self.otherwise else usual


def as_answer(said: NextAnswer | Sequence[Json | str] | str) -> NextAnswer:
    """Return what a test wrote as an answer."""
    if isinstance(said, NextAnswer):
        return said
    return NextAnswer((said,) if isinstance(said, str) else tuple(said))


class Api(Protocol):
    """An API: it checks a request and answers it, or raises `Refused`."""

    def reply(self, asked: HttpRequest, script: Script) -> Reply:
        """Return the answer to a request."""
        ...

    def error(self, status: int, message: str) -> Json:
        """Return the body of an error."""
        ...


class StrictServer:
    """A server of one API on a free port of the loopback interface.

    ::

        with strict.anthropic() as server:
            server.answers([{"type": "thinking", "thinking": "hm"}, "Hello."])
            client = Anthropic(base_url=server.url, api_key="x")

    Without `with`, `ask` asks the same server without a network.
    """

    def __init__(self, api: Api, path: str = "") -> None:
        """Make a server of an API; `path` is the part of `url` after host and port."""
        self.api = api
        self.script = Script()
        self.served: list[Served] = []
        self.count = 0
        self._path = path
        self._http: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base URL for a client."""
        if self._http is None:
            raise RuntimeError("the server does not run: use it in a `with` statement")
        return f"http://127.0.0.1:{self._http.server_address[1]}{self._path}"

    @property
    def refused(self) -> list[Served]:
        """The requests that were refused."""
        return [served for served in self.served if served.status >= 400]  # noqa: PLR2004

    @property
    def dropped(self) -> list[Json]:
        """What the API withheld from the model in all requests, as it reported it."""
        return [dropped for served in self.served for dropped in served.dropped]

    def answers(self, *answers: NextAnswer | Sequence[Json | str] | str) -> None:
        """Say what the next answers are."""
        self.script.add(*answers)

    def forget(self) -> None:
        """Empty the list of served requests; `count` stays."""
        self.served.clear()

    def ask(self, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None) -> Served:
        """Serve one request without a network: a GET where there is no body."""
        low = {name.lower(): value for name, value in (headers or {}).items()}
        asked = HttpRequest("GET" if body is None else "POST", path, low, json.loads(json.dumps(body or {})))
        return self.serve(asked)[0]

    def serve(self, asked: HttpRequest) -> tuple[Served, Reply]:
        """Serve one request, and record it."""
        try:
            reply = self.api.reply(asked, self.script)
            served = Served(asked, 200, reply.body, reply.dropped)
        except Refused as refused:
            reply = Reply(refused.body)
            served = Served(asked, refused.status, refused.body)
        self.served.append(served)
        self.count += 1
        return served, reply

    def fail(self, asked: HttpRequest, error: Exception) -> tuple[Served, Reply]:
        """Record a request that the server cannot read or whose scripted answer it cannot write, and return a status 500 that says so."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} (line {place.lineno} of {place.filename})"
        text = f"This test server cannot read the request, or cannot write the answer that the test gave it: {why}"
        served = Served(asked, 500, self.api.error(500, text))
        self.served.append(served)
        self.count += 1
        return served, Reply(served.body)

    def __enter__(self) -> Self:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_HttpHandler,), {"strict": self}))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None and self._thread is not None:
            self._http.shutdown()
            self._http.server_close()
            self._thread.join()
            self._http = None


class _HttpHandler(BaseHTTPRequestHandler):
    """Reads one request, asks the server, and writes the answer, as JSON or as events."""

    strict: StrictServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer a GET."""
        self._answer({})

    def do_POST(self) -> None:
        """Answer a POST with a JSON body."""
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            self._send_json(400, self.strict.api.error(400, "The request body is not valid JSON."))
            return
        self._answer(body)

    def _answer(self, body: Json) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        split = urlsplit(self.path)
        path = unquote(split.path) + (f"?{split.query}" if split.query else "")
        asked = HttpRequest(self.command, path, headers, body)
        try:
            served, reply = self.strict.serve(asked)
        except Exception as error:  # noqa: BLE001 - a request, or an answer of the test's, in a form that no check foresaw
            served, reply = self.strict.fail(asked, error)
        if served.status == 200 and reply.events is not None:  # noqa: PLR2004
            self._send_events(reply.events, reply.cut)
        else:
            self._send_json(served.status, served.body)

    def _send_json(self, status: int, body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("request-id", "req_strict")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _send_events(self, events: Sequence[tuple[str, Json | str]], cut: int | None) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, data in events[:cut]:
            head = f"event: {name}\n" if name else ""
            chunk = f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        if cut is None:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Write nothing to the terminal."""
