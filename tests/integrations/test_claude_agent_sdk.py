"""The Claude Agent SDK on stores of palaver: its own conformance contracts, its own readers, and several processes at once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from palaver import Session
from palaver.store import Store
from tests.integrations.test_claude_lane import answer, prompt, text

sdk = pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed: ./run integrations")
contracts = pytest.importorskip("claude_agent_sdk.testing")
adapter = pytest.importorskip("palaver.integrations.claude_agent_sdk")

KEY = {"project_key": "project", "session_id": "0192f0c4-0000-7000-8000-000000000001"}


def test_every_contract_holds(new_store: Callable[[], Store]) -> None:
    """All contracts that the SDK ships hold, none of its optional methods is missing."""
    asyncio.run(contracts.run_session_store_conformance(lambda: adapter.PalaverSessionStore(new_store())))


def test_the_sdk_reads_what_it_wrote(store: Store) -> None:
    """The SDK's own readers give sessions, titles and messages; its fork is another session of the store."""
    kept = adapter.PalaverSessionStore(store)
    project = sdk.project_key_for_directory("/tmp")  # noqa: S108 - a name, nothing is made there
    key = {**KEY, "project_key": project}
    at = {"timestamp": "2026-01-01T00:00:00.000Z", "sessionId": key["session_id"], "cwd": "/tmp"}  # noqa: S108

    async def work() -> tuple[list[Any], list[Any]]:
        await kept.append(key, [{**prompt("11111111-1111-4111-8111-111111111111", "Which files?"), **at}])
        reply = answer("22222222-2222-4222-8222-222222222222", "11111111-1111-4111-8111-111111111111", text("None."))
        await kept.append(key, [{**reply, **at}, {"type": "custom-title", "customTitle": "Files", **at}])
        listed = await sdk.list_sessions_from_store(kept, directory="/tmp")  # noqa: S108
        read = await sdk.get_session_messages_from_store(kept, key["session_id"], directory="/tmp")  # noqa: S108
        await sdk.fork_session_via_store(kept, key["session_id"], directory="/tmp")  # noqa: S108
        return listed, read

    listed, read = asyncio.run(work())
    assert [(one.session_id, one.summary) for one in listed] == [(key["session_id"], "Files")]
    assert [one.type for one in read] == ["user", "assistant"]
    names = [record.name for record in store.sessions(subject=project)]
    assert len(names) == 2
    assert "Files" in names
    assert [one.text_content() for one in Session.open(store, "Files").root.messages] == ["Which files?", "None."]


def test_writers_at_the_same_time_lose_nothing(two_stores: tuple[Store, Store]) -> None:
    """Two adapters on one session, each from tasks of its own: every record is there once, those of a caller in his order."""
    ours, theirs = map(adapter.PalaverSessionStore, two_stores)

    async def work() -> list[dict[str, Any]]:
        jobs = [
            one.append(KEY, [{"type": "x", "uuid": f"{who}{number}", "who": who, "n": number}])
            for number in range(12)
            for who, one in (("a", ours), ("b", theirs))
        ]
        await asyncio.gather(
            *jobs,
            ours.append(KEY, [{"type": "x", "uuid": "both"}]),
            theirs.append(KEY, [{"type": "x", "uuid": "both"}]),
        )
        return list(await ours.load(KEY))

    found = asyncio.run(work())
    assert len(found) == 25
    for who in "ab":
        assert [one["n"] for one in found if one.get("who") == who] == list(range(12))
