"""Calling one tool as a model does, of a program or of an MCP server."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from palaver.messages import ToolCallContent
from palaver.tools import CallContext, Function, Toolbox, ToolOutcome, execute
from palaver.tools.mcp import McpSession, connect


def run(function: Function | Callable[..., Any], call: ToolCallContent | None = None, **arguments: Any) -> ToolOutcome:  # noqa: ANN401
    """Answer one call of one tool."""
    box = Toolbox([function])
    made = call or ToolCallContent("c1", box.names[0], args=arguments)
    return anyio.run(functools.partial(execute, box, made))


def answer(function: Function | Callable[..., Any], **arguments: Any) -> str:  # noqa: ANN401
    """Return the text of the answer."""
    return run(function, **arguments).result.text()


async def ask(session: McpSession, name: str, context: CallContext | None = None, **arguments: Any) -> ToolOutcome:  # noqa: ANN401
    """Call a tool of an MCP server."""
    return await execute(Toolbox(session.functions), ToolCallContent("c1", name, args=arguments), context=context)


def with_server(server: Any, work: Callable[[McpSession], Awaitable[None]]) -> None:  # noqa: ANN401 - a declaration
    """Connect to an MCP server, and work with the connection."""

    async def main() -> None:
        async with connect(server) as session:
            await work(session)

    anyio.run(main)
