"""Read fields of other programs' records. A field of the wrong type counts as missing; nothing here raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from palaver.formats.events import NOTHING
from palaver.messages import clean_text

_MILLISECONDS = 1e11  # a number above it is no date in seconds before the year 5138


def text(record: Mapping[str, object], key: str) -> str:
    """Return a string field, or else an empty string. Code points that UTF-8 cannot encode are replaced."""
    value = record.get(key)
    return clean_text(value, key, []) if isinstance(value, str) else ""


def mapping(record: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return an object field, or else an empty object."""
    value = record.get(key)
    return value if isinstance(value, dict) else NOTHING


def items(record: Mapping[str, object], key: str) -> Sequence[object]:
    """Return a list field, or else an empty list."""
    value = record.get(key)
    return value if isinstance(value, list) else ()


def objects(record: Mapping[str, object], key: str) -> Sequence[Mapping[str, object]]:
    """Return the objects of a field that is a list."""
    return [value for value in items(record, key) if isinstance(value, dict)]


def number(record: Mapping[str, object], key: str) -> int:
    """Return a number field as a whole number, or else 0."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if abs(value) < float(1 << 62) else 0


def moment(value: object) -> float:
    """Return a time in seconds since 1970-01-01 UTC, or else 0.0.

    Args:
        value: ISO 8601 text (UTC unless it has an offset), seconds, or milliseconds.
    """
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return 0.0
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MILLISECONDS * 1e3:
        return 0.0
    return value / 1e3 if value > _MILLISECONDS else float(value)
