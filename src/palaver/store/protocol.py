"""What a store promises. Each docstring is a law; `palaver.testing.store_laws` tests them over any store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol, Self, runtime_checkable

from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Draft, Handle, Header, Node, Reader, Span


class Durability(StrEnum):
    """What an acknowledged write survives.

    Attributes:
        FULL: Power loss. Every acknowledged write was flushed to the disk.
        NORMAL: The death of the process. After power loss the newest writes may be missing, never torn.
        MEMORY: Nothing. The store lives as long as the process.
    """

    FULL = "full"
    NORMAL = "normal"
    MEMORY = "memory"


class Capability(StrEnum):
    """What a store may lack. The conformance suite skips the laws of a missing capability by name.

    Attributes:
        DURABLE: What was written is there when it is opened again.
        SHARED: Several handles and processes may use it at once.
        SEARCH: It has a full-text index.
        SPANNING: A transaction may write to any sessions; without it, to sessions whose ids end in the same four digits.
        SHREDS: Erasing a session destroys its key, so that no copy of the store can be read.
    """

    DURABLE = "durable"
    SHARED = "shared"
    SEARCH = "search"
    SPANNING = "spanning"
    SHREDS = "shreds"


TAIL_ENTRIES = 256
"""The most entries that `Store.tail` of a remote store returns: one journey for what others would be read by several."""

TAIL_BYTES = 1 << 18
"""The most bytes of their bodies, unless the newest alone is larger."""

USAGE = "palaver.usage"
"""The key in a session's metadata of the tokens and dollars of all that was imported into it."""

VALUES = "palaver.values"
"""The key in a session's metadata of its named values (`palaver.memory.values`): of each key the time of its writing and its value."""

ARCHIVE = "palaver.archive"
"""The key in a session's metadata of where its bundle is, when it was archived and has no dialogs here (`palaver.transfer.archives`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session as a store keeps it.

    Attributes:
        session_id: The opaque id.
        tenant: To whom the session belongs where one store serves several customers, or empty. It never changes.
        name: A name for people. Names need not be unique.
        subject: Whose data it is, or empty.
        workdir: The working folder it was about, or empty; metadata, never identity.
        created_at: When it was created, in seconds since 1970-01-01 UTC.
        updated_at: When it was last active: the largest time of its creation, its dialogs and all entries ever written to it. It never goes back.
        trashed_at: When it was moved to the trash, or None.
        root: The dialog to continue with: the first one, or of an imported session the one with its newest entry. None before there is one.
        metadata: What its creator wants kept with it; JSON values.
    """

    session_id: SessionId
    tenant: str = ""
    name: str = ""
    subject: str = ""
    workdir: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    trashed_at: float | None = None
    root: DialogId | None = None
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


