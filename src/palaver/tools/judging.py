"""Whether arguments fit a JSON schema, and what a model has to hear where they do not.

The keywords of JSON Schema 2020-12 that providers and tools use are judged (validation, section 6; core, section 10). A keyword that
is not known here allows everything, `format` is an annotation, and only local references are followed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

from palaver.messages import canonical_json
from palaver.tools.schemas import Schema, resolve

__all__ = ["Fault", "expected", "faults", "fits", "shown"]

_SHOWN = 80
_MOST_LISTED = 12
_DEPTH = 64
_NUMBERS = (int, float)

Json: TypeAlias = Any
_Judge: TypeAlias = "Callable[[Any, Json, Schema], Iterator[Fault]]"


@dataclass(frozen=True, slots=True)
class Fault:
    """What does not fit: where, from the arguments' root (`filters[0].name`), and what is wrong there.

    Attributes:
        place: Where.
        what: What is wrong, in words.
        mismatch: Whether the value is something else altogether: of another type, or none of the values there are.
        constant: The one value that was expected, as it is shown, where that is what `what` says; it tells alternatives apart.
    """

    place: str
    what: str
    mismatch: bool = False
    constant: str = ""

    def __str__(self) -> str:
        """Give one line."""
        return f"{self.place}: {self.what}" if self.place else self.what

    def under(self, step: str) -> Fault:
        """Give the same fault seen from one level further out."""
        joint = "" if not self.place or self.place.startswith("[") else "."
        return replace(self, place=f"{step}{joint}{self.place}")


def fits(schema: Any, value: Json, root: Schema | None = None) -> bool:  # noqa: ANN401 - an object or a truth value
    """Tell whether a value fits a schema."""
    return next(faults(schema, value, root), None) is None


def faults(schema: Any, value: Json, root: Schema | None = None) -> Iterator[Fault]:  # noqa: ANN401 - an object or a truth value
    """Give what does not fit, nearest to the root first.

    Args:
        schema: The schema; `True` allows everything and `False` nothing.
        value: Any JSON value.
        root: What local references start from; the schema itself when not given.
    """
    root = root if root is not None else (schema if isinstance(schema, Mapping) else {})
    schema = resolve(schema, root)
    if schema is False:
        yield Fault("", "nothing is allowed here")
    if not isinstance(schema, Mapping):
        return
    wrong_type = False
    for fault in _type(schema, value):
        wrong_type = True
        yield fault
    if not wrong_type:
        for word, judge in _JUDGES.items():
            if word in schema:
                yield from judge(schema, value, root)


def _is(kind: object, value: Json) -> bool:
    if kind == "integer":
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    if kind == "number":
        return isinstance(value, _NUMBERS) and not isinstance(value, bool)
    known = _KINDS.get(str(kind))
    return known is None or isinstance(value, known)


_KINDS: Mapping[str, type | tuple[type, ...]] = MappingProxyType({
    "object": Mapping, "array": (list, tuple), "string": str, "boolean": bool, "null": type(None),
})  # fmt: skip


def _type(schema: Schema, value: Json) -> Iterator[Fault]:
    named = schema.get("type")
    kinds = named if isinstance(named, list | tuple) else [named] if named else []
    if kinds and not any(_is(kind, value) for kind in kinds):
        yield Fault("", f"expected {expected(schema)}, got {shown(value)}", mismatch=True)


def _enum(schema: Schema, value: Json, _root: Schema) -> Iterator[Fault]:
    if not any(_same(value, each) for each in schema["enum"]):
        near = (
            get_close_matches(value, [each for each in schema["enum"] if isinstance(each, str)], 1)
            if isinstance(value, str)
            else []
        )
        meant = f"; did you mean {shown(near[0])}?" if near else ""
        yield Fault("", f"expected {expected({'enum': schema['enum']})}, got {shown(value)}{meant}", mismatch=True)


def _const(schema: Schema, value: Json, _root: Schema) -> Iterator[Fault]:
    if not _same(value, schema["const"]):
        constant = shown(schema["const"])
        yield Fault("", f"expected {constant}, got {shown(value)}", mismatch=True, constant=constant)


def _same(one: Json, other: Json) -> bool:
    """Compare as JSON does: true is not 1, and 1.0 is 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _required(schema: Schema, value: Json, root: Schema) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        for name in schema["required"]:
            if name not in value:
                each = resolve(properties.get(name, True), root)
                constant = shown(each["const"]) if isinstance(each, Mapping) and "const" in each else ""
                yield Fault(_step(name), f"missing; expected {expected(each, root)}", constant=constant)


