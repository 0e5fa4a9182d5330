"""Finding many names in many texts: each text is gone through once, whatever the number of names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

__all__ = ["Finder"]

_WORD = re.compile(r"\w+")


class _Name(NamedTuple):
    """A name, and how far behind its beginning its telling word stands."""

    name: str
    offset: int


class Finder:
    """Finds which of some names stand in a text as a whole: with no letter, digit or `_` directly before or after."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names; what holds no word is never found."""
        words = {name: list(_WORD.finditer(name)) for name in dict.fromkeys(names)}
        shared = Counter(word for found in words.values() for word in {each[0] for each in found})
        by_word: dict[str, list[_Name]] = {}
        for name, found in words.items():
            if found:  # by the word that the fewest others have: paths begin alike, and end alike
                telling = min(found, key=lambda each: (shared[each[0]], -len(each[0])))
                by_word.setdefault(telling[0], []).append(_Name(name, telling.start()))
        self._by_word: Mapping[str, tuple[_Name, ...]] = {word: tuple(named) for word, named in by_word.items()}

    def found(self, text: str) -> frozenset[str]:
        """Return the names that a text holds."""
        return frozenset(name for name, _ in self.places(text))

    def places(self, text: str) -> Iterator[tuple[str, int]]:
        """Return each place at which a text holds a name: the name, and where it begins."""
        by_word = self._by_word
        if not by_word:
            return
        for word in _WORD.finditer(text):
            for name, offset in by_word.get(word[0], ()):
                if _stands(name, text, word.start() - offset):
                    yield name, word.start() - offset


def _stands(name: str, text: str, place: int) -> bool:
    """Return whether a name stands at a place of a text as a whole."""
    end = place + len(name)
    if place < 0 or not text.startswith(name, place):
        return False
    before, after = text[place - 1 : place] if place else "", text[end : end + 1]
    return not (_goes_on(before) and _goes_on(name[:1])) and not (_goes_on(after) and _goes_on(name[-1:]))


def _goes_on(letter: str) -> bool:
    return letter.isalnum() or letter == "_"
