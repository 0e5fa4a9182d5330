"""Serving: how `palaver open` begins, and what is left when it ends in any way."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from itertools import cycle
from pathlib import Path

import pytest

from palaver.explorer.seen import LastSeen
from palaver.explorer.serving import MOST
from tests.cli.commands import Palaver, run, talk
from tests.explorer.running import explorer, stocked


def test_a_session_is_opened_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address leads to its screen; a mark is kept in the data folder, and the store is not written."""
    dialog, store = stocked(tmp_path / "store.db"), tmp_path / "store.db"
    before = store.read_bytes()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with explorer(f"{dialog[:8]}:2", "--store", store) as (_, page):
        (row,) = page.get("/api/sessions")["rows"]
        assert page.to == f"/s/{row['session']}%3Fd%3D{dialog}%26e%3D2"
        assert page.get("/api/about")["option"] == f" --store {store}"
        assert page.ask("POST", "/api/seen", {"session": row["session"], "messages": 3}).status == 204
    assert store.read_bytes() == before
    assert LastSeen(tmp_path / "palaver" / "seen.json").get(row["session"]) == 3


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_of_a_transcript(
    end: signal.Signals, palaver: Palaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its store is deleted and its work ends, however the server ends; after a kill the next one deletes it, and no store in use."""
    if signal.getsignal(end) is signal.SIG_IGN:
        pytest.skip("the signal is ignored here, as under nohup, and so it is by what is started here")
    folder, transcript = palaver.folder / "tmp", palaver.file("talk.jsonl", talk())
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    with explorer(transcript) as (process, page):
        (place,) = folder.iterdir()
        with closing(sqlite3.connect(place / "palaver.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # the work waits, and its stream stays open
            assert any(line.get("what") == "indexing" for line in page.lines("/api/index", "POST"))
            process.send_signal(end)
            _, said = process.communicate(timeout=60)  # ends when no process has the pipe
        assert (process.returncode, said) == (0 if end == signal.SIGINT else -end, "")
        assert list(folder.iterdir()) == ([place] if end == signal.SIGKILL else [])
    with explorer(transcript) as (_, page):
        (first,) = folder.iterdir()
        with explorer(transcript):
            assert first != place
            assert first in folder.iterdir()


def test_half_open_connections_end_and_are_few(tmp_path: Path) -> None:
    """Whoever sends no whole request is cut off after a while, whatever was begun, and one connection more than the limit at once; the page is answered before and after."""
    stocked(tmp_path / "store.db")
    with explorer("--store", tmp_path / "store.db") as (_, page), ExitStack() as stack:
        host, _, port = page.host.partition(":")
        page.open.close()  # its own connections count, too
        login = f"POST /api/login HTTP/1.1\r\nHost: {page.host}\r\nOrigin: http://{page.host}\r\nContent-Length: 5\r\n\r\n{{"
        begun = (b"", b"GET /api/about HTTP/1.1\r\n", login.encode())

        def connect(words: bytes) -> socket.socket:
            made = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            made.sendall(words)
            return made

        held = [connect(words) for words, _ in zip(cycle(begun), range(MOST), strict=False)]
        assert _ended(connect(b"")), "one too many"
        assert all(map(_ended, held))
        assert page.get("/api/about")["policies"]


def _ended(connection: socket.socket) -> bool:
    """Return whether the server ends a connection, which answers nothing."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path) -> None:
    """No server is needed to say so, and nothing is loaded."""
    program = "import sys; sys.modules['uvicorn'] = None; from palaver.cli import main; sys.exit(main(['open']))"
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == (
        "palaver: `palaver open` needs the package uvicorn, which is not installed. Install it with: pip install 'palaver-llm[web]'.\n"
    )


def test_a_store_that_cannot_be_read_is_told_as_everywhere(palaver: Palaver) -> None:
    """Missing, no store, an unknown session: the same exit codes and words as of other commands."""
    stocked(palaver.store)
    for what, place in (
        ("talk", "none.db"),
        ("talk", palaver.file("note.txt", "hello " * 20).name),
        ("tlak", "store.db"),
    ):
        words = (what, "--store", palaver.folder / place)
        opened, shown = run("open", *words), run("calls", *words)
        assert (opened.code, opened.err) == (shown.code, shown.err), place
        assert opened.code in {3, 4}
