"""JSON schemas in requests: what is wrong with one in any dialect, and a walk over its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from palaver.wire.check.shape import show
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["parts", "sound"]

# Keywords that hold schemas, and how. JSON Schema 2020-12, core section 10 and validation section 6.
_ONE = frozenset({
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "defs"})

# What the values of other keywords are. Keywords not listed anywhere are annotations, which JSON Schema lets pass.
_TYPES: Mapping[str, tuple[type, ...]] = MappingProxyType({
    **dict.fromkeys(("required", "enum", "examples"), (list, tuple)),
    **dict.fromkeys(("title", "description", "pattern", "format", "$ref", "$id", "$schema", "$anchor"), (str,)),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), (int, float)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), (int,)),
    **dict.fromkeys(("uniqueItems", "nullable"), (bool,)),
})  # fmt: skip
_JSON_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


def sound(schema: Place, rule: Rule) -> Iterator[Violation]:
    """Check that a schema and all schemas in it are such: keywords have values of their kind, types and names are some."""
    waiting = [schema]
    while waiting:
        place = waiting.pop()
        if isinstance(place.value, bool):
            continue  # true and false are schemas
        if not isinstance(place.value, Mapping):
            yield place.breaks(rule, f"expected a schema, got {show(place.value)}")
            continue
        yield from _keywords(place, rule)
        yield from _words(place, rule)
        waiting.extend(_inside(place))


def parts(schema: Place) -> Iterator[Place]:
    """Give a schema and every schema in it that is an object."""
    waiting = [schema]
    while waiting:
        place = waiting.pop()
        if isinstance(place.value, Mapping):
            yield place
            waiting.extend(_inside(place))


def _keywords(place: Place, rule: Rule) -> Iterator[Violation]:
    """Check that each keyword has a value of the kind JSON Schema gives it."""
    for word, value in place.members():
        if word in _TYPES:
            if not isinstance(value.value, _TYPES[word]) or (
                isinstance(value.value, bool) and bool not in _TYPES[word]
            ):
                yield value.breaks(rule, f"{word} may not be {show(value.value)}")
        elif word in _NAMED and not isinstance(value.value, Mapping):
            yield value.breaks(rule, f"{word} must be an object of schemas")
        elif word in _LISTED and not (isinstance(value.value, list | tuple) and len(value)):
            yield value.breaks(rule, f"{word} must be a list of schemas, at least one")


def _words(place: Place, rule: Rule) -> Iterator[Violation]:
    """Check the types a schema names and the properties it requires."""
    for each in list(place["type"]) or [place["type"]]:
        if each and each.text.lower() not in _JSON_TYPES:
            yield each.breaks(rule, f"{show(each.value)} is no JSON type")
    for each in place["required"]:
        if not isinstance(each.value, str):
            yield each.breaks(rule, f"{show(each.value)} is no name")


def _inside(place: Place) -> Iterator[Place]:
    """Give the schemas directly inside a schema."""
    for word, value in place.members():
        if word in _ONE:
            yield value
        elif word in _LISTED:
            yield from value
        elif word in _NAMED:
            yield from (member for _, member in value.members())
