"""Make every string storable and sendable where it enters, and keep a record of what was changed.

A lone surrogate or a NUL in one string makes a whole request unsendable, and a session that holds it unusable for good. Both
are replaced, one code point for one, by U+FFFD, the character Unicode has for what cannot be represented (The Unicode Standard,
section 23.8). Each change is recorded as a :class:`Change`, and :func:`restore` undoes those of strings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ADDED", "REPLACEMENT", "Change", "ChangeKind", "clean_text", "cleaned", "is_clean", "restore"]

REPLACEMENT = "\ufffd"
ADDED = -1
"""In a run: the replacement was added, to keep two keys apart, and stands for nothing."""

_DIRTY = re.compile("[\0\ud800-\udfff]")
_ROOT = re.compile(r"[.\[]")

ChangeKind = Literal["surrogate", "nul", "key", "nonfinite", "object"]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing the edge changed.

    Attributes:
        place: Where, from the value that holds the record: ``contents[0].args.path``.
        kind: ``surrogate`` or ``nul`` for code points of a string, ``key`` for a mapping's key, ``nonfinite`` for a number that
            became null, ``object`` for a Python object that became JSON.
        runs: ``(offset, count, code point)`` for strings and keys, offsets in code points of the changed string; the code point
            is -1 where a replacement was added to keep two keys apart.
        original: The number, or the name of the object's type.
    """

    place: str
    kind: ChangeKind
    runs: tuple[tuple[int, int, int], ...] = ()
    original: str = ""

    @property
    def root(self) -> str:
        """The field that was changed, of the value that holds the record."""
        return _ROOT.split(self.place, maxsplit=1)[0]

    def stored_fields(self) -> list[tuple[str, Any]]:
        """Give what the record says, sorted by name."""
        fields = (("kind", self.kind), ("original", self.original), ("place", self.place), ("runs", self.runs))
        return [(name, field) for name, field in fields if field]

    def under(self, prefix: str) -> Change:
        """Give the same change seen from a value that holds this one at ``prefix``."""
        joint = "" if self.place.startswith("[") or not self.place else "."
        return Change(f"{prefix}{joint}{self.place}", self.kind, self.runs, self.original)


def is_clean(text: str) -> bool:
    """Tell whether a string has neither a lone surrogate nor a NUL."""
    if text.isascii():
        return "\0" not in text
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def clean_text(text: str, place: str, changes: list[Change]) -> str:
    """Replace each lone surrogate and NUL by U+FFFD, appending what was changed to ``changes``."""
    if is_clean(text):
        return text
    runs: dict[ChangeKind, list[tuple[int, int, int]]] = {"surrogate": [], "nul": []}
    for match in _DIRTY.finditer(text):
        offset, code = match.start(), ord(match.group())
        known = runs["surrogate" if code else "nul"]
        if known and known[-1][2] == code and known[-1][0] + known[-1][1] == offset:
            known[-1] = (known[-1][0], known[-1][1] + 1, code)
        else:
            known.append((offset, 1, code))
    changes.extend(Change(place, kind, tuple(found)) for kind, found in runs.items() if found)
    return _DIRTY.sub(REPLACEMENT, text)


def cleaned(text: str) -> str:
    """Give a string without lone surrogates and NULs, where nothing keeps what was changed; a string of a class of its own as a plain one."""
    return clean_text(str(text), "", [])


def restore(text: str, changes: Iterable[Change]) -> str:
    """Undo the changes of one string: ``restore(clean_text(x, p, found), found) == x``.

    Only the changes of that string belong in ``changes``: those with its place, and of kind ``key`` for a key.
    """
    characters = list(text)
    for change in changes:
        for offset, count, code in change.runs:
            characters[offset : offset + count] = ["" if code == ADDED else chr(code)] * count
    return "".join(characters)
