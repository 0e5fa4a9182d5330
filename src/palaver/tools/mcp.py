"""The tools of MCP servers, through the official client. Needs the package `mcp`, the extra of the same name.

The official client must be left by the task that entered it, and it cancels that task when the connection breaks. So each
connection lives in a task of its own. A call on a broken connection is an error result, since its effect is unknown; the next
call connects again.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from difflib import get_close_matches
from functools import partial
from typing import IO, Any

import anyio
import anyio.abc

from palaver.errors import MissingExtra, NotFound, PalaverError
from palaver.messages import TextContent
from palaver.tools.function import Function
from palaver.tools.outcomes import CallContext, ToolReply
from palaver.tools.servers import MCP

try:
    import httpx2
    import mcp_types
    from mcp import Client, MCPError, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
except ImportError as error:
    raise MissingExtra("The use of MCP servers", "mcp") from error

_MOST_PAGES = 1_000
_PRINTED_BYTES = 2_000
_HTTP_SECONDS = 30.0
_STREAM_SECONDS = 300.0  # the longest silence of a server on an open stream; the official client's own figure
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")  # MCP allows more characters in names than palaver


@asynccontextmanager
async def connect(server: MCP | Mapping[str, Any]) -> AsyncIterator[McpSession]:
    """Connect to a server for the time of the block.

    Args:
        server: The declaration, or its fields from a configuration.

    Raises:
        InvalidInput: The fields are not a declaration.
        PalaverError: The server does not answer within `connect_timeout`, or not as an MCP server.
        NotFound: `allowed_tools` names a tool that the server does not have.
    """
    declared = server if isinstance(server, MCP) else MCP.from_dict(server)
    failures: list[BaseException] = []
    async with anyio.create_task_group() as group:
        session = McpSession(declared, group)
        try:
            await session.refresh()
            yield session
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 - raised below, without the group that would wrap it
            failures.append(error)
        finally:
            session.drop()
    if failures:
        raise failures[0]


class _OpenServer:
    """A client, the event that ends it, and the calls on it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.unwanted = anyio.Event()
        self.calls: set[anyio.CancelScope] = set()


