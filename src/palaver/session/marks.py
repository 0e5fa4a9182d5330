"""Marks on entries: labels, pins and quarantines. Each mark is a separate entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import Entry, Handle, Label, Node, Pin, Place, Quarantine, Span, entry_at, lineage
from palaver.plurals import counted
from palaver.session.opened import OpenDialog
from palaver.session.recall import blocks_of, whole
from palaver.store.protocol import Store


class Marks:
    """The marks in force in a dialog. A fork starts with its parent's marks.

    Attributes:
        store: The store.
        session_id: The session of the dialog.
        dialog_id: The dialog.
    """

    def __init__(self, dialog: OpenDialog) -> None:
        """Create the marks; nothing is read yet."""
        self.store = dialog.store
        self.session_id = dialog.node.session_id
        self._dialog = dialog
        self.dialog_id = dialog.dialog_id

    @property
    def labels(self) -> Mapping[Handle, str]:
        """The labels in force, including those of entries that a fork left out."""
        spans = self._dialog.spans()
        labels: dict[Handle, str] = {}
        for entry, place in _labels(self.store, _with_gaps(self.store, spans)):
            target = entry.target.handle
            if any(place in span or target in span for span in spans):  # a window may leave out one of the two
                _set(labels, target, entry.label)
        return MappingProxyType(labels)

    @property
    def pins(self) -> tuple[Handle, ...]:
        """The pinned entries, in the order of pinning."""
        pins: dict[Handle, bool] = {}
        for entry in self._entries("pin"):
            if isinstance(entry, Pin):
                _set(pins, entry.target.handle._replace(block=None), entry.pinned or None)
        return tuple(pins)

    @property
    def quarantined(self) -> Mapping[Handle, str]:
        """The blocks and entries in quarantine, each with its reason."""
        reasons: dict[Handle, str] = {}
        for entry in self._entries("quarantine"):
            if isinstance(entry, Quarantine):
                _set(reasons, entry.target.handle, None if entry.lifted else entry.reason)
        return MappingProxyType(reasons)

    def _entries(self, kind: str) -> Iterator[Entry]:
        """Yield the entries of a kind, oldest first, including those that a fork left out."""
        for span in self._dialog.spans():
            headers = list(self.store.latest_of_kind(span.dialog, kind, span.start, span.stop))
            yield from (entry_at(self.store, Handle(span.dialog, header.seq)) for header in reversed(headers))

    def label(self, handle: Handle | str, label: str | None) -> Handle:
        """Label an entry for people; None removes the label. No model sees it.

        Raises:
            InvalidInput: It is not a handle.
            NotFound: The session has no such dialog.
        """
        return self._dialog.annotate(Label(target=self._place(handle), label=label))

    def pin(self, handle: Handle | str, *, pinned: bool = True) -> Handle:
        """Pin an entry in every view; `pinned=False` unpins it.

        Raises:
            InvalidInput: It is not a handle.
            NotFound: The session has no such dialog.
        """
        return self._dialog.annotate(Pin(target=self._place(handle), pinned=pinned))

    def quarantine(self, handle: Handle | str, reason: str = "") -> Handle:
        """Set aside a block that a provider refuses: views show a placeholder with its handle, and `recall` returns the original.

        A call keeps its name and its result, and loses its arguments.

        Args:
            handle: The block, or an entry with all its blocks.
            reason: The reason, for people.

        Raises:
            InvalidInput: It is not a handle, or names an entry that no view shows.
            NotFound: The session has no such entry or block.
        """
        place = self._place(handle)
        entry = entry_at(self.store, place.handle)
        count = len(blocks_of(entry))
        if not count:
            raise InvalidInput(
                f"{place.handle} is a {entry.kind} entry, which no view shows.",
                hint="Name a message or one block of it: dialog:entry or dialog:entry:block.",
            )
        if place.block is not None and place.block >= count:
            hint = f"The entry has {counted(count, 'block')}, numbered from 0."
            raise NotFound(str(place.handle), what="block", hint=hint)
        return self._dialog.annotate(Quarantine(target=place, reason=reason))

    def lift(self, handle: Handle | str, reason: str = "") -> Handle:
        """End a quarantine.

        Raises:
            InvalidInput: The block or entry is not in quarantine here.
            NotFound: The session has no such dialog.
        """
        place = self._place(handle)
        in_force = self.quarantined
        if place.handle not in in_force:
            near = [str(other) for other in in_force if other[:2] == (place.dialog, place.seq)]
            hint = f"In quarantine: {', '.join(near)}." if near else "`dialog.marks.quarantined` lists all quarantines."
            raise InvalidInput(f"{place.handle} is not in quarantine here.", hint=hint)
        return self._dialog.annotate(Quarantine(target=place, reason=reason, lifted=True))

    def _place(self, handle: Handle | str) -> Place:
        return Place.of(whole(self.store, self.session_id, handle, self.dialog_id))


def _set(marks: dict[Handle, Any], place: Handle, value: object) -> None:
    """Set the newest mark of a place; None removes it."""
    marks.pop(place, None)
    if value is not None:
        marks[place] = value


def _labels(store: Store, spans: Iterable[Span]) -> Iterator[tuple[Label, Handle]]:
    for span in spans:
        for header in reversed(list(store.latest_of_kind(span.dialog, "label", span.start, span.stop))):
            place = Handle(span.dialog, header.seq)
            if isinstance(entry := entry_at(store, place), Label):
                yield entry, place


def labels_of(store: Store, nodes: Iterable[Node]) -> dict[Handle, str]:
    """Return the labels in force in several dialogs; the newest by time wins."""
    own = (Span(node.dialog_id, 0, store.last(node.dialog_id).seq + 1) for node in nodes)
    labels: dict[Handle, str] = {}
    for entry, _ in sorted(_labels(store, own), key=lambda labelled: labelled[0].at):
        _set(labels, entry.target.handle, entry.label)
    return labels


def _with_gaps(store: Store, spans: Sequence[Span]) -> list[Span]:
    """Return all entries up to the end of some spans, including those that forks left out."""
    entries: list[Span] = []
    last = spans[-1] if spans else None
    while last is not None:
        entries.append(Span(last.dialog, 0, last.stop))
        ranges = store.node(last.dialog).ranges
        last = ranges[-1] if ranges else None
    return entries[::-1]


def holders(store: Store, session_id: SessionId, place: Handle) -> tuple[DialogId, ...]:
    """Return the dialogs of a session that contain an entry, as their own or an ancestor's."""
    nodes = store.nodes(session_id)
    return tuple(
        node.dialog_id
        for node in nodes
        if any(place in span for span in lineage(node, store.last(node.dialog_id).seq + 1))
    )
