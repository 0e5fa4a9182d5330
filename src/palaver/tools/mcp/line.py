"""One connection to a server, in a task of its own.

The official client must be left by the task that entered it, and when a connection breaks it cancels that task. So the task is ours,
keeps nothing else, and says when it is gone.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import IO, Any

import anyio
import anyio.abc

from palaver.errors import MissingExtra
from palaver.tools.servers import MCP

try:
    import httpx2
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
except ImportError as error:
    raise MissingExtra("The use of MCP servers", "mcp") from error

__all__ = ["Line", "keep", "reason"]

_TAIL = 2_000
_HTTP_SECONDS = 30.0
_STREAM_SECONDS = 300.0  # how long a server may say nothing on an open stream; the official client's own figure


class Line:
    """A connection: its client while it stands, and the event that it is gone."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.unwanted = anyio.Event()
        self.gone = anyio.Event()

    @property
    def stands(self) -> bool:
        """Whether calls can go over it, as far as is known."""
        return not (self.gone.is_set() or self.unwanted.is_set())


async def keep(server: MCP, *, task_status: anyio.abc.TaskStatus[Line]) -> None:
    """Connect, give the line, and hold it until it is unwanted or breaks. Raises only while connecting."""
    line: Line | None = None
    with tempfile.TemporaryFile() as printed:
        try:
            with anyio.fail_after(server.connect_timeout) as limit:
                async with AsyncExitStack() as stack:
                    line = await _connected(server, printed, stack)
                    limit.deadline = math.inf  # the scope lies around what was entered, and cannot end before it
                    task_status.started(line)
                    await _either(line.unwanted, line.gone)
        except Exception as error:  # a server's client raises what it likes, in groups
            if line is None:
                raise ConnectionError(_why(server, error, printed)) from error
            # Otherwise the connection broke, or broke while it was closed: whoever calls next is told by `gone`.
        finally:
            if line is not None:
                line.gone.set()


async def _connected(server: MCP, printed: IO[bytes], stack: AsyncExitStack) -> Line:
    broken = anyio.Event()
    transport = await _transport(server, printed, broken, stack)
    client = await stack.enter_async_context(Client(transport, cache=None))
    line = Line(client)
    line.gone = broken
    return line


async def _transport(server: MCP, printed: IO[bytes], broken: anyio.Event, stack: AsyncExitStack) -> Any:  # noqa: ANN401 - the client's own protocol
    if server.server_url is not None:
        timeout = httpx2.Timeout(_HTTP_SECONDS, read=_STREAM_SECONDS)
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout))
        return streamable_http_client(server.server_url, http_client=http)
    parameters = StdioServerParameters(
        command=str(server.command), args=list(server.args), env=dict(server.env) or None, cwd=server.cwd
    )
    return _watched(stdio_client(parameters, errlog=printed), broken)  # type: ignore[arg-type] # only its file number is used


@asynccontextmanager
async def _watched(transport: Any, broken: anyio.Event) -> AsyncIterator[Any]:  # noqa: ANN401 - the client's own protocol
    """Pass a transport on, and notice when the server's side of it ends, which the client keeps to itself."""
    async with transport as (read, write):
        send, receive = anyio.create_memory_object_stream[Any](0)

        async def relay() -> None:
            async with send:
                async for message in read:
                    await send.send(message)
            broken.set()

        async with anyio.create_task_group() as group:
            group.start_soon(relay)
            try:
                yield receive, write
            finally:
                group.cancel_scope.cancel()


async def _either(one: anyio.Event, other: anyio.Event) -> None:
    async with anyio.create_task_group() as group:

        async def wait(event: anyio.Event) -> None:
            await event.wait()
            group.cancel_scope.cancel()

        group.start_soon(wait, one)
        group.start_soon(wait, other)


def reason(error: BaseException) -> str:
    """Say what is at the bottom of the groups in which task groups wrap errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _why(server: MCP, error: Exception, printed: IO[bytes]) -> str:
    if isinstance(error, TimeoutError):
        error = TimeoutError(f"it did not answer within {server.connect_timeout:g} s")
    size = printed.seek(0, 2)
    printed.seek(max(0, size - _TAIL))
    said = printed.read().decode(errors="replace").strip()
    told = f" It printed:\n{said}" if said else ""
    return server.without_secrets(f"{reason(error)}.{told}")
