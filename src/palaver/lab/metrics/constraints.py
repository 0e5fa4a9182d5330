"""Constraint survival: whether what the user said must or must not be is still in the view.

Source: COMPINT, "Lost in Compaction" (arXiv 2608.11242): of 750 side constraints in user turns 17 % survive compaction by a model. There a judge
decides; here a sentence survives when at least 0.8 of its word trigrams stand in one text of the view.
"""

from __future__ import annotations

import re

__all__ = ["ENOUGH", "survives"]

ENOUGH = 0.8
_SIZE = 3
_WORDS = re.compile(r"\w+")


def survives(sentence: str, text: str) -> bool:
    """Tell whether a sentence is still said by a text: by at least 0.8 of its word trigrams; by all its words where it has fewer than three.

    Upper and lower case and what stands between words do not matter.
    """
    wanted = _grams(sentence)
    if not wanted:
        return False
    return len(wanted & _grams(text, size=len(next(iter(wanted))))) >= ENOUGH * len(wanted)


def _grams(text: str, size: int | None = None) -> frozenset[tuple[str, ...]]:
    words = [word.casefold() for word in _WORDS.findall(text)]
    most = min(_SIZE, len(words)) if size is None else size
    return (
        frozenset(tuple(words[place : place + most]) for place in range(len(words) - most + 1)) if most else frozenset()
    )
