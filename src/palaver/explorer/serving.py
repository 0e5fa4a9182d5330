"""Serving: a socket on this machine, the browser, and how it all ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from urllib.parse import quote

import uvicorn

from palaver.explorer.api import Source
from palaver.explorer.door import HOST, Door
from palaver.explorer.server import application

__all__ = ["browse", "serve", "vanishing_folder"]


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


_KEEPER = """
import os, shutil, sys, time
sys.stdin.buffer.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.05)
"""


@contextmanager
def vanishing_folder() -> Iterator[Path]:
    """Yield a new folder that is deleted when the block or this process ends, however it ends.

    Another process deletes it when the pipe to this one closes, as the kernel does also for one that is killed.
    """
    folder = tempfile.mkdtemp(prefix="palaver-open-")
    command = [sys.executable, "-I", "-S", "-c", _KEEPER, folder]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603 - our own program
        command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
    ):
        yield Path(folder)
