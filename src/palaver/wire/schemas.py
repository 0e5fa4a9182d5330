"""JSON schemas of tools and of answers, in each provider's dialect.

A schema comes from anywhere: a type, another agent's recording, an MCP server. Keywords with impossible values are removed. A dialect's
missing keywords move into the description, where the model reads them; tools and answers are judged by the whole schema in any case.

A tool's schema is a hint, so anything can be left out of it. An answer's schema is a promise: objects are closed, and a member that may be
left out is requested where null or a default says the same. Where the dialect cannot say that, there is an obstacle, and the caller asks in
another way.

Sources: developers.openai.com/api/docs/guides/structured-outputs, «supported schemas»; platform.claude.com/docs/en/build-with-claude/
structured-outputs, «JSON schema limitations», and `transform_schema` of the ``anthropic`` package 2.14; Gemini's reference of
GenerationConfig.responseJsonSchema and FunctionDeclaration.parametersJsonSchema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from palaver.errors import InvalidMessage
from palaver.messages import canonical_json, thaw
from palaver.wire.table import Dialect

Schema: TypeAlias = dict[str, Any]

# JSON Schema 2020-12: keywords whose value is a schema, a list of schemas, or schemas by name (core, section 10).
_ONE = frozenset({
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_COMBINED = ("allOf", "anyOf", "oneOf")
_DEPTH = 24
"""Deeper schemas are cut off; providers accept fewer levels (OpenAI: 10, guides/structured-outputs)."""


# --- sound schemas -------------------------------------------------------------------------------------------------------


def _is(*kinds: type) -> Callable[[object], bool]:
    """Return a test for values of these types; a truth value is not a number."""
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


# What the values of other keywords are (validation, section 6); keywords not listed are annotations and pass.
_VALUES: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("title", "description", "pattern", "format", "$ref", "$id", "$schema", "$anchor"), _is(str)),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _is(int, float)),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        lambda value: _is(int)(value) and value >= 0,  # type: ignore[operator] # it is a number
    ),
    **dict.fromkeys(("uniqueItems", "nullable"), _is(bool)),
    **dict.fromkeys(("enum", "examples"), _is(list)),
    "required": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
}  # fmt: skip


def sound(schema: object, place: str, lost: list[str], depth: int = 0) -> Any:  # noqa: ANN401 - a schema: an object or a truth value
    """Return a schema without what JSON Schema forbids, and append a clause for each loss."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict) or depth > _DEPTH:
        lost.append(f"{place or 'the schema'} is no schema" if depth <= _DEPTH else f"{place} is nested too deeply")
        return {}
    kept = ((word, _kept(word, value, _at(place, word), lost, depth)) for word, value in schema.items())
    return {word: value for word, value in kept if value is not None}


def _at(place: str, step: str) -> str:
    return f"{place}.{step}" if place else step


def _kept(word: str, value: object, place: str, lost: list[str], depth: int) -> object:
    """Return what a keyword keeps of its value; None when it keeps nothing."""
    if word == "type":
        return _type(value, place, lost)
    if word == "items" and isinstance(value, list):  # the tuple of older drafts; 2020-12 calls it prefixItems
        lost.append(f"{place} lists schemas")
        return {}
    if word in _ONE:
        return sound(value, place, lost, depth + 1)
    if word in _LISTED and isinstance(value, list) and value:
        return [sound(item, f"{place}[{index}]", lost, depth + 1) for index, item in enumerate(value)]
    if word in _NAMED and isinstance(value, dict):
        return {name: sound(member, f"{place}.{name}", lost, depth + 1) for name, member in value.items()}
    sane = word not in _LISTED and word not in _NAMED and (word not in _VALUES or _VALUES[word](value))
    lost.extend(() if sane else (f"{place} has a value of another kind",))
    return value if sane else None


def _type(value: object, place: str, lost: list[str]) -> object:
    listed = value if isinstance(value, list) else [value]
    known = [kind.lower() for kind in listed if isinstance(kind, str) and kind.lower() in _TYPES]
    if not known or len(known) != len(listed):
        lost.append(f"{place} names no JSON type")
    return None if not known else known if isinstance(value, list) else known[0]


# --- tools ---------------------------------------------------------------------------------------------------------------


def in_dialect(parameters: Mapping[str, object], dialect: Dialect) -> tuple[Schema, list[str]]:
    """Return a tool's parameter schema in a dialect, and a clause for everything that it lost.

    The result is an object schema that the provider accepts, its keys in canonical order.
    """
    lost: list[str] = []
    try:
        given = json.loads(canonical_json(parameters))
    except InvalidMessage:
        return {"type": "object", "properties": {}}, ["the schema is no JSON"]
    schema = _rooted(sound(given, "", lost), given, lost, dialect)
    if dialect == "gemini":
        report = Narrowed(schema)
        return _Writer(report, _DIALECTS[dialect], promise=False).whole(), [*lost, *report.told]
    if dialect == "openai":
        _with_items(schema)
    return schema, lost


