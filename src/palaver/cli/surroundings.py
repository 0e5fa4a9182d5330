"""What the command line reads of its surroundings: the environment, the user's data folder, the terminal. Nothing else in palaver does."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

_NO_SCREEN = 10_000  # columns: a program or a pager reads, and cuts for itself

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
    if named is not None:
        return named
    return os.environ.get(STORE_VARIABLE) or str(data_folder() / "palaver.db")


# Control characters but newline and tab, as their pictures (Unicode, block Control Pictures): what was recorded may hold escape sequences, and
# a terminal would obey them. C1 controls have no pictures.
_PICTURES = {code: 0x2400 + code for code in range(32) if code not in {9, 10}} | {127: 0x2421}
_CONTROLS = _PICTURES | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def visible(text: str) -> str:
    """Give a text in which no terminal finds a command: control characters stand as their pictures."""
    return text.translate(_CONTROLS)


class _Screen(Console):
    """A console for reports: what was recorded is printed as text, never as markup, and never obeyed."""

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - as the console has it
        """Print objects, texts among them with their control characters made visible."""
        super().print(*(visible(one) if isinstance(one, str) else one for one in objects), **options)


def on_a_screen() -> bool:
    """Tell whether lines have a width: that of the terminal, or of COLUMNS. A file or a pipe has none."""
    return sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))


def output() -> Console:
    """Give the terminal, or the file or pipe in its place, for reports: a line may be wrapped or cut at the terminal's width, nowhere else."""
    width = None if on_a_screen() else _NO_SCREEN
    return _Screen(markup=False, highlight=False, emoji=False, soft_wrap=not sys.stdout.isatty(), width=width)


def errors() -> Console:
    """Give the terminal for what is no result: errors, progress."""
    return _Screen(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=not sys.stderr.isatty())


def write(text: str) -> None:
    """Write what was recorded to standard output: exactly as it is, except that a terminal gets control characters as pictures."""
    if sys.stdout.isatty():
        sys.stdout.write(visible(text).encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())


def write_line(line: bytes, *, aside: bool = False) -> None:
    """Write a line as it is, for a program that waits for it: to standard output, or, `aside`, to standard error."""
    stream = (sys.stderr if aside else sys.stdout).buffer
    stream.write(line + b"\n")
    stream.flush()
