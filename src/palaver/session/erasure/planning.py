"""What an erasure reaches: computed from the log alone, before anything is changed, and once more inside the transaction that does it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from palaver.errors import HasChildren, InvalidInput, StoreDamaged, UnknownHandle
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import (
    Approval,
    BranchSummary,
    Derived,
    Entry,
    Erasure,
    Header,
    MessageEntry,
    Node,
    Span,
    decode_entry,
    every_body,
    without,
)
from palaver.session.erasure.scope import Scope
from palaver.store.erasing import Erasing, may_name
from palaver.store.protocol import SourceRecord

__all__ = ["Plan", "Search", "planned", "spans_of", "strings_in"]

_DIGEST = re.compile(rb"[0-9a-f]{64}")
_SUMMARIES = frozenset({"branch_summary", "compaction_summary"})
_TOLD_BY = frozenset({"compaction", "context_edit", "branch_summary", "label", "quarantine", "custom"})
_DELIVERED = "palaver.inbox"
_QUOTE = 24  # characters: what is shorter is found in many texts that nobody took from each other
_QUOTES = 2_000


@dataclass(slots=True, kw_only=True)
class Plan:
    """What an erasure reaches.

    Attributes:
        scope: What was asked for.
        sessions: The sessions that go.
        dialogs: The dialogs that go, each after those that grew from it.
        cleared: The dialogs that stay with nothing but tombstones.
        tombstones: The entries that are erased and leave a tombstone, by dialog.
        parts: The entries of which only what was made of erased ones goes, by dialog.
        entries: How many entries are erased, those of dialogs that go included.
        messages: How many of them begin a message.
        blobs: The payloads that they name, and those of kept source files: each goes if nothing else names it.
        sources: The foreign conversations that are forgotten.
        reduced: The foreign conversations whose kept file goes, because it holds what is erased.
        files: The files that the store wrote of the sessions that are touched.
    """

    scope: Scope
    sessions: tuple[SessionId, ...] = ()
    dialogs: tuple[DialogId, ...] = ()
    cleared: tuple[DialogId, ...] = ()
    tombstones: dict[DialogId, set[int]] = field(default_factory=dict)
    parts: dict[DialogId, set[int]] = field(default_factory=dict)
    entries: int = 0
    messages: int = 0
    blobs: set[BlobId] = field(default_factory=set)
    sources: tuple[SourceRecord, ...] = ()
    reduced: tuple[SourceRecord, ...] = ()
    files: tuple[str, ...] = ()


def planned(store: Erasing, scope: Scope) -> Plan:
    """Find what an erasure reaches. Nothing is written.

    Raises:
        UnknownSession: The session is not there.
        UnknownDialog: The dialog is not there.
        UnknownHandle: An entry is not there.
        Erased: It was erased before.
        HasChildren: Others grew from the dialog, and nobody said what becomes of them.
        InvalidInput: No session has the subject.
    """
    if scope.entries:
        return _of_entries(store, scope)
    if scope.dialog:
        return _of_dialog(store, scope)
    if scope.session:
        found = [store.session(SessionId(scope.session)).session_id]
    else:
        records = chain(store.sessions(subject=scope.subject), store.sessions(subject=scope.subject, trashed=True))
        found = [record.session_id for record in records]
        if not found:
            raise InvalidInput(
                "There is no session of this subject.", hint="A subject is matched whole, with its case."
            )
    plan = Plan(scope=scope, sessions=tuple(sorted(found)))
    sources: list[SourceRecord] = []
    files: list[str] = []
    dialogs: list[DialogId] = []
    for session in plan.sessions:
        dialogs += [node.dialog_id for node in reversed(store.nodes(session))]
        sources += store.sources(session)
        files += store.files(session)
    plan.dialogs, plan.sources, plan.files = tuple(dialogs), tuple(sources), tuple(files)
    _count(store, plan)
    plan.blobs |= set(_of_sources(store, sources))
    return plan


# --- a dialog -------------------------------------------------------------------------------------------------------------------


def _of_dialog(store: Erasing, scope: Scope) -> Plan:
    dialog = store.resolve(scope.dialog)
    node = store.node(dialog)
    nodes = store.nodes(node.session_id)
    below = _below(nodes, dialog)
    plan = Plan(scope=scope)
    if scope.tombstones and below:
        last = store.last(dialog)
        plan.cleared = (dialog,)
        plan.tombstones[dialog] = set(range(last.seq + 1))
    elif below and not scope.children:
        raise HasChildren(dialog, [one.dialog_id for one in below])
    else:
        plan.dialogs = (*(one.dialog_id for one in reversed(below)), dialog)
    _reach(store, plan, node.session_id, nodes)
    return plan


def _below(nodes: Sequence[Node], dialog: DialogId) -> list[Node]:
    """Give the dialogs that grew from one, or share its entries, in the order in which they were made."""
    found = {dialog}
    below = []
    for node in nodes:
        stands_on = {node.parent_id, *(span.dialog for span in node.ranges)}
        if node.dialog_id not in found and not found.isdisjoint(stands_on):
            found.add(node.dialog_id)
            below.append(node)
    return below


# --- entries --------------------------------------------------------------------------------------------------------------------


def _of_entries(store: Erasing, scope: Scope) -> Plan:
    plan = Plan(scope=scope)
    sessions: set[SessionId] = set()
    for one in scope.entries:
        dialog = store.resolve(one.dialog)
        if not 0 <= one.seq <= store.last(dialog).seq:
            raise UnknownHandle(str(one))
        plan.tombstones.setdefault(dialog, set()).add(one.seq)
        sessions.add(store.node(dialog).session_id)
    for session in sorted(sessions):
        _reach(store, plan, session, store.nodes(session))
    return plan


def _reach(store: Erasing, plan: Plan, session: SessionId, nodes: Sequence[Node]) -> None:
    """Add what was made of the erased entries within their session: derived texts, copies, summaries of summaries."""
    gone_whole = set(plan.dialogs)
    erased = [Span(one, 0, store.last(one).seq + 1) for one in plan.dialogs]
    staying = [node for node in nodes if node.dialog_id not in gone_whole]
    while True:
        before = _size(plan)
        spans = [*erased, *spans_of(plan.tombstones)]
        search = Search(store, spans)
        for node in staying:
            search.look(plan, node)
        if _size(plan) == before:
            break
    _count(store, plan)
    sources = store.sources(session)
    plan.reduced = (*plan.reduced, *(one for one in sources if one.raw is not None))
    plan.blobs |= set(_of_sources(store, [one for one in sources if one.raw is not None], index=False))
    plan.files = (*plan.files, *store.files(session))


def _size(plan: Plan) -> int:
    return sum(map(len, chain(plan.tombstones.values(), plan.parts.values())))


def spans_of(places: Mapping[DialogId, Iterable[int]]) -> Iterator[Span]:
    """Give entries as spans, one each, in order."""
    for dialog, seqs in places.items():
        yield from (Span(dialog, seq, seq + 1) for seq in sorted(seqs))


class Search:
    """A look for what holds words of erased entries."""

    def __init__(self, store: Erasing, spans: Sequence[Span]) -> None:
        self._store = store
        self._spans = tuple(spans)
        self._by_dialog: dict[DialogId, list[Span]] = {}
        self._calls: set[str] = set()
        self._quotes: set[str] = set()
        self._queued: dict[DialogId, set[int]] = {}
        self._delivered: dict[DialogId, set[int]] = {}
        self._constrains = False
        for span in spans:
            self._by_dialog.setdefault(span.dialog, []).append(span)
            self._learn(span)

    def _learn(self, span: Span) -> None:
        """Take note of what to look for of erased entries: their calls, their sentences, the inbox entries that they delivered."""
        for header, (seq, body) in zip(
            self._store.headers(span.dialog, span.start, span.stop), every_body(self._store, span), strict=False
        ):
            self._constrains |= header.kind == "constraint"
            if header.role != "tool":
                self._calls.update(header.calls)
            if len(self._quotes) < _QUOTES:
                self._quotes.update(_sentences(body))
            if header.kind == "inbox":
                self._queued.setdefault(span.dialog, set()).add(seq)
            elif _DELIVERED.encode() in body:
                entry = self._entry(span.dialog, seq)
                if isinstance(entry, MessageEntry) and isinstance(place := entry.message.metadata.get(_DELIVERED), int):
                    self._delivered.setdefault(span.dialog, set()).add(place)

    def look(self, plan: Plan, node: Node) -> None:
        """Look at the own entries of a dialog."""
        dialog = node.dialog_id
        inherits = any(_meets(span, one) for span in node.ranges for one in self._by_dialog.get(span.dialog, ()))
        own = min((span.start for span in self._by_dialog.get(dialog, ())), default=None)
        tombs = plan.tombstones.get(dialog, set())
        for header in self._store.headers(dialog):
            if header.seq in tombs:
                continue
            later = inherits or (own is not None and header.seq > own)
            telling = header.kind in _TOLD_BY
            entry = self._entry(dialog, header.seq) if telling else None
            unreadable = telling and entry is None and later  # nobody can take out of it what it may tell
            if unreadable or self._whole(header, dialog, later=later):
                tombs = plan.tombstones.setdefault(dialog, set())
                tombs.add(header.seq)
                plan.parts.get(dialog, set()).discard(header.seq)
            elif entry is not None and self._part(entry, later=later):
                plan.parts.setdefault(dialog, set()).add(header.seq)

    def _whole(self, header: Header, dialog: DialogId, *, later: bool) -> bool:
        """Tell whether an entry says nothing but what erased ones said: a recorded summary, a call's manifest, a queued copy, a decision."""
        if header.kind == "invocation" or (header.kind == "message" and header.role in _SUMMARIES):
            return later
        if header.kind == "inbox":
            return header.seq in self._delivered.get(dialog, ())
        if header.kind == "approval" and self._calls:
            entry = self._entry(dialog, header.seq)
            return isinstance(entry, Approval) and entry.call_id in self._calls
        if header.kind == "message" and header.role == "user" and (queued := self._queued.get(dialog)):
            said = self._entry(dialog, header.seq)
            return isinstance(said, MessageEntry) and said.message.metadata.get(_DELIVERED) in queued
        return False

    def _entry(self, dialog: DialogId, seq: int) -> Entry | None:
        """Read an entry; None where it is lost, or no entry any more."""
        try:
            return decode_entry(self._store.body(dialog, seq))
        except (StoreDamaged, InvalidInput):
            return None

    def _part(self, entry: Entry, *, later: bool) -> bool:
        """Tell whether an entry holds something made of erased ones, beside other things."""
        return (
            without(entry, self._spans, Erasure(at=0.0, receipt=""), lambda text: later and self.suspect(text))
            is not None
        )

    def repeats(self, body: bytes) -> bool:
        """Tell whether a line of the erased entries stands in other words."""
        return any(sentence in self._quotes for sentence in _sentences(body))

    def suspect(self, text: Derived | BranchSummary) -> bool:
        """Tell whether a text made after the erased entries may hold words of theirs though its sources do not say so."""
        if not text.sources or self._constrains:
            return True
        said = text.summary if isinstance(text, BranchSummary) else "\n".join([text.text, *_strings(_json(text.facts))])
        return self.quotes(said)

    def quotes(self, text: str) -> bool:
        """Tell whether a text has a line of the erased entries."""
        return any(quote in text for quote in self._quotes)


