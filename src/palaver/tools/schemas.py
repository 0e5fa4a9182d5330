"""JSON schemas of tools and answers: declare types to a model, and validate values.

A schema may come from anywhere, such as an MCP server, so checking is bounded: patterns run in pydantic-core's linear-time
engine, a value follows at most `_MOST_REFERENCES` references, and nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from pydantic_core import SchemaError, SchemaValidator, core_schema

from palaver.errors import InvalidInput
from palaver.messages import FrozenDict, thaw

Schema: TypeAlias = Mapping[str, Any]

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES = frozenset({"default", "const", "enum", "examples"})
_NOT_CHECKED = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef")
_MOST_REFERENCES = 30_000
"""The maximum references that one check follows. A recursive schema needs about one for each node of the value; more is an attack."""
_LONGEST = 300
"""The maximum characters of one violation, which quotes the value."""


class SchemaViolation(NamedTuple):
    """One way in which a value breaks its schema.

    Attributes:
        place: The path from the root: `filters[0].name`; empty for the root itself.
        message: The violation.
        missing: The name of a missing member, or empty.
    """

    place: str
    message: str
    missing: str = ""

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.place}: {self.message}" if self.place else self.message


# --- declaring ---------------------------------------------------------------------------------------------------------


def close_objects(schema: Schema) -> dict[str, Any]:
    """Return a schema of Pydantic with closed objects and without titles.

    In a closed object, a misspelt argument is an error. A tagged union becomes an `anyOf`, and a reference with a
    description goes into a separate `anyOf`: OpenAI's strict mode accepts nothing else.
    """
    plain: dict[str, Any] = _tidy(thaw(schema))
    return plain


def _tidy(part: Any) -> Any:  # noqa: ANN401 - any part of a schema
    if isinstance(part, list):
        return [_tidy(item) for item in part]
    if not isinstance(part, dict):
        return part
    out = {word: _tidy_word(word, value) for word, value in part.items() if word not in {"title", "discriminator"}}
    if "discriminator" in part and "oneOf" in out:
        out["anyOf"] = out.pop("oneOf")
    if "$ref" in out and len(out) > 1:
        out = {"anyOf": [{"$ref": out.pop("$ref")}], **out}
    if out.get("type") == "object" and "properties" in out:
        out.setdefault("additionalProperties", False)
    return out


def _tidy_word(word: str, value: Any) -> Any:  # noqa: ANN401 - any part of a schema
    if word in _NAMED and isinstance(value, dict):
        return {name: _tidy(item) for name, item in value.items()}
    return value if word in _VALUES else _tidy(value)


_STRICT_WORDS = frozenset({
    "type", "anyOf", "$ref", "$defs", "enum", "const", "properties", "required", "additionalProperties", "items", "description",
    "title", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems",
    "maxItems",
})  # fmt: skip


def is_strict(schema: Schema) -> bool:
    """Return whether OpenAI's strict mode accepts a schema: every object closed, every property required, known keywords.

    Source: developers.openai.com/api/docs/guides/structured-outputs, "Supported schemas".
    """
    return schema.get("type") == "object" and "anyOf" not in schema and _strict(schema)


def _strict(part: object) -> bool:
    if not isinstance(part, Mapping) or not part.keys() <= _STRICT_WORDS:
        return False
    if not {"type", "anyOf", "$ref", "enum", "const"} & part.keys():
        return False
    if part.get("type") == "object" and part.get("additionalProperties") is not False:
        return False
    if part.get("properties", {}).keys() - set(part.get("required", ())):
        return False
    if part.get("type") == "array" and "items" not in part:
        return False
    inside = [*part.get("properties", {}).values(), *part.get("$defs", {}).values(), *part.get("anyOf", ())]
    return all(map(_strict, [*inside, *([part["items"]] if "items" in part else [])]))


# --- checking ----------------------------------------------------------------------------------------------------------


def violations(schema: Schema, value: object) -> list[SchemaViolation]:
    """Return the violations of a JSON value, or an empty list. Never raises.

    An invalid schema, or a pattern that the linear engine does not support, allows everything.
    """
    frozen = FrozenDict(schema)
    if not _is_schema(frozen):
        return []
    jsonschema = import_module("jsonschema")
    followed = _FOLLOWED.set([0])
    try:
        errors = _validator(frozen).iter_errors(value)
        return [_violation(jsonschema.exceptions.best_match([error])) for error in errors]
    except RecursionError:
        return [SchemaViolation("", "the value is nested too deep")]
    except _TooManyReferencesError:
        return [SchemaViolation("", "the schema is too complex to check this value")]
    finally:
        _FOLLOWED.reset(followed)


def require_checkable(schema: Schema) -> None:
    """Raise unless every keyword of a schema can be checked.

    Raises:
        InvalidInput: It is not a JSON schema (draft 2020-12), or a reference, a pattern or a keyword is not supported.
    """
    jsonschema = import_module("jsonschema")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.exceptions.SchemaError as error:
        raise InvalidInput(
            f"The format is not a JSON schema: {error.json_path}: {error.message[:_LONGEST]}."
        ) from error
    except RecursionError as error:
        raise InvalidInput("The format is nested too deep to be a JSON schema.") from error
    resolver = _validator(FrozenDict(schema))._resolver  # noqa: SLF001 - the library has no public look-up
    for bad in unchecked(schema):
        raise InvalidInput(
            f"The format uses {bad}, which cannot be checked in linear time.", hint="Use other keywords."
        )
    for word, value in _words(schema):
        if word == "$ref":
            _require_target(resolver, value)


def unchecked(schema: Schema) -> Iterator[str]:
    """Yield what `violations` does not check: keywords, and patterns with look-around or back-references."""
    for word, value in _words(schema):
        if word in _NOT_CHECKED:
            yield word
        patterns = (value,) if word == "pattern" else value if word == "patternProperties" else ()
        for pattern in patterns if isinstance(patterns, tuple | Mapping) else ():
            if isinstance(pattern, str) and _matcher(pattern) is None:
                yield f"the pattern {pattern!r}"


def _require_target(resolver: Any, reference: str) -> None:  # noqa: ANN401 - jsonschema's
    try:
        resolver.lookup(reference)
    except Exception as error:  # the library raises several kinds
        raise InvalidInput(f"The format has the reference {reference!r}, which matches nothing.") from error


def _words(part: object) -> Iterator[tuple[str, Any]]:
    """Yield the keywords of a schema and of the schemas in it, with their values."""
    if isinstance(part, list | tuple):
        for item in part:
            yield from _words(item)
    elif isinstance(part, Mapping):
        for word, value in part.items():
            if word not in _VALUES:
                yield word, value
                yield from _words(tuple(value.values()) if word in _NAMED and isinstance(value, Mapping) else value)


def _violation(error: Any) -> SchemaViolation:  # noqa: ANN401 - jsonschema's
    message = error.message if len(error.message) <= _LONGEST else f"{error.message[:_LONGEST]}…"
    required = error.validator_value if error.validator == "required" else ()
    missing = next((name for name in required if message.startswith(f"{name!r} ")), "")
    return SchemaViolation(error.json_path.removeprefix("$").removeprefix("."), message, missing)


class _TooManyReferencesError(Exception):
    """A check follows more references than any reasonable schema needs."""


_FOLLOWED: ContextVar[list[int]] = ContextVar("palaver_references_followed")


@lru_cache(maxsize=256)
def _is_schema(schema: FrozenDict) -> bool:
    jsonschema = import_module("jsonschema")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except (jsonschema.exceptions.SchemaError, RecursionError):
        return False
    return True


def _validator(schema: FrozenDict) -> Any:  # noqa: ANN401 - jsonschema's
    return _kind()(schema, registry=import_module("referencing").Registry())  # its own registry fetches


@cache
def _kind() -> Any:  # noqa: ANN401 - a class of jsonschema's
    """Return the validator class, with bounded versions of the library's keywords."""
    jsonschema = import_module("jsonschema")
    own = {"$ref": _ref, "pattern": _pattern, "patternProperties": _by_pattern, "additionalProperties": _additional}
    ignored = dict.fromkeys(_NOT_CHECKED, lambda *_: ())
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, {**own, **ignored})


