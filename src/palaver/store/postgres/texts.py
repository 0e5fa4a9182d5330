r"""Texts from outside, as PostgreSQL can hold them: it has every character of Unicode but U+0000.

U+0000 is stored as U+001A and `0`, and U+001A, which ordinary texts do not hold, as U+001A and `1`. Every other text is stored as it is.
"""

from __future__ import annotations

_ESCAPE = "\x1a"


def to_stored(text: str) -> str:
    """Return a text as it is stored."""
    if "\x00" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\x00", f"{_ESCAPE}0")
    return text


def from_stored(text: str) -> str:
    """Return a stored text as it was."""
    if _ESCAPE in text:
        return text.replace(f"{_ESCAPE}0", "\x00").replace(f"{_ESCAPE}1", _ESCAPE)
    return text
