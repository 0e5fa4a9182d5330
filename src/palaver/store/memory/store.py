"""The reference store: everything in the memory of one process, and as plain as the laws allow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from threading import get_ident
from types import TracebackType
from typing import Any, Self

from palaver.errors import (
    Ambiguous,
    InvalidInput,
    MissingBlob,
    UnknownDialog,
)
from palaver.ids import BlobId, DialogId, SessionId, now
from palaver.log import Draft, Header, Node, body_digest, next_header, rule
from palaver.store import text
from palaver.store.erasing import (
    Eraser,
    Gone,
    KeptReceipt,
    Mark,
    Stray,
    Thing,
    Unnamed,
    is_fresh,
)
from palaver.store.lease import Change, Lease
from palaver.store.memory.contents import Contents
from palaver.store.memory.erasing import MemoryEraser
from palaver.store.memory.logs import Log
from palaver.store.protocol import Capability, Durability, Hit, SessionRecord, SourceRecord
from palaver.store.records import (
    SHORT_DIGITS,
    appended,
    check_changes,
    check_drafts,
    check_node,
    check_prefix,
    check_sought,
    check_taken,
    checked,
    checked_prefix,
    taken,
)

__all__ = ["MemoryStore"]


class MemoryStore:
    """A store that lives as long as the process; the reference by which other stores are judged.

    Attributes:
        contents: Everything it holds. Whoever changes that by himself goes around the laws.
    """

    durability = Durability.MEMORY
    capabilities = frozenset({Capability.SEARCH})
    url = "memory:"
    beyond: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.contents = Contents()
        self._block: int | None = None  # the thread that is inside a block

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make one step of the writes that this thread makes inside the block."""
        with self.contents.guard:
            before = self.contents.standing()
            outer, self._block = self._block, get_ident()
            try:
                yield
            except BaseException:  # an interrupt, too, is undone
                self.contents.go_back(before)
                raise
            finally:
                self._block = outer

    @property
    def in_block(self) -> bool:
        """Whether this thread is inside a block."""
        return self._block == get_ident()

    # --- sessions -------------------------------------------------------------------------------------------------------------

    def create_session(self, record: SessionRecord) -> None:
        """Write a new session."""
        kept = checked(record)
        with self.contents.guard:
            self.contents.refuse_gone("session", record.session_id)
            if record.session_id in self.contents.sessions:
                raise InvalidInput(f"Session {record.session_id} exists already.")
            self.contents.sessions[record.session_id] = kept

    def session(self, session_id: SessionId) -> SessionRecord:
        """Give a session, trashed or not."""
        with self.contents.guard:
            return self.contents.dated(self.contents.session(session_id))

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
        with self.contents.guard:
            kept = [
                self.contents.dated(record)
                for record in self.contents.sessions.values()
                if (record.trashed_at is not None) == trashed
                and name in (None, record.name)
                and subject in (None, record.subject)
            ]
        kept.sort(key=lambda record: (record.updated_at, record.session_id), reverse=True)
        if after is not None:
            bound = (after.updated_at, after.session_id)
            kept = [record for record in kept if (record.updated_at, record.session_id) < bound]
        return iter(kept if limit is None else kept[: max(0, limit)])

    def sessions_beginning(self, prefix: str, limit: int = 2) -> tuple[SessionId, ...]:
        """Give ids of sessions that begin with a prefix."""
        wanted = checked_prefix(prefix)
        with self.contents.guard:
            found = [one.session_id for one in self.contents.sessions.values() if one.trashed_at is None]
        return tuple(sorted(one for one in found if one.startswith(wanted))[: max(0, limit)])

    def update_session(self, session_id: SessionId, **changes: Any) -> SessionRecord:  # noqa: ANN401 - each field has a type of its own
        """Change what may change of a session."""
        check_changes(changes)
        with self.contents.guard:
            record = checked(replace(self.contents.session(session_id), **changes))
            self.contents.sessions[session_id] = record
            return self.contents.dated(record)

    # --- the tree ---------------------------------------------------------------------------------------------------------------

    def create_dialog(self, node: Node) -> Node:
        """Write a dialog's node and give it back with `order` set."""
        kept = checked(node)
        with self.contents.guard:
            tree = self.contents.tree(node.session_id)
            held = {other.dialog_id: len(self.contents.logs[other.dialog_id].headers) for other in tree}
            check_node(node, held.get)
            short = node.dialog_id[:SHORT_DIGITS]
            if node.dialog_id in self.contents.logs or any(other.dialog_id.startswith(short) for other in tree):
                raise taken(node)
            self.contents.refuse_gone("dialog", node.dialog_id)
            kept = replace(kept, order=max((other.order for other in tree), default=-1) + 1)
            self.contents.logs[node.dialog_id] = Log(kept)
            return kept

    def node(self, dialog_id: DialogId) -> Node:
        """Give a dialog's node."""
        with self.contents.guard:
            return self.contents.log(dialog_id).node

    def nodes(self, session_id: SessionId) -> tuple[Node, ...]:
        """Give all dialogs of a session in the order in which they were made."""
        with self.contents.guard:
            return tuple(self.contents.tree(session_id))

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Give the one dialog whose id begins with `prefix`."""
        check_prefix(prefix)
        with self.contents.guard:
            nodes = (log.node for log in self.contents.logs.values() if session_id in (None, log.node.session_id))
            found = sorted(node.dialog_id for node in nodes if node.dialog_id.startswith(prefix))
            if not found:
                self.contents.refuse_gone("dialog", prefix)
                raise UnknownDialog(prefix)
        if len(found) > 1:
            raise Ambiguous(prefix, found)
        return found[0]

    # --- entries ----------------------------------------------------------------------------------------------------------------

    def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append entries that belong to the turn, all or none, if the turn head is still `turn_head`."""
        check_drafts(drafts)
        with self.contents.guard:
            log = self.contents.log(dialog_id)
            headers = appended(dialog_id, log.last(), drafts, turn_head)
            for header, draft in zip(headers, drafts, strict=True):
                log.add(header, bytes(draft.body))
            return headers

    def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Add an entry that may arrive beside a turn."""
        check_drafts((draft,))
        with self.contents.guard:
            log = self.contents.log(dialog_id)
            header = next_header(draft, log.last(), turn=False)
            log.add(header, bytes(draft.body))
            return header

    def last(self, dialog_id: DialogId) -> Header:
        """Give the newest header of a dialog's own entries, `NOTHING` when it has none."""
        with self.contents.guard:
            return self.contents.log(dialog_id).last()

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Give one header of a dialog's own entries."""
        with self.contents.guard:
            return self.contents.place(dialog_id, seq).headers[seq]

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Give the headers of own entries from `start` (inclusive) to `stop` (exclusive; None: all)."""
        with self.contents.guard:
            found = self.contents.log(dialog_id).headers[max(0, start) : None if stop is None else max(0, stop)]
        return iter(found[::-1] if reverse else found)

    def holding(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[Header]:
        """Give the headers of own entries that hold beyond their place, the newest first."""
        with self.contents.guard:
            log = self.contents.log(dialog_id)
            return log.among(log.holding, start, stop)

    def of_kind(self, dialog_id: DialogId, kind: str, start: int = 0, stop: int | None = None) -> Iterator[Header]:
        """Give the headers of own entries of one of the kinds that are looked for, the newest first."""
        check_sought(kind)
        with self.contents.guard:
            log = self.contents.log(dialog_id)
            return log.among(log.sought[kind], start, stop)

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Give numbers and bodies of own entries from `start` (inclusive) to `stop` (exclusive; None: all)."""
        first = max(0, start)
        with self.contents.guard:
            found = self.contents.log(dialog_id).bodies[first : None if stop is None else max(0, stop)]
        return enumerate(found, first)

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Give one body."""
        with self.contents.guard:
            return self.contents.place(dialog_id, seq).bodies[seq]

    # --- payloads and sources -----------------------------------------------------------------------------------------------------

    def put_blob(self, data: bytes) -> BlobId:
        """Store a payload under its SHA-256, once, and give the id."""
        blob_id = BlobId(sha256(data).hexdigest())
        with self.contents.guard:
            self.contents.blobs.setdefault(blob_id, bytes(data))
            at = now()
            if not is_fresh(self.contents.times.get(blob_id), at):
                self.contents.times[blob_id] = at
        return blob_id

    def blob(self, blob_id: BlobId) -> bytes:
        """Give a payload."""
        with self.contents.guard:
            found = self.contents.blobs.get(blob_id)
        if found is None:
            raise MissingBlob(blob_id)
        return found

    def has_blob(self, blob_id: BlobId) -> bool:
        """Tell whether a payload is stored."""
        with self.contents.guard:
            return blob_id in self.contents.blobs

    def put_source(self, record: SourceRecord) -> None:
        """Write, or replace, what is known of a foreign conversation."""
        kept = checked(record)
        with self.contents.guard:
            self.contents.session(record.session_id)
            self.contents.sources[record.identity] = kept

    def source(self, identity: str) -> SourceRecord | None:
        """Give what is known of a foreign conversation, or None."""
        with self.contents.guard:
            return self.contents.sources.get(identity)

    def sources(self, session_id: SessionId) -> tuple[SourceRecord, ...]:
        """Give the foreign conversations that a session came from, by identity."""
        with self.contents.guard:
            self.contents.session(session_id)
            found = [record for record in self.contents.sources.values() if record.session_id == session_id]
        return tuple(sorted(found, key=lambda record: record.identity))

    # --- search -----------------------------------------------------------------------------------------------------------------

    def index(
        self,
        extract: Callable[[str, bytes], str],
        limit: int | None = None,
        *,
        session_id: SessionId | None = None,
    ) -> int:
        """Bring the index up to date with entries written since the last time, and give how many it took."""
        with self.contents.guard:
            logs = [log for log in self.contents.logs.values() if session_id in {None, log.node.session_id}]
            waiting = [(log, seq) for log in logs for seq in range(len(log.texts), len(log.headers))]
            taken_now = waiting if limit is None else waiting[: max(0, limit)]
            for log, seq in taken_now:
                kind = log.headers[seq].kind
                log.texts.append(text.composed(extract(kind, log.bodies[seq])) if rule(kind).searched else "")
            return len(taken_now)

    def index_lag(self) -> int:
        """Give how many entries are not yet in the index."""
        with self.contents.guard:
            return sum(len(log.headers) - len(log.texts) for log in self.contents.logs.values())

    def drop_index(self) -> None:
        """Throw the index away."""
        with self.contents.guard:
            for log in self.contents.logs.values():
                log.texts.clear()

    def search(self, query: str, *, session_id: SessionId | None = None, limit: int = 20) -> tuple[Hit, ...]:
        """Give the entries that hold all the words of `query`, best first, in sessions that are not in the trash."""
        wanted = text.words(query)
        with self.contents.guard:
            if session_id is not None:
                self.contents.session(session_id)
            logs = [
                log
                for log in self.contents.logs.values()
                if session_id in (None, log.node.session_id)
                and self.contents.sessions[log.node.session_id].trashed_at is None
            ]
            hits = [hit for log in logs for hit in log.hits(wanted)] if wanted else []
        hits.sort(key=lambda hit: (-hit.score, hit.handle))
        return tuple(hits[: max(0, limit)])

    # --- health -----------------------------------------------------------------------------------------------------------------

    def verify(self, dialog_id: DialogId) -> tuple[int, ...]:
        """Give the numbers of own entries whose body does not give the digest in its header, or that are missing."""
        with self.contents.guard:
            log = self.contents.log(dialog_id)
            pairs = zip(log.headers, log.bodies, strict=True)
            return tuple(header.seq for header, body in pairs if body_digest(body) != header.digest)

    def faults(self, extract: Callable[[str, bytes], str] | None) -> Iterator[tuple[str, str, str]]:
        """Find what the index holds otherwise than the log (`palaver.store.verifying`)."""
        with self.contents.guard:
            logs = list(self.contents.logs.items())
        for dialog_id, log in logs:
            for header, body, kept in zip(log.headers, log.bodies, log.texts, strict=False):
                if why := text.differs_from(extract, header.kind, body, kept):
                    yield f"{dialog_id[:SHORT_DIGITS]}:{header.seq}", "wrong_index", why

    def blob_ids(self) -> Iterator[BlobId]:
        """Give the ids of all payloads, in order (`palaver.store.copying`)."""
        with self.contents.guard:
            return iter(sorted(self.contents.blobs))

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are (`palaver.store.copying`)."""
        with self.contents.guard:
            log = self.contents.log(dialog_id)
            check_taken(log.last(), taken)
            for header, body in taken:
                log.add(header, bytes(body))

    def change_lease(self, name: str, change: Change) -> Lease:
        """Change a lease in one step (`palaver.store.lease`)."""
        with self.contents.guard:
            made = self.contents.leases[name] = change(self.contents.leases.get(name, Lease(name)), now())
            return made

    # --- erasing (`palaver.store.erasing`) ----------------------------------------------------------------------------------------

    @contextmanager
    def erasing(self) -> Iterator[Eraser]:
        """Begin an erasure: nobody else writes before its end."""
        with self.together():
            yield MemoryEraser(self.contents)

    def gone(self, thing: Thing, name: str) -> Gone | None:
        """Tell whether something was erased."""
        with self.contents.guard:
            return self.contents.erased(thing, name)

    def all_gone(self) -> Iterator[tuple[Thing, str, Gone]]:
        """Give all that is remembered to be erased."""
        with self.contents.guard:
            return iter([(thing, name, self.contents.gone[thing, name]) for thing, name in sorted(self.contents.gone)])

    def receipts(self) -> tuple[KeptReceipt, ...]:
        """Give all receipts, the oldest first."""
        with self.contents.guard:
            return tuple(self.contents.receipts.values())

    def scrub(self, *, thorough: bool = True, payloads: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - nothing lies anywhere else
        """Do nothing: what is deleted in memory is nowhere else."""
        with self.contents.guard:
            return ()

    def strays(self) -> Iterator[Stray]:
        """Give the payloads that nothing names."""
        with self.contents.guard:
            at, left = now(), set(self.contents.blobs)
            self.contents.take_named(left, {}, proven=True)
            return iter(
                [Stray(one, len(self.contents.blobs[one]), at - self.contents.times[one]) for one in sorted(left)]
            )

    def unnamed(self, blob_ids: Collection[BlobId], older_than: float) -> Unnamed:
        """Give those payloads that nothing names and that nobody has put for so many seconds."""
        with self.contents.guard:
            mark = Mark({dialog_id: (log, len(log.bodies)) for dialog_id, log in self.contents.logs.items()})
            left = self.contents.older(blob_ids, older_than)
        self.contents.take_named(left, {}, proven=True)
        return Unnamed(frozenset(left), mark)

    def note_file(self, session_id: SessionId, path: str) -> None:
        """Remember that a session was written to a file."""
        with self.contents.guard:
            self.contents.session(session_id)
            self.contents.files[session_id] = tuple(sorted({*self.contents.files.get(session_id, ()), path}))

    def files(self, session_id: SessionId) -> tuple[str, ...]:
        """Give the files that a session was written to."""
        with self.contents.guard:
            self.contents.session(session_id)
            return self.contents.files.get(session_id, ())

    def close(self) -> None:
        """Forget everything."""
        self.contents.guard.open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
