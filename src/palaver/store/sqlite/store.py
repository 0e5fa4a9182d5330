"""The durable store: one SQLite file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from palaver.errors import InvalidInput, MissingBlob
from palaver.ids import BlobId, DialogId, SessionId, now
from palaver.log import Draft, Header, Node
from palaver.store.activity import Chosen, page
from palaver.store.erasing import Eraser, is_fresh
from palaver.store.erasing_rows import PAGE_BLOBS, ErasingFace, Rows
from palaver.store.lease import Change, Lease
from palaver.store.protocol import Capability, Durability, Hit, SessionRecord, SourceRecord
from palaver.store.records import check_drafts, check_prefix, check_sought, checked, checked_prefix
from palaver.store.sqlite import entries, erasing, leases, search, sessions, tree, verifying
from palaver.store.sqlite.connections import Connections, in_block, reading, together, writing
from palaver.store.sqlite.opening import Opener, prepare
from palaver.store.sqlite.rows import BEFORE_ALL, SqliteRows, rows_of
from palaver.store.sqlite.statements import Row, statements

_BLOB_ID = re.compile(r"[0-9a-f]{64}\Z")

WAIT_SECONDS = 5.0
"""How long a call waits for other writers before it raises `StoreBusy`."""


class SqliteStore(ErasingFace):
    """A store in one SQLite file, for any number of threads and processes of one machine.

    The file is made with mode 0600, missing folders with 0700. Beside it SQLite keeps `-wal` and `-shm` files of the same mode while the
    store is open. It must not lie on a network share.

    What is deleted is overwritten (`secure_delete` on every connection). So erasing an entry is: overwrite its body, delete its text and
    tokens, merge the index, and cut the write-ahead log to nothing by a checkpoint; the file is written anew to be sure (`scrub`).
    """

    capabilities = frozenset(Capability)
    beyond: tuple[str, ...] = (
        "copies of the file, and what a file system or a flash drive keeps of blocks that it wrote anew",
    )

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = Durability.FULL,
        *,
        read_only: bool = False,
        create: bool = True,
        wait: float = WAIT_SECONDS,
    ) -> None:
        """Open the store, and make or upgrade it when needed.

        Args:
            path: The file.
            durability: `FULL` flushes the disk at every write; `NORMAL` leaves that to the next checkpoint.
            read_only: True to refuse every write; the only way to open a store where nothing may be written.
            create: False to refuse to make the file.
            wait: How long a call waits for other writers, in seconds.

        Raises:
            MissingStore: There is no such file and none is to be made.
            InvalidInput: The file is no store of palaver's, its name is no UTF-8, or the durability is one that a file cannot have.
            StoreTooNew: A later palaver wrote it.
            StoreReadOnly: It, or its folder, may not be written.
        """
        if os.fspath(path) == ":memory:":
            raise InvalidInput("A SqliteStore lies in a file.", hint="MemoryStore() is the store in memory.")
        if durability is Durability.MEMORY:
            raise InvalidInput("A file outlives the process: its durability is full or normal.")
        place = Path(os.path.realpath(path))  # where SQLite would put the side files of a link, too
        try:
            self.url = f"sqlite://{quote(str(place))}"
        except UnicodeEncodeError as error:
            raise InvalidInput(f"SQLite opens files whose names are UTF-8, and {str(place)!r} is not.") from error
        opener = Opener(place, durability, wait, writable=not read_only)
        self.durability: Durability = durability
        self.path = place
        self._pool = Connections(
            place, wait, opener.connect, partial(prepare, opener, create=create), writable=not read_only
        )

    def together(self) -> AbstractContextManager[None]:
        """Make one durable step of the writes that this thread makes inside the block."""
        return together(self._pool)

    @property
    def in_block(self) -> bool:
        """Whether this thread is inside a block."""
        return in_block(self._pool)

    # --- sessions -------------------------------------------------------------------------------------------------------------

    def create_session(self, record: SessionRecord) -> None:
        """Write a new session."""
        kept = checked(record)
        with writing(self._pool) as connection:
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
        return map(self.session, found)

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
        with writing(self._pool) as connection:
            return entries.append(connection, dialog_id, drafts, turn_head)

    def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Add an entry that may arrive beside a turn."""
        check_drafts((draft,))
        with writing(self._pool) as connection:
            return entries.annotate(connection, dialog_id, draft)

    def last(self, dialog_id: DialogId) -> Header:
        """Give the newest header of a dialog's own entries, `NOTHING` when it has none."""
        with reading(self._pool) as connection:
            return entries.newest(connection, dialog_id)[1]

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Give one header of a dialog's own entries."""
        with reading(self._pool) as connection:
            return entries.one_header(connection, dialog_id, seq)

    def _scan(
        self, name: str, dialog_id: DialogId, start: int, stop: int | None, *more: str, reverse: bool = False
    ) -> Iterator[Row]:
        """Give rows of the entries that are there now; that the dialog is there is known before the first row is asked for."""
        with reading(self._pool) as connection:
            dialog_no, length = entries.end(connection, dialog_id)
        bounds = range(max(0, start), length if stop is None else min(stop, length))
        return entries.scan(self._pool, name, dialog_no, bounds, *more, reverse=reverse)

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
        return map(entries.header, self._scan("headers_of_kind", dialog_id, start, stop, kind, reverse=True))

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Give numbers and bodies of own entries from `start` (inclusive) to `stop` (exclusive; None: all), lazily."""
        return self._scan("bodies_up", dialog_id, start, stop)

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Give one body."""
        with reading(self._pool) as connection:
            return entries.one_body(connection, dialog_id, seq)

    # --- payloads and sources -----------------------------------------------------------------------------------------------------

    def put_blob(self, data: bytes) -> BlobId:
        """Store a payload under its SHA-256, once, and give the id."""
        digest = sha256(data).digest()
        blob_id = BlobId(digest.hex())
        at, sql = now(), statements()
        with reading(self._pool) as connection:
            put_at = connection.execute(sql["blob_time"], (digest,)).get
        if not is_fresh(put_at, at):  # a payload that can be read is durable
            with writing(self._pool) as connection:
                connection.execute(sql["blob_add"], (digest, data))
                connection.execute(sql["blob_time_set"], (at, digest))
        return blob_id

    def blob(self, blob_id: BlobId) -> bytes:
        """Give a payload."""
        with reading(self._pool) as connection:
            data = connection.execute(statements()["blob_get"], (_digest(blob_id),)).get
        if not isinstance(data, bytes):
            raise MissingBlob(blob_id)
        return data

    def has_blob(self, blob_id: BlobId) -> bool:
        """Tell whether a payload is stored."""
        with reading(self._pool) as connection:
            return connection.execute(statements()["blob_has"], (_digest(blob_id),)).get is not None

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
            return tuple(sessions.sources(connection, session_id))

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
            return int(connection.execute(statements()["lag"]).get)

    def drop_index(self) -> None:
        """Throw the index away."""
        with writing(self._pool) as connection:
            connection.execute(statements()["index_drop"])

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

    # --- copies and leases --------------------------------------------------------------------------------------------------------

    def blob_ids(self) -> Iterator[BlobId]:
        """Give the ids of all payloads, in order (`palaver.store.copying`)."""
        return map(BlobId, entries.blob_ids(self._pool))

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are (`palaver.store.copying`)."""
        with writing(self._pool) as connection:
            entries.take(connection, dialog_id, taken)

    def change_lease(self, name: str, change: Change) -> Lease:
        """Change a lease in one step (`palaver.store.lease`); the clock is the machine's."""
        with writing(self._pool) as connection:
            return leases.change(connection, name, change)

    # --- erasing (`palaver.store.erasing`; the rest of it is `ErasingFace`) -------------------------------------------------------

    def erasing(self) -> AbstractContextManager[Eraser]:
        """Begin an erasure: one transaction."""
        return erasing.erasing(self._pool)

    _before_all = BEFORE_ALL

    def _rows(self, *, write: bool = False) -> AbstractContextManager[SqliteRows]:
        return rows_of(self._pool, write=write)

    def _aged(self, rows: Rows, after: bytes) -> list[Row]:
        clock = now()
        found = rows.all("blobs_with_times", after, PAGE_BLOBS)
        return [(digest, size, clock - at) for digest, size, at in found]

    def scrub(self, *, thorough: bool = True, payloads: bool = False) -> tuple[str, ...]:
        """Take what was deleted out of the file and its log, and give what is still pending."""
        return erasing.scrub(self._pool, thorough=thorough, payloads=payloads)

    def close(self) -> None:
        """Release what the store holds."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _digest(blob_id: BlobId) -> bytes:
    """Give the bytes of a blob's id; what is no id names no blob."""
    return bytes.fromhex(blob_id) if _BLOB_ID.match(blob_id) else b""
