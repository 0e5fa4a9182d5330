r"""Texts from outside, as PostgreSQL can hold them: it has every character of Unicode but U+0000.

So U+0000 is written as U+001A and `0`, and U+001A, which no ordinary text holds, as U+001A and `1`. Every other text lies there as it is.
"""

from __future__ import annotations

_ESCAPE = "\x1a"


def held(text: str) -> str:
    """Give a text as it is stored."""
    if "\x00" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\x00", f"{_ESCAPE}0")
    return text


def given(text: str) -> str:
    """Give a stored text as it was."""
    if _ESCAPE in text:
        return text.replace(f"{_ESCAPE}0", "\x00").replace(f"{_ESCAPE}1", _ESCAPE)
    return text


def held_or_none(text: str | None) -> str | None:
    """Give a text as it is stored, and None as it is."""
    return None if text is None else held(text)


def given_or_none(text: str | None) -> str | None:
    """Give a stored text as it was, and None as it is."""
    return None if text is None else given(text)
