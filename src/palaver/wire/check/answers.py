"""Answers that must have a structure: names and schemas of formats, in the dialects of providers that hold a model to them.

Sources: developers.openai.com/api/docs/guides/structured-outputs; platform.claude.com/docs/en/build-with-claude/structured-outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from palaver.wire.check import schemas
from palaver.wire.check.shape import show
from palaver.wire.profiles import Answers
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["RULES", "held", "named"]

RULES = frozenset({Rule.ANSWER_SCHEMA})

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # ResponseFormatJSONSchema.name, API reference

_COMMON = frozenset({
    "not", "if", "then", "else", "oneOf", "dependentRequired", "dependentSchemas", "patternProperties", "propertyNames", "prefixItems",
    "contains", "minContains", "maxContains", "minProperties", "maxProperties", "unevaluatedItems", "unevaluatedProperties", "uniqueItems",
    "minLength", "maxLength",
})  # fmt: skip
_REFUSED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        # «'allOf' is not permitted», «'default' is not permitted» and their like: the API's answers
        "openai": _COMMON | {"allOf", "default"},
        "anthropic": _COMMON
        | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems", "pattern"},
    }
)


def named(name: Place) -> Iterator[Violation]:
    """Check the name of a format."""
    if isinstance(name.value, str) and not _NAME.fullmatch(name.text):
        yield name.breaks(Rule.ANSWER_NAME, f"{show(name.text)} does not match {_NAME.pattern}")


def held(schema: Place, rules: Answers, *, strict: bool = True) -> Iterator[Violation]:
    """Check the schema of a format, which a model is held to when it is ``strict``."""
    if not isinstance(schema.value, Mapping):
        return  # the shape's business
    yield from schemas.sound(schema, Rule.ANSWER_SCHEMA)
    if schema["type"].value != "object":
        # «schema must be a JSON Schema of 'type: "object"'»; «root level object must not be anyOf», guides/structured-outputs
        yield schema["type"].breaks(Rule.ANSWER_SCHEMA, f"must be object at the top, got {show(schema['type'].value)}")
    if not strict or rules.dialect not in _REFUSED:
        return
    for part in schemas.parts(schema):
        yield from _words(part, rules)
        yield from _members(part, rules)


def _words(part: Place, rules: Answers) -> Iterator[Violation]:
    for word, value in part.members():
        if word in _REFUSED[rules.dialect]:
            yield value.breaks(Rule.ANSWER_SCHEMA, f"{word} is not taken in a schema that answers are held to")
    if rules.dialect == "anthropic" and part["minItems"].value not in (None, 0, 1):
        yield part["minItems"].breaks(Rule.ANSWER_SCHEMA, "minItems must be 0 or 1")


def _members(part: Place, rules: Answers) -> Iterator[Violation]:
    """Check that objects are closed, and for OpenAI complete: «'required' is required to be supplied and to be an array including every key»."""
    if part["type"].value != "object" and "properties" not in part:
        return
    if part["additionalProperties"].value is not False:
        yield part["additionalProperties"].breaks(
            Rule.ANSWER_SCHEMA, "must be false where answers are held to a schema"
        )
    missing = {name for name, _ in part["properties"].members()} - {each.text for each in part["required"]}
    if rules.dialect == "openai" and missing:
        yield part["required"].breaks(
            Rule.ANSWER_SCHEMA,
            f"a schema that answers are held to requires every property: {', '.join(sorted(missing))}",
        )
