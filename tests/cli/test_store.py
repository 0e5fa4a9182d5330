"""palaver erase and store: erasing with receipts, retention, copies, sweeping and verification; and the doctor's quarantine."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from palaver import Session, SqliteStore
from palaver.cli.outcome import Exit
from palaver.store import open_store
from tests.cli.commands import Palaver, run, talk
from tests.formats.samples import Claude, text

DAY = 86_400

# --- erasing --------------------------------------------------------------------------------------------------------------------------


def test_an_erasure_is_previewed_done_and_proved(stocked: Palaver) -> None:
    """Without --yes nothing is written; afterwards the session is gone, is not imported again by itself, and the receipt holds."""
    words = stocked("erase", "talk")
    assert (words.code, "nothing was written" in words.out, "--yes does it." in words.out) == (Exit.OK, True, True)
    preview = stocked("erase", "talk", "--json").row()
    assert preview["preview"]
    assert (preview["messages"], len(preview["sessions"]), len(preview["dialogs"])) == (11, 1, 2)
    assert len(stocked("sessions", "--json").rows()) == 1
    receipt = stocked("erase", "talk", "--yes", "--json").row()
    assert stocked("sessions", "--json").rows() == []
    assert stocked("import", stocked.folder / "talk.jsonl").code == Exit.MISSING
    (verdict,) = stocked("store", "receipts", "--json").rows()
    assert (verdict["receipt"], verdict["holds"], verdict["problems"]) == (receipt["id"], True, [])
    assert "Nothing is pending." in stocked("erase", "--finish").out
    assert stocked("import", stocked.folder / "talk.jsonl", "--again").code == Exit.OK


def test_a_dialog_and_an_entry_are_erased_by_their_ids(stocked: Palaver) -> None:
    """What grew from a dialog must be said; an entry leaves a tombstone."""
    first, second = (row["dialog"] for row in stocked("branch", "tree", "talk", "--json").rows())
    refused = stocked("erase", first, "--yes")
    assert (refused.code, "grew from dialog" in refused.err) == (Exit.INPUT, True)
    assert stocked("erase", second[:12], "--yes", "--json").row()["dialogs"] == [second]
    place = stocked("show", "talk", "--json").rows()[0]["handle"]
    assert len(stocked("erase", place, "--yes", "--json").row()["tombstones"]) >= 1
    gone = stocked("show", place)
    assert (gone.code, "was erased" in gone.err) == (Exit.MISSING, True)
    assert stocked("doctor", "talk").code == Exit.OK


def test_all_sessions_of_a_subject_are_erased(palaver: Palaver) -> None:
    """Exactly that subject's; the receipt does not name it."""
    palaver("import", palaver.file("talk.jsonl", talk()), "--subject", "mara@example.org")
    done = palaver("erase", "--subject", "mara@example.org", "--yes")
    assert done.code == Exit.OK
    assert "mara" not in done.out
    assert palaver("erase", "--subject", "mara@example.org").code == Exit.MISSING


def test_subject_is_erased_from_every_database(tmp_path: Path) -> None:
    """A store over several databases erases in each that has sessions of the subject, with a receipt each that holds; others stay."""
    both = " ".join(f"sqlite://{tmp_path / name}" for name in ("first.db", "second.db"))
    with closing(open_store(both)) as store:
        for number in range(12):
            subject = "mara@example.org" if number % 4 else "bob@example.org"
            Session.create(store, f"talk {number}", subject=subject).root.put_text("Hello.")
    rows = run("erase", "--subject", "mara@example.org", "--yes", "--json", "--store", both).rows()
    assert sum(row["entries"] for row in rows) == 9
    assert len(run("sessions", "--json", "--store", both).rows()) == 3
    assert all(row["holds"] for row in run("store", "receipts", "--json", "--store", both).rows())
    assert run("erase", "--subject", "mara@example.org", "--yes", "--store", both).code == Exit.MISSING


