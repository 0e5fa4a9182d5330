"""JSON that cannot change, and is clean.

Every string is cleaned where it enters, so that every value can be stored and sent: a lone surrogate or a NUL in one string makes a whole
request unsendable. Each is replaced by U+FFFD, one code point for one (The Unicode Standard, section 23.8), and recorded as a :class:`Replaced`;
:func:`restore` undoes it. :class:`FrozenDict` and :class:`FrozenList` refuse every change; they are plain dicts and lists to readers, to ``==``
and to :mod:`json`. :func:`freeze` turns any value into them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from math import isfinite
from typing import Any, Literal, NoReturn, Self

from pydantic_core import CoreSchema, core_schema

from palaver.errors import InvalidMessage

REPLACEMENT = "\ufffd"

_DIRTY = re.compile("[\0\ud800-\udfff]")

ChangeKind = Literal["surrogate", "nul", "key", "nonfinite", "object"]


@dataclass(frozen=True, slots=True)
class Replaced:
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

    def under(self, prefix: str) -> Replaced:
        """Return the same change with its place under `prefix`."""
        joint = "." if self.place and not self.place.startswith("[") else ""
        return replace(self, place=f"{prefix}{joint}{self.place}")


def is_clean(text: str) -> bool:
    """Return whether a string has neither a lone surrogate nor a NUL."""
    if "\0" in text:
        return False
    try:
        return text.isascii() or bool(text.encode())  # UTF-8 has no surrogates; half the time of a pattern
    except UnicodeEncodeError:
        return False


def clean_text(text: str, place: str, changes: list[Replaced]) -> str:
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
    changes.extend(Replaced(place, kind, tuple(found)) for kind, found in runs.items() if found)
    return _DIRTY.sub(REPLACEMENT, text)


def cleaned(text: str) -> str:
    """Return a plain string without lone surrogates and NULs, recording nothing."""
    return clean_text(str(text), "", [])


def restore(text: str, changes: Iterable[Replaced]) -> str:
    """Undo the changes of one string: ``restore(clean_text(x, p, found), found) == x``.

    Pass only the changes of that string: those with its place.
    """
    characters = list(text)
    for change in changes:
        for offset, count, code in change.runs:
            characters[offset : offset + count] = chr(code) * count
    return "".join(characters)


_MAX_DEPTH = 96  # pydantic-core reads 200 levels of JSON, and a value may itself lie some levels deep in an entry
_MAX_BITS = 14_000  # Python does not write integers of more than 4300 digits (sys.get_int_max_str_digits)


def _refuse(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(f"This {type(self).__name__} is part of a value and cannot change; copy it with thaw() first.")


class _Frozen:
    """What never changes is its own copy."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        return self


class FrozenDict(_Frozen, dict[str, Any]):
    """A dict that refuses changes, as does everything in it."""

    __slots__ = ()

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), /) -> None:
        """Copy and freeze the items.

        Raises:
            InvalidMessage: An item is not JSON; :func:`freeze` replaces such items instead.
        """
        super().__init__(freeze_json(dict(items), None))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            cls._validated,
            json_schema_input_schema=core_schema.dict_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(thaw),
        )

    @classmethod
    def _validated(cls, value: object, info: core_schema.ValidationInfo) -> FrozenDict:
        if isinstance(value, FrozenDict):
            return value
        if isinstance(value, dict):
            frozen: FrozenDict = freeze_json(value, info)
            return frozen
        raise ValueError("must be a mapping")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override] # a plain dict may change and has none
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)  # pickle cannot set the items one by one


class FrozenList(_Frozen, list[Any]):
    """A list that refuses changes, as does everything in it."""

    __slots__ = ()

    def __init__(self, elements: Iterable[Any] = (), /) -> None:
        """Copy and freeze the elements.

        Raises:
            InvalidMessage: An element is not JSON.
        """
        super().__init__(freeze_json(list(elements), None))

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override] # a plain list may change and has none
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type[FrozenList], tuple[list[Any]]]:
        return type(self), (list(self),)  # pickle cannot append the elements one by one


def frozen_dict(items: dict[str, Any]) -> FrozenDict:
    """Return a FrozenDict of items that are frozen already."""
    frozen: FrozenDict = dict.__new__(FrozenDict)
    dict.update(frozen, items)
    return frozen


def frozen_list(elements: list[Any]) -> FrozenList:
    """Return a FrozenList of elements that are frozen already."""
    frozen: FrozenList = list.__new__(FrozenList)
    list.extend(frozen, elements)
    return frozen


EMPTY = frozen_dict({})
"""The empty mapping that every value without one shares."""


