"""Ctrl-C that comes while compiled code runs Python of ours."""

from __future__ import annotations

import sys
import time

import pytest
from pydantic_core import SchemaError

from palaver.cli.interrupts import heeded, is_interrupt
from palaver.errors import InvalidInput


class Pressed:
    """Something that comes to its end in the moment when somebody presses Ctrl-C."""

    def __del__(self) -> None:
        """What is raised here Python can only ignore."""
        raise KeyboardInterrupt


def test_an_interrupt_behind_an_error_is_found() -> None:
    """As its cause, as what it was raised in place of, or in the words of pydantic's own error, however deep; another error is none."""
    caused, replaced, built = InvalidInput("no"), ValueError("no"), InvalidInput("no")
    caused.__cause__ = KeyboardInterrupt()
    replaced.__context__ = caused
    worded = SchemaError("Error building `literal` serializer:\n  KeyboardInterrupt: ")
    built.__cause__ = worded
    assert is_interrupt(caused)
    assert is_interrupt(replaced)
    assert is_interrupt(worded)
    assert is_interrupt(built)
    assert not is_interrupt(InvalidInput("The file cannot be read."))
    assert not is_interrupt(SchemaError("Error building `literal` serializer:\n  TypeError: "))


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
