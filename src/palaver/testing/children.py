"""Processes that write into a store until they are killed: many a second, for none of them has to start Python.

One process is started; for every child that is wanted it forks. A child plays the steps of a tape, or writes entries for ever, says of each
when it was acknowledged, and is killed (SIGKILL): behind a number of steps before it could say so, behind a number of writes and flushes of its
file, or by whoever began it. This needs `fork`, so there is none of it on Windows.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from palaver.errors import StoreError
from palaver.ids import DialogId
from palaver.log import Draft
from palaver.store import Store, open_store
from palaver.testing.kills import kill_this_process
from palaver.testing.sqlite_disk import Disk, sqlite_on
from palaver.testing.tape import Tape, play

__all__ = ["Children", "Death", "Life", "children"]


_RAISED = 3
"""The exit code of a child whose store raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What a child does, and when it dies.

    Attributes:
        url: The address of the store.
        start: How many steps of the tape are made already.
        steps: It dies behind so many steps more, before the last of them is acknowledged; 0 to go on to the end.
        acts: It dies behind so many writes and flushes of its SQLite file; 0 for never.
        dialog: The dialog into which it writes numbered entries for ever, in place of the tape.
    """

    url: str
    start: int = 0
    steps: int = 0
    acts: int = 0
    dialog: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """What became of a child.

    Attributes:
        acknowledged: The last number that it was told is durable: of a step, counted from 1, or of an entry; as it began when there is none.
        killed: Whether it was killed; otherwise it came to the end, or its store raised.
        raised: Whether its store raised a `StoreError`, as one does whose server died.
    """

    acknowledged: int
    killed: bool
    raised: bool


class Children:
    """The parent's side of a process that forks; one child lives at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._child = self._last = 0
        self._code: int | None = None

    def live(self, life: Life) -> Death:
        """Let a child live and die, and say what it was told before."""
        self.begin(life)
        return self.end()

    def begin(self, life: Life) -> None:
        """Let a child begin; the one before has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(life)) + "\n")
        self._process.stdin.flush()
        self._last, self._child, self._code = life.start, self._said()[1], None

    def _said(self) -> tuple[str, int]:
        assert self._process.stdout is not None
        word, _, number = self._process.stdout.readline().strip().partition(" ")
        return word, int(number)

    def told(self, count: int) -> int:
        """Wait until the child that lives was told so often that something is durable, or has died, and give the last number."""
        for _ in range(count):
            if self._code is not None or not self._hear():
                break
        return self._last

    def _hear(self) -> bool:
        """Hear one word of the child; tell whether it lives."""
        word, number = self._said()
        if word == "died":
            self._code = number
            return False
        self._last = number
        return True

    def kill(self) -> None:
        """Kill the child that was begun: its number is nobody else's before the next one begins, even if it has ended."""
        os.kill(self._child, signal.SIGKILL)

    def end(self) -> Death:
        """Wait for the death of the child that was begun, and say what it was told in the end.

        Raises:
            AssertionError: It failed otherwise than by being killed, or by its store.
        """
        while self._code is None:
            self._hear()
        assert self._code in {0, _RAISED, -signal.SIGKILL}, "the child failed; its own report is above"
        return Death(acknowledged=self._last, killed=self._code < 0, raised=self._code == _RAISED)


@contextmanager
def children(tape: Tape, folder: Path) -> Iterator[Children]:
    """Start the process that forks, and end it with all of its children.

    Args:
        tape: What its children play.
        folder: Where the tape is put down.
    """
    written = folder / f"tape-{len(list(folder.glob('tape-*')))}"
    written.write_bytes(pickle.dumps(tape))
    command = [sys.executable, "-m", "palaver.testing.children", str(written)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:  # noqa: S603 - our own module
        try:
            yield Children(process)
        finally:
            process.kill()


# --- the process that forks -------------------------------------------------------------------------------------------------------


def _tell(word: str, number: int) -> None:
    os.write(1, b"%s %d\n" % (word.encode(), number))  # at once, and whole: a pipe takes so few bytes in one piece


def _play(life: Life, tape: Tape, store: Store) -> None:
    for number, step in enumerate(tape[life.start :], life.start + 1):
        play(step, store)
        if life.steps and number == life.start + life.steps:
            kill_this_process()
        _tell("made", number)


def _write_for_ever(life: Life, store: Store) -> None:
    dialog = DialogId(life.dialog)
    while True:
        last = store.last(dialog)
        number = last.seq + 1
        body = b"%d " % number * 300
        (header,) = store.append(dialog, [Draft("message", "user", 1, (), (), "", 1.0, body)], last.turn_head)
        _tell("made", header.seq)


def _live(life: Life, tape: Tape) -> None:
    disk = Disk()

    def watch() -> None:
        if life.acts and len(disk.notes) >= life.acts:
            kill_this_process()

    disk.watch = watch
    with ExitStack() as stack:
        if life.acts:
            stack.enter_context(sqlite_on(disk))
        store = open_store(life.url)
        if life.dialog:
            _write_for_ever(life, store)
        _play(life, tape, store)
        store.close()


_dead: list[int] = []
"""The child that has died and was not taken away yet."""


def _bear(life: Life, tape: Tape) -> int:
    """Fork a child, which begins when its birth was told."""
    born = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(born[0], 1)
        code = 1
        try:
            _live(life, tape)
            code = 0
        except StoreError:
            code = _RAISED
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happened
            traceback.print_exc()
        finally:
            os._exit(code)
    _tell("born", child)
    os.write(born[1], b"!")
    os.close(born[0])
    os.close(born[1])
    return child


def main() -> None:
    """Bear a child for every line of the input, and tell of its birth and its death.

    It is taken away only when the next line comes: until then nobody else can get its number.
    """
    tape: Tape = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301 - our own file
    for line in sys.stdin:  # which stands still until the parent wants another one
        while _dead:
            os.waitpid(_dead.pop(), 0)
        child = _bear(Life(**json.loads(line)), tape)
        died = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert died is not None
        _tell("died", died.si_status if died.si_code == os.CLD_EXITED else -died.si_status)
        _dead.append(child)


if __name__ == "__main__":
    main()
