"""A live server: its tools as functions, and what happens when it dies.

A call that is on its way when the connection breaks is answered with an error, since nobody knows what it did; the next call connects
once again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

import anyio
import anyio.abc

from palaver.errors import ServerUnreachable, UnknownTool
from palaver.messages import thaw
from palaver.tools.binding import Binding
from palaver.tools.context import CallContext
from palaver.tools.function import Function
from palaver.tools.mcp.line import Line, keep, reason
from palaver.tools.mcp.results import reply
from palaver.tools.names import local_names
from palaver.tools.outcome import ToolReply
from palaver.tools.servers import MCP

import mcp_types  # isort: skip  # after `line`, which says what is missing where it is
from mcp import MCPError  # isort: skip

__all__ = ["McpSession", "connect"]

_MOST_PAGES = 1_000
_EXPIRED = (
    "Session terminated"  # what the official client says of HTTP status 404: the server no longer knows the session
)
_CLOSED = "Connection closed"
_NO_ANSWER = "Server returned an error response"


@asynccontextmanager
async def connect(server: MCP | Mapping[str, Any]) -> AsyncIterator[McpSession]:
    """Connect to a server for the time of the block.

    Args:
        server: The declaration, or its fields as a configuration has them.

    Raises:
        InvalidInput: The fields are no declaration.
        ServerUnreachable: It does not answer within `connect_timeout`, or not as an MCP server.
        UnknownTool: `allowed_tools` names one that it has not.
    """
    declared = server if isinstance(server, MCP) else MCP.from_dict(server)
    failure: BaseException | None = None
    async with anyio.create_task_group() as group:
        session = McpSession(declared, group)
        try:
            await session.refresh()
            yield session
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 - raised again below, without the group that the task group would wrap it in
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await session.close()
    if failure is not None:
        raise failure


class McpSession:
    """The tools of one server. Made by `connect`; ends with its block.

    Attributes:
        server: What was declared.
        functions: The tools, as functions that call the server; `refresh` asks for them again.
    """

    def __init__(self, server: MCP, group: anyio.abc.TaskGroup) -> None:
        self.server = server
        self.functions: tuple[Function, ...] = ()
        self._group = group
        self._line: Line | None = None
        self._connecting = anyio.Lock()

    async def refresh(self) -> tuple[Function, ...]:
        """Ask the server for its tools.

        Raises:
            ServerUnreachable: It does not answer.
            UnknownTool: `allowed_tools` names one that it has not.
        """
        try:
            with anyio.fail_after(self.server.connect_timeout):
                found = await self._list()
        except (MCPError, ConnectionError, TimeoutError, ValueError) as error:
            raise ServerUnreachable(self.server.server_label, self.server.address, self._said(error)) from error
        self.functions = tuple(self._functions(found))
        return self.functions

    async def close(self) -> None:
        """Leave the server; a program that was started ends."""
        if self._line is not None:
            self._line.unwanted.set()
            await self._line.gone.wait()

    # --- tools ---------------------------------------------------------------------------------------------------------

    async def _list(self) -> list[mcp_types.Tool]:
        client = (await self._live()).client
        found: list[mcp_types.Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            found.extend(page.tools)
            cursor = page.next_cursor
            if cursor is None:
                return found
        raise ConnectionError(f"its list of tools has more than {_MOST_PAGES} pages")

    def _functions(self, found: list[mcp_types.Tool]) -> list[Function]:
        names = [each.name for each in found]
        allowed = self.server.allowed_tools
        for name in allowed or ():
            if name not in names:
                raise UnknownTool(
                    name,
                    close=get_close_matches(name, names),
                    what=f"tool of the MCP server {self.server.server_label!r}",
                )
        offered = [each for each in found if allowed is None or each.name in allowed]
        prefix = f"{self.server.server_label}_" if self.server.prefix else ""
        return [
            self._function(each, name)
            for each, name in zip(offered, local_names((each.name for each in offered), prefix), strict=True)
        ]

    def _function(self, given: mcp_types.Tool, name: str) -> Function:
        hints = given.annotations.model_dump(exclude_none=True) if given.annotations else {}
        call = partial(self._call, given.name)
        return Function(
            name,
            given.description or given.title or "",
            parameters=given.input_schema,
            function=call,
            binding=_Remote(call, ()),
            timeout=self.server.timeout,
            needs_approval=self.server.needs_approval(given.name),
            metadata={"mcp": {"server": self.server.server_label, "tool": given.name, "hints": hints}},
        )

    # --- calls ---------------------------------------------------------------------------------------------------------

    async def _call(self, tool: str, arguments: Mapping[str, Any], context: CallContext) -> ToolReply:
        for attempt in range(2):
            try:
                line = await self._live()
            except (ConnectionError, TimeoutError) as error:
                return _failure(f"The MCP server {self.server.server_label!r} cannot be reached: {self._said(error)}")
            answer = await self._ask(line, tool, arguments, context)
            if not isinstance(answer, _Expired):
                return answer
            self._drop(line)
            if attempt:
                break
        return _failure(
            f"The MCP server {self.server.server_label!r} does not keep the session. The call was not executed."
        )

    async def _ask(
        self, line: Line, tool: str, arguments: Mapping[str, Any], context: CallContext
    ) -> ToolReply | _Expired:
        """Send one call, and wait for its answer or for the line to break."""
        box: list[ToolReply | _Expired] = []

        async def ask() -> None:
            try:
                result = await line.client.call_tool(tool, thaw(arguments), progress_callback=_progress(context))
                box.append(reply(result))
            except MCPError as error:
                box.append(self._refused(line, error))
            except Exception as error:  # noqa: BLE001 - whatever the client raises is the call's result
                box.append(_failure(self._said(error)))
            group.cancel_scope.cancel()

        async def watch() -> None:
            await line.gone.wait()
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(watch)
        return box[0] if box else self._broke(line)

    def _refused(self, line: Line, error: MCPError) -> ToolReply | _Expired:
        """Tell an answer of the server's from the end of the connection."""
        if error.message == _EXPIRED:
            return _Expired()
        closed = error.code == mcp_types.CONNECTION_CLOSED  # which servers give as an error of their own, too
        if (closed and (error.message == _CLOSED or self.server.server_url)) or error.message == _NO_ANSWER:
            return self._broke(line)
        return _failure(f"MCP error {error.code}: {self.server.without_secrets(error.message)}")

    def _broke(self, line: Line) -> ToolReply:
        self._drop(line)
        return _failure(
            f"The connection to the MCP server {self.server.server_label!r} broke before it answered. "
            "What the call did is not known. The next call connects again."
        )

    def _said(self, error: BaseException) -> str:
        return self.server.without_secrets(reason(error))

    # --- the connection ------------------------------------------------------------------------------------------------

    async def _live(self) -> Line:
        """Give a line that stands, connecting when there is none."""
        async with self._connecting:
            if self._line is None or not self._line.stands:
                if self._line is not None:
                    self._drop(self._line)
                self._line = None
                line: Line = await self._group.start(partial(keep, self.server))
                self._line = line
            return self._line

    @staticmethod
    def _drop(line: Line) -> None:
        line.unwanted.set()


@dataclass(frozen=True, slots=True)
class _Expired:
    """The server does not know the session any more, and has not looked at the call."""


@dataclass(frozen=True)
class _Remote(Binding):
    """The call of a tool whose types only the server knows: the arguments go as they are."""

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> Any:  # noqa: ANN401 - ready to be awaited
        return partial(self.function, arguments, context)


def _failure(text: str) -> ToolReply:
    return ToolReply(text, is_error=True)


def _progress(context: CallContext) -> Any:  # noqa: ANN401 - the client's own protocol
    async def told(done: float, total: float | None, message: str | None) -> None:
        context.emit_progress(message or "", done, total)

    return told
