"""Sessions: made, found, listed, resumed, renamed, put away and taken back."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from palaver import Message, Store, ToolMessage, ToolResultContent
from palaver.errors import Ambiguous, NotFound, StoreError
from palaver.ids import SessionId, new_dialog_id, now
from palaver.log import CallStarted, Inbox, Instructions, MessageEntry, Node, Section, TurnEnded, TurnStarted
from palaver.messages import InvokeCost, TextContent, ToolCallContent, UserMessage
from palaver.session import Dialog, Session, only_session
from palaver.store import MemoryStore, SessionRecord, SqliteStore


def test_create_gives_a_session_with_its_first_dialog(every_store: Store) -> None:
    """What was given is in the record; the first dialog is the root, and its session's name is the session's."""
    store = every_store
    session = Session.create(store, "demo", owner="coder", subject="ann", workdir="/w", metadata={"a": [1]})
    record = session.record
    assert (record.name, record.subject, record.workdir, record.metadata) == ("demo", "ann", "/w", {"a": [1]})
    assert session.root.owner == "coder"
    assert session.root.session_name == "demo"
    assert session.dialogs == (session.root,)
    assert session.found_by == ""
    assert Session.create(store).name


def test_open_by_name_takes_the_latest_and_says_so(every_store: Store) -> None:
    """Names need not be unique: the session with the newest entry is opened, and the number of the others is told."""
    store = every_store
    older, newer = Session.create(store, "same"), Session.create(store, "same")
    older.root.put_text("x")
    found = Session.open("same", store)
    assert found.session_id == older.session_id
    assert (found.found_by, found.others) == ("name", 1)
    by_id = Session.open(newer.session_id, store)
    assert (by_id.session_id, by_id.found_by) == (newer.session_id, "id")


def test_open_by_the_first_digits(store: Store) -> None:
    """Six digits of the id suffice where they are enough; several that begin so are named; none is an error with close names."""
    named = Session.create(store, "c" * 32)  # a name may look like an id
    assert Session.open("c" * 32, store).session_id == named.session_id
    for last in ("10", "20"):
        store.create_session(SessionRecord(session_id=SessionId("ab" * 15 + last), name="build"))
    assert Session.open("ab" * 15 + "1", store).found_by == "prefix"
    with pytest.raises(Ambiguous) as caught:
        Session.open("ababab", store)
    assert len(caught.value.candidates) == 2
    with pytest.raises(NotFound) as unknown:
        Session.open("biuld", store)
    assert unknown.value.close == ("build",)
    with pytest.raises(NotFound):
        Session.open("f" * 32, store)


def test_addresses_are_opened_and_closed(tmp_path: Path) -> None:
    """A session that was given an address opens the store and closes it; one that was given a store leaves it alone."""
    path = tmp_path / "s.db"
    with pytest.raises(NotFound):
        Session.open("demo", path)
    with Session.create(str(path), "demo") as session:
        session.root.put_text("hi")
        store = session.store
    with pytest.raises(StoreError):
        store.nodes(session.session_id)
    with Session.open("demo", path) as again:
        assert [message.content for message in again.root.messages] == ["hi"]
    mine = MemoryStore()
    with Session.create(mine, "demo"):
        pass
    assert list(mine.sessions())


def test_c09_dialogs_after_a_reload_hang_together(tmp_path: Path) -> None:
    """Depth, parent, children and the subtree survive: ids are 32 digits, and each dialog is one object."""
    path = tmp_path / "s.db"
    with Session.create(path, "demo") as session:
        session.root.put_text("a")
        leaf = session.root.fork().fork(last_n=1)
        leaf.put_text("b")
        node, overview = leaf.tree_node, session.tree_overview()
    with Session.open("demo", path) as session:
        again = session.dialog(leaf.dialog_id[:8])
        assert len(again.dialog_id) == 32
        assert again.tree_node == node
        assert again.tree_node.depth == 2
        assert again.parent is not None
        assert again.parent.parent is session.root
        assert session.root.children == (again.parent,)
        assert session.root.tree_node.subtree_ids() == [one.dialog_id for one in session.dialogs]
        assert session.tree_overview() == overview
        with pytest.raises(NotFound):
            session.dialog("0" * 32)


def test_rename_and_move(store: Store) -> None:
    """A session is found by its new name only; its working folder is metadata."""
    session = Session.create(store, "old", workdir="/a")
    session.rename("new")
    session.move("/b")
    assert (session.name, session.record.workdir, session.root.session_name) == ("new", "/b", "new")
    assert Session.open("new", store).session_id == session.session_id
    with pytest.raises(NotFound):
        Session.open("old", store)


def test_the_trash_loses_nothing(every_store: Store) -> None:
    """A deleted session is in no list, no search and no name; it is in the trash, can be opened by id, and comes back whole."""
    store = every_store
    session, other = Session.create(store, "gone"), Session.create(store, "other")
    session.root.put_text("needle")
    session.delete()
    assert [record.session_id for record in Session.list(store)] == [other.session_id]
    assert [record.session_id for record in Session.list(store, trashed=True)] == [session.session_id]
    assert session.search("needle") == ()
    with pytest.raises(NotFound, match="trash"):
        Session.open("gone", store)
    Session.open(session.session_id, store).restore()
    assert {record.name for record in Session.list(store)} == {"gone", "other"}
    assert [message.content for message in Session.open("gone", store).root.messages] == ["needle"]


def test_list_filters(every_store: Store) -> None:
    """Lists can be narrowed to a name, a subject and a number; the newest activity comes first."""
    store = every_store
    for name, subject in (("a", "ann"), ("b", "ann"), ("a", "bob")):
        Session.create(store, name, subject=subject)
    assert [record.subject for record in Session.list(store, name="a")] == ["bob", "ann"]
    assert [record.name for record in Session.list(store, subject="ann")] == ["b", "a"]
    assert len(Session.list(store, limit=2)) == 2


def test_resume_takes_the_newest_branch_and_ends_a_dead_turn(every_store: Store) -> None:
    """The dialog with the newest entry goes on; a turn that a dead process left open is ended as interrupted, once."""
    store = every_store
    session = Session.create(store, "demo")
    session.root.put_text("a")
    branch = session.root.fork()
    branch.record(TurnStarted(agent="coder"))
    branch.append(Message(role="assistant", content="", tool_calls=[ToolCallContent(id="c", name="ls")]))
    branch.record(CallStarted(call_id="c", tool="ls"))
    resumed = Session.open("demo", store).resume()
    assert resumed.dialog_id == branch.dialog_id
    assert store.last(resumed.dialog_id).open_turn == -1
    ended = resumed.recall(f"{resumed.dialog_id}:3")
    assert isinstance(ended, TurnEnded)
    assert ended.outcome == "interrupted"
    assert Session.open("demo", store).resume().record(TurnStarted())[0].seq == 4
    assert Session.open("demo", store).resume(session.root.dialog_id[:6]).dialog_id == session.root.dialog_id


def test_a_sub_agents_dialog_is_not_resumed(store: Store) -> None:
    """The newest dialog is one of the conversation itself."""
    session = Session.create(store, "demo")
    session.root.put_text("a")
    session.new_dialog("x")
    sub = Node(
        dialog_id=new_dialog_id(session.session_id),
        session_id=session.session_id,
        parent_id=session.root.dialog_id,
        relation="subagent",
        created_at=9e9,
    )
    store.create_dialog(sub)
    assert session.newest.owner == "x"


def test_r34_costs_of_shared_messages_count_once(store: Store) -> None:
    """The whole tree's cost counts what branches share once; each branch's own cost counts all it holds."""
    session = Session.create(store, "demo")
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "response_cost": 0.25}
    session.root.append(Message(role="assistant", content="a", usage=usage))
    for _ in range(3):
        session.root.fork().append(Message(role="assistant", content="b", usage=usage))
    assert session.root.children[0].cost.cost == 0.5
    assert session.cost == InvokeCost(prompt_tokens=40, completion_tokens=4, total_tokens=44, cost=1.0)


def test_fragments_report_the_usage_of_their_response_once(dialog: Dialog) -> None:
    """A response recorded in fragments, each with the response's usage, is one message that cost once."""
    usage = {"input_tokens": 10, "output_tokens": 1, "cost": {"total": 0.5}}
    parts = [
        Message(role="assistant", content="thinking", response_id="r", usage=usage, metadata={"a": 1}),
        ToolMessage.from_result(ToolResultContent(id="c", content="aside")),
        Message(role="assistant", content="said", response_id="r", usage=usage, stop_reason="stop", metadata={"b": 2}),
    ]
    dialog.append(parts)
    assert [message.text_content() for message in dialog.messages] == ["thinkingsaid", "aside"]
    assert dialog.messages[0].stop_reason == "stop"
    assert dialog.messages[0].metadata == {"a": 1, "b": 2, "dialog_id": dialog.dialog_id}
    assert dialog.cost.cost == 0.5


