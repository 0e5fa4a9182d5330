"""Everything in a store in memory, the lock around it, and what is needed to undo a transaction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock, get_ident
from typing import TypeVar

from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import NOTHING, Handle, Header, Node, digests_in, references
from palaver.store.erasing import Gone, KeptReceipt, NotedFile, Placed, Thing, retotalled
from palaver.store.lease import Lease
from palaver.store.protocol import SessionRecord, SourceRecord
from palaver.store.records import MIN_PREFIX_DIGITS, SHORT_DIGITS, UNLISTED, check_node, closed, unknown

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(slots=True)
class DialogContents:
    """One dialog: its node, its own entries, the numbers of its entries by kind, and its indexed texts in order."""

    node: Node
    headers: list[Header] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    kinds: dict[str, list[int]] = field(default_factory=dict)
    texts: list[tuple[int, str]] = field(default_factory=list)

    @property
    def last(self) -> Header:
        """The newest header, `NOTHING` when there is none."""
        return self.headers[-1] if self.headers else NOTHING

    def add(self, header: Header, body: bytes) -> None:
        """Add an entry."""
        self.bodies.append(body)
        self.headers.append(header)
        if header.kind not in UNLISTED:
            self.kinds.setdefault(header.kind, []).append(header.seq)

    def cut(self, length: int) -> None:
        """Remove the entries from a number on."""
        del self.headers[length:], self.bodies[length:]
        for numbers in self.kinds.values():
            del numbers[bisect_left(numbers, length) :]

    def of_kinds(self, kinds: Collection[str], start: int, stop: int | None) -> list[Header]:
        """Return headers of some kinds, newest first."""
        found = sorted((seq for kind in kinds for seq in self.kinds.get(kind, ())), reverse=True)
        return [self.headers[seq] for seq in found if start <= seq and (stop is None or seq < stop)]


class Contents:
    """The contents of a store in memory, and the operations on them inside an erasure. Every caller is inside `using` or `transaction`.

    Attributes:
        logs: The dialogs, in the order in which they were created.
        trees: Of each session, its dialogs by their first digits, in order.
        sessions: The sessions.
        blobs: The payloads.
        put_at: When each payload was stored last.
        sources: The records of foreign conversations, by identity.
        leases: The leases, by name.
        gone: What was erased.
        receipts: The receipts, the oldest first.
        files: The noted files, by session and path.
        texts: How many texts were indexed.
        open: Whether the store is open.
    """

    def __init__(self) -> None:
        self.logs: dict[DialogId, DialogContents] = {}
        self.trees: dict[SessionId, dict[str, DialogId]] = {}
        self.sessions: dict[SessionId, SessionRecord] = {}
        self.blobs: dict[BlobId, bytes] = {}
        self.put_at: dict[BlobId, float] = {}
        self.sources: dict[str, SourceRecord] = {}
        self.leases: dict[str, Lease] = {}
        self.gone: dict[tuple[Thing, str], Gone] = {}
        self.receipts: dict[str, KeptReceipt] = {}
        self.files: dict[tuple[SessionId, str], NotedFile] = {}
        self.texts = 0
        self.open = True
        self._lock = RLock()
        self._owner: int | None = None  # the thread that is inside a transaction
        self._undo: list[Callable[[], object]] = []

    # --- transactions ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def using(self) -> Iterator[None]:
        """Keep other threads out."""
        with self._lock:
            if not self.open:
                raise closed("in memory")
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep other threads out, and undo what the block did when it raises."""
        with self.using():
            outer, self._owner = self._owner, get_ident()
            begun = len(self._undo)
            try:
                yield
            except BaseException:  # an interrupt, too, is undone
                while len(self._undo) > begun:
                    self._undo.pop()()
                raise
            finally:
                self._owner = outer
                if outer is None:
                    self._undo.clear()

    @property
    def in_transaction(self) -> bool:
        """Whether this thread is inside a transaction."""
        return self._owner == get_ident()

    def undoable(self, undo: Callable[[], object]) -> None:
        """Remember how to undo what is done next."""
        if self._owner is not None:
            self._undo.append(undo)

    def set(self, mapping: dict[_Key, _Value], key: _Key, value: _Value) -> None:
        """Set a value of one of the dictionaries."""
        if key in mapping:
            before = mapping[key]
            self.undoable(lambda: mapping.__setitem__(key, before))
        else:
            self.undoable(lambda: mapping.pop(key, None))
        mapping[key] = value

    def remove(self, mapping: dict[_Key, _Value], key: _Key) -> None:
        """Remove a value of one of the dictionaries; undoing restores the order of the others, too."""
        if key in mapping:
            before = dict(mapping)

            def undo() -> None:
                mapping.clear()
                mapping.update(before)

            self.undoable(undo)
            del mapping[key]

    # --- finding --------------------------------------------------------------------------------------------------------------

    def session(self, session_id: SessionId) -> SessionRecord:
        """Return a session."""
        record = self.sessions.get(session_id)
        if record is None:
            self.refuse_gone("session", session_id)
            raise unknown("session", session_id)
        return record

    def log(self, dialog_id: DialogId) -> DialogContents:
        """Return a dialog."""
        kept = self.logs.get(dialog_id)
        if kept is None:
            self.refuse_gone("dialog", dialog_id)
            raise unknown("dialog", dialog_id)
        return kept

    def place(self, dialog_id: DialogId, seq: int) -> DialogContents:
        """Return the dialog of an entry."""
        log = self.log(dialog_id)
        if not 0 <= seq < len(log.headers):
            raise unknown("handle", str(Handle(dialog_id, seq)))
        return log

    def logs_of(self, session_id: SessionId | None) -> list[DialogContents]:
        """Return the dialogs of a session, or all."""
        if session_id is None:
            return list(self.logs.values())
        return [self.logs[one] for one in self.trees.get(session_id, {}).values()]

    def erased(self, thing: Thing, name: str) -> Gone | None:
        """Return when something was erased; of a dialog, the first digits of its id are enough."""
        mark = self.gone.get((thing, name))
        if mark is None and thing == "dialog" and len(name) >= MIN_PREFIX_DIGITS:
            known = sorted(whole for kind, whole in self.gone if kind == thing and whole.startswith(name))
            mark = self.gone[thing, known[0]] if known else None
        return mark

    def refuse_gone(self, thing: Thing, name: str) -> None:
        """Raise `Erased` for what was erased."""
        found = self.erased(thing, name)
        if found is not None:
            raise found.error(thing, name)

    def named(self, session_id: SessionId | None = None) -> frozenset[BlobId]:
        """Return the payloads that a session names, or that any does."""
        named = set[BlobId]()
        for log in self.logs.values():
            for body in log.bodies if session_id in {None, log.node.session_id} else ():
                named |= references(body)
        for source in self.sources.values():
            if session_id in {None, source.session_id}:
                named |= {blob_id for blob_id in (source.raw, source.index) if blob_id is not None}
                named |= set() if source.raw is None else digests_in(self.blobs.get(source.raw, b""))
        return frozenset(named)

    def unnamed(self, _session_id: SessionId | None, blob_ids: Collection[BlobId]) -> frozenset[BlobId]:
        """Return those payloads that are there and that nothing names."""
        return frozenset(self.blobs.keys() & set(blob_ids) - self.named())

    # --- changing -------------------------------------------------------------------------------------------------------------

    def touch(self, session_id: SessionId, at: float) -> None:
        """Record activity; it never goes back."""
        if at > self.sessions[session_id].updated_at:
            self.set(self.sessions, session_id, replace(self.sessions[session_id], updated_at=at))

    def add_dialog(self, node: Node) -> Node:
        """Add a dialog."""
        self.session(node.session_id)
        tree = self.trees.setdefault(node.session_id, {})
        short = node.dialog_id[:SHORT_DIGITS]
        parent = None if node.parent_id is None else self._in_session(node.parent_id, node.session_id)
        if node.parent_id is not None and parent is None:
            raise unknown("dialog", node.parent_id)

        def length(dialog_id: DialogId) -> int | None:
            log = self._in_session(dialog_id, node.session_id)
            return None if log is None else len(log.headers)

        taken = node.dialog_id in self.logs or short in tree
        check_node(node, None if parent is None else parent.node.ranges, length, taken=taken)
        self.refuse_gone("dialog", node.dialog_id)
        newest = next(reversed(tree.values()), None)
        placed = replace(node, order=0 if newest is None else self.logs[newest].node.order + 1)
        self.set(self.logs, node.dialog_id, DialogContents(placed))
        self.set(tree, short, node.dialog_id)
        self.touch(node.session_id, placed.created_at)
        return placed

    def _in_session(self, dialog_id: DialogId, session_id: SessionId) -> DialogContents | None:
        log = self.logs.get(dialog_id)
        return log if log is not None and log.node.session_id == session_id else None

    # --- erasing: a changed log is a new one, and the old one is what an undo goes back to -----------------------------------------

    def put_in_place(self, dialog_id: DialogId, placed: Sequence[Placed]) -> None:
        """Overwrite entries, and set the sizes of all that follow."""
        log = self.log(dialog_id)
        bodies, texts = list(log.bodies), list(log.texts)
        for entry in placed:
            self.place(dialog_id, entry.seq)
            bodies[entry.seq] = bytes(entry.body)
            if entry.seq < len(texts):
                texts[entry.seq] = (texts[entry.seq][0], "")
        made = DialogContents(log.node, texts=texts)
        for header, body in zip(retotalled(log.headers, placed, 0), bodies, strict=True):
            made.add(header, body)
        self.set(self.logs, dialog_id, made)

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty a node's metadata."""
        log = self.log(dialog_id)
        self.set(self.logs, dialog_id, replace(log, node=replace(log.node, metadata={})))

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs."""
        for dialog_id in dialog_ids:
            log = self.log(dialog_id)
            self.remove(self.logs, dialog_id)
            self.remove(self.trees[log.node.session_id], dialog_id[:SHORT_DIGITS])

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session."""
        self.session(session_id)
        for identity in [source.identity for source in self.sources.values() if source.session_id == session_id]:
            self.remove(self.sources, identity)
        for key in [place for place in self.files if place[0] == session_id]:
            self.remove(self.files, key)
        self.remove(self.sessions, session_id)

    def remove_blobs(self, _session_id: SessionId | None, blob_ids: Collection[BlobId]) -> None:
        """Delete payloads."""
        for one in blob_ids:
            self.remove(self.blobs, one)
            self.remove(self.put_at, one)

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased."""
        for one in things:
            if one not in self.gone:
                self.set(self.gone, one, gone)

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt."""
        self.set(self.receipts, receipt.receipt_id, receipt)
