"""The replay log: a follower from which everything can be rebuilt, and which never fails a call (R180 to R183)."""

import json
import os
import stat
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from palaver import Dialog, MemoryStore, Message, ReplayLog, ReplayLogWarning, Session, Store, rebuild
from palaver.agent.turn import read_turn
from palaver.errors import Ambiguous, InvalidInput, MissingStore, StoreDamaged
from palaver.ids import DialogId
from palaver.log import CallStarted, Instructions, Label, Node, Place, Section, TurnEnded, TurnStarted
from palaver.messages import AssistantMessage, TextContent, ToolCallContent, ToolMessage, ToolResultContent
from palaver.session import Follower
from palaver.session.carried.replay import read_log
from palaver.store.verifying import verify_store
from palaver.wire import validate
from tests.demand.ground import MODELS
from tests.threads import WAIT, at_once

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def _grown(log: Path | ReplayLog | str | Follower) -> Dialog:
    """Grow a tree under a replay log: a window, an image, fragments and marks."""
    root = Dialog(owner="coder", session_name="run", log_base=log)
    for number in range(4):
        root.put_text(f"m{number}")
    child = root.fork(last_n=2)
    child.put_image(PNG)
    root.append([Message(role="assistant", content=part, response_id="r") for part in ("a", "b")])
    child.fork().put_text("leaf")
    root.label(root.messages.handle(0), "first")
    return root


def test_r181_everything_is_rebuilt_from_the_log_alone(tmp_path: Path) -> None:
    """R181: topology, messages, fragments, media, marks and ids come back from the folder; the dictionary is the same."""
    root = _grown(tmp_path / "log")
    again = rebuild(tmp_path / "log").root
    assert again.to_dict() == root.to_dict()
    assert again.tree_node.subtree_ids() == root.tree_node.subtree_ids()
    assert again.session_name == "run"


def test_c26_a_path_a_text_and_a_follower_serve(tmp_path: Path) -> None:
    """C26: log_base takes a folder in either spelling, a replay log, or anything that follows."""
    logs: list[str | Path | ReplayLog] = [str(tmp_path / "0"), tmp_path / "1", ReplayLog(tmp_path / "2", fsync=True)]
    for number, log in enumerate(logs):
        root = _grown(log)
        assert rebuild(tmp_path / str(number)).root.to_dict() == root.to_dict()

    told: list[tuple[str, int]] = []

    class Mine:
        def follow(self, store: Store, node: Node, upto: int) -> None:
            assert store.last(node.dialog_id).seq == upto
            told.append((node.dialog_id, upto))

    dialog = Dialog(owner="x", log_base=Mine())
    dialog.put_text("a")
    dialog.put_text("b")
    assert told == [(dialog.dialog_id, seq) for seq in (-1, 0, 1)]


def test_r180_a_forks_node_is_logged_with_its_parent(tmp_path: Path) -> None:
    """Each file begins with the session and the whole node, parent and ranges included, and holds the own entries in order."""
    root = _grown(tmp_path)
    child = root.children[0]
    lines = [json.loads(line) for line in (tmp_path / f"{child.dialog_id}.jsonl").read_text().splitlines()]
    assert lines[0]["node"]["parent_id"] == root.dialog_id
    assert lines[0]["session"]["name"] == "run"
    assert [line["seq"] for line in lines if "seq" in line] == [0]
    assert [sorted(line) for line in lines[1:]] == [
        ["blob", "data"],
        ["counts", "entry", "number", "seq", "sum", "turn"],
    ]
    if os.name == "posix":
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("*.jsonl")}
        assert modes == {0o600}


def test_r182_a_log_is_attached_to_a_loaded_dialog(tmp_path: Path) -> None:
    """R182: a log attached by from_dict begins with all that was read, ancestors too, and follows from there."""
    leaf = _grown(tmp_path / "old").children[0].children[0]
    again = Dialog.from_dict(leaf.to_dict(), log_base=tmp_path / "new")
    again.put_text("more")
    rebuilt = rebuild(tmp_path / "new")
    assert rebuilt.dialog(leaf.dialog_id).messages == again.messages
    assert rebuilt.dialog(leaf.dialog_id).depth == 2


