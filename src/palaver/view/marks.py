"""Marks: what compactions, context edits, pins and quarantines say about entries and their blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from palaver.ids import DialogId
from palaver.log import BlockEdit, Handle, Pin, Quarantine
from palaver.view.blocks import Reason
from palaver.view.edits import NO_CHANGES, QUARANTINE, Change, from_edit, handle_of
from palaver.view.exchange import Exchange
from palaver.view.view import Omission


@dataclass(slots=True)
class Marks:
    """The marks in force.

    Attributes:
        edits: The blocks shown in another form; the newest edit of a block wins.
        removed: The blocks left out.
        apart: The results that a checkpoint found without their call: what answered the call before may have left the view since.
        quarantined: The blocks and entries that a provider refused, and the entry that says so.
        pins: The entries that every view must show, and the entry that says so.
        lifted: The newest entry that took a pin or a quarantine away. It counts as long as the one it took away may be read.
        touched: The entries whose marks changed since they were last asked for.
    """

    edits: dict[Handle, Change] = field(default_factory=dict)
    removed: dict[Handle, Omission] = field(default_factory=dict)
    apart: set[Handle] = field(default_factory=set)
    quarantined: dict[Handle, Handle] = field(default_factory=dict)
    pins: dict[Handle, Handle] = field(default_factory=dict)
    lifted: dict[tuple[str, Handle], Handle] = field(default_factory=dict)
    touched: set[tuple[DialogId, int]] = field(default_factory=set)
    _targets: dict[tuple[DialogId, int], dict[Handle, None]] = field(default_factory=dict)

    def edit(self, edits: Iterable[BlockEdit]) -> None:
        """Show blocks in another form."""
        for edit in edits:
            target = handle_of(edit.target)
            if edit.reason == Reason.UNPAIRED:
                self.apart.add(target)
                continue
            self._touch(target)
            self.edits[target] = from_edit(edit)
            self.removed.pop(target, None)

    def remove(self, block: Handle, gone: Omission) -> None:
        """Leave a block out."""
        self._touch(block)
        self.removed[block] = gone

    def pin(self, place: Handle, entry: Pin) -> None:
        """Pin an entry, or take its pin away."""
        target = Handle(entry.target.dialog, entry.target.seq)
        self._set(self.pins, target, place, entry.kind, holds=entry.pinned)

    def quarantine(self, place: Handle, entry: Quarantine) -> None:
        """Set a block or an entry aside, or show it again."""
        self._set(self.quarantined, handle_of(entry.target), place, entry.kind, holds=not entry.lifted)

    def _set(self, marks: dict[Handle, Handle], target: Handle, place: Handle, kind: str, *, holds: bool) -> None:
        self._touch(target)
        marks.pop(target, None)
        self.lifted.pop((kind, target), None)
        if holds:
            marks[target] = place
        else:
            self.lifted[kind, target] = place

    def _touch(self, target: Handle) -> None:
        entry = (target.dialog, target.seq)
        self._targets.setdefault(entry, {})[target] = None
        self.touched.add(entry)

    def places(self) -> tuple[Handle, ...]:
        """Return the entries that the pins and quarantines depend on."""
        return (*self.pins.values(), *self.quarantined.values(), *self.lifted.values())

    def touches(self, exchange: Exchange) -> bool:
        """Return whether the marks of an exchange changed since they were last asked for."""
        return bool(self.touched) and any(entry[:2] in self.touched for entry in exchange.entries())

    def on(self, exchange: Exchange) -> Exchange:
        """Return an exchange with its marks; the same object when it has none."""
        if not self._targets:
            return exchange
        entries = list(exchange.entries())
        changes = self.changes(entries)
        pinned = not self.pins.keys().isdisjoint(entries)
        return replace(exchange, changes=changes, pinned=pinned) if changes or pinned else exchange

    def changes(self, entries: Iterable[Handle]) -> Mapping[Handle, Change]:
        """Return the changes of the blocks of entries. A quarantine comes before an edit, which may show just what was refused."""
        found: dict[Handle, Change] = {}
        for entry in entries:
            for target in self._targets.get((entry.dialog, entry.seq), ()):
                if target in self.quarantined:
                    found[target] = QUARANTINE
                elif target in self.removed:
                    found[target] = Change(self.removed[target].reason)
                elif target in self.edits:
                    found[target] = self.edits[target]
        return found or NO_CHANGES
