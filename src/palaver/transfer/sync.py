"""Sync: two stores, or a store and a folder of bundles, get the same conversations, whatever was written to either meanwhile.

What is missing is found by dialog, number and digest. The shorter log of a dialog is continued. Where both sides wrote different entries under one number,
each keeps its own, and what the other wrote becomes another version of the dialog in the same session: a dialog of its own with the whole log, whose id
follows from where it leaves the dialog and with which entry. So every side gives a version the same id, a version that comes back to where it was written
is recognized, and nothing is added twice. Nothing that is there is changed.

Two logs are the same up to an entry if its headers are, apart from the names of versions: it has the number, the time, the digest and the total of all
bodies before it. Only where they differ all headers are compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from palaver.errors import Conflict, Erased, InvalidInput, NotFound, PalaverError, StoreDamaged, StoreError
from palaver.ids import BlobId, DialogId, SessionId, derive_dialog_id
from palaver.log import REWRITE, VERSION_OF, Header, Node, Span, body_digest, decode_entry, references
from palaver.messages import canonical_json
from palaver.store.connect import StoreLike, opened_store
from palaver.store.erasing import Erasing, source_name
from palaver.store.protocol import Copyable, SessionRecord, Store
from palaver.transfer.bundles import BundleFolder
from palaver.transfer.copies import copy_erasures, renamed_body
from palaver.transfer.records import EntryRecord, to_json
from palaver.transfer.writer import named_by_source, rows

_DESCRIBING = ("name", "subject", "workdir")
_TRIES = 3  # of a session that others write meanwhile
_BATCH_ENTRIES, _BATCH_BYTES = 500, 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a sync did.

    Attributes:
        sessions: How many sessions both sides have together.
        added: How many entries were added to the first and to the second side.
        forks: The versions that were added because both sides had gone on with a dialog, in words.
        changed: What else was changed, in words: names, metadata, the trash.
        refused: What could not be brought over, in words, and what to do.
    """

    sessions: int
    added: tuple[int, int]
    forks: tuple[str, ...]
    changed: tuple[str, ...]
    refused: tuple[str, ...]


def sync(first: StoreLike, second: StoreLike) -> Synced:
    """Bring what either side lacks to it: all sessions, also those in the trash.

    It can be stopped anywhere and repeated, and others may write meanwhile: each session is one transaction on each side, and what was written too late for it
    comes with the next sync. What was erased on one side does not come back to it, and is not erased on the other.

    Args:
        first: A store or the address of one; a new file is created. Where names or other metadata differ and both sides were last active at the same time,
            its own win; else those of the side that was active later.
        second: The same; or a folder that exists or whose path ends with a slash: it has a bundle of each session, without the trash.

    Raises:
        InvalidInput: They are the same, or the first is a folder, or one cannot be copied.
        StoreError: One of them failed. Every session is whole; sync again.
    """
    with ExitStack() as opened:
        here = _copyable(first, opened)
        if _is_folder(second):
            return _with_folder(here, BundleFolder(Path(os.fspath(second))))  # type: ignore[arg-type]
        there = _copyable(second, opened)
        if here is there or (here.url == there.url and here.url != "memory:"):
            raise InvalidInput("A store cannot be synchronised with itself.", hint="Name two stores.")
        return _both(here, there)


def _is_folder(side: StoreLike) -> bool:
    if not isinstance(side, str | os.PathLike):
        return False
    path = os.fspath(side)
    return path.endswith(os.sep) or Path(path).is_dir()


def _copyable(side: StoreLike, opened: ExitStack) -> Copyable:
    if _is_folder(side):
        raise InvalidInput("The first of both is a store; only the second may be a folder.", hint="Swap them.")
    store, owned = opened_store(side, create=True)
    if owned:
        opened.callback(store.close)
    if not isinstance(store, Copyable):
        raise InvalidInput("One of the stores is of a kind that cannot be copied.")
    return store


@dataclass(slots=True)
class _Tally:
    added: list[int] = field(default_factory=lambda: [0, 0])
    forks: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, other: _Tally, side: int, entries: int) -> None:
        """Add what was written in one transaction."""
        self.added[side] += entries
        self.forks += other.forks
        self.refused += other.refused

    def done(self, sessions: int) -> Synced:
        forks, changed, refused = (tuple(dict.fromkeys(words)) for words in (self.forks, self.changed, self.refused))
        added = (self.added[0], self.added[1])
        return Synced(sessions=sessions, added=added, forks=forks, changed=changed, refused=refused)


