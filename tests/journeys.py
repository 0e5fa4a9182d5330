"""A PostgreSQL server behind a socket that counts what travels to it, and can be made as slow as a network."""

import contextlib
import re
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct

_LENGTH = Struct(">I")
_START, _HEAD = 4, 5  # the first message of a connection has a length and no type
_CHUNK = 1 << 16


@dataclass
class Traffic:
    """What clients sent since the count began.

    Attributes:
        statements: Statements that were executed.
        journeys: How often a client asked for the answers to all it had sent (https://www.postgresql.org/docs/current/protocol-flow.html: Sync, Flush,
            Query): it waits for the server then.
        commits: Transactions that were committed by name.
        texts: The statements that were executed, by their text.
        delay: Seconds that everything takes from one side to the other.
    """

    statements: int = 0
    journeys: int = 0
    commits: int = 0
    texts: Counter[str] = field(default_factory=Counter)
    delay: float = 0.0

    def clear(self) -> None:
        """Begin to count."""
        self.statements = self.journeys = self.commits = 0
        self.texts.clear()


class _Client:
    """What one client sent, message by message."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._waiting = b""
        self._began = False
        self._prepared: dict[bytes, str] = {}
        self._bound = ""
        self._asked = False

    def take(self, data: bytes) -> None:
        """Count the messages that are whole."""
        self._waiting += data
        while len(self._waiting) >= _HEAD:
            head = 1 if self._began else 0
            size = head + _LENGTH.unpack_from(self._waiting, head)[0]
            if len(self._waiting) < size:
                return
            message, self._waiting = self._waiting[:size], self._waiting[size:]
            if self._began:
                self._message(message[:1], message[_HEAD:])
            self._began = True

    def _message(self, kind: bytes, body: bytes) -> None:
        traffic = self._traffic
        if kind == b"P":
            name, query = body.split(b"\0", 2)[:2]
            self._prepared[name] = query.decode()
        elif kind == b"B":
            self._bound = self._prepared.get(body.split(b"\0", 2)[1], "")
        elif kind in {b"E", b"Q"}:
            text = self._bound if kind == b"E" else body.rstrip(b"\0").decode()
            traffic.statements += 1
            traffic.commits += text == "COMMIT"
            traffic.texts[re.sub(r"\s+", " ", text)] += 1
        asks = kind in {b"S", b"H", b"Q"}
        traffic.journeys += asks and not self._asked  # psycopg ends a pipeline with a Sync and a Flush
        self._asked = asks


def _forward(source: socket.socket, target: socket.socket, traffic: Traffic, look: Callable[[bytes], None]) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            look(data)
            if traffic.delay:
                time.sleep(traffic.delay)
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _serve(client: socket.socket, place: Path, traffic: Traffic) -> None:
    """Forward what a client and the server say to each other until one of them ends."""
    with client, socket.socket(socket.AF_UNIX) as server:
        server.connect(str(place))
        back = threading.Thread(target=_forward, args=(server, client, traffic, _ignored), daemon=True)
        back.start()
        _forward(client, server, traffic, _Client(traffic).take)
        back.join()


@contextmanager
def counted(folder: Path) -> Iterator[tuple[Path, Traffic]]:
    """Put a socket in front of the server whose socket is in a folder.

    Yields:
        The folder of the new socket, and what travels through it.
    """
    name = next(path.name for path in folder.iterdir() if re.fullmatch(r"\.s\.PGSQL\.\d+", path.name))
    traffic = Traffic()
    with tempfile.TemporaryDirectory() as made, socket.socket(socket.AF_UNIX) as door:
        door.bind(str(Path(made) / name))
        door.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    words = door.accept()[0], folder / name, traffic
                    threading.Thread(target=_serve, args=words, daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield Path(made), traffic
        door.shutdown(socket.SHUT_RDWR)


def _ignored(data: bytes) -> None:
    del data
