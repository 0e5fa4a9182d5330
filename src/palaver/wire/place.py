"""Rules and shapes: the rules that a request can break, a violation of one, its place in the request, and the shape of valid values.

A shape is plain data: a type; a `frozenset` of allowed strings; a list with the shape of its elements; or a dict of an object's fields, where ``name?`` may
be missing and ``*`` permits others. A tuple lists alternatives of different JSON types, with None for null. Rules over more than
one field are functions in the validators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

_SHOWN = 60  # characters of a value in a message: enough to recognise it, never a whole payload


class Breach(StrEnum):
    """The rules that a request can break, named after the fault; the values are stable ids."""

    # The body as JSON
    NOT_JSON = "not-json"
    LONE_SURROGATE = "lone-surrogate"
    NUL = "nul"
    REQUEST_BYTES = "request-bytes"
    # Fields and their values
    FIELD_MISSING = "field-missing"
    FIELD_UNKNOWN = "field-unknown"
    FIELD_TYPE = "field-type"
    FIELD_VALUE = "field-value"
    LIST_LENGTH = "list-length"
    PARAMETER_CONFLICT = "parameter-conflict"
    PARAMETER_REFUSED = "parameter-refused"
    JSON_WORD = "json-word"
    # Roles and turns
    ROLE_UNKNOWN = "role-unknown"
    ROLE_FIRST = "role-first"
    ROLE_ALTERNATION = "role-alternation"
    ROLE_LAST = "role-last"
    SYSTEM_PLACE = "system-place"
    # Content
    BLOCK_KIND = "block-kind"
    BLOCK_PLACE = "block-place"
    MESSAGE_EMPTY = "message-empty"
    TEXT_EMPTY = "text-empty"
    TEXT_TRAILING = "text-trailing"
    TEXT_LENGTH = "text-length"
    PARTICIPANT_NAME = "participant-name"
    # Calls and their results
    CALL_ID = "call-id"
    CALL_DUPLICATE = "call-duplicate"
    CALL_UNANSWERED = "call-unanswered"
    CALL_PLACE = "call-place"
    CALL_ARGUMENTS = "call-arguments"
    CALL_COUNT = "call-count"
    RESULT_ORPHAN = "result-orphan"
    RESULT_DUPLICATE = "result-duplicate"
    RESULT_PLACE = "result-place"
    RESULT_COUNT = "result-count"
    RESULT_NAME = "result-name"
    PROVIDER_CALL = "provider-call"
    # Reasoning
    THINKING_SIGNATURE = "thinking-signature"
    THINKING_FIRST = "thinking-first"
    THINKING_LAST = "thinking-last"
    THINKING_OFF = "thinking-off"
    THINKING_BUDGET = "thinking-budget"
    REASONING_FOLLOW = "reasoning-follow"
    ITEM_ID = "item-id"
    ITEM_DUPLICATE = "item-duplicate"
    ITEM_UNSTORED = "item-unstored"
    # Media
    MEDIA_KIND = "media-kind"
    MEDIA_DATA = "media-data"
    MEDIA_MISMATCH = "media-mismatch"
    MEDIA_BYTES = "media-bytes"
    MEDIA_SIDE = "media-side"
    MEDIA_COUNT = "media-count"
    MEDIA_URL = "media-url"
    # Tools
    TOOL_NAME = "tool-name"
    TOOL_DUPLICATE = "tool-duplicate"
    TOOL_COUNT = "tool-count"
    TOOL_SCHEMA = "tool-schema"
    TOOL_CHOICE = "tool-choice"
    TOOLS_MISSING = "tools-missing"
    # Answers
    ANSWER_NAME = "answer-name"
    ANSWER_SCHEMA = "answer-schema"
    # Cache marks
    CACHE_COUNT = "cache-count"
    CACHE_PLACE = "cache-place"
    CACHE_ORDER = "cache-order"


@dataclass(frozen=True, slots=True)
class Violation:
    """One place of a request that its provider would refuse.

    Attributes:
        rule: The rule that it breaks.
        path: The place from the body's root, as ``messages[3].content[0].text``; empty for the body itself.
        message: The fault, one sentence.
    """

    rule: Breach
    path: str
    message: str

    def __str__(self) -> str:
        """Return place, sentence and rule on one line."""
        return f"{self.path or 'request'}: {self.message} [{self.rule}]"


_OBJECT = (dict, Mapping)
"""What JSON writes as an object; the test for a dict is five times faster."""


class Spot:
    """A value and its place in a request: validators walk over places instead of bare values.

    A place is total: a missing key or element is a place whose value is ``None`` and that is not ``there``. So a rule reads the
    request as if it were well formed and leaves missing fields to the shapes.

    Attributes:
        value: The value.
        path: The keys and numbers that lead to it from the body.
        there: Whether the request has a value here, ``None`` included.
    """

    __slots__ = ("path", "there", "value")

    def __init__(self, value: object, path: tuple[str | int, ...] = (), *, there: bool = True) -> None:
        self.value = value
        self.path = path
        self.there = there

    def __getitem__(self, key: str | int) -> Spot:
        """Return the member or element ``key``."""
        value = self.value
        if isinstance(key, str):
            there = isinstance(value, _OBJECT) and key in value
            return Spot(value[key] if there else None, (*self.path, key), there=there)  # type: ignore[index] # it is a mapping
        if isinstance(value, list | tuple) and -len(value) <= key < len(value):
            return Spot(value[key], (*self.path, key % len(value)))
        return Spot(None, (*self.path, key), there=False)

    def __iter__(self) -> Iterator[Spot]:
        """Iterate over the elements of a list; any other value has none."""
        if isinstance(self.value, list | tuple):
            for index, element in enumerate(self.value):
                yield Spot(element, (*self.path, index))

    def __len__(self) -> int:
        """Count the elements of a list or the members of an object; 0 for any other value."""
        return len(self.value) if isinstance(self.value, dict | list | tuple | Mapping) else 0

    def __bool__(self) -> bool:
        """Return whether there is a value other than null; an empty string or list is one."""
        return self.value is not None

    def __contains__(self, key: object) -> bool:
        """Return whether an object has the member ``key``, whatever its value."""
        return isinstance(self.value, _OBJECT) and key in self.value

    def members(self) -> Iterator[tuple[str, Spot]]:
        """Return the members of an object by name; any other value has none."""
        if isinstance(self.value, _OBJECT):
            for key, member in self.value.items():
                name = key if isinstance(key, str) else repr(key)
                yield name, Spot(member, (*self.path, name))

    @property
    def text(self) -> str:
        """The value when it is a string, else the empty string."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def number(self) -> float | None:
        """The value when it is a number, else None; true and false are not numbers."""
        return self.value if isinstance(self.value, int | float) and not isinstance(self.value, bool) else None

    def breaks(self, rule: Breach, message: str) -> Violation:
        """Return the violation of ``rule`` at this place; its path escapes what UTF-8 cannot encode."""
        spelled = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return Violation(rule, spelled.removeprefix(".").encode("utf-8", "backslashreplace").decode("utf-8"), message)


