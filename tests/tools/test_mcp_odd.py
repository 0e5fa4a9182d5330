"""What a server may do that well-behaved ones do not; needs no Node.js."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from palaver.errors import InvalidInput, ServerUnreachable
from palaver.messages import ToolCallContent, thaw
from palaver.tools import Toolbox, ToolOutcome, execute
from palaver.tools.mcp import MCP, McpSession, connect

PROGRAM = str(Path(__file__).with_name("odd_server.py"))
SERVER = MCP("odd", command=sys.executable, args=(PROGRAM,))


async def ask(session: McpSession, name: str, **arguments: Any) -> ToolOutcome:  # noqa: ANN401 - JSON
    """Call a tool."""
    return await execute(Toolbox(session.functions), ToolCallContent("c", name, args=arguments))


def test_all_pages_are_read_and_odd_names_are_told_apart() -> None:
    """Names that a tool cannot have become ones it can, each different, and the server hears its own."""

    async def main() -> None:
        async with connect(SERVER) as session:
            names = [each.name for each in session.functions]
            assert names == ["first", "a_b", "a_b_2", "a_b_3", "a_b_4", "echo", "fail", "leave", "mute", "odd"]
            heard = [(await ask(session, name)).result.text() for name in names[1:5]]
            assert heard == ["a b {}", "a/b {}", "a:b {}", "a_b {}"]

    anyio.run(main)


def test_an_error_of_the_servers_own_is_not_taken_for_the_end() -> None:
    """The code that clients use for a closed connection may be the server's: the connection stays."""

    async def main() -> None:
        async with connect(SERVER) as session:
            line = session._line
            failed = await ask(session, "fail")
            assert failed.error == "MCP error -32000: no such ticket"
            assert (await ask(session, "echo", n=1)).result.text() == 'echo {"n": 1}'
            assert session._line is line

    anyio.run(main)


def test_a_server_that_leaves_instead_of_answering() -> None:
    """The call is an error, and is not sent to the next process; the next call is."""

    async def main() -> None:
        async with connect(SERVER) as session:
            gone = await ask(session, "leave")
            assert "broke before it answered" in str(gone.error)
            assert (await ask(session, "echo")).ending == "done"

    anyio.run(main)


def test_results_that_show_nothing() -> None:
    """No content is said to be none; an image of no known kind is named; structured content is kept."""

    async def main() -> None:
        async with connect(SERVER) as session:
            assert (await ask(session, "mute")).result.text() == "(no output)"
            odd = await ask(session, "odd")
            assert odd.ending == "failed"
            assert thaw(odd.result.metadata) == {"structured": {"n": 1}}
            assert len(odd.result.content) > 0

    anyio.run(main)


def test_a_server_that_cannot_come_back(tmp_path: Path) -> None:
    """While connecting again fails, calls are errors that say so; later ones are answered."""
    door = tmp_path / "door"
    door.touch()
    script = 'test -e "$1" && exec "$2" "$3"'
    server = MCP("odd", command="sh", args=("-c", script, "sh", str(door), sys.executable, PROGRAM))

    async def main() -> None:
        async with connect(server) as session:
            door.unlink()
            await ask(session, "leave")
            for _ in range(2):
                assert "The MCP server 'odd' cannot be reached" in str((await ask(session, "echo")).error)
            door.touch()
            assert (await ask(session, "echo")).ending == "done"

    anyio.run(main)


def test_a_declaration_may_be_that_of_a_configuration() -> None:
    """Fields are as good as a declaration; wrong ones are refused before anything is started."""
    fields = {
        "type": "mcp",
        "server_label": "odd",
        "command": sys.executable,
        "args": [PROGRAM],
        "allowed_tools": ["echo"],
    }

    async def main() -> None:
        async with connect(fields) as session:
            assert [each.name for each in session.functions] == ["echo"]
        with pytest.raises(InvalidInput, match="An MCP server has no 'comand'"):
            async with connect({"server_label": "odd", "comand": "x"}):
                pass

    anyio.run(main)


def test_a_list_that_never_ends_is_given_up() -> None:
    """A server that always has another page cannot hold the program."""
    endless = MCP("odd", command=sys.executable, args=("-c", _ENDLESS), connect_timeout=20)

    async def main() -> None:
        async with connect(endless):
            pass

    with pytest.raises(ServerUnreachable, match="more than 1000 pages"):
        anyio.run(main)


_ENDLESS = f"""
import runpy, sys
module = runpy.run_path({PROGRAM!r})
pages = module["PAGES"]
pages[None] = (["x"], "2")
pages["2"] = ([], "2")
module["main"]()
"""