def test_a_session_opened_with_a_log_writes_what_it_lacks(tmp_path: Path) -> None:
    """Entries written while nobody followed are in the log as soon as the session is opened with it, and only once."""
    store_path = tmp_path / "s.db"
    with Session.create(store_path, "s", log_base=tmp_path / "log") as session:
        session.root.put_text("logged")
    with Session.open("s", store_path) as session:
        session.root.put_text("not logged")
    for _ in range(2):
        Session.open("s", store_path, log_base=tmp_path / "log").close()
    with Session.open("s", store_path) as session:
        assert rebuild(tmp_path / "log").root.to_dict() == session.root.to_dict()
    (file,) = (tmp_path / "log").glob("*.jsonl")
    assert len(file.read_text().splitlines()) == 3


def test_r183_a_log_that_cannot_be_written_warns_and_catches_up(tmp_path: Path) -> None:
    """R183: the call succeeds, the warning says which dialog, and when the folder can be written again nothing is missing."""
    blocked = tmp_path / "log"
    blocked.write_text("a file where the folder should be")
    with pytest.warns(ReplayLogWarning):
        dialog = Dialog(owner="coder", log_base=blocked)
    with pytest.warns(ReplayLogWarning, match=dialog.dialog_id):
        dialog.put_text("kept")
    assert dialog.messages[0].content == "kept"
    blocked.unlink()
    dialog.put_text("both")
    assert rebuild(blocked).root.to_dict() == dialog.to_dict()


def test_a_torn_line_is_passed_over_and_written_again(tmp_path: Path) -> None:
    """A crash in the middle of a line loses that line for the reader; the next writer writes it again, and nothing after is hurt."""
    store_path, log = tmp_path / "s.db", tmp_path / "log"
    with Session.create(store_path, "s", log_base=log) as session:
        for number in range(3):
            session.root.put_text(f"m{number}")
    (file,) = log.glob("*.jsonl")
    whole = file.read_bytes()
    for cut in (1, 20, len(whole.splitlines()[-1]) + 30, len(whole) - 5):
        file.write_bytes(whole[:-cut])
        with Session.open("s", store_path, log_base=log) as session:
            session.root.store.node(session.root.dialog_id)
            expected = session.root.to_dict()
        assert rebuild(log).root.to_dict() == expected
        file.write_bytes(whole)


def test_a_torn_log_alone_gives_its_whole_part(tmp_path: Path) -> None:
    """What a torn log says completely is rebuilt; a fork that shared more of its parent than is left says so."""
    root = _grown(tmp_path)
    file = tmp_path / f"{root.dialog_id}.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + lines[3][:10])
    with pytest.warns(ReplayLogWarning, match="without"):
        again = rebuild(tmp_path)
    assert [message.content for message in again.root.messages] == ["m0", "m1"]
    (child,) = again.root.children
    assert [message.content for message in child.messages][:1] == ["m0"]
    assert len(child.messages) == len(list(child.messages))


def test_a_gap_and_garbage_are_reported(tmp_path: Path) -> None:
    """A line that is lost is named; what is behind it has its number, and a line of the harness stands between. Garbage besides is passed over."""
    root = Dialog(owner="x", log_base=tmp_path)
    for number in range(4):
        root.put_text(f"m{number}")
    (file,) = tmp_path.glob("*.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(
        "".join([lines[0], "[]\n", "garbage\n", lines[1], lines[3], '{"seq": 1, "turn": true}\n', lines[4]])
    )
    with pytest.warns(ReplayLogWarning) as caught:
        again = rebuild(tmp_path)
    lost = f"[Entry {root.dialog_id[:12]}:1 cannot be read: its line of the replay log is spoilt.]"
    assert [message.content for message in again.root.messages] == ["m0", lost, "m2", "m3"]
    said = [str(warning.message) for warning in caught]
    assert said == [
        f"Entry {root.dialog_id[:12]}:1 is lost: line 6 of {file} is spoilt or missing. A line of the harness says so."
    ]


