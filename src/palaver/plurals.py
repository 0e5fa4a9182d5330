"""Counts in words: 1 message, 2 entries."""

from __future__ import annotations

__all__ = ["counted"]

_VOWELS = frozenset("aeiou")


def counted(count: int, one: str, many: str = "") -> str:
    """Say how many of something there are.

    A verb can be said with it: `counted(count, "message stays", "messages stay")`.

    Args:
        count: How many; printed with thousands separators.
        one: What stands behind 1, such as `message`, and behind no other number.
        many: What stands behind all others; unless given, `one` with `s`, or with `ies` for a `y` behind a consonant.
    """
    return f"{count:,} {one if count == 1 else many or _several(one)}"


def _several(one: str) -> str:
    """Return the plural of a noun that has a regular one."""
    if one.endswith("y") and one[-2:-1] not in _VOWELS:
        return f"{one[:-1]}ies"
    return f"{one}s"
