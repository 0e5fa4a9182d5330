"""The replay log and dictionaries: all of a session comes back from them (R37 to R39, R180 to R183)."""

import json
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from palaver import MemoryStore, Message, Prompt, Runtime, Store
from palaver.erasure.erase import erase, finish_erasures
from palaver.erasure.plan import ErasureScope, preview_erasure
from palaver.erasure.receipts import verify_receipt
from palaver.errors import Ambiguous, InvalidInput, MissingFile
from palaver.ids import SessionId
from palaver.log import Node, Pin, Place
from palaver.messages import AssistantMessage, ToolCallContent, ToolMessage, ToolResultContent
from palaver.session import Dialog, ReplayLog, ReplayLogWarning, Session, UnknownPromptWarning, rebuild
from palaver.store import SqliteStore
from palaver.store.erasing import NotedFile

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def grown(log: Path | ReplayLog | str | None = None) -> Dialog:
    """Return the root of a tree with a window, an image, fragments and marks, under a replay log."""
    root = Dialog(owner="coder", session_name="run", log_base=log)
    for number in range(4):
        root.put_text(f"m{number}")
    child = root.fork(last_n=2)
    child.put_image(PNG)
    root.append([Message(role="assistant", content=part, response_id="r", fragment=True) for part in ("a", "b")])
    child.fork().put_text("leaf")
    root.marks.label(root.messages.handle(0), "first")
    return root


# --- dictionaries -------------------------------------------------------------------------------------------------------------------------


def test_dictionaries_and_logs_hold_the_tree(tmp_path: Path) -> None:
    """R37, R38, R181, R182: topology, messages, fragments, media, marks and ids come back, from any dialog's dictionary and from the log."""
    root = grown(tmp_path / "log")
    written = json.loads(json.dumps(root.to_dict()))
    assert written["tree_node"] == root.tree_node.to_dict()
    assert written["top_prompt_path"] is None
    assert rebuild(tmp_path / "log").root.to_dict() == root.to_dict()
    again = Dialog.from_dict(written, log_base=tmp_path / "again")
    assert again.to_dict() == root.to_dict()
    assert again.tree_overview() == root.tree_overview()
    leaf = Dialog.from_dict(root.children[0].children[0].to_dict())
    assert leaf.parent is not None
    assert leaf.parent.tail == root.children[0].tail
    again.put_text("on")
    assert rebuild(tmp_path / "again").root.messages == again.messages


def test_an_unknown_prompt_is_a_warning() -> None:
    """A9, R38, R39: a registered prompt is found by its path; one that the runtime lacks is None and a warning, a temporary one neither."""
    runtime = Runtime()
    runtime.register_prompt(prompt := Prompt(path="research/agent", prompt="Research."))
    dialog = Dialog(owner="coder", runtime=runtime)
    dialog.put_prompt(prompt)
    assert Dialog.from_dict(dialog.to_dict(), runtime=runtime).top_prompt is prompt
    with pytest.warns(UnknownPromptWarning, match="research/agent"):
        assert Dialog.from_dict(dialog.to_dict(), runtime=Runtime()).top_prompt is None
    dialog.put_text("plain")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Dialog.from_dict(dialog.to_dict()).top_prompt is None


def test_what_is_not_a_dictionary_of_ours(store: Store, tmp_path: Path) -> None:
    """A dictionary or folder without a log is a typed error; so are a session that the store has, and a folder of two sessions."""
    logs: tuple[object, ...] = (None, [{"palaver": 2}], [{"palaver": 1}], [3], [], [{"seq": 0}])
    for log in logs:
        with pytest.raises(InvalidInput):
            Dialog.from_dict({"log": log})
    written = grown().to_dict()
    first = Dialog.from_dict(written, store=store)
    with pytest.raises(InvalidInput):
        Dialog.from_dict(written, store=store)
    assert first.to_dict() == written
    with pytest.raises(MissingFile):
        rebuild(tmp_path)
    Dialog(owner="a", log_base=tmp_path)
    two = Dialog(owner="b", log_base=tmp_path)
    with pytest.raises(Ambiguous):
        rebuild(tmp_path)
    assert rebuild(tmp_path, session_id=two.session_id).root.owner == "b"


