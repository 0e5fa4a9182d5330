"""Ctrl-C that came while compiled code ran Python of ours, which passes it on in other words, or not at all."""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic_core import SchemaError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_AGAIN = 0.01
"""Seconds after which an interrupt that was swallowed is raised again: when the compiled code has returned, as a rule."""


def is_interrupt(error: BaseException) -> bool:
    """Tell whether Ctrl-C is behind an error: its cause, what it was raised in place of, or named in the words of pydantic.

    pydantic builds its validators and serialisers when they are first needed; what is raised meanwhile it puts into the text of its own error, without a chain.
    The words of another error may quote anything, a traceback with Ctrl-C in it, too.
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
    """Raise an interrupt again that had to be ignored where it was raised, in a finaliser, say, in place of printing its traceback."""
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
