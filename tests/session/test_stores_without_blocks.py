"""A store of somebody else's that does not say whether a thread is inside a block: everything works with it, and nothing is half written."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from palaver import MemoryStore, Session, Store
from palaver.errors import Conflict
from palaver.integrations.keyed import Keyed, step
from palaver.session.carried.replay import read_log
from palaver.store.blocks import in_block, require_no_block, tells_blocks
from palaver.view import fold
from tests.agent.helper import scripted


class Older:
    """A store that was made for the protocol as it was: all of it, without `in_block`."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._inner = MemoryStore()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a store has
        """Hand everything on."""
        if name == "in_block":
            raise AttributeError(name)
        return getattr(self._inner, name)


def older() -> Store:
    """Give one."""
    return cast("Store", Older())


def test_no_thread_counts_as_inside_a_block_of_it() -> None:
    """It is a store by its protocol; it tells nothing, and nothing is refused."""
    store = older()
    assert isinstance(store, Store)
    assert not tells_blocks(store)
    with store.together():
        assert not in_block(store)
        require_no_block(store, "A turn")


def test_sessions_are_made_and_written_to(tmp_path: Path) -> None:
    """A session is made with its dialog, or not at all; dialogs are written to inside blocks and outside, forked, read, and followed."""
    store = older()
    session = Session.create(store, "s", log_base=tmp_path / "log")
    dialog = session.root
    dialog.put_text("first")
    with store.together():
        dialog.put_text("second")
        dialog.label(dialog.messages.handle(0), "start")
    fork = dialog.fork()
    fork.put_text("third")
    assert [message.text_content() for message in fork.messages] == ["first", "second", "third"]
    assert [record.root for record in store.sessions()] == [dialog.dialog_id]
    assert dialog.view() == fold(store, dialog.dialog_id)
    dialog.record_call(dialog.request("openai-chat", "gpt-4o"))
    assert [len(carried.lines) for carried in read_log(tmp_path / "log")[1]] == [4, 1]


def test_what_its_block_took_back_is_forgotten_by_a_reload() -> None:
    """Then it is in no view and no call, also when as much was written in its place before."""
    store = older()
    dialog = Session.create(store, "s").root
    dialog.put_text("first")
    other = Session.open(dialog.session_id, store).root
    with suppress(ZeroDivisionError), store.together():
        dialog.put_text("undone")
        dialog.view()
        dialog.record_call(dialog.request("openai-chat", "gpt-4o"))
        raise ZeroDivisionError
    for number in range(3):
        other.put_text(f"other {number}")
    dialog.reload()
    assert [message.text_content() for message in dialog.messages] == ["first", "other 0", "other 1", "other 2"]
    assert dialog.view() == fold(store, dialog.dialog_id)
    dialog.record_call(dialog.request("openai-chat", "gpt-4o"))
    assert [call.request().digest for call in dialog.invocations] == [
        call.sent["digest"] for call in dialog.invocations
    ]


def test_an_agent_answers_in_it() -> None:
    """A whole turn, spoken to while nobody is in a block."""
    store = older()
    agent, _ = scripted(["Yes.", "Again."], store=store)
    assert agent.respond(input="Well?").text_content() == "Yes."
    agent.receive("And?")
    assert agent.respond().text_content() == "Again."


def test_what_other_frameworks_keep_in_it_is_one_step() -> None:
    """Sessions by keys of their own are made once, and nothing is there of a step that another writer forestalled."""
    store = older()
    keyed = Keyed(store, "framework")
    tries: list[str] = []

    def made() -> str:
        record = keyed.make("key", name="n", about={})
        tries.append(record.session_id)
        if len(tries) == 1:
            raise Conflict(record.session_id, 0, 1)
        return record.session_id

    assert step(store, made) == step(store, made)
    assert len(tries) == 3
    assert len(list(store.sessions())) == 1
