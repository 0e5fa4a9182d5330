"""Transcripts of Claude Code mirrored record by record: nothing is changed or lost, and the dialogs can be read. Needs no SDK."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Session
from palaver.formats import open_source
from palaver.formats.records import Record
from palaver.ids import SessionId, new_session_id
from palaver.integrations.claude_lane import Lane, lanes_of
from palaver.session import searchable
from palaver.store import MemoryStore, SessionRecord, Store
from tests.recorded import Recording, recordings
from tests.sketches import sketch


def prompt(uuid: str, text: str, parent: str | None = None) -> dict[str, Any]:
    """Return a record in which the user speaks."""
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": text}}


def answer(uuid: str, parent: str, *content: dict[str, Any], response: str = "") -> dict[str, Any]:
    """Return a record in which the model speaks."""
    message = {"id": response or f"msg_{uuid}", "role": "assistant", "model": "claude-x", "content": list(content)}
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "message": message}


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


@pytest.fixture
def session(store: Store) -> SessionId:
    """Return an empty session."""
    made = new_session_id()
    store.create_session(SessionRecord(session_id=made))
    return made


def mirrored(store: Store, session: SessionId, *values: dict[str, Any], subpath: str = "") -> Lane:
    """Mirror records in one step, by a process that knows nothing yet."""
    lane = Lane(store, session, subpath)
    with store.transaction():
        lane.catch_up()
        lane.mirror(values)
    return lane


def loaded(store: Store, session: SessionId, subpath: str = "") -> list[object]:
    """Return the records back in their order."""
    lane = Lane(store, session, subpath)
    nodes = lanes_of(store, session, subpath).get(subpath, [])
    return [json.loads(one.text) for one in sorted(one for node in nodes for one in lane.records(node.dialog_id))]


def fresh(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records without those whose id was seen before."""
    keys = [one["uuid"] if isinstance(one.get("uuid"), str) else number for number, one in enumerate(records)]
    return [one for number, one in enumerate(records) if keys.index(keys[number]) == number]


def said(store: Store, session: SessionId) -> list[str]:
    """Return the words of the dialog that goes on."""
    return [message.text_content() for message in Session.open(store, session).root.messages]


def test_records_become_messages_and_come_back(store: Store, session: SessionId) -> None:
    """What was said are messages, fragments of a response one of them; everything comes back equal and in order."""
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}
    records = [
        {"type": "summary", "summary": "Files"},
        prompt("u1", "Which files?"),
        answer("a1", "u1", text("I look."), response="msg_1"),
        answer("a2", "a1", {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}, response="msg_1"),
        {"type": "user", "uuid": "u2", "parentUuid": "a2", "message": {"role": "user", "content": [result]}},
        answer("a3", "u2", text("One: a.txt.")),
    ]
    mirrored(store, session, *records)
    assert loaded(store, session) == records
    dialog = Session.open(store, session).root
    assert [message.role for message in dialog.messages] == ["user", "assistant", "tool", "assistant"]
    assert [call.name for call in dialog.messages[1].tool_calls()] == ["ls"]
    assert dialog.view().model == "claude-x"
    store.index(searchable)
    assert [hit.handle.dialog for hit in store.search("a.txt", session_id=session)] == [dialog.dialog_id] * 2


def test_a_rewind_is_a_fork(store: Store, session: SessionId) -> None:
    """Words of the user behind a record that he had answered already begin a fork; the transcript stays one list."""
    first = [prompt("u1", "one"), answer("a1", "u1", text("1")), prompt("u2", "two", "a1")]
    first += [answer("a2", "u2", text("2"))]
    again = [prompt("u3", "instead", "a1"), answer("a3", "u3", text("3"))]
    mirrored(store, session, *first)
    mirrored(store, session, first[0], *again, again[0])  # what is there is not written again
    assert loaded(store, session) == [*first, *again]
    assert said(store, session) == ["one", "1", "instead", "3"]
    anew = prompt("u4", "from the start")
    mirrored(store, session, anew, answer("a4", "u4", text("4")))
    assert said(store, session) == ["from the start", "4"]
    assert [len(dialog.messages) for dialog in Session.open(store, session).dialogs] == [4, 4, 2]