def test_extent_counts_what_can_be_reached(store: Store) -> None:
    """An undamaged session is reachable as a whole, counted without reading bodies and proven when asked to."""
    session = Session.create(store, "demo")
    session.root.put_text("a")
    session.root.fork().put_text("b")
    for verify in (False, True):
        extent = session.extent(verify=verify)
        assert (extent.dialogs, extent.total, extent.reachable, extent.cut_off) == (2, 2, 2, 0)
        assert (extent.verified, extent.damaged) == (verify, ())


def test_extent_names_what_is_damaged_or_cut_off() -> None:
    """A body that is not what was written is named when verified; a dialog that shares more than its ancestor has is cut off."""

    class Damaged(MemoryStore):
        def verify(self, dialog_id: object) -> tuple[int, ...]:
            return (1,) if dialog_id == root else ()

        def nodes(self, session_id: SessionId, after: int = -1) -> tuple[Node, ...]:
            found = super().nodes(session_id, after)
            return tuple(node for node in found if node.dialog_id != lost)

    store, root, lost = Damaged(), "", ""
    session = Session.create(store, "demo")
    root = session.root.dialog_id
    session.root.put_text("a")
    session.root.put_text("b")
    middle = session.root.fork()
    middle.fork().put_text("c")
    lost = middle.dialog_id
    extent = session.extent(verify=True)
    assert [handle.seq for handle in extent.damaged] == [1]
    assert (extent.total, extent.reachable, extent.cut_off) == (3, 1, 1)


