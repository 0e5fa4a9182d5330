"""The peer server: what others wrote (aimock, from npm), on loopback, so that real provider clients have someone to talk to.

It answers from fixture files and keeps a journal of the requests it got. It does not judge whether a request is valid: it
proves transport only.
"""

import json
import queue
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
READY = "listening on "
START_SECONDS = 60.0
# The server ends when our end of its standard input closes: also after a kill of the tests.
END_WITH_PARENT = 'data:text/javascript,process.stdin.on("end",()=>process.exit()).resume()'


def why_missing() -> str | None:
    """Say why there is no peer server on this machine; None when there is one."""
    if not PROGRAM.is_file():
        return "no peer server: tests/peers/node_modules is not there (./run test and ./run bench install it)"
    if shutil.which("node") is None:
        return "no peer server: no Node.js on the path (./run test and ./run bench bring one)"
    return None


@dataclass(frozen=True)
class Peer:
    """A running server: `url` has scheme, host and port, without a slash at the end."""

    url: str

    def journal(self) -> list[dict[str, Any]]:
        """Return the requests the server got, oldest first, each with `path`, `headers` and the decoded `body`."""
        with urllib.request.urlopen(f"{self.url}/__aimock/journal", timeout=10) as answer:  # noqa: S310 - loopback http
            entries: list[dict[str, Any]] = json.load(answer)
        return entries

    def forget(self) -> None:
        """Empty the journal, which is given whole each time."""
        with urllib.request.urlopen(f"{self.url}/__aimock/reset/journal", data=b"", timeout=10):  # noqa: S310 - loopback http
            pass


def listen(process: subprocess.Popen[str], said: "queue.Queue[str | None]") -> None:
    """Hand on what the server says, until it ends; reading on keeps its pipe from filling up."""
    for line in process.stdout or ():
        said.put(line)
    said.put(None)


def _address(said: "queue.Queue[str | None]") -> str:
    lines: list[str] = []
    while (line := said.get(timeout=START_SECONDS)) is not None:
        if READY in line:
            return line.partition(READY)[2].strip()
        lines.append(line)
    message = f"the peer server ended at once: {''.join(lines)}"
    raise RuntimeError(message)


@contextmanager
def serve(fixtures: Path) -> Iterator[Peer]:
    """Run a server over a folder (or one file) of fixtures, on a free port; a request without a fixture gets a 503."""
    command = [
        "node",
        "--import",
        END_WITH_PARENT,
        str(PROGRAM),
        "-p",
        "0",
        "-f",
        str(fixtures),
        "--strict",
        "--validate-on-load",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        said: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=listen, args=(process, said))
        reader.start()
        try:
            yield Peer(_address(said))
        finally:
            process.terminate()
            reader.join()
