"""Where the user's own data is."""

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
