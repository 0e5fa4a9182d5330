"""The proxy for tests, in a thread or as the command in a child, and a wire that keeps the bytes of both directions."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RDWR, create_connection, create_server, socket
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import uvicorn

from palaver import SqliteStore
from palaver.proxy.mending import RequestMender
from palaver.proxy.recorder import Recorder
from palaver.proxy.recording import RecorderThread
from palaver.proxy.serving import answer
from palaver.store import Durability
from palaver.testing.strict import StrictServer
from tests.cli.commands import PROGRAM

KEY = "sk-proxied-0123456789-ABCDEFGHIJ"
"""A key as programs send it."""


@dataclass
class Wire:
    """A server that passes bytes on to another one, and keeps those of both directions.

    Attributes:
        to: The port of the other server.
        sent: The bytes of each connection's client.
        got: The bytes of each connection's server.
    """

    to: int
    sent: list[bytearray] = field(default_factory=list)
    got: list[bytearray] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    @property
    def port(self) -> int:
        """Its own port."""
        port: int = self._listener.getsockname()[1]
        return port

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = create_connection(("127.0.0.1", self.to))
            sent, got = bytearray(), bytearray()
            self.sent.append(sent)
            self.got.append(got)
            for one, other, kept in ((client, server, sent), (server, client, got)):
                threading.Thread(target=_copy, args=(one, other, kept), daemon=True).start()


def _copy(one: socket, other: socket, kept: bytearray) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            kept += data
            other.sendall(data)
    for end in (one, other):
        with suppress(OSError):
            end.shutdown(SHUT_RDWR)
        end.close()


def place(server: StrictServer) -> str:
    """Return the address of a stand-in, without a path."""
    return f"http://{urlsplit(server.url).netloc}"


def bodies(stream: bytes) -> list[bytes]:
    """Return the bodies of the messages of a connection, without the framing of the connection."""
    found = []
    while stream:
        head, _, stream = stream.partition(b"\r\n\r\n")
        if length := re.search(rb"(?i)\r\ncontent-length: *(\d+)", head):
            found.append(stream[: int(length[1])])
            stream = stream[int(length[1]) :]
        elif re.search(rb"(?i)\r\ntransfer-encoding: *chunked", head):
            body = b""
            while stream:
                size, _, stream = stream.partition(b"\r\n")
                number = int(size or b"0", 16)
                body, stream = body + stream[:number], stream[number + 2 :]
                if number == 0:
                    break
            found.append(body)
    return found


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: Message
    body: bytes


@dataclass(frozen=True)
class Running:
    """A proxy that runs.

    Attributes:
        url: Its address.
        store: Its store.
        end: Ends it, and returns what it said on standard error.
        kill: Ends a child at once.
    """

    url: str
    store: Path
    end: Callable[[], str]
    kill: Callable[[], None] = lambda: None

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.url.rpartition(":")[2])

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Got:
        """Send a request and read the answer; headers by name, with underscores for hyphens."""
        with closing(self.asked(method, path, body, **headers)) as connection:
            response = connection.getresponse()
            return Got(response.status, response.headers, response.read())

    def asked(self, method: str, path: str, body: bytes = b"", **headers: str) -> HTTPConnection:
        """Send a request, and return its connection."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body or None, named)
        return connection


@contextmanager
def proxy(folder: Path, to: str, *, session: str = "", mender: RequestMender | None = None) -> Iterator[Running]:
    """Run the proxy in a thread, on a free port."""
    store, said, servers = folder / "store.db", list[str](), list[uvicorn.Server]()
    with closing(SqliteStore(store, Durability.NORMAL)) as known, create_server(("127.0.0.1", 0)) as listener:
        recording = RecorderThread(Recorder(known, session, mender=mender), said.append)
        thread = threading.Thread(target=lambda: asyncio.run(answer(recording, to, listener, servers.append)))
        thread.start()

        def end() -> str:
            for server in servers:
                server.should_exit = True
            thread.join()
            recording.close()
            return "\n".join(said)

        try:
            yield Running(f"http://127.0.0.1:{listener.getsockname()[1]}", store, end)
        finally:
            end()


@contextmanager
def command(folder: Path, *words: str) -> Iterator[Running]:
    """Run the command in a child, on a free port, with more words."""
    store = folder / "store.db"
    line = [*PROGRAM, "proxy", "--store", str(store), "--port", "0", "--json", *words]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:

        def end() -> str:
            process.terminate()
            return process.communicate(timeout=60)[1]

        try:
            assert process.stdout is not None
            row = process.stdout.readline()
            assert row, process.communicate()[1]
            yield Running(json.loads(row)["url"], store, end, process.kill)
        finally:
            process.terminate()


@contextmanager
def upstream(answer: Callable[[BaseHTTPRequestHandler, bytes], None]) -> Iterator[str]:
    """Run a server that answers as a function does, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            answer(self, self.rfile.read(int(self.headers.get("content-length") or 0)))

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def says(handler: BaseHTTPRequestHandler, status: int, data: bytes, *headers: tuple[str, str]) -> None:
    """Answer with a status, a body and more headers."""
    handler.send_response(status)
    for name, value in (*headers, ("content-length", str(len(data)))):
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)
