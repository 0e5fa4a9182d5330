"""The store in the memory of one process, as plain as the laws allow: the reference by which other stores are judged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from typing import Any, Self

from palaver.errors import Ambiguous, InvalidInput
from palaver.ids import BlobId, DialogId, SessionId, now
from palaver.log import (
    Draft,
    Handle,
    Header,
    Node,
    Span,
    appended,
    body_digest,
    check_taken,
    next_header,
    require_written,
    rule,
)
from palaver.store import text
from palaver.store.contents import Contents, DialogContents
from palaver.store.erasing import Eraser, Gone, KeptReceipt, NotedFile, Stray, Thing
from palaver.store.lease import Change, Lease
from palaver.store.protocol import ARCHIVE, TAIL_ENTRIES, Capability, Durability, Hit, SessionRecord, SourceRecord
from palaver.store.records import (
    check_changes,
    check_dialog_prefix,
    check_kinds,
    check_prefix,
    checked,
    moved_on,
    unknown,
    within_tail,
)


class MemoryStore:
    """A store that lives as long as the process.

    Attributes:
        contents: Everything in it.
    """

    durability = Durability.MEMORY
    capabilities = frozenset({Capability.SEARCH, Capability.SPANNING})
    url = "memory:"
    remote = False

    def __init__(self) -> None:
        self.contents = Contents()

    def transaction(self, lock: str = "") -> AbstractContextManager[None]:  # noqa: ARG002 - all writers wait for each other
        """Make one step of the writes that this thread makes inside the block."""
        return self.contents.transaction()

    @property
    def in_transaction(self) -> bool:
        """Whether this thread is inside a transaction."""
        return self.contents.in_transaction

    # --- sessions -------------------------------------------------------------------------------------------------------------

    def create_session(self, record: SessionRecord, root: Node | None = None) -> None:
        """Write a new session, and its first dialog."""
        kept = checked(record)
        with self.contents.transaction():
            self.contents.refuse_gone("session", kept.session_id)
            if kept.session_id in self.contents.sessions:
                raise InvalidInput(f"A session with the id {kept.session_id} exists.")
            active = replace(kept, updated_at=max(kept.created_at, kept.updated_at))
            self.contents.set(self.contents.sessions, kept.session_id, active)
            if root is not None:
                self.update_session(record.session_id, root=self.create_dialog(root).dialog_id)

    def session(self, session_id: SessionId) -> SessionRecord:
        """Return a session, also one in the trash."""
        with self.contents.using():
            return self.contents.session(session_id)

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
        with self.contents.using():
            listed = [
                record
                for record in self.contents.sessions.values()
                if (record.trashed_at is not None) == trashed
                and (ARCHIVE in record.metadata or not archived)
                and tenant in (None, record.tenant)
                and name in (None, record.name)
                and subject in (None, record.subject)
            ]
        listed.sort(key=lambda record: (record.updated_at, record.session_id), reverse=True)
        if after is not None:
            bound = (after.updated_at, after.session_id)
            listed = [record for record in listed if (record.updated_at, record.session_id) < bound]
        return iter(listed if limit is None else listed[: max(0, limit)])

    def sessions_beginning(self, prefix: str, limit: int = 2) -> tuple[SessionId, ...]:
        """Return ids of sessions that begin with a prefix."""
        wanted = check_prefix(prefix)
        with self.contents.using():
            ids = [record.session_id for record in self.contents.sessions.values() if record.trashed_at is None]
        return tuple(sorted(session_id for session_id in ids if session_id.startswith(wanted))[: max(0, limit)])

    def update_session(self, session_id: SessionId, **changes: Any) -> SessionRecord:  # noqa: ANN401 - each field has a type of its own
        """Change what may change of a session."""
        check_changes(changes)
        with self.contents.using():
            record = checked(replace(self.contents.session(session_id), **changes))
            self.contents.set(self.contents.sessions, session_id, record)
            return record

    # --- the tree ---------------------------------------------------------------------------------------------------------------

    def create_dialog(self, node: Node) -> Node:
        """Write a dialog's node and return it with `order` set."""
        kept = checked(node)
        with self.contents.using():
            return self.contents.add_dialog(kept)

    def node(self, dialog_id: DialogId) -> Node:
        """Return a dialog's node."""
        with self.contents.using():
            return self.contents.log(dialog_id).node

    def root(self, session_id: SessionId) -> tuple[Node, tuple[tuple[Header, bytes], ...]] | None:
        """Return the node of a session's root, and its tail; or None."""
        with self.contents.using():
            root = self.contents.session(session_id).root
            return None if root is None else (self.contents.log(root).node, self.tail(root))

    def nodes(self, session_id: SessionId, after: int = -1) -> tuple[Node, ...]:
        """Return the dialogs of a session in order."""
        with self.contents.using():
            self.contents.session(session_id)
            return tuple(log.node for log in self.contents.logs_of(session_id) if log.node.order > after)

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Return the one dialog whose id begins with `prefix`."""
        check_dialog_prefix(prefix)
        with self.contents.using():
            nodes = [log.node for log in self.contents.logs_of(session_id)]
            ids = sorted(node.dialog_id for node in nodes if node.dialog_id.startswith(prefix))
            if not ids:
                self.contents.refuse_gone("dialog", prefix)
                raise unknown("dialog", prefix)
        if len(ids) > 1:
            raise Ambiguous(prefix, ids)
        return ids[0]

    # --- entries ----------------------------------------------------------------------------------------------------------------

    def append(
        self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int, last: Header | None = None
    ) -> tuple[Header, ...]:
        """Append entries that belong to the turn, all or none, if the turn head is still `turn_head`."""
        with self.contents.using():
            log = self._log(dialog_id, last)
            made = appended(dialog_id, log.last, drafts, turn_head)
            return self._add(log, made, [bytes(draft.body) for draft in drafts])

    def annotate(self, dialog_id: DialogId, draft: Draft, last: Header | None = None) -> Header:
        """Append an entry outside the turn."""
        with self.contents.using():
            log = self._log(dialog_id, last)
            return self._add(log, (next_header(draft, log.last, turn=False),), [bytes(draft.body)])[0]

    def _log(self, dialog_id: DialogId, last: Header | None) -> DialogContents:
        log = self.contents.log(dialog_id)
        if last is not None and last != log.last:
            raise moved_on(dialog_id, last, log.last)
        return log

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are (`palaver.store.protocol.Copyable`)."""
        with self.contents.using():
            log = self.contents.log(dialog_id)
            check_taken(log.last, taken)
            self._add(log, tuple(header for header, _body in taken), [bytes(body) for _header, body in taken])

    def _add(self, log: DialogContents, made: tuple[Header, ...], bodies: Sequence[bytes]) -> tuple[Header, ...]:
        length = len(log.headers)
        self.contents.undoable(lambda: log.cut(length))
        for header, body in zip(made, bodies, strict=True):
            log.add(header, body)
        if made:
            self.contents.touch(log.node.session_id, max(header.at for header in made))
        return made

    def last(self, dialog_id: DialogId) -> Header:
        """Return the newest header of a dialog's own entries, `NOTHING` when it has none."""
        with self.contents.using():
            return self.contents.log(dialog_id).last

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Return one header of a dialog's own entries."""
        with self.contents.using():
            return self.contents.place(dialog_id, seq).headers[seq]

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Return the headers of own entries from `start` (inclusive) to `stop` (exclusive; None: all)."""
        with self.contents.using():
            headers = self.contents.log(dialog_id).headers[max(0, start) : None if stop is None else max(0, stop)]
        return iter(headers[::-1] if reverse else headers)

    def tail(self, dialog_id: DialogId, start: int = 0) -> tuple[tuple[Header, bytes], ...]:
        """Return the newest own entries of a dialog, with their bodies."""
        with self.contents.using():
            log = self.contents.log(dialog_id)
            begin = max(0, start, len(log.headers) - (TAIL_ENTRIES if self.remote else 1))
            return tuple(within_tail(tuple(zip(log.headers[begin:], log.bodies[begin:], strict=True))))

    def latest_of_kind(
        self, dialog_id: DialogId, kinds: str | Collection[str], start: int = 0, stop: int | None = None
    ) -> Iterator[Header]:
        """Return the headers of own entries of some kinds, newest first."""
        wanted = check_kinds(kinds)
        with self.contents.using():
            return iter(self.contents.log(dialog_id).of_kinds(wanted, start, stop))

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Return numbers and bodies of own entries from `start` (inclusive) to `stop` (exclusive; None: all)."""
        part = slice(max(0, start), None if stop is None else max(0, stop))
        with self.contents.using():
            log = self.contents.log(dialog_id)
            pairs = zip(log.headers[part], log.bodies[part], strict=True)
        return ((header.seq, body) for header, body in pairs if body_digest(body) == header.digest)

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Return one body."""
        with self.contents.using():
            log = self.contents.place(dialog_id, seq)
            return require_written(Handle(dialog_id, seq), log.bodies[seq], log.headers[seq].digest, lambda _: False)

    # --- payloads and sources -----------------------------------------------------------------------------------------------------

    def put_blob(self, session_id: SessionId, data: bytes) -> BlobId:  # noqa: ARG002 - equal payloads of all sessions are one
        """Store a payload under its SHA-256, once, and return the id."""
        blob_id = BlobId(sha256(data).hexdigest())
        with self.contents.using():
            if blob_id not in self.contents.blobs:
                self.contents.set(self.contents.blobs, blob_id, bytes(data))
            self.contents.set(self.contents.put_at, blob_id, now())
        return blob_id

    def blob(self, session_id: SessionId, blob_id: BlobId) -> bytes:  # noqa: ARG002
        """Return a payload."""
        with self.contents.using():
            data = self.contents.blobs.get(blob_id)
        if data is None:
            raise unknown("blob", blob_id)
        return data

    def has_blob(self, session_id: SessionId, blob_id: BlobId) -> bool:  # noqa: ARG002
        """Return whether a payload is stored."""
        with self.contents.using():
            return blob_id in self.contents.blobs

    def blob_ids(self, session_id: SessionId) -> Iterator[BlobId]:
        """Return the ids of the payloads that a session names (`palaver.store.protocol.Copyable`)."""
        with self.contents.using():
            self.contents.session(session_id)
            return iter(sorted(self.contents.named(session_id) & self.contents.blobs.keys()))

    def put_source(self, record: SourceRecord) -> None:
        """Write, or replace, the record of a foreign conversation."""
        kept = checked(record)
        with self.contents.using():
            self.contents.session(record.session_id)
            self.contents.set(self.contents.sources, record.identity, kept)

    def source(self, identity: str) -> SourceRecord | None:
        """Return the record of a foreign conversation, or None."""
        with self.contents.using():
            return self.contents.sources.get(identity)

    def sources(self, session_id: SessionId) -> tuple[SourceRecord, ...]:
        """Return the foreign conversations that a session came from, by identity."""
        with self.contents.using():
            self.contents.session(session_id)
            records = [record for record in self.contents.sources.values() if record.session_id == session_id]
        return tuple(sorted(records, key=lambda record: record.identity))

    # --- search -----------------------------------------------------------------------------------------------------------------

    def index(
        self,
        extract: Callable[[str, bytes], str],
        limit: int | None = None,
        *,
        session_id: SessionId | None = None,
    ) -> int:
        """Add the entries written since the last call to the full-text index, and return how many."""
        with self.contents.using():
            logs = self.contents.logs_of(session_id)
            waiting = [(log, seq) for log in logs for seq in range(len(log.texts), len(log.headers))]
            for log, seq in waiting if limit is None else waiting[: max(0, limit)]:
                kind = log.headers[seq].kind
                said = text.composed(extract(kind, log.bodies[seq])) if rule(kind).searched else ""
                self.contents.texts += 1
                log.texts.append((self.contents.texts, said))
            return len(waiting) if limit is None else min(len(waiting), max(0, limit))

    def index_lag(self) -> int:
        """Return how many entries are not yet in the full-text index."""
        with self.contents.using():
            return sum(len(log.headers) - len(log.texts) for log in self.contents.logs.values())

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
        wanted = text.sought(query) if ranked else text.words(query)
        with self.contents.using():
            if session_id is not None:
                self.contents.session(session_id)
            found = {
                number: (_hit(log, seq), said)
                for log in self.contents.logs_of(session_id)
                if session_id is not None or self.contents.sessions[log.node.session_id].trashed_at is None
                for seq, (number, said) in enumerate(log.texts)
            }
            numbers = [number for number in sorted(found, reverse=True) if which is None or which(found[number][0])]

            def postings(phrase: str) -> Iterator[tuple[int, bool]]:
                for number in numbers:
                    if text.begun(said := found[number][1], (phrase,)):
                        yield number, bool(text.begun(said.partition(text.APART)[0], (phrase,)))

            def read(chosen: Sequence[int]) -> Iterator[text.Candidate[tuple[Hit, str]]]:
                for number in chosen:
                    hit, said = found[number]
                    yield text.Candidate(number, hit.session_id, hit.kind, said, (hit, said))

            best: Iterable[tuple[float, tuple[str, ...], tuple[Hit, str]]]
            if ranked:
                best = text.ranked(query, postings, read)
            else:
                every = (found[number] for number in numbers)
                best = (
                    (0.0, wanted, (hit, said)) for hit, said in every if wanted and text.holds(said.casefold(), wanted)
                )
            return tuple(
                replace(hit, score=score, snippet=text.snippet(said, held, 1 if ranked else None))
                for score, held, (hit, said) in islice(best, max(0, limit))
            )

    # --- health and leases --------------------------------------------------------------------------------------------------------

    def verify(self, dialog_id: DialogId) -> tuple[Span, ...]:
        """Return the own entries whose body does not match its digest."""
        with self.contents.using():
            log = self.contents.log(dialog_id)
            pairs = zip(log.headers, log.bodies, strict=True)
            damaged = (header.seq for header, body in pairs if body_digest(body) != header.digest)
            return tuple(Span(dialog_id, seq, seq + 1) for seq in damaged)

    def lease(self, name: str) -> Lease:
        """Return a lease as it was written last."""
        with self.contents.using():
            return self.contents.leases.get(name, Lease(name))

    def change_lease(self, name: str, change: Change) -> Lease:
        """Change a lease in one step (`palaver.store.lease`)."""
        with self.contents.using():
            made = change(self.contents.leases.get(name, Lease(name)), now())
            self.contents.set(self.contents.leases, name, made)
            return made

    # --- erasing (`palaver.store.erasing`) ----------------------------------------------------------------------------------------

    @contextmanager
    def erasing(self) -> Iterator[Eraser]:
        """Begin an erasure: one transaction."""
        with self.transaction():
            yield self.contents

    def gone(self, thing: Thing, name: str) -> Gone | None:
        """Return when something was erased, or None."""
        with self.contents.using():
            return self.contents.erased(thing, name)

    def all_gone(self) -> Iterator[tuple[Thing, str, Gone]]:
        """Return all that is remembered to be erased."""
        with self.contents.using():
            return iter([(thing, name, self.contents.gone[thing, name]) for thing, name in sorted(self.contents.gone)])

    def receipts(self) -> tuple[KeptReceipt, ...]:
        """Return all receipts, the oldest first."""
        with self.contents.using():
            return tuple(self.contents.receipts.values())

    def scrub(self, *, thorough: bool = True) -> tuple[str, ...]:  # noqa: ARG002 - nothing is anywhere else
        """Do nothing: what is deleted in memory is nowhere else."""
        with self.contents.using():
            return ()

    def strays(self) -> Iterator[Stray]:
        """Return the payloads that nothing names."""
        with self.contents.using():
            at, left = now(), self.contents.unnamed(None, self.contents.blobs)
            return iter(
                [
                    Stray(blob_id, len(self.contents.blobs[blob_id]), at - self.contents.put_at[blob_id])
                    for blob_id in sorted(left)
                ]
            )

    def note_file(self, session_id: SessionId, file: NotedFile) -> None:
        """Remember that a session was written to a file."""
        with self.contents.using():
            self.contents.session(session_id)
            self.contents.set(self.contents.files, (session_id, file.path), file)

    def forget_file(self, session_id: SessionId, path: str) -> None:
        """Forget a noted file."""
        with self.contents.using():
            self.contents.session(session_id)
            self.contents.remove(self.contents.files, (session_id, path))

    def files(self, session_id: SessionId) -> tuple[NotedFile, ...]:
        """Return the noted files of a session."""
        with self.contents.using():
            self.contents.session(session_id)
            return tuple(self.contents.files[key] for key in sorted(self.contents.files) if key[0] == session_id)

    def close(self) -> None:
        """Forget everything."""
        self.contents.open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _hit(log: DialogContents, seq: int) -> Hit:
    header = log.headers[seq]
    return Hit(
        handle=Handle(log.node.dialog_id, seq),
        session_id=log.node.session_id,
        kind=header.kind,
        role=header.role,
        at=header.at,
    )
