"""Who answers in a dialog: at most one turn at a time, over all agents and processes.

The log says which process runs a turn, so a claim costs no write of its own, and a killed process leaves none behind. Sequence numbers
decide between processes that begin at the same moment, and fence off one that was taken for dead.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from palaver.agent.turn import TurnState
from palaver.errors import Busy, InvalidInput
from palaver.ids import DialogId, now
from palaver.log import Reader
from palaver.store.protocol import Store

_SILENCE = 600.0
"""Seconds after its last step for which a turn may run: as long as the SDKs of OpenAI and Anthropic wait for an answer."""

_HOST_DIGITS = 12


class RunningTurns:
    """The dialogs in which a turn runs in this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._dialogs: set[DialogId] = set()

    def __contains__(self, dialog_id: object) -> bool:
        return dialog_id in self._dialogs

    @contextmanager
    def turn(self, store: Store, dialog_id: DialogId) -> Iterator[None]:
        """Reserve a dialog for a turn.

        Raises:
            Busy: A turn is running in it.
            InvalidInput: This thread is inside a transaction.
        """
        require_no_transaction(store)
        with self.lock:
            if dialog_id in self._dialogs:
                raise Busy(dialog_id)
            self._dialogs.add(dialog_id)
        try:
            yield
        finally:
            with self.lock:
                self._dialogs.discard(dialog_id)


RUNNING = RunningTurns()
"""The dialogs of this process that have a running turn."""


def require_no_transaction(store: Store) -> None:
    """Raise if this thread is inside a transaction of the store. A turn uses several threads, and each step must be durable."""
    if store.in_transaction:
        raise InvalidInput(
            "A turn cannot run inside a transaction of its store.",
            hint="Use the transaction only around your own writes.",
        )


# --- other processes ----------------------------------------------------------------------------------------------------


def require_unclaimed(reader: Reader, dialog_id: DialogId, turn: TurnState) -> None:
    """Raise if another process is answering in a dialog that this process has reserved.

    An open turn belongs to the process that began it. It is free if that process is known to be dead, or if its last step is older
    than ten minutes: the process of another machine cannot be asked.

    Raises:
        Busy: Another process is answering.
    """
    if not turn.open or _ended(turn.process):
        return
    head = reader.last(dialog_id).turn_head
    if now() - reader.header(dialog_id, head).at < _SILENCE:
        raise Busy(dialog_id)


def this_process() -> str:
    """Return a name for this process: its machine as a digest, its number, and when it began if the system says so."""
    return f"{_host()}:{os.getpid()}:{_began(os.getpid())}"


def _host() -> str:
    return sha256(socket.gethostname().encode()).hexdigest()[:_HOST_DIGITS]


def _ended(process: str) -> bool:
    """Return whether a process is known to have ended. This process has ended every turn that it has not reserved."""
    host, _, rest = process.partition(":")
    number, _, began = rest.partition(":")
    if host != _host() or not number.isdecimal():
        return False
    return int(number) == os.getpid() or not _runs(int(number), began)


def _runs(number: int, began: str) -> bool:
    """Return whether a process of this machine runs. Its number may have passed to a later process."""
    if began:
        return _began(number) == began
    if os.name == "nt":  # there, signal 0 is not a question
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _began(number: int) -> str:
    """Return when a running process began, in ticks since the machine's start; empty where the system does not say."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    state, began = fields[0], fields[19]  # proc(5): after the name come state (3) and, as the 22nd field, starttime
    return "" if state in "ZX" else began
