"""Sessions: made, found, listed, resumed, renamed, put away and taken back."""

import json
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

import pytest

from palaver import Message, Store, ToolMessage, ToolResultContent
from palaver.agent.approvals import annotate
from palaver.agent.turn import read_turn
from palaver.errors import Ambiguous, InvalidInput, NotFound, StoreError
from palaver.ids import SessionId, now
from palaver.log import CallStarted, Custom, Inbox, Instructions, MessageEntry, Node, Section, TurnEnded, TurnStarted
from palaver.messages import InvokeCost, TextContent, ToolCallContent, UserMessage
from palaver.session import Dialog, Session
from palaver.store import MemoryStore, SessionRecord, SqliteStore
from palaver.store.connect import only_session
from palaver.transfer.bundle import export_bundle, import_bundle


def test_open_by_name_takes_the_latest_and_says_so(store: Store) -> None:
    """Names need not be unique: the session with the newest entry is opened, and the number of the others is told."""
    older, newer = Session.create(store, "same"), Session.create(store, "same")
    older.root.put_text("x")
    found = Session.open(store, "same")
    assert (found.session_id, found.others) == (older.session_id, 1)
    by_id = Session.open(store, newer.session_id)
    assert by_id.session_id == newer.session_id


def test_open_by_the_first_digits(store: Store) -> None:
    """Six digits of the id suffice where they are enough; several that begin so are named; none is an error with close names."""
    named = Session.create(store, "c" * 32)  # a name may look like an id
    assert Session.open(store, "c" * 32).session_id == named.session_id
    for last in ("10", "20"):
        store.create_session(SessionRecord(session_id=SessionId("ab" * 15 + last), name="build"))
    assert Session.open(store, "ab" * 15 + "1").session_id == "ab" * 15 + "10"
    with pytest.raises(Ambiguous) as caught:
        Session.open(store, "ababab")
    assert len(caught.value.candidates) == 2
    with pytest.raises(NotFound) as unknown:
        Session.open(store, "biuld")
    assert unknown.value.close == ("build",)
    with pytest.raises(NotFound):
        Session.open(store, "f" * 32)


def test_addresses_are_opened_and_closed(tmp_path: Path, store: Store) -> None:
    """A session that was given an address opens the store and closes it; one that was given a store leaves it alone."""
    path = tmp_path / "s.db"
    with pytest.raises(NotFound):
        Session.open(path, "demo")
    with Session.create(str(path), "demo") as session:
        session.root.put_text("hi")
    with pytest.raises(StoreError):
        session.store.nodes(session.session_id)
    with Session.open(path, "demo") as again:
        assert [message.content for message in again.root.messages] == ["hi"]
    assert [record.name for record in Session.list(path)] == ["demo"]
    with Session.create(store, "demo"):
        pass
    assert list(store.sessions())


def test_dialogs_after_a_reload_hang_together(tmp_path: Path) -> None:
    """C9: depth, parent, children and the subtree survive: ids are 32 digits, and each dialog is one object."""
    path = tmp_path / "s.db"
    with Session.create(path, "demo") as session:
        session.root.put_text("a")
        leaf = session.root.fork().fork(last_n=1)
        node, overview = leaf.tree_node, session.tree_overview()
    with Session.open(path, "demo") as session:
        again = session.dialog(leaf.dialog_id[:8])
        assert (len(again.dialog_id), again.tree_node, again.tree_node.depth) == (32, node, 2)
        assert again.parent is not None
        assert again.parent.parent is session.root
        assert session.root.children == (again.parent,)
        assert session.root.tree_node.subtree_ids() == [one.dialog_id for one in session.dialogs]
        assert session.tree_overview() == overview
        with pytest.raises(NotFound):
            session.dialog("0" * 32)


def test_sessions_are_listed_renamed_and_put_away(every_store: Store) -> None:
    """Lists begin with the newest; a deleted session is in no list, name and search over all, can be opened by id, and comes back whole."""
    store = every_store
    session, other = Session.create(store, "old", subject="ann"), Session.create(store, "other", workdir="/a")
    session.update(name="gone")
    other.update(workdir="/b")
    session.root.put_text("needle")
    assert [record.name for record in Session.list(store)] == ["gone", "other"]
    assert [record.name for record in Session.list(store, subject="ann")] == ["gone"]
    assert (session.root.session_name, other.record.workdir) == ("gone", "/b")
    session.delete()
    assert [record.name for record in Session.list(store)] == ["other"]
    assert [record.name for record in Session.list(store, trashed=True)] == ["gone"]
    assert len(session.search("needle")) == 1, "its own search finds what was said"
    assert store.search("needle") == ()
    with pytest.raises(NotFound, match="trash"):
        Session.open(store, "gone")
    Session.open(store, session.session_id).restore()
    assert [message.content for message in Session.open(store, "gone").root.messages] == ["needle"]