class McpSession:
    """The tools of one server. `connect` returns it; it ends with its block.

    Attributes:
        server: The declaration.
        functions: The tools, as functions that call the server. `refresh` lists them again.
    """

    def __init__(self, server: MCP, group: anyio.abc.TaskGroup) -> None:
        self.server = server
        self.functions: tuple[Function, ...] = ()
        self._group = group
        self._connection: _OpenServer | None = None
        self._connecting = anyio.Lock()

    async def refresh(self) -> tuple[Function, ...]:
        """List the server's tools.

        Raises:
            PalaverError: The server does not answer.
            NotFound: `allowed_tools` names a tool that the server does not have.
        """
        try:
            with anyio.fail_after(self.server.connect_timeout):
                offered = await self._list((await self._connected()).client)
        except (MCPError, OSError, ValueError) as error:
            raise PalaverError(
                f"The MCP server {self.server.server_label!r} ({self.server.address}) cannot be used: {self._said(error)}",
                hint="Check that it runs, its address or program, and the values of env and headers.",
            ) from error
        names = [tool.name for tool in offered]
        allowed = self.server.allowed_tools
        for name in allowed or ():
            if name not in names:
                what = f"tool of the MCP server {self.server.server_label!r}"
                raise NotFound(name, close=get_close_matches(name, names), what=what)
        used: set[str] = set()
        self.functions = tuple(
            self._function(tool, used) for tool in offered if allowed is None or tool.name in allowed
        )
        return self.functions

    def drop(self) -> None:
        """Disconnect, and end a program that was started. The next call connects again."""
        if self._connection is not None:
            self._connection.unwanted.set()
            self._connection = None

    async def _list(self, client: Client) -> list[mcp_types.Tool]:
        tools: list[mcp_types.Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools.extend(page.tools)
            cursor = page.next_cursor
            if cursor is None:
                return tools
        raise ConnectionError(f"its list of tools has more than {_MOST_PAGES} pages")

    def _function(self, given: mcp_types.Tool, used: set[str]) -> Function:
        """Return a tool with a valid name that no other tool of the server has."""
        label = self.server.server_label
        plain = name = (f"{label}_" if self.server.prefix else "") + (_FOREIGN.sub("_", given.name) or "tool")
        number = 2
        while name in used:
            name, number = f"{plain}_{number}", number + 1
        used.add(name)
        hints = given.annotations.model_dump(exclude_none=True) if given.annotations else {}

        async def call(palaver_context: CallContext, /, **arguments: Any) -> ToolReply:  # noqa: ANN401 - JSON
            return await self.call(given.name, arguments, palaver_context)

        return Function(
            name,
            given.description or given.title or "",
            parameters=given.input_schema,
            function=call,
            timeout=self.server.timeout,
            needs_approval=self.server.needs_approval(given.name),
            metadata={"mcp": {"server": label, "tool": given.name, "hints": hints}},
        )

    # --- calls ---------------------------------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: Mapping[str, Any], context: CallContext) -> ToolReply:
        """Call a tool of the server. A failure is an error result."""
        label = self.server.server_label
        try:
            connection = await self._connected()
        except OSError as error:
            return _failure(f"The MCP server {label!r} cannot be reached: {self._said(error)}")
        fault = ""
        with anyio.CancelScope() as scope:
            connection.calls.add(scope)
            try:
                report = partial(_report, context)
                return _reply(await connection.client.call_tool(tool, dict(arguments), progress_callback=report))
            except MCPError as error:
                fault = f"MCP error {error.code}: {self.server.without_secrets(error.message)}"
            except Exception as error:  # noqa: BLE001 - any exception of the client is the call's result
                fault = self._said(error)
            finally:
                connection.calls.discard(scope)
        if not scope.cancelled_caught and await self._answers(connection):
            return _failure(fault)
        if self._connection is connection:
            self.drop()
        return _failure(
            f"The connection to the MCP server {label!r} broke before it answered. The effect of the call is unknown. "
            "The next call connects again."
        )

    async def _answers(self, connection: _OpenServer) -> bool:
        """Return whether a server still answers: a server may use the code of a closed connection for its own errors."""
        try:
            with anyio.fail_after(self.server.connect_timeout):
                await connection.client.list_tools()
        except Exception:  # noqa: BLE001 - any exception of the client
            return False
        return True

    def _said(self, error: BaseException) -> str:
        return self.server.without_secrets(_reason(error))

    # --- the connection ------------------------------------------------------------------------------------------------

    async def _connected(self) -> _OpenServer:
        """Return the connection; connect first if necessary.

        Raises:
            OSError: Connecting failed.
        """
        async with self._connecting:
            if self._connection is None:
                made: _OpenServer = await self._group.start(self._keep)
                self._connection = made
            return self._connection

    async def _keep(self, *, task_status: anyio.abc.TaskStatus[_OpenServer]) -> None:
        """Connect, and keep the connection until it is unwanted or breaks. Raises only while connecting."""
        connection: _OpenServer | None = None
        with tempfile.TemporaryFile() as printed:
            try:
                with anyio.fail_after(self.server.connect_timeout) as limit:
                    async with AsyncExitStack() as stack:
                        transport = await self._transport(printed, stack)
                        connection = _OpenServer(await stack.enter_async_context(Client(transport, cache=None)))
                        limit.deadline = math.inf  # the scope lies around what was entered and cannot end before it
                        task_status.started(connection)
                        await connection.unwanted.wait()
            except Exception as error:  # the client raises any exception, in groups
                if connection is None:
                    raise ConnectionError(self._why(error, printed)) from error
            finally:
                if connection is not None and self._connection is connection:
                    self._connection = None
                for scope in () if connection is None else tuple(connection.calls):
                    scope.cancel()

    async def _transport(self, printed: IO[bytes], stack: AsyncExitStack) -> Any:  # noqa: ANN401 - the client's own protocol
        server = self.server
        if server.server_url is not None:
            timeout = httpx2.Timeout(_HTTP_SECONDS, read=_STREAM_SECONDS)
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout))
            return streamable_http_client(server.server_url, http_client=http)
        parameters = StdioServerParameters(
            command=str(server.command), args=list(server.args), env=dict(server.env) or None, cwd=server.cwd
        )
        return stdio_client(parameters, errlog=printed)  # type: ignore[arg-type] # it uses the file number only

    def _why(self, error: Exception, printed: IO[bytes]) -> str:
        if isinstance(error, TimeoutError):
            error = TimeoutError(f"it did not answer within {self.server.connect_timeout:g} s")
        printed.seek(max(0, printed.seek(0, 2) - _PRINTED_BYTES))
        said = printed.read().decode(errors="replace").strip()
        return f"{_reason(error)}." + (f" It printed:\n{said}" if said else "")


def _reason(error: BaseException) -> str:
    """Return the innermost error of exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ConnectionError) and error.__cause__ is not None:
        return str(error)  # one of our own errors
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _failure(text: str) -> ToolReply:
    return ToolReply(text, is_error=True)


async def _report(context: CallContext, done: float, total: float | None, message: str | None) -> None:
    context.emit_progress(message or "", done, total)


# --- results -----------------------------------------------------------------------------------------------------------


def _reply(result: mcp_types.CallToolResult) -> ToolReply:
    """Return a result as a reply: its blocks in order, or its structured content if it has no blocks."""
    parts = [part for block in result.content for part in _parts(block)]
    structured = result.structured_content
    metadata = {} if structured is None else {"structured": structured}
    content = parts[0] if len(parts) == 1 else tuple(parts) or structured
    return ToolReply(content, is_error=bool(result.is_error), metadata=metadata)


def _parts(block: mcp_types.ContentBlock) -> Iterator[TextContent | bytes]:
    """Yield text, and bytes that become an image, sound or text by their content."""
    if isinstance(block, mcp_types.TextContent):
        yield TextContent(block.text)
    elif isinstance(block, mcp_types.ImageContent | mcp_types.AudioContent):
        yield _decoded(block.data)
    elif isinstance(block, mcp_types.ResourceLink):
        said = f": {block.description}" if block.description else ""
        yield TextContent(f"[resource {block.name!r} at {block.uri}{said}]")
    elif isinstance(block.resource, mcp_types.TextResourceContents):
        yield TextContent(f"[resource {block.resource.uri}]\n{block.resource.text}")
    else:
        yield TextContent(f"[resource {block.resource.uri}]")
        yield _decoded(block.resource.blob)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return text.encode()
