"""The replay log: a follower from which everything can be rebuilt, and which never fails a call (R180 to R183)."""

import json
import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from palaver import Dialog, Message, ReplayLog, ReplayLogWarning, Session, Store, rebuild
from palaver.agent.turn import read_turn
from palaver.errors import Ambiguous, MissingStore, StoreDamaged
from palaver.log import CallStarted, Instructions, Label, Node, Place, Section, TurnEnded, TurnStarted
from palaver.messages import AssistantMessage, TextContent, ToolCallContent, ToolMessage, ToolResultContent
from palaver.session import Follower
from palaver.session.carried.replay import read_log
from palaver.store.verifying import verify_store
from palaver.wire import validate
from tests.demand.ground import MODELS

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