def test_update_merges_metadata_and_replaces_the_rest(every_store: Store) -> None:
    """Only what is passed changes; None removes a key of the metadata; palaver's own keys, a hold among them, stay and are refused."""
    session = Session.create(every_store, "old", subject="ann", workdir="/a", metadata={"a": {"x": 1}, "b": 2, "c": 3})
    session.hold("audit")
    before = session.record
    assert session.update() == before
    made = session.update(name="new", metadata={"a": {"y": [1]}, "b": None, "absent": None})
    assert made == session.record
    assert (made.name, made.subject, made.workdir) == ("new", "ann", "/a")
    assert made.metadata == {"a": {"y": [1]}, "c": 3, "palaver.hold": "audit"}
    assert session.update(subject="", workdir="/b").subject == ""
    refused: list[dict[str, object]] = [{"palaver.hold": None}, {"palaver_memory": True}, {"k": object()}]
    for wrong in refused:
        with pytest.raises(InvalidInput):
            session.update(name="refused", metadata=wrong)
    assert (session.name, session.record.workdir) == ("new", "/b")


def test_raw_json_entry_is_exact_in_every_store(every_store: Store) -> None:
    """A value with NUL, a lone surrogate and keys in their order comes back from a store and from a bundle as it went in."""
    value = {"z": "\0", "a": ["\ud800", 1.50, 10**30], "m": {"": None}}
    session = Session.create(every_store, "raw")
    (place,) = session.root.record(Custom.exact("my/state", value))
    other = MemoryStore()
    import_bundle(other, BytesIO(b"".join(export_bundle(every_store, session.session_id))).read)
    for store in (every_store, other):
        entry = Session.open(store, "raw").recall(place)
        assert isinstance(entry, Custom)
        assert json.dumps(entry.value) == json.dumps(value)


def test_resume_takes_the_newest_branch_and_ends_a_dead_turn(store: Store) -> None:
    """The dialog with the newest entry goes on; a turn that a dead process left open is ended as interrupted, once."""
    session = Session.create(store, "demo")
    session.root.put_text("a")
    branch = session.root.fork()
    branch.record(TurnStarted(agent="coder"))
    branch.append(Message(role="assistant", content="", tool_calls=[ToolCallContent(id="c", name="ls")]))
    branch.record(CallStarted(call_id="c", tool="ls"))
    resumed = Session.open(store, "demo").resume()
    assert resumed.dialog_id == branch.dialog_id
    assert store.last(resumed.dialog_id).open_turn == -1
    ended = resumed.recall(f"{resumed.dialog_id}:3")
    assert isinstance(ended, TurnEnded)
    assert ended.outcome == "interrupted"
    assert Session.open(store, "demo").resume().record(TurnStarted())[0].seq == 4
    assert Session.open(store, "demo").resume(session.root.dialog_id[:6]).dialog_id == session.root.dialog_id


def test_costs_of_shared_messages_count_once(store: Store) -> None:
    """R34: the whole tree's cost counts what branches share once; each branch's own cost counts all it holds."""
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
    shared = {"role": "assistant", "response_id": "r", "fragment": True, "usage": usage}
    said, last = (Message.from_dict({**shared, "content": text}) for text in ("so ", "said"))
    dialog.append([said, ToolMessage.from_result(ToolResultContent(id="c", content="aside")), last])
    assert [message.text_content() for message in dialog.messages] == ["so said", "aside"]
    assert dialog.cost.cost == 0.5


