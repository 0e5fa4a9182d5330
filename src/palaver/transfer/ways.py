"""A session on its way from one store to another that has a part of it, or another version of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from palaver.errors import Erased, InvalidInput, NotFound
from palaver.ids import BlobId, DialogId, SessionId, derive_dialog_id
from palaver.log import (
    REWRITE,
    VERSION_OF,
    Header,
    Node,
    Place,
    Run,
    Span,
    body_digest,
    decode_entry,
    originals,
    references,
)
from palaver.log.values import LogValue
from palaver.messages import Message, canonical_json
from palaver.store.connect import shown
from palaver.store.erasing import Erasing, source_name
from palaver.store.protocol import Copyable, SessionRecord, Store
from palaver.transfer.copies import renamed_body
from palaver.transfer.records import EntryRecord, to_json
from palaver.transfer.writer import named_by_source, rows

_BATCH_ENTRIES, _BATCH_BYTES = 500, 4 << 20


@dataclass(slots=True)
class Tally:
    """What was done: entries by side, and the rest in words, as `Synced` has it."""

    added: list[int] = field(default_factory=lambda: [0, 0])
    forks: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, other: Tally, side: int, entries: int) -> None:
        """Add what was written in one transaction."""
        self.added[side] += entries
        self.forks += other.forks
        self.refused += other.refused


def record_of(store: Store, session_id: SessionId) -> SessionRecord | None:
    """Return a session, or None where there is none."""
    try:
        return store.session(session_id)
    except (NotFound, Erased):
        return None


class SessionAt:
    """A session in one store."""

    def __init__(self, store: Copyable, session_id: SessionId) -> None:
        self.store = store
        self.session_id = session_id
        self.nodes = {node.dialog_id: node for node in store.nodes(session_id)}
        self._versions = {
            name: DialogId(str(node.metadata[VERSION_OF]))
            for name, node in self.nodes.items()
            if VERSION_OF in node.metadata
        }

    def add(self, node: Node) -> None:
        """Write a new dialog."""
        self.nodes[node.dialog_id] = self.store.create_dialog(node)
        if VERSION_OF in node.metadata:
            self._versions[node.dialog_id] = DialogId(str(node.metadata[VERSION_OF]))

    def root(self, name: DialogId | None) -> DialogId | None:
        """Return the dialog that one is a version of, or itself."""
        return None if name is None else self._versions.get(name, name)

    def plain(self, body: bytes) -> bytes:
        """Return an entry as it is on every side: it names the dialogs instead of their versions."""
        return _renamed(body, self._versions)

    def ranges(self, spans: Iterable[Span]) -> list[tuple[DialogId | None, int, int]]:
        """Return spans as they are on every side."""
        return [(self.root(span.dialog), span.start, span.stop) for span in spans]

    def heads(self) -> str:
        """Return a digest of the ends of all dialogs and of what describes the session: equal on sides that have the same."""
        about = to_json(self.store.session(self.session_id))["session"]
        about.pop("root")
        ends = []
        for name, node in self.nodes.items():
            last = self.store.last(name)
            digest = last.digest if last.seq < 0 else self._digest(name, last)
            ends.append([self.root(name), self.ranges(node.ranges), last.seq, last.total, digest.hex()])
        sources = [[source.identity, source.digest] for source in self.store.sources(self.session_id)]
        ends.sort(key=canonical_json)
        return sha256(canonical_json({"about": about, "ends": ends, "sources": sources})).hexdigest()[:16]

    def _digest(self, name: DialogId, header: Header) -> bytes:
        if not self._versions:
            return header.digest
        return body_digest(self.plain(self.store.body(name, header.seq)))


def _renamed(body: bytes, names: Mapping[DialogId, DialogId]) -> bytes:
    there = {old: new for old, new in names.items() if old != new and old.encode() in body}
    return renamed_body(body, there) if there else body


def _near(
    body: bytes, names: Mapping[DialogId, DialogId], inherited: Mapping[DialogId, tuple[DialogId, int]]
) -> dict[DialogId, DialogId]:
    """Return the names of the dialogs that an entry's own dialog shares, as far as it shares what the entry names.

    An entry may name what a parent said after the branch: that is where all of the parent is.
    """
    near = {old: new for old, (new, _stop) in inherited.items()}
    if any(names[old] != new and old.encode() in body for old, new in near.items()):
        for span in _named(decode_entry(body)):
            if span.dialog in near and span.stop > inherited[span.dialog][1]:
                del near[span.dialog]
    return near


def _named(value: object) -> Iterator[Span]:
    """Yield what an entry names."""
    match value:
        case Place(dialog=dialog, seq=seq):
            yield Span(dialog, seq, seq + 1)
        case Run():
            yield value.span
        case LogValue():
            yield from (span for name in type(value).model_fields for span in _named(getattr(value, name)))
        case Message():
            about = (value.metadata, *(result.metadata for result in value.tool_results()))
            yield from (
                Span(place.dialog, place.seq, place.seq + 1) for place in chain.from_iterable(map(originals, about))
            )
        case tuple():
            yield from (span for part in value for span in _named(part))


class Course(NamedTuple):
    """Where a dialog goes.

    Attributes:
        node: The dialog.
        root: The dialog that it is a version of, or itself.
        name: The target's dialog.
        start: How many of its entries are there.
        length: How many there are.
        like: The target's dialog with which it has those in common, if there is one.
    """

    node: Node
    root: DialogId
    name: DialogId
    start: int
    length: int
    like: DialogId | None


class Way:
    """A session on its way from one side to the other.

    Attributes:
        source: Where it comes from.
        target: Where it goes.
        written: How many entries were added.
        said: The versions that were added, and what was refused.
    """

    def __init__(self, source: Copyable, target: Copyable, session_id: SessionId) -> None:
        self.source = SessionAt(source, session_id)
        record = source.session(session_id)
        self._new = record_of(target, session_id) is None
        if self._new:
            target.create_session(replace(record, root=None))
        self.target = SessionAt(target, session_id)
        self.written, self.said = 0, Tally()
        self._record = record
        self._steps: dict[DialogId, list[tuple[DialogId, int]]] = {}
        self._planned: dict[DialogId, DialogId] = {}

    def place(self, dialog: DialogId, stop: int) -> DialogId:
        """Return the target's dialog that has the first entries of a dialog; all of them with -1."""
        steps = self._steps[dialog]
        return next((name for name, common in steps if 0 <= stop <= common), steps[-1][0])

    def go(self) -> None:
        """Write what the target lacks. First all dialogs are compared: an entry may name a dialog that comes after its own."""
        plans = [plan for node in self.source.nodes.values() if (plan := self._plan(node)) is not None]
        for plan in plans:
            self._write(plan)
        if self._new and self._record.root in self._steps:
            root = self.place(self._record.root, -1)
            self.target.store.update_session(self._record.session_id, root=root)
        self._bring_sources()

    def _refuse(self, node: Node, why: str) -> None:
        self.said.refused.append(f"dialog {node.dialog_id} of {shown(self.source.store)}: {why}")

    def _plan(self, node: Node) -> Course | None:
        """Find where a dialog goes, and how many of its entries are there. Return None for one that cannot be brought."""
        if not {span.dialog for span in node.ranges} | ({node.parent_id} - {None}) <= self._steps.keys():
            self._refuse(node, "it grew from a dialog that was erased there")
            return None
        length = self.source.store.last(node.dialog_id).seq + 1
        root = self.source.root(node.dialog_id) or node.dialog_id
        name = root if root in self.target.nodes or root in self._planned else node.dialog_id
        steps: list[tuple[DialogId, int]] = []
        start = 0
        while (there := self._there(name)) is not None:
            if there[0].ranges(there[0].nodes[there[1]].ranges) != self.source.ranges(node.ranges):
                raise InvalidInput(f"Dialog {node.dialog_id} has another place in the tree there.")
            before, start = start, self._common(node, there, length)
            if steps and start <= before:
                raise InvalidInput(f"Dialog {node.dialog_id} and {name} cannot be told apart.")
            steps.append((name, start))
            if start in (length, there[0].store.last(there[1]).seq + 1):
                break
            plain = self.source.plain(self.source.store.body(node.dialog_id, start))
            name = derive_dialog_id(node.session_id, "sync", root, str(start), sha256(plain).hexdigest())
        target = self.target.store
        if there is None and isinstance(target, Erasing) and target.gone("dialog", name) is not None:
            self._refuse(node, f"it was erased in {shown(target)}")
            return None
        if there is None or start < length:
            self._planned[name] = node.dialog_id
        self._steps[node.dialog_id] = [*(step for step in steps if step[0] != name), (name, length)]
        return Course(node, root, name, start, length, steps[-1][0] if steps else None)

    def _there(self, name: DialogId) -> tuple[SessionAt, DialogId] | None:
        """Return what the target will have as a dialog: what it has, or what was already planned."""
        if name in self._planned:
            return self.source, self._planned[name]
        return (self.target, name) if name in self.target.nodes else None

    def _write(self, plan: Course) -> None:
        node, name = plan.node, plan.name
        names = {old: steps[-1][0] for old, steps in self._steps.items()}
        ends: dict[DialogId, int] = {}
        for span in node.ranges:
            ends[span.dialog] = max(span.stop, ends.get(span.dialog, 0))
        inherited = {old: (self.place(old, stop), stop) for old, stop in ends.items()}
        ranges = tuple(Span(inherited[span.dialog][0], span.start, span.stop) for span in node.ranges)
        if name not in self.target.nodes:
            parent = node.parent_id and inherited.get(node.parent_id, (names[node.parent_id],))[0]
            made = replace(node, dialog_id=name, ranges=ranges, parent_id=parent)
            self._create(made, plan.root)
            if plan.like is not None:  # what both have is copied from here: an entry that was erased here stays so
                self._take(self.target.store, Span(plan.like, 0, plan.start), name, {plan.like: name})
                self.said.forks.append(
                    f"session {node.session_id} in {shown(self.target.store)}: "
                    f"dialog {name} is {plan.root} as it went on elsewhere from entry {plan.start} on"
                )
        missing = Span(node.dialog_id, plan.start, plan.length)
        self.written += self._take(self.source.store, missing, name, {**names, node.dialog_id: name}, inherited)

    def _create(self, made: Node, root: DialogId) -> None:
        if made.dialog_id != root:
            made = replace(made, metadata={**made.metadata, VERSION_OF: root})
            if made.relation != "subagent":
                made = replace(made, relation=REWRITE, parent_id=root if root in self.target.nodes else None)
        self.target.add(made)

    def _common(self, node: Node, there: tuple[SessionAt, DialogId], length: int) -> int:
        """Return how many entries both dialogs have in common."""
        source, target, name = self.source.store, there[0].store, there[1]
        stop = min(length, target.last(name).seq + 1)
        if not stop:
            return 0
        mine, theirs = source.header(node.dialog_id, stop - 1), target.header(name, stop - 1)
        alike = mine._replace(digest=b"") == theirs._replace(digest=b"")
        if alike and self._equal(node, there, mine, theirs):
            return stop
        pairs = zip(source.headers(node.dialog_id, 0, stop), target.headers(name, 0, stop), strict=True)
        return next((mine.seq for mine, theirs in pairs if not self._equal(node, there, mine, theirs)), stop)

    def _equal(self, node: Node, there: tuple[SessionAt, DialogId], mine: Header, theirs: Header) -> bool:
        if mine.digest == theirs.digest:
            return True
        sides = ((self.source, node.dialog_id), there)
        ours, other = (side.plain(side.store.body(dialog, mine.seq)) for side, dialog in sides)
        if ours == other:
            return True
        if (mine.at, mine.role, mine.calls) != (theirs.at, theirs.role, theirs.calls):
            return False
        erased = [decode_entry(body).erased for body in (ours, other)]
        if erased[1] is not None and erased[0] is None:
            self._refuse(node, f"its entry {mine.seq} was erased in {shown(self.target.store)} and is still here")
        return any(erased)

    def _take(
        self,
        store: Store,
        span: Span,
        name: DialogId,
        names: Mapping[DialogId, DialogId],
        inherited: Mapping[DialogId, tuple[DialogId, int]] = MappingProxyType({}),
    ) -> int:
        """Copy entries to the end of one of the target's dialogs."""
        target, batch, size = self.target.store, list[tuple[Header, bytes]](), 0
        last = target.last(name) if len(span) else None
        for record in rows(store, self._record.session_id, span, set(), payloads="none", exact=True):
            if isinstance(record, EntryRecord) and record.header is not None:
                body = _renamed(record.body, {**names, **_near(record.body, names, inherited)})
                total = (last.total if last else 0) + len(body)
                last = record.header._replace(size=len(body), total=total, digest=body_digest(body))
                self._bring_payloads(references(body))
                batch.append((last, body))
                size += len(body)
            if len(batch) >= _BATCH_ENTRIES or size >= _BATCH_BYTES:
                target.take_entries(name, batch)
                batch, size = [], 0
        target.take_entries(name, batch)
        return len(span)

    def _bring_payloads(self, named: Iterable[BlobId]) -> None:
        """Bring payloads that the target lacks, as far as they are there."""
        source, target, session_id = self.source.store, self.target.store, self._record.session_id
        for blob in named:
            if not target.has_blob(session_id, blob) and source.has_blob(session_id, blob):
                target.put_blob(session_id, source.blob(session_id, blob))

    def _bring_sources(self) -> None:
        """Bring the records of foreign conversations. A map of records to entries fits one version only: that of the side that made it."""
        moved = any(len(steps) > 1 for steps in self._steps.values())
        target = self.target.store
        for source in self.source.store.sources(self._record.session_id):
            there = target.source(source.identity)
            gone = isinstance(target, Erasing) and target.gone("source", source_name(source.identity))
            ours = there is None or there.session_id == source.session_id
            behind = there is None or there.index is None or there.imported_at < source.imported_at
            if ours and not gone and not moved and behind:
                self._bring_payloads(named_by_source(self.source.store, source))
                target.put_source(source)