# --- following ------------------------------------------------------------------------------------------------------------------------------


def test_a_path_a_text_and_a_follower_serve(tmp_path: Path) -> None:
    """C26: log_base takes a folder in either spelling, a replay log, or anything that follows."""
    logs: list[str | Path | ReplayLog] = [str(tmp_path / "0"), tmp_path / "1", ReplayLog(tmp_path / "2", fsync=True)]
    for number, log in enumerate(logs):
        root = grown(log)
        assert rebuild(tmp_path / str(number)).root.to_dict() == root.to_dict()
    told: list[tuple[str, int]] = []

    class Mine:
        def follow(self, store: Store, node: Node, upto: int) -> None:
            assert store.last(node.dialog_id).seq == upto
            told.append((node.dialog_id, upto))

        def forget(self, store: Store, session_id: SessionId) -> None:
            del store, session_id

    dialog = Dialog(owner="x", log_base=Mine())
    dialog.put_text("a")
    dialog.record(Pin(target=Place(dialog=dialog.dialog_id, seq=0)))
    assert told == [(dialog.dialog_id, seq) for seq in (-1, 0, 1)]


def test_a_file_is_private_and_begins_with_its_node(tmp_path: Path) -> None:
    """R180: each file begins with the session and the whole node, holds the own entries in order, and is its owner's alone."""
    child = grown(tmp_path / "log").children[0]
    lines = [json.loads(line) for line in (tmp_path / "log" / f"{child.dialog_id}.jsonl").read_text().splitlines()]
    assert (lines[1]["dialog"]["parent_id"], lines[0]["session"]["name"]) == (child.tree_node.parent_id, "run")
    assert [sorted(line) for line in lines[2:]] == [["blob", "data", "sum"], ["entry", "seq", "sum", "turn"]]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "log").glob("*.jsonl")} == {0o600}
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o700


def test_a_session_opened_with_a_log_writes_what_it_lacks(tmp_path: Path) -> None:
    """Entries written while nobody followed are in the log as soon as the session is opened with it, and only once."""
    path = tmp_path / "s.db"
    with Session.create(path, "s", log_base=tmp_path / "log") as session:
        session.root.put_text("logged")
    with Session.open(path, "s") as session:
        session.root.put_text("not logged")
    for _ in range(2):
        Session.open(path, "s", log_base=tmp_path / "log").close()
    with Session.open(path, "s") as session:
        assert rebuild(tmp_path / "log").root.to_dict() == session.root.to_dict()
    (file,) = (tmp_path / "log").glob("*.jsonl")
    assert len(file.read_text().splitlines()) == 4


def test_a_log_that_cannot_be_written_catches_up(tmp_path: Path) -> None:
    """R183: the call succeeds, a warning says which dialog, and once the folder can be written nothing is missing."""
    blocked = tmp_path / "log"
    blocked.write_text("a file where the folder should be")
    with pytest.warns(ReplayLogWarning, match="could not be written"):
        dialog = Dialog(owner="x", log_base=blocked)
    with pytest.warns(ReplayLogWarning, match=dialog.dialog_id):
        dialog.put_text("a")
    blocked.unlink()
    dialog.put_text("b")
    assert rebuild(blocked).root.messages == dialog.messages


# --- damage ---------------------------------------------------------------------------------------------------------------------------------


def agent_log(folder: Path) -> Dialog:
    """Return a dialog with calls and results that was logged."""
    dialog = Dialog(owner="x", log_base=folder)
    dialog.put_text("go")
    for number in range(2):
        call = ToolCallContent(id=f"c{number}", name="ls", args={"n": number})
        dialog.append(AssistantMessage(contents=(call,)))
        dialog.append(ToolMessage.from_result(ToolResultContent(id=call.id, content="a" * 5)))
    return dialog


