"""Alias of `palaver.messages.read_stored`, and what `palaver.log.codec` sets its entries together with, until that reads them itself."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel

from palaver.errors import InvalidMessage
from palaver.messages.codec import is_plain
from palaver.messages.codec import read_stored as _read_stored
from palaver.messages.message import Message

__all__ = ["Unusual", "is_plain", "number", "read_stored", "set_together", "text", "whole"]

Model = TypeVar("Model", bound=BaseModel)


class Unusual(Exception):
    """A field is not as it is stored."""


def read_stored(fields: object) -> Message | None:
    """Read the fields of a stored message; None if they are not."""
    try:
        return _read_stored(fields)
    except InvalidMessage:
        return None


def set_together(kind: type[Model], fields: dict[str, Any], given: set[str], extra: dict[str, Any]) -> Model:
    """Return a value of valid fields."""
    made = kind.model_construct(given, **fields)
    object.__setattr__(made, "__pydantic_extra__", extra)
    return made


def text(value: object) -> str:
    """Read a string."""
    if type(value) is str:
        return value
    raise Unusual


def number(value: object) -> float:
    """Read a number."""
    try:
        return float(value) if type(value) in {int, float} else whole(None)  # type: ignore[arg-type]
    except OverflowError:
        raise Unusual from None


def whole(value: object) -> int:
    """Read a whole number."""
    if type(value) is int:
        return value
    raise Unusual
