"""Serving: a port of this machine, and how it all ends."""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import Callable
from socket import IPPROTO_TCP, TCP_NODELAY, create_server, socket

import httpx
import uvicorn

from palaver.errors import InvalidInput
from palaver.proxy.forwarding import HOST, Proxy
from palaver.proxy.recorder import Recorder
from palaver.proxy.recording import RecorderThread

_WAIT = 10.0
"""Seconds to connect to a vendor. An answer may take any time."""

_KEPT = 32
"""Connections to vendors that stay open between requests."""

_LAST = 1
"""Seconds that open answers have after Ctrl-C."""

_WHY = {errno.EADDRINUSE: "another program uses it", errno.EACCES: "this user may not open it"}

_SWITCH = 0.0005
"""Seconds that the recorder's thread computes before answers are passed on again. By Python's default, 0.005, each step of an answer may wait so long."""


def serve(
    recorder: Recorder, told: Callable[[str], None], warned: Callable[[str], None], *, port: int = 0, to: str = ""
) -> None:
    """Serve the proxy until Ctrl-C; then record what came of the open answers.

    Args:
        recorder: Records the calls.
        told: Called with the address when the proxy can be asked.
        warned: Called with a line when calls cannot be recorded.
        port: The port; 0 for a free one.
        to: Where all requests go; empty for the vendor to whom a request belongs.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        InvalidInput: The port cannot be used.
    """
    try:
        listener = create_server((HOST, port))
    except (OSError, OverflowError) as error:
        why = _WHY.get(error.errno or 0, error.strerror) if isinstance(error, OSError) else "it is not one"
        raise InvalidInput(f"Port {port} cannot be used: {why}.", hint="Choose another one with --port.") from error
    with listener:
        sys.setswitchinterval(_SWITCH)
        recording = RecorderThread(recorder, warned)
        try:
            told(f"http://{HOST}:{listener.getsockname()[1]}")
            asyncio.run(answer(recording, to, listener))
        finally:
            recording.close()


async def answer(
    recording: RecorderThread, to: str, listener: socket, began: Callable[[uvicorn.Server], None] = lambda _: None
) -> None:
    """Answer the requests to a socket until the server is told to end.

    Args:
        recording: Records the calls.
        to: As for `serve`.
        listener: The socket, which stays open.
        began: Called with the server before it begins.
    """
    listener.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)  # asyncio does so for sockets of its own only
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT)
    async with httpx.AsyncClient(timeout=httpx.Timeout(None, connect=_WAIT), limits=limits) as client:
        config = uvicorn.Config(
            Proxy(client, recording, to),
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="critical",  # the proxy reports what goes wrong
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_LAST,
        )
        server = uvicorn.Server(config)
        began(server)
        await server.serve(sockets=[listener])
