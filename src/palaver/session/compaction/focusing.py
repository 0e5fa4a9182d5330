"""What a focus names: the exchanges that hold its words, the best first to stay, and the words that stand nowhere.

A word says the more the fewer exchanges hold it (Karen Spärck Jones, A statistical interpretation of term specificity, 1972), which needs no
list of small words in any language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from unicodedata import category

from palaver.session.compaction.preview import text_of
from palaver.store import text
from palaver.view import View

__all__ = ["Focused", "focused"]

_ALONE = 3
"""Words of at most so many letters must stand by themselves, as API does not in capital; longer ones are found inside others, as in a plural."""


@dataclass(frozen=True, slots=True)
class Focused:
    """What a focus names in a view.

    Attributes:
        found: The exchanges that hold a word of it, by their number in the view; the one that shall stay longest is the last.
        missing: The words that no exchange holds, as they were typed, without the marks around them.
    """

    found: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()


def focused(view: View, focus: str) -> Focused:
    """Find what holds a word of a focus.

    A word that more than a quarter of the exchanges hold tells nothing apart: it is passed over where a rarer one is found. Where what is found
    is more than half of all exchanges, it is the best quarter of all. The best are those with the rarest words, and of equals the newest.
    """
    wanted = dict.fromkeys(_bare(one) for one in focus.split())
    said = {n: text.fold(text_of(x)) for n, x in enumerate(view.exchanges) if wanted and not x.derived}
    holding: dict[str, frozenset[int]] = {}
    missing = []
    for word in wanted:
        if not text.words(word):
            continue
        found = _holding(said, text.fold(word))
        missing += [] if found else [word]
        holding |= found
    some = max(1, len(view.exchanges) // 4)
    few = {word: places for word, places in holding.items() if len(places) <= some} or holding
    score: dict[int, float] = {}
    for places in few.values():
        for place in places:
            score[place] = score.get(place, 0.0) + log(1 + len(said) / len(places))
    best = tuple(sorted(score, key=lambda place: (score[place], place)))
    most = len(best) if 2 * len(best) <= len(view.exchanges) else some
    return Focused(best[-most:] if best else (), tuple(missing))


def _bare(word: str) -> str:
    """Take off the punctuation that stands around a word in a sentence, in whichever script."""
    first, last = 0, len(word)
    while first < last and category(word[first]).startswith("P"):
        first += 1
    while first < last and category(word[last - 1]).startswith("P"):
        last -= 1
    return word[first:last]


def _holding(said: Mapping[int, str], word: str) -> Mapping[str, frozenset[int]]:
    """Find a word; where it stands nowhere as it is and is of a script that is written without spaces, its parts."""
    for parts in ((word,), text.parts(word) if text.unspaced(word) else ()):
        found = {part: frozenset(n for n, one in said.items() if _stands(part, one)) for part in parts}
        if any(found.values()):
            return {part: places for part, places in found.items() if places}
    return {}


def _stands(word: str, folded: str) -> bool:
    if len(word) > _ALONE or text.unspaced(word):
        return word in folded
    return word in folded and re.search(text.delimited(word), folded) is not None
