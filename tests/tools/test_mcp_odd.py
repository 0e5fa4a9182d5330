"""Servers that misbehave, and what a declaration may say; needs no Node.js."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from palaver.errors import InvalidInput, NotFound, PalaverError
from palaver.messages import ToolCallContent, thaw
from palaver.tools import MCP, Toolbox, execute, tool
from palaver.tools.mcp import McpSession, connect
from tests.tools.calling import ask, with_server

PROGRAM = str(Path(__file__).with_name("odd_server.py"))
SERVER = MCP("odd", command=sys.executable, args=(PROGRAM,))


def test_pages_and_odd_names() -> None:
    """Names that a tool cannot have become ones it can, each different, and the server hears its own."""

    async def work(session: McpSession) -> None:
        names = [each.name for each in session.functions]
        assert names == ["first", "a_b", "a_b_2", "a_b_3", "a_b_4", "echo", "fail", "leave", "odd"]
        heard = [(await ask(session, name)).result.text() for name in names[1:5]]
        assert heard == ["a b {}", "a/b {}", "a:b {}", "a_b {}"]

    with_server(SERVER, work)


def test_a_server_that_errs_or_leaves() -> None:
    """Its own error keeps the connection, whatever the code; where it leaves, the call is an error and the next one is answered."""

    async def work(session: McpSession) -> None:
        connection = session._connection
        assert (await ask(session, "fail")).error == "MCP error -32000: no such ticket"
        odd = await ask(session, "odd")
        assert (odd.ending, odd.result.text()) == ("failed", "no picture")
        assert thaw(odd.result.metadata) == {"structured": {"n": 1}}
        assert (await ask(session, "echo", n=1)).result.text() == 'echo {"n": 1}'
        assert session._connection is connection
        assert "broke before it answered" in str((await ask(session, "leave")).error)
        assert (await ask(session, "echo")).ending == "done"

    with_server(SERVER, work)


@contextmanager
def _over_http(port: int) -> Iterator[None]:
    """Run the server at a port, for as long as it lives."""
    with subprocess.Popen(
        [sys.executable, PROGRAM, str(port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"listening\n"
            yield
        finally:
            server.kill()


def test_a_server_over_http_that_dies_and_comes_back() -> None:
    """It dies within a call: an error that says so; calls while it is gone are errors, and once it is back the next one is answered."""

    async def work(session: McpSession) -> None:
        died = await ask(session, "leave")
        assert died.ending == "failed"
        assert "broke before it answered" in str(died.error)
        gone = await ask(session, "echo")
        assert gone.ending == "failed"
        assert "cannot be reached" in str(gone.error)
        with _over_http(port):
            assert (await ask(session, "echo", n=1)).result.text() == 'echo {"n": 1}'

    with socket.socket() as kept:  # bound and never listening, so that nobody else gets the port meanwhile
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        with _over_http(port):
            with_server(MCP("odd", f"http://127.0.0.1:{port}/mcp"), work)


def test_a_wrong_declaration_of_a_server_is_refused() -> None:
    """R113: a label, exactly one of address and program, lists as lists, and no unknown field."""
    for wrong in (
        {"server_label": "two words", "command": "x"},
        {"server_label": "x"},
        {"server_label": "x", "command": "x", "server_url": "http://x"},
        {"server_label": "x", "command": "x", "require_approval": "sometimes"},
        {"server_label": "x", "command": "x", "args": "one"},
        {"server_label": "x", "command": "x", "allowed": ["y"]},
        {"command": "x"},
    ):
        with pytest.raises(InvalidInput):
            MCP.from_dict(wrong)


def test_approval_is_said_in_every_vocabulary() -> None:
    """R113: LLLM's words, names of tools, and the mapping of OpenAI's hosted tool."""
    cases: list[Any] = [
        ("never", []),
        ("manual", ["read", "write"]),
        ("auto", ["read", "write"]),
        ("always", ["read", "write"]),
        (["write"], ["write"]),
        ({"never": {"tool_names": ["read"]}}, ["write"]),
        ({"always": {"tool_names": ["write"]}}, ["write"]),
    ]
    for require, needed in cases:
        server = MCP("x", command="x", require_approval=require)
        assert [each for each in ("read", "write") if server.needs_approval(each)] == needed


def test_only_allowed_tools_are_offered() -> None:
    """R113: `allowed_tools` leaves the others out; a name the server does not have is refused with what is close. Fields are a declaration."""
    fields = {"type": "mcp", "server_label": "odd", "command": sys.executable, "args": [PROGRAM]}

    async def work(session: McpSession) -> None:
        assert [each.name for each in session.functions] == ["echo"]

    with_server(fields | {"allowed_tools": ["echo"]}, work)
    with pytest.raises(NotFound, match=r"tool of the MCP server 'odd' 'ecko'\. Close: echo"):
        with_server(fields | {"allowed_tools": ["ecko"]}, work)


def test_names_that_clash_get_the_label() -> None:
    """The program's own function keeps its name; those of servers get their labels."""

    @tool
    def echo(message: str) -> str:
        return message

    two = MCP("two", command=sys.executable, args=(PROGRAM,), require_approval=["echo"])

    async def main() -> None:
        async with connect(SERVER) as one, connect(two) as other:
            box = Toolbox([echo, *one.functions, *other.functions])
            assert {"echo", "odd_echo", "two_echo", "two_odd"} <= set(box.names)
            assert (await execute(box, ToolCallContent("c", "two_echo", args={"context": 1}))).ending == "done"
            assert [each.name for each in box if each.needs_approval] == ["two_echo"]

    anyio.run(main)


def test_a_server_that_cannot_be_used() -> None:
    """No program, one that ends, one that speaks otherwise, nobody at the address: one error, which says why and no secret."""
    cases: list[Any] = [
        (MCP("x", command="no-such-program-here"), "FileNotFoundError"),
        (MCP("x", command="sh", args=("-c", "echo no token >&2; exit 3")), "It printed:\nno token"),
        (MCP("x", command="sh", args=("-c", "echo key $KEY >&2; exit 3"), env={"KEY": "s3cr3t"}), "key ***"),
        (MCP("x", command="cat", connect_timeout=1), "cannot be used"),
        (MCP("x", "http://127.0.0.1:9/mcp"), "ConnectError"),
        (MCP("x", command=sys.executable, args=(PROGRAM, "endless")), "more than 1000 pages"),
    ]

    async def work(_: McpSession) -> None:
        raise AssertionError("it is connected")

    for server, why in cases:
        with pytest.raises(PalaverError, match="The MCP server 'x'") as caught:
            with_server(server, work)
        assert why in str(caught.value)
