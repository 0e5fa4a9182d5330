"""What tools print by themselves, into the very streams that the chat is shown on: heard, made visible, and shown in its place."""

from __future__ import annotations

import codecs
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from palaver.cli.chat.screen import Screen

__all__ = ["overheard"]

_SHOWN = 20_000
"""Characters of what tools print in one turn that are shown."""

_PATIENCE = 0.5
"""Seconds to wait for the last of it: a program that a tool left running may hold the stream open for ever."""

_PIECE = 65_536


@contextmanager
def overheard(screen: Screen) -> Iterator[None]:
    """Show what is printed within the block, by this process and those it starts, on the screen instead of wherever it would go."""
    try:
        numbers = [stream.fileno() for stream in (sys.stdout, sys.stderr)]
    except OSError:  # streams in memory
        yield
        return
    kept = [os.dup(number) for number in numbers]
    reading, writing = os.pipe()
    listener = threading.Thread(target=_listen, args=(reading, screen), name="palaver-overheard", daemon=True)
    listener.start()
    _flush()
    for number in numbers:
        os.dup2(writing, number)
    os.close(writing)
    try:
        yield
    finally:
        _flush()
        for number, own in zip(numbers, kept, strict=True):
            os.dup2(own, number)
            os.close(own)
        listener.join(_PATIENCE)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed by a tool, or nobody reads any more: nothing of ours is in it
            stream.flush()


def _listen(number: int, screen: Screen) -> None:
    """Show what comes out of a pipe, up to a limit, until its last writer is gone."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    left = _SHOWN
    with open(number, "rb", buffering=0) as stream:
        while piece := stream.read(_PIECE):
            text = decoder.decode(piece)
            with suppress(OSError):  # the terminal is gone: whoever asks the model finds that out
                if left > 0:
                    screen.printed(text[:left])
                left -= len(text)
                if left <= 0 < left + len(text):
                    screen.note("… (what tools print in this turn is not shown any further)")
