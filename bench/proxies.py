"""What `palaver proxy` adds: the same requests to a server on this machine, straight and through the proxy, in turn.

Each request extends the one before, as an agent's do. A stream has events with the time at which each was sent; all clocks are those of this machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import quantiles
from threading import Thread
from typing import NamedTuple

from bench.measure import Row
from tests.proxy.running import command

_TIMES, _QUICK = 200, 20
_THINKS = 0.1
"""Seconds between an answer and the next request; programs take longer, even where a tool answers at once."""

_MODEL = 0.05
"""Seconds before the answer to a request; models take longer. What the proxy computes in that time delays nothing."""

_SIZES = {"2 kB": (2_000, 4), "100 kB": (100_000, 40), "1 MB": (1_000_000, 400)}
"""The characters and messages of a conversation."""

_EVENTS, _PAUSE = 10, 0.005
"""The events of a stream, and the seconds between two."""

_PATH = "/v1/chat/completions"
_ANSWER = {"id": "a", "model": "m"}
_WHOLE = json.dumps(
    {**_ANSWER, "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}]}
).encode()


class _Asked(NamedTuple):
    """The seconds to the first byte of the body of an answer and to its last, and those that each event took."""

    first: float
    last: float
    events: Sequence[float] = ()


class _Vendor(BaseHTTPRequestHandler):
    """Answers, whole or with a stream."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        time.sleep(_MODEL)
        self.send_response(200)
        if b'"stream": true' in body[:100]:
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for number in range(_EVENTS):
                time.sleep(_PAUSE if number else 0)
                said = {"delta": {"content": "yes"}, "finish_reason": "stop" if number + 1 == _EVENTS else None}
                event = {"at": time.perf_counter(), **_ANSWER, "choices": [{"index": 0, **said}]}
                data = f"data: {json.dumps(event)}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(_WHOLE)))
            self.end_headers()
            self.wfile.write(_WHOLE)

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
    """Measure conversations of 2 kB, 100 kB and 1 MB, whole answers and streams."""
    with (
        _vendor() as port,
        command(folder, "--to", f"http://127.0.0.1:{port}") as running,
        closing(HTTPConnection("127.0.0.1", port)) as straight,
        closing(HTTPConnection("127.0.0.1", running.port)) as through,
    ):
        times = _QUICK if quick else _TIMES
        _ask(through, next(_talk("first", 100, 4, 1, stream=False)))  # which loads modules
        return [
            row
            for name, (size, count) in _SIZES.items()
            for stream in (False, True)
            for row in _rows(name, _talk(name, size, count, times, stream=stream), straight, through)
        ]


def _talk(name: str, size: int, count: int, times: int, *, stream: bool) -> Iterator[bytes]:
    """Yield the bodies of requests."""
    said = f"{name} {stream} " + "word " * (size // count // 5)
    messages = [{"role": ("user", "assistant")[at % 2], "content": said} for at in range(count)]
    for number in range(times):
        messages.append({"role": "user", "content": f"question {number}"})
        yield json.dumps({"model": "m", "stream": stream, "messages": messages}).encode()
        messages.append({"role": "assistant", "content": "yes" * (_EVENTS if stream else 1)})


def _rows(name: str, talk: Iterator[bytes], straight: HTTPConnection, through: HTTPConnection) -> Iterator[Row]:
    limit, ours = list[_Asked](), list[_Asked]()
    for body in talk:
        limit.append(_ask(straight, body))
        ours.append(_ask(through, body))
        time.sleep(_THINKS)
    if not ours[0].events:
        yield _row(f"{name}, added to an answer", [one.last for one in ours], [one.last for one in limit])
        return
    yield _row(
        f"{name}, added to the first byte of a stream", [one.first for one in ours], [one.first for one in limit]
    )
    delays = ([seconds for one in each for seconds in one.events] for each in (ours, limit))
    yield _row(f"{name}, added to an event of a stream", *delays)


def _row(what: str, ours: Sequence[float], limit: Sequence[float]) -> Row:
    """Return the line for what was added to the median, and to the slowest of 100."""
    middle, slow = ((_percentile(ours, at) - _percentile(limit, at)) * 1e3 for at in (50, 99))
    straight = f"{_percentile(limit, 50) * 1e3:.2f}, {_percentile(limit, 99) * 1e3:.2f} ms"
    return Row(f"{what} (p50, p99)", f"{middle:.2f}, {slow:.2f} ms", straight, "", "5 ms")


def _percentile(values: Sequence[float], at: int) -> float:
    return quantiles(values, n=100, method="inclusive")[at - 1]


def _ask(connection: HTTPConnection, body: bytes) -> _Asked:
    start = time.perf_counter()
    connection.request("POST", _PATH, body)
    answer = connection.getresponse()
    if answer.headers["content-type"] == "application/json":
        said = answer.read()
        assert said == _WHOLE
        last = time.perf_counter() - start
        return _Asked(last, last)
    events, first = list[float](), 0.0
    while line := answer.readline():
        now = time.perf_counter()
        first = first or now - start
        if line.startswith(b"data: "):
            events.append(now - json.loads(line[6:])["at"])
    return _Asked(first, time.perf_counter() - start, events)
