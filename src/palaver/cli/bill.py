"""What answers used and cost: the dollars that were recorded with them, else those of the price list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from palaver.errors import InvalidInput, UnknownModel
from palaver.ids import now
from palaver.messages import Message, Usage
from palaver.plurals import counted
from palaver.tokens import price

__all__ = ["Bill", "bill_of"]


@dataclass(slots=True)
class Bill:
    """Tokens and dollars, added up.

    Attributes:
        answers: How many answers said what they used.
        read: Tokens that the models read.
        cached: How many of these came from a cache.
        written: Tokens that they wrote.
        dollars: What that cost, as far as it is known.
        listed: Whether some of it is a list price, and not what the provider said.
        unpriced: How many answers have neither.
    """

    answers: int = 0
    read: int = 0
    cached: int = 0
    written: int = 0
    dollars: float = 0.0
    listed: bool = False
    unpriced: int = 0

    def add(self, message: Message) -> None:
        """Add an answer; one that does not say what it used counts for nothing."""
        if message.usage:
            self.use(message.usage, message.model or "", message.timestamp)

    def use(self, usage: Usage, model: str, at: float | None) -> None:
        """Add what an answer used.

        Args:
            usage: What it read and wrote.
            model: The model.
            at: When it came, in seconds since 1970-01-01 UTC; None where nobody knows.
        """
        self.answers += 1
        self.read += usage.input_tokens
        self.cached += usage.cache_read_tokens
        self.written += usage.output_tokens
        if usage.cost.total:
            self.dollars += usage.cost.total
            return
        try:
            self.dollars += price(usage, model, at).total
            self.listed = True
        except (UnknownModel, InvalidInput):
            self.unpriced += 1

    def __str__(self) -> str:
        """Give it in words."""
        cached = f" ({self.cached:,} cached)" if self.cached else ""
        about = "about " if self.listed else ""
        dollars = f", {about}${self.dollars:.4f}" if self.dollars else ""
        unpriced = (
            f", {counted(self.unpriced, 'answer')} without a known price" if self.unpriced and self.dollars else ""
        )
        return f"{counted(self.read, 'token')} read{cached}, {self.written:,} written{dollars}{unpriced}"


def bill_of(usages: Iterable[Usage], model: str) -> Bill:
    """Add up what a model's answers used that came just now."""
    bill = Bill()
    for usage in usages:
        bill.use(usage, model, now())
    return bill
