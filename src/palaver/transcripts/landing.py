"""Putting one foreign conversation into the log: what is known stays, what is new is added, what was rewritten becomes a branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from palaver.errors import InvalidInput
from palaver.formats.events import Branch, Loss, Put
from palaver.ids import BlobId, DialogId, SessionId, new_dialog_id, now
from palaver.log import Draft, Entry, Handle, Header, Node, Span, body_digest, child_of, draft, rule
from palaver.plurals import counted
from palaver.store.protocol import Store
from palaver.transcripts.partial import LaterBeginning
from palaver.transcripts.parts import Joint
from palaver.transcripts.places import Landed, Places

BATCH = 1 << 20
"""How much is written in one transaction, in bytes of bodies."""


@dataclass(slots=True)
class _Pending:
    """Entries of one dialog that are ready and not yet written."""

    drafts: list[Draft] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class Landing:
    """One conversation on its way into a session.

    Attributes:
        store: Where it goes.
        session_id: The session.
        places: What an earlier import left, and what this one adds.
        joint: Where the conversation hangs on another one of the session, if it is a part of that one.
        begun: When the conversation began, in seconds since 1970-01-01 UTC; 0.0 when that is not known. Its dialogs count as made then.
        written: How many bytes were written; whoever makes steps of them sets it back.
        added: How many entries this import wrote.
        rewritten: How many dialogs were continued on a branch, because an earlier part of them differs from what was imported.
        losses: What the landing itself has to report.
        shrunk: Whether the file holds less than was imported before; known at the end.
    """

    store: Store
    session_id: SessionId
    places: Places
    joint: Joint | None = None
    begun: float = 0.0
    written: int = 0
    added: int = 0
    rewritten: int = 0
    losses: list[Loss] = field(default_factory=list)
    shrunk: bool = False
    _seen: dict[str, int] = field(default_factory=dict)
    _last: dict[DialogId, Header] = field(default_factory=dict)
    _parted: dict[str, int] = field(default_factory=dict)
    _derived: dict[str, dict[int, Put]] = field(default_factory=dict)
    _changed: dict[str, dict[int, Put]] = field(default_factory=dict)
    _later: dict[str, LaterBeginning] = field(default_factory=dict)
    _looked: dict[str, tuple[int, int]] = field(default_factory=dict)
    _pending: _Pending = field(default_factory=_Pending)
    _key: str = ""

    # --- dialogs ----------------------------------------------------------------------------------------------------------------

    def branch(self, event: Branch) -> None:
        """Make the dialog, unless an earlier import did; the first dialog of a part is a sub-agent of what started it."""
        self.flush()
        self._seen.setdefault(event.dialog, 0)
        known = self.places.dialogs.get(event.dialog)
        if known is not None:
            if (
                event.parent is not None
                and event.relation != "subagent"
                and self._parted.get(event.parent, event.at) < event.at
            ):
                self._follow(event, known)
            return
        if event.parent is None and self.joint is not None:
            about = {"call": self.joint.call} if self.joint.call else {}
            owner = self.joint.owner or event.owner
            self._make(event.dialog, owner, self.joint.under, (), "subagent", {**event.metadata, **about})
            return
        parent = None if event.parent is None else self.places.dialogs[event.parent]
        shares = event.parent is not None and event.relation != "subagent"
        ranges = self._shared(event.parent, event.at) if event.parent is not None and shares else ()
        self._make(event.dialog, event.owner, parent, ranges, event.relation, event.metadata)

    def _follow(self, event: Branch, known: DialogId) -> None:
        """Make a fork anew whose shared part is not what was imported: it follows the branch that its parent went on in."""
        ranges = self._shared(str(event.parent), event.at)
        self._make(event.dialog, event.owner, known, ranges, "rewrite", event.metadata)
        self.places.landed[event.dialog] = []
        self._parted[event.dialog] = -1
        self.rewritten += 1

    def _make(
        self,
        key: str,
        owner: str,
        parent: DialogId | None,
        ranges: tuple[Span, ...],
        relation: str,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        about = dict(metadata or {})
        if parent is None:
            node = Node(
                dialog_id=new_dialog_id(),
                session_id=self.session_id,
                owner=owner,
                relation=relation,
                metadata=about,
            )
        else:
            above = Node(dialog_id=parent, session_id=self.session_id)
            node = child_of(above, ranges, self._messages(ranges), relation=relation, owner=owner, metadata=about)
        node = self.store.create_dialog(replace(node, created_at=self.begun or now()))
        self.places.dialogs[key] = node.dialog_id
        self.places.landed.setdefault(key, [])
        self._looked.pop(key, None)

    def _shared(self, key: str, puts: int) -> tuple[Span, ...]:
        """Give what a fork shares: all that the parent inherited, and the entries that its first `puts` puts became."""
        parent = self.places.dialogs[key]
        solid = self._solid(key, puts)
        if solid:
            return self._upto(solid[-1])
        inherited = self._inherited(parent)
        return (*inherited, Span(parent, 0, puts)) if 0 < puts <= self.store.last(parent).seq + 1 else inherited

    def _solid(self, key: str, puts: int) -> list[Landed]:
        """Give where the first `puts` puts landed, without those made from the whole file: they are put anew, and then stand last."""
        moved = self._derived.get(key, {})
        return [put for index, put in enumerate(self.places.puts(key)[:puts]) if index not in moved]

    def _inherited(self, dialog: DialogId) -> tuple[Span, ...]:
        """Give what a dialog shared before it was ever rewritten."""
        node = self.store.node(dialog)
        while node.relation == "rewrite" and node.parent_id is not None:
            node = self.store.node(node.parent_id)
        return node.ranges

    def _upto(self, put: Landed) -> tuple[Span, ...]:
        """Give all that a dialog held when a put landed, the put included."""
        return (*self.store.node(put.dialog).ranges, Span(put.dialog, 0, put.seq + 1))

    def _messages(self, ranges: tuple[Span, ...]) -> int:
        total = 0
        for span in ranges:
            before = self.store.header(span.dialog, span.start - 1).number if span.start else 0
            total += self.store.header(span.dialog, span.stop - 1).number - before
        return total

    # --- entries ----------------------------------------------------------------------------------------------------------------

    def put(self, event: Put) -> None:
        """Put an entry where it belongs, unless an earlier import did."""
        if event.dialog not in self.places.dialogs:
            raise InvalidInput(f"the reader puts into {event.dialog!r} before it begins it")
        if event.dialog != self._key:
            self.flush()
            self._key = event.dialog
        index = self._seen[event.dialog]
        self._seen[event.dialog] = index + 1
        if event.dialog in self._later:
            self._on_the_way(event, self._later[event.dialog])
        elif index < len(self.places.landed[event.dialog]):
            self._again(event, index)
        else:
            self._new(event)

    def _again(self, event: Put, index: int) -> None:
        """Take a put that an earlier import has made: the same, made anew, or no longer what it was."""
        known = self.places.landed[event.dialog]
        if event.derived:
            self._derived.setdefault(event.dialog, {})[index] = event
            if _derived_digest(self.places.here(event.entry, event.dialog)) != known[index].digest:
                self._changed.setdefault(event.dialog, {})[index] = event
        elif (known[index].record, known[index].digest) != (event.record, event.digest):
            way = None if self._compared(event.dialog, index) else LaterBeginning.of(known, event.digest, index)
            if way is None:
                self._part(event.dialog, index)
                self._new(event)
                return
            self._later[event.dialog] = way
            self.places.read[event.dialog] = known[:index]
            self._on_the_way(event, way)

    def _compared(self, key: str, index: int) -> bool:
        """Tell whether the present reading has given a record of the dialog before its put `index`."""
        return any(before not in self._derived.get(key, {}) for before in range(index)) or key in self._parted

    def _on_the_way(self, event: Put, way: LaterBeginning) -> None:
        """Take a put of a copy that lacks the beginning: known from before, or new at the end of what is known."""
        landed = None if event.derived else way.next(event.digest)
        if landed is not None:
            self.places.read[event.dialog].append(landed)
            return
        if not way.ended and event.dialog not in self._parted:
            self._part(event.dialog, way.reached)
        self._new(event)

    def _renew(self, key: str) -> None:
        """Write what is derived from the whole file and has changed: only a file that holds all that is known has a say in it."""
        for index, event in self._changed.pop(key, {}).items():
            entry = self.places.here(event.entry, key)
            header = self._stands(key, entry) or self._write_now(key, entry)
            landed = Landed(event.record, _derived_digest(entry), self.places.dialogs[key], header.seq)
            self.places.landed[key][index] = landed
            self._looked.pop(key, None)

    def _part(self, key: str, index: int) -> None:
        """Go on in a branch: the entries from put `index` on are not what was imported."""
        self.flush()
        old = self.places.dialogs[key]
        kept = self.places.landed[key][:index]
        derived = {place: event for place, event in self._derived.get(key, {}).items() if place < index}
        solid = [put for place, put in enumerate(kept) if place not in derived]
        ranges = self._upto(solid[-1]) if solid else self._inherited(old)
        self._make(key, self.store.node(old).owner, old, ranges, "rewrite")
        self.places.landed[key] = kept
        here = len(self.places.puts(key))
        self._parted[key] = min(here, self._parted.get(key, here))
        self.rewritten += 1
        changed = self._changed.pop(key, {}) if key not in self._later else {}
        for place, event in derived.items():
            if place in changed or not any(Handle(kept[place].dialog, kept[place].seq) in span for span in ranges):
                entry = self.places.here(event.entry, key)
                header = self._write_now(key, entry)
                kept[place] = Landed(event.record, _derived_digest(entry), self.places.dialogs[key], header.seq)
                self._looked.pop(key, None)

    def _new(self, event: Put) -> None:
        if event.dialog in self._changed and event.dialog not in self._later:
            self._renew(event.dialog)
        dialog = self.places.dialogs[event.dialog]
        law = rule(event.entry.kind)
        if not law.turn or law.places:
            self.flush()
        entry = self.places.here(event.entry, event.dialog)
        if not law.turn:
            header = self._stands(event.dialog, entry) or self._write_now(event.dialog, entry)
            digest = _derived_digest(entry) if event.derived else event.digest
            self.places.land(event.dialog, Landed(event.record, digest, dialog, header.seq))
            return
        pending = self._pending
        ready, blobs = draft(entry, continues=_response(pending.drafts) or self._newest(dialog).response)
        self._put_blobs(blobs)
        pending.drafts.append(ready)
        pending.puts.append(event)
        pending.size += len(ready.body)
        if pending.size >= BATCH:
            self.flush()

    def _newest(self, dialog: DialogId) -> Header:
        if dialog not in self._last:
            self._last[dialog] = self.store.last(dialog)
        return self._last[dialog]

    def _put_blobs(self, blobs: Mapping[BlobId, bytes]) -> None:
        for data in blobs.values():
            self.store.put_blob(data)
            self.written += len(data)

    def _write_now(self, key: str, entry: Entry) -> Header:
        """Write an entry by itself."""
        self.flush()
        dialog = self.places.dialogs[key]
        ready, blobs = draft(entry, continues=self._newest(dialog).response)
        self._put_blobs(blobs)
        if rule(entry.kind).turn:
            header = self.store.append(dialog, [ready], self._newest(dialog).turn_head)[0]
        else:
            header = self.store.annotate(dialog, ready)
        self._last[dialog] = header
        self.added += 1
        self.written += header.size
        return header

    def _stands(self, key: str, entry: Entry) -> Header | None:
        """Give the header of an annotation that an import wrote before it was cut off, or None."""
        dialog = self.places.dialogs[key]
        start = self._first_unknown(key)
        if start > self._newest(dialog).seq:
            return None
        header = self.store.header(dialog, start)
        return header if header.digest == _derived_digest(entry) else None

    def _first_unknown(self, key: str) -> int:
        """Give the number after the newest entry of a dialog that is known to come from the file.

        It need not be the last put's: what is derived from the whole file is put first, and anew when it changes.
        """
        dialog, landed = self.places.dialogs[key], self.places.landed[key]
        looked, first = self._looked.get(key, (0, 0))  # what was looked through is not looked through at every flush
        first = max((put.seq + 1 for put in landed[looked:] if put.dialog == dialog), default=first)
        self._looked[key] = (len(landed), first)
        return first

    def flush(self) -> None:
        """Write what is pending; entries that an import wrote before it was cut off are taken as they stand."""
        pending, self._pending = self._pending, _Pending()
        if not pending.drafts:
            return
        key = self._key
        adopted = self._adopt(key, pending)
        dialog = self.places.dialogs[key]
        headers = self.store.append(dialog, pending.drafts[adopted:], self._newest(dialog).turn_head)
        for event, ready, header in zip(pending.puts[adopted:], pending.drafts[adopted:], headers, strict=True):
            digest = body_digest(ready.body) if event.derived else event.digest
            self.places.land(key, Landed(event.record, digest, dialog, header.seq))
        if headers:
            self._last[dialog] = headers[-1]
            self.added += len(headers)
            self.written += pending.size

    def _adopt(self, key: str, pending: _Pending) -> int:
        """Take entries that stand after the last known put: the same ones are adopted, others make us go on in a branch."""
        dialog = self.places.dialogs[key]
        last = self._newest(dialog)
        start = self._first_unknown(key)
        adopted = 0
        for header in self.store.headers(dialog, start) if last.seq >= start else ():
            if adopted == len(pending.drafts):
                break
            if header.turn_head != header.seq:
                continue  # an annotation beside the turn changes nothing that was imported
            ready, event = pending.drafts[adopted], pending.puts[adopted]
            if header.digest != body_digest(ready.body):
                self._continue_beside(key)
                break
            digest = header.digest if event.derived else event.digest
            self.places.land(key, Landed(event.record, digest, dialog, header.seq))
            adopted += 1
        return adopted

    def _continue_beside(self, key: str) -> None:
        """Go on in a branch, because somebody else continued the dialog here: nothing is interleaved."""
        old = self.places.dialogs[key]
        self.losses.append(
            Loss(
                place=f"dialog {old[:12]}",
                reason="It was continued here since the last import; what the file adds became a branch.",
                code="continued_here",
                severity="note",
            )
        )
        known = self.places.landed[key]
        solid = self._solid(key, len(known))
        ranges = self._upto(solid[-1]) if solid else self._inherited(old)
        self._make(key, self.store.node(old).owner, old, ranges, "fork")
        self.places.landed[key] = known

    def finish(self) -> None:
        """Write the rest, and say where the file now holds less than was imported."""
        self.flush()
        for key, known in self.places.landed.items():
            seen = len(self.places.puts(key)) if key in self._later else self._seen.get(key, 0)
            if seen < len(known) or key in self._later:
                self.shrunk = True
                self.losses.append(
                    Loss(
                        place=f"dialog {self.places.dialogs[key][:12]}",
                        reason=f"The file holds {seen} of the {counted(len(known), 'entry that was', 'entries that were')} imported before; all are kept here.",
                        code="shrunk",
                        severity="note",
                    )
                )
        if not self.shrunk:
            for key in tuple(self._changed):
                self._renew(key)


def _response(drafts: list[Draft]) -> str:
    """Give the newest response id among drafts that are not yet written, or empty."""
    return next((one.response for one in reversed(drafts) if one.response), "")


def _derived_digest(entry: Entry) -> bytes:
    return body_digest(draft(entry)[0].body)
