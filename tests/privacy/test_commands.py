"""The commands: nothing is erased without --yes, every outcome has its code, and JSON says what words say."""

import errno
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from palaver.cli.app import main
from palaver.cli.outcome import Exit
from palaver.session import Session
from palaver.store import SqliteStore
from tests.privacy.secrets_made import SECRETS

KEY = SECRETS["github-token"]


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Give the address of a store with two sessions."""
    path = tmp_path / "store.db"
    with SqliteStore(path) as made:
        for name in ("going", "staying"):
            session = Session.create(made, name, subject=f"{name}@example.org")
            session.root.put_text(f"the words of {name}, with {KEY}")
            session.root.fork().put_text("on a branch")
    return str(path)


DIES = """
import os, signal, sys
from palaver.cli import erase
from palaver.cli.app import main

step = sys.argv[1]
plain = getattr(erase, step)

def dies(*words, **named):
    plain(*words, **named)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(erase, step, dies)
main(sys.argv[2:])
"""


def run(capsysbinary: pytest.CaptureFixture[bytes], *words: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run a command, and give its code, its JSON lines and its output."""
    code = main(list(words))
    out = capsysbinary.readouterr().out.decode()
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")] if "--json" in words else []
    return code, rows, out


def test_nothing_is_erased_when_its_receipt_cannot_be_written(
    capsysbinary: pytest.CaptureFixture[bytes], store: str, tmp_path: Path
) -> None:
    """A receipt's file that cannot be made, or an erasure that cannot be: everything is there, and no file is left behind."""
    words = ("erase", store, "--session", "going", "--yes", "--receipt")
    assert run(capsysbinary, *words, str(tmp_path / "nowhere" / "receipt.json"))[0] == Exit.OUTPUT
    assert run(capsysbinary, "show", "going", "--store", store)[0] == Exit.OK
    unmade = tmp_path / "receipt.json"
    code, _, _ = run(capsysbinary, "erase", store, "--subject", "nobody", "--yes", "--receipt", str(unmade))
    assert (code, unmade.exists()) == (Exit.INPUT, False)


