"""Several databases as one store: a session, with all that belongs to it, lies in the one that the last four digits of its id say.

A dialog's id ends in the same digits, so no look-up is needed. What concerns all sessions asks every database. A transaction lies in one: the
first session that it writes to chooses it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import update_wrapper
from heapq import merge
from inspect import signature
from itertools import chain, islice
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from palaver.errors import Ambiguous, StoreError
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Node
from palaver.store.erasing import Eraser, Gone, KeptReceipt, Placed, Stray, Thing
from palaver.store.protocol import Capability, Durability, Hit, SessionRecord, SourceRecord
from palaver.store.records import closed
from palaver.store.route import PartStore, Route, is_id, take_places
from palaver.store.verify import Inspectable

_DURABILITY = (Durability.MEMORY, Durability.NORMAL, Durability.FULL)

P = ParamSpec("P")
T = TypeVar("T")


def _read(method: Callable[Concatenate[PartStore, P], T]) -> Callable[Concatenate[RoutedStore, P], T]:
    """Return a method that reads, of the database that has the session or dialog of the first argument."""
    return _routed(method, Route.at)


def _written(method: Callable[Concatenate[PartStore, P], T]) -> Callable[Concatenate[RoutedStore, P], T]:
    """Return a method that writes, of the database that has the session or dialog of the first argument."""
    return _routed(method, Route.to)


def _routed(
    method: Callable[Concatenate[PartStore, P], T], place: Callable[[Route, str], PartStore]
) -> Callable[Concatenate[RoutedStore, P], T]:
    _self, key, *_more = signature(method).parameters

    def routed(self: RoutedStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        store = place(self.route, str(args[0] if args else kwargs[key]))
        made: T = getattr(store, method.__name__)(*args, **kwargs)
        return made

    update_wrapper(routed, method)
    return routed


class RoutedStore:
    """A store over several databases.

    - The databases, their number and their order are chosen once, while they are empty; each remembers its place. To have more of them, copy or
      synchronise the store into a new one.
    - A transaction, and an erasure, writes to one database; a write to another raises `StoreError` (reason `unsupported`). Sessions with equal last
      digits are in one database.
    - The lock of a transaction is in the first database. So is a lease, unless its name ends in the id of a session or dialog.
    - A receipt is in the database of the erased session; an empty one is in the first database.
    - A search asks every database for the newest. Their hits are merged by the times of the entries; ranked, by their scores.

    Attributes:
        stores: The databases.
        route: Which of them has what.
    """

    def __init__(self, stores: Sequence[PartStore]) -> None:
        """Make one store of several, which it closes.

        Args:
            stores: The databases in their order; new ones must be empty.

        Raises:
            InvalidInput: A database is another one of its store, or of another store; or a new one has sessions.
            StoreError: A new one is read-only.
        """
        self.stores = tuple(stores)
        self.durability = min((store.durability for store in stores), key=_DURABILITY.index)
        shared = frozenset.intersection(*(store.capabilities for store in stores))
        self.capabilities = shared - {Capability.SPANNING}
        self.url = " ".join(store.url for store in stores)
        self.remote = any(store.remote for store in stores)
        self.route = Route(self.stores)
        self._open = True
        take_places(self.stores)

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close all databases."""
        self._open = False
        with ExitStack() as stack:
            for store in self.stores:
                stack.enter_context(closing(store))

    def transaction(self, lock: str = "") -> AbstractContextManager[None]:
        """Make one step of the writes of this thread inside the block, all to one database."""
        if not self._open:
            raise closed(f"over {len(self.stores)} databases")
        return self.route.transaction(lock)

    @property
    def in_transaction(self) -> bool:
        """Whether this thread is inside a transaction."""
        return self.route.in_transaction

    # --- what is about one session or dialog: its first argument -----------------------------------------------------------------

    session = _read(PartStore.session)
    root = _read(PartStore.root)
    nodes = _read(PartStore.nodes)
    node = _read(PartStore.node)
    last = _read(PartStore.last)
    header = _read(PartStore.header)
    headers = _read(PartStore.headers)
    tail = _read(PartStore.tail)
    latest_of_kind = _read(PartStore.latest_of_kind)
    bodies = _read(PartStore.bodies)
    body = _read(PartStore.body)
    blob = _read(PartStore.blob)
    has_blob = _read(PartStore.has_blob)
    blob_ids = _read(PartStore.blob_ids)
    sources = _read(PartStore.sources)
    files = _read(PartStore.files)
    verify = _read(PartStore.verify)
    lease = _read(PartStore.lease)
    append = _written(PartStore.append)
    annotate = _written(PartStore.annotate)
    take_entries = _written(PartStore.take_entries)
    put_blob = _written(PartStore.put_blob)
    change_lease = _written(PartStore.change_lease)
    note_file = _written(PartStore.note_file)
    forget_file = _written(PartStore.forget_file)

    # --- sessions -------------------------------------------------------------------------------------------------------------

    def create_session(self, record: SessionRecord, root: Node | None = None) -> None:
        """Write a new session, and its first dialog."""
        self.route.to(record.session_id).create_session(record, root)

    def sessions(  # noqa: PLR0913 - filters, by keyword
        self,
        *,
        tenant: str | None = None,
        name: str | None = None,
        subject: str | None = None,
        trashed: bool = False,
        archived: bool = False,
        limit: int | None = None,
        after: SessionRecord | None = None,
    ) -> Iterator[SessionRecord]:
        """Return sessions, newest activity first."""
        filters: Any = {"tenant": tenant, "name": name, "subject": subject, "trashed": trashed, "archived": archived}
        pages = [store.sessions(**filters, limit=limit, after=after) for store in self.stores]
        newest = merge(*pages, key=lambda record: (record.updated_at, record.session_id), reverse=True)
        return newest if limit is None else iter([record for record, _ in zip(newest, range(limit), strict=False)])

    def update_session(self, session_id: SessionId, **changes: object) -> SessionRecord:
        """Change what may change of a session."""
        return self.route.to(session_id).update_session(session_id, **changes)

    def sessions_beginning(self, prefix: str, limit: int = 2) -> tuple[SessionId, ...]:
        """Return ids of sessions that begin with a prefix."""
        return tuple(sorted(chain(*(store.sessions_beginning(prefix, limit) for store in self.stores)))[:limit])

    # --- the tree ---------------------------------------------------------------------------------------------------------------

    def create_dialog(self, node: Node) -> Node:
        """Write a dialog's node and return it with `order` set."""
        return self.route.to(node.session_id).create_dialog(node)

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Return the one dialog whose id begins with `prefix`."""
        if session_id is not None or is_id(prefix):
            return self.route.at(session_id or prefix).resolve(prefix, session_id)

        def named(store: PartStore) -> tuple[str, ...]:
            try:
                return (store.resolve(prefix),)
            except Ambiguous as error:
                return error.candidates

        candidates = sorted(chain(*self.route.answers(named)))
        if len(candidates) > 1:
            raise Ambiguous(prefix, candidates)
        return DialogId(candidates[0])

    # --- payloads and sources -----------------------------------------------------------------------------------------------------

    def put_source(self, record: SourceRecord) -> None:
        """Write, or replace, the record of a foreign conversation; it moves to no session of another database."""
        known = self.source(record.identity)
        if known is not None and self.route.number(known.session_id) != self.route.number(record.session_id):
            raise StoreError(
                f"The source {record.identity} became session {known.session_id}, which is in another database.",
                reason="unsupported",
                hint="Erase that session first.",
            )
        self.route.to(record.session_id).put_source(record)

    def source(self, identity: str) -> SourceRecord | None:
        """Return the record of a foreign conversation, or None."""
        records = (store.source(identity) for store in self.stores)
        return next((record for record in records if record is not None), None)

    # --- search -----------------------------------------------------------------------------------------------------------------

    def index(
        self,
        extract: Callable[[str, bytes], str],
        limit: int | None = None,
        *,
        session_id: SessionId | None = None,
    ) -> int:
        """Add the entries written since the last call to the full-text index, and return how many."""
        if session_id is not None:
            return self.route.to(session_id).index(extract, limit, session_id=session_id)
        done = 0
        for part in range(len(self.stores)):
            done += self.route.writing(part).index(extract, None if limit is None else limit - done)
        return done

    def index_lag(self) -> int:
        """Return how many entries are not yet in the full-text index."""
        return sum(store.index_lag() for store in self.stores)

    def search(
        self,
        query: str,
        *,
        session_id: SessionId | None = None,
        limit: int = 20,
        ranked: bool = False,
        which: Callable[[Hit], bool] | None = None,
    ) -> tuple[Hit, ...]:
        """Return the entries with all words of `query`, newest first; with `ranked` any of them, best first."""
        if session_id is not None:
            store = self.route.at(session_id)
            return store.search(query, session_id=session_id, limit=limit, ranked=ranked, which=which)
        hits = [store.search(query, limit=limit, ranked=ranked, which=which) for store in self.stores]
        merged = merge(*hits, key=lambda hit: hit.score if ranked else hit.at, reverse=True)
        return tuple(islice(merged, max(0, limit)))

    # --- health --------------------------------------------------------------------------------------------------------

    def faults(self, extract: Callable[[str, bytes], str] | None) -> Iterator[tuple[str, str, str]]:
        """Find what is wrong in each database, and sessions that are in another one than their ids say."""
        for number, store in enumerate(self.stores):
            if isinstance(store, Inspectable):
                yield from store.faults(extract)
            for record in _records(store):
                if (right := self.route.number(record.session_id)) != number:
                    what = f"The session is in database {number + 1}; its id says {right + 1}, so nobody finds it."
                    yield record.session_id, "wrong_schema", what

    # --- erasing (`palaver.store.erasing`) ----------------------------------------------------------------------------------------

    @contextmanager
    def erasing(self) -> Iterator[Eraser]:
        """Begin an erasure: one transaction."""
        with self.transaction():
            yield RoutedEraser(self.route)

    def gone(self, thing: Thing, name: str) -> Gone | None:
        """Return when something was erased; a dialog may be named by the first digits of its id."""
        return next((gone for store in self.stores if (gone := store.gone(thing, name)) is not None), None)

    def all_gone(self) -> Iterator[tuple[Thing, str, Gone]]:
        """Return all that is remembered to be erased."""
        return merge(*(store.all_gone() for store in self.stores), key=lambda gone: gone[:2])

    def receipts(self) -> tuple[KeptReceipt, ...]:
        """Return all receipts, those of each database the oldest first."""
        return tuple(chain(*(store.receipts() for store in self.stores)))

    def scrub(self, *, thorough: bool = True) -> tuple[str, ...]:
        """Remove what was deleted from the storage, and return what is still pending."""
        return tuple(dict.fromkeys(chain(*(store.scrub(thorough=thorough) for store in self.stores))))

    def strays(self) -> Iterator[Stray]:
        """Return the payloads that nothing names in their database."""
        return merge(*(store.strays() for store in self.stores))


class RoutedEraser:
    """What may be done inside an erasure, each step in the database that it is about."""

    def __init__(self, route: Route) -> None:
        self._route = route

    def put_in_place(self, dialog_id: DialogId, placed: Sequence[Placed]) -> None:
        """Overwrite own entries."""
        with self._route.to(dialog_id).erasing() as eraser:
            eraser.put_in_place(dialog_id, placed)

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty the metadata of a dialog's node."""
        with self._route.to(dialog_id).erasing() as eraser:
            eraser.clear_dialog(dialog_id)

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs."""
        for dialog_id in dialog_ids:
            with self._route.to(dialog_id).erasing() as eraser:
                eraser.remove_dialogs([dialog_id])

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session."""
        with self._route.to(session_id).erasing() as eraser:
            eraser.remove_session(session_id)

    def unnamed(self, session_id: SessionId | None, blob_ids: Collection[BlobId], /) -> frozenset[BlobId]:
        """Return those payloads of a session that nothing names; without one, of any database."""
        unnamed = frozenset[BlobId]()
        for store in self._with(session_id):
            with store.erasing() as eraser:
                unnamed |= eraser.unnamed(session_id, blob_ids)
        return unnamed

    def remove_blobs(self, session_id: SessionId | None, blob_ids: Collection[BlobId], /) -> None:
        """Delete payloads of a session; without one, in each database those that nothing names there, in a step of its own."""
        for store in self._with(session_id):
            with store.erasing() as eraser:
                eraser.remove_blobs(session_id, blob_ids if session_id else eraser.unnamed(None, blob_ids))

    def _with(self, session_id: SessionId | None) -> Sequence[PartStore]:
        return self._route.stores if session_id is None else (self._route.to(session_id),)

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased; a source, whose name says no session, where the rest of the erasure is."""
        for thing, name in things:
            store = self._route.writing(self._route.current) if thing == "source" else self._route.to(name)
            with store.erasing() as eraser:
                eraser.remember([(thing, name)], gone)

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt where the erasure is, or what is pending of one that is there."""
        known = (
            part
            for part, store in enumerate(self._route.stores)
            if receipt.receipt_id in {kept.receipt_id for kept in store.receipts()}
        )
        with self._route.writing(next(known, self._route.current)).erasing() as eraser:
            eraser.keep_receipt(receipt)


def _records(store: PartStore) -> Iterator[SessionRecord]:
    return chain(store.sessions(), store.sessions(trashed=True))