def _both(first: Copyable, second: Copyable) -> Synced:
    tally = _Tally()
    erased: set[str] = set()
    for source, target in ((first, second), (second, first)):
        for thing, name, gone in sorted(copy_erasures(source, target), reverse=True):
            erased.add(name)
            if thing == "session" or target.node(DialogId(name)).session_id not in erased:  # sessions come first
                tally.refused.append(
                    f"{thing} {name}: it was erased in {source.url} (receipt {gone.receipt}) and is still in {target.url}. "
                    f"Erase it there, too: palaver erase {name}"
                )
    ids = sorted({record.session_id for store in (first, second) for record in _records(store)})
    for session_id in ids:
        if session_id not in erased:
            _meet(first, second, session_id, tally)
    return tally.done(len(ids))


def _records(store: Store) -> Iterator[SessionRecord]:
    return chain(store.sessions(), store.sessions(trashed=True))


# --- a folder of bundles ----------------------------------------------------------------------------------------------------------


def _with_folder(store: Copyable, folder: BundleFolder) -> Synced:
    tally = _Tally()
    known = folder.sessions()
    ids = sorted({record.session_id for record in _records(store)} | known.keys())
    for session_id in ids:
        try:
            _with_bundles(store, folder, session_id, known.get(session_id, {}), tally)
        except (InvalidInput, Conflict, Erased, StoreDamaged) as error:
            tally.refused.append(f"session {session_id}: {error}")
    return tally.done(len(ids))


def _with_bundles(
    store: Copyable, folder: BundleFolder, session_id: SessionId, files: Mapping[str, Path], tally: _Tally
) -> None:
    """Sync one session with its files, of which there are several after several machines wrote."""
    gone = store.gone("session", session_id) if isinstance(store, Erasing) else None
    if gone is not None:
        folder.erase(session_id, files.values(), gone.receipt)
        tally.changed.append(f"session {session_id}: it was erased in {store.url}, and now in the folder")
        return
    if (receipt := folder.erased(session_id)) is not None:
        tally.refused.append(
            f"session {session_id}: it was erased on another machine (receipt {receipt}) and is still in {store.url}. "
            f"Erase it there, too: palaver erase {session_id}"
        )
        return
    with suppress(NotFound):
        if files.keys() == {_SessionAt(store, session_id).heads()}:
            return
    loaded = []
    for path in files.values():
        try:
            loaded.append((path, folder.load(path)))
        except PalaverError as error:
            tally.refused.append(f"{path}: {error}. It stays as it is; delete it if nothing else writes it.")
    copy = loaded[0][1] if loaded else folder.empty()
    for _path, other in loaded[1:]:
        _meet(copy, other, session_id, _Tally())
    with suppress(NotFound):
        copy.update_session(session_id, trashed_at=store.session(session_id).trashed_at)  # each store has its own trash
    _meet(store, copy, session_id, tally)
    heads = _SessionAt(copy, session_id).heads()
    path = folder.write(copy, session_id, heads, replacing=[path for path, _ in loaded])
    if isinstance(store, Erasing):
        with suppress(StoreError, NotFound):
            folder.note(store, session_id, path, [path for path, _ in loaded])


# --- one session ------------------------------------------------------------------------------------------------------------------


def _meet(first: Copyable, second: Copyable, session_id: SessionId, tally: _Tally) -> None:
    """Sync one session."""
    for left in reversed(range(_TRIES)):
        try:
            _exchange(first, second, session_id, tally)
        except (InvalidInput, Conflict) as error:
            if left:
                continue  # somebody wrote meanwhile
            tally.refused.append(f"session {session_id}: {error}")
        except (Erased, StoreDamaged, NotFound) as error:
            tally.refused.append(f"session {session_id}: {error}")
        return


def _exchange(first: Copyable, second: Copyable, session_id: SessionId, tally: _Tally) -> None:
    before = [_record(store, session_id) for store in (first, second)]
    if None not in before:
        one, two = (_SessionAt(store, session_id) for store in (first, second))
        same = one.heads() == two.heads() and before[0].trashed_at == before[1].trashed_at  # type: ignore[union-attr]
        if same and one.root(before[0].root) == two.root(before[1].root):  # type: ignore[union-attr]
            return
    ways: list[_Way] = []
    for index, (source, target) in enumerate(((first, second), (second, first))):
        if _record(source, session_id) is not None:
            with target.transaction():
                ways.append(way := _Way(source, target, session_id))
                way.go()
            tally.add(way.said, 1 - index, way.written)
    if None not in before:
        _settle(before, ways, tally)  # type: ignore[arg-type]


def _record(store: Store, session_id: SessionId) -> SessionRecord | None:
    try:
        return store.session(session_id)
    except (NotFound, Erased):
        return None


