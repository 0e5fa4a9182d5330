"""What answers used and cost: the recorded dollars, else those of the price list."""

from __future__ import annotations

from dataclasses import dataclass

from palaver.errors import InvalidInput, NotFound
from palaver.messages import Usage
from palaver.plurals import counted
from palaver.tokens import price

__all__ = ["Bill"]


@dataclass(slots=True)
class Bill:
    """Tokens and dollars, added up.

    Attributes:
        answers: How many answers said what they used.
        read: Tokens that the models read.
        cached: How many of these came from a cache.
        written: Tokens that they wrote.
        dollars: What that cost, as far as it is known.
        estimated: Whether some of it comes from the price list, and not from the provider.
        unpriced: How many answers have no known price.
    """

    answers: int = 0
    read: int = 0
    cached: int = 0
    written: int = 0
    dollars: float = 0.0
    estimated: bool = False
    unpriced: int = 0

    def use(self, usage: Usage, model: str, at: float | None) -> None:
        """Add what an answer of a model used, at a time in seconds since 1970-01-01 UTC, or None where it is unknown."""
        self.answers += 1
        self.read += usage.input_tokens
        self.cached += usage.cache_read_tokens
        self.written += usage.output_tokens
        if usage.cost.total:
            self.dollars += usage.cost.total
            return
        try:
            self.dollars += price(usage, model, at).total
            self.estimated = True
        except (NotFound, InvalidInput):
            self.unpriced += 1

    @property
    def price(self) -> str:
        """The dollars for people, with `~` where they are estimated; empty where nothing is known."""
        return f"{'~' if self.estimated else ''}${self.dollars:.4f}" if self.dollars else ""

    def __str__(self) -> str:
        cached = f" ({self.cached:,} cached)" if self.cached else ""
        dollars = f", {self.price}" if self.dollars else ""
        unpriced = f", {counted(self.unpriced, 'answer')} without a known price" if self.unpriced and dollars else ""
        return f"{counted(self.read, 'token')} read{cached}, {self.written:,} written{dollars}{unpriced}"