def test_a_compaction_is_a_checkpoint(store: Store, session: SessionId) -> None:
    """The view begins with the summary, as that agent's did; the transcript and the log keep everything."""
    summary = {**prompt("c1", "They asked for one.", "b1"), "isCompactSummary": True}
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None}
    records = [prompt("u1", "one"), answer("a1", "u1", text("1")), boundary, summary, prompt("u2", "two", "c1")]
    mirrored(store, session, *records)
    view = Session.open(store, session).root.view()
    assert [entry for entry in sketch(view) if "b1" not in entry] == ["user[They asked for one.]", "user[two]"]
    assert view.model == "claude-x"
    assert loaded(store, session) == records
    assert said(store, session)[:2] == ["one", "1"]


def test_a_sub_agent_is_a_dialog_of_the_session(store: Store, session: SessionId) -> None:
    """Its transcript is its own; deleted, it is not found, and its name can be used again."""
    mirrored(store, session, prompt("u1", "main"))
    lane = mirrored(store, session, prompt("u1", "task"), subpath="subagents/agent-1")
    mirrored(store, session, prompt("u1", "other"), subpath="subagents/agent-2")
    assert loaded(store, session, "subagents/agent-1") == [prompt("u1", "task")]
    assert [node.relation for node in store.nodes(session)] == ["root", "subagent", "subagent"]
    lane.delete()
    assert list(lanes_of(store, session)) == ["", "subagents/agent-2"]
    mirrored(store, session, prompt("u9", "anew"), subpath="subagents/agent-1")
    assert loaded(store, session, "subagents/agent-1") == [prompt("u9", "anew")]
    assert said(store, session) == ["main"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ODD = st.dictionaries(
    st.sampled_from(
        ["uuid", "parentUuid", "message", "timestamp", "isCompactSummary", "isMeta", "subtype", "sessionId", "content"]
    ),
    JSON | st.dictionaries(st.sampled_from(["content", "id", "model", "usage", "role"]), JSON, max_size=4),
    max_size=6,
)


@settings(max_examples=40)
@given(
    odd=st.lists(
        st.tuples(st.sampled_from(["user", "assistant", "system", "attachment", "progress", "x"]), ODD), max_size=5
    )
)
def test_any_record_round_trips(odd: list[tuple[str, dict[str, Any]]]) -> None:
    """Any JSON that calls itself a record is kept and comes back equal, unless its id was seen before."""
    store = MemoryStore()
    session = new_session_id()
    store.create_session(SessionRecord(session_id=session))
    records: list[dict[str, Any]] = [{"type": kind, **fields} for kind, fields in odd]
    mirrored(store, session, *records)
    assert loaded(store, session) == fresh(records)


@pytest.mark.parametrize("recording", recordings("claude_code", each=2))
def test_recorded_sessions_come_back_equal(recording: Recording, store: Store, session: SessionId) -> None:
    """A recorded session mirrored in batches, each by a process that knows nothing, comes back equal; its dialogs hold its messages."""
    with open_source(recording.path) as source:
        records = [dict(one.value) for member in source.members for one in member.records() if isinstance(one, Record)]
    records = records[:150]
    for start in range(0, len(records), 50):
        mirrored(store, session, *records[start : start + 50])
    assert loaded(store, session) == fresh(records)
    spoken = sum(one["type"] in {"user", "assistant"} for one in fresh(records))
    dialogs = Session.open(store, session).dialogs
    assert 0 < sum(len(dialog.messages) for dialog in dialogs) <= 2 * spoken
    assert all(store.verify(dialog.dialog_id) == () for dialog in dialogs)
