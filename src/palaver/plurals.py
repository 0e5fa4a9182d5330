"""Words for counts and types: 1 message, 2 entries, an int."""

from __future__ import annotations

__all__ = ["a_type", "counted", "with_article"]

_VOWELS = frozenset("aeiou")
_WITH_AN = frozenset("AEIOaeio")
"""The letters after which a name has `an`; most types with a `U`, such as UserMessage, begin with another sound."""


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun.

    The noun can include a verb: `counted(count, "message stays", "messages stay")`.

    Args:
        count: The count; printed with thousands separators.
        one: The noun after 1, such as `message`.
        many: The noun after any other count. Default: `one` with `s`, or with `ies` for a `y` after a consonant.
    """
    return f"{count:,} {one if count == 1 else many or _several(one)}"


def with_article(one: str) -> str:
    """Return a noun with its article, such as `an int`."""
    return f"{'an' if one[0] in _WITH_AN else 'a'} {one}"


def a_type(value: object) -> str:
    """Return the type of a value with its article."""
    return with_article(type(value).__name__)


def _several(one: str) -> str:
    """Return the plural of a noun that has a regular one."""
    if one.endswith("y") and one[-2:-1] not in _VOWELS:
        return f"{one[:-1]}ies"
    return f"{one}s"
