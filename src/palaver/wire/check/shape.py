"""Shapes: the fields of a request and their values, written as tables, and the walk that checks them.

A shape is plain data: a type, a `frozenset` of strings to choose from, a list with the shape of its elements, an object as a dict of its fields
(``name?`` may be missing, ``*`` permits others), or a tuple of alternatives told apart by their JSON types (None for null). Rules over more than
one field are functions in the validators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from palaver.wire.check.place import Place, Rule, Violation, json_type, show

__all__ = ["ANY", "OPEN", "Items", "Kinds", "Number", "Shape", "one", "shaped"]

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
            yield from shaped(element, self.item)


@dataclass(frozen=True, slots=True)
class Kinds:
    """An object of one of several kinds, told apart by one of its fields.

    Attributes:
        cases: The shape of each kind, without the field that names it.
        key: The field that names the kind.
        elsewhere: Kinds that the provider knows and refuses here, for a truer message.
        others: Whether other kinds are accepted, whatever they hold.
        default: The kind of an object without that field; empty where the field is required.
        rule: The rule that an unknown kind breaks.
    """

    cases: Mapping[str, Shape]
    key: str = "type"
    elsewhere: frozenset[str] = frozenset()
    others: bool = False
    default: str = ""
    rule: Rule = Rule.BLOCK_KIND

    def check(self, place: Place) -> Iterator[Violation]:
        """Find the kind, then check the object as one of that kind."""
        if not isinstance(place.value, Mapping):
            yield place.breaks(Rule.FIELD_TYPE, f"expected an object, got {show(place.value)}")
            return
        named = place[self.key]
        kind = named.text if named.there else self.default
        if kind in self.cases:
            yield from _fields(place, self.cases[kind], self.key)
        elif not named.there:
            yield named.breaks(Rule.FIELD_MISSING, f"{self.key} is required")
        elif kind in self.elsewhere:
            yield named.breaks(Rule.BLOCK_PLACE, f"{kind} may not stand here")
        elif not self.others or not kind:
            expected = ", ".join(self.cases)
            yield named.breaks(self.rule, f"expected one of {expected}, got {show(named.value)}")


def shaped(place: Place, shape: Shape) -> Iterator[Violation]:
    """Check a value against a shape."""
    if isinstance(shape, dict):
        yield from _fields(place, shape)
    elif isinstance(shape, list):
        yield from Items(shape[0]).check(place)
    elif isinstance(shape, tuple):
        yield from _alternatives(place, shape)
    elif isinstance(shape, frozenset):
        if not isinstance(place.value, str) or place.value not in shape:
            expected = ", ".join(sorted(shape))
            yield place.breaks(Rule.FIELD_VALUE, f"expected one of {expected}, got {show(place.value)}")
    elif not isinstance(shape, type):
        yield from shape.check(place)
    elif shape is not ANY and (not isinstance(place.value, shape) or (shape is int and isinstance(place.value, bool))):
        yield place.breaks(Rule.FIELD_TYPE, f"expected a {_NAMES[shape]}, got {show(place.value)}")


_NAMES: Mapping[type, str] = {str: "string", bool: "boolean", int: "whole number"}


def _fields(place: Place, shape: dict[str, Shape], named: str = "") -> Iterator[Violation]:
    """Compare type, names and every known field of an object; the field `named` is known already."""
    if not isinstance(place.value, Mapping):
        yield place.breaks(Rule.FIELD_TYPE, f"expected an object, got {show(place.value)}")
        return
    for name in shape:
        if name[-1] not in "?*" and name not in place.value:
            yield place[name].breaks(Rule.FIELD_MISSING, f"{name} is required")
    for name, value in place.members():
        inner = shape.get(name) or shape.get(name + "?")
        if inner is not None:
            yield from shaped(value, inner)
        elif name != named and "*" not in shape:
            yield value.breaks(Rule.FIELD_UNKNOWN, f"{name} is no field of this object")


def _alternatives(place: Place, shape: tuple[Shape, ...]) -> Iterator[Violation]:
    """Choose the alternative by the value's type."""
    found = json_type(place.value)
    fitting = next((each for each in shape if _type_of(each) == found), ...)
    if fitting is ...:
        expected = " or ".join(map(_type_of, shape))
        yield place.breaks(Rule.FIELD_TYPE, f"expected a {expected}, got {show(place.value)}")
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
