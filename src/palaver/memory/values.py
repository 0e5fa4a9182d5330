"""Values: a few named JSON values of a session or a store, such as a cursor, a counter or the state of a screen.

They lie in the metadata of a session. So bundles, archives and syncs bring them along, and they are erased with the session. An encrypted store
seals them with the session's key, unlike the rest of the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from palaver.errors import Conflict, InvalidInput, StoreError
from palaver.ids import SessionId, now
from palaver.memory.subject import memory_of, require_kept
from palaver.messages.frozen import EMPTY, Replaced, freeze, is_clean, thaw
from palaver.session.awaited import in_worker
from palaver.store.metadata import change_metadata
from palaver.store.protocol import VALUES, Store

LARGEST = 16_384
"""The maximum size of a value, in characters of its JSON: lists of sessions read the values of each."""

MOST_CHARACTERS = 65_536
"""The maximum size of all values of a room together, with their keys."""

_LONGEST_KEY = 200

ANY: Any = object()
"""The default of `expect`: whatever the value is."""


class HasSession(Protocol):
    """A session, or any object that locates one."""

    @property
    def store(self) -> Store:
        """The store."""
        ...

    @property
    def session_id(self) -> SessionId:
        """The session."""
        ...


class _StoredSession(NamedTuple):
    store: Store
    session_id: SessionId


class Values:
    """The named JSON values of a session. Several threads and processes may use them at once.

    Only the newest value of a key is kept. All branches of the session have the same values. After a sync both sides have the newest value of each
    key; a key that only one side deleted comes back.
    """

    def __init__(self, session: HasSession) -> None:
        """Open the values of a session. `shared_values` opens those of a store."""
        self.store, self.session_id = session.store, session.session_id

    def __repr__(self) -> str:
        return f"<Values of session {self.session_id[:12]}>"

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 - a JSON value
        """Return a copy of the value of a key; `default` where there is none."""
        return self.list().get(key, default)

    def list(self, prefix: str = "") -> dict[str, Any]:
        """Return copies of all values whose key begins with `prefix`, sorted by key.

        Raises:
            StoreError: The store is encrypted, and the session's key is not there (`no_key`).
        """
        room = _room(self.store.session(self.session_id).metadata)
        return {key: thaw(room[key][1]) for key in sorted(room) if key.startswith(prefix)}

    def set(self, key: str, value: object, *, expect: Any = ANY) -> None:  # noqa: ANN401 - a JSON value
        """Write the value of a key.

        Args:
            key: 1 to 200 characters, without a NUL or a lone surrogate.
            value: A JSON value other than None, of at most 16,384 characters as JSON; tuples become lists. A text must not have a NUL or a lone
                surrogate.
            expect: The value that the caller expects the key to have now, None for no value; then nothing is written if it is another.
                Default: any.

        Raises:
            Conflict: The key has another value than expected: another writer was first.
            InvalidInput: The key or the value is not allowed, or all values of the session together exceed 65,536 characters.
        """
        given: object = key
        if not isinstance(given, str) or not 0 < len(key) <= _LONGEST_KEY or not is_clean(key):
            raise InvalidInput(f"A value cannot have the key {key!r:.60}.", hint=f"Use 1 to {_LONGEST_KEY} characters.")
        if value is None:
            raise InvalidInput(
                f"The value of {key!r} would be None, which says that there is none.", hint="Delete the key."
            )
        stored = _storable(key, value)
        if (size := len(json.dumps(stored))) > LARGEST:
            raise InvalidInput(
                f"The value of {key!r} has {size:,} characters; the maximum is {LARGEST:,}.",
                hint="Write large data as entries: Dialog.record(Custom.exact(...)).",
            )
        self._change(key, expect, {key: [now(), stored]})

    def delete(self, key: str, *, expect: Any = ANY) -> None:  # noqa: ANN401 - a JSON value
        """Delete a key; nothing happens where it has no value.

        Raises:
            Conflict: The key has another value than expected.
        """
        self._change(key, expect, {})

    aget = in_worker(get)

    alist = in_worker(list)  # noqa: A003 - the method

    aset = in_worker(set)  # noqa: A003 - the method

    adelete = in_worker(delete)

    def _change(self, key: str, expect: object, pair: Mapping[str, Any]) -> None:
        wanted = None if expect is ANY else _sorted(_storable(key, expect))

        def changed(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
            room = _room(metadata)
            known = room[key][1] if key in room else None
            if wanted is not None and _sorted(known) != wanted:
                why = f"The value of {key!r} is not the expected one: another writer was first."
                raise Conflict(key, why=why, hint="Read it again.")
            made = {name: stored for name, stored in room.items() if name != key} | dict(pair)
            if pair and (size := len(json.dumps(made))) > MOST_CHARACTERS:
                raise InvalidInput(
                    f"The values would have {size:,} characters together; the maximum is {MOST_CHARACTERS:,}.",
                    hint="Delete some, or write large data as entries.",
                )
            return {**metadata, VALUES: made}

        change_metadata(self.store, self.session_id, changed)


def shared_values(store: Store, name: str = "values") -> Values:
    """Return the values of a name that a whole store shares. They are in a session of their own, which lists show by this name.

    Raises:
        InvalidInput: They are in the trash.
    """
    record = require_kept(memory_of(store, name, ""))
    return Values(_StoredSession(store, record.session_id))


def _room(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a session: of each key when it was written, in seconds since 1970-01-01 UTC, and its value."""
    room: Mapping[str, Any] | str = metadata.get(VALUES, EMPTY)
    if isinstance(room, str):
        hint = "Open the store with the keys that it was made with."
        raise StoreError("The values are encrypted, and the session's key is not there.", reason="no_key", hint=hint)
    return room


def _storable(key: str, value: object) -> object:
    """Return a value as it is stored, read-only."""
    changes: list[Replaced] = []
    stored: object = freeze(value, key, changes)
    if changes:
        raise InvalidInput(
            f"The value of {key!r} cannot be kept as it is: {changes[0].place} has a {_WHY[changes[0].kind]}.",
            hint="Entries keep such a text: Dialog.record(Custom.exact(...)).",
        )
    return stored


_WHY = {
    "surrogate": "lone surrogate",
    "nul": "NUL",
    "key": "key that is not a plain text",
    "nonfinite": "number that is not finite",
    "object": "value that is not JSON",
}


def _sorted(value: object) -> str:
    """Return JSON in which equal values, and no others, are equal: 1 is not true."""
    return json.dumps(value, sort_keys=True)