def show(value: object) -> str:
    """Return a value for a message: shortened, with what cannot be printed escaped."""
    text = repr(value) if isinstance(value, str | int | float | bool | None) else f"a {json_type(value)}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def json_type(value: object) -> str:
    """Return the name of the JSON type that a value is written as."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    kinds = ((str, "string"), ((int, float), "number"), ((list, tuple), "list"), (Mapping, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)


# --- shapes ------------------------------------------------------------------------------------------------------------

Shape: TypeAlias = Any

ANY: Final = object
OPEN: Final[Shape] = {"*": object}


def one(*words: str) -> frozenset[str]:
    """Return the shape of a string that is one of a few."""
    return frozenset(words)


@dataclass(frozen=True, slots=True)
class Number:
    """A number between two figures, both included; ``whole`` refuses fractions."""

    least: float | None = None
    most: float | None = None
    whole: bool = False

    def fits(self, value: object) -> bool:
        """Compare a number without its place."""
        kind = type(value)
        return (kind is int or (kind is float and not self.whole)) and (
            (self.least is None or value >= self.least) and (self.most is None or value <= self.most)  # type: ignore[operator] # it is a number
        )

    def check(self, place: Spot) -> Iterator[Violation]:
        """Compare type and range."""
        number = place.number
        if number is None or (self.whole and not isinstance(number, int)):
            expected = "whole number" if self.whole else "number"
            yield place.breaks(Breach.FIELD_TYPE, f"expected a {expected}, got {show(place.value)}")
        elif self.least is not None and number < self.least:
            yield place.breaks(Breach.FIELD_VALUE, f"{number} is less than {self.least}")
        elif self.most is not None and number > self.most:
            yield place.breaks(Breach.FIELD_VALUE, f"{number} is more than {self.most}")


@dataclass(frozen=True, slots=True)
class Items:
    """A list with elements of one shape and a length between two figures, both included."""

    item: Shape
    least: int = 0
    most: int | None = None

    def fits(self, value: object) -> bool:
        """Compare a list without its place."""
        return (
            isinstance(value, list | tuple)
            and self.least <= len(value)
            and (self.most is None or len(value) <= self.most)
            and all(fits(element, self.item) for element in value)
        )

    def check(self, place: Spot) -> Iterator[Violation]:
        """Compare type, length and every element."""
        if not isinstance(place.value, list | tuple):
            yield place.breaks(Breach.FIELD_TYPE, f"expected a list, got {show(place.value)}")
        elif len(place) < self.least:
            yield place.breaks(Breach.LIST_LENGTH, f"expected at least {self.least} elements, got {len(place)}")
        elif self.most is not None and len(place) > self.most:
            yield place.breaks(Breach.LIST_LENGTH, f"expected at most {self.most} elements, got {len(place)}")
        for element in place:
            yield from shaped(element, self.item)


@dataclass(frozen=True, slots=True)
class Kinds:
    """An object of one of several kinds, which one of its fields names.

    Attributes:
        cases: The shape of each kind, without the field that names it.
        key: The field that names the kind.
        elsewhere: Kinds that the provider knows and refuses here, for a truer message.
        others: Whether other kinds are accepted, with any fields.
        default: The kind of an object without that field; empty where the field is required.
        rule: The rule that an unknown kind breaks.
    """

    cases: Mapping[str, Shape]
    key: str = "type"
    elsewhere: frozenset[str] = frozenset()
    others: bool = False
    default: str = ""
    rule: Breach = Breach.BLOCK_KIND

    def fits(self, value: object) -> bool:
        """Compare an object without its place."""
        kind = value.get(self.key, self.default) if isinstance(value, dict) else None
        return isinstance(kind, str) and kind in self.cases and _fields_fit(value, self.cases[kind], self.key)

    def check(self, place: Spot) -> Iterator[Violation]:
        """Find the kind, then check the object as one of that kind."""
        if not isinstance(place.value, Mapping):
            yield place.breaks(Breach.FIELD_TYPE, f"expected an object, got {show(place.value)}")
            return
        named = place[self.key]
        kind = named.text if named.there else self.default
        if kind in self.cases:
            yield from _fields(place, self.cases[kind], self.key)
        elif not named.there:
            yield named.breaks(Breach.FIELD_MISSING, f"{self.key} is required")
        elif kind in self.elsewhere:
            yield named.breaks(Breach.BLOCK_PLACE, f"{kind} may not stand here")
        elif not self.others or not kind:
            expected = ", ".join(self.cases)
            yield named.breaks(self.rule, f"expected one of {expected}, got {show(named.value)}")


def shaped(place: Spot, shape: Shape) -> Iterator[Violation]:
    """Check a value against a shape."""
    if not fits(place.value, shape):
        yield from walked(place, shape)


def fits(value: object, shape: Shape) -> bool:
    """Return whether a value surely has a shape. That needs no places, and nearly all have it."""
    kind = type(shape)
    if kind is type:
        return shape is ANY or type(value) is shape
    if kind is frozenset:
        return isinstance(value, str) and value in shape
    if kind is list:
        return isinstance(value, list | tuple) and all(fits(element, shape[0]) for element in value)
    if kind is dict:
        return _fields_fit(value, shape)
    if kind is tuple:
        return any(value is None if each is None else fits(value, each) for each in shape)
    return bool(shape.fits(value))


def _fields_fit(value: object, shape: dict[str, Shape], named: str = "") -> bool:
    if not isinstance(value, dict) or any(name not in value for name in shape if name[-1] not in "?*"):
        return False
    for name, member in value.items():
        inner = shape.get(name) or shape.get(f"{name}?")
        if inner is None:
            if name != named and "*" not in shape:
                return False
        elif type(member) is not inner and not fits(member, inner):
            return False
    return True


def walked(place: Spot, shape: Shape) -> Iterator[Violation]:
    """Find where a value has not the shape."""
    if isinstance(shape, dict):
        yield from _fields(place, shape)
    elif isinstance(shape, list):
        yield from Items(shape[0]).check(place)
    elif isinstance(shape, tuple):
        yield from _alternatives(place, shape)
    elif isinstance(shape, frozenset):
        if not isinstance(place.value, str) or place.value not in shape:
            expected = ", ".join(sorted(shape))
            yield place.breaks(Breach.FIELD_VALUE, f"expected one of {expected}, got {show(place.value)}")
    elif not isinstance(shape, type):
        yield from shape.check(place)
    elif shape is not ANY and (not isinstance(place.value, shape) or (shape is int and isinstance(place.value, bool))):
        yield place.breaks(Breach.FIELD_TYPE, f"expected a {_NAMES[shape]}, got {show(place.value)}")


_NAMES: Mapping[type, str] = {str: "string", bool: "boolean", int: "whole number"}


def _fields(place: Spot, shape: dict[str, Shape], named: str = "") -> Iterator[Violation]:
    """Compare type, names and every known field of an object; the field `named` is known already."""
    if not isinstance(place.value, Mapping):
        yield place.breaks(Breach.FIELD_TYPE, f"expected an object, got {show(place.value)}")
        return
    for name in shape:
        if name[-1] not in "?*" and name not in place.value:
            yield place[name].breaks(Breach.FIELD_MISSING, f"{name} is required")
    for name, value in place.members():
        inner = shape.get(name) or shape.get(name + "?")
        if inner is not None:
            yield from shaped(value, inner)
        elif name != named and "*" not in shape:
            yield value.breaks(Breach.FIELD_UNKNOWN, f"{name} is no field of this object")


def _alternatives(place: Spot, shape: tuple[Shape, ...]) -> Iterator[Violation]:
    """Choose the alternative by the value's type."""
    found = json_type(place.value)
    fitting = next((each for each in shape if _type_of(each) == found), ...)
    if fitting is ...:
        expected = " or ".join(map(_type_of, shape))
        yield place.breaks(Breach.FIELD_TYPE, f"expected a {expected}, got {show(place.value)}")
    elif fitting is not None:
        yield from shaped(place, fitting)


def _type_of(shape: Shape) -> str:
    """Return the JSON type of a shape's values."""
    if shape is None:
        return "null"
    kinds = ((dict | Kinds, "object"), (list | Items, "list"), (frozenset, "string"), (Number, "number"))
    named = {str: "string", bool: "boolean", int: "number", float: "number"}
    return (
        named.get(shape, "")
        if isinstance(shape, type)
        else next(name for kind, name in kinds if isinstance(shape, kind))
    )
