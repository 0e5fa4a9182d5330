"""JSON that cannot change: read-only mappings and lists, clean all the way down.

A value that leaves palaver must not be a way to change it. :class:`FrozenDict` and :class:`FrozenList` refuse every change and
keep what users rely on: they are, and equal, plain dicts and lists, and :mod:`json` writes them. :func:`freeze` makes them of
anything: whatever JSON cannot say is replaced by what it can, and each replacement is recorded.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any, NoReturn

from pydantic_core import CoreSchema, core_schema

from palaver.errors import InvalidMessage
from palaver.messages.normalize import ADDED, REPLACEMENT, Change, clean_text, is_clean

__all__ = ["EMPTY", "FrozenDict", "FrozenList", "freeze", "freeze_plain", "frozen_dict", "frozen_list", "thaw"]

_MAX_DEPTH = 96  # pydantic-core reads 200 levels of JSON, and a value may itself lie some levels deep in an entry
_MAX_BITS = 14_000  # Python does not write integers of more than 4300 digits (sys.get_int_max_str_digits)


def _refuse(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    """Refuse a change."""
    raise TypeError(f"This {type(self).__name__} is part of a value and cannot change; copy it with thaw() first.")


class FrozenDict(dict[str, Any]):
    """A dict that refuses changes, as does everything in it; equal to a plain dict with the same items."""

    __slots__ = ()

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), /) -> None:
        """Copy and freeze the items.

        Raises:
            InvalidMessage: One of them has to be changed to be JSON; :func:`freeze` does that, and says what it changed.
        """
        changes: list[Change] = []
        frozen = freeze(dict(items), "", changes)
        if changes:
            raise InvalidMessage(f"{changes[0].place} has no place in JSON.", hint="Use freeze() to have it replaced.")
        super().__init__(frozen)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        """Accept what is frozen already; a model freezes its fields before they are validated."""
        return core_schema.no_info_plain_validator_function(
            cls._validated,
            json_schema_input_schema=core_schema.dict_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(thaw),
        )

    @classmethod
    def _validated(cls, value: object) -> FrozenDict:
        if isinstance(value, FrozenDict):
            return value
        raise ValueError("must be a mapping")

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def __hash__(self) -> int:  # type: ignore[override] # a plain one may change and has none
        """Hash the items, whatever their order."""
        return hash(frozenset(self.items()))

    def __copy__(self) -> FrozenDict:
        """Give itself: a copy could not differ."""
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> FrozenDict:
        """Give itself: a copy could not differ."""
        return self

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        """Pickle as a call with a plain dict, since items cannot be set one by one."""
        return type(self), (dict(self),)


class FrozenList(list[Any]):
    """A list that refuses changes, as does everything in it; equal to a plain list with the same elements."""

    __slots__ = ()

    def __init__(self, elements: Iterable[Any] = (), /) -> None:
        """Copy and freeze the elements.

        Raises:
            InvalidMessage: One of them has to be changed to be JSON.
        """
        super().__init__(FrozenDict({"": list(elements)})[""])

    __setitem__ = _refuse
    __delitem__ = _refuse
    __iadd__ = _refuse
    __imul__ = _refuse
    append = _refuse
    clear = _refuse
    extend = _refuse
    insert = _refuse
    pop = _refuse
    remove = _refuse
    reverse = _refuse
    sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override] # a plain one may change and has none
        """Hash the elements in order."""
        return hash(tuple(self))

    def __copy__(self) -> FrozenList:
        """Give itself: a copy could not differ."""
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> FrozenList:
        """Give itself: a copy could not differ."""
        return self

    def __reduce__(self) -> tuple[type[FrozenList], tuple[list[Any]]]:
        """Pickle as a call with a plain list, since elements cannot be appended one by one."""
        return type(self), (list(self),)


def thaw(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Copy a JSON value into plain dicts and lists that may be changed."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


def freeze(value: Any, place: str, changes: list[Change]) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """Copy a JSON-like value into its read-only, storable form, appending what had to change to ``changes``.

    Tuples and sets become lists, keys become strings, numbers that are not finite become null, and objects what stands for them:
    their dump or fields, base64 for bytes, else their text.

    Raises:
        InvalidMessage: The value is nested deeper than JSON readers allow, or contains itself.
    """
    if type(value) is FrozenDict or type(value) is FrozenList:
        return value
    try:
        return _freeze_json(value, _MAX_DEPTH)
    except _NoJsonError:
        return _freeze(value, place, changes, 0)


def freeze_plain(value: Any, levels: int = _MAX_DEPTH) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """Copy what a JSON reader gave, whose strings are known to be clean, into its read-only form.

    Raises:
        InvalidMessage: Something in it has to be changed all the same; :func:`freeze` does that.
    """
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is dict and levels:
        items = {
            key: item if type(item) is str else freeze_plain(item, levels - 1)  # most are: the call is saved
            for key, item in value.items()
        }
        return frozen_dict(items)
    if kind is list and levels:
        return frozen_list([freeze_plain(item, levels - 1) for item in value])
    fits = _SCALARS.get(kind)
    if fits is None or not fits(value):
        raise InvalidMessage("Something in it has no place in JSON.", hint="Use freeze() to have it replaced.")
    return value


# --- what is JSON already, as nearly everything is: no places are kept --------------------------------------------------


class _NoJsonError(Exception):
    """Something in the value has to be changed."""


def _freeze_json(value: Any, levels: int) -> Any:  # noqa: ANN401 - JSON in, JSON out
    fits = _SCALARS.get(type(value))
    if fits is None and levels:
        return _freeze_container(value, levels - 1)
    if fits is not None and fits(value):
        return value
    raise _NoJsonError


_SCALARS: dict[type, Callable[[Any], bool]] = {
    str: is_clean,
    int: lambda value: value.bit_length() <= _MAX_BITS,
    float: isfinite,
    bool: lambda _: True,
    type(None): lambda _: True,
}
"""What JSON has beside mappings and lists, each with the test for what can be written."""


def _freeze_container(value: Any, levels: int) -> FrozenDict | FrozenList:  # noqa: ANN401 - any object
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str or not is_clean(key):
                raise _NoJsonError
        return frozen_dict({key: _freeze_json(item, levels) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return frozen_list([_freeze_json(item, levels) for item in value])
    raise _NoJsonError


def frozen_dict(items: dict[str, Any]) -> FrozenDict:
    """Make one of items that are frozen already."""
    frozen: FrozenDict = dict.__new__(FrozenDict)
    dict.update(frozen, items)
    return frozen


def frozen_list(elements: list[Any]) -> FrozenList:
    """Make one of elements that are frozen already."""
    frozen: FrozenList = list.__new__(FrozenList)
    list.extend(frozen, elements)
    return frozen


# --- what is not -------------------------------------------------------------------------------------------------------


def _freeze(value: Any, place: str, changes: list[Change], depth: int) -> Any:  # noqa: ANN401 - anything in, JSON out
    kind = type(value)
    if kind is str:
        return clean_text(value, place, changes)
    if value is None or kind is bool:
        return value
    if kind is int or kind is float:
        return _freeze_number(value, place, changes)
    if depth > _MAX_DEPTH:
        raise InvalidMessage(
            f"The value at {place[:80]} is nested more than {_MAX_DEPTH} levels deep.", hint="Pass it as text."
        )
    if isinstance(value, dict):
        return _freeze_mapping(value, place, changes, depth)
    if isinstance(value, list | tuple):
        return frozen_list([_freeze(item, f"{place}[{i}]", changes, depth + 1) for i, item in enumerate(value)])
    return _freeze_object(value, place, changes, depth)


def _freeze_number(value: float, place: str, changes: list[Change]) -> float | str | None:
    if isinstance(value, int):
        if value.bit_length() <= _MAX_BITS:
            return value
        changes.append(Change(place, "object", original="int"))
        return hex(value)
    if isfinite(value):
        return value
    changes.append(Change(place, "nonfinite", original=repr(value)))
    return None


def _freeze_mapping(value: Mapping[Any, Any], place: str, changes: list[Change], depth: int) -> FrozenDict:
    items: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str and is_clean(key) and key not in items else _new_key(key, place, items, changes)
        items[name] = _freeze(item, _under(place, name), changes, depth + 1)
    return frozen_dict(items)


def _new_key(key: Any, place: str, taken: Mapping[str, Any], changes: list[Change]) -> str:  # noqa: ANN401 - any key
    """Spell a key as a clean string, apart from those that already look the same."""
    found: list[Change] = []
    name = clean_text(_spelt(key), place, found)
    added = 0
    while name + REPLACEMENT * added in taken:
        added += 1
    runs = [run for change in found for run in change.runs]
    if added:
        runs.append((len(name), added, ADDED))
    name += REPLACEMENT * added
    original = "" if isinstance(key, str) else type(key).__qualname__
    changes.append(Change(_under(place, name), "key", tuple(runs), original))
    return name


def _spelt(key: Any) -> str:  # noqa: ANN401 - any key
    """Spell a key as :mod:`json` does."""
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def _under(place: str, key: str) -> str:
    """Spell a step into a mapping so that no two keys look the same."""
    if key.isidentifier():
        return f"{place}.{key}" if place else key
    return place + '["' + key.replace("\\", "\\\\").replace('"', '\\"') + '"]'


def _freeze_object(value: Any, place: str, changes: list[Change], depth: int) -> Any:  # noqa: ANN401 - any object
    """Freeze what stands for an object in JSON."""
    if isinstance(value, Enum):
        return _freeze(value.value, place, changes, depth + 1)
    for base in (str, int, float):
        if isinstance(value, base):
            return _freeze(base(value), place, changes, depth + 1)
    changes.append(Change(place, "object", original=type(value).__qualname__))
    try:
        plain = _represent(value)
    except Exception:  # noqa: BLE001 - somebody's object may raise anything when looked at; its type is what is left
        plain = f"<{type(value).__qualname__}>"
    return _freeze(plain, place, changes, depth + 1)


def _represent(value: Any) -> Any:  # noqa: ANN401 - any object
    """Give what stands for an object: its own dump or fields if it has them, base64 for bytes, else its text."""
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, type) else _dump(value)


def _dump(value: Any) -> Any:  # noqa: ANN401 - any object
    """Give the fields of a dataclass, the dump of a model, the ISO form of a date, else the text of an object."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    for method, options in (("model_dump", {"mode": "json"}), ("isoformat", {})):
        dump = getattr(value, method, None)
        if callable(dump):
            return dump(**options)
    return str(value)


EMPTY = FrozenDict()
"""The mapping with nothing in it, shared by every value that has none."""
