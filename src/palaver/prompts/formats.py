"""Formats: the structure an answer must have, one value for what is sent to the provider and what its answer is held to."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import CoreSchema, core_schema

from palaver.errors import InvalidPrompt, ParseError
from palaver.messages.frozen import FrozenDict, freeze, thaw
from palaver.messages.normalize import Change
from palaver.prompts.schema import examine
from palaver.tools.judging import Fault, faults

__all__ = ["Format"]

_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_NAME_LENGTH = 64
_FENCED = re.compile(r"```[ \t]*(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)
_REASONS = 10
"""Faults that an error names: a model repairs them one after another in any case."""


class Format:
    """The structure that an answer must have.

    Made of a Pydantic model, of anything else that Pydantic can validate (a dataclass, a TypedDict, `list[int]`, a union, a `TypeAdapter`),
    or of a JSON schema. Providers take objects only: what is none at the top stands under `value` in the schema and in `parse`, and comes
    back by itself from `read`.

    Attributes:
        name: What providers call it: letters, digits, `_` and `-`, at most 64; from the type's name or the schema's title.
        schema: The JSON schema of an object, read-only.
        strict: Whether a provider is asked to hold the model to the schema, where it and the schema permit that.
        description: What it is for, for the model; may be empty.
    """

    __slots__ = ("_adapter", "_source", "_wrapped", "description", "name", "schema", "strict")

    def __init__(self, source: object, name: str = "", *, description: str = "", strict: bool = True) -> None:
        """Read what the structure is to be.

        Raises:
            InvalidPrompt: It is no type and no JSON schema, has no JSON schema, or says what cannot be checked.
        """
        self._source = source
        self._adapter: TypeAdapter[Any] | None = None
        if isinstance(source, Mapping):
            given = _plain(source)
            examine(given)
        else:
            self._adapter = _adapter(source)
            given = _schema_of(self._adapter, source)
        rooted = _rooted(given)
        self._wrapped = rooted is None
        title = given.get("title") or getattr(source, "__name__", "") or ""
        self.name = _NAME.sub("_", name or str(title)).strip("_")[:_NAME_LENGTH] or "answer"
        self.schema: Mapping[str, Any] = _frozen(_wrapping(given) if rooted is None else rooted)
        self.strict = strict
        self.description = description

    def read(self, text: str) -> Any:  # noqa: ANN401 - whatever the type is
        """Give what an answer says: an instance of the type, or the JSON value when the format is a schema.

        Args:
            text: The answer: one JSON value, also within one fenced block.

        Raises:
            ParseError: It is no JSON, or does not hold to the format; the message has the reasons, `missing` the members that lack.
        """
        value = _value(text)
        if self._adapter is None:
            try:
                found = list(faults(self.schema, value))
            except RecursionError:
                found = [Fault("", "it is nested too deep")]
            if found:
                _refuse(text, found)
            return value["value"] if self._wrapped else value
        if self._wrapped:
            value = _unwrapped(value, text)
        try:
            return self._adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            _refuse(text, [_fault(each) for each in error.errors(include_url=False, include_input=False)])

    def parse(self, text: str) -> dict[str, Any]:
        """Give what an answer says as a JSON object: the members of the type, defaults included; under `value` what is no object.

        Raises:
            ParseError: As for `read`.
        """
        found = self.read(text)
        if self._adapter is not None:
            found = self._adapter.dump_python(found, mode="json", by_alias=True, fallback=str)
        return dict(found) if isinstance(found, dict) and not self._wrapped else {"value": found}

    def __eq__(self, other: object) -> bool:
        """Compare what a provider would see."""
        if not isinstance(other, Format):
            return NotImplemented
        return (self.name, self.schema, self.strict, self.description) == (
            other.name,
            other.schema,
            other.strict,
            other.description,
        )

    def __hash__(self) -> int:
        return hash((self.name, self.strict, self.description))

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling and copying: the validator is made again from the type."""
        return _again, (self._source, self.name, self.description, self.strict)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        """Let a format be a field that is stored: what a provider saw of it is kept, the type it was made of is not."""
        return core_schema.no_info_plain_validator_function(
            cls._restored,
            json_schema_input_schema=core_schema.dict_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(cls._stored),
        )

    @classmethod
    def _restored(cls, value: object) -> Format:
        if isinstance(value, Format):
            return value
        if not isinstance(value, Mapping) or "schema" not in value:
            raise ValueError("a format is stored as its name and its schema")
        told = {name: value[name] for name in ("description", "strict") if name in value}
        return cls(value["schema"], str(value.get("name", "")), **told)

    def _stored(self) -> dict[str, Any]:
        fields = {"name": self.name, "schema": thaw(self.schema), "description": self.description}
        return {**fields, "strict": self.strict}

    def __repr__(self) -> str:
        return f"Format({self.name!r})"


def _again(source: object, name: str, description: str, strict: bool) -> Format:  # noqa: FBT001 - what pickle calls
    return Format(source, name, description=description, strict=strict)