def thaw(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Copy a JSON value into plain dicts and lists that may be changed."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


def freeze(value: Any, place: str = "", changes: list[Replaced] | None = None) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """Copy a JSON-like value into its read-only, storable form, and append what had to be replaced to `changes`, if it is passed.

    Tuples and sets become lists, keys become strings, numbers that are not finite become null. Other objects become their
    dump, their fields, base64 for bytes, or their text.

    Raises:
        InvalidMessage: The value is nested more than 96 levels deep, or contains itself.
    """
    kind = type(value)
    if kind is FrozenDict or kind is FrozenList:
        return value
    return _freeze(value, (None, place), [] if changes is None else changes, 0)


STORED = object()
"""Validation context for fields that this library wrote: they are clean JSON, and nothing in them has to be replaced."""


_DIRTY_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def is_plain(body: bytes) -> bool:
    """Return whether JSON text escapes neither a NUL nor a surrogate: then no string in it needs cleaning."""
    return b"\\" not in body or _DIRTY_ESCAPE.search(body) is None  # one byte is found several times as fast as two


def freeze_json(value: Any, info: core_schema.ValidationInfo | None) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """Copy a JSON value into its read-only form; with the context STORED, do not look for what is not JSON.

    Raises:
        InvalidMessage: Something in it is not JSON; :func:`freeze` replaces it instead.
    """
    if info is not None and info.context is STORED:
        return _freeze_stored(value)
    changes: list[Replaced] = []
    frozen = freeze(value, "", changes)
    if changes:
        raise InvalidMessage(f"{changes[0].place} has no place in JSON.", hint="Use freeze() to have it replaced.")
    return frozen


def _freeze_stored(value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
    kind = type(value)
    if kind is dict:
        return frozen_dict({key: item if type(item) is str else _freeze_stored(item) for key, item in value.items()})
    return frozen_list([_freeze_stored(item) for item in value]) if kind is list else value


_Path = tuple[Any, object]
"""A place: the path that leads there, and the last step. It is spelt out only where something is replaced."""


def _freeze(value: Any, path: _Path, changes: list[Replaced], depth: int) -> Any:  # noqa: ANN401 - anything in, JSON out
    kind = type(value)
    if kind is str:
        return value if is_clean(value) else clean_text(value, _spelt(path), changes)
    if value is None or kind is bool:
        return value
    if kind is int or kind is float:
        return _number(value, path, changes)
    if depth > _MAX_DEPTH:
        raise InvalidMessage(
            f"The value at {_spelt(path)[:80]} is nested more than {_MAX_DEPTH} levels deep.", hint="Pass it as text."
        )
    if isinstance(value, dict):
        return _mapping(value, path, changes, depth + 1)
    if isinstance(value, list | tuple):
        return frozen_list([_freeze(item, (path, index), changes, depth + 1) for index, item in enumerate(value)])
    return _freeze(_plain(value, path, changes), path, changes, depth + 1)


def _mapping(value: Mapping[Any, Any], path: _Path, changes: list[Replaced], depth: int) -> FrozenDict:
    items: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str and is_clean(key) and key not in items else _key(key, path, items, changes)
        items[name] = _freeze(item, (path, name), changes, depth)
    return frozen_dict(items)


def _key(key: Any, path: _Path, taken: Mapping[str, Any], changes: list[Replaced]) -> str:  # noqa: ANN401 - any key
    """Return a clean string for a key, unlike those that are taken."""
    plain = key.value if isinstance(key, Enum) else key
    text = json.dumps(plain) if plain is None or isinstance(plain, bool) else str(plain)
    name = clean_text(text, "", [])
    while name in taken:
        name += REPLACEMENT
    changes.append(Replaced(_spelt((path, name)), "key", original=json.dumps(text)))
    return name


def _number(value: float, path: _Path, changes: list[Replaced]) -> float | str | None:
    if isinstance(value, int):
        if value.bit_length() <= _MAX_BITS:
            return value
        changes.append(Replaced(_spelt(path), "object", original="int"))
        return hex(value)
    if isfinite(value):
        return value
    changes.append(Replaced(_spelt(path), "nonfinite", original=repr(value)))
    return None


def _plain(value: Any, path: _Path, changes: list[Replaced]) -> Any:  # noqa: ANN401 - any object
    """Return what represents an object in JSON; it may need freezing itself."""
    if isinstance(value, Enum):
        return value.value
    for base in (str, int, float):
        if isinstance(value, base):
            return base(value)
    changes.append(Replaced(_spelt(path), "object", original=type(value).__qualname__))
    try:
        return _represented(value)
    except Exception:  # noqa: BLE001 - any object may raise anything when it is looked at
        return f"<{type(value).__qualname__}>"


def _represented(value: Any) -> Any:  # noqa: ANN401 - any object
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    for method, options in (("model_dump", {"mode": "json"}), ("isoformat", {})):
        if not isinstance(value, type) and callable(dump := getattr(value, method, None)):
            return dump(**options)
    return str(value)


def _spelt(path: _Path) -> str:
    steps = []
    while path[0] is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return (str(path[1]) + "".join(reversed(steps))).removeprefix(".")
