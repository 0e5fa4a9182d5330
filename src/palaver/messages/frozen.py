"""Read-only mappings and lists that still are the JSON kinds of Python.

A value that leaves palaver must not be a way to change it. These subclasses of ``dict`` and ``list`` refuse every change, and
keep what users rely on: they equal plain dicts and lists, and :mod:`json` writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["EMPTY", "FrozenDict", "FrozenList", "thaw"]


def _refuse(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    """Refuse a change."""
    raise TypeError(f"This {type(self).__name__} is part of a value and cannot change; copy it with thaw() first.")


class FrozenDict(dict[str, Any]):
    """A dict that refuses changes; equal to a plain dict with the same items."""

    __slots__ = ()

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
    """A list that refuses changes; equal to a plain list with the same elements."""

    __slots__ = ()

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

    def __reduce__(self) -> tuple[type[FrozenList], tuple[Iterable[Any]]]:
        """Pickle as a call with a tuple, since elements cannot be appended one by one."""
        return type(self), (tuple(self),)


EMPTY = FrozenDict()
"""The mapping with nothing in it, shared by every value that has none."""


def thaw(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Copy a JSON value into plain dicts and lists that may be changed."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value
