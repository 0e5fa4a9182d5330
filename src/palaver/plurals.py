"""Counts in words: 1 message, 2 entries."""

from __future__ import annotations

__all__ = ["counted"]

_VOWELS = frozenset("aeiou")


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun.

    The noun can include a verb: `counted(count, "message stays", "messages stay")`.

    Args:
        count: The count; printed with thousands separators.
        one: The noun after 1, such as `message`.
        many: The noun after any other count. Default: `one` with `s`, or with `ies` for a `y` after a consonant.
    """
    return f"{count:,} {one if count == 1 else many or _several(one)}"


def _several(one: str) -> str:
    """Return the plural of a noun that has a regular one."""
    if one.endswith("y") and one[-2:-1] not in _VOWELS:
        return f"{one[:-1]}ies"
    return f"{one}s"
