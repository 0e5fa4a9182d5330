"""What the parameters of policies may be: a table each, and one way to hold a value to it. Configurations come from files, and may say anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from palaver.errors import InvalidInput

__all__ = ["Bound", "Parameters", "count", "number", "ratio", "require", "share", "switch", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a parameter may be.

    Attributes:
        of: What it is.
        least: The least number, or None.
        most: The largest number, or None.
        inside: Whether both ends are too little and too much themselves.
        above: Whether the least is too little itself.
        none: Whether None may be said, for nothing.
    """

    of: type
    least: float | None = None
    most: float | None = None
    inside: bool = False
    above: bool = False
    none: bool = False

    def holds(self, value: object) -> bool:
        """Tell whether a value may be said. A switch is no number, and a number is no switch."""
        if value is None:
            return self.none
        if self.of in {bool, str}:
            return isinstance(value, self.of)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not (whole or (self.of is float and isinstance(value, float) and isfinite(value))):
            return False
        assert isinstance(value, int | float)  # noqa: S101 - said above
        low = self.least is None or (value > self.least if self.inside or self.above else value >= self.least)
        high = self.most is None or (value < self.most if self.inside else value <= self.most)
        return low and high

    def hint(self) -> str:
        """Say what may be said."""
        what = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}[self.of]
        low = "more than" if self.inside or self.above else "at least"
        high = "less than" if self.inside else "at most"
        ends = [f"{word} {end:g}" for word, end in ((low, self.least), (high, self.most)) if end is not None]
        return ", ".join([what, *([" and ".join(ends)] if ends else [])]) + (", or nothing" if self.none else "")


Parameters = Mapping[str, Bound]
"""The parameters of something by name, each with what it may be."""


def count(least: int = 0, *, none: bool = False) -> Bound:
    """Give the bound of a whole number."""
    return Bound(of=int, least=least, none=none)


def number(least: float = 0, *, inside: bool = False, none: bool = False) -> Bound:
    """Give the bound of a number; with `inside` it must be more than the least."""
    return Bound(of=float, least=least, inside=inside, none=none)


def share(*, inside: bool = False) -> Bound:
    """Give the bound of a share, from 0 to 1; with `inside` it is neither."""
    return Bound(of=float, least=0, most=1, inside=inside)


def ratio() -> Bound:
    """Give the bound of a share that is not nothing: more than 0, and at most 1."""
    return Bound(of=float, least=0, most=1, above=True)


def switch() -> Bound:
    """Give the bound of what is true or false."""
    return Bound(of=bool)


def text(*, none: bool = False) -> Bound:
    """Give the bound of a text."""
    return Bound(of=str, none=none)


def require(parameters: Parameters, values: Mapping[str, object]) -> None:
    """Insist that values are what their parameters may be; values of other names are passed over.

    Raises:
        InvalidInput: One is not; the error names it, and says what it may be.
    """
    for name, value in values.items():
        bound = parameters.get(name)
        if bound is not None and not bound.holds(value):
            raise InvalidInput(f"{name} is {value!r}.", hint=f"It is {bound.hint()}.")
