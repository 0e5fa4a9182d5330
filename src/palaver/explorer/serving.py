"""Serving: a socket on this machine, the browser, and how it all ends."""

from __future__ import annotations

import asyncio
import threading
import webbrowser
from collections.abc import Callable
from socket import IPPROTO_TCP, TCP_NODELAY, create_server
from urllib.parse import quote

import uvicorn

from palaver.explorer.api import Source
from palaver.explorer.door import HOST, Door
from palaver.explorer.server import application

__all__ = ["browse", "serve"]


def serve(source: Source, to: str, told: Callable[[str], None]) -> None:
    """Serve the explorer until Ctrl-C.

    Open connections and running work are cut off: nothing is written through this server that is not whole.

    Args:
        source: What is looked at.
        to: The screen that is opened, as the page names it, such as `/s/ID`.
        told: Gets the address, when the server can be asked.

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
            http="h11",
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