def test_exported_files_go_only_when_asked_and_unchanged(stocked: Palaver) -> None:
    """The preview lists them; --files deletes those that are as they were written; a file that changed is pending, and stays."""
    kept, changed = stocked.folder / "kept.md", stocked.folder / "changed.md"
    for path in (kept, changed):
        stocked("export", "talk", "--to", "markdown", "-o", path)
    changed.write_text("somebody's own")
    assert stocked("erase", "talk", "--json").row()["files"] == sorted(map(str, (kept, changed)))
    done = stocked("erase", "talk", "--yes", "--files")
    assert done.code == Exit.FOUND
    assert f"pending: the file {changed}" in done.err
    assert (kept.exists(), changed.read_text()) == (False, "somebody's own")
    changed.unlink()
    assert stocked("erase", "--finish").code == Exit.OK


def test_receipts_are_checked_and_written(stocked: Palaver) -> None:
    """By id, by file and from standard input; a changed one does not hold; a file is private and never replaced."""
    receipt = stocked("erase", "talk", "--yes", "--json").row()["id"]
    target = stocked.folder / "receipt.json"
    assert stocked("store", "receipts", receipt, "-o", target).code == Exit.OK
    assert target.stat().st_mode & 0o777 == 0o600
    assert stocked("store", "receipts", target).out.startswith(f"Receipt {receipt} holds")
    assert stocked("store", "receipts", receipt, "-o", target).code == Exit.INPUT
    told = json.loads(target.read_text())
    target.write_text(json.dumps({**told, "entries": told["entries"] + 1}))
    assert stocked("store", "receipts", target).code == Exit.FOUND


# --- retention ------------------------------------------------------------------------------------------------------------------------


def test_retention_goes_through_the_trash(stocked: Palaver) -> None:
    """Previewed first; what is on hold stays and is listed; the trash is emptied with receipts."""
    assert stocked("store", "hold", "talk").code == Exit.USAGE
    assert "on hold: audit" in stocked("store", "hold", "talk", "--reason", "audit").out
    assert "(held: audit)" in stocked("store", "retain", "--older-than", "1d", "--yes").out
    stocked("store", "hold", "talk", "--release")
    preview = stocked("store", "retain", "--older-than", "1d", "--json").row()
    assert (preview["preview"], len(preview["to_trash"]), preview["kept"]) == (True, 1, [])
    assert stocked("store", "retain", "--older-than", "30y").out.startswith("Would put 0 into the trash")
    assert "1 put into the trash, 0 erased." in stocked("store", "retain", "--older-than", "1d", "--yes").out
    assert len(stocked("sessions", "--trash", "--json").rows()) == 1
    done = stocked("store", "retain", "--older-than", "1d", "--empty-trash", "0s", "--yes", "--json").row()
    assert len(done["receipts"]) == 1
    assert stocked("sessions", "--trash", "--json").rows() == []
    assert stocked("store", "retain", "--older-than", "soon").code == Exit.INPUT


# --- copies ---------------------------------------------------------------------------------------------------------------------------


def test_a_store_is_copied_and_proved(stocked: Palaver, tmp_path: Path) -> None:
    """A second copy writes nothing; a target that went on by itself is not equal, which is an exit code."""
    target = tmp_path / "copy.db"
    told = stocked("store", "copy", target, "--json").row()
    assert told["equal"]
    assert told["written"] == told["entries"] > 0
    assert "0 entries written. Both are equal." in stocked("store", "copy", target).out
    assert run("sessions", "--json", "--store", target).out == stocked("sessions", "--json").out
    with SqliteStore(target) as store:
        Session.open(store, "talk").root.put_text("Only here.")
    ran = stocked("store", "copy", target)
    assert (ran.code, "NOT equal" in ran.out) == (Exit.FOUND, True)


