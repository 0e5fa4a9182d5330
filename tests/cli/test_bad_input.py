"""Bad input of every kind: a clear message on one screen, the right exit code, nothing lost, nothing half written."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from palaver import Session, UserMessage
from palaver.errors import StoreError
from palaver.formats.records import MAX_LINE
from palaver.store import Store, open_store
from tests.cli.commands import Palaver, Ran, rollout, run, talk

SCREEN = 24
"""The lines of a terminal (DEC VT100)."""


def is_clear(ran: Ran, code: int, *words: str) -> None:
    """Say that a command was refused in words: on one screen of standard error, without a traceback, with these words in it."""
    assert (ran.code, ran.out) == (code, ""), ran
    said = " ".join(ran.err.split())
    assert all(word in said for word in words), said
    assert "Traceback" not in said
    assert len(ran.err.splitlines()) <= SCREEN
    assert len(said) < 80 * SCREEN


# --- files ----------------------------------------------------------------------------------------------------------------------

FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"\n\n  \n", "empty"),
    "text": (b"Dear diary,\ntoday nothing happened.\n", "not JSON"),
    "json": (b'{"name": "x", "version": 1}', "JSON object"),
    "lines": (b'{"a": 1}\n' * 50, "JSON lines"),
    "binary": (bytes(range(256)) * 64, "binary"),
    "utf16": (talk().decode().encode("utf-16"), "UTF-16"),
    "zstd": (b"\x28\xb5\x2f\xfd" + b"garbage" * 9, "zstd"),
    "a head and garbage": (rollout().splitlines(keepends=True)[0] + b"{garbage\n" * 4_000, "nothing"),
    "damaged bundle": (b'{"palaver":1,"session":{}}\n', "damaged at byte"),
    "newer bundle": (b'{"palaver":7,"session":{}}\n', "version 7"),
}


def test_an_import_of_nothing_makes_no_store(palaver: Palaver) -> None:
    """A file that cannot be imported, alone and with a missing one: each is reported, and no store is made."""
    bad = palaver.folder / "bad"
    for name, (data, words) in FILES.items():
        bad.write_bytes(data)
        for command in ("import",) if "bundle" in name else ("import", "doctor"):
            is_clear(palaver(command, bad), 3, words, "bad")
        both = palaver("import", bad, palaver.folder / "missing", "--json")
        assert (both.code, "There is no file" in both.out) == (1, True), name
        assert not palaver.store.exists()


def test_a_path_that_is_no_file(palaver: Palaver, tmp_path: Path) -> None:
    """A folder, a missing file, a file in a file, a name that no system takes."""
    (tmp_path / "folder").mkdir()
    file = palaver.file("file", b"")
    os.mkfifo(tmp_path / "pipe")
    for path, word in {
        tmp_path / "folder": "no transcript",
        tmp_path / "missing": "There is no file",
        file / "below": "There is no file",
        tmp_path / "pipe": "not a regular file",
        tmp_path / ("x" * 300): "",
    }.items():
        is_clear(palaver("import", path), 4 if "no file" in word else 3, word)
    assert not palaver.store.exists()


MEASURED = """
import resource, sys
from palaver.cli import imports, main
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
code = main()
print("measured", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("head", [b"", rollout()], ids=["garbage", "a transcript's head"])
def test_a_gigabyte_of_garbage(palaver: Palaver, head: bytes) -> None:
    """It is refused, or what is before it is imported, in bounded memory. The rest of the file is a hole, which reads as zeros."""
    path = palaver.folder / "garbage"
    with path.open("wb") as file:
        file.write(head + (b"\x01\x02{]" if head else b'{"type": "nothing", "n": 1}\n') * (1 << 18))
        file.truncate(MAX_LINE + (1 << 20) if head else 1 << 30)  # the last line is longer than any that is kept
    words = ["import", str(path), "--no-source", "--store", str(palaver.store)]
    ran = subprocess.run([sys.executable, "-c", MEASURED, *words], capture_output=True, text=True, check=False)
    said, _, grown = ran.stderr.rpartition("measured ")

    assert int(grown) // (1 << 10 if sys.platform != "darwin" else 1 << 20) < 400  # KiB on Linux, bytes on macOS
    assert len(said.splitlines()) <= SCREEN
    assert "Traceback" not in said
    assert (ran.returncode, palaver.store.exists()) == ((0, True) if head else (3, False))
    assert " 1 problem" in ran.stdout or not head
    path.unlink()


# --- stores ---------------------------------------------------------------------------------------------------------------------

COMMANDS = """store verify|store hold talk --reason why|store copy to.db|store sweep --yes|store retain --older-than 1d --yes
store receipts|erase talk --yes|branch label 0123456789ab:1 name|branch quarantine 0123456789ab:1|branch diff 012345 6789ab
branch merge 012345|branch rewind talk --undo|branch pin talk|branch fork talk|branch tree talk|calls talk 1 2|compact talk
sessions|show talk|view talk|recall 0123456789ab:1|search x|doctor|export talk --to markdown"""


def test_a_missing_store(palaver: Palaver) -> None:
    """Only import makes one; every other command says how to get one, and makes nothing: not of an empty file either."""
    for words in COMMANDS.replace("\n", "|").split("|"):
        palaver.store.unlink(missing_ok=True)
        is_clear(palaver(*words.split()), 4, "palaver import")
        assert not palaver.store.exists(), words
        palaver.store.touch()
        os.utime(palaver.store, (1.0, 1.0))
        is_clear(palaver(*words.split()), 4, "palaver import")
        assert palaver.store.stat().st_size == 0, words


def test_a_store_from_a_newer_version(stocked: Palaver) -> None:
    """It is refused with both numbers, and its bytes stay as they are."""
    connection = apsw.Connection(str(stocked.store))
    connection.pragma("user_version", 99)
    connection.close()
    before = stocked.store.read_bytes()
    new = stocked.file("new.jsonl", rollout())
    for words in ("sessions", "show talk", "doctor", f"import {new}"):
        is_clear(stocked(*words.split()), 5, "99", "newer")
    assert stocked.store.read_bytes() == before


def test_an_address_that_is_no_stores() -> None:
    """The error says what an address looks like; a database server where nobody listens is store trouble, told with the address."""
    for url in ["ftp://x", "sqlite://host/x", "sqlite:relative", "memory:", ""]:
        ran = run("sessions", "--store", url)
        is_clear(ran, 3, "ends with this command" if url == "memory:" else url.partition(":")[0])
    is_clear(run("sessions", "--store", "postgres://127.0.0.1:1/db"), 5, "127.0.0.1")


def test_a_store_that_may_only_be_read(stocked: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read, and a search says what it does not know; writing is refused. What may not be written is the system's to say."""

    def shut(url: str, *, create: bool = True, read_only: bool = False) -> Store:
        if not read_only:
            raise StoreError(f"This user cannot write {url}.", reason="read_only")
        return open_store(url, create=create, read_only=True)

    file = stocked.folder / "talk.jsonl"
    with closing(open_store(str(stocked.store))) as store:  # what a program writes is indexed by the next search
        Session.create(store, "new").root.append([UserMessage(content="Any answer?"), UserMessage(content="None?")])
    monkeypatch.setattr("palaver.cli.options.open_for_user", shut)
    assert "Please look" in stocked("sessions").out
    assert "Another answer" in stocked("show", "talk").out
    searched = stocked("search", "answer")
    assert (searched.code, "are not searched" in searched.err) == (0, True)
    for words in (f"import {file}", "doctor talk --repair", "erase talk --yes", "branch fork talk"):
        is_clear(stocked(*words.split()), 5, "cannot write")
    is_clear(stocked("open", "--write", "--no-browser"), 5, "cannot write", "Leave --write out")


# --- where it is kept -------------------------------------------------------------------------------------------------------------


def test_the_default_store_is_one_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the user's data folder, made with 0700 and 0600; PALAVER_STORE names another, and --store wins over both."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = tmp_path / "talk.jsonl"
    file.write_bytes(talk())
    assert run("import", file).code == 0
    if sys.platform == "linux":
        store = tmp_path / "data" / "palaver" / "palaver.db"
        assert store.stat().st_mode & 0o777 == 0o600
        assert store.parent.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("PALAVER_STORE", str(tmp_path / "named.db"))
    assert run("sessions").code == 4
    assert run("import", file).code == 0
    assert (tmp_path / "named.db").exists()
    assert run("sessions", "--store", tmp_path / "third.db").code == 4
    assert len(run("sessions", "--json").rows()) == 1


def test_a_misspelt_command_is_answered_in_one_sentence(palaver: Palaver) -> None:
    """The question of a close name keeps its mark, and nothing is put after it."""
    is_clear(palaver("veiw"), 2, "Did you mean 'view'? See")
