"""Lookups: whether what a view no longer holds can be brought back, and by how many steps.

A line that names the place of what is missing (a placeholder, a record) leads to it in one step: the model recalls the handle. Everything else
has to be searched for with what the model knows, which are the words of its own next step without the missing ones; what is among
the first five hits is brought back by a second step. The search is BM25 (Robertson, Zaragoza, "The Probabilistic Relevance Framework", 2009;
k1 = 1.2, b = 0.75).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice

__all__ = ["FIRST", "Index"]

FIRST = 5
"""Hits of a search that a model looks at."""

_K1, _B = 1.2, 0.75
_WORDS = re.compile(r"\w{2,}")
_ASKED = 64
"""Words of a query that count, the rarest first: longer queries find the same and cost more."""


class Index:
    """A BM25 index over texts that are added one after the other; a search sees those added so far."""

    def __init__(self) -> None:
        """Begin empty."""
        self._postings: dict[str, list[tuple[int, int]]] = {}
        self._lengths: list[int] = []

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._lengths)

    def add(self, text: str) -> None:
        """Add a text; its number is how many there were before."""
        counts = Counter(word.casefold() for word in _WORDS.findall(text))
        for word, count in counts.items():
            self._postings.setdefault(word, []).append((len(self._lengths), count))
        self._lengths.append(sum(counts.values()))

    def search(self, query: str, *, among: Collection[int] | None = None, first: int = FIRST) -> Sequence[int]:
        """Return the numbers of the texts that fit a query best, the best first.

        Args:
            query: The words.
            among: The texts to choose from; all when not given.
            first: How many to give at most.
        """
        asked = dict.fromkeys(word.casefold() for word in _WORDS.findall(query))
        known = sorted((word for word in asked if word in self._postings), key=lambda word: len(self._postings[word]))
        scores: dict[int, float] = {}
        mean = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0
        for word in islice(known, _ASKED):
            found = self._postings[word]
            rare = math.log(1 + (len(self) - len(found) + 0.5) / (len(found) + 0.5))
            for number, count in found:
                if among is None or number in among:
                    norm = _K1 * (1 - _B + _B * self._lengths[number] / (mean or 1.0))
                    scores[number] = scores.get(number, 0.0) + rare * count * (_K1 + 1) / (count + norm)
        return sorted(scores, key=lambda number: (-scores[number], number))[:first]
