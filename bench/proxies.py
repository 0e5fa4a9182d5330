"""What `palaver proxy` adds to a request: the same requests to a server on this machine, straight and through the proxy, in turn."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread

from bench.measure import Row, timed
from tests.proxy.running import command

_TIMES = 100
_THINKS = 0.1
"""Seconds between an answer and the next request; programs take longer, even where a tool answers at once."""

_PATH = "/v1/chat/completions"
_ANSWER = json.dumps(
    {"id": "a", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}]}
).encode()  # fmt: skip


class _Vendor(BaseHTTPRequestHandler):
    """Answers at once."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(_ANSWER)))
        self.end_headers()
        self.wfile.write(_ANSWER if body else b"")

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def _vendor() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Vendor) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Measure requests of 2 kB and of 1 MB, each of which extends the one before."""
    times = _TIMES // 10 if quick else _TIMES
    with (
        _vendor() as port,
        command(folder, "--to", f"http://127.0.0.1:{port}") as running,
        closing(HTTPConnection("127.0.0.1", port)) as straight,
        closing(HTTPConnection("127.0.0.1", running.port)) as through,
    ):
        return [_row(name, size, times, straight, through) for name, size in (("2 kB", 2_000), ("1 MB", 1_000_000))]


def _row(name: str, size: int, times: int, straight: HTTPConnection, through: HTTPConnection) -> Row:
    messages = [{"role": "user", "content": f"{name} " + "word " * (size // 50)} for _ in range(10)]
    ours, limit = list[float](), list[float]()
    for number in range(times):
        messages.append({"role": "user", "content": f"question {number}"})
        body = json.dumps({"model": "m", "messages": messages}).encode()
        limit.append(timed(partial(_ask, straight, body)))
        ours.append(timed(partial(_ask, through, body)))
        time.sleep(_THINKS)
        messages.append({"role": "assistant", "content": "yes"})
    added = median(ours) - median(limit)
    return Row(
        f"a request of {name}, added by the proxy", f"{added * 1e3:.2f} ms", f"{median(limit) * 1e3:.2f} ms", "", "5 ms"
    )


def _ask(connection: HTTPConnection, body: bytes) -> None:
    connection.request("POST", _PATH, body)
    assert connection.getresponse().read() == _ANSWER
