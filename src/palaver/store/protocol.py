"""What a store promises. Each docstring is a law; `palaver.testing` ships one test for each, and runs them over every store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Draft, Handle, Header, Node, Reader


class Durability(StrEnum):
    """What an acknowledged write survives.

    Attributes:
        FULL: Power loss: every acknowledged write was flushed to the disk.
        NORMAL: The death of the process, not of the machine: after power loss the newest writes may be missing, never torn.
        MEMORY: Nothing: the store lives as long as the process.
    """

    FULL = "full"
    NORMAL = "normal"
    MEMORY = "memory"


class Capability(StrEnum):
    """What a store may lack. A law that needs a missing capability is skipped by name, never weakened."""

    DURABLE = "durable"
    SHARED = "shared"
    SEARCH = "search"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session as a store keeps it.

    Attributes:
        session_id: The opaque id.
        name: A name for people; names need not be unique.
        subject: Whose data it is, or empty.
        workdir: The working folder it was about, or empty; metadata, never identity.
        created_at: When it was made, in seconds since 1970-01-01 UTC.
        updated_at: When it was last active, in seconds since 1970-01-01 UTC: the latest of when it was made, when its dialogs were made,
            and what the newest entry of each dialog says of its time. The store derives it; an append writes nothing for it.
        trashed_at: When it was put into the trash, or None.
        root: The dialog to go on with: the first one, or of an imported session the one with its newest entry. None before there is one.
        metadata: What its maker wants kept with it; JSON values.
    """

    session_id: SessionId
    name: str = ""
    subject: str = ""
    workdir: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    trashed_at: float | None = None
    root: DialogId | None = None
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """One conversation of a foreign file, and what of it has been imported.

    Attributes:
        identity: What makes it the same conversation at the next import: the format and its own id, or the file's lineage.
        session_id: The session it became.
        format: The format's name.
        path: Where the file was seen last.
        digest: SHA-256 of the file's bytes as they were imported last, hexadecimal.
        raw: The kept file, compressed, as a blob; None when it was declined.
        index: The blob that maps its records to entries.
        imported_at: When, in seconds since 1970-01-01 UTC.
    """

    identity: str
    session_id: SessionId
    format: str
    path: str = ""
    digest: str = ""
    raw: BlobId | None = None
    index: BlobId | None = None
    imported_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A place that a search found.

    Attributes:
        handle: The entry.
        session_id: Its session.
        kind: The entry's kind.
        role: The role of its message, or empty.
        snippet: The text around the match; matches are between U+0002 and U+0003.
        score: Higher is better; comparable within one search only.
    """

    handle: Handle
    session_id: SessionId
    kind: str
    role: str
    snippet: str
    score: float


class TellsBlocks(Protocol):
    """What a store says of its blocks, if it says something: it is no part of `Store`, for there are stores that were made before it was asked.

    Of a store that does not say it, no thread counts as inside a block (`palaver.store.blocks.in_block`). All that is written outside of blocks
    is the same with it. Inside one, what waits for other threads is not refused, a replay log is told of entries before the block has ended, and
    a dialog takes what was written for sure: after a block that raised, `reload` it.
    """

    @property
    def in_block(self) -> bool:
        """Whether this thread is inside a block of `together`: what it waits for in another thread must not write."""
        ...


@runtime_checkable
class Store(Reader, Protocol):
    """A durable log of dialogs.

    Laws that hold for every method:

    - A method that returned has happened, as durably as `durability` says; a method that raised has changed nothing.
    - Values handed out are frozen; nothing done to them, nor to what was handed in, changes the store.
    - A store may be used from several threads. A shared store may be opened by several processes at once.
    - A store that finds itself in a child after fork() opens anew, and leaves the parent's connections alone.
    - A method that names a session or a dialog that is not there raises `UnknownSession` or `UnknownDialog` when it is called.
    - What is given lazily is what is there at the call; writing meanwhile is allowed and does not disturb it.
    - Metadata is JSON; it comes back equal, read-only. Texts that no UTF-8 can hold are refused with `InvalidInput`.
    - After `close()` every method raises `StoreClosed`; closing twice is allowed.

    A store should say whether a thread is inside a block, too (`TellsBlocks`). The stores that come with palaver do.

    Attributes:
        durability: What an acknowledged write survives.
        capabilities: What this store can do.
        url: The address by which `open_store` opens it again, if it is shared.
    """

    durability: Durability
    capabilities: frozenset[Capability]
    url: str

    def together(self) -> AbstractContextManager[None]:
        """Make one durable step of the writes that this thread makes inside the block: an import, or what many callers wrote at once.

        They are durable when the block ends, and undone when it raises. A write inside that raises has changed nothing, and the others
        stand. This thread reads what it wrote; nobody else does before the end: keep blocks short. No erasure takes place meanwhile.

        Whether other writers wait until then is the store's affair: those of a SQLite file do, those of a server wait only for what the
        block has written. What was read in the block may be overtaken, so what must be true when it ends is proven by a write that
        compares (`append` with its turn head, `create_session` with its id, the number that `annotate` gives), never by reading alone.

        Raises:
            StoreError: The step could not be made durable; nothing of it was written.
        """
        ...

    # --- sessions -------------------------------------------------------------------------------------------------------------

    def create_session(self, record: SessionRecord) -> None:
        """Write a new session; what the record says of `updated_at` is not kept, for the store derives it.

        Raises:
            InvalidInput: A session with this id exists.
        """
        ...

    def session(self, session_id: SessionId) -> SessionRecord:
        """Give a session, trashed or not.

        Raises:
            UnknownSession: No such session.
        """
        ...

    def sessions(
        self,
        *,
        name: str | None = None,
        subject: str | None = None,
        trashed: bool = False,
        limit: int | None = None,
        after: SessionRecord | None = None,
    ) -> Iterator[SessionRecord]:
        """Give sessions, newest activity first (`updated_at`, then `session_id`, both descending), lazily.

        `trashed=False` leaves out what is in the trash, True gives only that; `name` and `subject` match exactly. `after` is the last
        session of the page before: those come that stand behind it in this order. A page costs its own size, however many there are.
        """
        ...

    def sessions_beginning(self, prefix: str, limit: int = 2) -> tuple[SessionId, ...]:
        """Give the ids of at most `limit` sessions whose id begins with `prefix` (at least 6 digits), in order, without those in the trash.

        Raises:
            InvalidInput: The prefix is shorter than 6 digits, or holds something else than hexadecimal digits in lower case.
        """
        ...

    def update_session(self, session_id: SessionId, **changes: object) -> SessionRecord:
        """Change name, subject, workdir, metadata, root or trashed_at of a session; `updated_at` moves only with entries and nodes.

        Raises:
            UnknownSession: No such session.
            InvalidInput: A field that may not change.
        """
        ...

    # --- the tree ---------------------------------------------------------------------------------------------------------------

    def create_dialog(self, node: Node) -> Node:
        """Write a dialog's node and give it back with `order` set. Costs the same whatever the length of the log.

        Raises:
            UnknownSession: The session does not exist.
            UnknownDialog: The parent, or an ancestor named in the ranges, does not exist in this session.
            InvalidInput: The id is not 32 lower-case hexadecimal digits, or it is taken, or its first 12 digits are taken in this
                session, or a range is no range of what the ancestor holds.
        """
        ...

    def nodes(self, session_id: SessionId) -> tuple[Node, ...]:
        """Give all dialogs of a session in the order in which they were made.

        Raises:
            UnknownSession: No such session.
        """
        ...

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Give the one dialog whose id begins with `prefix` (at least 6 digits), in one session or in the whole store.

        Raises:
            UnknownDialog: None begins so.
            Ambiguous: Several do.
            InvalidInput: The prefix is shorter than 6 digits.
        """
        ...

    # --- entries ----------------------------------------------------------------------------------------------------------------

    def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append entries that belong to the turn, all or none, if the turn head is still `turn_head`.

        The comparison and the writes are one transaction. Numbers are given without gaps, in the order of `drafts`. The cost
        depends on the size of the drafts, never on the length of the log. An empty sequence writes nothing and only compares.

        Raises:
            UnknownDialog: No such dialog.
            Conflict: Another writer moved the turn head.
            IllegalEntry: An entry may not follow (`palaver.log.legality`).
        """
        ...

    def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Add an entry that may arrive beside a turn: it takes the next number and does not move the turn head.

        Raises:
            UnknownDialog: No such dialog.
            IllegalEntry: The entry may not stand beside a turn, or what it needs does not hold any more.
        """
        ...

    def holding(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[Header]:
        """Give the headers of own entries that hold beyond their place (`palaver.log.HOLDING`), the newest first, lazily.

        From `start` (inclusive) to `stop` (exclusive; None: all). Costs what is given, whatever else the dialog holds.

        Raises:
            UnknownDialog: No such dialog.
        """
        ...

    def of_kind(self, dialog_id: DialogId, kind: str, start: int = 0, stop: int | None = None) -> Iterator[Header]:
        """Give the headers of own entries of one of the kinds that are looked for (`palaver.log.SOUGHT`), the newest first, lazily.

        From `start` (inclusive) to `stop` (exclusive; None: all). Costs what is given, whatever else the dialog holds.

        Raises:
            UnknownDialog: No such dialog.
            InvalidInput: It is another kind.
        """
        ...

    # --- media and other payloads -----------------------------------------------------------------------------------------------

    def put_blob(self, data: bytes) -> BlobId:
        """Store a payload under its SHA-256, once, and give the id. It is durable before any entry that names it is written.

        An erasure may take it as long as nothing names it, and after some time a sweep: who writes the entry in the same block (`together`) as
        this, finds both or neither when it ends (`palaver.store.keeping`).
        """
        ...

    def blob(self, blob_id: BlobId) -> bytes:
        """Give a payload.

        Raises:
            MissingBlob: No such payload.
        """
        ...

    def has_blob(self, blob_id: BlobId) -> bool:
        """Tell whether a payload is stored."""
        ...

    # --- where foreign conversations came from ------------------------------------------------------------------------------------

    def put_source(self, record: SourceRecord) -> None:
        """Write, or replace, what is known of a foreign conversation.

        Raises:
            UnknownSession: No such session.
        """
        ...

    def source(self, identity: str) -> SourceRecord | None:
        """Give what is known of a foreign conversation, or None."""
        ...

    def sources(self, session_id: SessionId) -> tuple[SourceRecord, ...]:
        """Give the foreign conversations that a session came from, by identity.

        Raises:
            UnknownSession: No such session.
        """
        ...

    # --- search -----------------------------------------------------------------------------------------------------------------

    def index(
        self,
        extract: Callable[[str, bytes], str],
        limit: int | None = None,
        *,
        session_id: SessionId | None = None,
    ) -> int:
        """Bring the full-text index up to date with entries written since the last time, and give how many it took.

        The index is derived: it is never written by an append, it can be thrown away and made again, and it never holds what the log
        does not. `extract(kind, body)` gives the text of an entry. At most `limit` entries are taken, in one transaction for each batch.
        With a session only its entries are, and what else waits costs nothing.
        """
        ...

    def index_lag(self) -> int:
        """Give how many entries are not yet in the full-text index."""
        ...

    def drop_index(self) -> None:
        """Throw the full-text index away; the next `index` makes it again."""
        ...

    def search(self, query: str, *, session_id: SessionId | None = None, limit: int = 20) -> tuple[Hit, ...]:
        """Give the indexed entries that hold all the words of `query`, best first, in sessions that are not in the trash.

        A word is what stands between blanks and has a letter, a digit or a pictograph; it is looked for as it stands, ignoring case.
        No character of it is an operator. What is found holds every word. What holds every word delimited, not inside a longer run of
        letters and digits, is found (`palaver.store.text`). A query without a word finds nothing.
        """
        ...

    # --- health -----------------------------------------------------------------------------------------------------------------

    def verify(self, dialog_id: DialogId) -> tuple[int, ...]:
        """Give the numbers of own entries whose body does not give the digest in its header, or that are missing; in constant memory."""
        ...

    def close(self) -> None:
        """Release what the store holds."""
        ...
