"""The MCP server that others wrote (`@modelcontextprotocol/server-everything`, from npm), over both of its transports."""

import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from palaver.tools.mcp import MCP
from tests.peers.server import END_WITH_PARENT

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


def over_stdio(label: str = "everything", *, pid_file: Path | None = None, **declared: object) -> MCP:
    """Declare the server as a program; its process id is written to a file when one is given."""
    if pid_file is None:
        return MCP.from_dict({"server_label": label, "command": "node", "args": (str(PROGRAM), "stdio"), **declared})
    script = 'echo $$ > "$1"; exec node "$2" stdio'
    return MCP.from_dict(
        {"server_label": label, "command": "sh", "args": ("-c", script, "sh", str(pid_file), str(PROGRAM)), **declared}
    )


@dataclass(frozen=True)
class Served:
    """A server that speaks HTTP."""

    url: str
    process: "subprocess.Popen[str]"

    @property
    def port(self) -> str:
        """Its port."""
        return self.url.rpartition(":")[2].partition("/")[0]


@contextmanager
def over_http(port: str = "0") -> Iterator[Served]:
    """Run the server on a port of this machine, a free one unless one is named."""
    command = ["node", "--import", END_WITH_PARENT, "--import", SAY_PORT, str(PROGRAM), "streamableHttp"]
    with subprocess.Popen(
        command,
        env=os.environ | {"PORT": port},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=_listen, args=(process, said))
        reader.start()
        try:
            while "bound to" not in (line := said.get(timeout=START_SECONDS)):
                pass
            yield Served(f"http://127.0.0.1:{line.rpartition(' ')[2].strip()}/mcp", process)
        finally:
            process.kill()
            reader.join()


def _listen(process: "subprocess.Popen[str]", said: "queue.Queue[str]") -> None:
    """Hand on what the server says, until it ends; reading on keeps its pipe from filling up."""
    for line in process.stdout or ():
        said.put(line)
    said.put("bound to 0")
