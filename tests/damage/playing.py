"""Processes that play a history into a store and are killed: behind a step, behind a write of their file, or by somebody else.

What a process was told is durable it writes into a file, in so many bytes: what the kernel has taken survives SIGKILL.
"""

import os
import signal
from contextlib import ExitStack
from pathlib import Path

from palaver.ids import DialogId
from palaver.log import Draft
from palaver.store import open_store
from tests.damage.history import history
from tests.damage.sqlite_disk import Disk, sqlite_on
from tests.forking import serve

_HISTORY = history()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def play(url: str, told: str, start: int = 0, steps: int = 0, acts: int = 0) -> None:
    """Play the steps of the history.

    Args:
        url: The address of the store.
        told: The file of acknowledgements.
        start: How many steps are made already.
        steps: It dies after so many steps more, before the last is acknowledged; 0 to continue to the end.
        acts: It dies after so many writes and flushes of its SQLite file; 0 for never.
    """
    disk = Disk()
    disk.watch = lambda: _die() if acts and len(disk.notes) >= acts else None
    with ExitStack() as stack, Path(told).open("ab", buffering=0) as file:
        if acts:
            stack.enter_context(sqlite_on(disk))
        store = open_store(url)
        for number, step in enumerate(_HISTORY.steps[start:], start + 1):
            step(store)
            if steps and number == start + steps:
                _die()
            file.write(b"!")
        store.close()


def write_for_ever(url: str, told: str, dialog: str) -> None:
    """Append numbered entries until somebody kills this process."""
    store, place = open_store(url), DialogId(dialog)
    Path(f"{told}.pid").write_text(str(os.getpid()))
    with Path(told).open("ab", buffering=0) as file:
        while True:
            last = store.last(place)
            body = b"%d " % (last.seq + 1) * 300
            store.append(place, [Draft("message", "user", 1, (), (), "", 1.0, body)], last.turn_head)
            file.write(b"!")


if __name__ == "__main__":
    serve(play, write_for_ever)
