"""The price sheet: what a token costs as part of a request, in units of one uncached input token.

A provider's cache makes the same token cheap or dear by where it stands: read again it costs a tenth, written anew behind an edit more than the
full price. All that a schedule decides follows from these ratios; dollars only scale the bill.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from palaver.errors import InvalidInput
from palaver.tokens import Rates

__all__ = ["PriceSheet"]

_LIFETIME = 300.0
"""Seconds for which a provider keeps a prefix that nobody reads: Anthropic's shortest, 5 minutes, begun again by every read; OpenAI speaks of 5 to
10 minutes (both: their pages on prompt caching)."""

_LOSS = 60_000.0
"""What it costs the work when exchanges are folded, in units: what the simulation of a price on quality was run with (docs/scheduling.md)."""

_MISSED = 0.1
"""The share of results cleared behind the newest ten that are asked for again: between 8 and 13 of 100 in recorded sessions of coding agents, in a
window of 64,000 tokens and a room of 32,000 (docs/study.md; in tau-bench sessions, which are short, 5 of 100: docs/scheduling.md)."""

_ASKING = 60
"""Tokens that a model writes to have something back: a call with a handle. As the lab charges it (`palaver.lab.metrics`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSheet:
    """What tokens cost, in units of one uncached input token.

    Attributes:
        read: A token read from the cache.
        write: A token written to the cache: everything that no cached prefix covers.
        output: A token that the model writes.
        lifetime: Seconds after the last call until the cache is cold; infinite for one that is never cold.
        rot: What a token that is of no more use costs the model's attention at each call, besides its price; 0 for the bill alone.
        loss: What folding exchanges costs the work, once for each fold.
        missed: The share of what is set aside that has to be asked for again, each time with a call of its own (`again`).
        dollar: US dollars of a unit, 0 where that is not known.
        source: Where the ratios are from.
    """

    read: float = 0.1
    write: float = 1.25
    output: float = 5.0
    lifetime: float = _LIFETIME
    rot: float = 0.0
    loss: float = _LOSS
    missed: float = _MISSED
    dollar: float = 0.0
    source: str = "Anthropic's ratios: a tenth to read, five quarters to write"

    def __post_init__(self) -> None:
        """Refuse what is no price.

        Raises:
            InvalidInput: A figure is negative or no number, or reading from the cache costs more than writing to it.
        """
        for name in ("read", "write", "output", "lifetime", "rot", "loss", "missed", "dollar"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or math.isnan(value) or value < 0:
                raise InvalidInput(f"{name} is {value!r}: a price is a number, and not negative.")
        if self.read > self.write:
            raise InvalidInput(
                f"Reading from the cache costs {self.read}, writing to it {self.write}: that is no cache.",
                hint="Where a provider has none, both are 1.",
            )

    @classmethod
    def of(cls, rates: Rates, *, lifetime: float = _LIFETIME) -> PriceSheet:
        """Take a provider's rates; where a provider has no cache, reading costs what writing does and every edit pays at once.

        Args:
            rates: What a token costs in dollars (`palaver.tokens.rates`).
            lifetime: Seconds until the provider's cache is cold.
        """
        unit = rates.input
        if unit <= 0:  # a model that costs nothing: the ratios of most providers, and a bill of nothing
            return cls(lifetime=lifetime, source=f"{rates.source}: free")
        read, write = rates.cache_read / unit, rates.cache_write / unit
        return cls(
            read=min(read, write),
            write=write,
            output=rates.output / unit,
            lifetime=lifetime,
            dollar=unit,
            source=rates.source,
        )

    @property
    def rent(self) -> float:
        """What a token that could go costs at each call that still carries it."""
        return self.read + self.rot

    @property
    def anew(self) -> float:
        """What a token costs more when it is written anew instead of read."""
        return self.write - self.read

    def again(self, tokens: int, request: int) -> float:
        """Give what it is expected to cost that something set aside will be asked for again.

        To ask is a call of its own: the request is read once more, the question is written, and what it brings is written anew. For a small result
        the call is dearer than the result.

        Args:
            tokens: The tokens that are set aside.
            request: The tokens of a request.
        """
        return self.missed * (self.write * (tokens + _ASKING) + self.read * request + self.output * _ASKING)

    def cold(self, idle: float | None) -> bool:
        """Tell whether a cache that was last used so many seconds ago is cold; None for one that was just used."""
        return idle is not None and idle > self.lifetime
