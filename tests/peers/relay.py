"""A relay on loopback that keeps what passes through it: the bytes a client sent, before the server makes them its own."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Relay:
    """A running relay: its address, and the bodies that passed, oldest first."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def relaying(target: str, **headers: str) -> Iterator[Relay]:
    """Pass every POST on to the server at an address, with further headers, and its answer back, whole."""
    relay = Relay()
    further = {name.replace("_", "-"): value for name, value in headers.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            relay.bodies.append(body)
            passed = urllib.request.Request(  # noqa: S310 — loopback http
                target + self.path, body, {"content-type": "application/json", **further}
            )
            try:
                with urllib.request.urlopen(passed, timeout=30) as answer:  # noqa: S310 — see above
                    status, said, kind = answer.status, answer.read(), answer.headers["content-type"]
            except urllib.error.HTTPError as refusal:
                with refusal:
                    status, said, kind = refusal.code, refusal.read(), refusal.headers["content-type"]
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the name that http.server gives
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        relay.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield relay
        finally:
            server.shutdown()
            serving.join()
