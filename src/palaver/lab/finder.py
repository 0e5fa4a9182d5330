"""Find many names in many texts, reading each text once for any number of names.

`Quoted` finds the names that a text quotes from a log with the words around them.

`Index` simulates lookups: whether missing content can be brought back, and in how many steps.

If a line in view (a placeholder, a record) has the handle of the missing content, the model recalls it in one step. Otherwise the model must
search with the words of its own next step, without the missing names; a second step recalls one of the first five hits. The search is BM25 (Robertson, Zaragoza, "The Probabilistic Relevance Framework", 2009;
k1 = 1.2, b = 0.75).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from palaver.lab.metrics import passages

_WORD = re.compile(r"\w+")


class _Name(NamedTuple):
    """A name, and the offset of its rarest word."""

    name: str
    offset: int


class Finder:
    """Finds names in a text as a whole: with no letter, digit or `_` directly before or after."""

    def __init__(self, names: Iterable[str]) -> None:
        """Index the names. A name without a word is never found."""
        words = {name: list(_WORD.finditer(name)) for name in dict.fromkeys(names)}
        shared = Counter(word for found in words.values() for word in {each[0] for each in found})
        by_word: dict[str, list[_Name]] = {}
        for name, found in words.items():
            if found:  # by its rarest word: paths often share beginnings and ends
                telling = min(found, key=lambda each: (shared[each[0]], -len(each[0])))
                by_word.setdefault(telling[0], []).append(_Name(name, telling.start()))
        self._by_word: Mapping[str, tuple[_Name, ...]] = {word: tuple(named) for word, named in by_word.items()}

    def found(self, text: str) -> frozenset[str]:
        """Return the names in a text."""
        return frozenset(name for name, _ in self.places(text))

    def places(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield each occurrence of a name in a text: the name, and its offset."""
        by_word = self._by_word
        if not by_word:
            return
        for word in _WORD.finditer(text):
            for name, offset in by_word.get(word[0], ()):
                if _stands(name, text, word.start() - offset):
                    yield name, word.start() - offset


def _stands(name: str, text: str, place: int) -> bool:
    """Return whether a name occurs at a place of a text as a whole."""
    end = place + len(name)
    if place < 0 or not text.startswith(name, place):
        return False
    before, after = text[place - 1 : place] if place else "", text[end : end + 1]
    return not (_goes_on(before) and _goes_on(name[:1])) and not (_goes_on(after) and _goes_on(name[-1:]))


def _goes_on(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


class Quoted:
    """The passages of a log that contain certain names (`palaver.lab.metrics.passages`)."""

    def __init__(self, names: Finder, said: Iterable[str]) -> None:
        """Set the names and the texts of the log, which are read on first use.

        Args:
            names: The names.
            said: The texts of the log, which can be read later.
        """
        self._names = names
        self._said = said

    def names(self, text: str) -> frozenset[str]:
        """Return the names that a text contains in a passage of the log."""
        return frozenset(name for name, passage in self._of(text) if hash(passage) in self._known)

    def _of(self, text: str) -> Iterator[tuple[str, str]]:
        return (
            (name, passage)
            for name, start in self._names.places(text)
            for passage in passages(text, start, start + len(name))
        )

    @cached_property
    def _known(self) -> frozenset[int]:
        """The hashes of all passages. The passages would need many times as much memory, and equal hashes are extremely rare."""
        return frozenset(hash(passage) for text in self._said for _, passage in self._of(text))


FIRST = 5
"""The number of search hits that a model looks at."""

_K1, _B = 1.2, 0.75
_WORDS = re.compile(r"\w{2,}")
_ASKED = 64
"""The number of words of a query that count, the rarest first: longer queries find the same and cost more."""


class Index:
    """A BM25 index over texts that are added one by one. A search sees the texts added so far."""

    def __init__(self) -> None:
        """Create an empty index."""
        self._postings: dict[str, list[tuple[int, int]]] = {}
        self._lengths: list[int] = []

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._lengths)

    def add(self, text: str) -> None:
        """Add a text; its number is the previous number of texts."""
        counts = Counter(word.casefold() for word in _WORDS.findall(text))
        for word, count in counts.items():
            self._postings.setdefault(word, []).append((len(self._lengths), count))
        self._lengths.append(sum(counts.values()))

    def search(self, query: str, *, among: Collection[int] | None = None, first: int = FIRST) -> Sequence[int]:
        """Return the numbers of the texts that match a query best, the best first.

        Args:
            query: The words.
            among: The texts to choose from. Default: all.
            first: The maximum number of results.
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
