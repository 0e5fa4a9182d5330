"""Tool definitions: names, parameter schemas in each provider's dialect, and choices between tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from palaver.wire.check import schemas
from palaver.wire.check.shape import show
from palaver.wire.profiles import Tools
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["RULES", "called", "chosen", "defined", "parameters"]

RULES = frozenset({Rule.TOOL_NAME, Rule.TOOL_DUPLICATE, Rule.TOOL_COUNT, Rule.TOOL_SCHEMA, Rule.TOOL_CHOICE})


def defined(names: Sequence[Place], rules: Tools) -> Iterator[Violation]:
    """Check the names of the tools a request defines, that no two are the same, and how many there are."""
    if rules.most is not None and len(names) > rules.most:
        yield names[rules.most].breaks(Rule.TOOL_COUNT, f"{len(names)} tools, {rules.most} are taken")
    seen: set[str] = set()
    for name in names:
        yield from _name(name, rules)
        if name and name.text in seen:
            yield name.breaks(Rule.TOOL_DUPLICATE, f"{show(name.text)} is defined already")
        seen.add(name.text)


def called(names: Iterable[Place], rules: Tools) -> Iterator[Violation]:
    """Check the names of the tools that calls in the history were made to: they need not be defined any more."""
    for name in names:
        yield from _name(name, rules)


def _name(name: Place, rules: Tools) -> Iterator[Violation]:
    if isinstance(name.value, str) and not rules.name.fullmatch(name.text):
        yield name.breaks(Rule.TOOL_NAME, f"{show(name.text)} does not match {rules.name.pattern}")


def chosen(choices: Iterable[Place], names: Sequence[Place]) -> Iterator[Violation]:
    """Check that every tool a choice names is defined."""
    known = {name.text for name in names}
    for choice in choices:
        if isinstance(choice.value, str) and choice.text not in known:
            yield choice.breaks(Rule.TOOL_CHOICE, f"no tool {show(choice.text)} is defined")


# --- parameter schemas -------------------------------------------------------------------------------------------------

# The subset of OpenAPI 3.0 that Gemini's Schema has; it answers «Unknown name … Cannot find field» to any other.
# ai.google.dev/api/caching#Schema and google.genai.types.Schema.
_OPENAPI = frozenset({
    "type", "format", "title", "description", "nullable", "enum", "default", "example", "pattern", "items",
    "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum",
    "properties", "required", "propertyOrdering", "anyOf", "additionalProperties", "ref", "defs",
})  # fmt: skip
_COMBINED = ("oneOf", "anyOf", "allOf")


def parameters(schema: Place, rules: Tools, *, strict: bool = False) -> Iterator[Violation]:
    """Check a tool's parameter schema in the profile's dialect.

    ``strict`` is OpenAI's promise that calls keep to the schema; it asks for more (guides/structured-outputs): every
    object closed, every property required.
    """
    if not isinstance(schema.value, Mapping):
        return  # the shape's business
    yield from _root(schema, rules)
    yield from schemas.sound(schema, Rule.TOOL_SCHEMA)
    for place in schemas.parts(schema):
        yield from _dialect(place, rules, strict=strict)


def _root(schema: Place, rules: Tools) -> Iterator[Violation]:
    """Hold the outermost schema to being an object, told apart by nothing but its properties.

    Anthropic: «input_schema does not support oneOf, allOf, or anyOf at the top level» (anthropics/claude-code#27337).
    OpenAI: «must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level»
    (nspady/google-calendar-mcp#39). Gemini: «parameters schema should be of type OBJECT» (diegosouzapw/OmniRoute#3360).
    """
    if schema["type"].text.lower() != "object":
        yield schema["type"].breaks(Rule.TOOL_SCHEMA, f"must be object at the top, got {show(schema['type'].value)}")
    for word in (*_COMBINED, *(("enum", "not") if rules.schema == "subset" else ())):
        if word in schema:
            yield schema[word].breaks(Rule.TOOL_SCHEMA, f"{word} is not taken at the top")


def _dialect(place: Place, rules: Tools, *, strict: bool) -> Iterator[Violation]:
    """Check what one provider's dialect asks beyond JSON Schema."""
    if rules.schema != "draft-2020-12" and place["type"].text.lower() == "array" and "items" not in place:
        # OpenAI «array schema missing items» (modelscope/ms-agent#610); Gemini «items: missing field» (cline#7339)
        yield place["items"].breaks(Rule.TOOL_SCHEMA, "an array must say what its items are")
    if rules.schema == "openapi":
        yield from _openapi(place)
    if strict and place["type"].text == "object":
        if place["additionalProperties"].value is not False:
            yield place["additionalProperties"].breaks(Rule.TOOL_SCHEMA, "must be false in a strict tool")
        if missing := {name for name, _ in place["properties"].members()} - {each.text for each in place["required"]}:
            message = f"a strict tool requires every property: {', '.join(sorted(missing))}"
            yield place["required"].breaks(Rule.TOOL_SCHEMA, message)


def _openapi(place: Place) -> Iterator[Violation]:
    """Check a schema against Gemini's subset of OpenAPI (thClaws/thClaws#172, decolua/9router#380)."""
    for word, value in place.members():
        if word not in _OPENAPI:
            yield value.breaks(Rule.TOOL_SCHEMA, f"{word} is no field of this provider's Schema")
    if place["type"] and not isinstance(place["type"].value, str):
        yield place["type"].breaks(Rule.TOOL_SCHEMA, "must be one type; say nullable for null")
    for each in place["required"]:
        if each.text not in place["properties"]:
            yield each.breaks(Rule.TOOL_SCHEMA, f"{show(each.value)} is required but no property")
    yield from _openapi_enum(place)


def _openapi_enum(place: Place) -> Iterator[Violation]:
    """Check an enumeration: Gemini has it for strings only, none of them empty."""
    if "enum" in place and place["type"].text.lower() != "string":
        yield place["enum"].breaks(Rule.TOOL_SCHEMA, "enum is taken for strings only")
    for each in place["enum"]:
        if not each.text:
            yield each.breaks(Rule.TOOL_SCHEMA, f"a value of enum must be a filled string, got {show(each.value)}")
