"""Ctrl-C that comes while compiled code runs Python of ours."""

from __future__ import annotations

import sys
import time

import pytest

from palaver.cli.interrupts import heeded


class Pressed:
    """Something that comes to its end in the moment when somebody presses Ctrl-C."""

    def __del__(self) -> None:
        """What is raised here Python can only ignore."""
        raise KeyboardInterrupt


def _wait_for_it() -> None:
    it = Pressed()
    with heeded():
        del it
        for _ in range(500):
            time.sleep(0.01)


def test_a_swallowed_interrupt_comes_again() -> None:
    """An interrupt that was ignored in a finaliser is raised where the command can end by it, and no traceback is shown."""
    before = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt):
        _wait_for_it()
    assert sys.unraisablehook is before