# --- schemas ---------------------------------------------------------------------------------------------------------------


def _plain(source: Mapping[str, Any]) -> dict[str, Any]:
    """Give a schema as JSON values; the envelopes that OpenAI's APIs put around one are opened."""
    given: object = source
    if source.get("type") == "json_schema":
        inner = source.get("json_schema", source)
        given = inner.get("schema") if isinstance(inner, Mapping) else inner
    if not isinstance(given, Mapping):
        raise InvalidPrompt(f"The format is a {type(given).__name__}, not a JSON schema.")
    plain: dict[str, Any] = thaw(_frozen(given))
    return plain


def _frozen(schema: Mapping[str, Any]) -> FrozenDict:
    changes: list[Change] = []
    frozen = freeze(dict(schema), "format", changes)
    if changes:
        raise InvalidPrompt(f"{changes[0].place} is no JSON value.")
    return FrozenDict(frozen)


def _adapter(source: object) -> TypeAdapter[Any]:
    if isinstance(source, TypeAdapter):
        return source
    if source is None or isinstance(source, str | bytes | int | float | list | tuple | set):
        raise InvalidPrompt(
            f"The format is {source!r}: no type and no JSON schema.",
            hint="Give a Pydantic model, a type, or a JSON schema as a mapping.",
        )
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("type", source))
    except (PydanticUserError, TypeError, NameError) as error:
        raise InvalidPrompt(
            f"The format {source!r} is no type that Pydantic can validate: {str(error).splitlines()[0]}"
        ) from error
    return adapter


def _schema_of(adapter: TypeAdapter[Any], source: object) -> dict[str, Any]:
    try:
        return adapter.json_schema()
    except PydanticUserError as error:
        raise InvalidPrompt(
            f"The format {source!r} has no JSON schema: {str(error).splitlines()[0]}",
            hint="Leave out what JSON cannot say, or give it a type of its own.",
        ) from error


def _rooted(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Give the schema with an object at its top, or None when it is not one of objects alone.

    A reference at the top, as models that hold themselves have it, is spelt out: providers take none there.
    """
    root = schema
    reference = str(schema.get("$ref", ""))
    if reference.startswith("#/$defs/"):
        root = {**schema["$defs"].get(reference.removeprefix("#/$defs/"), {}), "$defs": schema["$defs"]}
    return root if root.get("type") == "object" else None


def _wrapping(schema: dict[str, Any]) -> dict[str, Any]:
    """Give the schema of an object that has the value as its only member; definitions stay at the top, where references look."""
    inner = {word: _moved(value) for word, value in schema.items() if word not in {"$defs", "definitions", "$schema"}}
    kept: dict[str, Any] = {word: schema[word] for word in ("$defs", "definitions") if word in schema}
    return {
        "type": "object",
        "properties": {"value": inner},
        "required": ["value"],
        "additionalProperties": False,
        **kept,
    }


def _moved(part: Any) -> Any:  # noqa: ANN401 - a part of a schema
    """Give a part of a schema with its references to the top led to where that stands now."""
    if isinstance(part, list):
        return [_moved(each) for each in part]
    if not isinstance(part, dict):
        return part
    out = {word: _moved(value) for word, value in part.items()}
    reference = out.get("$ref")
    if isinstance(reference, str) and not reference.startswith(("#/$defs/", "#/definitions/")):
        out["$ref"] = "#/properties/value" + reference.removeprefix("#")
    return out


# --- answers ---------------------------------------------------------------------------------------------------------------


def _value(text: str) -> Any:  # noqa: ANN401 - a JSON value
    """Give the one JSON value that a text holds, or that its one fenced block holds."""
    blocks = _FENCED.findall(text)
    inside = blocks[0] if len(blocks) == 1 and not text.lstrip().startswith(("{", "[", '"')) else text
    try:
        return json.loads(inside, parse_constant=_constant, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        why = "is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ParseError(f"The answer is no JSON: {why}.", content=text) from error


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the member {twice!r} is given twice")
    return found


def _unwrapped(value: object, text: str) -> Any:  # noqa: ANN401 - a JSON value
    if not isinstance(value, dict) or "value" not in value:
        _refuse(text, [Fault("value", "missing")])
    return value["value"]


def _fault(error: Mapping[str, Any]) -> Fault:
    """Say a fault that Pydantic found in our words."""
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error["loc"]).removeprefix(".")
    return Fault(place, "missing" if error["type"] == "missing" else str(error["msg"]))


def _refuse(text: str, found: list[Fault]) -> NoReturn:
    shown = "; ".join(str(each) for each in found[:_REASONS])
    more = f"; and {len(found) - _REASONS} more" if len(found) > _REASONS else ""
    raise ParseError(
        f"The answer does not hold to the format. {shown}{more}.",
        content=text,
        missing=[each.place for each in found if each.what.startswith("missing")],
    )
