"""The command line: one module a command."""

from palaver.cli.app import main

__all__ = ["main"]
