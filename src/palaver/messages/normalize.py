"""Clean strings where they enter, so that every value can be stored and sent.

A lone surrogate or a NUL in one string makes a whole request unsendable. Each is replaced by U+FFFD, one code point for
one (The Unicode Standard, section 23.8), and recorded as a :class:`Change`; :func:`restore` undoes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

__all__ = ["REPLACEMENT", "Change", "ChangeKind", "clean_text", "cleaned", "is_clean", "restore"]

REPLACEMENT = "\ufffd"

_DIRTY = re.compile("[\0\ud800-\udfff]")

ChangeKind = Literal["surrogate", "nul", "key", "nonfinite", "object"]


@dataclass(frozen=True, slots=True)
class Change:
    """One replacement made while a value was normalised.

    Attributes:
        place: The path from the value that holds the record, such as ``contents[0].args.path``.
        kind: ``surrogate`` or ``nul`` for code points of a string, ``key`` for a mapping's key, ``nonfinite`` for a number
            that became null, ``object`` for a Python object that became JSON.
        runs: ``(offset, count, code point)`` for each run of replaced code points; offsets count code points.
        original: The original key as ASCII JSON, the number, or the name of the object's type; empty for strings.
    """

    place: str
    kind: ChangeKind
    runs: tuple[tuple[int, int, int], ...] = ()
    original: str = ""

    @property
    def root(self) -> str:
        """The field that was changed."""
        return re.split(r"[.\[]", self.place, maxsplit=1)[0]

    def stored_fields(self) -> list[tuple[str, Any]]:
        """Return the names and values to store, sorted by name."""
        fields = (("kind", self.kind), ("original", self.original), ("place", self.place), ("runs", self.runs))
        return [(name, field) for name, field in fields if field or name == "place"]

    def under(self, prefix: str) -> Change:
        """Return the same change with its place under `prefix`."""
        joint = "." if self.place and not self.place.startswith("[") else ""
        return replace(self, place=f"{prefix}{joint}{self.place}")


def is_clean(text: str) -> bool:
    """Return whether a string has neither a lone surrogate nor a NUL."""
    if text.isascii():  # the common case, and several times as fast
        return "\0" not in text
    return _DIRTY.search(text) is None


def clean_text(text: str, place: str, changes: list[Change]) -> str:
    """Replace each lone surrogate and NUL by U+FFFD, and append what was replaced to `changes`."""
    if is_clean(text):
        return text
    runs: dict[ChangeKind, list[tuple[int, int, int]]] = {"surrogate": [], "nul": []}
    for match in _DIRTY.finditer(text):
        offset, code = match.start(), ord(match.group())
        known = runs["surrogate" if code else "nul"]
        if known and known[-1][2] == code and sum(known[-1][:2]) == offset:
            known[-1] = (known[-1][0], known[-1][1] + 1, code)
        else:
            known.append((offset, 1, code))
    changes.extend(Change(place, kind, tuple(found)) for kind, found in runs.items() if found)
    return _DIRTY.sub(REPLACEMENT, text)


def cleaned(text: str) -> str:
    """Return a plain string without lone surrogates and NULs, recording nothing."""
    return clean_text(str(text), "", [])


def restore(text: str, changes: Iterable[Change]) -> str:
    """Undo the changes of one string: ``restore(clean_text(x, p, found), found) == x``.

    Pass only the changes of that string: those with its place.
    """
    characters = list(text)
    for change in changes:
        for offset, count, code in change.runs:
            characters[offset : offset + count] = chr(code) * count
    return "".join(characters)
