"""The reference store: everything in the memory of one process, and as plain as the laws allow."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from threading import RLock, get_ident
from types import TracebackType
from typing import Any, Self

from palaver.errors import (
    Ambiguous,
    Conflict,
    InvalidInput,
    MissingBlob,
    StoreClosed,
    UnknownDialog,
    UnknownHandle,
    UnknownSession,
)
from palaver.ids import BlobId, DialogId, SessionId, now
from palaver.log import HOLDING, NOTHING, SOUGHT, Draft, Handle, Header, Node, body_digest, next_header, rule
from palaver.store import text
from palaver.store.erasing import (
    Eraser,
    Gone,
    KeptReceipt,
    Mark,
    Placed,
    Stray,
    Thing,
    Unnamed,
    is_fresh,
    listed,
    may_name,
    named_in,
    retotalled,
)
from palaver.store.lease import Change, Lease
from palaver.store.protocol import Capability, Durability, Hit, SessionRecord, SourceRecord
from palaver.store.records import (
    MIN_PREFIX_DIGITS,
    SHORT_DIGITS,
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


@dataclass(slots=True)
class _Log:
    """One dialog: its node and its own entries; `texts` holds what is indexed, in order."""

    node: Node
    headers: list[Header] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    holding: list[int] = field(init=False)
    sought: dict[str, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.holding = [header.seq for header in self.headers if header.kind in HOLDING]
        self.sought = {kind: [header.seq for header in self.headers if header.kind == kind] for kind in SOUGHT}

    def last(self) -> Header:
        return self.headers[-1] if self.headers else NOTHING

    def cut(self, headers: int, texts: int) -> _Log:
        """Forget what was added after there were so many."""
        del self.headers[headers:], self.bodies[headers:], self.texts[texts:]
        for places in (self.holding, *self.sought.values()):
            del places[bisect_left(places, headers) :]
        return self

    def among(self, places: Sequence[int], start: int, stop: int | None) -> Iterator[Header]:
        """Give the headers at some places within a range, the newest first."""
        found = places[bisect_left(places, start) : None if stop is None else bisect_left(places, stop)]
        return iter([self.headers[seq] for seq in reversed(found)])

    def add(self, header: Header, body: bytes) -> None:
        self.bodies.append(body)
        self.headers.append(header)
        if header.kind in HOLDING:
            self.holding.append(header.seq)
        if header.kind in SOUGHT:
            self.sought[header.kind].append(header.seq)


class _Guard:
    """The lock of a store, which refuses to be taken once the store is closed."""

    def __init__(self) -> None:
        self.open = True
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self.open:
            self._lock.release()
            raise StoreClosed("This store was closed.", hint="Open it again.")

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


class MemoryStore:
    """A store that lives as long as the process; the reference by which other stores are judged."""

    durability = Durability.MEMORY
    capabilities = frozenset({Capability.SEARCH})
    url = "memory:"
    beyond: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._guard = _Guard()
        self._block: int | None = None  # the thread that is inside a block
        self._sessions: dict[SessionId, SessionRecord] = {}
        self._logs: dict[DialogId, _Log] = {}
        self._blobs: dict[BlobId, bytes] = {}
        self._times: dict[BlobId, float] = {}
        self._sources: dict[str, SourceRecord] = {}
        self._leases: dict[str, Lease] = {}
        self._gone: dict[tuple[Thing, str], Gone] = {}
        self._receipts: dict[str, KeptReceipt] = {}
        self._files: dict[SessionId, tuple[str, ...]] = {}

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make one step of the writes that this thread makes inside the block."""
        with self._guard:
            sessions, blobs, sources = dict(self._sessions), dict(self._blobs), dict(self._sources)
            leases, gone = dict(self._leases), dict(self._gone)
            receipts, files, times = dict(self._receipts), dict(self._files), dict(self._times)
            logs = {dialog_id: (log, len(log.headers), len(log.texts)) for dialog_id, log in self._logs.items()}
            outer, self._block = self._block, get_ident()
            try:
                yield
            except BaseException:  # an interrupt, too, is undone
                self._sessions, self._blobs, self._sources, self._leases = sessions, blobs, sources, leases
                self._gone, self._receipts, self._files, self._times = gone, receipts, files, times
                self._logs = {dialog_id: log.cut(headers, texts) for dialog_id, (log, headers, texts) in logs.items()}
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
        with self._guard:
            self._refuse_gone("session", record.session_id)
            if record.session_id in self._sessions:
                raise InvalidInput(f"Session {record.session_id} exists already.")
            self._sessions[record.session_id] = kept

    def _dated(self, record: SessionRecord) -> SessionRecord:
        logs = [log for log in self._logs.values() if log.node.session_id == record.session_id]
        times = [time for log in logs for time in (log.node.created_at, *(header.at for header in log.headers[-1:]))]
        return replace(record, updated_at=max([record.created_at, *times]))

    def _session(self, session_id: SessionId) -> SessionRecord:
        found = self._sessions.get(session_id)
        if found is None:
            self._refuse_gone("session", session_id)
            raise UnknownSession(session_id)
        return found

    def session(self, session_id: SessionId) -> SessionRecord:
        """Give a session, trashed or not."""
        with self._guard:
            return self._dated(self._session(session_id))

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
        with self._guard:
            kept = [
                self._dated(record)
                for record in self._sessions.values()
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
        with self._guard:
            found = [one.session_id for one in self._sessions.values() if one.trashed_at is None]
        return tuple(sorted(one for one in found if one.startswith(wanted))[: max(0, limit)])

    def update_session(self, session_id: SessionId, **changes: Any) -> SessionRecord:  # noqa: ANN401 - each field has a type of its own
        """Change what may change of a session."""
        check_changes(changes)
        with self._guard:
            record = checked(replace(self._session(session_id), **changes))
            self._sessions[session_id] = record
            return self._dated(record)

    # --- the tree ---------------------------------------------------------------------------------------------------------------

    def _log(self, dialog_id: DialogId) -> _Log:
        found = self._logs.get(dialog_id)
        if found is None:
            self._refuse_gone("dialog", dialog_id)
            raise UnknownDialog(dialog_id)
        return found

    def _tree(self, session_id: SessionId) -> list[Node]:
        self._session(session_id)
        return [log.node for log in self._logs.values() if log.node.session_id == session_id]

    def create_dialog(self, node: Node) -> Node:
        """Write a dialog's node and give it back with `order` set."""
        kept = checked(node)
        with self._guard:
            tree = self._tree(node.session_id)
            held = {other.dialog_id: len(self._logs[other.dialog_id].headers) for other in tree}
            check_node(node, held.get)
            short = node.dialog_id[:SHORT_DIGITS]
            if node.dialog_id in self._logs or any(other.dialog_id.startswith(short) for other in tree):
                raise taken(node)
            self._refuse_gone("dialog", node.dialog_id)
            kept = replace(kept, order=max((other.order for other in tree), default=-1) + 1)
            self._logs[node.dialog_id] = _Log(kept)
            return kept

    def node(self, dialog_id: DialogId) -> Node:
        """Give a dialog's node."""
        with self._guard:
            return self._log(dialog_id).node

    def nodes(self, session_id: SessionId) -> tuple[Node, ...]:
        """Give all dialogs of a session in the order in which they were made."""
        with self._guard:
            return tuple(self._tree(session_id))

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Give the one dialog whose id begins with `prefix`."""
        check_prefix(prefix)
        with self._guard:
            nodes = (log.node for log in self._logs.values() if session_id in (None, log.node.session_id))
            found = sorted(node.dialog_id for node in nodes if node.dialog_id.startswith(prefix))
        if not found:
            self._refuse_gone("dialog", prefix)
            raise UnknownDialog(prefix)
        if len(found) > 1:
            raise Ambiguous(prefix, found)
        return found[0]

    # --- entries ----------------------------------------------------------------------------------------------------------------

    def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append entries that belong to the turn, all or none, if the turn head is still `turn_head`."""
        check_drafts(drafts)
        with self._guard:
            log = self._log(dialog_id)
            last = log.last()
            if last.turn_head != turn_head:
                raise Conflict(dialog_id, turn_head, last.turn_head)
            headers = []
            for draft in drafts:
                last = next_header(draft, last)
                headers.append(last)
            for header, draft in zip(headers, drafts, strict=True):
                log.add(header, bytes(draft.body))
            return tuple(headers)

    def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Add an entry that may arrive beside a turn."""
        check_drafts((draft,))
        with self._guard:
            log = self._log(dialog_id)
            header = next_header(draft, log.last(), turn=False)
            log.add(header, bytes(draft.body))
            return header

    def last(self, dialog_id: DialogId) -> Header:
        """Give the newest header of a dialog's own entries, `NOTHING` when it has none."""
        with self._guard:
            return self._log(dialog_id).last()

    def _place(self, dialog_id: DialogId, seq: int) -> _Log:
        log = self._log(dialog_id)
        if not 0 <= seq < len(log.headers):
            raise UnknownHandle(str(Handle(dialog_id, seq)))
        return log

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Give one header of a dialog's own entries."""
        with self._guard:
            return self._place(dialog_id, seq).headers[seq]

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Give the headers of own entries from `start` (inclusive) to `stop` (exclusive; None: all)."""
        with self._guard:
            found = self._log(dialog_id).headers[max(0, start) : None if stop is None else max(0, stop)]
        return iter(found[::-1] if reverse else found)

    def holding(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[Header]:
        """Give the headers of own entries that hold beyond their place, the newest first."""
        with self._guard:
            log = self._log(dialog_id)
            return log.among(log.holding, start, stop)

    def of_kind(self, dialog_id: DialogId, kind: str, start: int = 0, stop: int | None = None) -> Iterator[Header]:
        """Give the headers of own entries of one of the kinds that are looked for, the newest first."""
        check_sought(kind)
        with self._guard:
            log = self._log(dialog_id)
            return log.among(log.sought[kind], start, stop)

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Give numbers and bodies of own entries from `start` (inclusive) to `stop` (exclusive; None: all)."""
        first = max(0, start)
        with self._guard:
            found = self._log(dialog_id).bodies[first : None if stop is None else max(0, stop)]
        return enumerate(found, first)

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Give one body."""
        with self._guard:
            return self._place(dialog_id, seq).bodies[seq]

    # --- payloads and sources -----------------------------------------------------------------------------------------------------

    def put_blob(self, data: bytes) -> BlobId:
        """Store a payload under its SHA-256, once, and give the id."""
        blob_id = BlobId(sha256(data).hexdigest())
        with self._guard:
            self._blobs.setdefault(blob_id, bytes(data))
            at = now()
            if not is_fresh(self._times.get(blob_id), at):
                self._times[blob_id] = at
        return blob_id

    def blob(self, blob_id: BlobId) -> bytes:
        """Give a payload."""
        with self._guard:
            found = self._blobs.get(blob_id)
        if found is None:
            raise MissingBlob(blob_id)
        return found

    def has_blob(self, blob_id: BlobId) -> bool:
        """Tell whether a payload is stored."""
        with self._guard:
            return blob_id in self._blobs

    def put_source(self, record: SourceRecord) -> None:
        """Write, or replace, what is known of a foreign conversation."""
        kept = checked(record)
        with self._guard:
            self._session(record.session_id)
            self._sources[record.identity] = kept

    def source(self, identity: str) -> SourceRecord | None:
        """Give what is known of a foreign conversation, or None."""
        with self._guard:
            return self._sources.get(identity)

    def sources(self, session_id: SessionId) -> tuple[SourceRecord, ...]:
        """Give the foreign conversations that a session came from, by identity."""
        with self._guard:
            self._session(session_id)
            found = [record for record in self._sources.values() if record.session_id == session_id]
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
        with self._guard:
            logs = [log for log in self._logs.values() if session_id in {None, log.node.session_id}]
            waiting = [(log, seq) for log in logs for seq in range(len(log.texts), len(log.headers))]
            taken_now = waiting if limit is None else waiting[: max(0, limit)]
            for log, seq in taken_now:
                kind = log.headers[seq].kind
                log.texts.append(text.composed(extract(kind, log.bodies[seq])) if rule(kind).searched else "")
            return len(taken_now)

    def index_lag(self) -> int:
        """Give how many entries are not yet in the index."""
        with self._guard:
            return sum(len(log.headers) - len(log.texts) for log in self._logs.values())

    def drop_index(self) -> None:
        """Throw the index away."""
        with self._guard:
            for log in self._logs.values():
                log.texts.clear()

    def search(self, query: str, *, session_id: SessionId | None = None, limit: int = 20) -> tuple[Hit, ...]:
        """Give the entries that hold all the words of `query`, best first, in sessions that are not in the trash."""
        wanted = text.words(query)
        with self._guard:
            if session_id is not None:
                self._session(session_id)
            logs = [
                log
                for log in self._logs.values()
                if session_id in (None, log.node.session_id) and self._sessions[log.node.session_id].trashed_at is None
            ]
            hits = [hit for log in logs for hit in _hits(log, wanted)] if wanted else []
        hits.sort(key=lambda hit: (-hit.score, hit.handle))
        return tuple(hits[: max(0, limit)])

    # --- health -----------------------------------------------------------------------------------------------------------------

    def verify(self, dialog_id: DialogId) -> tuple[int, ...]:
        """Give the numbers of own entries whose body does not give the digest in its header, or that are missing."""
        with self._guard:
            log = self._log(dialog_id)
            pairs = zip(log.headers, log.bodies, strict=True)
            return tuple(header.seq for header, body in pairs if body_digest(body) != header.digest)

    def faults(self, extract: Callable[[str, bytes], str] | None) -> Iterator[tuple[str, str, str]]:
        """Find what the index holds otherwise than the log (`palaver.store.verifying`)."""
        with self._guard:
            logs = list(self._logs.items())
        for dialog_id, log in logs:
            for header, body, kept in zip(log.headers, log.bodies, log.texts, strict=False):
                if why := text.differs_from(extract, header.kind, body, kept):
                    yield f"{dialog_id[:SHORT_DIGITS]}:{header.seq}", "wrong_index", why

    def blob_ids(self) -> Iterator[BlobId]:
        """Give the ids of all payloads, in order (`palaver.store.copying`)."""
        with self._guard:
            return iter(sorted(self._blobs))

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are (`palaver.store.copying`)."""
        with self._guard:
            log = self._log(dialog_id)
            check_taken(log.last(), taken)
            for header, body in taken:
                log.add(header, bytes(body))

    def change_lease(self, name: str, change: Change) -> Lease:
        """Change a lease in one step (`palaver.store.lease`)."""
        with self._guard:
            made = self._leases[name] = change(self._leases.get(name, Lease(name)), now())
            return made

    # --- erasing (`palaver.store.erasing`) ----------------------------------------------------------------------------------------

    @contextmanager
    def erasing(self) -> Iterator[Eraser]:
        """Begin an erasure: nobody else writes before its end."""
        with self.together():
            yield MemoryEraser(self)

    def _refuse_gone(self, thing: Thing, name: str) -> None:
        found = self.gone(thing, name)
        if found is not None:
            raise found.error(thing, name)

    def gone(self, thing: Thing, name: str) -> Gone | None:
        """Tell whether something was erased."""
        with self._guard:
            found = self._gone.get((thing, name))
            if found is None and thing == "dialog" and len(name) >= MIN_PREFIX_DIGITS:
                known = sorted(one for kind, one in self._gone if kind == thing and one.startswith(name))
                found = self._gone[thing, known[0]] if known else None
            return found

    def all_gone(self) -> Iterator[tuple[Thing, str, Gone]]:
        """Give all that is remembered to be erased."""
        with self._guard:
            return iter([(thing, name, self._gone[thing, name]) for thing, name in sorted(self._gone)])

    def receipts(self) -> tuple[KeptReceipt, ...]:
        """Give all receipts, the oldest first."""
        with self._guard:
            return tuple(self._receipts.values())

    def scrub(self, *, thorough: bool = True, payloads: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - nothing lies anywhere else
        """Do nothing: what is deleted in memory is nowhere else."""
        with self._guard:
            return ()

    def strays(self) -> Iterator[Stray]:
        """Give the payloads that nothing names."""
        with self._guard:
            at, left = now(), set(self._blobs)
            self._take_named(left, {}, proven=True)
            return iter([Stray(one, len(self._blobs[one]), at - self._times[one]) for one in sorted(left)])

    def unnamed(self, blob_ids: Collection[BlobId], older_than: float) -> Unnamed:
        """Give those payloads that nothing names and that nobody has put for so many seconds."""
        with self._guard:
            mark = Mark({dialog_id: (log, len(log.bodies)) for dialog_id, log in self._logs.items()})
            left = self._older(blob_ids, older_than)
        self._take_named(left, {}, proven=True)
        return Unnamed(frozenset(left), mark)

    def _older(self, blob_ids: Collection[BlobId], seconds: float) -> set[BlobId]:
        at = now()
        return {one for one in blob_ids if one in self._blobs and at - self._times[one] >= seconds}

    def _take_named(self, left: set[BlobId], known: Mapping[DialogId, tuple[_Log, int]], *, proven: bool) -> None:
        """Take what entries and sources name out of some payloads; the first entries of a log that is still the same are known."""
        with self._guard:
            logs = list(self._logs.items()) if left else []
        for dialog_id, log in logs:
            was, length = known.get(dialog_id, (log, 0))
            with self._guard:
                bodies = log.bodies[length if was is log else 0 :]
            for body in filter(may_name, bodies):
                left -= named_in(body)
        with self._guard:
            for source in self._sources.values() if left else ():
                if source.raw in self._blobs:
                    left -= listed(source.raw, self._blobs[source.raw], proven=proven)
                left -= {one for one in (source.raw, source.index) if one is not None}

    def note_file(self, session_id: SessionId, path: str) -> None:
        """Remember that a session was written to a file."""
        with self._guard:
            self._session(session_id)
            self._files[session_id] = tuple(sorted({*self._files.get(session_id, ()), path}))

    def files(self, session_id: SessionId) -> tuple[str, ...]:
        """Give the files that a session was written to."""
        with self._guard:
            self._session(session_id)
            return self._files.get(session_id, ())

    def close(self) -> None:
        """Forget everything."""
        self._guard.open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class MemoryEraser:
    """What may be done inside an erasure of a store in memory. A changed log is a new one: the old one is what an undo goes back to."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def put_in_place(self, dialog_id: DialogId, placed: Sequence[Placed]) -> None:
        """Overwrite entries, and set the sizes of all that follow."""
        log = self._store._log(dialog_id)  # noqa: SLF001 - the other half of one thing
        for one in placed:
            self._store._place(dialog_id, one.seq)  # noqa: SLF001 - as above
        bodies = list(log.bodies)
        texts = list(log.texts)
        for one in placed:
            bodies[one.seq] = bytes(one.body)
            if one.seq < len(texts):
                texts[one.seq] = ""
        self._store._logs[dialog_id] = _Log(log.node, list(retotalled(log.headers, placed, 0)), bodies, texts)  # noqa: SLF001 - as above

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty a node's metadata."""
        log = self._store._log(dialog_id)  # noqa: SLF001 - as above
        node = replace(log.node, metadata={})
        self._store._logs[dialog_id] = _Log(node, list(log.headers), list(log.bodies), list(log.texts))  # noqa: SLF001 - as above

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs."""
        for dialog_id in dialog_ids:
            self._store._log(dialog_id)  # noqa: SLF001 - as above
            del self._store._logs[dialog_id]  # noqa: SLF001 - as above

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session."""
        store = self._store
        store._session(session_id)  # noqa: SLF001 - as above
        del store._sessions[session_id]  # noqa: SLF001 - as above
        store._files.pop(session_id, None)  # noqa: SLF001 - as above
        store._sources = {name: one for name, one in store._sources.items() if one.session_id != session_id}  # noqa: SLF001 - as above

    def remove_leases(self, ids: Collection[str]) -> None:
        """Delete leases whose name holds an id."""
        store = self._store
        kept = {name: lease for name, lease in store._leases.items() if not any(one in name for one in ids)}  # noqa: SLF001 - as above
        store._leases = kept  # noqa: SLF001 - as above

    def unnamed(
        self, blob_ids: Collection[BlobId], older_than: float | None = None, since: Mark | None = None
    ) -> frozenset[BlobId]:
        """Give those payloads that nothing names."""
        left = set(blob_ids) if older_than is None else self._store._older(blob_ids, older_than)  # noqa: SLF001 - as above
        known = since.place if since is not None and isinstance(since.place, dict) else {}
        self._store._take_named(left, known, proven=older_than is not None)  # noqa: SLF001 - as above
        return frozenset(left)

    def remove_blobs(self, blob_ids: Collection[BlobId]) -> None:
        """Delete payloads."""
        for one in blob_ids:
            self._store._blobs.pop(one, None)  # noqa: SLF001 - as above
            self._store._times.pop(one, None)  # noqa: SLF001 - as above

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased."""
        for one in things:
            self._store._gone.setdefault(one, gone)  # noqa: SLF001 - as above

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt."""
        self._store._receipts[receipt.receipt_id] = receipt  # noqa: SLF001 - as above


def _hits(log: _Log, wanted: Sequence[str]) -> Iterator[Hit]:
    for header, said in zip(log.headers, log.texts, strict=False):
        folded = said.casefold()
        if text.holds(folded, wanted):
            score = text.weight(folded, wanted)
            handle = Handle(log.node.dialog_id, header.seq)
            yield Hit(
                handle=handle,
                session_id=log.node.session_id,
                kind=header.kind,
                role=header.role,
                snippet=text.snippet(said, wanted),
                score=score,
            )