EXPORTED = "exported "
"""The prefix of the identity of a foreign conversation that this store's session was exported to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """One conversation of a foreign file, and what of it has been imported.

    Attributes:
        identity: What makes it the same conversation at the next import: the format and its own id, or the file's lineage.
        session_id: The session it became.
        format: The format's name.
        path: Where the file was seen last.
        digest: SHA-256 of the file's bytes as they were imported last, hexadecimal.
        raw: The payload that lists the pieces of the kept file; None when the file is not kept.
        index: The payload that maps its records to entries.
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

    @property
    def is_export(self) -> bool:
        """Whether the session was exported to the file: it does not come from there."""
        return self.identity.startswith(EXPORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An entry that a search found.

    Attributes:
        handle: The entry.
        session_id: Its session.
        kind: The entry's kind.
        role: The role of its message, or empty.
        at: When it happened, in seconds since 1970-01-01 UTC.
        score: How good a hit it is, when hits are ranked.
        snippet: The text around the first match; each match is between U+0002 and U+0003.
    """

    handle: Handle
    session_id: SessionId
    kind: str
    role: str
    at: float = 0.0
    score: float = 0.0
    snippet: str = ""


@runtime_checkable
class Store(Reader, Protocol):
    """A durable log of dialogs.

    Laws of every method:

    - A method that returned has happened, as durably as `durability` says. A method that raised has changed nothing.
    - Values handed out are frozen. Nothing done to them, nor to what was handed in, changes the store.
    - Several threads may use one store. Several processes may open a shared store at once.
    - A store used in a child after fork() opens new connections and leaves the parent's alone.
    - An unknown session, dialog, handle or payload raises `NotFound`, an erased one `Erased`, when the method is called.
    - An iterator yields the state at the call. Writing meanwhile is allowed and does not disturb it.
    - Metadata is JSON and comes back equal and read-only. A text that UTF-8 cannot encode raises `InvalidInput`.
    - After `close()` every method raises `StoreError` with the reason `closed`. Closing twice is allowed.

    Attributes:
        durability: What an acknowledged write survives.
        capabilities: What this store can do.
        url: The address by which `open_store` opens it again, if it is shared.
        remote: Whether its methods wait for a network: async code calls them in a thread.
    """

    durability: Durability
    capabilities: frozenset[Capability]
    url: str
    remote: bool

    def transaction(self, lock: str = "") -> AbstractContextManager[None]:
        """Make one durable step of the writes that this thread makes inside the block.

        They are durable when the block ends and undone when it raises. A write inside that raises is undone alone. Blocks nest; an inner one
        that raises is undone alone. This thread reads its own writes; nobody else does before the end. Other writers may wait until then
        (those of a SQLite file do), so keep blocks short: no await, no model call.

        Args:
            lock: A name. No other thread or process is inside a transaction with the same name meanwhile: look, then create, without a race.

        Raises:
            StoreError: The step could not be made durable; nothing of it was written.
        """
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether this thread is inside a transaction: another thread that it waits for must not write."""
        ...

    # --- sessions -------------------------------------------------------------------------------------------------------------

    def create_session(self, record: SessionRecord, root: Node | None = None) -> None:
        """Write a new session, and with `root` its first dialog, in one step. The record's `root` is then that dialog.

        Raises:
            InvalidInput: A session with this id exists, or the dialog does not fit (`create_dialog`).
        """
        ...

    def session(self, session_id: SessionId) -> SessionRecord:
        """Return a session, also one in the trash."""
        ...

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
        """Return sessions, newest activity first (`updated_at`, then `session_id`, both descending).

        `trashed=False` leaves out the trash, True lists only the trash. `archived=True` lists only sessions in an archive. `tenant`, `name` and `subject` match exactly. `after` is the last
        session of the page before. A page without a filter costs its own size, however many sessions there are.
        """
        ...

    def sessions_beginning(self, prefix: str, limit: int = 2) -> tuple[SessionId, ...]:
        """Return at most `limit` ids that begin with `prefix` (at least 6 digits), in order, without the trash.

        Raises:
            InvalidInput: The prefix is shorter than 6 digits, or not lower-case hexadecimal.
        """
        ...

    def update_session(self, session_id: SessionId, **changes: object) -> SessionRecord:
        """Change name, subject, workdir, metadata, root or trashed_at of a session.

        Raises:
            InvalidInput: A field that may not change.
        """
        ...

    # --- the tree ---------------------------------------------------------------------------------------------------------------

    def create_dialog(self, node: Node) -> Node:
        """Write a dialog's node and return it with `order` set. It costs the same whatever the length of the log.

        Raises:
            NotFound: The session, the parent, or an ancestor named in the ranges is not there or not in this session.
            InvalidInput: The id is not 32 lower-case hexadecimal digits ending in the last four of the session's id; or it, or its first 12
                digits, exist in this session; or a range is outside the ancestor's entries.
        """
        ...

    def root(self, session_id: SessionId) -> tuple[Node, tuple[tuple[Header, bytes], ...]] | None:
        """Return the node of the dialog that a session's record names as its root, and the dialog's tail; or None."""
        ...

    def nodes(self, session_id: SessionId, after: int = -1) -> tuple[Node, ...]:
        """Return the dialogs of a session whose `order` is larger than `after`, in order."""
        ...

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Return the one dialog whose id begins with `prefix` (at least 6 digits), in one session or in the whole store.

        Raises:
            Ambiguous: Several do.
            InvalidInput: The prefix is shorter than 6 digits.
        """
        ...

    # --- entries ----------------------------------------------------------------------------------------------------------------

    def append(
        self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int, last: Header | None = None
    ) -> tuple[Header, ...]:
        """Append entries that belong to the turn, all or none, if the turn head is still `turn_head`.

        Comparing and writing are one step. Numbers have no gaps and follow the order of `drafts`. The cost depends on the size of the
        drafts, never on the length of the log. An empty sequence only compares.

        Args:
            dialog_id: The dialog.
            drafts: The entries.
            turn_head: The number of the turn's last entry.
            last: The newest header as the caller knows it, for a write that reads nothing. Default: the store reads it.

        Raises:
            Conflict: Another writer moved the turn head; or `last` is not the newest header.
            InvalidInput: An entry may not follow (`palaver.log.headers`).
        """
        ...

    def annotate(self, dialog_id: DialogId, draft: Draft, last: Header | None = None) -> Header:
        """Append an entry outside the turn. It gets the next number and does not move the turn head; `last` as for `append`.

        Raises:
            Conflict: `last` is not the newest header.
            InvalidInput: The entry belongs inside a turn, or what it requires is no longer so.
        """
        ...

    def tail(self, dialog_id: DialogId, start: int = 0) -> tuple[tuple[Header, bytes], ...]:
        """Return the newest own entries of a dialog from `start` (inclusive) on, oldest first, each with its body, without a gap.

        Of a remote store, at most `TAIL_ENTRIES` with at most `TAIL_BYTES` of bodies, and the newest in any case; of an embedded one, where reading
        more than is asked for only costs, the newest alone. Entries before one that is lost or damaged are left
        out, and all of them when the newest one is.
        """
        ...

    def latest_of_kind(
        self, dialog_id: DialogId, kinds: str | Collection[str], start: int = 0, stop: int | None = None
    ) -> Iterator[Header]:
        """Return the headers of own entries of some kinds, newest first, from `start` (inclusive) to `stop` (exclusive; None: all).

        The cost depends on what it returns, not on the size of the dialog.

        Raises:
            InvalidInput: The kind is `message` or `call_started`: most entries are, and no index lists them.
        """
        ...

    # --- payloads ---------------------------------------------------------------------------------------------------------------

    # A payload belongs to the session that put it. One that another session put may be absent here, and may be there: a store that keeps
    # equal payloads once has it for every session, known or unknown, and one that is split, or has a key a session, has it for its own.

    def put_blob(self, session_id: SessionId, data: bytes) -> BlobId:
        """Store a payload of a session under its SHA-256, once, and return the id.

        A payload that no entry names may be erased or swept. Put it in the same transaction as the entry that names it, and both are there
        or neither.
        """
        ...

    def blob(self, session_id: SessionId, blob_id: BlobId) -> bytes:
        """Return a payload of a session."""
        ...

    def has_blob(self, session_id: SessionId, blob_id: BlobId) -> bool:
        """Return whether a payload of a session is stored."""
        ...

    # --- where foreign conversations came from ------------------------------------------------------------------------------------

    def put_source(self, record: SourceRecord) -> None:
        """Write, or replace, the record of a foreign conversation."""
        ...

    def source(self, identity: str) -> SourceRecord | None:
        """Return the record of a foreign conversation, or None."""
        ...

    def sources(self, session_id: SessionId) -> tuple[SourceRecord, ...]:
        """Return the foreign conversations that a session came from, by identity."""
        ...

    # --- search -----------------------------------------------------------------------------------------------------------------

    def index(
        self,
        extract: Callable[[str, bytes], str],
        limit: int | None = None,
        *,
        session_id: SessionId | None = None,
    ) -> int:
        """Add the entries written since the last call to the full-text index, at most `limit`, and return how many.

        The index is derived: an append never writes it. `extract(kind, body)` returns the text of an
        entry. With a session, only its entries are added and only its dialogs are looked at.
        """
        ...

    def index_lag(self) -> int:
        """Return how many entries are not yet in the full-text index."""
        ...

    def search(
        self,
        query: str,
        *,
        session_id: SessionId | None = None,
        limit: int = 20,
        ranked: bool = False,
        which: Callable[[Hit], bool] | None = None,
    ) -> tuple[Hit, ...]:
        """Return the indexed entries with all words of `query`, newest first: of a session, or of all that are not in the trash.

        A word is a piece between blanks that has a letter, a digit or a pictograph. It matches as it is written, ignoring case; no character
        is an operator. A hit contains every word. An entry that contains every word delimited, not inside a longer run of letters and digits, is a
        hit (`palaver.store.text`). A query without a word finds nothing. The cost depends on `limit`, not on how many entries match.

        With `ranked`, an entry is a hit when it contains any of the words or "quoted phrases", or a longer word that begins with one of three letters
        or more. The best comes first: each word counts by its rarity among the entries found, more when a person or model said it than when a
        tool was asked or returned it (`palaver.store.text.APART`), more in a short text than in a long one, and more when the next word of the query
        follows it. Compactions and summaries, which repeat, come last. At most 300 entries are ranked, and of a frequent word only the newest
        20,000 are considered.

        Args:
            query: The query.
            session_id: The session, or None for all.
            limit: How many hits to return at most.
            ranked: Whether any word is enough, and the best come first.
            which: Returns whether an entry counts, from a hit without snippet and score; without it every entry does.
        """
        ...

    # --- health -----------------------------------------------------------------------------------------------------------------

    def verify(self, dialog_id: DialogId) -> tuple[Span, ...]:
        """Return the own entries that are missing or whose body does not match its digest; a gap in the log is one span.

        The memory it needs depends on the damage, not on the length of the log.

        Raises:
            StoreDamaged: The entries are out of order.
        """
        ...

    def close(self) -> None:
        """Release connections and files."""
        ...

    def __enter__(self) -> Self:
        """Return the store: `with open_store("work.db") as store`."""
        ...

    def __exit__(self, *error: object) -> None:
        """Close it."""
        ...


@runtime_checkable
class Copyable(Store, Protocol):
    """A store that can be copied from and into: all of palaver's are."""

    def blob_ids(self, session_id: SessionId) -> Iterator[BlobId]:
        """Return the ids of the payloads that a session's entries and sources name and that are there, each once, in order."""
        ...

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are, all or none, after what is there. Legality is not judged again.

        Raises:
            InvalidInput: They do not follow what is there, or a body does not match its header.
        """
        ...
