"""The command line: one module a command."""

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code, also where Ctrl-C comes before the modules are loaded."""
    try:
        from palaver.cli import app  # noqa: PLC0415 - as the docstring says
    except KeyboardInterrupt:
        sys.stderr.write("palaver: interrupted.\n")
        return 130
    return app.main(arguments)
