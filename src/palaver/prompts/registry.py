"""A registry: things by key, in namespaces."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Generic, TypeVar

from palaver.errors import Ambiguous, InvalidInput, NotFound

__all__ = ["Registry"]

_Thing = TypeVar("_Thing")


class Registry(Generic[_Thing]):
    """Things by key. A key is `name`, or `namespace:name`."""

    def __init__(self, kind: str) -> None:
        """Create an empty registry of one `kind` of thing, as errors name it."""
        self._things: dict[str, _Thing] = {}
        self._kind = kind

    def put(self, name: str, thing: _Thing, namespace: str = "", *, overwrite: bool = False) -> str:
        """Register a thing and return its key.

        Raises:
            InvalidInput: The name is empty, or the key is taken and `overwrite` is false.
        """
        if not name:
            raise InvalidInput(f"{thing!r} has no name.")
        key = f"{namespace}:{name}" if namespace else name
        if not overwrite and key in self._things:
            raise InvalidInput(f"{key!r} is already registered.", hint="Pass overwrite=True to replace it.")
        self._things[key] = thing
        return key

    def find(self, key: str, *namespaces: str) -> _Thing | None:
        """Return the thing with this key, looked up as it is and then in each namespace, or None."""
        for each in (key, *(f"{namespace}:{key}" for namespace in namespaces if namespace)):
            if each in self._things:
                return self._things[each]
        return None

    def get(self, key: str, *namespaces: str) -> _Thing:
        """Return the thing with this key, looked up as `find` does.

        Raises:
            NotFound: There is none; `close` has similar keys.
        """
        found = self.find(key, *namespaces)
        if found is None:
            raise self.lacking(key)
        return found

    def only(self, name: str) -> _Thing | None:
        """Return the one thing that has this name in any namespace, or None.

        Raises:
            Ambiguous: There are several.
        """
        keys = [key for key in self.keys() if key.rpartition(":")[2] == name]
        if len(keys) > 1:
            raise Ambiguous(name, keys, hint="Write the namespace too.")
        return self._things[keys[0]] if keys else None

    def lacking(self, key: str, others: Iterable[str] = ()) -> NotFound:
        """Return the error for an unknown key. `others` are keys of other registries that could have been meant."""
        return NotFound(key, what=self._kind, close=_close(key, (*self._things, *others)))

    def key_of(self, thing: _Thing) -> str | None:
        """Return the key under which this very thing is registered, or None."""
        return next((key for key, known in self._things.items() if known is thing), None)

    def keys(self) -> tuple[str, ...]:
        """Return all keys, sorted."""
        return tuple(sorted(self._things))


def _close(name: str, known: Iterable[str]) -> list[str]:
    """Return similar keys, also those that are similar in their last part."""
    known = sorted(known)
    near = get_close_matches(name, known)
    tail = _tail(name)
    last = {key: _tail(key) for key in known}
    near += [key for key in known if last[key] == tail and key not in near]
    close_tails = get_close_matches(tail, last.values()) if not near else []
    return near + [key for key in known if last[key] in close_tails]


def _tail(key: str) -> str:
    return key.rpartition(":")[2].rpartition("/")[2].partition("#")[0]