def test_a_receipt_that_cannot_be_written_in_the_end_is_told(
    capsysbinary: pytest.CaptureFixture[bytes], store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when the receipt is to be written: the erasure is told as done, no half receipt is left, and the store gives it."""

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("palaver.cli.erase.fsync", full)
    receipt = tmp_path / "receipt.json"
    words = ("erase", store, "--session", "going", "--yes", "--receipt", str(receipt))
    code = main(list(words))
    told = capsysbinary.readouterr()
    assert (code, receipt.exists()) == (Exit.OUTPUT, False)
    assert b"Erased" in told.out
    assert b"the store keeps the receipt" in told.err.replace(b"\n", b" ")
    (kept,) = SqliteStore(store).receipts()
    assert run(capsysbinary, "verify-receipt", store, kept.receipt_id)[0] == Exit.OK


def test_an_erasure_from_the_command_line(
    capsysbinary: pytest.CaptureFixture[bytes], store: str, tmp_path: Path
) -> None:
    """Preview, erase, receipt, verify: and afterwards every command says that it was erased."""
    bundle = tmp_path / "out.palaver"
    assert run(capsysbinary, "export", "going", "--to", "bundle", "-o", str(bundle), "--store", store)[0] == Exit.OK
    code, (row,), _ = run(capsysbinary, "erase", store, "--session", "going", "--json")
    assert (code, row["preview"], row["entries"], row["files"]) == (Exit.OK, True, 2, [str(bundle)])
    assert "Give --yes" in run(capsysbinary, "erase", store, "--session", "going", "--preview")[2]
    assert bundle.exists()
    receipt = tmp_path / "receipt.json"
    code, (row,), _ = run(
        capsysbinary, "erase", store, "--session", "going", "--yes", "--receipt", str(receipt), "--json"
    )
    assert (code, row["entries"], row["pending"]) == (Exit.OK, 2, [])
    assert not bundle.exists()
    assert json.loads(receipt.read_text()) == row
    for named in (str(receipt), row["id"]):
        assert run(capsysbinary, "verify-receipt", store, named)[0] == Exit.OK
    code, (verdict,), _ = run(capsysbinary, "verify-receipt", store, row["id"], "--json")
    assert (code, verdict["holds"], verdict["problems"]) == (Exit.OK, True, [])
    assert run(capsysbinary, "show", row["sessions"][0], "--store", store)[0] == Exit.MISSING
    code, (error,), _ = run(capsysbinary, "show", row["sessions"][0], "--store", store, "--json")
    assert error["error"]["kind"] == "Erased"
    assert run(capsysbinary, "erase", store, "--session", row["sessions"][0], "--yes")[0] == Exit.MISSING
    assert "Nothing is pending" in run(capsysbinary, "erase", store, "--finish")[2]
    assert b"words of going" not in Path(store).read_bytes()


def test_entries_dialogs_and_subjects(capsysbinary: pytest.CaptureFixture[bytes], store: str) -> None:
    """Each scope by its option; a dialog with children is refused, and the options say what becomes of them."""
    with SqliteStore(store) as opened:
        root = Session.open("going", opened).root
        dialog, handle = root.dialog_id, str(root.messages.handle(0))
    assert run(capsysbinary, "erase", store, "--entry", handle, "--yes")[0] == Exit.OK
    assert run(capsysbinary, "recall", f"{dialog[:12]}:0", "--store", store)[0] == Exit.MISSING
    assert run(capsysbinary, "erase", store, "--dialog", dialog, "--yes")[0] == Exit.INPUT
    assert run(capsysbinary, "erase", store, "--dialog", dialog, "--tombstones", "--yes")[0] == Exit.OK
    assert run(capsysbinary, "erase", store, "--dialog", dialog[:8], "--children", "--yes", "--no-vacuum")[0] == Exit.OK
    assert run(capsysbinary, "erase", store, "--subject", "staying@example.org", "--yes")[0] == Exit.OK
    assert b"staying@example.org" not in Path(store).read_bytes()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), Exit.INPUT),
        (("--session", "going", "--subject", "x"), Exit.INPUT),
        (("--session", "nobody"), Exit.MISSING),
        (("--entry", "nonsense"), Exit.INPUT),
        (("--subject", "nobody", "--yes"), Exit.INPUT),
        (("--session", "going", "--yes", "--preview"), Exit.USAGE),
        (("--session", "going", "--children"), Exit.INPUT),
    ],
)
def test_wrong_words_erase_nothing(
    capsysbinary: pytest.CaptureFixture[bytes], store: str, words: tuple[str, ...], code: Exit
) -> None:
    """What is not understood is told by its code, and everything is there."""
    before = Path(store).read_bytes()
    assert run(capsysbinary, "erase", store, *words)[0] == code
    assert Path(store).read_bytes() == before


def test_a_store_must_be_named_and_be_there(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    """No default store is erased from, none is made, and none in memory makes sense."""
    assert run(capsysbinary, "erase")[0] == Exit.USAGE
    missing = tmp_path / "missing.db"
    assert run(capsysbinary, "erase", str(missing), "--session", "x")[0] == Exit.MISSING
    assert run(capsysbinary, "retain", str(missing), "--older-than", "1d")[0] == Exit.MISSING
    assert not missing.exists()
    for command in (("erase", "memory:", "--session", "x"), ("retain", "memory:", "--older-than", "1d")):
        assert run(capsysbinary, *command)[0] == Exit.INPUT


def test_retention_from_the_command_line(capsysbinary: pytest.CaptureFixture[bytes], store: str) -> None:
    """A preview by default; --yes uses the trash; a held session stays and is listed; --erase gives receipts."""
    assert run(capsysbinary, "hold", "staying", "--reason", "asked for", "--store", store)[0] == Exit.OK
    code, (row,), _ = run(capsysbinary, "retain", store, "--older-than", "0s", "--json")
    assert code == Exit.OK
    assert ([one["name"] for one in row["to_trash"]], [one["reason"] for one in row["kept"]]) == (
        ["going"],
        ["held: asked for"],
    )
    assert "Would put 1 session into" in run(capsysbinary, "retain", store, "--older-than", "0s")[2]
    assert "1 session is in the trash now" in run(capsysbinary, "retain", store, "--older-than", "0s", "--yes")[2]
    assert run(capsysbinary, "hold", "staying", "--release", "--store", store)[0] == Exit.OK
    code, (row,), _ = run(capsysbinary, "retain", store, "--older-than", "0s", "--erase", "--yes", "--json")
    assert (code, len(row["receipts"])) == (Exit.OK, 1)
    assert run(capsysbinary, "retain", store, "--older-than", "soon")[0] == Exit.INPUT
    assert run(capsysbinary, "hold", "going", "--store", store)[0] == Exit.USAGE


def test_redaction_from_the_command_line(
    capsysbinary: pytest.CaptureFixture[bytes], store: str, tmp_path: Path
) -> None:
    """--redact of export, view and import: no secret in what is written or shown; without it the store gives what it has."""
    assert KEY in run(capsysbinary, "export", "going", "--to", "markdown", "--store", store)[2]
    for form in ("markdown", "openai-chat", "anthropic", "pi"):
        assert KEY not in run(capsysbinary, "export", "going", "--to", form, "--redact", "--store", store)[2]
    assert KEY not in run(capsysbinary, "view", "going", "--redact", "--store", store)[2]
    assert KEY in run(capsysbinary, "view", "going", "--store", store)[2]
    file = tmp_path / "list.json"
    file.write_text(json.dumps([{"role": "user", "content": KEY}]))
    other = tmp_path / "other.db"
    assert run(capsysbinary, "import", str(file), "--redact", "--store", str(other))[0] == Exit.OK
    assert KEY.encode() not in other.read_bytes()
    with SqliteStore(other) as opened:
        (record,) = opened.sessions()
    assert run(capsysbinary, "erase", str(other), "--session", record.session_id, "--yes")[0] == Exit.OK
    assert run(capsysbinary, "import", str(file), "--store", str(other))[0] == Exit.MISSING
    assert run(capsysbinary, "import", str(file), "--again", "--redact", "--store", str(other))[0] == Exit.OK


@pytest.mark.parametrize(("step", "erased"), [("mkstemp", False), ("erase", True), ("fsync", True), ("link", True)])
def test_killed_at_any_step_a_receipt_is_whole_or_not_there(
    store: str, tmp_path: Path, step: str, erased: bool
) -> None:
    """Killed behind each step of an erasure with a receipt: its file is not there or whole, and the store gives what it lacks."""
    receipt, again = tmp_path / "receipt.json", tmp_path / "again.json"
    words = ["erase", store, "--session", "going", "--yes", "--receipt", str(receipt)]
    ended = subprocess.run([sys.executable, "-c", DIES, step, *words], check=False, stdout=subprocess.DEVNULL)
    assert ended.returncode == -signal.SIGKILL
    assert receipt.exists() is (step == "link")
    with SqliteStore(store) as opened:
        kept = [one.receipt_id for one in opened.receipts()]
    assert len(kept) == erased
    for one in kept:
        assert main(["verify-receipt", store, one, "--output", str(again)]) in (Exit.OK, Exit.FOUND)
        assert json.loads(again.read_text())["id"] == one
        assert main(["verify-receipt", store, str(receipt if receipt.exists() else again)]) == Exit.OK
    expected = Exit.INPUT if receipt.exists() else Exit.MISSING if erased else Exit.OK
    assert main(words) == expected


def test_receipts_that_a_store_keeps(capsysbinary: pytest.CaptureFixture[bytes], store: str, tmp_path: Path) -> None:
    """Without a receipt all are listed and checked; one is written by its id, once; a place that cannot be written is told."""
    assert "no receipt" in run(capsysbinary, "verify-receipt", store)[2]
    for name in ("going", "staying"):
        assert run(capsysbinary, "erase", store, "--session", name, "--yes", "--no-vacuum")[0] in (Exit.OK, Exit.FOUND)
    code, rows, _ = run(capsysbinary, "verify-receipt", store, "--json")
    assert (code, [row["holds"] for row in rows]) == (Exit.OK, [True, True])
    assert run(capsysbinary, "verify-receipt", store)[2].count("2 entries") == 2
    out = tmp_path / "receipt.json"
    named = ("verify-receipt", store, rows[1]["receipt"], "--output")
    assert run(capsysbinary, *named, str(out))[0] == Exit.OK
    assert json.loads(out.read_text())["id"] == rows[1]["receipt"]
    assert run(capsysbinary, *named, str(out))[0] == Exit.INPUT
    assert run(capsysbinary, *named, str(tmp_path / "nowhere" / "receipt.json"))[0] == Exit.OUTPUT
    assert run(capsysbinary, "verify-receipt", store, "--output", str(tmp_path / "all.json"))[0] == Exit.USAGE
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".json") == ["receipt.json"]