def _invalid(message: str) -> Any:  # noqa: ANN401 - jsonschema's
    return import_module("jsonschema").ValidationError(message)


def _ref(validator: Any, target: str, instance: Any, schema: Any) -> Iterator[Any]:  # noqa: ANN401 - jsonschema's
    followed = _FOLLOWED.get()
    followed[0] += 1
    if followed[0] > _MOST_REFERENCES:
        raise _TooManyReferencesError
    with suppress(import_module("referencing").exceptions.Unresolvable):
        yield from import_module("jsonschema").Draft202012Validator.VALIDATORS["$ref"](
            validator, target, instance, schema
        )


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:  # noqa: ANN401 - jsonschema's
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield _invalid(f"{instance!r} does not match {pattern!r}")


def _by_pattern(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[Any]:  # noqa: ANN401 - jsonschema's
    for pattern, inner in patterns.items() if isinstance(instance, dict) else ():
        for name in [name for name in instance if _matches(pattern, name)]:
            yield from validator.descend(instance[name], inner, path=name, schema_path=pattern)


def _additional(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[Any]:  # noqa: ANN401 - jsonschema's
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in instance if isinstance(instance, dict) else ():
        if name in known or any(_matches(pattern, name) for pattern in patterns):
            continue
        if inner is False:
            yield _invalid(f"{name!r} is not an expected property. Expected: {', '.join(known) or 'none'}")
        else:
            yield from validator.descend(instance[name], inner, path=name)


def _matches(pattern: str, text: str) -> bool:
    matcher = _matcher(pattern)
    return matcher is None or matcher.isinstance_python(text)


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> SchemaValidator | None:
    """Return a linear-time matcher for a pattern; None for one with look-around or back-references, which no such engine has."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except (SchemaError, TypeError):
        return None
