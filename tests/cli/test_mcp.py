"""The MCP server, asked by the official client: what it returns, of which sessions, and how much."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

pytest.importorskip("mcp")  # an extra

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent

from palaver import Session, SqliteStore
from palaver.browsing.scope import scoped
from palaver.browsing.search import index
from palaver.errors import NotFound, StoreError
from palaver.log.redaction import PatternRedactor
from tests.cli.commands import PROGRAM, Palaver, run
from tests.cli.test_page import PAGE

KEY = "sk-ant-api03-" + "Zq9xB7" * 16 + "-AAAA"
"""What looks like a key of a provider."""

Ask = Callable[..., Awaitable[tuple[bool, str]]]


@pytest.fixture
def kept(palaver: Palaver) -> Palaver:
    """Return the command line over sessions of two folders and two subjects, one with a key in it and one long."""
    with SqliteStore(palaver.store) as store:
        for name, folder, subject, words in (
            ("site", "/home/mara/site", "mara", f"Deploy pelican with {KEY} please"),
            ("wing", "/home/mara/site/wing", "mara", "The wing of the pelican. " * 4_000),
            ("other", "/home/mara/sites", "otto", "Another pelican"),
        ):
            dialog = Session.create(store, name, workdir=folder, subject=subject).root
            dialog.put_text(words)
            dialog.put_text("Done.", role="assistant")
        index(store)
    return palaver


def served(store: Path, work: Callable[[Client, Ask], Awaitable[None]], *options: str) -> None:
    """Run the server as a program, and ask it."""

    async def main() -> None:
        parameters = StdioServerParameters(
            command=sys.executable, args=[*PROGRAM[1:], "mcp", "--store", str(store), *options]
        )
        async with Client(stdio_client(parameters)) as client:

            async def ask(tool: str, **arguments: object) -> tuple[bool, str]:
                result = await client.call_tool(tool, arguments)
                (block,) = result.content
                assert isinstance(block, TextContent)
                return bool(result.is_error), block.text

            await work(client, ask)

    anyio.run(main)


def test_an_agent_finds_and_reads_a_session(kept: Palaver) -> None:
    """A list, a hit, the conversation, the view and the original; tools say that they only read, and the store's bytes are as before."""
    before = sha256(kept.store.read_bytes()).digest()

    async def work(client: Client, ask: Ask) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["sessions", "search", "show", "view", "recall", "cost"]
        assert all(tool.annotations and tool.annotations.read_only_hint and tool.description for tool in tools)
        _, listed = await ask("sessions")
        assert [line.split()[-1] for line in listed.splitlines()] == ["other", "wing", "site"]
        _, found = await ask("search", query="deploy")
        handle = found.split()[0]
        assert found.startswith(f"{handle}  user,")
        assert "Deploy pelican" in (await ask("recall", handle=handle))[1]
        assert "Deploy pelican" in (await ask("recall", handle="site:0"))[1]
        for tool in ("show", "view"):
            assert "Done." in (await ask(tool, session="site"))[1]
        assert await ask("show", session="sight") == (
            True,
            "Error executing tool show: There is no session 'sight'. Close: site.",
        )
        assert (await ask("recall", handle="nothing"))[0]

    served(kept.store, work)
    assert sha256(kept.store.read_bytes()).digest() == before


def test_pages_are_bounded_and_join_to_the_whole(kept: Palaver) -> None:
    """Whatever an agent asks for, a page ends early and names the offset of the next; all pages are the text, and those behind it are empty."""

    async def work(_client: Client, ask: Ask) -> None:
        pages, offset = [], 0
        while True:
            _, page = await ask("recall", handle="wing:0", offset=offset, limit=10**9)
            assert len(page) < 21_000
            text, mark, following = page.partition("\n[more follows; offset ")
            pages.append(text)
            if not mark:
                break
            offset = int(following.removesuffix("]"))
        assert "".join(pages).partition("\n")[2].rstrip() == ("The wing of the pelican. " * 4_000).rstrip()
        assert "nothing at offset" in (await ask("show", session="wing", offset=10**9, limit=10**9))[1]
        _, first = await ask("sessions", limit=-1)
        assert first.endswith("]")
        _, second = await ask("sessions", limit=1, after=first.split()[-1].removesuffix("]"))
        assert "wing" in second
        _, hits = await ask("search", query="pelican", limit=1)
        assert hits.endswith("[more follows; offset 1]")
        assert len((await ask("search", query="pelican", limit=10**9, offset=10**9))[1]) < 1_000

    served(kept.store, work)


