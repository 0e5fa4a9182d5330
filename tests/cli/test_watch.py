"""Watching: what grows is imported, what is deleted stays, and whatever goes wrong with folders and disks is said and survived."""

from __future__ import annotations

import json
import plistlib
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from palaver import Session, SqliteStore, Store
from palaver.cli.watch import Watch, pause
from palaver.errors import StoreError
from palaver.transcripts import Importer
from tests.cli.commands import PROGRAM, Palaver, rollout, run, talk

LINES = talk().splitlines(keepends=True)


class Looked:
    """A watch over a folder, its store, and what it reported; `seconds` is its clock and `free` whether its disk has room."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self.store = folder, store
        self.rows: list[dict[str, Any]] = []
        self.seconds, self.free = 0.0, True
        self.begin()

    def begin(self) -> None:
        """Begin anew, as after a restart."""
        importer = Importer(self.store)
        room, clock = (lambda: self.free), (lambda: self.seconds)
        self.watch = Watch(importer, lambda: [self.folder], room=room, report=self.rows.append, clock=clock)

    def look(self) -> list[str]:
        """Look once; return what became of what changed."""
        before = len(self.rows)
        self.watch.look()
        return [row["outcome"] for row in self.rows[before:]]

    def messages(self) -> list[int]:
        """Return how many messages each session has."""
        return [len(Session.open(self.store, record.session_id).root.messages) for record in self.store.sessions()]


@pytest.fixture
def looked(tmp_path: Path) -> Iterator[Looked]:
    """Return a watch over a folder with nothing in it."""
    (tmp_path / "sessions").mkdir()
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        yield Looked(tmp_path / "sessions", store)


def test_a_growing_file_becomes_entries_once(looked: Looked) -> None:
    """Each look adds what is new; a look without a change, and one after a restart, add nothing."""
    path, seen = looked.folder / "talk.jsonl", []
    for count in range(1, len(LINES) + 1):
        path.write_bytes(b"".join(LINES[:count]))
        seen += looked.look()
        assert looked.look() == []
    looked.begin()
    assert looked.look() == []
    assert (seen[0], set(seen[1:])) == ("new", {"grown"})
    with closing(SqliteStore(looked.folder.parent / "once.db")) as store:
        (once,) = Importer(store).import_path(path)
        whole = [message.text_content() for message in Session.open(store, once.session_id).root.messages]
    grown = Session.open(looked.store, looked.rows[0]["session"]).root.messages
    assert [message.text_content() for message in grown] == whole


def test_what_tools_delete_stays(looked: Looked, capsys: pytest.CaptureFixture[str]) -> None:
    """A deleted file, and a folder that vanishes, leave the sessions; the folder is said once, and watched again when it is back."""
    (looked.folder / "talk.jsonl").write_bytes(talk())
    (looked.folder / "c.jsonl").write_bytes(rollout())
    assert looked.look() == ["new", "new"]
    before = looked.messages()
    (looked.folder / "talk.jsonl").unlink()
    assert (looked.look(), looked.messages()) == ([], before)
    (looked.folder / "c.jsonl").unlink()
    looked.folder.rmdir()
    assert (looked.look(), looked.look(), looked.messages()) == ([], [], before)
    assert capsys.readouterr().err.count("not there; waiting for it") == 1
    looked.folder.mkdir()
    (looked.folder / "new.json").write_text('[{"role": "user", "content": "Hello."}]', encoding="utf-8")
    assert looked.look() == ["new"]
    assert "is there again" in capsys.readouterr().err
    assert len(looked.messages()) == len(before) + 1


def test_a_full_disk_is_said_once_and_waited_for(looked: Looked, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is imported below the limit; with room everything is, as if it had just been written."""
    looked.free = False
    (looked.folder / "talk.jsonl").write_bytes(talk())
    assert looked.look() == looked.look() == []
    assert "almost full" in looked.watch.status()
    assert capsys.readouterr().err.count("almost full") == 1
    looked.free = True
    assert looked.look() == ["new"]
    assert "continues" in capsys.readouterr().err
    assert "waiting" not in looked.watch.status()


class _FullOnce:
    """A store whose disk is full for the first session."""

    def __init__(self, inner: Store, reason: str) -> None:
        self.inner, self.left, self.reason = inner, 1, reason

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self.inner, name)

    def create_session(self, *args: Any) -> None:  # noqa: ANN401 - the store's
        if self.left:
            self.left = 0
            raise StoreError("There is no room left.", reason=self.reason)
        self.inner.create_session(*args)


def test_a_write_that_finds_no_room_is_tried_again(looked: Looked, capsys: pytest.CaptureFixture[str]) -> None:
    """The next look imports what this one could not; an error that does not pass by itself ends the watch."""
    (looked.folder / "talk.jsonl").write_bytes(talk())
    inner = looked.store
    looked.store = _FullOnce(inner, "moved")
    looked.begin()
    with pytest.raises(StoreError):
        looked.look()
    looked.store = _FullOnce(inner, "full")
    looked.begin()
    assert looked.look() == []
    assert "no room" in capsys.readouterr().err
    assert looked.look() == ["new"]


