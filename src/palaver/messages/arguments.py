"""A tool's arguments as the text a model writes, and as the mapping it means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from palaver.messages.canonical import canonical_json
from palaver.messages.frozen import EMPTY, FrozenDict, freeze
from palaver.messages.normalize import Change

__all__ = ["read_arguments", "recorded_once", "write_arguments"]


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON.")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def read_arguments(text: str, changes: list[Change]) -> FrozenDict:
    """Read the JSON object a model wrote as a tool's arguments, an empty text as an empty one.

    What had to be normalised is appended to ``changes``.

    Raises:
        ValueError: It is no JSON, or JSON of another kind, or nested too deeply.
    """
    if not text.strip():
        return EMPTY
    try:
        args = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("The arguments are nested too deeply.") from None
    if not isinstance(args, dict):
        raise ValueError(f"The arguments are JSON of type {type(args).__name__}, not an object.")  # noqa: TRY004
    frozen: FrozenDict = freeze(args, "args", changes)
    return frozen


def write_arguments(args: Mapping[str, Any]) -> str:
    """Write a tool's arguments as JSON text, in the canonical form."""
    return canonical_json(args).decode()


def recorded_once(recorded: object, found: list[Change]) -> object:
    """Add what reading arguments found to the record of a stored call, but not what that says already: a call is read whenever it is loaded.

    A record that is no list is left to be refused by validation.
    """
    if not isinstance(recorded, list | tuple):
        return recorded
    known = {_stored(change) for change in recorded}
    return (*recorded, *(change for change in found if _stored(change) not in known))


def _stored(change: object) -> str:
    fields = dict(change.stored_fields()) if isinstance(change, Change) else change
    return json.dumps(fields, sort_keys=True, default=repr)
