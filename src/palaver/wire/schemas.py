"""Tool schemas in the provider's dialect.

A schema comes from anywhere: another agent's recording, an MCP server, a program. What is no JSON Schema in it is left out; what a dialect
has no word for is said another way where that loses nothing, and otherwise left out and named. The model still reads the description,
and a tool must check its arguments itself in any case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from palaver.errors import InvalidMessage
from palaver.messages import canonical_json
from palaver.wire.openapi import openapi

__all__ = ["in_dialect", "not_strict"]

Schema: TypeAlias = dict[str, Any]

# JSON Schema 2020-12: keywords that hold a schema, a list of schemas, or schemas by name (core, section 10).
_ONE = frozenset({
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_COMBINED = ("allOf", "anyOf", "oneOf")

_DEPTH = 24
"""Schemas nested deeper than this are cut off; providers take fewer levels (OpenAI: 10, guides/structured-outputs)."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


# What the values of other keywords are (validation, section 6); keywords not listed are annotations and pass.
_VALUES: Mapping[str, Callable[[object], bool]] = MappingProxyType({
    **dict.fromkeys(("title", "description", "pattern", "format", "$ref", "$id", "$schema", "$anchor"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("uniqueItems", "nullable"), _is_flag),
    **dict.fromkeys(("enum", "examples"), _is_list),
    "required": _are_names,
})  # fmt: skip


def in_dialect(parameters: Mapping[str, object], dialect: str) -> tuple[Schema, list[str]]:
    """Give a tool's parameter schema in a dialect, and what could not be said in it.

    Args:
        parameters: The schema, as it was declared.
        dialect: `draft-2020-12`, OpenAI's `subset` of it, or Gemini's `openapi`.

    Returns:
        An object schema that the provider takes, its keys in canonical order; and a clause for everything that was left out.
    """
    lost: list[str] = []
    try:
        given = json.loads(canonical_json(parameters))
    except InvalidMessage:
        return _empty(), ["the schema is no JSON"]
    schema = _rooted(_sound(given, "", lost, 0), given, lost, dialect)
    if dialect == "openapi":
        schema = openapi(schema, lost)
    elif dialect == "subset":
        _with_items(schema)
    return schema, lost


def _empty() -> Schema:
    return {"type": "object", "properties": {}}


def _sound(schema: object, place: str, lost: list[str], depth: int) -> Any:  # noqa: ANN401 - a schema, an object or a truth value
    """Give a schema without what JSON Schema does not know in the places where it knows better."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict) or depth > _DEPTH:
        lost.append(f"{place or 'the schema'} is no schema" if depth <= _DEPTH else f"{place} is nested too deeply")
        return {}
    out: Schema = {}
    for word, value in schema.items():
        kept = _kept(word, value, f"{place}.{word}" if place else word, lost, depth)
        if kept is not None:
            out[word] = kept
    return out


def _kept(word: str, value: object, place: str, lost: list[str], depth: int) -> object:
    """Give what a keyword keeps of its value; None when it cannot stand at all."""
    kept: object = None
    if word == "type":
        return _type(value, place, lost)
    if word == "items" and isinstance(value, list):  # the tuple of older drafts; 2020-12 calls it prefixItems
        lost.append(f"{place} lists schemas")
        return {}
    if word in _ONE:
        kept = _sound(value, place, lost, depth + 1)
    elif word in _LISTED and isinstance(value, list) and value:
        kept = [_sound(each, f"{place}[{index}]", lost, depth + 1) for index, each in enumerate(value)]
    elif word in _NAMED and isinstance(value, dict):
        kept = {name: _sound(each, f"{place}.{name}", lost, depth + 1) for name, each in value.items()}
    elif word in _LISTED or word in _NAMED or not _VALUES.get(word, _any)(value):
        lost.append(f"{place} has a value of another kind")
    else:
        kept = value
    return kept


def _any(_value: object) -> bool:
    return True


def _type(value: object, place: str, lost: list[str]) -> object:
    named = [each.lower() for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]
    known = [each for each in named if each in _TYPES]
    if not known or len(known) != len(value if isinstance(value, list) else [value]):
        lost.append(f"{place} names no JSON type")
    return None if not known else known if isinstance(value, list) else known[0]


def _rooted(schema: Any, given: object, lost: list[str], dialect: str) -> Schema:  # noqa: ANN401 - what `_sound` gives
    """Give a schema whose outermost level is an object with nothing but properties, as every provider asks."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        lost.append("the schema is not one of an object")
        return _empty()
    root = {"type": "object", **schema}
    for word in _COMBINED:
        for variant in root.pop(word, ()):
            properties = _resolved(variant, given).get("properties", {})
            root["properties"] = (
                {**_sound(properties, "", [], 1), **root.get("properties", {})}
                if properties
                else root.get("properties", {})
            )
        if word in schema:
            lost.append(f"{word} at the top: the properties of all its cases are there, and which go together is not")
    barred = [word for word in ("enum", "not") if dialect == "subset" and word in root]
    lost.extend(f"{word} at the top" for word in barred)
    root = {word: value for word, value in root.items() if word not in barred}
    root.setdefault("properties", {})
    return root


def _resolved(schema: object, root: object) -> Mapping[str, Any]:
    """Follow one reference into the root's definitions."""
    if not isinstance(schema, dict):
        return {}
    target: object = root
    for step in str(schema.get("$ref", "")).removeprefix("#/").split("/") if "$ref" in schema else ():
        target = target.get(step) if isinstance(target, dict) else None
    found = target if "$ref" in schema else schema
    return found if isinstance(found, dict) else {}


def _with_items(schema: object) -> None:
    """Say of every array that its items may be anything, where it does not say what they are."""
    if isinstance(schema, dict):
        if schema.get("type") == "array":
            schema.setdefault("items", {})
        for value in schema.values():
            _with_items(value)
    elif isinstance(schema, list):
        for value in schema:
            _with_items(value)


def not_strict(schema: object) -> str:
    """Give the reason why OpenAI could not hold arguments to a schema, or an empty text.

    Every object must be closed and require all its properties (developers.openai.com/api/docs/guides/structured-outputs).
    """
    if isinstance(schema, list):
        return next((why for value in schema if (why := not_strict(value))), "")
    if not isinstance(schema, dict):
        return ""
    found = [word for word in _NOT_IN_STRICT if word in schema]
    if found:
        return f"it uses {found[0]}"
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return "an object in it is open"
        if set(schema.get("properties", {})) - set(schema.get("required", [])):
            return "a property in it is optional"
    return next((why for value in schema.values() if (why := not_strict(value))), "")


_NOT_IN_STRICT = (
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
)
