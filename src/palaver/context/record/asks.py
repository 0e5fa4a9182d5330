"""What the user asked for: which of his sentences state a constraint. Nothing is understood, and nothing is reworded."""

# ruff: noqa: RUF001 - punctuation of several languages

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from palaver.context.record.own_words import is_item, paragraphs
from palaver.context.record.wishes import may_state_a_wish, states_a_wish
from palaver.view import dressed

__all__ = ["rules", "sentences"]

_END = re.compile(
    r"(?<=[.!?])(?<!\b[ezdi]\.[gBhe]\.)(?<!vs\.)(?<!bzw\.)[\"'”’)*_]*\s+(?=[^\sa-zà-öø-ÿа-я])|(?<=[。！？])"
    r"|(?:(?<=[^\W\d_]{3}[.!?])|(?<=[^\W\d_]{2}[!?]{2}))(?<!\betc\.)(?<!prox\.)(?<!incl\.)(?<!inkl\.)(?<!\bresp\.)(?<!\bmax\.)(?<!\bmin\.)(?<!\busw\.)\s+(?=[a-zà-öø-ÿа-я])"
)
"""Where a sentence ends; many who type do not begin the next one with a capital."""

_QUOTES_ON = re.compile(
    r"(?:\b(?:following|this|below)(?: \w+)? (?:articles?|texts?|documents?|e-?mails?|messages?|paragraphs?|passages?|stor(?:y|ies)|sentences?|poems?|conversations?|transcripts?|reviews?)|"
    r"^\W*(?:please )?(?:translate|summari[sz]e|rewrite|paraphrase|proofread|rephrase|correct)\b[^:]{0,60}):\s+(?=\S)",
    re.IGNORECASE,
)
"""Behind this what is to be worked on stands in the same line."""
_HEADING = re.compile(
    r"\W*(?:\w+\W+){0,2}(?:constraints?|rules?|requirements?|restrictions?|conventions?|guidelines|preferences|standards|(?:code |coding |writing )?style(?: guide)?|policies|don['’]?ts|regeln|vorgaben|anforderungen|einschränkungen|"
    r"reglas|restricciones|requisitos|règles|contraintes|exigences|правила|требования|要求|约束|约定|规则|限制|注意事项|ルール|制約)(?:\W+\w+){0,3}\W*",
    re.IGNORECASE,
)
"""A line of its own behind which each item of a list is a constraint, whatever words it has."""

_HEADINGS = re.compile(r"^(?:#{1,6} \S.*|\*\*[^*\n]+\*\*:?[ \t]*)$", re.MULTILINE)
_INSTRUCTS = re.compile(
    r"\b(?:rules?|guidelines?|conventions?|preferences?|instructions|style|standards?|working agreement|how (?:we|to|i) work|(?:claude|agents|gemini)\.md|regeln|vorgaben|reglas|règles|правила)\b|规则|规范|约定|规定|ルール",
    re.IGNORECASE,
)
"""What stands in a heading of a document that tells somebody how to work."""

_FEW_HEADINGS = 3
_DOCUMENT = 1_500
"""Characters and headings from which on a message is a document."""

_REPORTED = re.compile(
    r"\W*(?:(?:and|but|so|now|then|also)\W+)?(?:(?:the|this|that|its|an?|one)\s+)?(?:[\w.-]+\s+){0,3}?"
    r"(?:page|website|web ?site|site|url|link|banner|pop-?up|search results?|tools?|outputs?|results?|responses?|error|errors|log|logs|e-?mail|document|pdf|article|snippet|issue|ticket|comment|file|readme)\s+"
    r"(?:(?:also|now|just|even|then)\s+)?(?:says?|said|states?|stated|reads?|claims?|tells? (?:me|us|you)|told (?:me|us|you)|asks? (?:me|us|you)|asked (?:me|us|you)|instructs?|wants (?:me|us|you)|demands?|warns?)\b",
    re.IGNORECASE,
)
"""How it begins when somebody tells what something that can be read says: it is not he who demands it."""

_SHORT = 4_000
"""Characters of a text whose rules are kept between two calls."""

_LONGEST = 400
_MOST = 32
"""Sentences taken from one message: a pasted page of documentation is not a list of the user's wishes."""


def rules(text: str) -> Iterator[str]:
    """Give the sentences of a text that state a constraint, verbatim, lines into which they were wrapped made one; what was pasted is not read."""
    yield from _known(text) if len(text) <= _SHORT else _found(text)


@lru_cache(maxsize=8_192)
def _known(text: str) -> tuple[str, ...]:
    """Give the rules of a text that is not long: views are planned again and again, and what was said in them stays what it is."""
    return tuple(_found(text))


def _found(text: str) -> Iterator[str]:
    if not may_state_a_wish(text) or dressed(text):
        return
    firmly = _is_document(text)
    found = 0
    for sentence, listed in sentences(text):
        if (
            len(sentence) > _LONGEST
            or _REPORTED.match(sentence)
            or not (listed or states_a_wish(sentence, firmly=firmly))
        ):
            continue
        found += 1
        if found > _MOST:
            return
        yield sentence


def sentences(text: str) -> Iterator[tuple[str, bool]]:
    """Give the sentences that the user wrote himself, and whether each is an item of a list under a heading that says what its items are."""
    listed = False
    for paragraph in paragraphs(text):
        item = is_item(paragraph)
        listed = listed if item else _HEADING.fullmatch(paragraph) is not None
        given = _QUOTES_ON.search(paragraph)
        for part in _END.split(paragraph if given is None else paragraph[: given.end()]):
            sentence = part.strip()
            if sentence:
                yield sentence, listed and item


def _is_document(text: str) -> bool:
    """Tell whether a message is a document that describes a thing: a plan or a specification, with headings, and none of them about how to work."""
    if len(text) <= _DOCUMENT:
        return False
    headings = _HEADINGS.findall(text)
    return len(headings) >= _FEW_HEADINGS and not any(map(_INSTRUCTS.search, headings))