def _meets(span: Span, other: Span) -> bool:
    return span.start < other.stop and other.start < span.stop


def _sentences(body: bytes) -> Iterator[str]:
    """Give the lines in an entry's words that are long enough to be recognised elsewhere."""
    for text in _strings(_json(body)):
        for line in text.splitlines():
            if len(line.strip()) >= _QUOTE and " " in line.strip():
                yield line.strip()


def strings_in(body: bytes) -> Iterator[str]:
    """Give all texts in an entry's bytes."""
    return _strings(_json(body))


def _json(data: str | bytes | None) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return None if data is None else json.loads(data)
    except (ValueError, RecursionError):  # a body that is no JSON: another program's
        return data.decode("utf-8", "replace") if isinstance(data, bytes) else data


def _strings(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


# --- counting, payloads ------------------------------------------------------------------------------------------------------------


def _count(store: Erasing, plan: Plan) -> None:
    """Count the erased entries, and find the payloads that they name."""
    plan.entries = plan.messages = 0
    for dialog in plan.dialogs:
        last = store.last(dialog)
        plan.entries += last.seq + 1
        plan.messages += last.number
        for _seq, body in store.bodies(dialog):
            plan.blobs |= set(_named(store, body))
    for dialog, seqs in plan.tombstones.items():
        for seq in sorted(seqs):
            number = store.header(dialog, seq).number
            begun = number - (store.header(dialog, seq - 1).number if seq else 0)
            plan.entries, plan.messages = plan.entries + 1, plan.messages + begun
            plan.blobs |= set(_named(store, b"".join(body for _, body in store.bodies(dialog, seq, seq + 1))))


def _named(store: Erasing, body: bytes) -> Iterator[BlobId]:
    if may_name(body):
        for found in set(_DIGEST.findall(body)):
            blob = BlobId(found.decode())
            if store.has_blob(blob):
                yield blob


def _of_sources(store: Erasing, sources: Iterable[SourceRecord], *, index: bool = True) -> Iterator[BlobId]:
    for source in sources:
        if source.raw is not None and store.has_blob(source.raw):
            yield source.raw
            yield from map(BlobId, json.loads(store.blob(source.raw))["pieces"])
        if index and source.index is not None:
            yield source.index