def test_recall_from_any_branch(store: Store) -> None:
    """A printed handle brings back an entry or a block, from every dialog of the session and from no other session."""
    session = Session.create(store, "demo")
    session.root.put_text("original")
    child = session.root.fork(last_n=1)
    child.put_text("theirs")
    handle = child.messages.handle(1)
    found = session.root.recall(str(handle))
    assert isinstance(found, MessageEntry)
    assert found.message == child.tail
    assert child.recall(f"{session.root.dialog_id[:12]}:0:0") == TextContent("original")
    inbox = child.record(Inbox(message=Message(role="user", content="psst")), beside=True)[0]
    assert child.recall(f"{inbox}:0") == TextContent("psst")
    other = Session.create(store, "other")
    for place in (str(handle), handle, "abcdef:0"):
        with pytest.raises(NotFound):
            other.recall(place)
    for absent in (f"{session.root.dialog_id}:9", f"{session.root.dialog_id}:0:7"):
        with pytest.raises(NotFound):
            session.recall(absent)


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


def test_open_makes_what_is_not_there(store: Store) -> None:
    """With `create`, a name that nobody has becomes a session; the second caller opens that one."""
    first = Session.open(store, "shared", create=True, owner="coder")
    again = Session.open(store, "shared", create=True)
    assert (again.session_id, again.root.owner) == (first.session_id, "coder")
    with pytest.raises(NotFound):
        Session.open(store, "other")


def test_processes_open_one_session_at_once(tmp_path: Path) -> None:
    """Processes that open or create by one name at the same moment all get one session, with one root."""
    program = (
        "import sys, time\nfrom palaver.session import Session\n"
        "while time.time() < float(sys.argv[2]): pass\n"
        "with Session.open(sys.argv[1], 'shared', create=True) as session: print(session.session_id, session.root.dialog_id)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "s.db"), str(time.time() + 1)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert len({process.communicate(timeout=60)[0] for process in running}) == 1
    assert [process.returncode for process in running] == [0] * 3
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


def test_erase_refuses_an_ambiguous_name(store: Store) -> None:
    """The name stood for several: nothing is erased until the session is opened by its id, or the name is its alone."""
    ids = [Session.create(store, "same").session_id for _ in range(2)]
    found = Session.open(store, "same")
    with pytest.raises(Ambiguous) as caught:
        found.erase()
    assert set(caught.value.candidates) == set(ids)
    assert len(list(store.sessions())) == 2
    Session.open(store, ids[0]).erase()
    Session.open(store, "same").erase()
    assert list(store.sessions()) == []


def test_wrong_arguments_of_a_request_are_the_callers(store: Store) -> None:
    """A number that is none, and a place that the dialog lacks, are refused with what was passed."""
    root = Session.create(store).root
    root.put_text("a")
    for count in ("9", 0, True):
        with pytest.raises(InvalidInput, match="max_tokens"):
            root.request("openai", "gpt-5", max_tokens=count)
    for at in (999, -5):
        with pytest.raises(NotFound, match=str(at)):
            root.view(at=at)
    assert len(root.view(at=0).exchanges) == 1


def test_erased_queued_message_is_not_delivered(store: Store) -> None:
    """A message that is erased while it waits in the inbox never becomes a message."""
    root = Session.create(store, "kept").root
    handle = annotate(store, root.dialog_id, Inbox(message=UserMessage(content="secret")))
    assert len(read_turn(store, root.dialog_id).inbox) == 1
    root.session.erase(entries=[handle])
    assert not read_turn(store, root.dialog_id).inbox


def test_erase_of_no_entries_erases_nothing(store: Store) -> None:
    """An empty list, such as a search without hits, is no scope: only `erase()` without a list erases the whole session."""
    session = Session.create(store, "kept")
    session.root.put_text("a")
    with pytest.raises(InvalidInput, match="entries"):
        session.erase(entries=[])
    with pytest.raises(InvalidInput, match="entries"):
        session.erase(dialog=session.root.dialog_id, entries=[])
    assert [message.content for message in Session.open(store, "kept").root.messages] == ["a"]


def test_resume_takes_the_right_branch_after_a_clock_set_back(every_store: Store) -> None:
    """Times of a session never run backwards: the branch that was written last is resumed, whatever the clock says."""
    session = Session.create(every_store, "demo")
    session.root.record(MessageEntry(message=UserMessage.text("a"), at=now() + 3600))  # then the clock was set back
    branch = Session.open(every_store, "demo").fork()
    assert Session.open(every_store, "demo").resume().dialog_id == branch.dialog_id
    for turn in (session.root, branch, session.root):
        Session.open(every_store, "demo").dialog(turn.dialog_id).put_text("b")
        assert Session.open(every_store, "demo").resume().dialog_id == turn.dialog_id
