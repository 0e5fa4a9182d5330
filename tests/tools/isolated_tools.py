"""Tools that run in worker processes; a process imports them from here."""

import os
import signal
import sys
from dataclasses import dataclass

from palaver.tools import CallContext, ToolReply, tool


@dataclass
class Box:
    """An argument and a result with fields."""

    size: int


@tool(isolated=True)
def twice(box: Box) -> Box:
    """Double."""
    return Box(box.size * 2)


@tool(isolated=True)
async def later(n: int, context: CallContext) -> ToolReply:
    """Answer from another process."""
    return ToolReply(f"{context.call_id} {n} {os.getpid()}", terminate=True, metadata={"n": n})


@tool(isolated=True)
def die(how: str) -> str:
    """Die in one of many ways."""
    match how:
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave":
            sys.exit("bye")
        case "raise":
            raise LookupError("nothing there")
    return "alive"


@tool(isolated=True, timeout=3)
def hang(line: str) -> None:
    """Hold a line open, say so, and never answer."""
    os.write(os.open(line, os.O_WRONLY), b"started\n")
    signal.pause()


@tool(isolated=True, max_bytes=1_000)
def shout() -> str:
    """Return too much."""
    return "y" * 50_000_000