def test_recall_from_any_branch(store: Store) -> None:
    """A printed handle brings back an entry or a block, from every dialog of the session and from no other session."""
    session = Session.create(store, "demo")
    first = session.root.put_text("original")
    child = session.root.fork(last_n=1)
    child.put_text("theirs")
    handle = child.messages.handle(1)
    found = session.root.recall(str(handle))
    assert isinstance(found, MessageEntry)
    assert found.message == child.tail
    assert child.recall(f"{session.root.dialog_id[:12]}:0:0") == TextContent("original")
    assert session.recall(session.root.messages.handle(0)) == child.recall(child.messages.handle(0))
    assert first == session.root.head
    other = Session.create(store, "other")
    for wrong in (str(handle), handle, f"{session.root.dialog_id}:9", f"{session.root.dialog_id}:0:7", "abcdef:0"):
        with pytest.raises(NotFound):
            other.recall(wrong)
    for absent in (f"{session.root.dialog_id}:9", f"{session.root.dialog_id}:0:7"):
        with pytest.raises(NotFound):
            session.recall(absent)


def test_recall_gives_blocks_of_other_entries(dialog: Dialog) -> None:
    """Sections of instructions and messages in the inbox have blocks too; an entry without any has none."""
    dialog.record(Instructions(sections=(Section(name="a", text="one"), Section(name="b", text="two"))), TurnStarted())
    inbox = dialog.record(Inbox(message=Message(role="user", content="psst")), beside=True)[0]
    assert dialog.recall(f"{dialog.dialog_id}:0:1") == TextContent("two")
    assert dialog.recall(f"{inbox}:0") == TextContent("psst")
    with pytest.raises(NotFound):
        dialog.recall(f"{dialog.dialog_id}:1:0")


