"""The store over an SQL database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from types import TracebackType
from typing import Any, Self

from palaver.ids import BlobId, DialogId, SessionId, now
from palaver.log import Draft, Header, Node
from palaver.store.erasing import Eraser, Gone, KeptReceipt, NotedFile, Stray, Thing
from palaver.store.lease import Change, Lease
from palaver.store.protocol import Capability, Durability, Hit, SessionRecord, SourceRecord
from palaver.store.records import blob_digest, check_drafts, check_kinds, checked, unknown
from palaver.store.sql import erasing, log, search, sessions, verify
from palaver.store.sql import rows as records
from palaver.store.sql.database import Database
from palaver.store.sql.statements import Migration

_PAGE = 512


class SqlStore:
    """What the stores in SQLite and PostgreSQL have in common: everything but their connections and a few statements."""

    capabilities = frozenset(Capability)
    beyond: tuple[str, ...] = ()

    def __init__(self, db: Database, url: str, durability: Durability, migrations: tuple[Migration, ...]) -> None:
        self.url = url
        self.durability: Durability = durability
        self._db = db
        self._tree = sessions.Tree(db)
        self._migrations = migrations

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        with self._db.writing() as rows:
            sessions.add(rows, kept)
            if node is not None:
                made = self._tree.add(rows, node)
                sessions.change(rows, record.session_id, {"root": made.dialog_id})

    def session(self, session_id: SessionId) -> SessionRecord:
        """Return a session, also one in the trash."""
        with self._db.reading() as rows:
            return sessions.get(rows, session_id)

    def sessions(
        self,
        *,
        tenant: str | None = None,
        name: str | None = None,
        subject: str | None = None,
        trashed: bool = False,
        limit: int | None = None,
        after: SessionRecord | None = None,
    ) -> Iterator[SessionRecord]:
        """Return sessions, newest activity first."""
        filters = {"tenant": tenant, "name": name, "subject": subject}
        return sessions.newest_first(self._db, filters, after, limit, trashed=trashed)

    def sessions_beginning(self, prefix: str, limit: int = 2) -> tuple[SessionId, ...]:
        """Return ids of sessions that begin with a prefix."""
        with self._db.reading() as rows:
            return sessions.beginning(rows, prefix, limit)

    def update_session(self, session_id: SessionId, **changes: Any) -> SessionRecord:  # noqa: ANN401 - each field has a type of its own
        """Change what may change of a session."""
        with self._db.writing() as rows:
            return sessions.change(rows, session_id, changes)

    # --- the tree ---------------------------------------------------------------------------------------------------------------

    def create_dialog(self, node: Node) -> Node:
        """Write a dialog's node and return it with `order` set."""
        kept = checked(node)
        with self._db.writing() as rows:
            return self._tree.add(rows, kept)

    def node(self, dialog_id: DialogId) -> Node:
        """Return a dialog's node."""
        return self._tree.get(dialog_id)

    def nodes(self, session_id: SessionId, after: int = -1) -> tuple[Node, ...]:
        """Return the dialogs of a session in order."""
        return self._tree.of_session(session_id, after)

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Return the one dialog whose id begins with `prefix`."""
        return self._tree.resolve(prefix, session_id)

    # --- entries ----------------------------------------------------------------------------------------------------------------

    def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append entries that belong to the turn, all or none, if the turn head is still `turn_head`."""
        check_drafts(drafts)
        return log.append(self._db, dialog_id, drafts, turn_head)

    def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Append an entry that may stand beside a turn."""
        check_drafts((draft,))
        return log.annotate(self._db, dialog_id, draft)

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are (`palaver.store.copying`)."""
        log.take(self._db, dialog_id, taken)

    def last(self, dialog_id: DialogId) -> Header:
        """Return the newest header of a dialog's own entries, `NOTHING` when it has none."""
        with self._db.reading() as rows:
            return log.newest(rows, dialog_id)[1]

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Return one header of a dialog's own entries."""
        with self._db.reading() as rows:
            return log.one_header(rows, dialog_id, seq)

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Return the headers of own entries from `start` (inclusive) to `stop` (exclusive; None: all)."""
        return log.headers(self._db, dialog_id, start, stop, reverse=reverse)

    def latest_of_kind(
        self, dialog_id: DialogId, kinds: str | Collection[str], start: int = 0, stop: int | None = None
    ) -> Iterator[Header]:
        """Return the headers of own entries of some kinds, newest first."""
        return log.latest_of_kind(self._db, dialog_id, check_kinds(kinds), start, stop)

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Return numbers and bodies of own entries from `start` (inclusive) to `stop` (exclusive; None: all)."""
        return log.bodies(self._db, dialog_id, start, stop)

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Return one body."""
        with self._db.reading() as rows:
            return log.one_body(rows, dialog_id, seq)

    # --- payloads and sources -----------------------------------------------------------------------------------------------------

    def put_blob(self, data: bytes) -> BlobId:
        """Store a payload under its SHA-256, once, and return the id."""
        digest = sha256(data).digest()
        with self._db.writing() as rows:
            rows.run("blob_touch", digest=digest, size=len(data), at=now())
            rows.run("blob_add", digest=digest, data=bytes(data))
        return BlobId(digest.hex())

    def blob(self, blob_id: BlobId) -> bytes:
        """Return a payload."""
        with self._db.reading() as rows:
            row = rows.one("blob_get", digest=blob_digest(blob_id))
        if row is None:
            raise unknown("blob", blob_id)
        data: bytes = row[0]
        return data

    def has_blob(self, blob_id: BlobId) -> bool:
        """Return whether a payload is stored."""
        with self._db.reading() as rows:
            return rows.one("blob_has", digest=blob_digest(blob_id)) is not None

    def blob_ids(self) -> Iterator[BlobId]:
        """Return the ids of all payloads, in order (`palaver.store.copying`)."""
        after = b""
        while True:
            with self._db.reading() as rows:
                page = rows.all("blob_ids", after=after, rows=_PAGE)
            yield from (BlobId(digest.hex()) for (digest,) in page)
            if len(page) < _PAGE:
                return
            after = page[-1][0]

    def put_source(self, record: SourceRecord) -> None:
        """Write, or replace, the record of a foreign conversation."""
        kept = checked(record)
        with self._db.writing() as rows:
            sessions.put_source(rows, kept)

    def source(self, identity: str) -> SourceRecord | None:
        """Return the record of a foreign conversation, or None."""
        with self._db.reading() as rows:
            row = rows.one("source_get", identity=identity)
        return None if row is None else records.source(row)

    def sources(self, session_id: SessionId) -> tuple[SourceRecord, ...]:
        """Return the foreign conversations that a session came from, by identity."""
        with self._db.reading() as rows:
            found = rows.all("sources_of", session_no=sessions.session_no(rows, session_id))
        return tuple(sorted(map(records.source, found), key=lambda one: one.identity))

    # --- search -----------------------------------------------------------------------------------------------------------------

    def index(
        self,
        extract: Callable[[str, bytes], str],
        limit: int | None = None,
        *,
        session_id: SessionId | None = None,
    ) -> int:
        """Add the entries written since the last call to the full-text index, and return how many."""
        return search.index(self._db, extract, limit, session_id)

    def index_lag(self) -> int:
        """Return how many entries are not yet in the full-text index."""
        return search.lag(self._db)

    def search(self, query: str, *, session_id: SessionId | None = None, limit: int = 20) -> tuple[Hit, ...]:
        """Return the entries that hold all words of `query`, newest first, in sessions that are not in the trash."""
        return tuple(search.search(self._db, query, session_id, limit))

    # --- health and leases --------------------------------------------------------------------------------------------------------

    def verify(self, dialog_id: DialogId) -> tuple[int, ...]:
        """Return the numbers of own entries that are missing or whose body does not match its digest."""
        return tuple(log.damaged(self._db, dialog_id))

    def faults(self, extract: Callable[[str, bytes], str] | None) -> Iterator[tuple[str, str, str]]:
        """Find what is wrong with the rows and the index (`palaver.store.verify`)."""
        return verify.faults(self._db, self._migrations, extract)

    def change_lease(self, name: str, change: Change) -> Lease:
        """Change a lease in one step (`palaver.store.lease`); the clock is the database's."""
        with self._db.writing() as rows:
            found = rows.one("lease_get", name=name) or ("", 0, 0.0)
            (clock,) = rows.one("clock") or (now(),)
            made = change(Lease(name, *found), float(clock))
            rows.run("lease_set", name=name, holder=made.holder, token=made.token, until=made.until)
            return made

    # --- erasing (`palaver.store.erasing`) ----------------------------------------------------------------------------------------

    def erasing(self) -> AbstractContextManager[Eraser]:
        """Begin an erasure: one transaction."""
        return erasing.erasing(self._db)

    def gone(self, thing: Thing, name: str) -> Gone | None:
        """Return when something was erased, or None."""
        return erasing.gone(self._db, thing, name)

    def all_gone(self) -> Iterator[tuple[Thing, str, Gone]]:
        """Return all that is remembered to be erased."""
        with self._db.reading() as rows:
            found = rows.all("gone_all")
        return ((thing, name, Gone(at, receipt)) for thing, name, at, receipt in found)

    def receipts(self) -> tuple[KeptReceipt, ...]:
        """Return all receipts, the oldest first."""
        with self._db.reading() as rows:
            return tuple(KeptReceipt(*row) for row in rows.all("receipts_all"))

    def scrub(self, *, thorough: bool = True) -> tuple[str, ...]:
        """Remove what was deleted from the storage, and return what is still pending."""
        return self._db.scrub(thorough=thorough)

    def strays(self) -> Iterator[Stray]:
        """Return the payloads that nothing names."""
        return erasing.strays(self._db)

    def note_file(self, session_id: SessionId, file: NotedFile) -> None:
        """Remember that a session was written to a file."""
        with self._db.writing() as rows:
            rows.run("file_put", session_no=sessions.session_no(rows, session_id), **file._asdict())

    def forget_file(self, session_id: SessionId, path: str) -> None:
        """Forget a noted file."""
        with self._db.writing() as rows:
            rows.run("file_remove", session_no=sessions.session_no(rows, session_id), path=path)

    def files(self, session_id: SessionId) -> tuple[NotedFile, ...]:
        """Return the noted files of a session."""
        with self._db.reading() as rows:
            found = rows.all("files_of", session_no=sessions.session_no(rows, session_id))
        return tuple(NotedFile(*row) for row in found)

    def close(self) -> None:
        """Release what the store holds."""
        self._db.close()
