"""Make every value storable and sendable where it enters, and keep a record of what was changed.

A lone surrogate or a NUL in one string makes a whole request unsendable, and a session that holds it unusable for good. Both
are replaced, one code point for one, by U+FFFD. Whatever JSON cannot say (a number that is not finite, an object of Python) is
replaced by what it can. Each change is recorded as a :class:`Change`, and :func:`restore` undoes those of strings.
"""

from __future__ import annotations

import base64
import math
import re
from dataclasses import asdict, dataclass, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from palaver.errors import InvalidMessage
from palaver.messages.frozen import FrozenDict, FrozenList

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Change", "clean_text", "freeze", "is_clean", "restore"]

REPLACEMENT = "\ufffd"
ADDED = -1
"""In a run: the replacement was added, to keep two keys apart, and stands for nothing."""

_ROOT = re.compile(r"[.\[]")
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF
_MAX_DEPTH = 96  # the JSON reader of pydantic-core stops at 200; a value may itself lie some levels deep in an entry
_MAX_BITS = 14_000  # Python refuses to write integers of more than 4300 digits

ChangeKind = Literal["surrogate", "nul", "key", "nonfinite", "object"]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing the edge changed.

    Attributes:
        place: Where, from the value that holds the record: ``contents[0].args.path``.
        kind: ``surrogate`` or ``nul`` for code points of a string, ``key`` for those of a mapping's key, ``nonfinite`` for a
            number that became null, ``object`` for a Python object that became JSON.
        runs: ``(offset, count, code point)`` for strings, offsets in code points of the changed string; the code point is
            -1 where a replacement was added to keep two keys apart.
        original: The number, or the name of the object's type.
    """

    place: str
    kind: ChangeKind
    runs: tuple[tuple[int, int, int], ...] = ()
    original: str = ""

    @property
    def root(self) -> str:
        """The field of the value that holds the record."""
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
    for offset, character in enumerate(text):
        code = ord(character)
        if code and not _FIRST_SURROGATE <= code <= _LAST_SURROGATE:
            continue
        known = runs["surrogate" if code else "nul"]
        if known and known[-1][2] == code and sum(known[-1][:2]) == offset:
            known[-1] = (known[-1][0], known[-1][1] + 1, code)
        else:
            known.append((offset, 1, code))
    changes.extend(Change(place, kind, tuple(found)) for kind, found in runs.items() if found)
    return "".join(REPLACEMENT if _is_dirty(character) else character for character in text)


def _is_dirty(character: str) -> bool:
    return character == "\0" or _FIRST_SURROGATE <= ord(character) <= _LAST_SURROGATE


def restore(text: str, changes: Iterable[Change]) -> str:
    """Undo the changes of one string: ``restore(clean_text(x, p, found), found) == x``.

    Only the changes of that string belong in ``changes``: those with its place, and of kind ``key`` for a key.
    """
    characters = list(text)
    for change in changes:
        for offset, count, code in change.runs:
            characters[offset : offset + count] = ["" if code == ADDED else chr(code)] * count
    return "".join(characters)


def freeze(value: Any, place: str, changes: list[Change], depth: int = 0) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """Copy a JSON-like value into its read-only, storable form, appending what had to change to ``changes``.

    Tuples and sets become lists, keys become strings, numbers that are not finite become null, other objects become what
    :func:`_represent` makes of them.

    Raises:
        InvalidMessage: The value is nested deeper than JSON readers allow, or contains itself.
    """
    kind = type(value)
    if kind is str:
        return clean_text(value, place, changes)
    if value is None or kind is bool:
        return value
    if depth > _MAX_DEPTH:
        raise InvalidMessage(
            f"The value at {place[:80]} is nested more than {_MAX_DEPTH} levels deep.", hint="Pass it as text."
        )
    if kind is int or kind is float:
        return _freeze_number(value, place, changes)
    if isinstance(value, dict):
        return _freeze_mapping(value, place, changes, depth)
    if isinstance(value, list | tuple):
        return FrozenList([freeze(item, f"{place}[{i}]", changes, depth + 1) for i, item in enumerate(value)])
    return _freeze_object(value, place, changes, depth)


def _freeze_number(value: float, place: str, changes: list[Change]) -> float | str | None:
    if isinstance(value, int):
        if value.bit_length() <= _MAX_BITS:
            return value
        changes.append(Change(place, "object", original="int"))
        return hex(value)
    if math.isfinite(value):
        return value
    changes.append(Change(place, "nonfinite", original=repr(value)))
    return None


def _freeze_mapping(value: Mapping[Any, Any], place: str, changes: list[Change], depth: int) -> FrozenDict:
    items: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str else _key(key)
        if not (is_clean(name) and name not in items):
            name = _clean_key(name, place, items, changes)
        items[name] = freeze(item, f"{place}{_step(name)}", changes, depth + 1)
    return FrozenDict(items)


def _clean_key(key: str, place: str, taken: Mapping[str, Any], changes: list[Change]) -> str:
    """Clean a key, and keep it apart from those that already look the same."""
    found: list[Change] = []
    name = clean_text(key, place, found)
    added = 0
    while name + REPLACEMENT * added in taken:
        added += 1
    runs = [run for change in found for run in change.runs]
    if added:
        runs.append((len(name), added, ADDED))
    name += REPLACEMENT * added
    changes.append(Change(f"{place}{_step(name)}", "key", tuple(runs)))
    return name


def _key(key: Any) -> str:  # noqa: ANN401 - whatever was used as a key
    """Spell a key as :mod:`json` does."""
    if isinstance(key, Enum) and isinstance(key.value, str):
        return key.value
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def _step(key: str) -> str:
    """Spell one step into a mapping so that no two keys look the same."""
    if key.isidentifier():
        return f".{key}"
    return '["' + key.replace("\\", "\\\\").replace('"', '\\"') + '"]'


def _freeze_object(value: Any, place: str, changes: list[Change], depth: int) -> Any:  # noqa: ANN401 - any object
    """Freeze what stands for an object of Python in JSON."""
    if isinstance(value, Enum):
        return freeze(value.value, place, changes, depth + 1)
    for base in (str, int, float):
        if isinstance(value, base):
            return freeze(base(value), place, changes, depth + 1)
    changes.append(Change(place, "object", original=type(value).__qualname__))
    return freeze(_represent(value), place, changes, depth + 1)


def _represent(value: Any) -> Any:  # noqa: ANN401 - any object
    """Give what stands for an object in JSON: its own dump or fields if it has them, base64 for bytes, else its text."""
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    items = getattr(value, "items", None)
    if callable(items) and hasattr(value, "__getitem__"):
        return dict(items())
    isoformat = getattr(value, "isoformat", None)
    return isoformat() if callable(isoformat) else str(value)
