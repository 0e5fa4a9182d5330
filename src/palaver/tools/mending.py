"""What models write instead of what they mean: a number in quotes, a list as the text of a list, null for «leave it out».

Only a part that does not fit as it is gets mended, and only to what fits there; the arguments are judged afterwards like any others.
The log keeps what the model wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from palaver.tools.judging import fits
from palaver.tools.schemas import Schema, resolve

__all__ = ["mended"]

_READABLE = frozenset({"integer", "number", "boolean", "object", "array", "null"})


def mended(schema: Schema, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the arguments as they are meant, each part mended that can be; the same object where all of them fit."""
    better = _mend(schema, arguments, schema)
    return better if isinstance(better, Mapping) else arguments


def _mend(schema: Any, value: Any, root: Schema) -> Any:  # noqa: ANN401 - JSON in, JSON out
    schema = resolve(schema, root)
    if not isinstance(schema, Mapping) or fits(schema, value, root):
        return value
    for word in ("anyOf", "oneOf"):
        for branch in schema.get(word, ()):
            better = _mend(branch, value, root)
            if fits(schema, better, root):
                return better
    if isinstance(value, Mapping):
        return _mend_object(schema, value, root)
    if isinstance(value, list | tuple) and "items" in schema:
        return [_mend(schema["items"], each, root) for each in value]
    return _mend_scalar(schema, value, root)


def _mend_object(schema: Schema, value: Mapping[str, Any], root: Schema) -> dict[str, Any]:
    """Mend each property; null for one that may be left out is left out."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        name: _mend(properties[name], each, root) if name in properties else each
        for name, each in value.items()
        if not (each is None and name in properties and name not in required and not fits(properties[name], None, root))
    }


def _mend_scalar(schema: Schema, value: Any, root: Schema) -> Any:  # noqa: ANN401 - JSON in, JSON out
    named = schema.get("type")
    kinds = set(named if isinstance(named, list | tuple) else [named])
    if isinstance(value, str) and kinds & _READABLE:
        read = _read(value)
        better = value if isinstance(read, str) else _mend(schema, read, root)
        return better if fits(schema, better, root) else value
    return value


def _read(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Read a text as the JSON value it spells; the text itself when it spells none."""
    try:
        return json.loads(text if text not in {"True", "False", "None"} else _PYTHON[text], parse_constant=_refused)
    except (ValueError, RecursionError):
        return text


_PYTHON = {"True": "true", "False": "false", "None": "null"}


def _refused(constant: str) -> None:
    raise ValueError(constant)