def test_a_missing_ancestor_is_reported(tmp_path: Path) -> None:
    """A fork whose parent's file is gone is rebuilt as a root with its own entries, and that is said."""
    root = _grown(tmp_path)
    leaf = root.children[0].children[0]
    for dialog in (root, root.children[0]):
        (tmp_path / f"{dialog.dialog_id}.jsonl").unlink()
    with pytest.warns(ReplayLogWarning, match=leaf.dialog_id):
        again = rebuild(tmp_path)
    assert again.root.dialog_id == leaf.dialog_id
    assert [message.content for message in again.root.messages] == ["leaf"]


def test_several_sessions_in_one_folder(tmp_path: Path) -> None:
    """A folder may follow several sessions; rebuilding then needs the name of one. No log at all is a typed error."""
    one, two = Dialog(owner="one", log_base=tmp_path), Dialog(owner="two", log_base=tmp_path)
    with pytest.raises(Ambiguous) as caught:
        rebuild(tmp_path)
    assert set(caught.value.candidates) == {one.session_id, two.session_id}
    assert rebuild(tmp_path, session_id=two.session_id).root.owner == "two"
    for nothing in (tmp_path / "none", tmp_path / "empty"):
        with pytest.raises(MissingStore):
            rebuild(nothing)


def test_rebuilding_into_a_store(tmp_path: Path) -> None:
    """A rebuilt session can lie in a durable store, where it is found by its name."""
    root = _grown(tmp_path / "log")
    rebuild(tmp_path / "log", tmp_path / "s.db").close()
    with Session.open("run", tmp_path / "s.db") as session:
        assert session.root.to_dict() == root.to_dict()


