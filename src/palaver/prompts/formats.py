"""Formats: the structure of an answer, used for the provider's schema and for validation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import CoreSchema, core_schema

from palaver.errors import InvalidInput, ParseError
from palaver.messages.frozen import FrozenDict, Replaced, freeze, thaw
from palaver.plurals import a_type
from palaver.tools.schemas import SchemaViolation, require_checkable, violations

_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_NAME_LENGTH = 64  # OpenAI's limit for the name of a response format
_FENCED = re.compile(r"```[ \t]*(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)
_MOST_REASONS = 10


class Format:
    """The structure that an answer must have.

    Built from a Pydantic model, from another type that Pydantic validates (a dataclass, a TypedDict, `list[int]`, a union, a
    `TypeAdapter`), or from a JSON schema. Providers accept only objects: another type is under `value` in the schema and in
    `parse`, and `read` returns it directly.

    Attributes:
        name: Its name for providers: letters, digits, `_` and `-`, at most 64; from the type's name or the schema's title.
        schema: The JSON schema of an object, read-only.
        strict: Whether to ask the provider to enforce the schema, if the provider and the schema allow that.
        description: Its purpose, for the model; may be empty.
    """

    __slots__ = ("_adapter", "_source", "_wrapped", "description", "name", "schema", "strict")

    def __init__(self, source: object, name: str = "", *, description: str = "", strict: bool = True) -> None:
        """Read the structure.

        Raises:
            InvalidInput: It is neither a type nor a JSON schema, has no JSON schema, or cannot be checked.
        """
        self._source = source
        self._adapter: TypeAdapter[Any] | None = None
        if isinstance(source, Mapping):
            given = _unpacked(source)
            require_checkable(given)
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

    def read(self, text: str) -> Any:  # noqa: ANN401 - an instance of the type
        """Return the value of an answer: an instance of the type, or the JSON value if the format is a schema.

        Args:
            text: The answer: one JSON value, bare or in one fenced block.

        Raises:
            ParseError: It is not JSON or does not fit the format. The message has the reasons, `missing` the absent members.
        """
        value = _json_value(text)
        if self._adapter is None:
            _require(violations(self.schema, value), text)
            return value["value"] if self._wrapped else value
        if self._wrapped:
            if not isinstance(value, dict) or "value" not in value:
                _require([SchemaViolation("", "'value' is a required property", "value")], text)
            value = value["value"]
        try:
            return self._adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            return _require(map(_violation, error.errors(include_url=False, include_input=False)), text)

    def parse(self, text: str) -> dict[str, Any]:
        """Return an answer as a JSON object: the members of the type, including defaults; any other value under `value`.

        Raises:
            ParseError: As for `read`.
        """
        value = self.read(text)
        if self._adapter is not None:
            value = self._adapter.dump_python(value, mode="json", by_alias=True, fallback=str)
        return dict(value) if isinstance(value, dict) and not self._wrapped else {"value": value}

    def _stored(self) -> dict[str, Any]:
        fields = {"name": self.name, "schema": thaw(self.schema), "description": self.description}
        return {**fields, "strict": self.strict}

    def __eq__(self, other: object) -> bool:
        """Compare the schemas as a provider sees them."""
        return self._stored() == other._stored() if isinstance(other, Format) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, self.strict, self.description))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as a call: the validator is built again from the type."""
        return _rebuilt, (self._source, self.name, self.description, self.strict)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        """Store a format as the provider sees it, without its Python type."""
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
        options = {name: value[name] for name in ("description", "strict") if name in value}
        return cls(value["schema"], str(value.get("name", "")), **options)

    def __repr__(self) -> str:
        return f"Format({self.name!r})"


def _rebuilt(source: object, name: str, description: str, strict: bool) -> Format:  # noqa: FBT001 - what pickle calls
    return Format(source, name, description=description, strict=strict)


# --- schemas ---------------------------------------------------------------------------------------------------------------