def _settle(before: Sequence[SessionRecord], ways: Sequence[_Way], tally: _Tally) -> None:
    """Let both sides describe the session in the same way."""
    newer = 1 if before[1].updated_at > before[0].updated_at else 0
    ours, theirs = before[newer], before[1 - newer]
    merged: dict[str, Any] = {name: getattr(ours, name) or getattr(theirs, name) for name in _DESCRIBING}
    merged |= {"trashed_at": ours.trashed_at, "metadata": {**theirs.metadata, **ours.metadata}}
    way = ways[newer]  # from the side that wins to the other
    moved = theirs.root
    if ours.root is not None and way.source.root(ours.root) != way.target.root(theirs.root):
        moved = way.place(ours.root, -1)
    for side, record, root in ((way.source, ours, ours.root), (way.target, theirs, moved)):
        store, wanted = side.store, merged | {"root": root}
        different = {name: value for name, value in wanted.items() if value != getattr(record, name)}
        if different:
            store.update_session(record.session_id, **different)
            tally.changed.append(f"session {record.session_id} in {store.url}: its {', '.join(sorted(different))}")


class _SessionAt:
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


class _Course(NamedTuple):
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


class _Way:
    """A session on its way from one side to the other.

    Attributes:
        source: Where it comes from.
        target: Where it goes.
        written: How many entries were added.
        said: The versions that were added, and what was refused.
    """

    def __init__(self, source: Copyable, target: Copyable, session_id: SessionId) -> None:
        self.source = _SessionAt(source, session_id)
        record = source.session(session_id)
        self._new = _record(target, session_id) is None
        if self._new:
            target.create_session(replace(record, root=None))
        self.target = _SessionAt(target, session_id)
        self.written, self.said = 0, _Tally()
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
        self.said.refused.append(f"dialog {node.dialog_id} of {self.source.store.url}: {why}")

    def _plan(self, node: Node) -> _Course | None:
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
            self._refuse(node, f"it was erased in {target.url}")
            return None
        if there is None or start < length:
            self._planned[name] = node.dialog_id
        self._steps[node.dialog_id] = [*(step for step in steps if step[0] != name), (name, length)]
        return _Course(node, root, name, start, length, steps[-1][0] if steps else None)

    def _there(self, name: DialogId) -> tuple[_SessionAt, DialogId] | None:
        """Return what the target will have as a dialog: what it has, or what was already planned."""
        if name in self._planned:
            return self.source, self._planned[name]
        return (self.target, name) if name in self.target.nodes else None

    def _write(self, plan: _Course) -> None:
        node, name = plan.node, plan.name
        ranges = tuple(Span(self.place(span.dialog, span.stop), span.start, span.stop) for span in node.ranges)
        names = {old: steps[-1][0] for old, steps in self._steps.items()}
        names |= {span.dialog: new.dialog for span, new in zip(node.ranges, ranges, strict=True)}
        if name not in self.target.nodes:
            made = replace(node, dialog_id=name, ranges=ranges, parent_id=node.parent_id and names[node.parent_id])
            self._create(made, plan.root)
            if plan.like is not None:  # what both have is copied from here: an entry that was erased here stays so
                self._take(self.target.store, Span(plan.like, 0, plan.start), name, {plan.like: name})
                self.said.forks.append(
                    f"session {node.session_id} in {self.target.store.url}: "
                    f"dialog {name} is {plan.root} as it went on elsewhere from entry {plan.start} on"
                )
        missing = Span(node.dialog_id, plan.start, plan.length)
        self.written += self._take(self.source.store, missing, name, {**names, node.dialog_id: name})

    def _create(self, made: Node, root: DialogId) -> None:
        if made.dialog_id != root:
            made = replace(made, metadata={**made.metadata, VERSION_OF: root})
            if made.relation != "subagent":
                made = replace(made, relation=REWRITE, parent_id=root if root in self.target.nodes else None)
        self.target.add(made)

    def _common(self, node: Node, there: tuple[_SessionAt, DialogId], length: int) -> int:
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

    def _equal(self, node: Node, there: tuple[_SessionAt, DialogId], mine: Header, theirs: Header) -> bool:
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
            self._refuse(node, f"its entry {mine.seq} was erased in {self.target.store.url} and is still here")
        return any(erased)

    def _take(self, store: Store, span: Span, name: DialogId, names: Mapping[DialogId, DialogId]) -> int:
        """Copy entries to the end of one of the target's dialogs."""
        target, batch, size = self.target.store, list[tuple[Header, bytes]](), 0
        last = target.last(name) if len(span) else None
        for record in rows(store, self._record.session_id, span, set(), payloads="none", exact=True):
            if isinstance(record, EntryRecord) and record.header is not None:
                body = _renamed(record.body, names)
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
            if ours and not gone and not moved and (there is None or there.imported_at < source.imported_at):
                self._bring_payloads(named_by_source(self.source.store, source))
                target.put_source(source)
