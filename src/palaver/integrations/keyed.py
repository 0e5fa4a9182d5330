"""Sessions that another framework names by keys of its own, and writes that are done anew when another writer was first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from palaver.errors import Conflict, InvalidInput
from palaver.ids import SessionId, derive_id, new_session_id, now
from palaver.store import SessionRecord, SourceRecord, Store
from palaver.store.blocks import require_no_block

__all__ = ["Keyed", "apart", "step"]

TRIES = 64
"""How often a write is tried. Each failure means that another writer got on, so more than a few are rare even among dozens of writers."""

T = TypeVar("T")


def step(store: Store, job: Callable[[], T]) -> T:
    """Do reads and writes as one durable step, and all of it anew when another writer was first.

    Raises:
        Conflict: Other writers were first every time.
    """
    for left in reversed(range(TRIES)):
        try:
            with store.together():
                return job()
        except Conflict:
            if not left:
                raise
    raise AssertionError


async def apart(store: Store, job: Callable[[], T], limiter: CapacityLimiter | None = None) -> T:
    """Do something with a store in another thread.

    Raises:
        InvalidInput: This thread is inside a block of the store: the other one would wait for its end.
    """
    require_no_block(store, "What another framework asks of a store asynchronously")
    return await to_thread.run_sync(job, limiter=limiter)


class Keyed:
    """The sessions of one framework in a store, each found by the framework's own key.

    A key is kept as the source of its session. A session in the trash has no key: writing to the key again makes another session.
    """

    def __init__(self, store: Store, framework: str) -> None:
        self._store = store
        self._framework = framework

    def _identity(self, key: tuple[str, ...]) -> str:
        return f"{self._framework}:{derive_id(*key)}"

    def find(self, *key: str) -> SessionRecord | None:
        """Give the session of a key, or None."""
        source = self._store.source(self._identity(key))
        if source is None:
            return None
        record = self._store.session(source.session_id)
        return record if record.trashed_at is None else None

    def make(self, *key: str, name: str, subject: str = "", about: Mapping[str, object]) -> SessionRecord:
        """Give the session of a key, made if it is not there. Belongs in a `step`.

        Its id is derived from the key and from the session that had the key before, so that of two writers at the same time only one makes it.
        """
        found = self.find(*key)
        if found is not None:
            return found
        identity = self._identity(key)
        before = self._store.source(identity)
        derived = SessionId(derive_id(identity, "" if before is None else before.session_id))
        metadata = {self._framework: dict(about)}
        record = SessionRecord(session_id=derived, name=name, subject=subject, created_at=now(), metadata=metadata)
        try:
            self._store.create_session(record)
        except InvalidInput:
            found = self.find(*key)
            if found is not None:
                return found
            record = SessionRecord(
                session_id=new_session_id(), name=name, subject=subject, created_at=now(), metadata=metadata
            )
            self._store.create_session(record)
        source = SourceRecord(
            identity=identity, session_id=record.session_id, format=self._framework, imported_at=now()
        )
        self._store.put_source(source)
        return record

    def drop(self, *key: str) -> None:
        """Put the session of a key into the trash; without one, nothing happens."""
        found = self.find(*key)
        if found is not None:
            self._store.update_session(found.session_id, trashed_at=now())

    def all(self, subject: str | None = None) -> Iterator[tuple[SessionRecord, Mapping[str, object]]]:
        """Give the framework's sessions, newest activity first, and what was said about each when it was made."""
        for record in self._store.sessions(subject=subject):
            about = record.metadata.get(self._framework)
            if isinstance(about, Mapping):
                yield record, about