def _unpacked(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as plain JSON, without the envelopes of OpenAI's APIs."""
    given: object = source
    if source.get("type") == "json_schema":
        inner = source.get("json_schema", source)
        given = inner.get("schema") if isinstance(inner, Mapping) else inner
    if not isinstance(given, Mapping):
        raise InvalidInput(f"The format is {a_type(given)}, not a JSON schema.")
    plain: dict[str, Any] = thaw(_frozen(given))
    return plain


def _frozen(schema: Mapping[str, Any]) -> FrozenDict:
    changes: list[Replaced] = []
    frozen = freeze(dict(schema), "format", changes)
    if changes:
        raise InvalidInput(f"{changes[0].place} is not a JSON value.")
    return FrozenDict(frozen)


def _adapter(source: object) -> TypeAdapter[Any]:
    if isinstance(source, TypeAdapter):
        return source
    if source is None or isinstance(source, str | bytes | int | float | list | tuple | set):
        raise InvalidInput(
            f"The format is {source!r}, which is neither a type nor a JSON schema.",
            hint="Pass a Pydantic model, a type, or a JSON schema as a mapping.",
        )
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("type", source))
    except (PydanticUserError, TypeError, NameError) as error:
        raise InvalidInput(
            f"The format {source!r} is not a type that Pydantic can validate: {str(error).splitlines()[0]}"
        ) from error
    return adapter


def _schema_of(adapter: TypeAdapter[Any], source: object) -> dict[str, Any]:
    try:
        return adapter.json_schema()
    except PydanticUserError as error:
        raise InvalidInput(f"The format {source!r} has no JSON schema: {str(error).splitlines()[0]}") from error


def _rooted(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema with an object at its top, or None if it describes anything else.

    A reference at the top, as in a recursive model, is resolved, because providers do not accept it.
    """
    reference = str(schema.get("$ref", ""))
    if reference.startswith("#/$defs/"):
        schema = {**schema["$defs"].get(reference.removeprefix("#/$defs/"), {}), "$defs": schema["$defs"]}
    return schema if schema.get("type") == "object" else None


def _wrapping(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object whose only member is the value. Definitions stay at the top, where references point."""
    kept: dict[str, Any] = {word: schema[word] for word in ("$defs", "definitions") if word in schema}
    inner = {word: _moved(value) for word, value in schema.items() if word not in {*kept, "$schema"}}
    whole = {"type": "object", "properties": {"value": inner}, "required": ["value"], "additionalProperties": False}
    return {**whole, **kept}


def _moved(part: Any) -> Any:  # noqa: ANN401 - a part of a schema
    """Return a part of a schema with references to the top moved to its new place."""
    if isinstance(part, list):
        return [_moved(item) for item in part]
    if not isinstance(part, dict):
        return part
    out = {word: _moved(value) for word, value in part.items()}
    reference = out.get("$ref")
    if isinstance(reference, str) and not reference.startswith(("#/$defs/", "#/definitions/")):
        out["$ref"] = "#/properties/value" + reference.removeprefix("#")
    return out


# --- answers ---------------------------------------------------------------------------------------------------------------


def _json_value(text: str) -> Any:  # noqa: ANN401 - a JSON value
    """Return the one JSON value of a text, or of its one fenced block."""
    blocks = _FENCED.findall(text)
    inside = blocks[0] if len(blocks) == 1 and not text.lstrip().startswith(("{", "[", '"')) else text
    try:
        return json.loads(inside, parse_constant=_refuse_constant, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ParseError(f"The answer is not JSON: {why}.", content=text) from error


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the member {twice!r} occurs twice")
    return members


def _violation(error: Mapping[str, Any]) -> SchemaViolation:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error["loc"]).removeprefix(".")
    return SchemaViolation(place, str(error["msg"]), place if error["type"] == "missing" else "")


def _require(violations: Iterable[SchemaViolation], text: str) -> None:
    """Raise if an answer has violations."""
    reasons = list(violations)
    if not reasons:
        return
    shown = "; ".join(map(str, reasons[:_MOST_REASONS]))
    more = f"; and {len(reasons) - _MOST_REASONS} more" if len(reasons) > _MOST_REASONS else ""
    missing = [reason.missing for reason in reasons if reason.missing]
    raise ParseError(f"The answer does not fit the format. {shown}{more}.", content=text, missing=missing)
