"""What is in use takes note of an erasure by itself; and planning reads no bytes of media."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from palaver import AssistantMessage, Conflict, UserMessage
from palaver.context import POLICIES
from palaver.context.summary import SummaryAnswer, SummaryRequest
from palaver.erasure.erase import erase
from palaver.errors import Erased
from palaver.log import Handle
from palaver.messages import ImageContent, Media, TextContent, ThinkingContent
from palaver.session import Dialog, Session
from palaver.store import Durability, MemoryStore, SqliteStore, Store
from palaver.store.erasing import Erasing
from palaver.tokens import Budget
from palaver.view import Reason

SECRET = "ZEBRA-9911"
MODEL, CLAUDE = "gpt-4o", "claude-fable-5-2"
Places = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """Return what opens one log as several processes do: each with a store of its own, where there can be several."""
    opened: list[Store] = []

    def another() -> Store:
        if request.param == "memory":
            store: Store = opened[0] if opened else MemoryStore()
        else:
            store = SqliteStore(tmp_path / "s.db", Durability.NORMAL)
        opened.append(store)
        return store

    yield another
    for store in opened:
        store.close()


def talked(store: Store) -> tuple[Dialog, Handle]:
    """Return a dialog with a secret in it, and where that is."""
    dialog = Session.create(store, "s").root
    dialog.put_text("Make it fast.")
    dialog.put_text(f"You must never say {SECRET}.")
    thought = ThinkingContent(content="hm", signature="c2ln", provider="anthropic")
    dialog.request("anthropic", CLAUDE)
    dialog.append(AssistantMessage(contents=(thought, TextContent(content="Fine.")), model=CLAUDE))
    dialog.put_text("Go on.")
    return dialog, dialog.messages.handle(1)


def said(dialog: Dialog) -> str:
    """Return all that a dialog tells a model, or plans to."""
    request = dialog.request("anthropic", CLAUDE, policy="palaver", budget=10_000)
    view = dialog.view()
    shown = [repr(block.content) for exchange in view.exchanges for block in exchange.blocks()]
    return json.dumps([request.body, shown, repr(view.omissions)])


def test_another_process_erases(process: Places) -> None:
    """Who goes on says nothing of it any more, without a reload; what was made of it goes too; signed thoughts after it are stale."""
    dialog, place = talked(process())
    branch = dialog.fork()
    branch.put_text("Here it is called HORSE-2.")
    Session.open(dialog.store, "s").merge(branch, dialog)
    assert SECRET in said(dialog)
    assert "HORSE-2" in said(dialog)
    dialog.calls.record(request := dialog.request("anthropic", CLAUDE))
    assert b"signature" in request.data
    erase(process(), entries=[place, branch.messages.handle(-1)], thorough=False)
    assert SECRET not in said(dialog)
    assert "HORSE-2" not in said(dialog)
    assert b"signature" not in dialog.request("anthropic", CLAUDE).data
    assert said(dialog) == said(Session.open(process(), "s").root)
    dialog.put_text("And on.")
    dialog.calls.record(request := dialog.request("anthropic", CLAUDE))
    assert dialog.calls[-1].request().data == request.data


def test_what_others_said_stays_unknown(process: Places) -> None:
    """An erasure is taken note of at once, whatever stands before it; words of others only with a reload, so that a write on them is refused."""
    dialog, place = talked(process())
    assert SECRET in said(dialog)
    other = process()
    Session.open(other, "s").root.put_text("Behind your back.")
    erase(other, entries=[place], thorough=False)
    assert SECRET not in said(dialog)
    assert "Behind your back" not in said(dialog)
    with pytest.raises(Conflict):
        dialog.put_text("And on.")
    assert "Behind your back" in said(dialog.reload())


def test_who_goes_on_with_what_is_gone_is_refused(process: Places) -> None:
    """Nothing is made of what an object still has of a session, or a dialog, that was erased."""
    for what in ("dialog", "session"):
        dialog, _ = talked(process())
        assert SECRET in said(dialog)
        gone = dialog.session_id if what == "session" else dialog.dialog_id
        erase(process(), **{what: gone}, thorough=False)  # type: ignore[arg-type]
        for asked in (dialog.view, lambda it=dialog: it.request("openai-chat", MODEL), dialog.compaction.preview):
            with pytest.raises(Erased):
                asked()


def test_what_a_block_took_back_hides_no_erasure(process: Places) -> None:
    """Entries that a block wrote and took back leave their numbers to others: an erasure that is noted under one of them is found."""
    dialog, place = talked(process())
    with suppress(ZeroDivisionError), dialog.store.transaction():
        for number in range(3):
            dialog.put_text(f"Taken back {number}")
        assert "Taken back 2" in said(dialog)
        raise ZeroDivisionError
    erase(process(), entries=[place], thorough=False)
    dialog.marks.pin(dialog.messages.handle(0))
    assert SECRET not in said(dialog)
    assert "Taken back" not in said(dialog)


# --- what planning reads ----------------------------------------------------------------------------------------------------------


async def quiet(request: SummaryRequest, /) -> SummaryAnswer:
    """Summarise."""
    return SummaryAnswer(text="\n\n".join(f"## {heading}\nNothing new." for heading in request.headings))


def pictured(store: Store) -> Dialog:
    """Return a dialog of pictures, all but two of which are shown as lines, and with words of which parts are shown."""
    dialog = Session.create(store, "s").root
    for number in range(8):
        picture = Media.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes([number]) * 4_000)
        shown = (TextContent(content=f"See {number}."), ImageContent(images=(picture,)))
        dialog.append(UserMessage(contents=shown))
        dialog.put_text("ok " * 50, role="assistant")
    dialog.put_text("Go.")
    made = dialog.compaction.compose("palaver", Budget(max_tokens=100_000, max_media=2), model=MODEL)
    dialog.compaction.commit(made)
    shown_as = [block.reason for exchange in dialog.view().exchanges for block in exchange.blocks()]
    assert shown_as.count(Reason.OFFLOADED) == 6
    return dialog


def test_a_lost_payload_stops_no_plan() -> None:
    """Whichever picture is lost, shown or not: plans are made, and the request says what is missing."""
    dialog = pictured(MemoryStore())
    store = cast("Erasing", dialog.store)
    with store.erasing() as eraser:
        eraser.remove_blobs(dialog.session_id, list(cast("MemoryStore", store).contents.blobs))
    for policy in sorted(POLICIES):
        dialog.compaction.compose(policy, 5_000, model=MODEL)
    assert "cannot be had" in json.dumps(dialog.request("openai-chat", MODEL).body)


def test_what_is_gone_is_in_no_record() -> None:
    """What a provider refused, and what nobody may have, is in no record, no request for a summary and no view."""
    for how in ("quarantined", "erased"):
        dialog = Session.create(MemoryStore(), "s").root
        dialog.put_text(f"Find {SECRET}. You must never lose {SECRET}.")
        for number in range(30):
            dialog.put_text(f"answer {number} " + "word " * 60, role="assistant")
            dialog.put_text(f"go {number}")
        place = dialog.messages.handle(0)
        if how == "erased":
            erase(dialog.store, entries=[place])
        else:
            dialog.marks.quarantine(place)
        asked: list[SummaryRequest] = []

        async def reader(request: SummaryRequest, /, asked: list[SummaryRequest] = asked) -> SummaryAnswer:
            asked.append(request)
            return await quiet(request)

        made = asyncio.run(dialog.compaction.apreview(reader, budget=1_500, model=MODEL))
        made.approve()
        read = [request.prompt() for request in asked]
        assert read
        assert SECRET not in json.dumps([*read, made.to_dict(), dialog.request("openai-chat", MODEL).body]), how
