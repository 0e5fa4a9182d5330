"""What the user asked for: which of his sentences state a constraint.

The words are those that COMPINT looks for in user turns when it measures which constraints survive a compaction (must, never, don't,
always, only, use, prefer), and their plain variants. A sentence counts where one of them stands; nothing is understood, and nothing is reworded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["rules"]

_RULE = re.compile(
    r"\b(?:must|mustn't|never|always|don't|do not|dont|should(?:n't| not)?|shall not|may not|cannot|can't|only|"
    r"avoid|prefer|make sure|ensure|remember|keep in mind|note that|required?|forbidden|not allowed|without|"
    r"instead of|no longer|at most|at least|no more than|important|use|stick to|follow)\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^\s*(```|~~~)")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(`])")
_LONGEST = 400
_MOST = 16
"""Sentences taken from one message: a pasted page of documentation is not a list of the user's wishes."""


def rules(text: str) -> Iterator[str]:
    """Give the sentences of a text that state a constraint, verbatim; code between fences is not read."""
    found = 0
    for sentence in _sentences(text):
        if found < _MOST and len(sentence) <= _LONGEST and _RULE.search(sentence):
            found += 1
            yield sentence


def _sentences(text: str) -> Iterator[str]:
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield from (part.strip() for part in _END.split(line) if part.strip())
