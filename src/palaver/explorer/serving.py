"""Serving: a socket on this machine, the browser, and how it all ends."""

from __future__ import annotations

import asyncio
import threading
import webbrowser
from collections.abc import Callable
from socket import IPPROTO_TCP, TCP_NODELAY, create_server
from urllib.parse import quote

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from palaver.explorer.api import Explored
from palaver.explorer.door import HOST, Door
from palaver.explorer.server import application

MOST = 64
"""Connections that are kept open at once; a browser opens 6 to a host."""


class _Connection(H11Protocol):
    """A connection on which a request must be complete within the time for which an idle one is kept, and one of a limited number."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in H11Protocol
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.abort()
        else:
            self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        """Begin to wait for the rest of a request, or end it when all of it is there."""
        if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
            self._stop_waiting()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def serve(source: Explored, to: str, told: Callable[[str], None]) -> None:
    """Serve the explorer until Ctrl-C.

    Open connections and running work are cut off: nothing is written through this server that is not whole.

    Args:
        source: The store that the page shows.
        to: The screen that is opened, as the page names it, such as `/s/ID`.
        told: Called with the address when the server can be asked.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    with create_server((HOST, 0)) as listener:
        # asyncio does so for sockets of its own only; without it each answer waits 40 ms
        listener.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        port = listener.getsockname()[1]
        door = Door(application(source), port)
        config = uvicorn.Config(
            door,
            http=_Connection,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            log_level="critical",  # the door reports what goes wrong
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=0,
        )
        told(f"http://{HOST}:{port}/#token={door.token}&to={quote(to, safe='/')}")
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


def browse(address: str) -> None:
    """Open an address in the user's browser; a browser that waits for its end keeps nobody waiting."""
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
