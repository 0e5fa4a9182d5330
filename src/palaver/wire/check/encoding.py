"""The body as JSON text: values JSON can carry, strings every server can read, and the bytes it takes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Generator, Iterator, Mapping
from typing import TypeAlias

from palaver.messages import FrozenDict
from palaver.wire.check.shape import show
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["RULES", "encoded"]

RULES = frozenset({Rule.NOT_JSON, Rule.LONE_SURROGATE, Rule.NUL, Rule.REQUEST_BYTES})

# Surrogates are no characters: UTF-8 cannot carry them (RFC 3629, section 3) and providers answer 400 «invalid high
# surrogate in string» (anthropics/claude-code#68325).
_SURROGATE = re.compile("[\ud800-\udfff]")

Path: TypeAlias = tuple[str | int, ...]

# As the providers' own clients write a body: no escapes but JSON's own.
_WRITER = json.JSONEncoder(ensure_ascii=False)
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)
_NUL = "\\u0000"


def encoded(request: Place, limit: int) -> Iterator[Violation]:
    """Check that the body can be written as JSON, holds only readable strings and takes at most ``limit`` bytes.

    The size is that of compact UTF-8 JSON, without spaces, which is how the clients send it.
    """
    size = _clean_bytes(request.value)
    if size is None:
        size = yield from _walked(request)
    if size > limit:
        yield request.breaks(Rule.REQUEST_BYTES, f"the body has {size:,} bytes, {limit:,} are taken")


def _clean_bytes(body: object) -> int | None:
    """Give the size of a read-only body that has nothing wrong, as nearly all are; None where a closer look is needed.

    What a frozen object holds is JSON, its keys are strings, all the way down; a plain dict may hold anything.
    """
    if type(body) is not FrozenDict:
        return None
    try:
        text = _COMPACT.encode(body)
    except ValueError:
        return None
    if _NUL in text or (not text.isascii() and _SURROGATE.search(text)):
        return None
    return len(text) if text.isascii() else len(text.encode())


def _walked(request: Place) -> Generator[Violation, None, int]:
    """Look at every value, and give the size of them all."""
    size = 0
    waiting: list[tuple[object, Path]] = [(request.value, request.path)]
    while waiting:  # bare values and paths: this walk visits everything, and places are for what is wrong
        value, path = waiting.pop()
        if isinstance(value, str):
            yield from _string(value, path)
        elif isinstance(value, Mapping):
            yield from _keys(value, path)
            waiting.extend((member, (*path, key)) for key, member in value.items() if isinstance(key, str))
        elif isinstance(value, list | tuple):
            waiting.extend((element, (*path, number)) for number, element in enumerate(value))
        elif not _scalar(value):
            yield Place(value, path).breaks(Rule.NOT_JSON, f"JSON has no {show(value)}")
            continue
        size += _own_bytes(value)
    return size


def _string(text: str, path: Path) -> Iterator[Violation]:
    """Refuse surrogates and NUL in a string.

    NUL is legal JSON, but no provider documents that it takes one and requests die of it (anthropics/claude-code#94408);
    messages lose it at the edge, so one found here came another way.
    """
    if "\x00" in text:
        yield Place(text, path).breaks(Rule.NUL, f"character {text.index(chr(0))} is NUL")
    if not text.isascii() and (found := _SURROGATE.search(text)):
        yield Place(text, path).breaks(Rule.LONE_SURROGATE, f"character {found.start()} is a lone surrogate")


def _keys(value: Mapping[object, object], path: Path) -> Iterator[Violation]:
    """Refuse keys that are no strings, and hold the others to the rules for strings."""
    for key in value:
        if isinstance(key, str):
            yield from _string(key, (*path, key))
        else:
            yield Place(key, path).breaks(Rule.NOT_JSON, f"the key {show(key)} is no string")


def _scalar(value: object) -> bool:
    """Tell whether JSON has this number, truth value or null."""
    return value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))


def _own_bytes(value: object) -> int:
    """Count what a value itself takes when written: brackets, commas, colons and keys, but not what lies inside it."""
    if isinstance(value, Mapping):
        keys = sum(_own_bytes(key) for key in value if isinstance(key, str))
        return keys + 2 * len(value) + (1 if value else 2)  # {"k":v,"k":v}: one colon each, a comma between, two braces
    if isinstance(value, list | tuple):
        return len(value) + (1 if value else 2)
    return len(_WRITER.encode(value).encode("utf-8", "surrogatepass"))
