"""Strict local validators: what a provider would refuse in a request, found before anything is sent.

``validate(request, profile)`` checks the plain body of a request, as it is sent to the provider's HTTP API, for everything that the provider is
known to refuse. The profile has the figures, and its API a shape (the fields) and a row of checks.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from palaver.messages import FrozenDict
from palaver.wire.place import Breach, Spot, Violation, shaped, show
from palaver.wire.rules import Subject
from palaver.wire.table import Profile


def validate(request: Mapping[str, object], profile: Profile, *, as_history: bool = False) -> tuple[Violation, ...]:
    """Return everything in a request that its provider would refuse, in the order found.

    The conversation and the tools are checked whole. Of the body's other fields, only those that palaver writes or a rule concerns are checked. Tools that
    the provider runs itself pass, too.

    Args:
        request: The body as it is sent: JSON's types, or mappings and tuples instead of objects and lists.
        profile: What the provider accepts.
        as_history: Whether the body is the record of a conversation. It may then end on the assistant's words, even if the provider refuses such a request.
    """
    subject = Subject(Spot(request), profile, as_history)
    violations = [*_encoded(subject.body, profile.request_bytes), *shaped(subject.body, profile.api.shape)]
    for check in profile.api.checks:
        violations.extend(check(subject))
    return tuple(violations)


# --- the body as JSON text: values that JSON has, strings that every server can read, and its size in bytes ---------------

# Surrogates are no characters: UTF-8 cannot carry them (RFC 3629, section 3) and providers answer 400 «invalid high
# surrogate in string» (anthropics/claude-code#68325).
_SURROGATE = re.compile("[\ud800-\udfff]")

Path: TypeAlias = tuple[str | int, ...]

# As the providers' own clients write a body: no escapes but JSON's own.
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False, default=dict)


def _encoded(request: Spot, limit: int) -> Iterator[Violation]:
    """Check that the body can be written as JSON, has only readable strings and at most ``limit`` bytes of compact UTF-8 JSON."""
    written = _written(request.value)
    faults = list(_walked(request)) if written is None else []
    yield from faults
    if not faults:
        size = len(_COMPACT.encode(request.value).encode() if written is None else written)
        if size > limit:
            yield request.breaks(Breach.REQUEST_BYTES, f"the body has {size:,} bytes, {limit:,} are taken")


def _written(body: object) -> bytes | None:
    """Return the JSON of a read-only body, whose keys are strings at every level; None where a string may have a fault."""
    if type(body) is not FrozenDict:
        return None
    try:
        data = _COMPACT.encode(body).encode()
    except UnicodeEncodeError:
        return None
    return None if b"\\u0000" in data else data


def _walked(request: Spot) -> Iterator[Violation]:
    """Look at every value."""
    waiting: list[tuple[object, Path]] = [(request.value, request.path)]
    while waiting:  # bare values and paths: this walk visits everything, and places are for faults
        value, path = waiting.pop()
        if isinstance(value, str):
            yield from _string(value, path)
        elif isinstance(value, Mapping):
            for key, member in value.items():
                if isinstance(key, str):
                    yield from _string(key, (*path, key))
                    waiting.append((member, (*path, key)))
                else:
                    yield Spot(key, (*path, repr(key))).breaks(Breach.NOT_JSON, f"the key {show(key)} is no string")
        elif isinstance(value, list | tuple):
            waiting.extend((element, (*path, number)) for number, element in enumerate(value))
        elif not (value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))):
            yield Spot(value, path).breaks(Breach.NOT_JSON, f"JSON has no {show(value)}")


def _string(text: str, path: Path) -> Iterator[Violation]:
    """Refuse surrogates and NUL in a string.

    NUL is legal JSON, but no provider documents that it accepts one, and requests die of it (anthropics/claude-code#94408).
    """
    if "\x00" in text:
        yield Spot(text, path).breaks(Breach.NUL, f"character {text.index(chr(0))} is NUL")
    if not text.isascii() and (surrogate := _SURROGATE.search(text)):
        yield Spot(text, path).breaks(Breach.LONE_SURROGATE, f"character {surrogate.start()} is a lone surrogate")