def test_a_log_cut_at_any_byte_gives_what_is_whole(tmp_path: Path) -> None:
    """D20: of a log that ends anywhere every whole line is used, and the next write does not stick to a torn one."""
    dialog = agent_log(tmp_path / "log")
    (file,) = (tmp_path / "log").glob("*.jsonl")
    data = file.read_bytes()
    head = len(b"".join(data.splitlines(keepends=True)[:2]))
    for cut in range(head, len(data), 7):
        file.write_bytes(data[:cut])
        session = rebuild(tmp_path / "log")
        whole = data[: cut + 1].count(b"\n") - 2  # a line is whole without its end of line
        assert list(session.root.messages) == list(dialog.messages[:whole])
        session = rebuild(tmp_path / "log", MemoryStore())
        Session.open(session.store, session.session_id, log_base=tmp_path / "log").root.put_text("on")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the torn line, which nobody wrote again
            assert len(rebuild(tmp_path / "log").root.messages) == whole + 1


def test_a_damaged_line_loses_itself_alone(tmp_path: Path) -> None:
    """D20: whichever line is damaged, entries before and after it keep their numbers, and a warning names what is lost."""
    dialog = agent_log(tmp_path / "log")
    (file,) = (tmp_path / "log").glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    for damaged in range(2, len(lines)):
        broken = [line if n != damaged else line.replace(b'"turn"', b'"torn"') for n, line in enumerate(lines)]
        file.write_bytes(b"".join(broken))
        with pytest.warns(ReplayLogWarning, match="cannot be read|is lost"):
            root = rebuild(tmp_path / "log").root
        rest = [message for n, message in enumerate(dialog.messages) if n != damaged - 2]
        assert list(root.messages) == rest
        after = [place for n in range(len(rest)) if (place := root.messages.handle(n)).seq > damaged - 2]
        assert all(root.recall(place) == dialog.recall(place) for place in after)


# --- erasure --------------------------------------------------------------------------------------------------------------------------------


def test_an_erasure_reaches_the_log(tmp_path: Path) -> None:
    """What was erased is in no file of the log, whether the eraser knew of the log or not."""
    path, log = tmp_path / "s.db", tmp_path / "log"
    with Session.create(path, "s", log_base=log) as session:
        session.root.put_text("keep this")
        session.root.put_text("secret-word")
        child = session.root.fork()
        child.put_text("another-secret")
        session.erase(entries=[session.root.messages.handle(1)])
        assert "secret-word" not in "".join(file.read_text() for file in log.iterdir())
        with Session.open(path, "s") as other:  # knows of no log
            other.erase(entries=[f"{child.dialog_id}:0"])
        session.dialog(child.dialog_id).reload().put_text("on")
        assert "another-secret" not in "".join(file.read_text() for file in log.iterdir())
        read, kept = rebuild(log).root.to_dict(), session.root.to_dict()
        assert read["messages"] == kept["messages"]
        assert [one for one in read["log"] if "seq" in one] == [one for one in kept["log"] if "seq" in one]
        session.erase()
    assert not list(log.iterdir())


def words_in(folder: Path) -> str:
    """Return all that is in a folder."""
    return "".join(file.read_text() for file in folder.iterdir())