def _properties(schema: Schema, value: Json, root: Schema) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        for name, each in schema["properties"].items():
            if name in value:
                yield from (fault.under(_step(name)) for fault in faults(each, value[name], root))


def _additional(schema: Schema, value: Json, root: Schema) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        return
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for name in value:
        if name in known or any(_matches(pattern, name) for pattern in patterns):
            continue
        if schema["additionalProperties"] is False:
            near = get_close_matches(name, [each for each in known if each not in value], 1)
            meant = (
                f"; did you mean {near[0]!r}?"
                if near
                else f"; known are {_listed(known)}"
                if known
                else "; it takes none"
            )
            yield Fault(_step(name), f"unknown{meant}")
        else:
            yield from (fault.under(_step(name)) for fault in faults(schema["additionalProperties"], value[name], root))


def _patterns(schema: Schema, value: Json, root: Schema) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        for pattern, each in schema["patternProperties"].items():
            for name in value:
                if _matches(pattern, name):
                    yield from (fault.under(_step(name)) for fault in faults(each, value[name], root))


def _step(name: str) -> str:
    return name if name.isidentifier() else f"[{shown(name)}]"


def _items(schema: Schema, value: Json, root: Schema) -> Iterator[Fault]:
    if isinstance(value, list | tuple):
        first = len(schema.get("prefixItems", ()))
        for index, each in enumerate(value[first:], start=first):
            if schema["items"] is False:
                yield Fault(f"[{index}]", f"too many: at most {first} are expected")
            else:
                yield from (fault.under(f"[{index}]") for fault in faults(schema["items"], each, root))


def _prefix(schema: Schema, value: Json, root: Schema) -> Iterator[Fault]:
    if isinstance(value, list | tuple):
        for index, (part, each) in enumerate(zip(schema["prefixItems"], value, strict=False)):
            yield from (fault.under(f"[{index}]") for fault in faults(part, each, root))


def _any_of(schema: Schema, value: Json, root: Schema) -> Iterator[Fault]:
    yield from _branches(schema["anyOf"], value, root, schema)


def _one_of(schema: Schema, value: Json, root: Schema) -> Iterator[Fault]:
    fitting = sum(fits(each, value, root) for each in schema["oneOf"])
    if fitting > 1:
        yield Fault("", f"fits {fitting} of the alternatives, and may fit only one: {expected(schema, root)}")
    elif not fitting:
        yield from _branches(schema["oneOf"], value, root, schema)


def _branches(branches: Any, value: Json, root: Schema, schema: Schema) -> Iterator[Fault]:  # noqa: ANN401 - a list of schemas
    """Say what is wrong with the alternative that was meant: the one that the value is of by its type and its tags, if there is one."""
    found: list[list[Fault]] = []
    for each in branches:
        wrong = list(faults(each, value, root))
        if not wrong:
            return
        found.append(wrong)
    meant = [wrong for wrong in found if not any(_tells_apart(fault) for fault in wrong)]
    tags = [next((fault for fault in wrong if fault.constant and _tells_apart(fault)), None) for wrong in found]
    first = tags[0]
    if meant:
        yield from min(meant, key=len)
    elif first is not None and all(tag is not None and tag.place == first.place for tag in tags):
        constants = " or ".join(dict.fromkeys(tag.constant for tag in tags if tag is not None))
        yield Fault(first.place, first.what.replace(first.constant, constants, 1))
    else:
        yield Fault("", f"expected {expected(schema, root)}, got {shown(value)}", mismatch=True)


def _tells_apart(fault: Fault) -> bool:
    """Tell whether a fault says that another alternative was meant: the type, or a constant right inside."""
    return (fault.mismatch and not fault.place) or (bool(fault.constant) and not set(".[") & set(fault.place))


def _all_of(schema: Schema, value: Json, root: Schema) -> Iterator[Fault]:
    for each in schema["allOf"]:
        yield from faults(each, value, root)


def _not(schema: Schema, value: Json, root: Schema) -> Iterator[Fault]:
    if fits(schema["not"], value, root):
        yield Fault("", f"{shown(value)} is excluded")


def _bound(word: str, holds: Callable[[Any, Any], bool], said: str) -> _Judge:
    def judge(schema: Schema, value: Json, _root: Schema) -> Iterator[Fault]:
        if _is("number", value) and not holds(value, schema[word]):
            yield Fault("", f"must be {said} {schema[word]}, got {shown(value)}")

    return judge


def _length(word: str, kinds: tuple[type[Sized], ...], holds: Callable[[int, int], bool], said: str) -> _Judge:
    def judge(schema: Schema, value: Json, _root: Schema) -> Iterator[Fault]:
        if isinstance(value, kinds) and not holds(len(value), schema[word]):
            yield Fault("", f"must have {said.format(schema[word])}, has {len(value)}")

    return judge


