"""Rent or buy: when to fold a conversation, without knowing how long it will go on or how fast it will grow.

What could be folded away costs rent at every call; folding costs a price once. The rule: fold when the rent paid since the last fold, with the
next call's, reaches the price. Nothing is guessed. It is the acknowledgement problem of TCP: Dooly, Goldman, Scott (On-line analysis of the TCP
acknowledgment delay problem, JACM 48(2), 2001) show that the rule never pays more than twice what a planner pays that knows the future, and that no
rule without chance does better. With steady growth it folds exactly where the square-root formula for stock (n = sqrt(2 price / (rent growth))) does.

With chance one does better. Fold when the best earlier fold would have saved a share of the price by now, the share drawn with density e^x / (e - 1)
between nothing and all of it: that expects to pay at most e / (e - 1), about 1.58 times the optimum (Karlin, Kenyon, Randall: Dynamic TCP
acknowledgement and other stories about e/(e-1), Algorithmica 36, 2003, where the shares belong to this rule and not to the one above). It is drawn
from a seed, so that the same log gives the same view.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

__all__ = ["DETERMINISTIC", "RANDOMISED", "RentOrBuy", "drawn"]

DETERMINISTIC = 2.0
"""The competitive ratio of the rule: rent and prices together, against the best that could have been done."""

RANDOMISED = math.e / (math.e - 1)
"""The competitive ratio of the rule with thresholds drawn at random, in expectation."""


def drawn(seed: str, number: int) -> float:
    """Draw a threshold, as a share of the price between 0 and 1, with density e^x / (e - 1).

    Args:
        seed: What the draws of one conversation have in common, such as the dialog's id.
        number: The number of the fold.
    """
    bits = int.from_bytes(hashlib.sha256(f"{seed}:{number}".encode()).digest()[:8], "big")
    return math.log1p((bits + 0.5) / 2**64 * (math.e - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class RentOrBuy:
    """The rule's state: a value.

    Attributes:
        seed: What shares are drawn from; None for the rule without chance.
        folds: How many folds there were.
        rent: What was paid since the last one.
        rents: What each call since then paid; with chance only, for without it their sum is enough.
    """

    seed: str | None = None
    folds: int = 0
    rent: float = 0.0
    rents: tuple[float, ...] = ()

    def reached(self, rent: float) -> float:
        """Give what is held against the price, if this call costs so much more because nothing is folded.

        Without chance all rent since the last fold; with it, what the best earlier fold would have saved.
        """
        if self.seed is None:
            return self.rent + rent
        rents = (*self.rents, rent)
        return max(each * (len(rents) - number) for number, each in enumerate(rents))

    def due(self, rent: float, price: float) -> bool:
        """Tell whether to fold before a call.

        Args:
            rent: What this call costs more if nothing is folded.
            price: What folding costs now.
        """
        return self.reached(rent) >= (1.0 if self.seed is None else drawn(self.seed, self.folds)) * price

    def paid(self, rent: float) -> RentOrBuy:
        """Take note of a call that was made without folding."""
        rents = () if self.seed is None else (*self.rents, rent)
        return replace(self, rent=self.rent + rent, rents=rents)

    def folded(self) -> RentOrBuy:
        """Take note of a fold."""
        return RentOrBuy(seed=self.seed, folds=self.folds + 1)
