"""Future-reference recall (FRR): of what the agent was to refer to next, how much the view still held.

Source: reference definition of this project ("future-reference recall": identifiers in the arguments of a tool call that had occurred before
it; the share of them that is in the view before that call). Its nearest relatives are the coverage of distinctive values that
maf-compaction demands before it drops a group, and the fingerprints of dsh-compaction-fidelity. A recorded agent refers to what *its*
context let it refer to, so FRR is an upper bound of what is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["identifiers", "in_arguments"]

_WORD = re.compile(r"[A-Za-z0-9_@](?:[\w@./:#+-]*\w)?")
_NUMBER = re.compile(r"\d[\d.,]*\Z")
_CODE = re.compile(r"[A-Z]{3,}\Z")
_TELLING = re.compile(r"[\d_./@]")
_LEAST = 3
_LONGEST = 200


def identifiers(text: str) -> frozenset[str]:
    """Return the identifiers in a text: words of at least three characters that name something exactly.

    Those are paths, mail addresses, names with a digit, `_`, `.`, `/` or `@` in them, numbers of at least three digits, and codes in capitals.
    Words of prose are none. A word goes on over `@ . / : # + -` between letters and digits.
    """
    return frozenset(word for word in _WORD.findall(text) if _names(word))


def _names(word: str) -> bool:
    if not _LEAST <= len(word) <= _LONGEST:
        return False
    if _NUMBER.match(word):
        return sum(letter.isdigit() for letter in word) >= _LEAST
    return bool(_TELLING.search(word) or _CODE.match(word))


def in_arguments(arguments: Mapping[str, Any]) -> frozenset[str]:
    """Return the identifiers in the values of a call's arguments; the names of arguments are the tool's, not the agent's."""
    return frozenset(name for text in _texts(arguments) for name in identifiers(text))


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
