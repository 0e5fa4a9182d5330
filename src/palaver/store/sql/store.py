"""The store over an SQL database."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from hashlib import sha256
from heapq import merge
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from palaver.errors import InvalidInput, StoreError
from palaver.ids import BlobId, DialogId, SessionId, now
from palaver.log import NOTHING, Draft, Header, Node, Span, appended, check_taken, next_header, references
from palaver.store.erasing import Eraser, Gone, KeptReceipt, NotedFile, Stray, Thing
from palaver.store.keys import Keys
from palaver.store.lease import Change, Lease
from palaver.store.protocol import ARCHIVE, TAIL_ENTRIES, Capability, Durability, Hit, SessionRecord, SourceRecord
from palaver.store.records import (
    MIN_PREFIX_DIGITS,
    check_changes,
    check_kinds,
    check_prefix,
    checked,
    moved_on,
    unknown,
)
from palaver.store.sql import log, rows, search, verify
from palaver.store.sql.database import Database, NotAsRequired, Row
from palaver.store.sql.erasing import SqlEraser
from palaver.store.sql.rows import blob_digest, missing, refuse_gone, session_no, values_of
from palaver.store.sql.statements import Migration
from palaver.store.sql.tree import Tree

if TYPE_CHECKING:
    from palaver.store.sql.sealing import Seals

PLAIN = frozenset(Capability) - {Capability.SHREDS}
ENCRYPTED = frozenset(Capability) - {Capability.SEARCH}

_EVER = 1e300  # a time after all others
_ALL = 1 << 62


class SqlStore:
    """What the stores in SQLite and PostgreSQL have in common: everything but their connections and a few statements."""

    capabilities = PLAIN
    remote = False

    def __init__(
        self,
        db: Database,
        url: str,
        durability: Durability,
        migrations: tuple[Migration, ...],
        keys: Keys | None = None,
    ) -> None:
        self.url = url
        self.durability: Durability = durability
        self._db = db
        self._tree = Tree(db)
        self._tail_entries = TAIL_ENTRIES if self.remote else 1
        self._migrations = migrations
        self._seals: Seals | None = None
        if keys is not None:
            self._seals = import_module("palaver.store.sql.sealing").Seals(keys)
            self.capabilities = ENCRYPTED
            db.sealing = self._seals.rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def transaction(self, lock: str = "") -> AbstractContextManager[None]:
        """Make one durable step of the writes that this thread makes inside the block."""
        return self._db.transaction(lock)

    @property
    def in_transaction(self) -> bool:
        """Whether this thread is inside a transaction."""
        return self._db.in_transaction

    # --- sessions -------------------------------------------------------------------------------------------------------------

    def create_session(self, record: SessionRecord, root: Node | None = None) -> None:
        """Write a new session, and its first dialog."""
        kept, node = checked(record), None if root is None else checked(root)
        with self._db.writing() as db:
            if self._seals is not None:
                self._seals.begin(record.session_id)
                kept = self._seals.sealed(kept)
            gone = db.asked("gone_get", thing="session", name=record.session_id)
            added = db.asked("session_add", **values_of(kept))
            refuse_gone(gone(), "session", record.session_id)
            row = added()
            if row is None:
                raise InvalidInput(f"A session with the id {record.session_id} exists.")
            db.run("activity_add", session_no=row[0], at=max(record.created_at, record.updated_at))
            if node is not None:
                db.run("session_set", **values_of(replace(kept, root=node.dialog_id)))
                self._tree.add(db, node)

    def session(self, session_id: SessionId) -> SessionRecord:
        """Return a session, also one in the trash."""
        with self._db.reading() as db:
            row = db.one("session_get", session_id=session_id)
            if row is None:
                raise missing(db, "session", session_id)
        return self._record(row)

    def _record(self, row: Row) -> SessionRecord:
        record = rows.session(row)
        return record if self._seals is None else self._seals.opened(record)

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
        filters = {"tenant": tenant, "name": name, "subject": subject}
        wanted = {name: value for name, value in filters.items() if value is not None}
        where = "".join(f" AND s.{name} = :{name}" for name in wanted)
        where += f" AND s.trashed_at IS {'NOT ' if trashed else ''}NULL"
        if archived:
            where += " AND s.root IS NULL AND s.metadata LIKE :archive"
            wanted["archive"] = f'%"{ARCHIVE}":%'
        at, session_id = (_EVER, "") if after is None else (after.updated_at, after.session_id)
        most = _ALL if limit is None else min(max(0, limit), _ALL)
        with self._db.reading() as db:
            listed = db.where("sessions_listed", where, **wanted, at=at, session_id=session_id, limit=most)
        return map(self._record, listed)

    def sessions_beginning(self, prefix: str, limit: int = 2) -> tuple[SessionId, ...]:
        """Return ids of sessions that begin with a prefix."""
        bounds = {"prefix": check_prefix(prefix), "beyond": f"{prefix}g", "limit": max(0, limit)}
        return tuple(SessionId(row[0]) for row in self._db.all("sessions_beginning", **bounds))

    def update_session(self, session_id: SessionId, **changes: Any) -> SessionRecord:  # noqa: ANN401 - each field has a type of its own
        """Change what may change of a session."""
        check_changes(changes)
        with self._db.writing() as db:
            session_no(db, session_id, lock=True)
            record = checked(replace(self.session(session_id), **changes))
            db.run("session_set", **values_of(record if self._seals is None else self._seals.sealed(record)))
        return record

    # --- the tree ---------------------------------------------------------------------------------------------------------------

    def create_dialog(self, node: Node) -> Node:
        """Write a dialog's node and return it with `order` set."""
        kept = checked(node)
        with self._db.writing() as db:
            return self._tree.add(db, kept)

    def node(self, dialog_id: DialogId) -> Node:
        """Return a dialog's node."""
        return self._tree.get(dialog_id)

    def root(self, session_id: SessionId) -> tuple[Node, tuple[tuple[Header, bytes], ...]] | None:
        """Return the node of a session's root, and its tail; or None."""
        with self._db.together() as db:
            tail = log.tail_of_root(db, session_id, self._tail_entries)
            node = self._tree.root(db, session_id)
            return None if node is None else (node, tail(node.dialog_id))

    def nodes(self, session_id: SessionId, after: int = -1) -> tuple[Node, ...]:
        """Return the dialogs of a session in order."""
        return self._tree.of_session(session_id, after)

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Return the one dialog whose id begins with `prefix`."""
        return self._tree.resolve(prefix, session_id)

    # --- entries ----------------------------------------------------------------------------------------------------------------

    def append(
        self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int, last: Header | None = None
    ) -> tuple[Header, ...]:
        """Append entries that belong to the turn, all or none, if the turn head is still `turn_head`."""
        if not drafts:
            return appended(dialog_id, self.last(dialog_id), (), turn_head)
        return self._write(
            dialog_id,
            [draft.body for draft in drafts],
            lambda newest: appended(dialog_id, newest, drafts, turn_head),
            last,
        )

    def annotate(self, dialog_id: DialogId, draft: Draft, last: Header | None = None) -> Header:
        """Append an entry outside the turn."""
        return self._write(dialog_id, [draft.body], lambda newest: (next_header(draft, newest, turn=False),), last)[0]

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are (`palaver.store.protocol.Copyable`)."""
        if taken:
            self._write(dialog_id, [body for _header, body in taken], lambda last: check_taken(last, taken))

    def _write(
        self,
        dialog_id: DialogId,
        bodies: Sequence[bytes],
        follow: Callable[[Header], tuple[Header, ...]],
        known: Header | None = None,
    ) -> tuple[Header, ...]:
        """Write what follows the newest header, in one transaction that keeps other writers out of the dialog.

        Where the caller knows the newest header, nothing is read, and the transaction is one journey to a server.
        """
        place = {"dialog_id": dialog_id}
        try:
            with self._db.writing() as db:
                if not self._db.one_writer:
                    db.run("dialog_lock", **place)
                if known is None:
                    known = log.newest(db, dialog_id, strict=True)
                else:
                    log.require_newest(db, dialog_id, known)
                made = follow(known)
                written = [(header, bytes(body)) for header, body in zip(made, bodies, strict=True)]
                db.many("entry_add", [{**place, **log.header_values(header), "body": body} for header, body in written])
                named = [(header.seq, blob_digest(blob_id)) for header, body in written for blob_id in references(body)]
                db.many("entry_reference_add", [{**place, "seq": seq, "digest": digest} for seq, digest in named])
                db.run("entry_touch", **place, at=max([header.at for header in made]))
                return made
        except NotAsRequired as error:
            raise moved_on(dialog_id, known or NOTHING, self.last(dialog_id)) from error

    def last(self, dialog_id: DialogId) -> Header:
        """Return the newest header of a dialog's own entries, `NOTHING` when it has none."""
        with self._db.reading() as db:
            return log.newest(db, dialog_id)

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Return one header of a dialog's own entries."""
        with self._db.reading() as db:
            return log.one_header(db, dialog_id, seq)

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Return the headers of own entries from `start` (inclusive) to `stop` (exclusive; None: all)."""
        statement = "headers_down" if reverse else "headers_up"
        return log.headers(self._db, dialog_id, start, stop, statement, reverse=reverse)

    def tail(self, dialog_id: DialogId, start: int = 0) -> tuple[tuple[Header, bytes], ...]:
        """Return the newest own entries of a dialog, with their bodies."""
        with self._db.reading() as db:
            return log.tail(db, dialog_id, start, self._tail_entries)

    def latest_of_kind(
        self, dialog_id: DialogId, kinds: str | Collection[str], start: int = 0, stop: int | None = None
    ) -> Iterator[Header]:
        """Return the headers of own entries of some kinds, newest first."""
        of_each = (
            log.headers(self._db, dialog_id, start, stop, "latest_of_kind", reverse=True, kind=kind)
            for kind in check_kinds(kinds)
        )
        return merge(*of_each, key=lambda header: -header.seq)  # an index is in order within a kind

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Return numbers and bodies of own entries from `start` (inclusive) to `stop` (exclusive; None: all)."""
        return log.bodies(self._db, dialog_id, start, stop)

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Return one body."""
        with self._db.reading() as db:
            return log.one_body(db, dialog_id, seq)

    # --- payloads and sources -----------------------------------------------------------------------------------------------------

    def put_blob(self, session_id: SessionId, data: bytes) -> BlobId:
        """Store a payload under its SHA-256, once, and return the id."""
        digest = sha256(data).digest()
        with self._db.writing() as db:
            db.run("blob_touch", of=session_id, digest=digest, size=len(data), at=now())
            db.run("blob_add", of=session_id, digest=digest, data=bytes(data))
        return BlobId(digest.hex())

    def blob(self, session_id: SessionId, blob_id: BlobId) -> bytes:
        """Return a payload."""
        row = self._db.one("blob_get", of=session_id, digest=blob_digest(blob_id))
        if row is None:
            raise unknown("blob", blob_id)
        data: bytes = row[0]
        return data

    def has_blob(self, session_id: SessionId, blob_id: BlobId) -> bool:
        """Return whether a payload is stored."""
        return self._db.one("blob_has", of=session_id, digest=blob_digest(blob_id)) is not None

    def blob_ids(self, session_id: SessionId) -> Iterator[BlobId]:
        """Return the ids of the payloads that a session names (`palaver.store.protocol.Copyable`)."""
        with self._db.reading() as db:
            found = db.all("blob_ids", of=session_id, session_no=session_no(db, session_id))
        return (BlobId(digest.hex()) for (digest,) in found)

    def put_source(self, record: SourceRecord) -> None:
        """Write, or replace, the record of a foreign conversation, and what it names: its payloads, and those in the list of its pieces."""
        kept = checked(record)
        with self._db.writing() as db:
            number = session_no(db, kept.session_id)
            row = db.one("source_put", **values_of(kept) | {"session_no": number})
            place = {"session_no": number, "dialog_no": 0, "seq": row[0] if row else 0}
            db.run("references_remove", **place)
            named = verify.source_names(db, kept.session_id, kept.raw, kept.index)
            db.many(
                "reference_add",
                [{**place, "of": kept.session_id, "digest": bytes.fromhex(digest)} for digest in sorted(named)],
            )

    def source(self, identity: str) -> SourceRecord | None:
        """Return the record of a foreign conversation, or None."""
        row = self._db.one("source_get", identity=identity)
        return None if row is None else rows.source(row)

    def sources(self, session_id: SessionId) -> tuple[SourceRecord, ...]:
        """Return the foreign conversations that a session came from, by identity."""
        with self._db.reading() as db:
            found = db.all("sources_of", session_no=session_no(db, session_id))
        return tuple(sorted(map(rows.source, found), key=lambda one: one.identity))

    # --- search -----------------------------------------------------------------------------------------------------------------

    def index(
        self,
        extract: Callable[[str, bytes], str],
        limit: int | None = None,
        *,
        session_id: SessionId | None = None,
    ) -> int:
        """Add the entries written since the last call to the full-text index, and return how many."""
        self._require_index()
        return search.index(self._db, extract, limit, session_id)

    def index_lag(self) -> int:
        """Return how many entries are not yet in the full-text index."""
        (found,) = self._db.one("lag") or (0,)
        return int(found)

    def _require_index(self) -> None:
        if self._seals is not None and self._db.one("clock"):  # a closed store says that it is closed
            raise StoreError("An encrypted store has no index of words: it cannot be searched.", reason="unsupported")

    def search(
        self,
        query: str,
        *,
        session_id: SessionId | None = None,
        limit: int = 20,
        ranked: bool = False,
        which: Callable[[Hit], bool] | None = None,
    ) -> tuple[Hit, ...]:
        """Return the entries with all words of `query`, newest first; with `ranked` any of them, best first. Without a session the trash is not searched."""
        self._require_index()
        return tuple(search.search(self._db, query, session_id, limit, ranked=ranked, which=which))

    # --- health and leases --------------------------------------------------------------------------------------------------------

    def verify(self, dialog_id: DialogId) -> tuple[Span, ...]:
        """Return the own entries that are missing or whose body does not match its digest; a gap in the log is one span."""
        return tuple(log.damaged(self._db, dialog_id))

    def faults(self, extract: Callable[[str, bytes], str] | None) -> Iterator[tuple[str, str, str]]:
        """Find what is wrong with the rows and the index (`palaver.store.verify`)."""
        return verify.faults(self._db, self._migrations, extract)

    def lease(self, name: str) -> Lease:
        """Return a lease as it was written last."""
        return Lease(name, *(self._db.one("lease_read", name=name) or ()))

    def change_lease(self, name: str, change: Change) -> Lease:
        """Change a lease in one step (`palaver.store.lease`); the clock is the database's."""
        with self._db.writing() as db:
            row = db.one("lease_get", name=name) or ("", 0, 0.0)
            (clock,) = db.one("clock") or (now(),)
            made = change(Lease(name, *row), float(clock))
            db.run("lease_set", name=name, holder=made.holder, token=made.token, until=made.until)
            return made

    # --- erasing (`palaver.store.erasing`) ----------------------------------------------------------------------------------------

    @contextmanager
    def erasing(self) -> Iterator[Eraser]:
        """Begin an erasure: one transaction."""
        with self._db.transaction():
            yield SqlEraser(self._db)

    def gone(self, thing: Thing, name: str) -> Gone | None:
        """Return when something was erased; a dialog may be named by the first digits of its id."""
        row = self._db.one("gone_get", thing=thing, name=name)
        if row is None and thing == "dialog" and len(name) >= MIN_PREFIX_DIGITS:
            row = self._db.one("gone_beginning", thing=thing, name=name, beyond=f"{name}g")
        return None if row is None else Gone(*row)

    def all_gone(self) -> Iterator[tuple[Thing, str, Gone]]:
        """Return all that is remembered to be erased."""
        return ((thing, name, Gone(at, receipt)) for thing, name, at, receipt in self._db.all("gone_all"))

    def receipts(self) -> tuple[KeptReceipt, ...]:
        """Return all receipts, the oldest first."""
        return tuple(KeptReceipt(*row) for row in self._db.all("receipts_all"))

    def scrub(self, *, thorough: bool = True) -> tuple[str, ...]:
        """Remove what was deleted from the storage, and return what is still pending."""
        return (*self._shredded(), *self._db.scrub(thorough=thorough))

    def _shredded(self) -> Iterator[str]:
        """Destroy the keys of sessions whose erasure is not finished, and yield what is still pending."""
        if self._seals is None:
            return
        waiting = (kept for kept in self.receipts() if json.loads(kept.pending)["work"])
        for kept in waiting:
            for session_id in json.loads(kept.text)["sessions"]:
                if self.in_transaction:
                    yield f"the key of session {session_id} is to be destroyed when the transaction has ended"
                    continue
                try:
                    self._seals.destroy(session_id)
                except Exception as error:  # noqa: BLE001 - whatever a key service raises
                    yield f"the key of session {session_id} is to be destroyed: {error}"

    def strays(self) -> Iterator[Stray]:
        """Return the payloads that nothing names."""
        at = now()
        return (
            Stray(BlobId(digest.hex()), size, at - put_at) for digest, size, put_at in self._db.pages("strays", b"")
        )

    def note_file(self, session_id: SessionId, file: NotedFile) -> None:
        """Remember that a session was written to a file."""
        with self._db.writing() as db:
            db.run("file_put", session_no=session_no(db, session_id), **file._asdict())

    def forget_file(self, session_id: SessionId, path: str) -> None:
        """Forget a noted file."""
        with self._db.writing() as db:
            db.run("file_remove", session_no=session_no(db, session_id), path=path)

    def files(self, session_id: SessionId) -> tuple[NotedFile, ...]:
        """Return the noted files of a session."""
        with self._db.reading() as db:
            found = db.all("files_of", session_no=session_no(db, session_id))
        return tuple(NotedFile(*row) for row in found)

    def close(self) -> None:
        """Release connections and files."""
        self._db.close()