@pytest.mark.parametrize("scope", ["entries", "dialog", "session", "subject"])
def test_erasure_reaches_a_log_it_was_not_given(tmp_path: Path, scope: str) -> None:
    """Whoever erases, the store knows where the log is: no word is left in it, nothing is pending, and `rebuild` brings back what stayed."""
    path, log = tmp_path / "s.db", tmp_path / "log"
    with Session.create(path, "s", subject="ada", log_base=log) as session:
        session.root.put_text("kept")
        child = session.root.fork()
        child.put_text("secret-word")
        child.marks.label(child.messages.handle(1), "secret-label")
    scopes: dict[str, ErasureScope] = {
        "entries": {"entries": [f"{child.dialog_id}:0"]},
        "dialog": {"dialog": child.dialog_id},
        "session": {"session": session.session_id},
        "subject": {"subject": "ada"},
    }
    with SqliteStore(path) as store:
        assert preview_erasure(store, **scopes[scope]).logs == (f"{log}/",)
        receipt = erase(store, **scopes[scope])
    assert receipt.complete
    assert receipt.beyond == ()
    assert "secret" not in words_in(log)
    if scope in {"session", "subject"}:
        with pytest.raises(MissingFile):
            rebuild(log)
    else:
        left = [dialog.messages[0].text_content() for dialog in rebuild(log).dialogs]
        assert left == ["kept"] * (2 if scope == "entries" else 1)


def test_log_that_cannot_be_rewritten_is_pending(tmp_path: Path) -> None:
    """Then the receipt names the log, and finishing the erasure does it; a log of a dialog that the store does not know stays."""
    path, log = tmp_path / "s.db", tmp_path / "log"
    with Session.create(path, "s", log_base=log) as session:
        session.root.put_text("secret-word")
        file = log / f"{session.root.dialog_id}.jsonl"
        Dialog(owner="other", log_base=log).put_text("another's")
    kept = file.read_bytes()
    file.unlink()
    file.mkdir()
    with SqliteStore(path) as store:
        receipt = erase(store, session=session.session_id)
        assert receipt.pending == (f"what was erased is to be removed from the replay log {log}/",)
        file.rmdir()
        file.write_bytes(kept)
        assert [finished.pending for finished in finish_erasures(store)] == [()]
    assert "secret" not in words_in(log)
    assert "another's" in words_in(log)


def test_receipt_names_what_was_moved(tmp_path: Path) -> None:
    """A folder of logs and an exported file that are not where they were written may be anywhere: the receipt names them, and nothing else."""
    path, log, exported = tmp_path / "s.db", tmp_path / "log", tmp_path / "exported.jsonl"
    with Session.create(path, "s", log_base=log) as session:
        session.root.put_text("secret-word")
        log.rename(tmp_path / "moved")
    with SqliteStore(path) as store:
        store.note_file(session.session_id, NotedFile(str(exported), "digest"))
        receipt = erase(store, session=session.session_id)
        assert receipt.beyond == (
            f"the file {exported}, which was moved or deleted",
            f"the replay log {log}/, which was moved or deleted",
        )
        assert verify_receipt(store, receipt.to_json()).holds


_KILLED = """
import os, sys
from palaver.erasure.erase import erase
from palaver.store import SqliteStore
from palaver.store.erasing import NotedFile

path, dialog, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = SqliteStore(path)

def watch(event, _args):
    global left
    if event == "os.rename" and (left := left - 1) < 0:
        os._exit(9)

sys.addaudithook(watch)
erase(store, entries=[f"{dialog}:0"])
"""


@pytest.mark.parametrize("replaced", [0, 1, 2])
def test_crash_while_a_log_is_rewritten(tmp_path: Path, replaced: int) -> None:
    """Each file is the old or the new one, the receipt waits in the store, and finishing the erasure leaves no word."""
    path, log = tmp_path / "s.db", tmp_path / "log"
    with Session.create(path, "s", log_base=log) as session:
        root = session.root
        root.put_text("secret-word")
        for _ in range(2):
            root.fork().put_text("kept")
    killed = [sys.executable, "-c", _KILLED, str(path), root.dialog_id, str(replaced)]
    assert subprocess.run(killed, check=False).returncode == 9
    assert len(rebuild(log).dialogs) == 3
    with SqliteStore(path) as store:
        assert [finished.complete for finished in finish_erasures(store)] == [True]
        assert "secret" not in words_in(log)
        assert len(list(log.iterdir())) == 3
        kept = [dialog.to_dict()["log"] for dialog in Session.open(store, "s").dialogs]
        assert [dialog.to_dict()["log"] for dialog in rebuild(log).dialogs] == kept
