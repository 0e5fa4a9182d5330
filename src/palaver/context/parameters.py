"""The constructor parameters of policies: a table of bounds each, and one check. Configurations come from files and may say anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from typing import TypeAlias

from palaver.errors import InvalidInput
from palaver.tokens.vocabulary import read_words

__all__ = ["Bound", "Parameters", "count", "number", "ratio", "require", "require_words", "share", "switch", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a parameter may be.

    Attributes:
        of: Its type.
        least: The least number, or None.
        most: The largest number, or None.
        inside: Whether both ends are excluded.
        above: Whether only the least is excluded.
        none: Whether None is allowed.
    """

    of: type
    least: float | None = None
    most: float | None = None
    inside: bool = False
    above: bool = False
    none: bool = False

    def holds(self, value: object) -> bool:
        """Return whether a value is within the bound. A bool is not a number, and a number is not a bool."""
        if value is None:
            return self.none
        if self.of in {bool, str}:
            return isinstance(value, self.of)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            return False
        if self.of is int and not isinstance(value, int):
            return False
        low = self.least is None or (value > self.least if self.inside or self.above else value >= self.least)
        high = self.most is None or (value < self.most if self.inside else value <= self.most)
        return low and high

    def hint(self) -> str:
        """Return the bound in words."""
        what = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}[self.of]
        low = "more than" if self.inside or self.above else "at least"
        high = "less than" if self.inside else "at most"
        ends = [f"{word} {end:g}" for word, end in ((low, self.least), (high, self.most)) if end is not None]
        return ", ".join([what, *([" and ".join(ends)] if ends else [])]) + (", or None" if self.none else "")


Parameters: TypeAlias = Mapping[str, Bound]
"""The parameters of a policy by name, each with its bound."""


def count(least: int = 0, *, none: bool = False) -> Bound:
    """Return the bound of a whole number."""
    return Bound(of=int, least=least, none=none)


def number(least: float = 0, *, inside: bool = False, none: bool = False) -> Bound:
    """Return the bound of a number; with `inside` the least is excluded."""
    return Bound(of=float, least=least, inside=inside, none=none)


def share(*, inside: bool = False) -> Bound:
    """Return the bound of a share, from 0 to 1; with `inside` both are excluded."""
    return Bound(of=float, least=0, most=1, inside=inside)


def ratio() -> Bound:
    """Return the bound of a share above 0, up to 1."""
    return Bound(of=float, least=0, most=1, above=True)


def switch() -> Bound:
    """Return the bound of true or false."""
    return Bound(of=bool)


def text(*, none: bool = False) -> Bound:
    """Return the bound of a text."""
    return Bound(of=str, none=none)


def require(parameters: Parameters, values: Mapping[str, object]) -> None:
    """Raise InvalidInput where a value is out of the bound of its parameter; values of other names are not checked."""
    for name, value in values.items():
        bound = parameters.get(name)
        if bound is not None and not bound.holds(value):
            raise InvalidInput(f"{name} is {value!r}.", hint=f"Give {bound.hint()}.")


def require_words(policy: str, model_name: object, budget: Mapping[str, object], parameters: Parameters) -> None:
    """Raise InvalidInput where the model's name is not a text, or a word is neither a parameter nor a word of a budget."""
    if not isinstance(model_name, str):
        raise InvalidInput(f"model_name is {model_name!r}.", hint="Give a text, empty for none.")
    for word in budget:
        try:
            read_words({word: None})
        except InvalidInput as error:
            close = get_close_matches(word, parameters, n=1)
            if close:
                message = f"{word!r} is neither a parameter of {policy!r} nor a word for a budget."
                raise InvalidInput(message, hint=f"Close: {close[0]}.") from error
            raise
