"""Tools that run in processes of their own; another process imports them from here."""

import ctypes
import os
import signal
import subprocess
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
    """Answer, and tell of it first."""
    context.emit_progress("soon", 1, 2)
    return ToolReply(f"{context.call_id} {n} {os.getpid()}", terminate=True, metadata={"n": n})


@tool(isolated=True)
def die(how: str) -> str:
    """Die in one of many ways."""
    print("last words")  # noqa: T201 - what is printed is shown
    sys.stdout.flush()
    os.write(1, b"\xff\xfe\0")
    match how:
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "fault":
            ctypes.string_at(0)
        case "leave":
            sys.exit("bye")
        case "raise":
            raise LookupError("nothing there")
    return "alive"


@tool(isolated=True)
def hang(line: str) -> None:
    """Start a program that holds a line open, as this process does, say so, and never answer."""
    end = os.open(line, os.O_WRONLY)
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[end])
    os.write(end, b"started\n")
    signal.pause()


@tool(isolated=True, max_bytes=1_000)
def shout() -> str:
    """Return too much, and print more."""
    for _ in range(1_000):
        print("x" * 1_000)  # noqa: T201 - the pipe to the parent must not fill up
    return "y" * 50_000_000
