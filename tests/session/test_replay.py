"""The replay log: a follower from which everything can be rebuilt, and which never fails a call (R180 to R183)."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from palaver import Dialog, Message, ReplayLog, ReplayLogWarning, Session, Store, rebuild
from palaver.errors import Ambiguous, MissingStore
from palaver.log import Node
from palaver.session import Follower

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
    assert [sorted(line) for line in lines[1:]] == [["blob", "data"], ["counts", "entry", "seq", "turn"]]
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
    """Lines after a gap are not used, a line that is no entry is passed over, and both are said."""
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
    assert [message.content for message in again.root.messages] == ["m0"]
    said = [str(warning.message) for warning in caught]
    assert any("gap" in one for one in said)
    assert any("cannot be read" in one for one in said)


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
