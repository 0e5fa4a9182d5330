"""Scripts: whether a summary is written as the user writes. Languages of one script cannot be told apart by code; scripts can."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable

__all__ = ["foreign"]

_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK", "HALFWIDTH": "CJK"}
"""Scripts that one language writes side by side."""
_LETTERS = 20
"""Fewer letters of the user's tell nothing."""
_MOST = 10_000
"""Letters that are looked at: more tell no more."""
_SHARE = 0.1
"""Names, paths and commands stay as they are in any language; of the rest so much is at least to be in the user's script."""


def foreign(summary: str, said: Iterable[str]) -> str:
    """Give the script of the user's words where a summary has next to nothing of it, such as `CYRILLIC`; else an empty text.

    Args:
        summary: The summary.
        said: What the user said.
    """
    theirs = _scripts(" ".join(said))
    if theirs.total() < _LETTERS:
        return ""
    ((script, letters),) = theirs.most_common(1)
    ours = _scripts("\n".join(line for line in summary.splitlines() if not line.startswith("#")))  # headings were given
    if letters * 2 < theirs.total() or not ours or ours[script] >= _SHARE * ours.total():
        return ""
    return script


def _scripts(text: str) -> Counter[str]:
    """Count the letters of a text by script: the first word of a letter's name in Unicode."""
    found: Counter[str] = Counter()
    for letter in text[:_MOST]:
        if letter.isalpha():
            script = unicodedata.name(letter, "UNKNOWN").split(" ", 1)[0]
            found[_TOGETHER.get(script, script)] += 1
    return found
