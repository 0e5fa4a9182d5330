"""The MCP server that others wrote (`@modelcontextprotocol/server-everything`, from npm), over both of its transports."""

import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from palaver.tools import MCP
from tests.peers.server import END_WITH_PARENT, listen

PROGRAM = Path(__file__).parents[1] / "peers/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
START_SECONDS = 60.0
# It prints the port it was given, which is 0 here; the one it got is what a test needs.
SAY_PORT = (
    'data:text/javascript,import net from "node:net";const listen=net.Server.prototype.listen;'
    "net.Server.prototype.listen=function(...given){"
    'this.on("listening",()=>console.log("bound to "+this.address().port));return listen.apply(this,given)}'
)


def why_missing() -> str | None:
    """Say why there is no such server on this machine; None when there is one."""
    if not PROGRAM.is_file():
        return "no MCP server: tests/peers/node_modules is not there (./run test installs it)"
    if shutil.which("node") is None:
        return "no MCP server: no Node.js on the path (./run test brings one)"
    return None


def over_stdio(**declared: object) -> MCP:
    """Declare the server as a program."""
    fields = {"server_label": "everything", "command": "node", "args": (str(PROGRAM), "stdio")}
    return MCP.from_dict(fields | declared)


@contextmanager
def over_http() -> Iterator[str]:
    """Run the server on a free port of this machine; yield its address."""
    command = ["node", "--import", END_WITH_PARENT, "--import", SAY_PORT, str(PROGRAM), "streamableHttp"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, env=os.environ | {"PORT": "0"}, text=True, **pipes) as process:
        said: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=listen, args=(process, said))
        reader.start()
        try:
            while "bound to" not in (line := said.get(timeout=START_SECONDS) or "bound to 0"):
                pass
            yield f"http://127.0.0.1:{line.rpartition(' ')[2].strip()}/mcp"
        finally:
            process.kill()
            reader.join()
