"""Write one foreign conversation to the log: skip known records, append new ones, and branch if earlier records changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from palaver.errors import InvalidInput
from palaver.formats.events import Branch, Loss, Put
from palaver.ids import DialogId, SessionId, new_dialog_id, now
from palaver.log import (
    REWRITE,
    Draft,
    Entry,
    Header,
    MessageEntry,
    Node,
    Repeats,
    Span,
    child_of,
    draft,
    messages_in,
    rule,
)
from palaver.messages.usage import InvokeCost
from palaver.store.protocol import Store
from palaver.tokens.pricing import cost_of
from palaver.transfer.places import Landed, Places

_BATCH = 1 << 20
"""The size of one write, in bytes of bodies and payloads."""


@dataclass(slots=True)
class Landing:
    """Writes one conversation to a session. Use it inside a transaction of the store.

    Attributes:
        store: The store.
        session_id: The session.
        places: The places of an earlier import, and of this one.
        under: The dialog of which the conversation's first dialog is a sub-agent, or None.
        begun: When the conversation began, in seconds since 1970-01-01 UTC; 0.0 if unknown. It is the creation time of its dialogs.
        added: The number of entries written.
        rewritten: The number of dialogs that continue on a branch, because earlier records differ from the imported ones.
        shrunk: Whether the file has fewer records than were imported before; known at the end.
        cost: The tokens and dollars of the added entries, without those that repeat entries of a dialog which they replace.
        losses: The losses found here.
    """

    store: Store
    session_id: SessionId
    places: Places
    under: DialogId | None = None
    begun: float = 0.0
    added: int = 0
    rewritten: int = 0
    shrunk: bool = False
    cost: InvokeCost = field(default_factory=InvokeCost)
    losses: list[Loss] = field(default_factory=list)
    _seen: dict[str, int] = field(default_factory=dict)
    _parted: dict[str, int] = field(default_factory=dict)
    _last: dict[DialogId, Header] = field(default_factory=dict)
    _repeats: dict[DialogId, Repeats] = field(default_factory=dict)
    _pending: list[tuple[Put, Draft]] = field(default_factory=list)
    _size: int = 0

    # --- dialogs ----------------------------------------------------------------------------------------------------------------

    def branch(self, event: Branch) -> None:
        """Create the dialog, unless an earlier import did."""
        self.flush()  # a fork shares entries by their numbers, which pending ones do not have yet
        self._seen.setdefault(event.dialog, 0)
        known = self.places.dialogs.get(event.dialog)
        forks = event.parent is not None and event.relation != "subagent"
        if known is None:
            parent = self.under if event.parent is None else self.places.dialogs[event.parent]
            relation = "subagent" if event.parent is None and self.under is not None else event.relation
            ranges = self._shared(str(event.parent), event.at) if forks else ()
            self._make(event.dialog, event.owner, parent, ranges, relation, event.metadata)
        elif forks and self._parted.get(str(event.parent), event.at) < event.at:
            # the shared part differs from the imported one: follow the branch on which its parent continues
            self._make(event.dialog, event.owner, known, self._shared(str(event.parent), event.at), REWRITE)
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
                dialog_id=new_dialog_id(self.session_id),
                session_id=self.session_id,
                owner=owner,
                relation=relation,
                metadata=about,
            )
        else:
            above = Node(dialog_id=parent, session_id=self.session_id)
            node = child_of(
                above, ranges, messages_in(self.store, ranges), relation=relation, owner=owner, metadata=about
            )
        node = self.store.create_dialog(replace(node, created_at=self.begun or now()))
        self.places.dialogs[key] = node.dialog_id
        self.places.landed.setdefault(key, [])

    def _shared(self, key: str, puts: int) -> tuple[Span, ...]:
        """Return the shared part of a fork: everything its parent inherited, and the entries of the parent's first `puts` puts."""
        landed = self.places.landed[key][:puts]
        return self._upto(landed[-1]) if landed else self._inherited(self.places.dialogs[key])

    def _inherited(self, dialog: DialogId) -> tuple[Span, ...]:
        """Return the part that a dialog shared before any rewrite."""
        node = self.store.node(dialog)
        while node.relation == REWRITE and node.parent_id is not None:
            node = self.store.node(node.parent_id)
        return node.ranges

    def _upto(self, put: Landed) -> tuple[Span, ...]:
        """Return the content of a dialog up to a put, inclusive."""
        return (*self.store.node(put.dialog).ranges, Span(put.dialog, 0, put.seq + 1))

    # --- entries ----------------------------------------------------------------------------------------------------------------

    def put(self, event: Put) -> None:
        """Append an entry, unless an earlier import did.

        Raises:
            InvalidInput: The reader has not begun the dialog, or named a put it has not made.
        """
        if event.dialog not in self._seen:
            raise InvalidInput(f"The reader puts into {event.dialog!r} before it begins it.")
        index = self._seen[event.dialog]
        self._seen[event.dialog] = index + 1
        known = self.places.landed[event.dialog]
        if index < len(known):
            if (known[index].record, known[index].digest) == (event.record, event.digest):
                return
            self._part(event.dialog, index)
        self._add(event)

    def _part(self, key: str, index: int) -> None:
        """Continue on a branch: the entries from put `index` on differ from the imported ones."""
        self.flush()
        old, kept = self.places.dialogs[key], self.places.landed[key][:index]
        ranges = self._upto(kept[-1]) if kept else self._inherited(old)
        self._make(key, self.store.node(old).owner, old, ranges, REWRITE)
        self.places.landed[key] = kept
        self._parted[key] = min(index, self._parted.get(key, index))  # forks before the first difference still share
        self.rewritten += 1

    def _add(self, event: Put) -> None:
        if self._pending and self._pending[0][0].dialog != event.dialog:
            self.flush()
        law = rule(event.entry.kind)
        if not law.turn or law.places:
            self.flush()  # it names earlier entries
        entry = self.places.here(event.entry, event.dialog)
        dialog = self._open(event.dialog)
        if law.turn:
            self._pend(event, entry)
            return
        header = self.store.annotate(dialog, draft(entry)[0])
        self._landed(event, dialog, header)

    def _pend(self, event: Put, entry: Entry) -> None:
        ready, blobs = draft(entry)
        for data in blobs.values():
            self.store.put_blob(self.session_id, data)
            self._size += len(data)
        self._pending.append((event, ready))
        self._size += len(ready.body)
        if self._size >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write pending entries."""
        pending, self._pending = self._pending, []
        if pending:
            dialog = self.places.dialogs[pending[0][0].dialog]
            headers = self.store.append(dialog, [ready for _, ready in pending], self._newest(dialog).turn_head)
            for (event, _), header in zip(pending, headers, strict=True):
                self._landed(event, dialog, header)
        self._size = 0

    def _landed(self, event: Put, dialog: DialogId, header: Header) -> None:
        self.places.landed[event.dialog].append(Landed(event.record, event.digest, dialog, header.seq))
        self._last[dialog] = header
        self.added += 1
        if dialog not in self._repeats:
            self._repeats[dialog] = Repeats(self.store, self.store.node(dialog), header.seq)
        repeated = self._repeats[dialog].repeats(dialog, header)
        # a rewritten file repeats responses, and each was paid for once
        if isinstance(event.entry, MessageEntry) and (said := event.entry.message).usage and not repeated:
            self.cost += cost_of(said.usage, said.model or "", said.timestamp)

    def _newest(self, dialog: DialogId) -> Header:
        if dialog not in self._last:
            self._last[dialog] = self.store.last(dialog)
        return self._last[dialog]

    def _open(self, key: str) -> DialogId:
        """Return the dialog to append to: a branch, if somebody continued the dialog after the last import."""
        dialog = self.places.dialogs[key]
        known = self.places.landed[key]
        if dialog in self._last:
            return dialog
        imported = max((put.seq for put in known if put.dialog == dialog), default=-1)
        if self._newest(dialog).turn_head <= imported:
            return dialog
        reason = "It was continued here since the last import; what the file adds became a branch."
        self.losses.append(Loss(place=f"dialog {dialog[:12]}", reason=reason, code="continued_here", severity="note"))
        ranges = self._upto(known[-1]) if known else self._inherited(dialog)
        self._make(key, self.store.node(dialog).owner, dialog, ranges, "fork")
        return self.places.dialogs[key]

    def finish(self) -> None:
        """Write the rest, and report dialogs of which the file now has less than was imported."""
        self.flush()
        for key, known in self.places.landed.items():
            seen = self._seen.get(key, 0)
            if seen < len(known):
                self.shrunk = True
                reason = (
                    f"The file holds {seen:,} of {len(known):,} entries that were imported before; all are kept here."
                )
                place = f"dialog {self.places.dialogs[key][:12]}"
                self.losses.append(Loss(place=place, reason=reason, code="shrunk", severity="note"))