def test_search_finds_words_calls_and_results(every_store: Store) -> None:
    """Text, tool names, arguments as they were written, results and instructions are found; nothing of other sessions is."""
    store = every_store
    session = Session.create(store, "demo")
    other = Session.create(store, "other")
    other.root.put_text("needle elsewhere")
    session.root.record(Instructions(sections=(Section(name="a", text="always polite"),)))
    call = ToolCallContent(
        id="c", name="read_file", args={"path": "src/mäin.py", "lines": [1, True], "deep": {"k": None}}
    )
    session.root.append(Message(role="assistant", contents=(call,)))
    session.root.append(ToolMessage.from_result(ToolResultContent(id="c", content="def needle(): pass")))
    session.root.marks.label(session.root.messages.handle(0), "important")
    for query, seq in (("needle", 2), ("src/mäin.py", 1), ("read_file", 1), ("polite", 0), ("important", 3)):
        assert [hit.handle.seq for hit in session.search(query)] == [seq], query
    assert session.search("nowhere") == ()


# --- one session, however many make it ------------------------------------------------------------------------------------------------------


def test_a_session_is_created_whole_or_not_at_all() -> None:
    """A store that fails between the session and its root has neither: nobody meets a session without a root."""

    class Failing(MemoryStore):
        def create_dialog(self, node: Node) -> Node:
            raise StoreError(f"no room for {node.dialog_id}")

    store = Failing()
    with pytest.raises(StoreError):
        Session.create(store, "demo")
    assert not list(store.sessions())


def test_open_makes_what_is_not_there(every_store: Store) -> None:
    """With `create`, a name that nobody has becomes a session; the second caller opens that one."""
    store = every_store
    first = Session.open("shared", store, create=True, owner="coder")
    again = Session.open("shared", store, create=True)
    assert (again.session_id, again.root.owner) == (first.session_id, "coder")
    with pytest.raises(NotFound):
        Session.open("other", store)


def test_processes_open_one_session_at_once(tmp_path: Path) -> None:
    """Processes that open or create by one name at the same moment all get one session, with one root."""
    program = (
        "import sys, time\nfrom palaver.session import Session\n"
        "while time.time() < float(sys.argv[2]): pass\n"
        "with Session.open('shared', sys.argv[1], create=True) as session: print(session.session_id, session.root.dialog_id)\n"
    )
    address, moment = str(tmp_path / "s.db"), str(time.time() + 2)
    running = [
        subprocess.Popen([sys.executable, "-c", program, address, moment], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({process.communicate(timeout=60)[0] for process in running}) == 1
    assert [process.returncode for process in running] == [0] * 4
    with SqliteStore(tmp_path / "s.db") as store:
        assert len(list(store.sessions())) == 1


def test_only_session_refuses_an_ambiguous_name(store: Store) -> None:
    """Whoever destroys something is told of all sessions of a name, and destroys none."""
    ids = {Session.create(store, "same").session_id for _ in range(2)}
    with pytest.raises(Ambiguous) as caught:
        only_session(store, "same")
    assert set(caught.value.candidates) == ids
    one = ids.pop()
    assert only_session(store, one).session_id == one


def test_resume_takes_the_right_branch_after_a_clock_set_back(every_store: Store) -> None:
    """Times of a session never run backwards: the branch that was written last is resumed, whatever the clock says."""
    store = every_store
    session = Session.create(store, "demo")
    session.root.record(MessageEntry(message=UserMessage.text("a"), at=now() + 3600))  # then the clock was set back
    branch = Session.open("demo", store).fork()
    assert Session.open("demo", store).resume().dialog_id == branch.dialog_id
    for turn in (session.root, branch, session.root):
        Session.open("demo", store).dialog(turn.dialog_id).put_text("b")
        assert Session.open("demo", store).resume().dialog_id == turn.dialog_id