def not_strict(schema: Mapping[str, object]) -> str:
    """Return why OpenAI could not enforce a tool's schema as it is, or an empty text."""
    strict = narrowed(schema, "openai")
    if strict.obstacle or strict.required:
        return strict.obstacle or f"{strict.required[0]} may be left out"
    if strict.told:
        return f"{strict.told[0]} is not taken"
    return "" if strict.schema == schema else "an object in it is open, or a word in it is not taken"


def _rooted(schema: Any, given: object, lost: list[str], dialect: Dialect) -> Schema:  # noqa: ANN401 - what `sound` returns
    """Return a schema whose top level is an object with nothing but properties, as every provider demands."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        lost.append("the schema is not one of an object")
        return {"type": "object", "properties": {}}
    root = {"type": "object", **schema}
    for word in _COMBINED:
        for variant in root.pop(word, ()):
            added = sound(_resolved(variant, given).get("properties", {}), "", [], 1)
            root["properties"] = {**added, **root.get("properties", {})}
        if word in schema:
            lost.append(f"{word} at the top: the properties of all its cases are there, and which go together is not")
    barred = [word for word in ("enum", "not") if dialect == "openai" and root.pop(word, None) is not None]
    lost.extend(f"{word} at the top" for word in barred)
    root.setdefault("properties", {})
    return root


def _resolved(schema: object, root: object) -> Schema:
    """Follow one reference into the root's definitions."""
    target = schema
    if isinstance(schema, dict) and "$ref" in schema:
        target = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target.get(step) if isinstance(target, dict) else None
    return target if isinstance(target, dict) else {}


def _with_items(schema: object) -> None:
    """Let the items of every array be anything where they are not described: OpenAI asks for `items`."""
    inside = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    if isinstance(schema, dict) and schema.get("type") == "array":
        schema.setdefault("items", {})
    for child in inside:
        _with_items(child)


# --- dialects ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Keywords:
    """What one provider compiles.

    Attributes:
        words: The keywords that it knows, besides those with schemas.
        enum: What may be enumerated.
        formats: The formats that it knows; None for all.
        closed: Whether objects must name all their members.
        complete: Whether objects must require all their members.
        typed: Whether every schema must have a type.
        cycles: Whether a schema may contain itself.
        items: The values of `minItems` that it knows; None for all.
        levels: The most levels of objects and arrays; None for no published figure.
    """

    words: frozenset[str]
    enum: tuple[type, ...] = (str, int, float, bool, type(None))
    formats: frozenset[str] | None = None
    closed: bool = True
    complete: bool = False
    typed: bool = True
    cycles: bool = False
    items: frozenset[int] | None = None
    levels: int | None = None


_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_SHARED = frozenset({"type", "title", "description", "enum", "format", "minItems", "required"})
_BOUNDS = frozenset({"minimum", "maximum", "maxItems"})

