"""Answer schemas in the dialects of providers that hold a model to them.

A provider that promises an answer of a schema compiles the schema to a grammar, and takes only what it can compile. A schema comes from
anywhere. What a dialect has no word for is said in the description instead: the model reads it there, and the answer is judged by the
whole schema when it comes. What a schema leaves open is closed, never the other way round: objects are closed, and members that may be
left out are asked for where null or a default says the same. Where a dialect cannot say a schema so, the reason is given, and the caller asks
in another way.

Sources:

* OpenAI: developers.openai.com/api/docs/guides/structured-outputs, «supported schemas»; «'default' is not permitted» and its like are the
  API's answers to other words.
* Anthropic: platform.claude.com/docs/en/build-with-claude/structured-outputs, «JSON schema limitations», and `transform_schema` of the
  ``anthropic`` package 2.12.
* Gemini: the reference of GenerationConfig.responseJsonSchema, which lists the words and says where a cycle may stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from palaver.messages import canonical_json, thaw

__all__ = ["AnswerDialect", "Narrowed", "narrowed"]

Schema: TypeAlias = dict[str, Any]
AnswerDialect: TypeAlias = Literal["openai", "anthropic", "gemini"]


@dataclass(slots=True)
class Narrowed:
    """A schema in a dialect.

    Attributes:
        schema: The schema.
        told: What is said in descriptions only, each as `place.word`.
        required: The members that are asked for now and could be left out before, each as its place.
        obstacle: Why the dialect cannot say it, a clause; empty when it can.
    """

    schema: Schema
    told: list[str] = field(default_factory=list)
    required: list[str] = field(default_factory=list)
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What one provider compiles.

    Attributes:
        words: The words that it has with their own meaning, beside those that hold schemas.
        formats: The formats it knows; None for all.
        enum: What may be enumerated.
        closed: Whether objects must name all their members.
        complete: Whether objects must require all their members.
        typed: Whether every schema must say what it is of.
        cycles: Where a schema may hold itself.
        least_items: The values of `minItems` it knows; None for all.
        levels: Levels of objects and arrays; None for no published figure.
        properties: Members of all objects together; None for no published figure.
    """

    words: frozenset[str]
    enum: tuple[type, ...]
    formats: frozenset[str] | None = None
    closed: bool = True
    complete: bool = False
    typed: bool = True
    cycles: Literal["anywhere", "optional", "nowhere"] = "anywhere"
    least_items: frozenset[int] | None = None
    levels: int | None = None
    properties: int | None = None


_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_PRIMITIVE = (str, int, float, bool, type(None))
_SHARED = frozenset({"type", "title", "description", "enum", "format", "minItems", "required"})

_DIALECTS: Mapping[AnswerDialect, _Dialect] = MappingProxyType(
    {
        "openai": _Dialect(
            words=_SHARED
            | {
                "const",
                "pattern",
                "multipleOf",
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "maxItems",
            },
            enum=_PRIMITIVE,
            formats=_FORMATS,
            complete=True,
            levels=10,
            properties=5000,
        ),
        "anthropic": _Dialect(
            words=_SHARED | {"const"},  # a simple pattern is taken too; which ones are simple is not said
            enum=_PRIMITIVE,
            formats=_FORMATS | {"uri"},
            cycles="nowhere",
            least_items=frozenset({0, 1}),
        ),
        "gemini": _Dialect(
            words=_SHARED | {"minimum", "maximum", "maxItems"},
            enum=(str, int, float),
            closed=False,
            typed=False,
            cycles="optional",
        ),
    }
)

_SILENT = frozenset({
    "$schema", "$id", "$comment", "$defs", "definitions", "examples", "example", "deprecated", "readOnly", "writeOnly", "discriminator",
    "contentEncoding", "contentMediaType", "xml", "externalDocs",
})  # fmt: skip
"""Words that say nothing about a value, or stand elsewhere."""

_HOLDERS = frozenset({
    "$ref", "properties", "additionalProperties", "patternProperties", "items", "prefixItems", "anyOf", "oneOf", "allOf",
})  # fmt: skip


def narrowed(schema: Mapping[str, Any], dialect: AnswerDialect) -> Narrowed:
    """Give the schema of an answer in a dialect.

    Args:
        schema: A schema of an object whose references lead into itself, as `palaver.prompts.Format` has it.
        dialect: The provider's.
    """
    found = Narrowed(thaw(schema))
    try:
        found.schema = _Writer(found, _DIALECTS[dialect]).whole()
    except _CannotSay as reason:
        found.obstacle = str(reason)
    return found


class _CannotSay(Exception):
    """The dialect has no way to say something; the argument is the reason."""


@dataclass(frozen=True, slots=True)
class _Here:
    """Where in a schema we are.

    Attributes:
        place: For messages.
        level: Objects and arrays around this.
        optional: Whether a member that may be left out lies between this and the definition that it stands in.
        inside: Whether this stands in a definition that holds itself.
    """

    place: str = ""
    level: int = 0
    optional: bool = False
    inside: bool = False

    def within(self, step: str, *, optional: bool = False, deeper: bool = False) -> _Here:
        """Go a step further in."""
        place = f"{self.place}.{step}" if self.place else step
        return _Here(place, self.level + deeper, self.optional or optional, self.inside)