def _multiple(schema: Schema, value: Json, _root: Schema) -> Iterator[Fault]:
    step = schema["multipleOf"]
    if (
        _is("number", value)
        and step
        and not math.isclose(value / step, round(value / step), rel_tol=1e-12, abs_tol=1e-12)
    ):
        yield Fault("", f"must be a multiple of {step}, got {shown(value)}")


def _pattern(schema: Schema, value: Json, _root: Schema) -> Iterator[Fault]:
    if isinstance(value, str) and not _matches(schema["pattern"], value):
        yield Fault("", f"must match {schema['pattern']}, got {shown(value)}")


def _matches(pattern: str, text: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Read a pattern; one that Python cannot read (JSON Schema's are ECMAScript's) excludes nothing."""
    try:
        return re.compile(pattern)
    except (re.error, TypeError):
        return None


def _unique(schema: Schema, value: Json, _root: Schema) -> Iterator[Fault]:
    if schema["uniqueItems"] and isinstance(value, list | tuple):
        for index, each in enumerate(value):
            if any(_same(each, other) for other in value[:index]):
                yield Fault(f"[{index}]", f"{shown(each)} is there twice")
                return


_LISTS = (list, tuple)
_JUDGES: Mapping[str, _Judge] = MappingProxyType({
    "enum": _enum,
    "const": _const,
    "required": _required,
    "properties": _properties,
    "patternProperties": _patterns,
    "additionalProperties": _additional,
    "prefixItems": _prefix,
    "items": _items,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "not": _not,
    "minimum": _bound("minimum", lambda value, bound: value >= bound, "at least"),
    "maximum": _bound("maximum", lambda value, bound: value <= bound, "at most"),
    "exclusiveMinimum": _bound("exclusiveMinimum", lambda value, bound: value > bound, "more than"),
    "exclusiveMaximum": _bound("exclusiveMaximum", lambda value, bound: value < bound, "less than"),
    "multipleOf": _multiple,
    "minLength": _length("minLength", (str,), lambda size, bound: size >= bound, "at least {} characters"),
    "maxLength": _length("maxLength", (str,), lambda size, bound: size <= bound, "at most {} characters"),
    "minItems": _length("minItems", _LISTS, lambda size, bound: size >= bound, "at least {} items"),
    "maxItems": _length("maxItems", _LISTS, lambda size, bound: size <= bound, "at most {} items"),
    "minProperties": _length("minProperties", (Mapping,), lambda size, bound: size >= bound, "at least {} entries"),
    "maxProperties": _length("maxProperties", (Mapping,), lambda size, bound: size <= bound, "at most {} entries"),
    "pattern": _pattern,
    "uniqueItems": _unique,
})  # fmt: skip


# --- in words ----------------------------------------------------------------------------------------------------------

_WORDS = MappingProxyType({
    "string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false", "null": "null",
    "array": "a list", "object": "an object",
})  # fmt: skip


def shown(value: Json) -> str:
    """Show a JSON value in few characters."""
    if isinstance(value, str):
        text = repr(value[: _SHOWN + 1])
    elif isinstance(value, Mapping | list | tuple):
        text = canonical_json(value).decode()
    else:
        text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def expected(schema: Any, root: Schema | None = None, depth: int = 0) -> str:  # noqa: ANN401 - an object or a truth value
    """Say in words what a schema expects."""
    schema = resolve(schema, root or {})
    if not isinstance(schema, Mapping) or not schema:
        return "anything"
    if "const" in schema:
        return shown(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(shown(each) for each in schema["enum"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            said = dict.fromkeys(expected(each, root, depth + 1) for each in schema[word])
            return " or ".join(said)
    named = schema.get("type")
    kinds = named if isinstance(named, list | tuple) else [named]
    return " or ".join(_kind(str(kind), schema, root, depth) for kind in kinds)


def _kind(kind: str, schema: Schema, root: Schema | None, depth: int) -> str:
    if kind == "array" and "items" in schema and depth < 2:  # noqa: PLR2004 - deeper, words explain nothing
        return f"a list, each {expected(schema['items'], root, depth + 1)}"
    if kind == "object" and schema.get("properties"):
        return f"an object with {_listed(schema['properties'])}"
    return _WORDS.get(kind, "anything")


def _listed(names: Mapping[str, Any]) -> str:
    some = list(names)[:_MOST_LISTED]
    return ", ".join(some) + (f" and {len(names) - len(some)} more" if len(names) > len(some) else "")
