"""Shapes: which fields a request has and what they hold, written as tables, and the one walk that checks them.

The four providers differ in their tables (:mod:`palaver.wire.check.shapes`), not in how a field can be wrong: missing,
unknown, of another type, outside its values, too few or too many. Rules that look at more than one field at a time are
functions in the validators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from palaver.wire.violations import Place, Rule, Violation

__all__ = [
    "ANY",
    "FLAG",
    "RULES",
    "TEXT",
    "WHOLE",
    "Choice",
    "Either",
    "Fields",
    "Items",
    "Kinds",
    "Maybe",
    "Number",
    "Shape",
    "show",
]

RULES = frozenset(
    {
        Rule.FIELD_MISSING,
        Rule.FIELD_UNKNOWN,
        Rule.FIELD_TYPE,
        Rule.FIELD_VALUE,
        Rule.LIST_LENGTH,
        Rule.ROLE_UNKNOWN,
        Rule.BLOCK_KIND,
        Rule.BLOCK_PLACE,
    }
)
_SHOWN = 60  # characters of a value in a message: enough to recognise it, never a whole payload


def show(value: object) -> str:
    """Write a value for a message, shortened, with what cannot be printed escaped."""
    text = repr(value) if isinstance(value, str | int | float | bool | None) else f"a {_json_type(value)}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


class Shape(Protocol):
    """What a value must be."""

    def check(self, place: Place) -> Iterator[Violation]:
        """Give what is wrong with the value at ``place``."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A value of one JSON type, or of any."""

    name: str

    def check(self, place: Place) -> Iterator[Violation]:
        """Compare the type."""
        if self.name != "any" and _json_type(place.value) != self.name:
            yield place.breaks(Rule.FIELD_TYPE, f"expected a {self.name}, got {show(place.value)}")


ANY = Kind("any")
TEXT = Kind("string")
FLAG = Kind("boolean")


@dataclass(frozen=True, slots=True)
class Number:
    """A number between two figures, both included; ``whole`` refuses fractions."""

    least: float | None = None
    most: float | None = None
    whole: bool = False

    def check(self, place: Place) -> Iterator[Violation]:
        """Compare type and range."""
        number = place.number
        if number is None or (self.whole and not isinstance(number, int)):
            expected = "whole number" if self.whole else "number"
            yield place.breaks(Rule.FIELD_TYPE, f"expected a {expected}, got {show(place.value)}")
        elif self.least is not None and number < self.least:
            yield place.breaks(Rule.FIELD_VALUE, f"{number} is less than {self.least}")
        elif self.most is not None and number > self.most:
            yield place.breaks(Rule.FIELD_VALUE, f"{number} is more than {self.most}")


WHOLE = Number(whole=True)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few strings."""

    values: tuple[str, ...]

    def check(self, place: Place) -> Iterator[Violation]:
        """Look the value up."""
        if place.value not in self.values:
            yield place.breaks(Rule.FIELD_VALUE, f"expected one of {', '.join(self.values)}, got {show(place.value)}")


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value that may also be null."""

    shape: Shape

    def check(self, place: Place) -> Iterator[Violation]:
        """Let null pass."""
        if place:
            yield from self.shape.check(place)


@dataclass(frozen=True, slots=True)
class Items:
    """A list with elements of one shape and a length between two figures, both included."""

    item: Shape
    least: int = 0
    most: int | None = None

    def check(self, place: Place) -> Iterator[Violation]:
        """Compare type, length and every element."""
        if not isinstance(place.value, list | tuple):
            yield place.breaks(Rule.FIELD_TYPE, f"expected a list, got {show(place.value)}")
        elif len(place) < self.least:
            yield place.breaks(Rule.LIST_LENGTH, f"expected at least {self.least} elements, got {len(place)}")
        elif self.most is not None and len(place) > self.most:
            yield place.breaks(Rule.LIST_LENGTH, f"expected at most {self.most} elements, got {len(place)}")
        for element in place:
            yield from self.item.check(element)


@dataclass(frozen=True, slots=True)
class Fields:
    """An object: the fields it must have, those it may have, and whether it may have others (``open``)."""

    required: Mapping[str, Shape] = field(default_factory=dict)
    optional: Mapping[str, Shape] = field(default_factory=dict)
    open: bool = False

    def check(self, place: Place) -> Iterator[Violation]:
        """Compare type, names and every known field."""
        if not isinstance(place.value, Mapping):
            yield place.breaks(Rule.FIELD_TYPE, f"expected an object, got {show(place.value)}")
            return
        for name in self.required:
            if name not in place:
                yield place[name].breaks(Rule.FIELD_MISSING, f"{name} is required")
        for name, value in place.members():
            shape = self.required.get(name) or self.optional.get(name)
            if shape is not None:
                yield from shape.check(value)
            elif not self.open:
                yield value.breaks(Rule.FIELD_UNKNOWN, f"{name} is no field of this object")


@dataclass(frozen=True, slots=True)
class Kinds:
    """An object of one of several kinds, told apart by one of its fields.

    Attributes:
        cases: Shape by kind.
        key: The field that names the kind.
        elsewhere: Kinds the provider knows but refuses here, for a truer message.
        default: The kind of an object without that field; empty when the field is required.
        rule: The rule that an unknown kind breaks.
    """

    cases: Mapping[str, Shape]
    key: str = "type"
    elsewhere: frozenset[str] = frozenset()
    default: str = ""
    rule: Rule = Rule.BLOCK_KIND

    def check(self, place: Place) -> Iterator[Violation]:
        """Find the kind, then check the object as one of that kind."""
        if not isinstance(place.value, Mapping):
            yield place.breaks(Rule.FIELD_TYPE, f"expected an object, got {show(place.value)}")
            return
        if self.key not in place and not self.default:
            yield place[self.key].breaks(Rule.FIELD_MISSING, f"{self.key} is required")
            return
        kind = place[self.key].text if self.key in place else self.default
        if kind in self.cases:
            yield from self.cases[kind].check(place)
        elif kind in self.elsewhere:
            yield place[self.key].breaks(Rule.BLOCK_PLACE, f"{kind} may not stand here")
        else:
            shown = show(place[self.key].value)
            yield place[self.key].breaks(self.rule, f"expected one of {', '.join(self.cases)}, got {shown}")


@dataclass(frozen=True, slots=True)
class Either:
    """A value of one of several JSON types, each with a shape of its own."""

    cases: Mapping[str, Shape]

    def check(self, place: Place) -> Iterator[Violation]:
        """Choose the shape by the value's type."""
        shape = self.cases.get(_json_type(place.value))
        if shape is None:
            expected = " or ".join(self.cases)
            yield place.breaks(Rule.FIELD_TYPE, f"expected a {expected}, got {show(place.value)}")
        else:
            yield from shape.check(place)


def _json_type(value: object) -> str:
    """Name the JSON type a value is written as."""
    names: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (str, "string"),
        (bool, "boolean"),
        ((int, float), "number"),
        ((list, tuple), "list"),
        (Mapping, "object"),
        (type(None), "null"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), type(value).__name__)
