"""Ctrl-C that comes while compiled code runs Python of ours."""

from __future__ import annotations

import subprocess
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


PRESSED = """
import sys

class Pressed:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
from palaver.cli import main
sys.exit(main())
"""


def test_an_interrupt_while_the_modules_load_ends_quietly() -> None:
    """Ctrl-C in the first tenths of a second: one line, and the exit code of every interrupt."""
    ran = subprocess.run([sys.executable, "-c", PRESSED], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (130, "palaver: interrupted.\n")
