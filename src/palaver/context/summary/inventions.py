"""Inventions: paths, addresses and identifiers in a summary that nobody said.

Of what a summariser makes up, these can be found by code: a path that stands nowhere in the conversation was not read off it. Numbers are left
alone, for a summary may count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["distinctive", "flagged", "invented", "mostly_invented"]

_URL = re.compile(r"https?://[^\s)\"'>\]]+")
_PARTS = re.compile(r"(?<![\w/:.~])(?:~/|\.{0,2}/)?(?:[\w.@+-]+/)+[\w.@+-]*\w")
"""Words with slashes between them: a path, if it begins like one or a part of it looks like a name of a file; `and/or` and `client/server` are none."""

_BEGINS = ("/", "./", "../", "~/")
_NAMED = re.compile(r"_|(?:^|/)\.\w|\w\.(?:[A-Za-z]\w+|[chrs]\b)")
_ID = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9][A-Za-z0-9_-]{7,}\b|(?<!\w)#\d{2,}\b")
_FEW = 3
"""So many made-up values may stand in a summary of any kind, flagged; beyond, it is refused when most of its values are made up."""

_SHOWN = 8


def distinctive(text: str) -> tuple[str, ...]:
    """Give the addresses, paths and identifiers in a text, each once."""
    return tuple(dict.fromkeys(_found(text)))


def _found(text: str) -> Iterator[str]:
    for form in (_URL, _PARTS, _ID):
        for match in form.finditer(text):
            value = match[0].rstrip(".,;:!?")
            if form is not _PARTS or value.startswith(_BEGINS) or _NAMED.search(value):
                yield value


def invented(summary: str, sources: Iterable[str]) -> tuple[str, ...]:
    """Give the distinctive values of a summary that stand in none of its sources; of a path its last part counts."""
    wanted = distinctive(summary)
    if not wanted:
        return ()
    said = "\n".join(sources).casefold()
    return tuple(value for value in wanted if not _stands(value.casefold(), said))


def _stands(value: str, said: str) -> bool:
    return value in said or ("://" not in value and "/" in value and value.rsplit("/", 1)[-1] in said)


def mostly_invented(summary: str, made_up: tuple[str, ...]) -> bool:
    """Tell whether a summary is more invention than summary."""
    return len(made_up) > _FEW and 2 * len(made_up) > len(distinctive(summary))


def flagged(made_up: tuple[str, ...]) -> str:
    """Give the line that says which values of a summary nobody said; an empty text for none."""
    if not made_up:
        return ""
    more = f" and {len(made_up) - _SHOWN} more" if len(made_up) > _SHOWN else ""
    return f"(Nowhere in the conversation, perhaps made up: {', '.join(made_up[:_SHOWN])}{more}.)"
