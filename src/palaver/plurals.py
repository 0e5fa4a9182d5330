"""Words for counts and types: 1 message, 2 entries, an int."""

from __future__ import annotations

_VOWELS = frozenset("aeiou")
_WITH_AN = frozenset("AEIOaeio")
"""The letters after which a name has `an`; most types with a `U`, such as UserMessage, begin with another sound."""


def counted(count: int, noun: str, many: str = "") -> str:
    """Return a count with its noun.

    The noun can include a verb: `counted(count, "message stays", "messages stay")`.

    Args:
        count: The count; printed with thousands separators.
        noun: The noun after 1, such as `message`.
        many: The noun after any other count. Default: `noun` with `s`, or with `ies` for a `y` after a consonant.
    """
    return f"{count:,} {noun if count == 1 else many or _several(noun)}"


def with_article(noun: str) -> str:
    """Return a noun with its article, such as `an int`."""
    return f"{'an' if noun[0] in _WITH_AN else 'a'} {noun}"


def a_type(value: object) -> str:
    """Return the type of a value with its article."""
    return with_article(type(value).__name__)


def _several(noun: str) -> str:
    """Return the plural of a noun that has a regular one."""
    if noun.endswith("y") and noun[-2:-1] not in _VOWELS:
        return f"{noun[:-1]}ies"
    return f"{noun}s"
