"""What the user asked for: which of his sentences state a constraint. Nothing is understood, and nothing is reworded."""

# ruff: noqa: RUF001 - punctuation of several languages

from __future__ import annotations

import re
from collections.abc import Iterator

from palaver.context.record.own_words import is_item, paragraphs
from palaver.context.record.wishes import may_state_a_wish, states_a_wish

__all__ = ["rules"]

_END = re.compile(
    r"(?<=[.!?])(?<!\b[ezdi]\.[gBhe]\.)(?<!vs\.)(?<!bzw\.)[\"'”’)*_]*\s+(?=[^\sa-zà-öø-ÿа-я])|(?<=[。！？])"
)
_HEADING = re.compile(
    r"\W*(?:\w+\W+){0,2}(?:constraints?|rules?|requirements?|restrictions?|conventions?|guidelines|don['’]?ts|regeln|vorgaben|anforderungen|einschränkungen|"
    r"reglas|restricciones|requisitos|règles|contraintes|exigences|правила|требования|要求|约束|约定|规则|限制|注意事项|ルール|制約)(?:\W+\w+){0,3}\W*",
    re.IGNORECASE,
)
"""A line of its own behind which each item of a list is a constraint, whatever words it has."""

_LONGEST = 400
_MOST = 32
"""Sentences taken from one message: a pasted page of documentation is not a list of the user's wishes."""


def rules(text: str) -> Iterator[str]:
    """Give the sentences of a text that state a constraint, verbatim, lines into which they were wrapped made one; what was pasted is not read."""
    if not may_state_a_wish(text):
        return
    found = 0
    listed = False  # whether items are constraints here
    for paragraph in paragraphs(text):
        item = is_item(paragraph)
        listed = listed if item else _HEADING.fullmatch(paragraph) is not None
        for part in _END.split(paragraph):
            sentence = part.strip()
            if not 0 < len(sentence) <= _LONGEST or not (states_a_wish(sentence) or (listed and item)):
                continue
            found += 1
            if found > _MOST:
                return
            yield sentence