def test_a_growing_file_is_kept_when_it_is_quiet(looked: Looked) -> None:
    """The file itself is not stored at each change, which would fill the disk, but ten minutes after the last one."""
    path = looked.folder / "talk.jsonl"

    def kept() -> bool:
        (source,) = looked.store.sources(looked.rows[0]["session"])
        return source.raw is not None

    looked.look()
    path.write_bytes(b"".join(LINES[:-2]))
    assert (looked.look(), kept()) == (["new"], False)
    looked.seconds = 400.0
    path.write_bytes(talk())
    assert (looked.look(), kept()) == (["grown"], False)
    looked.seconds = 900.0
    assert (looked.look(), kept()) == ([], False)
    looked.seconds = 1_000.0
    assert (looked.look(), kept()) == ([], True)


def test_what_is_no_transcript_is_said_once(looked: Looked, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read yet is reported at most once however often it changes, and imported when it can."""
    path = looked.folder / "talk.jsonl"
    for data in (b"[3]\n", b"", talk()[:10]):
        path.write_bytes(data)
        looked.look()
    said = capsys.readouterr().err
    assert (said.count(str(path)), said.count("\n"), "formats" in said) == (1, 1, False)
    path.write_bytes(talk())
    assert looked.look() == ["new"]


def test_looks_take_a_tenth_of_a_processor() -> None:
    """A look that took long is followed by nine times as long a pause, and never by less than was asked for."""
    for spent in (0.0, 0.01, 1.0, 60.0):
        assert spent <= 0.1001 * (spent + pause(spent, 2.0))
        assert pause(spent, 2.0) >= 2.0


# --- as a program ---------------------------------------------------------------------------------------------------------------------


@contextmanager
def watching(palaver: Palaver, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command over the folder `sessions`."""
    command = [*PROGRAM, "watch", str(palaver.folder / "sessions"), "--store", str(palaver.store), "--json", *words]
    with subprocess.Popen(
        [*command, "--every", "0.1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run_:
        try:
            yield run_
        finally:
            run_.kill()


def line(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the next line that it prints."""
    assert process.stdout is not None
    row = json.loads(process.stdout.readline())
    assert isinstance(row, dict)
    return row


def test_a_killed_watch_goes_on_where_it_was(palaver: Palaver) -> None:
    """Killed and started again it adds nothing twice; keys are removed where that is asked for; Ctrl-C ends it with 0 and whole."""
    folder = palaver.folder / "sessions"
    folder.mkdir()
    key = b"sk-ant-api03-" + b"Zq9xB7" * 16 + b"-AAAA"
    path, whole = folder / "talk.jsonl", talk().replace(b"Another question", b"Another question about " + key)
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    with watching(palaver, "--redact") as process:
        assert line(process)["outcome"] == "new"
        process.send_signal(signal.SIGKILL)
        process.wait()
    path.write_bytes(whole)
    with watching(palaver, "--redact") as process:
        assert line(process)["outcome"] == "grown"
        (folder / "c.jsonl").write_bytes(rollout())
        assert line(process)["outcome"] == "new"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        assert (process.returncode, out, "Traceback" in err) == (0, "", False)
    assert len(palaver("sessions", "--json").rows()) == 2
    with SqliteStore(palaver.store) as store:
        assert store.search("Another question"), "what came before the newest is indexed"
    assert palaver("import", folder, "--redact").out.startswith("Nothing new in 2 sessions")
    shown = palaver("show", "talk").out
    assert (key.decode() in shown, "[redacted:" in shown) == (False, True)


def test_below_the_free_space_it_imports_nothing(palaver: Palaver) -> None:
    """The limit is compared with the disk of the store."""
    folder = palaver.folder / "sessions"
    folder.mkdir()
    (folder / "talk.jsonl").write_bytes(talk())
    with watching(palaver, "--keep-free", str(10**18)) as process:
        assert process.stderr is not None
        assert any("almost full" in process.stderr.readline() for _ in range(3))
        process.send_signal(signal.SIGTERM)
        process.wait()
        assert process.returncode == -signal.SIGTERM
    assert palaver("sessions", "--json").rows() == []


Reading = Callable[[str], list[str]]


def _of_systemd(text: str) -> list[str]:
    (command,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    return [word.replace("$$", "$").replace("%%", "%") for word in shlex.split(command.removeprefix("ExecStart="))]


def _of_launchd(text: str) -> list[str]:
    words = plistlib.loads(text.encode())["ProgramArguments"]
    assert isinstance(words, list)
    return words


@pytest.mark.parametrize(("kind", "read"), [("systemd", _of_systemd), ("launchd", _of_launchd)])
def test_a_unit_starts_the_same_watch(palaver: Palaver, kind: str, read: Reading) -> None:
    """Whatever is in the names, the service gets the arguments, with absolute paths, and nothing is imported now."""
    odd = palaver.folder / 'a "b" 50% $HOME \\ <c>'
    ran = run("watch", odd, "--store", palaver.store, "--redact", "--subject", "m & m", "--unit", kind)
    assert (ran.code, palaver.store.exists()) == (0, False)
    words = read(ran.out)
    assert words[:5] == [*PROGRAM, "watch", str(odd)]
    assert words[5:10] == ["--store", str(palaver.store), "--subject", "m & m", "--redact"]
    assert "then:" in ran.err
    assert run("watch", "--unit", "cron").code == 2
