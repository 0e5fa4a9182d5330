"""The command line: one module a command."""

import contextlib
import gc
import os
import sys
from typing import NoReturn

__all__ = ["main", "run"]

_COLLECTED = 500_000
"""New objects before the garbage collector runs: at Python's 700 it is 0.05 to 0.1 s of a command, and finds little."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code, also where Ctrl-C comes before the modules are loaded."""
    gc.set_threshold(_COLLECTED)
    try:
        from palaver.cli import app  # noqa: PLC0415 - as the docstring says
    except KeyboardInterrupt:
        sys.stderr.write("palaver: interrupted.\n")
        return 130
    return app.main(arguments)


def run() -> NoReturn:
    """Run the command line as a whole process, and end it.

    What a command loaded is left to the system: Python needs 0.05 to 0.1 s to free it object by object. mypy ends so, too
    (`hard_exit` in mypy/util.py).
    """
    code = main()
    with contextlib.suppress(OSError, ValueError):  # closed already; what could not be written was reported
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