_DIALECTS: Mapping[Dialect, _Keywords] = {
    "openai": _Keywords(
        words=_SHARED | _BOUNDS | {"const", "pattern", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"},
        formats=_FORMATS,
        complete=True,
        cycles=True,
        levels=10,
    ),
    "anthropic": _Keywords(  # a simple pattern is accepted too; which ones are simple is not published
        words=_SHARED | {"const"}, formats=_FORMATS | {"uri"}, items=frozenset({0, 1})
    ),
    "gemini": _Keywords(words=_SHARED | _BOUNDS, enum=(str, int, float), closed=False, typed=False),
}

_SILENT = frozenset({
    "$schema", "$id", "$comment", "$defs", "definitions", "examples", "example", "deprecated", "readOnly", "writeOnly", "discriminator",
    "contentEncoding", "contentMediaType", "xml", "externalDocs",
})  # fmt: skip
"""Keywords that say nothing about a value, or are written elsewhere."""
_HOLDERS = frozenset({"$ref", "properties", "additionalProperties", "items", "prefixItems", "anyOf", "oneOf", "allOf"})


@dataclass(slots=True)
class Narrowed:
    """A schema in a dialect.

    Attributes:
        schema: The schema.
        told: Keywords that only descriptions mention, each as `place.word`.
        required: Members that are required now and could be left out before, each by its place.
        obstacle: Why the dialect cannot say it, a clause; empty when it can.
    """

    schema: Schema
    told: list[str] = field(default_factory=list)
    required: list[str] = field(default_factory=list)
    obstacle: str = ""


def narrowed(schema: Mapping[str, Any], dialect: Dialect) -> Narrowed:
    """Return the schema of an answer in a dialect.

    Args:
        schema: A schema of an object whose references lead into itself, as `palaver.prompts.Format` has it.
        dialect: The provider's.
    """
    result = Narrowed(thaw(schema))
    try:
        result.schema = _Writer(result, _DIALECTS[dialect], promise=True).whole()
    except _CannotSay as reason:
        result.obstacle = str(reason)
    return result


class _CannotSay(Exception):
    """The dialect has no way to say something; the argument is the reason."""


class _Writer:
    """Writes one schema in one dialect."""

    def __init__(self, report: Narrowed, dialect: _Keywords, *, promise: bool) -> None:
        self._root = report.schema
        self._report = report
        self._dialect = dialect
        self._promise = promise
        self._defs: dict[str, Any] = {**self._root.get("definitions", {}), **self._root.get("$defs", {})}
        self._cyclic = frozenset(name for name in self._defs if name in self._reached(name))
        self._used: dict[str, None] = {}

    def whole(self) -> Schema:
        """Write the whole, with the definitions that it uses."""
        out = self._of(self._root, "", 0)
        definitions: dict[str, Any] = {}
        while waiting := [name for name in self._used if name not in definitions]:
            for name in waiting:
                definitions[name] = self._of(self._defs[name], f"$defs.{name}", 0)
        return out | ({"$defs": definitions} if definitions else {})

    def _of(self, schema: object, place: str, level: int) -> Schema:
        if not isinstance(schema, dict):
            if self._dialect.typed or schema is False:
                self._cannot(place, f"{place or 'it'} may be {'anything' if schema else 'nothing'}")
            return {}
        if "$ref" in schema:
            return self._reference(schema, place, level)
        if "allOf" in schema:
            return self._of(self._merged(schema, place), place, level)
        out: Schema = {}
        # In one order, whatever that of the keywords: a store does not keep it, and a recorded call compiles to the same bytes.
        told = [f"{word} {_json(schema[word])}" for word in sorted(schema) if self._tells(word, schema, place, out)]
        self._inside(schema, out, place, level)
        cases = [
            self._of(case, _at(place, f"{word}[{index}]"), level)
            for word in ("anyOf", "oneOf")  # as one: that no two cases of `oneOf` fit is judged when the answer comes
            for index, case in enumerate(schema.get(word, ()))
        ]
        out |= {"anyOf": cases} if cases else {}
        if self._dialect.typed and not out.keys() & {"type", "enum", "const", "anyOf", "$ref"}:
            self._cannot(place, f"{place or 'it'} may be anything")
        if told:
            out["description"] = " ".join(filter(None, (out.get("description", ""), f"({', '.join(told)})")))
        return out

    def _inside(self, schema: Schema, out: Schema, place: str, level: int) -> None:
        if "object" in _types(schema) or "properties" in schema:
            self._members(schema, out, place, self._entered(place, level))
        if "array" in _types(schema) or "items" in schema:
            self._elements(schema, out, place, self._entered(place, level))

    def _cannot(self, place: str, reason: str) -> None:
        """Refuse what an answer's schema cannot promise; note it for a tool's."""
        if self._promise:
            raise _CannotSay(reason)
        self._report.told.append(place or "the schema")

    def _entered(self, place: str, level: int) -> int:
        if self._dialect.levels is not None and level >= self._dialect.levels:
            self._cannot(place, f"{place or 'it'} is nested deeper than {self._dialect.levels} levels")
        return level + 1

    def _tells(self, word: str, schema: Schema, place: str, out: Schema) -> bool:
        """Write a keyword where the dialect knows it; return whether only a description can express it."""
        value, dialect = schema[word], self._dialect
        if word in _HOLDERS or word in _SILENT:
            return False
        kept = word in dialect.words
        if word == "format":
            kept = dialect.formats is None or value in dialect.formats
        elif word == "minItems":
            kept = dialect.items is None or value in dialect.items
        elif word in {"enum", "const"}:
            listed = value if word == "enum" else [value]
            kept = bool(listed) and all(isinstance(value, dialect.enum) and not self._is_odd(value) for value in listed)
            if kept and word not in dialect.words:
                word, value = "enum", listed
        if kept:
            out[word] = value
        elif word != "default":  # it says nothing about what may stand there
            self._report.told.append(_at(place, word))
        return not kept and not (word == "default" and value is None)

    def _is_odd(self, value: object) -> bool:
        """Return whether a value is a truth value where only numbers may be listed; for Python it is a number."""
        return isinstance(value, bool) and bool not in self._dialect.enum

    # --- nested schemas -------------------------------------------------------------------------------------------

    def _members(self, schema: Schema, out: Schema, place: str, level: int) -> None:
        properties = schema.get("properties", {})
        self._others(schema, out, place, level)
        required = [name for name in dict.fromkeys(schema.get("required", ())) if name in properties]
        if set(required) != set(schema.get("required", ())):
            self._report.told.append(_at(place, "required"))
        out["properties"] = {
            name: self._of(member, _at(place, f"properties.{name}"), level) for name, member in properties.items()
        }
        if self._dialect.complete:
            required = self._all(properties, required, place)
        out.pop("required", None)
        if required:
            out["required"] = required

    def _others(self, schema: Schema, out: Schema, place: str, level: int) -> None:
        """Write what members an object may have that it does not name."""
        more = schema.get("additionalProperties", not schema.get("properties"))
        if self._dialect.closed:
            if more is not False or "patternProperties" in schema:
                self._cannot(place, f"{place or 'it'} may have members of any name")
            out["additionalProperties"] = False
        elif isinstance(more, dict) and more:
            out["additionalProperties"] = self._of(more, _at(place, "additionalProperties"), level)
        elif "additionalProperties" in schema or "patternProperties" in schema:
            out["additionalProperties"] = more is not False or "patternProperties" in schema

    def _all(self, properties: Schema, required: list[str], place: str) -> list[str]:
        """Require all members, where null or a default says that one may be left out; in one order, as a store keeps none."""
        others = sorted(set(properties) - set(required))
        for name in others:
            member, where = properties[name], _at(place, f"properties.{name}")
            if not (isinstance(member, dict) and ("default" in member or self._may_be_null(member, 0))):
                self._cannot(where, f"{where} may be left out")
            self._report.required.append(where)
        return [*required, *others]

    def _may_be_null(self, schema: object, depth: int) -> bool:
        if not isinstance(schema, dict) or depth > len(self._defs) + 1:
            return False
        if "$ref" in schema:
            return self._may_be_null(self._defs.get(_definition(schema)), depth + 1)
        cases = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
        return "null" in _types(schema) or None in listed or any(self._may_be_null(case, depth + 1) for case in cases)

    def _elements(self, schema: Schema, out: Schema, place: str, level: int) -> None:
        if "prefixItems" in schema:
            if self._dialect.typed:
                self._cannot(place, f"{place or 'it'} says what each item is by its place")
            out["prefixItems"] = [self._of(item, _at(place, "prefixItems"), level) for item in schema["prefixItems"]]
        if "items" in schema or "prefixItems" not in schema:
            out["items"] = self._of(schema.get("items", True), _at(place, "items"), level)

    # --- references ---------------------------------------------------------------------------------------------------------

    def _reference(self, schema: Schema, place: str, level: int) -> Schema:
        """Keep a reference without other keywords; replace one with others, which no dialect accepts."""
        name = _definition(schema)
        beside = {word: value for word, value in schema.items() if word != "$ref" and word not in _SILENT}
        if name not in self._defs:
            self._cannot(place, f"{place or 'it'} refers to {schema['$ref']}, which is no definition")
            return self._of(beside, place, level)
        if name in self._cyclic and not self._dialect.cycles:
            self._cannot(place, "it holds itself")
            return {"type": "object", "properties": {}}
        if beside and name not in self._cyclic:
            return self._of({**self._defs[name], **beside} if isinstance(self._defs[name], dict) else {}, place, level)
        self._report.told += [_at(place, word) for word in beside if word not in {"description", "title"}]
        self._used.setdefault(name)
        return {"$ref": f"#/$defs/{name}"}

    def _merged(self, schema: Schema, place: str) -> Schema:
        """Put together the schemas of `allOf`: without loss where there is one."""
        parts = [part for part in schema["allOf"] if isinstance(part, dict)]
        if len(schema["allOf"]) != 1 or not parts:
            self._cannot(place, f"{place or 'it'} is made of several schemas")
        merged: Schema = {}
        for part in (*parts, {word: value for word, value in schema.items() if word != "allOf"}):
            properties = {**merged.get("properties", {}), **part.get("properties", {})}
            merged |= part | ({"properties": properties} if properties else {})
        return merged

    def _reached(self, name: str) -> frozenset[str]:
        """Return the definitions that one definition leads to, itself only when it contains itself."""
        reached: set[str] = set()
        waiting = list(_references(self._defs[name]))
        while waiting:
            inner = waiting.pop()
            if inner not in reached and inner in self._defs:
                reached.add(inner)
                waiting.extend(_references(self._defs[inner]))
        return frozenset(reached)


def _references(part: object) -> Iterator[str]:
    if isinstance(part, dict) and isinstance(part.get("$ref"), str):
        yield _definition(part)
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for child in inside:
        yield from _references(child)


def _definition(schema: Schema) -> str:
    """Return the name of the definition that a reference leads to."""
    return str(schema.get("$ref", "")).removeprefix("#/$defs/").removeprefix("#/definitions/")


def _types(schema: Schema) -> tuple[object, ...]:
    named = schema.get("type")
    return tuple(named) if isinstance(named, list) else (named,)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=repr)