class _Writer:
    """Writes one schema in one dialect."""

    def __init__(self, found: Narrowed, dialect: _Dialect) -> None:
        self._root = found.schema
        self._found = found
        self._dialect = dialect
        self._defs: dict[str, Any] = {**self._root.get("definitions", {}), **self._root.get("$defs", {})}
        self._cyclic = frozenset(name for name in self._defs if name in self._reached(name))
        self._used: dict[str, None] = {}
        self._properties = 0

    def whole(self) -> Schema:
        """Write the whole, with the definitions that it uses."""
        out = self._of(self._root, _Here())
        definitions: dict[str, Any] = {}
        while waiting := [name for name in self._used if name not in definitions]:
            for name in waiting:
                here = _Here(f"$defs.{name}", inside=name in self._cyclic)
                definitions[name] = self._of(self._defs[name], here)
        return out | ({"$defs": definitions} if definitions else {})

    def _of(self, schema: object, here: _Here) -> Schema:
        if not isinstance(schema, dict):
            if self._dialect.typed or schema is False:
                raise _CannotSay(f"{_named(here)} may be {'anything' if schema else 'nothing'}")
            return {}
        if "$ref" in schema:
            return self._reference(schema, here)
        if "allOf" in schema:
            return self._of(self._one_of_all(schema, here), here)
        out: Schema = {}
        # In one order, whatever that of the words: a store does not keep it, and a recorded call compiles to the same bytes.
        told = [_said(word, schema[word]) for word in sorted(schema) if self._tells(word, schema, here, out)]
        self._members(schema, out, here)
        self._elements(schema, out, here)
        self._cases(schema, out, here)
        if self._dialect.typed and not out.keys() & {"type", "enum", "const", "anyOf", "$ref"}:
            raise _CannotSay(f"{_named(here)} may be anything")
        if told:
            out["description"] = " ".join(filter(None, (out.get("description", ""), f"({', '.join(told)})")))
        return out

    def _tells(self, word: str, schema: Schema, here: _Here, out: Schema) -> bool:
        """Write a word where the dialect has it; tell whether it can only be told."""
        value, dialect = schema[word], self._dialect
        if word in _HOLDERS or word in _SILENT:
            return False
        kept = word in dialect.words
        if word == "format":
            kept = dialect.formats is None or value in dialect.formats
        elif word == "minItems":
            kept = dialect.least_items is None or value in dialect.least_items
        elif word in {"enum", "const"}:
            listed = value if word == "enum" else [value]
            kept = bool(listed) and all(isinstance(each, dialect.enum) and not self._is_odd(each) for each in listed)
            if kept and word not in dialect.words:
                word, value = "enum", listed
        if kept:
            out[word] = value
        elif word != "default":  # says nothing about what may stand there
            self._tell(word, here)
        return not kept and not (word == "default" and value is None)

    def _tell(self, word: str, here: _Here) -> None:
        """Take down that a word is no part of the schema any more."""
        self._found.told.append(f"{here.place}.{word}".lstrip("."))

    def _is_odd(self, value: object) -> bool:
        """Tell a truth value where only numbers may be listed: Python takes one for the other."""
        return isinstance(value, bool) and bool not in self._dialect.enum

    # --- what holds other schemas -------------------------------------------------------------------------------------------

    def _members(self, schema: Schema, out: Schema, here: _Here) -> None:
        if "properties" not in schema and "object" not in _types(schema):
            return
        self._enter(here)
        properties = schema.get("properties", {})
        self._properties += len(properties)
        if self._dialect.properties is not None and self._properties > self._dialect.properties:
            raise _CannotSay(f"it has more than {self._dialect.properties} members")
        self._others(schema, out, here)
        required = [name for name in schema.get("required", ()) if name in properties]
        if len(required) < len(schema.get("required", ())):
            self._tell("required", here)
        out["properties"] = {
            name: self._of(each, here.within(f"properties.{name}", optional=name not in required, deeper=True))
            for name, each in properties.items()
        }
        if self._dialect.complete:
            required = self._all(properties, required, here)
        out.pop("required", None)
        if required:
            out["required"] = required

    def _others(self, schema: Schema, out: Schema, here: _Here) -> None:
        """Write what members an object may have that it does not name."""
        more = schema.get("additionalProperties", not schema.get("properties"))
        if self._dialect.closed:
            if more is not False or "patternProperties" in schema:
                raise _CannotSay(f"{_named(here)} may have members of any name")
            out["additionalProperties"] = False
            return
        if "patternProperties" in schema:
            self._tell("patternProperties", here)
            more = True
        if isinstance(more, dict) and more:
            out["additionalProperties"] = self._of(
                more, here.within("additionalProperties", optional=True, deeper=True)
            )
        elif "additionalProperties" in schema:
            out["additionalProperties"] = bool(more) or more == {}

    def _all(self, properties: Schema, required: list[str], here: _Here) -> list[str]:
        """Require all members, where what may be left out can be said by null or a default.

        In an order that does not depend on that of the members, which a store does not keep: a recorded call compiles to the same bytes.
        """
        others = sorted(set(properties) - set(required))
        for name in others:
            each, place = properties[name], f"{here.place}.properties.{name}".lstrip(".")
            if not (isinstance(each, dict) and ("default" in each or self._may_be_null(each, 0))):
                raise _CannotSay(f"{place} may be left out")
            self._found.required.append(place)
        return [*required, *others]

    def _may_be_null(self, schema: object, depth: int) -> bool:
        if not isinstance(schema, dict) or depth > len(self._defs) + 1:
            return False
        if "$ref" in schema:
            return self._may_be_null(self._defs.get(_definition(schema)), depth + 1)
        cases = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
        return "null" in _types(schema) or None in listed or any(self._may_be_null(case, depth + 1) for case in cases)

    def _elements(self, schema: Schema, out: Schema, here: _Here) -> None:
        if "array" not in _types(schema) and "items" not in schema:
            return
        self._enter(here)
        if "prefixItems" in schema:
            if self._dialect.typed:
                raise _CannotSay(f"{_named(here)} says what each item is by its place")
            inner = here.within("prefixItems", optional=True, deeper=True)
            out["prefixItems"] = [self._of(each, inner) for each in schema["prefixItems"]]
        if "items" in schema or "prefixItems" not in schema:
            out["items"] = self._of(schema.get("items", True), here.within("items", deeper=True))

    def _cases(self, schema: Schema, out: Schema, here: _Here) -> None:
        """Write `oneOf` as `anyOf`, as dialects have it: that no two cases fit is judged when the answer comes."""
        for word in ("anyOf", "oneOf"):
            if word in schema:
                out["anyOf"] = [
                    *out.get("anyOf", ()),
                    *(self._of(case, here.within(f"{word}[{index}]")) for index, case in enumerate(schema[word])),
                ]

    def _enter(self, here: _Here) -> None:
        if self._dialect.levels is not None and here.level >= self._dialect.levels:
            raise _CannotSay(f"{_named(here)} is nested deeper than {self._dialect.levels} levels")

    # --- references ---------------------------------------------------------------------------------------------------------

    def _reference(self, schema: Schema, here: _Here) -> Schema:
        """Keep a reference that stands alone; put in what it names where other words stand beside it, which no dialect takes."""
        name = _definition(schema)
        beside = {word: value for word, value in schema.items() if word != "$ref" and word not in _SILENT}
        if name not in self._defs:
            raise _CannotSay(f"{_named(here)} refers to {schema['$ref']}, which is no definition")
        if name in self._cyclic:
            self._circle(here)
        elif beside:
            return self._of({**self._defs[name], **beside} if isinstance(self._defs[name], dict) else {}, here)
        for word in beside:
            if word not in {"description", "title"}:
                self._tell(word, here)
        self._used.setdefault(name)
        return {"$ref": f"#/$defs/{name}"}

    def _circle(self, here: _Here) -> None:
        if self._dialect.cycles == "nowhere":
            raise _CannotSay("it holds itself")
        if self._dialect.cycles == "optional" and here.inside and not here.optional:
            raise _CannotSay(f"it holds itself in {_named(here)}, which may not be left out")

    def _one_of_all(self, schema: Schema, here: _Here) -> Schema:
        if len(schema["allOf"]) != 1 or not isinstance(schema["allOf"][0], dict):
            raise _CannotSay(f"{_named(here)} is made of several schemas")
        rest = {word: value for word, value in schema.items() if word != "allOf"}
        return {**schema["allOf"][0], **rest}

    def _reached(self, name: str) -> frozenset[str]:
        """Give the definitions that one definition leads to, itself among them only when it holds itself."""
        reached: set[str] = set()
        waiting = list(_references(self._defs[name]))
        while waiting:
            each = waiting.pop()
            if each not in reached and each in self._defs:
                reached.add(each)
                waiting.extend(_references(self._defs[each]))
        return frozenset(reached)


def _references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield _definition(part)
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)


def _definition(schema: Schema) -> str:
    """Name the definition that a reference leads to."""
    return str(schema["$ref"]).removeprefix("#/$defs/").removeprefix("#/definitions/")


def _types(schema: Schema) -> tuple[object, ...]:
    named = schema.get("type")
    return tuple(named) if isinstance(named, list) else (named,)


def _named(here: _Here) -> str:
    return here.place or "it"


def _said(word: str, value: object) -> str:
    """Say a word of a schema where the dialect does not have it: to the model, in the description."""
    return f"{word} {_json(value)}"


def _json(value: object) -> str:
    return canonical_json(value).decode()
