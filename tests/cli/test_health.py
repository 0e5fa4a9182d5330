"""doctor --quick and --quarantine, quarantine and verify from the command line: what they print, write and end with."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from palaver.cli.outcome import Exit
from palaver.log import MessageEntry
from palaver.messages import AssistantMessage, ToolCallContent, UserMessage
from palaver.session import Session
from palaver.store import SqliteStore
from tests.cli.commands import Palaver, run
from tests.formats.transcripts import Claude, text
from tests.transcripts.test_scanning import picture, session, shown, use

BAD = "bad_media"


@pytest.fixture
def poisoned(palaver: Palaver) -> Palaver:
    """Give the command line over a store whose session holds a picture that is none."""
    palaver.imported(shown(picture(b"this is no image at all")))
    return palaver


def test_a_block_that_no_provider_takes_is_previewed_set_aside_and_shown_again(poisoned: Palaver) -> None:
    """--quarantine alone writes nothing; with --yes the block is a placeholder in every request; --undo brings the same request back."""
    before = poisoned("view", "talk", "--wire", "openai-chat", "--json").row()
    looked = poisoned("doctor", "talk", "--quarantine", "--json")
    found, preview = looked.rows()
    assert (looked.code, preview["quarantine"]["done"]) == (Exit.FOUND, False)
    assert [one["code"] for one in found["findings"] if one["severity"] == "fault"] == [BAD]
    (handle,) = preview["quarantine"]["handles"]
    assert poisoned("view", "talk", "--wire", "openai-chat", "--json").row() == before

    done = poisoned("doctor", "talk", "--quarantine", "--yes")
    assert f"{handle}: set aside" in done.out
    assert f"recall {handle}" in poisoned("view", "talk", "--wire", "openai-chat").out
    assert poisoned("doctor", "talk", "--quarantine", "--yes", "--json").rows()[1]["quarantine"]["handles"] == []

    again = poisoned("quarantine", handle, "--undo", "--json").row()
    assert (again["quarantined"], len(again["entries"])) == (False, 1)
    assert poisoned("view", "talk", "--wire", "openai-chat", "--json").row() == before


def test_quarantine_says_what_it_did_and_does_nothing_twice(stocked: Palaver) -> None:
    """Several handles are one step; what is set aside already stays so; a wrong one among them writes nothing at all."""
    rows = stocked("show", "talk", "--json").rows()
    places = [row["handle"] for row in rows if row["kind"] == "message"][:2]
    first = stocked("quarantine", *places, "--reason", "refused")
    assert [line.endswith("--undo shows it again.") for line in first.out.splitlines()] == [True, True]
    assert "already" in stocked("quarantine", places[0]).out
    wrong = stocked("quarantine", "--undo", places[0], f"{places[1]}:99")
    assert (wrong.code, wrong.out) == (Exit.INPUT, "")
    assert "already" in stocked("quarantine", places[0]).out, "nothing of the step was done"
    assert stocked("quarantine", "nonsense").code == Exit.INPUT
    assert stocked("quarantine", "0123456789ab:3").code == Exit.MISSING


def test_a_file_cannot_be_set_aside_and_needs_no_store(palaver: Palaver) -> None:
    """--quarantine with a file is told what to do instead; --quick reads a file without any store."""
    path = palaver.file("s.jsonl", session(use(name="read file")))
    assert palaver("doctor", path, "--quarantine").code == Exit.USAGE
    quick = run("doctor", "--quick", path, "--json")
    (bad,) = [one for one in quick.row()["findings"] if one["code"] == "bad_tool_name"]
    assert quick.code == Exit.FOUND
    assert set(bad["refused"]) == set(bad["providers"])
    assert bad["remedy"]
    assert quick.row()["valid"] == {}
    assert not palaver.store.exists()


def test_a_long_file_is_read_record_by_record_without_being_asked(palaver: Palaver) -> None:
    """From 16 MB on nothing is imported; --deep does it all the same."""
    long = Claude()
    long.user("u1", "word " * 3_300_000)
    long.model("a1", "m1", text("Done."))
    path = palaver.file("long.jsonl", long.bytes())
    assert run("doctor", path, "--json").row()["valid"] == {}
    assert "--deep" in run("doctor", path).out


def test_verify_names_what_does_not_follow(stocked: Palaver) -> None:
    """A sound store ends with 0; a changed figure is named with its place and ends with 1; the store is not written."""
    sound = run("verify", stocked.store, "--json")
    assert (sound.code, sound.rows()[-1]["sound"], sound.rows()[-1]["faults"]) == (Exit.OK, True, 0)
    assert "everything follows" in run("verify", stocked.store).out
    connection = apsw.Connection(str(stocked.store))
    connection.execute("UPDATE headers SET total = total + 1 WHERE id & 0xffffffff = 2")
    connection.close()
    raw = stocked.store.read_bytes()
    broken = run("verify", stocked.store, "--json")
    fault, figures = broken.rows()
    assert (broken.code, fault["code"], figures["faults"]) == (Exit.FOUND, "wrong_header", 1)
    assert fault["place"].endswith(":2")
    assert "total is" in run("verify", stocked.store, "--session", "talk").out
    assert stocked.store.read_bytes() == raw


def test_verify_without_a_store_says_so(tmp_path: Path) -> None:
    """A store that is not there is no sound store."""
    ran = run("verify", tmp_path / "none.db", "--json")
    assert (ran.code, json.loads(ran.out)["error"]["kind"]) == (Exit.MISSING, "MissingStore")


def test_forks_are_reached(tmp_path: Path) -> None:
    """The command sets a block aside in every dialog that holds it, or in the one that is named."""
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        made = Session.create(name="talk", store=store)
        dialog = made.new_dialog("a")
        dialog.append(UserMessage(content="go"))
        (place,) = dialog.record(
            MessageEntry(message=AssistantMessage(contents=(ToolCallContent(id="a", name="f", args="{"),)))
        )
        fork = dialog.fork()
        fork.append(UserMessage(content="on"))
    one = run("quarantine", f"{place}:0", "--dialog", fork.dialog_id, "--store", path, "--json").row()
    assert len(one["entries"]) == 1
    rest = run("quarantine", f"{place}:0", "--store", path, "--json").row()
    assert [entry.split(":")[0] for entry in rest["entries"]] == [dialog.dialog_id[:12]]
    assert len(run("quarantine", f"{place}:0", "--undo", "--store", path, "--json").row()["entries"]) == 2


def test_a_file_that_is_damaged_in_one_session_is_examined_in_the_others(tmp_path: Path) -> None:
    """A page that SQLite cannot follow costs the session that lies on it: the doctor says so of that one, and examines the rest."""
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        for name, words in (("first", "hello"), ("broken", "x" * 40_000), ("last", "good day")):
            Session.create(store, name).root.put_text(words)
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    at = next(at for at in range(0, len(data), size) if data[at + 4 : at + size] == b"x" * (size - 4))
    data[at : at + 4] = b"\xff\xff\xff\xf0"  # where the page says which one comes next
    path.write_bytes(data)

    ran = run("doctor", "--json", "--store", path)
    assert ran.code == Exit.FOUND
    found = {row["name"]: [one["code"] for one in row["findings"]] for row in ran.rows()}
    assert found == {"first": [], "broken": ["damaged_store"], "last": []}
    assert "It cannot be read as a whole" in run("doctor", "--store", path).out
    told = run("show", "broken", "--store", path)
    assert told.code == Exit.STORE
    assert "palaver export" in told.err
    assert run("show", "last", "--store", path).code == Exit.OK
