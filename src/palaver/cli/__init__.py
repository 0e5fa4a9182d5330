"""The command line: one file a command."""

from palaver.cli.app import main

__all__ = ["main"]
