"""Where the user's own data is, and what is kept to save time."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def data_folder() -> Path:
    """Return the folder for the user's data, by the custom of the system.

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


def cache_folder() -> Path:
    """Return the folder for what can be computed again, by the custom of the system (the same sources)."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "palaver"
    if sys.platform == "win32":
        return data_folder() / "Cache"
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named.startswith("/") else home / ".cache") / "palaver"


def short_folder(path: str) -> str:
    """Return the last two names of a folder's path, as a working tree of a project is told from another's."""
    return "/".join([name for name in path.replace("\\", "/").split("/") if name][-2:])
