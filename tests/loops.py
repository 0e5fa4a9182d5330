"""What a thread does itself: the plain functions of palaver that are called in it, while coroutines only wait."""

import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import palaver

__all__ = ["called_here"]

HOME = str(Path(palaver.__file__).parent)


@contextmanager
def called_here(*rooms: str) -> Iterator[Counter[str]]:
    """Count the plain functions of some rooms (`context/`, `view/`) that this thread calls, by file and name; nothing is replaced."""
    called: Counter[str] = Counter()
    places = tuple(f"{HOME}/{room}" for room in rooms)

    def note(frame: FrameType, event: str, _what: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(places) and not code.co_flags & inspect.CO_COROUTINE:
            called[f"{code.co_filename.removeprefix(HOME)[1:]}:{code.co_name}"] += 1

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)
