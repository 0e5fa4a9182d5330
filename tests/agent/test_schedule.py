"""The schedule in use: an agent's calls, what the log says of them, and what is recorded of each decision."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

import pytest

from palaver import Dialog, Prompt, Session, tool, wire
from palaver.agent import Agent
from palaver.context import PriceSheet, Scheduled
from palaver.log import Compaction, decode_entry
from palaver.models import ScriptedProvider
from palaver.store import SqliteStore, Store
from palaver.view import fold

_PAGES = random.Random(5)  # noqa: S311 - pages, not secrets
_BOOK = [" ".join(str(_PAGES.random()) for _ in range(60)) for _ in range(24)]
_ROUNDS = 24
_DEAR = PriceSheet(missed=0.0)


async def read(page: int) -> str:
    """Read a page."""
    return _BOOK[page]


def _agent(store: Store, rounds: int = _ROUNDS) -> Agent:
    pages = iter(range(rounds))

    def answer(_request: object) -> object:
        page = next(pages, None)
        return (
            "Done."
            if page is None
            else {"tool_calls": [{"name": "read", "arguments": {"page": page}, "id": f"c{page}"}]}
        )

    prompt = Prompt(path="tests/reader", prompt="You read pages.", function_list=[tool(read)])
    policy = Scheduled("palaver", "claude-sonnet-4-5", prices=_DEAR, newest=2)
    return Agent(
        "reader",
        prompt,
        "claude-sonnet-4-5",
        ScriptedProvider(answer),
        store=store,
        context_manager=policy,
        max_interrupt_steps=rounds + 1,
    )


def _read(store: Store) -> Dialog:
    agent = _agent(store)
    agent.open("main")
    agent.receive("Read the book.")
    agent.respond()
    return agent.current_dialog


@pytest.fixture(scope="module")
def dialog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dialog]:
    """Give the dialog of one turn, in a durable store."""
    with closing(SqliteStore(tmp_path_factory.mktemp("schedule") / "sessions.db")) as store:
        yield _read(store)


def test_every_call_records_what_was_decided_before_it(dialog: Dialog) -> None:
    """Each invocation has the decision with its numbers, whether something was flushed or kept."""
    decisions = [call.decision for call in dialog.invocations]
    assert len(decisions) == _ROUNDS + 1
    assert all(decision is not None for decision in decisions)
    whys = [decision["edits"]["why"] for decision in decisions if decision is not None]
    assert {"nothing", "kept", "paid"} == set(whys)
    for decision in decisions:
        assert decision is not None
        edits = decision["edits"]
        assert (edits["why"] == "paid") == (edits["flushed"] > 0)
        assert edits["why"] != "paid" or edits["rent"] >= edits["price"]
        assert edits["why"] != "kept" or edits["rent"] < edits["price"]


def test_a_flush_is_committed_and_every_past_call_can_be_made_again(dialog: Dialog) -> None:
    """Each flush is one compaction, later views start there, and the requests of all calls come back to the byte."""
    flushed = [call for call in dialog.invocations if call.decision is not None and call.decision["edits"]["flushed"]]
    entries = [decode_entry(body) for _, body in dialog.store.bodies(dialog.dialog_id)]
    commits = [entry for entry in entries if isinstance(entry, Compaction)]
    assert len(commits) == len(flushed) > 1
    for call in dialog.invocations:
        assert call.request().digest == call.sent["digest"]
    assert fold(dialog.store, dialog.dialog_id).settled


def test_between_flushes_requests_go_on_from_each_other(dialog: Dialog) -> None:
    """Law 7 for what was really sent: a call that flushed nothing begins with all of the call before."""
    calls = list(dialog.invocations)
    for before, after in pairwise(calls):
        assert after.decision is not None
        if not after.decision["edits"]["flushed"]:
            assert wire.broken_at(before.request(), after.request()) is None


def test_nothing_is_lost_by_a_flush(dialog: Dialog) -> None:
    """Every page can be recalled by the handle that stands in its place, and stands in the whole view."""
    lines = [
        block
        for exchange in dialog.view().exchanges
        for block in exchange.blocks()
        if block.reason is not None and block.origin is not None
    ]
    assert len(lines) > 4
    for block in lines:
        assert block.origin is not None
        assert getattr(dialog.recall(block.origin), "content", "") in _BOOK
    assert Session.open(dialog.session_id, dialog.store).root.view(at=None) == dialog.view()