def test_law_04_what_was_acknowledged_is_in_the_log_after_a_kill(tmp_path: Path) -> None:
    """A process that dies right after an append has lost nothing of the log: lines are handed to the system before the call returns."""
    program = (
        "import os, sys\nfrom palaver import Dialog\n"
        "dialog = Dialog(owner='x', log_base=sys.argv[1])\n"
        "for n in range(5): dialog.put_text(f'm{n}')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert [message.content for message in rebuild(tmp_path).root.messages] == [f"m{n}" for n in range(5)]


def _worked(log: Path) -> Dialog:
    """A conversation in which everything hangs together: turns, calls with their starts and results, a picture, a fork, marks."""
    root = Dialog(owner="coder", session_name="worked", log_base=log)
    root.record(Instructions(sections=(Section(name="system", text="Be brief."),)))
    root.put_text("Look around.")
    for turn in range(2):
        call = f"c{turn}"
        root.record(TurnStarted())
        root.append(AssistantMessage(contents=(TextContent(content="I look."), ToolCallContent(id=call, name="ls"))))
        root.record(CallStarted(call_id=call))
        root.append(ToolMessage(contents=(ToolResultContent(id=call, content=f"file{turn}.py"),)))
        root.append(AssistantMessage(content=f"Seen {turn}."))
        root.record(TurnEnded(outcome="final"))
        root.put_image(PNG)
    root.annotate(Label(target=Place(dialog=root.dialog_id, seq=1), label="first"))
    root.fork(last_n=4).put_text("on a branch")
    root.put_text("And now?")
    return root


def _spoilt_line(line: bytes, way: str) -> bytes:
    """Spoil a line: its middle is garbage, it is cut, one letter of it is another one, or it is gone."""
    middle = len(line) // 2
    if way == "garbage":
        return line[:middle] + b'"}\xff[' + line[middle + 4 :]
    if way == "cut":
        return line[:middle] + b"\n"
    if way == "flipped":
        at = next(at for at in range(middle, 0, -1) if chr(line[at]).isalnum())
        return line[:at] + (b"b" if line[at : at + 1] == b"a" else b"a") + line[at + 1 :]
    return b""


@pytest.mark.parametrize("way", ["garbage", "cut", "flipped", "gone"])
def test_a_spoilt_line_is_the_only_one_that_is_lost(tmp_path: Path, way: str) -> None:
    """D20: each line of a log is spoilt in turn: every other entry comes back byte for byte under its number, and what is lost is named.

    The rebuilt store verifies, every provider's request is valid, and the dialog goes on.
    """
    root = _worked(tmp_path)
    child = root.children[0]
    file = tmp_path / f"{root.dialog_id}.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines[:-1]):
        record = json.loads(line)
        file.write_bytes(b"".join([*lines[:number], _spoilt_line(line, way), *lines[number + 1 :]]))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            again = rebuild(tmp_path)
        store = again.store
        lost = record.get("seq")
        for dialog in (root, child):
            before, after = (dict(one.bodies(dialog.dialog_id)) for one in (root.store, store))
            assert [seq for seq in before if after[seq] != before[seq]] == (
                [lost] if dialog is root and "seq" in record else []
            )
        assert told or "blob" in record  # of a payload that is gone nothing is left to name
        if "seq" in record:
            assert any(f"Entry {root.dialog_id[:12]}:{lost} is lost" in str(one.message) for one in told)
        assert {fault.code for fault in verify_store(store)} <= ({"missing_blob"} if "blob" in record else set())
        for name, model in MODELS.items():
            request = again.dialog(root.dialog_id).request(name, model)
            assert validate(request.body, request.profile) == ()
        again.dialog(root.dialog_id).put_text("It goes on.")
        assert len(again.dialog(child.dialog_id).messages) == len(child.messages)
    file.write_bytes(b"".join(lines))


def test_a_spoilt_last_line_is_named_wherever_it_is_spoilt(tmp_path: Path) -> None:
    """One letter of the last line is another one, those of its end included: its entry is there, or a warning says that it is lost."""
    root = _worked(tmp_path)
    file = tmp_path / f"{root.dialog_id}.jsonl"
    *before, last = file.read_bytes().splitlines(keepends=True)
    named = 0
    for at in range(len(last) - 60, len(last) - 1):
        file.write_bytes(b"".join([*before, last[:at], bytes([last[at] ^ 1]), last[at + 1 :]]))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            _, carried = read_log(tmp_path)
        (found,) = (one for one in carried if one.node.dialog_id == root.dialog_id)
        lost = len(found.lines) <= root.store.last(root.dialog_id).seq
        assert lost == any(f"Line {len(before) + 1} of" in str(one.message) for one in told), at
        named += lost
    assert named > 40  # all but the letters without which it is a line of before there were checksums


def test_a_log_without_checksums_is_read(tmp_path: Path) -> None:
    """What an earlier palaver wrote, without checksums, comes back the same."""
    root = _worked(tmp_path)
    for file in tmp_path.glob("*.jsonl"):
        records = [json.loads(line) for line in file.read_text().splitlines()]
        plain = [{name: value for name, value in record.items() if name != "sum"} for record in records]
        file.write_text("".join(json.dumps(record) + "\n" for record in plain))
    assert rebuild(tmp_path).root.to_dict() == root.to_dict()


def test_an_agent_does_not_guess_what_a_lost_entry_of_its_turn_did(tmp_path: Path) -> None:
    """The start of a call is lost from the newest turn: the rebuilt session can be read, and an agent refuses to go on, for the tool might run twice."""
    root = _worked(tmp_path)
    root.record(TurnStarted())
    root.append(AssistantMessage(contents=(ToolCallContent(id="c9", name="ls"),)))
    root.record(CallStarted(call_id="c9"))
    root.annotate(Label(target=Place(dialog=root.dialog_id, seq=1), label="last"))
    file = tmp_path / f"{root.dialog_id}.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:-2], _spoilt_line(lines[-2], "cut"), lines[-1]]))
    with pytest.warns(ReplayLogWarning, match="is lost"):
        again = rebuild(tmp_path)
    with pytest.raises(StoreDamaged, match="not guessed"):
        read_turn(again.store, again.root.dialog_id)


def test_a_log_whose_only_first_line_is_lost(tmp_path: Path) -> None:
    """No other file tells of the session: the dialog is a session of its own, with all of its entries; a folder of several cannot tell which."""
    root = _grown(tmp_path / "log")
    (tmp_path / "one").mkdir()
    name = f"{root.dialog_id}.jsonl"
    lines = (tmp_path / "log" / name).read_bytes().splitlines(keepends=True)
    (tmp_path / "one" / name).write_bytes(b"".join([lines[0][:30] + b"\n", *lines[1:]]))
    with pytest.warns(ReplayLogWarning) as told:
        again = rebuild(tmp_path / "one")
    assert ["stands alone" in str(one.message) for one in told] == [True]
    assert [one.content for one in again.root.messages] == [one.content for one in root.messages]


def test_an_entry_is_logged_once_whoever_of_many_threads_comes_first(tmp_path: Path) -> None:
    """Threads that write beside one turn tell the same log of it: each entry has one line, and all are there when all have returned."""
    log = ReplayLog(tmp_path / "log")
    dialog = Session.create(MemoryStore(), "s", log_base=log).root
    dialog.put_text("first")

    def work(number: int, barrier: threading.Barrier) -> None:
        for turn in range(10):
            barrier.wait()
            dialog.label(dialog.messages.handle(0), f"{number}.{turn}")

    at_once(4, work)
    path = log.folder / f"{dialog.dialog_id}.jsonl"
    places = [record["seq"] for record in map(json.loads, path.read_text().splitlines()) if "seq" in record]
    assert places == list(range(41))
    (carried,) = read_log(log.folder)[1]
    assert [line.body for line in carried.lines] == [body for _, body in dialog.store.bodies(dialog.dialog_id)]


class Meanwhile(MemoryStore):
    """A store in which something happens just behind a reading."""

    def __init__(self) -> None:
        """Let nothing happen."""
        super().__init__()
        self.then: Callable[[DialogId], object] = str

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Read, and let it happen."""
        found = list(super().bodies(dialog_id, start, stop))
        self.then(dialog_id)
        return iter(found)


@pytest.mark.parametrize("alone", [True, False], ids=["one log", "two into one folder"])
def test_what_was_erased_while_somebody_was_about_to_log_it_is_not_logged(tmp_path: Path, *, alone: bool) -> None:
    """An erasure by another thread, or another process, falls between reading and writing: the log has none of the words behind it, and all the others."""
    store, log = Meanwhile(), ReplayLog(tmp_path / "log")
    session = Session.create(store, "s")
    dialog = session.root
    dialog.put_text("The key is k-4711.")
    dialog.put_text("Yes.")

    def erase(_dialog: DialogId) -> None:
        store.then = str
        session.erase(entries=[dialog.messages.handle(0)])
        (log if alone else ReplayLog(log.folder)).forget(store, session.session_id)

    store.then = erase
    log.follow(store, store.node(dialog.dialog_id), 1)
    assert "k-4711" not in (log.folder / f"{dialog.dialog_id}.jsonl").read_text()
    dialog.put_text("Go on.")
    log.follow(store, store.node(dialog.dialog_id), store.last(dialog.dialog_id).seq)
    assert rebuild(log.folder).root.to_dict() == dialog.reload().to_dict()


def test_a_file_that_is_written_anew_is_whole_whoever_was_about_to_go_on_with_it(tmp_path: Path) -> None:
    """A thread that has read how far a file goes finds it deleted when it writes: what it writes then begins at the beginning."""
    store = Meanwhile()
    session = Session.create(store, "s", log_base=tmp_path / "log")
    session.root.put_text("first")
    session.root.fork().put_text("second")
    one, other = sorted(node.dialog_id for node in store.nodes(session.session_id))
    log = ReplayLog(tmp_path / "log")  # of another process: it has looked at nothing yet
    read, gone = threading.Event(), threading.Event()
    writer = threading.Thread(target=lambda: log.follow(store, store.node(other), store.last(other).seq), daemon=True)

    def met(dialog: DialogId) -> None:
        if threading.current_thread() is writer:
            read.set()
            assert gone.wait(WAIT)
        elif dialog == one and not writer.ident:
            writer.start()
            assert read.wait(WAIT)
        elif dialog == other and not gone.is_set():  # its file was deleted
            gone.set()
            writer.join(WAIT)

    session.dialog(other).label(session.dialog(other).messages.handle(-1), "so that something is lacking")
    store.then = met
    log.forget(store, session.session_id)
    assert not writer.is_alive()
    store.then = str
    assert rebuild(tmp_path / "log").root.to_dict() == session.root.to_dict()


def _flipped(text: bytes) -> bytes:
    return text[:20] + bytes([text[20] ^ 1]) + text[21:]


@pytest.mark.parametrize(
    "spoil",
    [
        _flipped,
        lambda text: text[40:],
        lambda text: b'{"blob":"00"}\n' + text,
        lambda text: b'{"session":null}\n' + text,
        lambda _: b"",
    ],
    ids=["a letter", "cut", "another line first", "no session", "empty"],
)
def test_an_erasure_reaches_a_log_that_does_not_begin_with_its_head(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    """Whose file it is says the store, by the dialog that it is named after: what was erased is gone from it, and it is whole again."""
    session = Session.create(MemoryStore(), "s", log_base=tmp_path / "log")
    for text in ("one", "The key is k-4711.", "three"):
        session.root.put_text(text)
    path = tmp_path / "log" / f"{session.root.dialog_id}.jsonl"
    path.write_bytes(spoil(path.read_bytes()))
    session.erase(entries=[session.root.messages.handle(1)])
    assert "k-4711" not in path.read_text()
    assert rebuild(tmp_path / "log").root.to_dict() == session.root.to_dict()


def test_what_is_no_log_of_the_session_is_left_alone(tmp_path: Path) -> None:
    """Another session's file, and one that is no log, stay as they are; of one that says nothing and that the store does not know, there is a warning."""
    session, other = (Session.create(MemoryStore(), "s", log_base=tmp_path / "log") for _ in range(2))
    foreign, unknown = tmp_path / "log" / "notes.jsonl", tmp_path / "log" / f"{'0' * 32}.jsonl"
    own = tmp_path / "log" / f"{session.root.dialog_id}.jsonl"
    for dialog in (session.root, other.root):
        dialog.put_text("one")
    foreign.write_text('{"note": "mine"}\n')
    kept = (tmp_path / "log" / f"{other.root.dialog_id}.jsonl", foreign)
    before = [path.read_bytes() for path in kept]
    session.erase(entries=[session.root.messages.handle(0)])
    assert [path.read_bytes() for path in kept] == before
    unknown.write_text("spoilt\n")
    with pytest.warns(ReplayLogWarning, match="of which session it is"):
        session.erase()
    assert [path.read_bytes() for path in kept] == before
    assert not own.exists()


def test_a_file_that_was_taken_away_begins_anew(tmp_path: Path) -> None:
    """Somebody cleans the folder while it is followed: at the next write the log is whole again."""
    dialog = Dialog(owner="x", log_base=tmp_path / "log")
    dialog.put_text("one")
    for path in (tmp_path / "log").iterdir():
        path.unlink()
    dialog.put_text("two")
    (tmp_path / "log" / f"{dialog.dialog_id}.jsonl").unlink()
    (tmp_path / "log").rmdir()
    dialog.put_text("three")
    assert [message.text_content() for message in rebuild(tmp_path / "log").root.messages] == ["one", "two", "three"]


def test_a_dialog_that_was_erased_meanwhile_leaves_no_log(tmp_path: Path) -> None:
    """The whole session is erased by another process between reading and writing: its file goes, too."""
    store, log = Meanwhile(), ReplayLog(tmp_path / "log")
    session = Session.create(store, "s")
    dialog = session.root
    dialog.put_text("The key is k-4711.")
    node = store.node(dialog.dialog_id)

    def erase(_dialog: DialogId) -> None:
        store.then = str
        session.erase()

    store.then = erase
    log.follow(store, node, 0)
    assert list(log.folder.iterdir()) == []


def test_what_was_erased_without_the_log_leaves_it_when_it_follows_again(tmp_path: Path) -> None:
    """Somebody erases who does not know of the log: when the session is opened with it, it says what the store says, and nothing else."""
    store = MemoryStore()
    followed = Session.create(store, "s", log_base=tmp_path / "log")
    for text in ("one", "The key is k-4711.", "three"):
        followed.root.put_text(text)
    other = Session.open("s", store)
    other.erase(entries=[other.root.messages.handle(1)])
    (path,) = (tmp_path / "log").iterdir()
    assert "k-4711" in path.read_text()
    again = Session.open("s", store, log_base=tmp_path / "log")
    assert "k-4711" not in path.read_text()
    before = path.read_bytes()
    Session.open("s", store, log_base=tmp_path / "log")
    assert path.read_bytes() == before
    assert rebuild(tmp_path / "log").root.to_dict() == again.root.to_dict()


def test_what_only_a_log_has_is_kept(tmp_path: Path) -> None:
    """A store that was put back from an earlier copy lacks what its log has: opening it with the log deletes nothing of that, also where something was erased."""
    path = tmp_path / "s.db"
    with Session.create(path, "s", log_base=tmp_path / "log") as session:
        for text in ("one", "two"):
            session.root.put_text(text)
        session.erase(entries=[session.root.messages.handle(0)])
    copy = path.read_bytes()
    with Session.open("s", path, log_base=tmp_path / "log") as session:
        session.root.put_text("three")
    path.write_bytes(copy)
    with pytest.warns(ReplayLogWarning), Session.open("s", path, log_base=tmp_path / "log"):
        pass
    assert [message.text_content() for message in rebuild(tmp_path / "log").root.messages][1:] == ["two", "three"]


def test_an_erasure_in_a_block_is_refused_where_a_log_follows(tmp_path: Path) -> None:
    """A block may be taken back, and a log cannot: nothing was erased, and the log goes on."""
    session = Session.create(MemoryStore(), "s", log_base=tmp_path / "log")
    session.root.put_text("one")
    with session.store.together(), pytest.raises(InvalidInput, match="Erase outside of the block"):
        session.erase(entries=[session.root.messages.handle(0)])
    session.root.put_text("two")
    assert rebuild(tmp_path / "log").root.to_dict() == session.root.to_dict()


@pytest.mark.parametrize("raises", [False, True])
def test_a_block_as_the_last_thing_is_in_the_log_of_a_session_that_was_closed(tmp_path: Path, *, raises: bool) -> None:
    """Nobody looks behind the block any more: closing tells what it wrote, and nothing of one that was taken back."""
    with Session.create(tmp_path / "s.db", "s", log_base=tmp_path / "log") as session:
        session.root.put_text("one")
        with suppress(ZeroDivisionError), session.store.together():
            session.root.put_text("two")
            if raises:
                raise ZeroDivisionError
    said = [message.text_content() for message in rebuild(tmp_path / "log").root.messages]
    assert said == (["one"] if raises else ["one", "two"])
