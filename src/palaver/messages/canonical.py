"""One JSON text for one value: the bytes that are stored, compared and hashed.

UTF-8; keys sorted by code point; no spaces; only the escapes that JSON requires; floats in the shortest form that reads back
the same, as Python writes them; no NaN and no infinity. This is not RFC 8785, which sorts by UTF-16 units and writes floats as
ECMAScript does. pydantic-core writes the strings: it is several times faster than :mod:`json`, with the same escapes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from math import isfinite
from typing import Any, Protocol, runtime_checkable

from pydantic_core import PydanticSerializationError, to_json

from palaver.errors import InvalidMessage

__all__ = ["Storable", "canonical_json", "digest", "read_object"]


@runtime_checkable
class Storable(Protocol):
    """A value that is written as an object of some of its fields."""

    def stored_fields(self) -> Iterable[tuple[str, Any]]:
        """Return names and values, sorted by name."""


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Return a value as canonical bytes; messages, blocks and media in it are written in their stored form.

    Raises:
        InvalidMessage: Something in it is not JSON, or is nested deeper than Python recurses.
    """
    try:
        return _write(value)
    except (TypeError, ValueError, RecursionError, PydanticSerializationError) as error:
        raise InvalidMessage(f"This cannot be written as JSON: {error}.") from error


def read_object(text: str) -> dict[str, Any]:
    """Read a JSON object as a model writes it, such as a tool's arguments; an empty text is an empty object.

    Raises:
        ValueError: It is not JSON, is JSON of another type, or is nested too deeply.
    """
    try:
        value = _DECODER.decode(text) if text.strip() else {}
    except RecursionError:
        raise ValueError("The JSON is nested too deeply.") from None
    if not isinstance(value, dict):
        raise ValueError(f"The JSON is a {type(value).__name__}, not an object.")  # noqa: TRY004 - documented
    return value


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON.")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _write(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    kind = type(value)
    return (_WRITERS.get(kind) or _writer(kind))(value)


def _writer(kind: type) -> Callable[[Any], bytes]:
    """Find the writer for a type by its bases, and remember it."""
    for base, writer in _BASES:
        if issubclass(kind, base):
            return _WRITERS.setdefault(kind, writer)
    raise TypeError(f"a {kind.__name__} is not JSON")


def _write_items(items: Iterable[tuple[str, Any]]) -> bytes:
    pairs = [_key(name) + (to_json(item) if type(item) is str else _write(item)) for name, item in items]
    return b"{" + b",".join(pairs) + b"}"


def _write_mapping(value: Mapping[str, Any]) -> bytes:
    return _write_items([(name, value[name]) for name in sorted(value)])


def _write_sequence(value: Iterable[Any]) -> bytes:
    return b"[" + b",".join([_write(item) for item in value]) + b"]"


def _write_float(value: float) -> bytes:
    if not isfinite(value):
        raise ValueError(f"{value} is not finite")
    return repr(value).encode()


@lru_cache(maxsize=4096)  # the names of fields and arguments repeat: without it, encoding takes a third longer
def _key(name: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"a key is a string, not a {type(name).__name__}")
    return to_json(str(name)) + b":"


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    str: to_json,
    type(None): lambda _: b"null",
    bool: lambda value: b"true" if value else b"false",
    int: lambda value: str(value).encode(),
    float: _write_float,
    dict: _write_mapping,
    list: _write_sequence,
    tuple: _write_sequence,
}
_BASES: tuple[tuple[type, Callable[[Any], bytes]], ...] = (
    (Storable, lambda value: _write_items(value.stored_fields())),
    (dict, _write_mapping),
    (list, _write_sequence),
    (tuple, _write_sequence),
    (Enum, lambda value: _write(value.value)),
    (str, lambda value: to_json(str(value))),
    (int, lambda value: str(int(value)).encode()),
    (float, lambda value: _write_float(float(value))),
)
