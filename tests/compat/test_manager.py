"""The session manager: scenario A33, what the source documents and their siblings say of it, and the bugs that it is to beat."""

import base64
import json
import sys
from pathlib import Path

import pytest

from palaver import (
    AssistantMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    SqliteStore,
    Store,
    SystemMessage,
    TextContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.compat.manager import SessionManager, SessionTreeNode
from palaver.errors import NotFound
from palaver.log import BranchSummary, Compaction
from palaver.messages import BranchSummaryMessage, Speaker, ToolCallContent, Trust
from palaver.providers import APIS

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\0\0\0\0"
SESSION_ONLY = (CustomMessage, BranchSummaryMessage, CompactionSummaryMessage)


@pytest.fixture
def manager(store: Store) -> SessionManager:
    """Return a session without a word."""
    return SessionManager.create("/srv/site", store)


def said(text: str) -> UserMessage:
    """Return words of the user."""
    return UserMessage(content=text)


def answer(text: str) -> AssistantMessage:
    """Return words of the model."""
    return AssistantMessage(content=text, model="gpt-4o")


def shown(manager: SessionManager, at: str | None = None) -> list[str]:
    """Return the texts of the context."""
    return [message.text_content() for message in manager.build_session_context(at).messages]


def sent(manager: SessionManager) -> list[str]:
    """Return the texts that a model is sent, each with its role."""
    return [
        f"{message.role}: {message.text_content()}" for message in manager.build_session_context().to_llm_messages()
    ]


def talk(manager: SessionManager, *texts: str) -> list[str]:
    """Say things, the user and the model in turns, and give the ids."""
    return [manager.append_message(answer(text) if index % 2 else said(text)) for index, text in enumerate(texts)]


def test_session_only_messages(manager: SessionManager) -> None:
    """A33, C14, R216, R217, R219: the context has the typed messages in order; what is sent has the summaries' texts and custom messages in context."""
    manager.append_message(SystemMessage(content="You are careful."))
    talk(manager, "old question", "old answer")
    kept = manager.append_message(said("kept question"))
    manager.append_custom_message("note", "for the screen", details={"colour": "red"})
    manager.append_custom_message("note", "for the model", in_context=True)
    manager.append_compaction("What came before.", kept, 1000)
    fork = manager.append_message(answer("kept answer"))
    talk(manager, "a wrong way", "wrong indeed")
    manager.branch_with_summary("A wrong way was tried.", fork)
    manager.append_message(said("another way"))

    context = manager.build_session_context()
    assert [(type(message).__name__, message.text_content()) for message in context.messages] == [
        ("SystemMessage", "You are careful."),
        ("CompactionSummaryMessage", "What came before."),
        ("UserMessage", "kept question"),
        ("CustomMessage", "for the screen"),
        ("CustomMessage", "for the model"),
        ("AssistantMessage", "kept answer"),
        ("BranchSummaryMessage", "A wrong way was tried."),
        ("UserMessage", "another way"),
    ]
    summary, custom, branch = (context.messages[index] for index in (1, 3, 6))
    assert isinstance(summary, CompactionSummaryMessage)
    assert isinstance(custom, CustomMessage)
    assert isinstance(branch, BranchSummaryMessage)
    assert (summary.tokens_before, branch.from_id) == (1000, fork)
    assert (custom.custom_type, custom.metadata["details"]) == ("note", {"colour": "red"})

    projection = context.to_llm_messages()
    assert not any(isinstance(message, SESSION_ONLY) for message in projection)
    assert sent(manager) == [
        "system: You are careful.",
        "user: The conversation before this point was compacted into this summary:\n\n<summary>\nWhat came before.\n</summary>",
        "user: kept question",
        "user: for the model",
        "assistant: kept answer",
        "user: The conversation came back from another branch. Summary of that branch:\n\n<summary>\nA wrong way was tried.\n</summary>",
        "user: another way",
    ]
    assert [projection[index].speaker for index in (1, 5)] == [Speaker.SUMMARY, Speaker.SUMMARY]
    for profile in APIS:
        manager.dialog.request(profile, "m", max_tokens=64)


def test_a_branch_summary_says_where_it_is_from(manager: SessionManager) -> None:
    """R218, R227: the summary stands where the branch goes on, names the branch and its entries, and has the lowest trust among them."""
    first, *_ = talk(manager, "question", "answer")
    left = manager.dialog.dialog_id
    manager.branch_with_summary("It was answered.", first)
    entry = manager.get_entry(str(manager.leaf_id)).entry
    assert isinstance(entry, BranchSummary)
    assert (entry.dialog, entry.trust, entry.left and entry.left.seq) == (left, "model", 0)
    assert [(run.dialog, run.start, run.stop) for run in entry.sources or ()] == [(left, 1, 2)]
    block = manager.dialog.view().exchanges[-1].turns[0].blocks[0]
    assert (block.speaker, block.trust) == (Speaker.SUMMARY, Trust.MODEL)
    manager.branch_with_summary("From the beginning.")
    assert [type(one).__name__ for one in manager.build_session_context().messages] == ["BranchSummaryMessage"]
    assert manager.get_entry(str(manager.leaf_id)).parent_id is None


def test_the_newest_compaction_alone_is_shown(manager: SessionManager) -> None:
    """R219, R225: an older summary in the kept window is not shown again; a first kept entry that is not there keeps what comes later."""
    first, *_ = talk(manager, "q0", "a0", "q1", "a1")
    manager.append_compaction("first summary", first, 10)
    _, second = talk(manager, "q2", "a2")
    manager.append_compaction("second summary", second, 10)
    talk(manager, "q3")
    assert shown(manager) == ["second summary", "q2", "a2", "q3"]  # q2 was the newest words of the user
    for unknown in ("nonsense", f"{'0' * 12}:7", None):
        manager.append_compaction(f"without {unknown}", unknown, 10)
        assert shown(manager) == [f"without {unknown}", "q3"]
    talk(manager, "q4", "a4")
    assert shown(manager) == ["without None", "q3", "q4", "a4"]


def test_levels_and_models_follow_the_branch(manager: SessionManager) -> None:
    """R225: the last thinking level and model on the way count, a model that answered too; other branches do not."""

    def state() -> tuple[object, object]:
        context = manager.build_session_context()
        return context.thinking_level, context.model

    assert state() == ("off", None)
    first, *_ = talk(manager, "q", "a")
    assert state() == ("off", ("", "gpt-4o"))
    manager.append_model_change("anthropic", "claude-sonnet-4-5")
    manager.append_thinking_level_change("high")
    assert state() == ("high", ("anthropic", "claude-sonnet-4-5"))
    manager.branch(first)
    assert state() == ("off", None)


def test_branching_moves_the_leaf_and_removes_nothing(manager: SessionManager) -> None:
    """R224, R226: a move is a fork and no entry; the next append goes after the entry; unknown ids are a KeyError."""
    first, second = talk(manager, "q", "a")
    manager.branch(first)
    assert manager.leaf_id == first
    assert [entry.id for entry in manager.get_entries()] == [first, second]
    third = manager.append_message(said("another"))
    assert (manager.get_entry(third).parent_id, manager.leaf_id) == (first, third)
    manager.branch(second)
    fourth = manager.append_message(said("on"))
    assert manager.get_entry(fourth).parent_id == second
    assert [entry.id for entry in manager.get_children(second)] == [fourth]
    assert {entry.id for entry in manager.get_entries()} == {first, second, third, fourth}
    for unknown in ("nope", f"{first}9999", "0123456789ab:0"):
        with pytest.raises(KeyError):
            manager.branch(unknown)
    assert manager.leaf_id == fourth


def test_a_branch_becomes_a_session(manager: SessionManager) -> None:
    """R228: the way to an entry becomes a session that names this one, with the labels on the way and the view as it was; unknown: ValueError."""
    _, second = talk(manager, "q", "a")
    manager.append_compaction("so far", second, 100)
    third = manager.append_message(said("more"))
    talk(manager, "later")
    manager.append_label(second, "here")
    made = manager.create_branched_session(third)
    assert (made.header.parent_session, made.header.cwd) == (manager.session_id, "/srv/site")
    assert shown(made) == shown(manager, third) == ["so far", "q", "a", "more"]
    assert [entry.type for entry in made.get_branch()] == ["message", "message", "compaction", "message", "label"]
    assert made.labels == {made.get_branch()[1].id: "here"}
    assert not {one.dialog_id for one in made.session.dialogs} & {one.dialog_id for one in manager.session.dialogs}
    with pytest.raises(ValueError, match="nope"):
        manager.create_branched_session("nope")


def test_the_tree_is_walked_without_recursion() -> None:
    """R229, R230: a session of thousands of entries, each after the other, has its tree; children are sorted by time."""
    manager = SessionManager.in_memory()
    ids = [manager.append_custom("n", number) for number in range(1500)]
    node: SessionTreeNode | None = manager.get_tree()[0]
    seen = []
    while node is not None:
        seen.append(node.entry.id)
        node = node.children[0] if node.children else None
    assert seen == [entry.id for entry in manager.get_branch()] == ids
    manager.branch(ids[5])
    other = manager.append_custom("n", "other")
    assert [entry.id for entry in manager.get_children(ids[5])] == [ids[6], other]


def test_sessions_are_made_found_and_forked(tmp_path: Path) -> None:
    """R231: the recent session of a folder is gone on with at its newest entry; without one a session is made; a fork names its source."""
    address = str(tmp_path / "s.db")
    with SessionManager.continue_recent("/a", address) as manager:
        talk(manager, "in a")
        first = manager.session_id
    with SessionManager.create("/b", address) as manager:
        second = manager.session_id
    with SessionManager.continue_recent("/a", address) as manager:
        assert (manager.session_id, shown(manager)) == (first, ["in a"])
        manager.branch(str(manager.leaf_id))
        talk(manager, "again in a")
    assert [record.session_id for record in SessionManager.list(store=address)] == [first, second]
    assert [record.session_id for record in SessionManager.list("/b", address)] == [second]
    with SessionManager.fork_from(first, "/c", address) as manager:
        assert (manager.header.cwd, manager.header.parent_session) == ("/c", first)
        assert shown(manager) == ["in a", "again in a"]
    with pytest.raises(NotFound):
        SessionManager.open("nothing like it", address)


def test_manager_keeps_sessions_in_the_users_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a store, what is created is durable: it is found again, by its folder and by its id, where the command line looks."""
    monkeypatch.setenv("PALAVER_STORE", str(tmp_path / "own.db"))
    with SessionManager.create("/srv/site") as manager:
        talk(manager, "remember this")
        created = manager.session_id
    with SessionManager.continue_recent("/srv/site") as manager:
        assert (manager.session_id, shown(manager)) == (created, ["remember this"])
    with SessionManager.open(created[:8]) as manager:
        assert manager.session_id == created
    assert [record.session_id for record in SessionManager.list("/srv/site")] == [created]
    monkeypatch.delenv("PALAVER_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with SessionManager.fork_from(created, "/elsewhere", tmp_path / "own.db") as manager:
        assert shown(manager) == ["remember this"]
    with SessionManager.continue_recent("/srv/site") as manager:
        assert manager.session_id != created
    assert len(list(tmp_path.glob("data/palaver/palaver.db"))) == (sys.platform == "linux")
    with SessionManager.in_memory("/srv/site") as manager:
        assert manager.session_id not in {record.session_id for record in SessionManager.list()}


def test_a_compaction_keeps_exchanges_whole(manager: SessionManager) -> None:
    """R232: details are kept; an exchange is kept whole; what was left out can be recalled; the newest words of the user always stay."""
    talk(manager, "q0", "a0", "q1")
    manager.append_message(AssistantMessage(contents=(ToolCallContent(id="c1", name="ls", args={}),)))
    result = manager.append_message(ToolMessage.from_result(ToolResultContent(id="c1", content="a.py")))
    done = manager.append_compaction("before", result, 500, {"files": ["a.py"]})
    entry = manager.get_entry(done).entry
    assert isinstance(entry, Compaction)
    assert entry.model_dump()["details"] == {"files": ["a.py"]}
    assert shown(manager) == ["before", "q1", "", "a.py"]
    handles = [handle for omission in manager.dialog.view().omissions for handle in omission.handles()]
    assert all(manager.session.recall(handle) is not None for handle in handles)
    assert [message.text_content() for message in manager.dialog.messages] == ["q0", "a0", "q1", "", "a.py"]


def test_the_last_label_wins(manager: SessionManager) -> None:
    """R233: the last label wins, None takes it away, they survive reopening, and no model sees one."""
    first, second = talk(manager, "q", "a")
    for target, label in ((first, "one"), (first, "two"), (second, "gone"), (second, None)):
        manager.append_label(target, label)
    again = SessionManager.open(manager.session_id, manager.store)
    for each in (manager, again):
        assert (each.labels, each.get_label(second)) == ({first: "two"}, None)
    assert again.get_tree()[0].label == "two"
    assert sent(manager) == ["user: q", "assistant: a"]
    manager.branch(first)
    mark = manager.append_label(second, "from elsewhere")
    assert (manager.leaf_id, manager.get_entry(mark).parent_id) == (mark, first)
    with pytest.raises(NotFound):
        manager.append_label("nope", "x")


def test_entries_have_types_ids_and_parents(manager: SessionManager) -> None:
    """R221: each kind of entry has its type, an id, the entry before it and a time; labels and custom data reach no model."""
    ids = [
        manager.append_message(said("q")),
        manager.append_thinking_level_change("high"),
        manager.append_model_change("anthropic", "claude-sonnet-4-5"),
        manager.append_custom("seen", {"by": "ann"}),
        manager.append_custom_message("note", "for the screen"),
    ]
    ids += [manager.append_label(ids[0], "here"), manager.append_compaction("so far", ids[0], 9)]
    entries = manager.get_branch()
    words = "message thinking_level_change model_change custom custom_message label compaction"
    assert [entry.type for entry in entries] == words.split()
    assert [entry.id for entry in entries] == ids
    assert [entry.parent_id for entry in entries] == [None, *ids[:-1]]
    assert all(entry.timestamp > 1.7e9 for entry in entries)
    assert len(sent(manager)) == 2


def test_every_message_comes_back(manager: SessionManager) -> None:
    """R220, R234: what was appended is what is read, in this process and in another object for the same session."""
    given: list[Message] = [
        UserMessage.with_images("see", [PNG]),
        AssistantMessage(content="x", usage={"input_tokens": 3}, stop_reason="stop", model="m", response_id="r1"),
        CustomMessage(custom_type="t", contents=(TextContent("c"),), metadata={"a": [1, {"b": None}]}),
        CompactionSummaryMessage(summary="s", tokens_before=7),
    ]
    for message in given:
        manager.append_message(message)
    again = SessionManager.open(manager.session_id, manager.store)
    for message, found in zip(given, again.dialog.messages, strict=True):
        kept = {key: value for key, value in found.metadata.items() if key != "dialog_id"}
        assert found.model_copy(update={"metadata": kept}) == message
        assert type(found) is type(message)


def test_nothing_waits_for_the_first_answer(tmp_path: Path) -> None:
    """R223: words of the user are there for others before any answer, and a session before any word."""
    with SqliteStore(tmp_path / "s.db") as store, SqliteStore(tmp_path / "s.db") as other:
        manager = SessionManager.create("/a", store)
        assert SessionManager.open(manager.session_id, other).leaf_id is None
        first = manager.append_message(said("do not lose this"))
        assert shown(SessionManager.open(manager.session_id, other)) == ["do not lose this"]
        manager.branch(first)
        manager.append_message(said("nor this"))
        assert shown(SessionManager.open(manager.session_id, other)) == ["do not lose this", "nor this"]


def test_a_leaf_is_a_dialog(manager: SessionManager) -> None:
    """C11: the manager and dialogs are two faces of one log: what one writes the other has."""
    first, _ = talk(manager, "q", "a")
    manager.branch(first)
    fork = manager.dialog
    assert fork.parent is not None
    fork.put_text("through the dialog")
    assert manager.get_branch()[-1].parent_id == first
    SessionManager.open(manager.session_id, manager.store).append_message(said("by another"))
    assert shown(manager.reload()) == ["q", "through the dialog", "by another"]


def test_a_moved_leaf_is_durable(manager: SessionManager) -> None:
    """R226: a move of the leaf, a reset too, is found by whoever opens the session next; after a reset both beginnings are roots."""
    first, second = talk(manager, "q", "a")
    manager.branch(first)
    assert SessionManager.open(manager.session_id, manager.store).leaf_id == first
    manager.reset_leaf()
    again = SessionManager.open(manager.session_id, manager.store)
    assert (again.leaf_id, again.get_branch(), again.build_session_context().messages) == (None, (), ())
    anew = again.append_message(said("anew"))
    assert [entry.id for entry in again.get_children(None)] == [first, anew]
    again.branch(second)
    later = again.append_message(said("on"))
    assert SessionManager.open(manager.session_id, manager.store).leaf_id == later


def test_media_in_the_context_are_readable(manager: SessionManager) -> None:
    """What a context shows and sends has the bytes of its media, never a name by which the store knows them."""
    manager.append_message(UserMessage.with_images("see", [PNG]))
    manager.append_compaction("before", None, 10)
    context = SessionManager.open(manager.session_id, manager.store).build_session_context()
    for message in (*context.messages[1:], *context.to_llm_messages()[1:]):
        assert message == manager.dialog.messages[0]
        assert base64.b64encode(PNG).decode() in json.dumps(message.to_api_dict())