def test_secrets_stay_in_the_store_unless_asked_for(kept: Palaver) -> None:
    """No tool returns a key or a part of one, and its words find nothing; with `--no-redact` it is there."""
    part = KEY[20:40]

    async def hidden(_client: Client, ask: Ask) -> None:
        for tool, arguments in (
            ("sessions", {}),
            ("search", {"query": "deploy"}),
            ("show", {"session": "site"}),
            ("view", {"session": "site"}),
            ("recall", {"handle": "site:0"}),
        ):
            failed, text = await ask(tool, **arguments)
            assert (failed, part in text) == (False, False), tool
        assert "[redacted:" in (await ask("recall", handle="site:0"))[1]
        assert await ask("search", query=KEY) == (False, "Nothing found.")

    async def shown(_client: Client, ask: Ask) -> None:
        assert KEY in (await ask("recall", handle="site:0"))[1]

    served(kept.store, hidden)
    served(kept.store, shown, "--no-redact")


def test_costs_are_those_of_the_sessions_in_scope(kept: Palaver) -> None:
    """As `palaver cost` counts them; a session out of scope adds nothing."""
    whole = PAGE.read_text(encoding="utf-8").partition('title="talk.jsonl"\n')[2].partition("```")[0].encode()
    kept.imported(whole)
    (total,) = kept("cost", "--json").rows()

    async def inside(_client: Client, ask: Ask) -> None:
        rows = (await ask("cost"))[1].splitlines()
        assert rows[0].startswith(f"{total['key']}  2 calls, {total['read']:,} tokens read, ")
        assert f"~${total['dollars']:.4f}" in rows[0]
        assert rows[-1].startswith("Together: 2 calls")
        assert "Together: 0 calls" in (await ask("cost", session="site", by="model", limit=10**9))[1]
        assert (await ask("cost", by="nothing"))[0]

    async def outside(_client: Client, ask: Ask) -> None:
        assert await ask("cost") == (
            False,
            "Together: 0 calls, 0 tokens read, none of them cached, 0 written, no price known",
        )

    served(kept.store, inside)
    served(kept.store, outside, "--subject", "otto")


def test_what_is_out_of_scope_is_as_if_it_were_not_there(kept: Palaver) -> None:
    """By folder or by subject, from every tool; a folder is not one whose name begins alike."""
    with SqliteStore(kept.store) as store:
        hidden = Session.open(store, "other")
        names = (hidden.session_id, "other", hidden.root.dialog_id, f"{hidden.root.dialog_id}:0")

    async def work(_client: Client, ask: Ask) -> None:
        assert "other" not in (await ask("sessions"))[1]
        assert "Another" not in (await ask("search", query="pelican"))[1]
        for name in names:
            unknown = await ask("show", session=name), await ask("recall", handle=name)
            assert all(failed and "Another" not in text for failed, text in unknown), name

    for option in (("--folder", "/home/mara/site"), ("--subject", "mara")):
        served(kept.store, work, *option)


def test_a_part_of_a_store_reads_and_writes_nothing(kept: Palaver) -> None:
    """Every method of a store that names a dialog or session out of scope finds none, and none writes."""
    with SqliteStore(kept.store) as inner:
        hidden = Session.open(inner, "other")
        part = scoped(inner, subject="mara", redactor=PatternRedactor())
        dialog, session = hidden.root.dialog_id, hidden.session_id
        for read in (part.node, part.last, part.headers, part.bodies, part.tail, part.verify, part.resolve):
            with pytest.raises(NotFound):
                read(dialog)
        for look in (part.session, part.nodes, part.root, part.sources):
            with pytest.raises(NotFound):
                look(session)
        for write in ("append", "annotate", "create_session", "update_session", "put_blob", "index", "source"):
            with pytest.raises(StoreError, match="only be read"):
                getattr(part, write)
        for number in range(400):
            hidden.root.put_text(f"pelican {number}")
        index(inner)
        assert len(part.search("pelican", ranked=True)) == 2, "other sessions' better hits take no place"
        assert part.sessions_beginning(session[:8]) == ()
        assert [record.name for record in part.sessions(limit=1)] == ["wing"]


def test_a_store_that_is_not_there_is_said(tmp_path: Path) -> None:
    """The server ends at once, with the store's name and what to do, and creates none."""
    ran = run("mcp", "--store", tmp_path / "none.db")
    assert ran.code == 4
    assert "palaver import" in ran.err
    assert not (tmp_path / "none.db").exists()
