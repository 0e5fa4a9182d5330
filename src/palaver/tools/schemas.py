"""The JSON schema of a tool's arguments, in the form in which it is declared: what Pydantic writes, without what no model needs.

Objects are closed, because an argument that a tool would silently ignore is a mistake the model should hear of; references are
resolved where that is short; a tagged union is an `anyOf`; titles, which only repeat the names, are gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from palaver.messages import canonical_json, thaw

__all__ = ["Schema", "declared", "resolve", "strict_obstacle"]

Schema: TypeAlias = Mapping[str, Any]

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_INLINED_BYTES = 8_000
"""A schema that grows beyond this when its references are resolved keeps them; it is sent with every request."""


def declared(schema: Schema) -> dict[str, Any]:
    """Give what is declared to a model, of a schema as Pydantic writes it."""
    plain: dict[str, Any] = _tidy(thaw(schema))
    if "$defs" not in plain:
        return plain
    whole = _inlined(plain, plain, ())
    whole.pop("$defs", None)
    if _refers(whole):
        used = {name: thing for name, thing in plain["$defs"].items() if _is_recursive(name, plain)}
        whole["$defs"] = {name: _inlined(thing, plain, (name,)) for name, thing in used.items()}
    return whole if len(canonical_json(whole)) <= max(_INLINED_BYTES, len(canonical_json(plain))) else plain


def resolve(schema: Any, root: Schema) -> Any:  # noqa: ANN401 - a schema, an object or a truth value
    """Follow a local reference to what it names; a schema without one is given back, and one that leads nowhere allows everything."""
    seen: set[str] = set()
    while isinstance(schema, Mapping) and "$ref" in schema:
        reference = str(schema["$ref"])
        if reference in seen:
            return True
        seen.add(reference)
        target: Any = root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, Mapping) else None
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        if not isinstance(target, Mapping):
            return rest if target is None else target
        schema = {**target, **rest} if rest else target
    return schema


_VALUES = frozenset({"default", "const", "enum", "examples"})
_NOISE = frozenset({"title", "discriminator"})


def _tidy(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    if isinstance(schema, list):
        return [_tidy(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    out = {word: _tidy_value(word, value) for word, value in schema.items() if word not in _NOISE}
    if "discriminator" in schema and "oneOf" in out:
        out["anyOf"] = out.pop("oneOf")
    if out.get("type") == "object" and "properties" in out:
        out.setdefault("additionalProperties", False)
    return out


def _tidy_value(word: str, value: Any) -> Any:  # noqa: ANN401 - any part of a schema
    if word in _NAMED and isinstance(value, dict):
        return {name: _tidy(each) for name, each in value.items()}
    return value if word in _VALUES else _tidy(value)


def _references(schema: Any) -> Iterator[str]:  # noqa: ANN401 - any part of a schema
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for word, value in schema.items():
            if word != "$defs":
                yield from _references(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _refers(schema: Schema) -> bool:
    return next(_references(schema), None) is not None


def _is_recursive(name: str, root: Schema) -> bool:
    """Tell whether a definition leads back to itself."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for reference in _references(root["$defs"].get(waiting.pop(), {})):
            target = reference.removeprefix("#/$defs/")
            if target == name:
                return True
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return False


def _inlined(schema: Any, root: Schema, within: tuple[str, ...]) -> Any:  # noqa: ANN401 - any part of a schema
    """Put definitions in the place of references to them, except where they lead back to themselves."""
    if isinstance(schema, list):
        return [_inlined(each, root, within) for each in schema]
    if not isinstance(schema, dict):
        return schema
    out = {word: _inlined(value, root, within) for word, value in schema.items() if word != "$defs"}
    name = str(out.get("$ref", "")).removeprefix("#/$defs/")
    if "$ref" not in out or name not in root["$defs"]:
        return out
    rest = {word: value for word, value in out.items() if word != "$ref"}
    if _is_recursive(name, root):
        # OpenAI: «$ref cannot have keywords {'description'}»; beside an anyOf they may stand
        return {"anyOf": [{"$ref": out["$ref"]}], **rest} if rest else out
    return {**_inlined(root["$defs"][name], root, (*within, name)), **rest}


# --- what a provider can hold a model to -------------------------------------------------------------------------------

_NOT_STRICT = (
    "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
    "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "contains", "minContains", "maxContains",
    "uniqueItems", "prefixItems", "default",
)  # fmt: skip
_SAYS_WHAT = ("type", "anyOf", "$ref", "enum", "const")
_LEVELS = 10
_PROPERTIES = 5_000


def strict_obstacle(schema: Schema) -> str:
    """Say why a provider could not hold arguments to a schema, or give an empty text when it can.

    The rules are OpenAI's, the narrowest: every object closed and all its properties required, no keyword outside the subset, at
    most 10 levels and 5,000 properties (developers.openai.com/api/docs/guides/structured-outputs, supported schemas).
    """
    if schema.get("type") != "object" or "anyOf" in schema or "enum" in schema:
        return "the schema is not that of one object"
    return _obstacle(schema, 1, [0])


def _obstacle(schema: Any, level: int, properties: list[int]) -> str:  # noqa: ANN401 - any part of a schema
    if not isinstance(schema, Mapping):
        return "a part of it allows everything" if schema is True else ""
    why = _own_obstacle(schema, properties) if level <= _LEVELS else f"it has more than {_LEVELS} levels"
    parts = _parts(schema)
    return why or next((why for each, deeper in parts if (why := _obstacle(each, level + deeper, properties))), "")


def _own_obstacle(schema: Schema, properties: list[int]) -> str:
    found = next((word for word in _NOT_STRICT if word in schema), "")
    if found:
        return f"it uses {found}"
    if not any(word in schema for word in _SAYS_WHAT):
        return "a part of it allows everything"
    if "array" in _types(schema) and "items" not in schema:
        return "an array does not say what its items are"
    return _object_obstacle(schema, properties) if "object" in _types(schema) else ""


def _types(schema: Schema) -> tuple[Any, ...]:
    named = schema.get("type", ())
    return tuple(named) if isinstance(named, list | tuple) else (named,)


def _object_obstacle(schema: Schema, properties: list[int]) -> str:
    names = set(schema.get("properties", {}))
    properties[0] += len(names)
    if schema.get("additionalProperties") is not False:
        return "an object in it is open"
    if names - set(schema.get("required", [])):
        return "a property in it is optional"
    return f"it has more than {_PROPERTIES} properties" if properties[0] > _PROPERTIES else ""


def _parts(schema: Schema) -> Iterator[tuple[Any, int]]:
    """Give the schemas directly inside, and how many levels deeper each lies."""
    for word in ("properties", "$defs", "definitions"):
        for each in schema.get(word, {}).values():
            yield each, 1 if word == "properties" else 0
    if "items" in schema:
        yield schema["items"], 1
    for each in schema.get("anyOf", ()):
        yield each, 0
