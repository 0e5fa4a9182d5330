"""Servers of tools for a whole chat: connected to once, before the first message, and left at its end.

An agent connects to a prompt's servers for the length of one call. A chat has many calls, so it keeps the connections in a task of its
own, in the loop in which the turns run, and hands the tools to the agent as functions.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import PurePath
from urllib.parse import urlsplit

from palaver.errors import InvalidInput
from palaver.tools import MCP, Function
from palaver.tools.portal import run_sync

__all__ = ["Servers", "declared"]

_NO_LABEL = re.compile(r"[^A-Za-z0-9_-]+")
_RUNNERS = frozenset({"npx", "uvx", "uv", "node", "python", "python3", "sh", "bash", "docker", "run", "tool", "exec"})
"""Words that run something, and are no name for what they run."""

_ANYTHING = frozenset({"/", "index", "main", "server", "cli", "dist", "build", "src", "bin", "lib"})
"""Parts of paths that are no name for a program."""


def declared(specs: Iterable[str]) -> tuple[MCP, ...]:
    """Read what stands behind `--mcp`: the address of a server, or the command that starts one.

    Raises:
        InvalidInput: It is neither.
    """
    found: list[MCP] = []
    for spec in specs:
        label = _label(spec)
        taken = {server.server_label for server in found}
        unique = next(name for name in _numbered(label) if name not in taken)
        if spec.startswith(("http://", "https://")):
            found.append(MCP(unique, spec))
        else:
            command, *args = _words(spec)
            found.append(MCP(unique, command=command, args=tuple(args)))
    return tuple(found)


def _words(spec: str) -> list[str]:
    try:
        words = shlex.split(spec)
    except ValueError as error:
        raise InvalidInput(f"--mcp {spec!r} is no command: {error}.", hint="Quote it as for a shell.") from error
    if not words:
        raise InvalidInput("--mcp is empty.", hint="Give the address of a server, or the command that starts one.")
    return words


def _label(spec: str) -> str:
    """Name a server after what it is: the host, or the program that the command runs."""
    if spec.startswith(("http://", "https://")):
        name = urlsplit(spec).hostname or ""
    else:
        telling = [word for word in _words(spec) if not word.startswith("-") and PurePath(word).name not in _RUNNERS]
        path = PurePath(telling[0] if telling else "")
        parts = [path.stem, *reversed(path.parts[:-1])]  # dist/index.js says less than the folder it is in
        name = next((part for part in parts if part not in _ANYTHING), path.stem)
    plain = _NO_LABEL.sub("_", name).strip("_-")
    return plain if plain[:1].isalpha() else f"server_{plain}".rstrip("_")


def _numbered(label: str) -> Iterable[str]:
    yield label
    number = 2
    while True:
        yield f"{label}_{number}"
        number += 1


class Servers:
    """The servers of a chat.

    Attributes:
        functions: Their tools, once they are connected.
    """

    def __init__(self, servers: Sequence[MCP]) -> None:
        """Take the declarations; nothing is connected yet."""
        self.functions: tuple[Function, ...] = ()
        self._servers = tuple(servers)
        self._task: asyncio.Task[None] | None = None
        self._unwanted: asyncio.Event | None = None

    def connect(self) -> None:
        """Connect to all of them.

        Raises:
            ServerUnreachable: One does not answer.
            MissingExtra: The package that speaks to servers is not installed.
        """
        if self._servers:
            run_sync(self._connect)

    def close(self) -> None:
        """Leave them; programs that were started end."""
        if self._task is not None:
            run_sync(self._close)

    async def _connect(self) -> None:
        ready: asyncio.Future[tuple[Function, ...]] = asyncio.get_running_loop().create_future()
        self._unwanted = asyncio.Event()
        self._task = asyncio.create_task(self._hold(ready, self._unwanted))
        try:
            self.functions = await ready
        except asyncio.CancelledError:
            self._unwanted.set()
            self._task.cancel()
            raise

    async def _hold(self, ready: asyncio.Future[tuple[Function, ...]], unwanted: asyncio.Event) -> None:
        """Keep the connections for as long as they are wanted: what was opened in a task must be closed in it."""
        try:
            async with AsyncExitStack() as stack:
                adapter = import_module("palaver.tools.mcp")  # it needs a package that few installations have
                found: list[Function] = []
                for server in self._servers:
                    session = await stack.enter_async_context(adapter.connect(server))
                    found.extend(session.functions)
                ready.set_result(tuple(found))
                await unwanted.wait()
        except Exception as error:  # whatever keeps a server from being used is raised to whoever waits for it
            if ready.done():
                raise
            ready.set_exception(error)

    async def _close(self) -> None:
        task, self._task = self._task, None
        if self._unwanted is not None and task is not None:
            self._unwanted.set()
            await asyncio.wait([task])
