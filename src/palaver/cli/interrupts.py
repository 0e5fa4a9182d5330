"""Interrupts: Ctrl-C in compiled code, where pydantic and finalisers replace or swallow it, and the end of a terminal or service."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic_core import SchemaError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_AGAIN = 0.01
"""Seconds after which a swallowed interrupt is raised again; the compiled code has usually returned by then."""


def is_interrupt(error: BaseException) -> bool:
    """Return whether Ctrl-C caused an error: as its cause, as what it was raised in place of, or in the text of pydantic's own error.

    pydantic builds validators when they are first needed, and puts what is raised meanwhile into the text of a SchemaError, without a chain. The
    text of other errors may quote anything, a traceback with a KeyboardInterrupt included.
    """
    seen: BaseException | None = error
    known: set[int] = set()  # `raise error from error` is its own cause
    while seen is not None and id(seen) not in known:
        if isinstance(seen, KeyboardInterrupt):
            return True
        if isinstance(seen, SchemaError) and KeyboardInterrupt.__name__ in str(seen):
            return True
        known.add(id(seen))
        seen = seen.__cause__ or seen.__context__
    return False


@contextmanager
def heeded() -> Iterator[None]:
    """Raise an interrupt again that was ignored where it was raised, such as in a finaliser; no traceback is printed."""
    before = sys.unraisablehook

    def hook(ignored: UnraisableHookArgs) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            again = threading.Timer(_AGAIN, _thread.interrupt_main)  # from here it would be ignored once more
            again.daemon = True
            again.start()
        else:
            before(ignored)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def interruptible() -> Iterator[None]:
    """Have the end of a terminal or of a service interrupt the block as Ctrl-C does; after the block, end as the signal asks."""
    caught: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        caught.append(number)
        signal.raise_signal(signal.SIGINT)  # a server has a way of its own to end at Ctrl-C

    numbers = [getattr(signal, name) for name in ("SIGHUP", "SIGTERM") if hasattr(signal, name)]
    before = {
        number: signal.signal(number, interrupt) for number in numbers if signal.getsignal(number) == signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in caught:
            signal.raise_signal(number)
