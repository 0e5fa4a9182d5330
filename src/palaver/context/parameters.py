"""The parameters of policies, and what each may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from typing import TypeAlias

from palaver.errors import InvalidInput
from palaver.tokens.budget import read_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a parameter may be.

    Attributes:
        of: Its type.
        least: The least number, or None.
        most: The largest number, or None.
        above: Whether the least is excluded.
        below: Whether the largest is excluded.
        none: Whether None is allowed.
    """

    of: type
    least: float | None = None
    most: float | None = None
    above: bool = False
    below: bool = False
    none: bool = False

    def holds(self, value: object) -> bool:
        """Return whether a value is within the bound. A bool is not a number, and a number is not a bool."""
        if value is None:
            return self.none
        if self.of is bool or isinstance(value, bool):
            return self.of is bool and isinstance(value, bool)
        if not isinstance(value, int if self.of is int else int | float) or not isfinite(value):
            return False
        low = self.least is None or (value > self.least if self.above else value >= self.least)
        return low and (self.most is None or (value < self.most if self.below else value <= self.most))

    def hint(self) -> str:
        """Return the bound in words."""
        what = {bool: "true or false", int: "a whole number", float: "a number"}[self.of]
        low, high = "more than" if self.above else "at least", "less than" if self.below else "at most"
        ends = " and ".join(
            f"{word} {end:g}" for word, end in ((low, self.least), (high, self.most)) if end is not None
        )
        return ", ".join(filter(None, (what, ends, "or None" if self.none else "")))


Parameters: TypeAlias = Mapping[str, Bound]
"""The parameters of a policy by name, each with its bound."""


def count(least: int = 0, *, none: bool = False) -> Bound:
    """Return the bound of a whole number."""
    return Bound(of=int, least=least, none=none)


def share(*, above: bool = False, below: bool = False) -> Bound:
    """Return the bound of a share, from 0 to 1; either end may be excluded."""
    return Bound(of=float, least=0, most=1, above=above, below=below)


SWITCH = Bound(of=bool)


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
