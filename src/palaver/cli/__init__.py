"""The command line: one module a command."""

import gc
import sys

__all__ = ["main"]

_COLLECTED = 500_000
"""New objects before the garbage collector runs: at Python's 700 it takes 0.05 to 0.1 s of a command, and finds little."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code, also where Ctrl-C comes before the modules are loaded."""
    gc.set_threshold(_COLLECTED)
    try:
        from palaver.cli import app  # noqa: PLC0415 - as the docstring says
    except KeyboardInterrupt:
        sys.stderr.write("palaver: interrupted.\n")
        return 130
    return app.main(arguments)
