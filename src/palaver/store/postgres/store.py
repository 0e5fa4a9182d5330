"""The durable store: one schema of a PostgreSQL database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from itertools import islice
from types import TracebackType
from typing import Any, Self

from palaver.errors import InvalidInput, MissingBlob
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Draft, Header, Node
from palaver.store.activity import Chosen, page
from palaver.store.erasing import FRESH, Eraser
from palaver.store.erasing_rows import PAGE_BLOBS, ErasingFace, Rows
from palaver.store.following import Wait
from palaver.store.lease import Change, Lease
from palaver.store.postgres import entries, erasing, leases, search, sessions, tree, verifying
from palaver.store.postgres.address import address
from palaver.store.postgres.connections import Connections, ask
from palaver.store.postgres.opening import Opener, prepare
from palaver.store.postgres.rows import BEFORE_ALL, PostgresRows, rows_of
from palaver.store.postgres.statements import Row
from palaver.store.postgres.transactions import one_statement, reading, refuse_if_read_only, together, writing
from palaver.store.postgres.watching import watch
from palaver.store.protocol import Capability, Durability, Hit, SessionRecord, SourceRecord
from palaver.store.records import check_drafts, check_prefix, check_sought, checked, checked_prefix

_BLOB_ID = re.compile(r"[0-9a-f]{64}\Z")
_SESSIONS_A_PAGE = 200

WAIT_SECONDS = 5.0
"""How long a call waits for other writers, for a connection, or for a server that went away."""

STATEMENT_SECONDS = 60.0
"""How long a single statement may take; none of a sound store comes near."""

CONNECTIONS = 16
"""The most connections of one store at once; a server allows 100 to all its clients unless it is told otherwise."""


class PostgresStore(ErasingFace):
    """A store in one schema of a PostgreSQL database, for any number of threads, processes and machines.

    Durability `FULL` means that the server has flushed its log before a write returns; `NORMAL` does not wait for that: then a write survives
    the death of this process, and the newest may be missing after that of the server or its machine. How often the disk is copied elsewhere
    is the server's business.

    The server keeps what was deleted in its files until `VACUUM FULL` has written them anew (`scrub`), and longer in its write-ahead log and
    backups.
    """

    capabilities = frozenset(Capability)
    beyond: tuple[str, ...] = (
        "the server's write-ahead log, its archives, replicas and backups, which keep old rows until they are recycled",
        "the server's text log, where it is told to write statements into it with their values",
        "copies of the disk, and what a file system or a flash drive keeps of blocks that it wrote anew",
    )

    def __init__(
        self,
        url: str,
        durability: Durability = Durability.FULL,
        *,
        read_only: bool = False,
        create: bool = True,
        wait: float = WAIT_SECONDS,
        connections: int = CONNECTIONS,
    ) -> None:
        """Open the store, and make or upgrade it when needed. The database must be there; the schema is made.

        Args:
            url: `postgresql://user@host:port/database?schema=name`, with every parameter that libpq knows; the schema is `palaver` unless named.
            durability: `FULL` or `NORMAL`.
            read_only: True to refuse every write.
            create: False to refuse to make the schema.
            wait: How long a call waits for other writers, for a connection, or for a server that went away, in seconds.
            connections: The most connections at once.

        Raises:
            MissingStore: There is no such schema and none is to be made.
            InvalidInput: It is no address, the schema holds something else, or the server cannot keep what is asked for.
            StoreTooNew: A later palaver wrote it.
            StoreReadOnly: It may not be written.
            StoreUnavailable: The server does not answer.
        """
        if durability is Durability.MEMORY:
            raise InvalidInput("A database outlives the process: its durability is full or normal.")
        where = address(url)
        opener = Opener(where, durability, wait=wait, statement=STATEMENT_SECONDS, writable=not read_only)
        prepare(opener, durability, create=create)
        self.durability: Durability = durability
        self.url = where.url
        self.place = where.place
        self._opener = opener
        self._pool = Connections(where.place, wait, opener.connect, most=connections, writable=not read_only)
        self._log = entries.Log(self._pool)

    def __repr__(self) -> str:
        """Give the place, without a password."""
        return f"<PostgresStore: {self.place}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def together(self) -> AbstractContextManager[None]:
        """Make one durable step of the writes that this thread makes inside the block."""
        return together(self._pool)

    @property
    def in_block(self) -> bool:
        """Whether this thread is inside a block."""
        return self._pool.block() is not None

    # --- sessions -------------------------------------------------------------------------------------------------------------

    def create_session(self, record: SessionRecord) -> None:
        """Write a new session."""
        kept = checked(record)
        with one_statement(self._pool) as connection:
            sessions.add(connection, kept)

    def session(self, session_id: SessionId) -> SessionRecord:
        """Give a session, trashed or not."""
        with reading(self._pool) as connection:
            return sessions.get(connection, session_id)

    def sessions(
        self,
        *,
        name: str | None = None,
        subject: str | None = None,
        trashed: bool = False,
        limit: int | None = None,
        after: SessionRecord | None = None,
    ) -> Iterator[SessionRecord]:
        """Give sessions, newest activity first."""
        with reading(self._pool) as connection:
            found = sessions.newest_first(connection, Chosen(name, subject, trashed), page(limit, after))
        return self._several(found)

    def _several(self, found: list[SessionId]) -> Iterator[SessionRecord]:
        wanted = iter(found)
        while page := list(islice(wanted, _SESSIONS_A_PAGE)):
            with reading(self._pool) as connection:
                records = sessions.several(connection, page)
            yield from records

    def sessions_beginning(self, prefix: str, limit: int = 2) -> tuple[SessionId, ...]:
        """Give ids of sessions that begin with a prefix."""
        with reading(self._pool) as connection:
            return tuple(sessions.beginning(connection, checked_prefix(prefix), limit))

    def update_session(self, session_id: SessionId, **changes: Any) -> SessionRecord:  # noqa: ANN401 - each field has a type of its own
        """Change what may change of a session."""
        with writing(self._pool) as connection:
            return sessions.change(connection, session_id, changes)

    # --- the tree ---------------------------------------------------------------------------------------------------------------

    def create_dialog(self, node: Node) -> Node:
        """Write a dialog's node and give it back with `order` set."""
        kept = checked(node)
        with writing(self._pool) as connection:
            return tree.add(connection, kept)

    def node(self, dialog_id: DialogId) -> Node:
        """Give a dialog's node."""
        with reading(self._pool) as connection:
            return tree.get(connection, dialog_id)

    def nodes(self, session_id: SessionId) -> tuple[Node, ...]:
        """Give all dialogs of a session in the order in which they were made."""
        with reading(self._pool) as connection:
            return tree.of_session(connection, session_id)

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Give the one dialog whose id begins with `prefix`."""
        check_prefix(prefix)
        with reading(self._pool) as connection:
            return tree.beginning(connection, prefix, session_id)

    # --- entries ----------------------------------------------------------------------------------------------------------------

    def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append entries that belong to the turn, all or none, if the turn head is still `turn_head`."""
        check_drafts(drafts)
        refuse_if_read_only(self._pool)
        return self._log.append(dialog_id, drafts, turn_head)

    def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Add an entry that may arrive beside a turn."""
        check_drafts((draft,))
        refuse_if_read_only(self._pool)
        return self._log.annotate(dialog_id, draft)

    def last(self, dialog_id: DialogId) -> Header:
        """Give the newest header of a dialog's own entries, `NOTHING` when it has none."""
        with reading(self._pool) as connection:
            return entries.newest(connection, dialog_id).last

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Give one header of a dialog's own entries."""
        with reading(self._pool) as connection:
            return entries.one_header(connection, dialog_id, seq)

    def _scan(
        self, name: str, dialog_id: DialogId, start: int, stop: int | None, *, kind: str = "", reverse: bool = False
    ) -> Iterator[Row]:
        """Give rows of the entries that are there now; that the dialog is there is known before the first row is asked for."""
        with reading(self._pool) as connection:
            dialog_no, length = entries.end(connection, dialog_id)
        bounds = range(max(0, start), length if stop is None else min(stop, length))
        return entries.scan(self._pool, name, dialog_no, bounds, kind=kind, reverse=reverse)

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Give the headers of own entries from `start` (inclusive) to `stop` (exclusive; None: all), lazily."""
        name = "headers_down" if reverse else "headers_up"
        return map(entries.header, self._scan(name, dialog_id, start, stop, reverse=reverse))

    def holding(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[Header]:
        """Give the headers of own entries that hold beyond their place, the newest first, lazily."""
        return map(entries.header, self._scan("headers_holding", dialog_id, start, stop, reverse=True))

    def of_kind(self, dialog_id: DialogId, kind: str, start: int = 0, stop: int | None = None) -> Iterator[Header]:
        """Give the headers of own entries of one of the kinds that are looked for, the newest first, lazily."""
        check_sought(kind)
        return map(entries.header, self._scan("headers_of_kind", dialog_id, start, stop, kind=kind, reverse=True))

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Give numbers and bodies of own entries from `start` (inclusive) to `stop` (exclusive; None: all), lazily."""
        rows = self._scan("bodies_up", dialog_id, start, stop)
        return ((seq, body) for seq, body in rows if body is not None)

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Give one body."""
        with reading(self._pool) as connection:
            return entries.one_body(connection, dialog_id, seq)

    # --- payloads and sources -----------------------------------------------------------------------------------------------------

    def put_blob(self, data: bytes) -> BlobId:
        """Store a payload under its SHA-256, once, and give the id."""
        digest = sha256(data).digest()
        blob_id = BlobId(digest.hex())
        with reading(self._pool) as connection:
            fresh = ask(connection, "blob_fresh", (FRESH, digest)).fetchone()
        if fresh is not None and fresh[0]:  # a payload that can be read is durable
            return blob_id
        if fresh is not None:
            with one_statement(self._pool) as connection:
                if ask(connection, "blob_touch", (digest,)).rowcount:
                    return blob_id
        with one_statement(self._pool) as connection:
            ask(connection, "blob_add", (digest, bytes(data)))
        return blob_id

    def blob(self, blob_id: BlobId) -> bytes:
        """Give a payload."""
        with reading(self._pool) as connection:
            row = ask(connection, "blob_get", (_digest(blob_id),)).fetchone()
        if row is None:
            raise MissingBlob(blob_id)
        return bytes(row[0])

    def has_blob(self, blob_id: BlobId) -> bool:
        """Tell whether a payload is stored."""
        with reading(self._pool) as connection:
            return ask(connection, "blob_has", (_digest(blob_id),)).fetchone() is not None

    def put_source(self, record: SourceRecord) -> None:
        """Write, or replace, what is known of a foreign conversation."""
        kept = checked(record)
        with writing(self._pool) as connection:
            sessions.put_source(connection, kept)

    def source(self, identity: str) -> SourceRecord | None:
        """Give what is known of a foreign conversation, or None."""
        with reading(self._pool) as connection:
            return sessions.source(connection, identity)

    def sources(self, session_id: SessionId) -> tuple[SourceRecord, ...]:
        """Give the foreign conversations that a session came from, by identity."""
        with reading(self._pool) as connection:
            return sessions.sources(connection, session_id)

    # --- search -----------------------------------------------------------------------------------------------------------------

    def index(
        self,
        extract: Callable[[str, bytes], str],
        limit: int | None = None,
        *,
        session_id: SessionId | None = None,
    ) -> int:
        """Bring the full-text index up to date with entries written since the last time, and give how many it took."""
        return search.index(self._pool, extract, limit, session_id)

    def index_lag(self) -> int:
        """Give how many entries are not yet in the full-text index."""
        with reading(self._pool) as connection:
            (lag,) = ask(connection, "lag").fetchone() or (0,)
        return int(lag)

    def drop_index(self) -> None:
        """Throw the index away."""
        with one_statement(self._pool) as connection:
            ask(connection, "index_drop")

    def search(self, query: str, *, session_id: SessionId | None = None, limit: int = 20) -> tuple[Hit, ...]:
        """Give the entries that hold all the words of `query`, best first, in sessions that are not in the trash."""
        with reading(self._pool) as connection:
            return tuple(search.search(connection, query, session_id, limit))

    # --- health -----------------------------------------------------------------------------------------------------------------

    def verify(self, dialog_id: DialogId) -> tuple[int, ...]:
        """Give the numbers of own entries whose body does not give the digest in its header, or that are missing."""
        with reading(self._pool) as connection:
            dialog_no, _length = entries.end(connection, dialog_id)
        return tuple(entries.damaged(self._pool, dialog_no))

    def faults(self, extract: Callable[[str, bytes], str] | None) -> Iterator[tuple[str, str, str]]:
        """Find what is wrong with the rows and the index (`palaver.store.verifying`)."""
        return verifying.faults(self._pool, extract)

    # --- followers, copies and leases ---------------------------------------------------------------------------------------------

    def watch(self, dialog_id: DialogId) -> AbstractContextManager[Wait]:
        """Give what waits for the next entry of a dialog (`palaver.store.following`)."""
        return watch(self._pool, self._opener, dialog_id)

    def blob_ids(self) -> Iterator[BlobId]:
        """Give the ids of all payloads, in order (`palaver.store.copying`)."""
        return map(BlobId, entries.blob_ids(self._pool))

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are (`palaver.store.copying`)."""
        refuse_if_read_only(self._pool)
        self._log.take(dialog_id, taken)

    def change_lease(self, name: str, change: Change) -> Lease:
        """Change a lease in one step (`palaver.store.lease`); the clock is the server's."""
        with writing(self._pool) as connection:
            return leases.change(connection, name, change)

    # --- erasing (`palaver.store.erasing`; the rest of it is `ErasingFace`) -------------------------------------------------------

    def erasing(self) -> AbstractContextManager[Eraser]:
        """Begin an erasure: one transaction, for which other writers wait."""
        return erasing.erasing(self._pool)

    _before_all = BEFORE_ALL

    def _rows(self, *, write: bool = False) -> AbstractContextManager[PostgresRows]:
        return rows_of(self._pool, write=write)

    def _aged(self, rows: Rows, after: bytes) -> list[Row]:
        return rows.all("blobs_with_times", after, PAGE_BLOBS)

    def scrub(self, *, thorough: bool = True, payloads: bool = False) -> tuple[str, ...]:
        """Write the tables anew without what was deleted (`VACUUM FULL`), and give what the server keeps all the same."""
        return erasing.scrub(self._pool, thorough=thorough, payloads=payloads)

    def close(self) -> None:
        """Release what the store holds."""
        self._pool.close()


def _digest(blob_id: BlobId) -> bytes:
    """Give the bytes of a blob's id; what is no id names no blob."""
    return bytes.fromhex(blob_id) if _BLOB_ID.match(blob_id) else b""
