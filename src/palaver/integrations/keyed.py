"""Helpers of the adapters: sessions found by another framework's keys, and writes that are repeated after a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from palaver.errors import Conflict, InvalidInput
from palaver.ids import DialogId, SessionId, derive_dialog_id, derive_id, new_session_id, now
from palaver.log import Entry, Handle, Node, Span, child_of, lineage, messages_in
from palaver.session import opened
from palaver.store import SessionRecord, SourceRecord, Store

_TRIES = 64
"""The maximum number of tries of a write. Each failure means that another writer was first, so even with dozens of writers many failures are rare."""

T = TypeVar("T")


def step(store: Store, job: Callable[[], T]) -> T:
    """Run reads and writes in one transaction, and repeat it if another writer was first.

    Raises:
        Conflict: Other writers were first every time.
    """
    for left in reversed(range(_TRIES)):
        try:
            with store.transaction():
                return job()
        except Conflict:
            if not left:
                raise
    raise AssertionError("the last try returns or raises")


def append(store: Store, dialog_id: DialogId, *entries: Entry, head: int | None = None) -> tuple[Handle, ...]:
    """Append entries to a dialog as one durable step, and return their handles.

    Args:
        store: The store.
        dialog_id: The dialog.
        entries: The entries.
        head: The turn head of the log that they follow from, where they depend on what was read: other processes write between a read and this step,
            also inside a transaction. Default: the newest.

    Raises:
        Conflict: Another writer was first; nothing was written.
    """
    rows = opened.append(store, dialog_id, entries, store.last(dialog_id).turn_head if head is None else head)
    return tuple(Handle(dialog_id, header.seq) for header, _body in rows)


def annotate(store: Store, dialog_id: DialogId, entry: Entry) -> Handle:
    """Write an entry outside the turn, and return its handle."""
    return Handle(dialog_id, opened.annotate(store, dialog_id, entry)[0].seq)


def spans_of(store: Store, dialog_id: DialogId) -> tuple[Span, ...]:
    """Return the spans of entries of a dialog, its ancestors' first."""
    return lineage(store.node(dialog_id), store.last(dialog_id).seq + 1)


def create(store: Store, node: Node) -> None:
    """Create a dialog whose id is derived, so that only one of two writers creates it.

    Raises:
        Conflict: Another writer was first.
    """
    try:
        store.create_dialog(node)
    except InvalidInput as error:
        raise Conflict(node.dialog_id, -1, 0) from error


def create_fork(store: Store, parent: DialogId, spans: tuple[Span, ...], metadata: Mapping[str, object]) -> Node:
    """Create a fork that shares these spans, and return it."""
    node = child_of(store.node(parent), spans, messages_in(store, spans), relation="fork", metadata=metadata)
    store.create_dialog(node)
    return node


async def in_thread(store: Store, job: Callable[[], T], limiter: CapacityLimiter | None = None) -> T:
    """Work with a store in another thread.

    Raises:
        InvalidInput: This thread is inside a transaction of the store: the other thread would wait for its end.
    """
    if store.in_transaction:
        raise InvalidInput(
            "An asynchronous call cannot begin inside a transaction of its store.",
            hint="End the transaction first: the call works in another thread, which would wait for it.",
        )
    return await to_thread.run_sync(job, limiter=limiter)


class Keyed:
    """The sessions of one framework in a store, each found by the framework's own key.

    A key is stored as the source of its session. A session in the trash has no key: writing to the key again creates another session.
    """

    def __init__(self, store: Store, framework: str) -> None:
        self._store = store
        self._framework = framework

    def _identity(self, key: tuple[str, ...]) -> str:
        return f"{self._framework}:{derive_id(*key)}"

    def find(self, *key: str) -> SessionRecord | None:
        """Return the session of a key, or None."""
        source = self._store.source(self._identity(key))
        if source is None:
            return None
        record = self._store.session(source.session_id)
        return record if record.trashed_at is None else None

    def make(self, *key: str, name: str, subject: str = "", about: Mapping[str, object]) -> SessionRecord:
        """Return the session of a key, and create it if it does not exist. Call it inside `step`.

        Its id is derived from the key and from the session that had the key before, so only one of two writers creates it.
        """
        known = self.find(*key)
        if known is not None:
            return known
        identity = self._identity(key)
        before = self._store.source(identity)
        derived = SessionId(derive_id(identity, "" if before is None else before.session_id))
        metadata = {self._framework: dict(about)}
        record = SessionRecord(session_id=derived, name=name, subject=subject, created_at=now(), metadata=metadata)
        try:
            self._store.create_session(record)
        except InvalidInput:
            known = self.find(*key)
            if known is not None:
                return known
            record = SessionRecord(
                session_id=new_session_id(), name=name, subject=subject, created_at=now(), metadata=metadata
            )
            self._store.create_session(record)
        source = SourceRecord(
            identity=identity, session_id=record.session_id, format=self._framework, imported_at=now()
        )
        self._store.put_source(source)
        return record

    def root(self, record: SessionRecord) -> DialogId:
        """Create the root dialog of a session that has none. Its id is derived, so only one of two writers creates it.

        Raises:
            Conflict: Another writer was first.
        """
        root = derive_dialog_id(record.session_id, self._framework)
        node = Node(dialog_id=root, session_id=record.session_id, owner="assistant", created_at=now())
        create(self._store, node)
        self._store.update_session(record.session_id, root=root)
        return root

    def drop(self, *key: str) -> None:
        """Move the session of a key to the trash, if there is one."""
        record = self.find(*key)
        if record is not None:
            self._store.update_session(record.session_id, trashed_at=now())

    def all(self, subject: str | None = None) -> Iterator[tuple[SessionRecord, Mapping[str, object]]]:
        """Yield the framework's sessions, newest activity first, with the framework's own data about each."""
        for record in self._store.sessions(subject=subject):
            about = record.metadata.get(self._framework)
            if isinstance(about, Mapping):
                yield record, about
