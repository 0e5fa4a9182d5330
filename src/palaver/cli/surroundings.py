"""What the command line reads of its surroundings: the environment, the user's data folder, the terminal. Nothing else in palaver does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.console import Console

STORE_VARIABLE = "PALAVER_STORE"
"""The environment variable that names the store."""


def data_folder() -> Path:
    """Give the folder for the user's data, by the custom of the system.

    Source: XDG Base Directory Specification 0.8; Apple, File System Programming Guide; Microsoft, Known Folders (LocalAppData).
    """
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "palaver"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "palaver"
    named = os.environ.get("XDG_DATA_HOME", "")
    base = Path(named) if named.startswith("/") else home / ".local" / "share"  # a relative value is to be ignored
    return base / "palaver"


def store_url(named: str | None) -> str:
    """Give the store to use: the one named, else that of the environment, else the one file in the user's data folder."""
    return named or os.environ.get(STORE_VARIABLE) or str(data_folder() / "palaver.db")


def output() -> Console:
    """Give the terminal, or the file or pipe in its place. What was recorded is printed as text, never as markup."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=not sys.stdout.isatty())


def errors() -> Console:
    """Give the terminal for what is no result: errors, progress."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)