def test_commands_take_keys_from_the_environment(
    stocked: Palaver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With them a copy of a plain store is encrypted, and read as ever; without them, or with half of them, an error says what to set."""
    secret, passphrase = tmp_path / "secret.db", tmp_path / "passphrase"
    passphrase.write_text("words\n")
    monkeypatch.setenv("PALAVER_KEYS", str(tmp_path / "keys"))
    half = stocked("store", "copy", secret)
    assert (half.code, "PALAVER_PASSPHRASE_FILE" in half.err) == (Exit.INPUT, True)
    monkeypatch.setenv("PALAVER_PASSPHRASE_FILE", str(passphrase))
    assert stocked("store", "copy", secret, "--json").row()["equal"]
    assert run("sync", secret, stocked.store, "--json").row()["added"] == [0, 0]
    synced = tmp_path / "synced.db"
    assert run("sync", secret, synced, "--json").row()["added"][1]
    assert run("show", "talk", "--store", synced).code == Exit.OK
    shown = run("show", "talk", "--store", secret).out
    assert shown == stocked("show", "talk").out
    assert run("store", "verify", "--store", secret).code == Exit.OK
    assert "has no index of words" in run("search", "page", "--store", secret).err
    erased = run("erase", "talk", "--yes", "--store", secret)
    assert "Its key is destroyed" in erased.out
    monkeypatch.delenv("PALAVER_KEYS")
    monkeypatch.delenv("PALAVER_PASSPHRASE_FILE")
    for words in (("sessions", "--store", secret), ("sync", synced, tmp_path / "third.db")):
        refused = run(*words)
        assert (refused.code != Exit.OK, "PALAVER_KEYS" in refused.err) == (True, True)


# --- verification and sweeping --------------------------------------------------------------------------------------------------------


def test_verify_names_what_does_not_follow(stocked: Palaver) -> None:
    """A sound store ends with 0; a changed figure is named with its place and ends with 1; the store is not written."""
    sound = stocked("store", "verify", "--json")
    assert (sound.code, sound.rows()[-1]["sound"], sound.rows()[-1]["faults"]) == (Exit.OK, True, 0)
    assert stocked("store", "verify").out.endswith(": all as written.\n")
    connection = apsw.Connection(str(stocked.store))
    connection.execute("UPDATE headers SET total = total + 1 WHERE seq = 2")
    connection.close()
    raw = stocked.store.read_bytes()
    broken = stocked("store", "verify", "--json")
    assert broken.code == Exit.FOUND
    assert broken.rows()[-1]["faults"] >= 1
    assert any(row["place"].endswith(":2") for row in broken.rows()[:-1])
    assert stocked("store", "verify", "talk", "--json").rows()[-1]["sessions"] == 1
    assert stocked.store.read_bytes() == raw


def test_orphaned_payloads_are_swept_when_they_are_old(palaver: Palaver) -> None:
    """A payload that nothing names, as a killed writer leaves it: a new one stays, an old one is previewed, then removed."""
    with SqliteStore(palaver.store) as store:
        session = Session.create(store, "talk")
        session.root.put_image(b"\x89PNG\r\n\x1a\n" + bytes(30))
        store.put_blob(session.session_id, b"\x89PNG\r\n\x1a\n" + bytes(40))
    assert "Removed 0 orphaned payloads" in palaver("store", "sweep", "--yes").out
    connection = apsw.Connection(str(palaver.store))
    connection.execute("UPDATE blobs SET put_at = put_at - ?", (2 * DAY,))
    connection.close()
    assert "Would remove 1 orphaned payload (48 bytes)" in palaver("store", "sweep").out
    done = palaver("store", "sweep", "--yes", "--json").row()
    assert (done["bytes"], len(done["payloads"]), done["pending"]) == (48, 1, [])
    assert palaver("store", "verify").code == Exit.OK


# --- the doctor -----------------------------------------------------------------------------------------------------------------------


def test_a_block_that_no_provider_takes_is_set_aside(palaver: Palaver) -> None:
    """The doctor names the block; in quarantine it is a placeholder in every request; --undo brings the same request back."""
    session = Claude()
    source = {"type": "base64", "media_type": "image/png", "data": "dGhpcyBpcyBubyBpbWFnZQ=="}
    session.user("u1", [{"type": "image", "source": source}])
    session.model("a1", "m1", text("I see."))
    palaver.imported(session.bytes())
    before = palaver("view", "talk", "--wire", "openai-chat", "--json").row()
    found = palaver("doctor", "talk", "--json")
    (fault,) = [one for one in found.row()["findings"] if one["severity"] == "fault"]
    assert (found.code, fault["code"]) == (Exit.FOUND, "refused_image")
    handle = fault["place"]
    assert palaver("branch", "quarantine", handle).code == Exit.OK
    assert handle in palaver("view", "talk", "--wire", "openai-chat").out
    assert len(palaver("branch", "quarantine", handle, "--undo", "--json").row()["entries"]) == 1
    assert palaver("view", "talk", "--wire", "openai-chat", "--json").row() == before


def test_damage_in_one_session_leaves_the_others(tmp_path: Path) -> None:
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
    assert run("show", "broken", "--store", path).code == Exit.STORE
    assert run("show", "last", "--store", path).code == Exit.OK


@pytest.mark.skipif(os.name != "posix", reason="modes of files are a matter of POSIX")
def test_everything_that_holds_conversation_is_private(stocked: Palaver) -> None:
    """The store, exports and receipts are readable by their owner only, whatever the umask."""
    before = os.umask(0)
    try:
        stocked("export", "talk", "--to", "bundle", "-o", stocked.folder / "talk.palaver")
        stocked("store", "copy", stocked.folder / "copy.db")
        run("import", stocked.folder / "talk.palaver", "--store", stocked.folder / "new.db")
    finally:
        os.umask(before)
    ours = [path for path in stocked.folder.iterdir() if path.suffix in {".db", ".palaver", ".db-wal"}]
    assert len(ours) >= 4
    assert {path.stat().st_mode & 0o777 for path in ours} == {0o600}
    with open_store(str(stocked.folder / "copy.db")) as store:
        assert len(list(store.sessions())) == 1


# --- syncs ----------------------------------------------------------------------------------------------------------------------------


def test_stores_are_synced_and_what_differs_is_said(stocked: Palaver) -> None:
    """Both sides get what they lack, through a folder too; a branch and what was refused are said, and the command ends with 1 where something was."""
    other, folder = stocked.folder / "other.db", f"{stocked.folder}/bundles/"
    first = run("sync", stocked.store, other, "--json").row()
    assert (first["sessions"], first["added"][0], first["refused"], first["created"]) == (1, 0, [], True)
    into = run("sync", stocked.store, folder)
    assert into.out.startswith(f"{folder} was created. 1 session; 0 entries added to A and {first['added'][1]} to B.")
    assert run("sync", stocked.store, folder, "--json").row()["created"] is False
    for path in (stocked.store, other):
        with SqliteStore(path) as store:
            Session.open(store, "talk").newest.put_text(str(path))
    done = run("sync", stocked.store, other)
    assert (done.code, "branch: session" in done.out) == (Exit.OK, True)
    assert "0 entries added to A and 0 to B" in run("sync", stocked.store, other).out
    assert "is to be deleted" in stocked("erase", "talk", "--yes").err
    assert "now in the folder" in run("sync", stocked.store, folder).out
    assert stocked("erase", "--finish").code == Exit.OK
    refused = run("sync", stocked.store, other)
    assert (refused.code, "palaver erase" in refused.out) == (Exit.FOUND, True)
    assert run("sync", folder, f"{stocked.folder}/more/").code == Exit.INPUT
    mistyped = stocked.folder / "stroe.db"
    missing = run("sync", mistyped, other)
    assert (missing.code, "Only B may be new" in missing.err, mistyped.exists()) == (Exit.MISSING, True, False)
    assert run("sync", "memory:", other).code == Exit.INPUT


def test_session_is_archived_shown_and_brought_back(stocked: Palaver) -> None:
    """Its entries are in a folder until something opens it; where it is, is said; what is wrong has its exit code."""
    before = stocked("show", "talk", "--json").rows()
    to = f"file://{stocked.folder}/old"
    assert stocked("archive", "talk", "--json").row()["address"] is None
    there = stocked("archive", "talk", "--to", to, "--json").row()
    assert " msgs" not in stocked("sessions").out.splitlines()[-1]
    assert stocked("archive", "talk", "--json").row() == there
    assert stocked("archive", "talk", "--to", to).code == Exit.INPUT
    assert stocked("show", "talk", "--json").rows() == before
    assert "is in the store" in stocked("archive", "talk").out
    assert stocked("archive", "talk", "--restore").code == Exit.INPUT
    assert stocked("archive", "talk", "--to", to).code == Exit.OK
    Path(there["address"].removeprefix("file://")).unlink()
    lost = stocked("show", "talk")
    assert (lost.code, "palaver erase" in lost.err) == (Exit.MISSING, True)
    assert stocked("archive", "talk", "--to", to, "--restore").code == Exit.USAGE
    assert stocked("archive", "talk", "--to", "nowhere").code == Exit.INPUT
