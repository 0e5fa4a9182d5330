"""Reading fields of records that other programs wrote: a field of the wrong kind is as good as none, and nothing here raises."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from palaver.messages import clean_text

NOTHING: Mapping[str, object] = MappingProxyType({})
_MILLISECONDS = 1e11  # a number above it is no date in seconds before the year 5138


def text(record: Mapping[str, object], key: str) -> str:
    """Give a field that is a string, else an empty one; what UTF-8 cannot hold is replaced, since it may become an id."""
    value = record.get(key)
    return clean_text(value, key, []) if isinstance(value, str) else ""


def mapping(record: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Give a field that is an object, else an empty one."""
    value = record.get(key)
    return value if isinstance(value, dict) else NOTHING


def items(record: Mapping[str, object], key: str) -> Sequence[object]:
    """Give a field that is a list, else an empty one."""
    value = record.get(key)
    return value if isinstance(value, list) else ()


def objects(record: Mapping[str, object], key: str) -> Sequence[Mapping[str, object]]:
    """Give the objects of a field that is a list."""
    return [value for value in items(record, key) if isinstance(value, dict)]


def arguments(value: object) -> object:
    """Give the arguments of a call, of which some interfaces make a text of JSON; None for what is none, which a message keeps raw."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def number(record: Mapping[str, object], key: str) -> int:
    """Give a field that is a number as a whole one, else 0."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if abs(value) < float(1 << 62) else 0


def moment(value: object) -> float:
    """Give a time in seconds since 1970-01-01 UTC: from ISO 8601 text (without an offset: UTC), seconds or milliseconds; else 0.0."""
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return 0.0
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MILLISECONDS * 1e3:
        return 0.0
    return value / 1e3 if value > _MILLISECONDS else float(value)
