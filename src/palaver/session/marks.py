"""Marks on entries: labels, pins and quarantines. Each mark is a separate entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import Entry, Handle, Label, Node, Pin, Place, Quarantine, Span, entry_at, lineage
from palaver.plurals import counted
from palaver.session.recall import blocks_of, whole
from palaver.store.protocol import Store

__all__ = ["Marks", "holders", "labels_of"]


class Marks:
    """The marks in force in a dialog. A fork starts with its parent's marks."""

    def __init__(
        self, store: Store, node: Node, spans: Callable[[], Sequence[Span]], write: Callable[[Entry], Handle]
    ) -> None:
        """Create the marks; nothing is read yet.

        Args:
            store: The store.
            node: The dialog.
            spans: Returns the spans of the dialog.
            write: Adds an entry outside the turn.
        """
        self._store = store
        self._node = node
        self._spans = spans
        self._write = write

    @property
    def labels(self) -> Mapping[Handle, str]:
        """The labels in force. Reads the headers of the whole dialog, including entries that a fork left out."""
        held = self._spans()
        found: dict[Handle, str] = {}
        for entry, place in _labels(self._store, _with_gaps(self._store, held)):
            target = _handle(entry.target)
            if any(place in span or target in span for span in held):
                _set(found, target, entry.label)
        return MappingProxyType(found)

    @property
    def pins(self) -> tuple[Handle, ...]:
        """The pinned entries, in the order of pinning."""
        found: dict[Handle, bool] = {}
        for entry in self._holding("pin"):
            if isinstance(entry, Pin):
                _set(found, _handle(entry.target)._replace(block=None), entry.pinned or None)
        return tuple(found)

    @property
    def quarantined(self) -> Mapping[Handle, str]:
        """The blocks and entries in quarantine, each with its reason."""
        found: dict[Handle, str] = {}
        for entry in self._holding("quarantine"):
            if isinstance(entry, Quarantine):
                _set(found, _handle(entry.target), None if entry.lifted else entry.reason)
        return MappingProxyType(found)

    def _holding(self, kind: str) -> Iterator[Entry]:
        """Yield the entries of a kind, oldest first, including those that a fork left out."""
        for span in self._spans():
            headers = list(self._store.latest_of_kind(span.dialog, kind, span.start, span.stop))
            yield from (entry_at(self._store, Handle(span.dialog, one.seq)) for one in reversed(headers))

    def label(self, handle: Handle | str, label: str | None) -> Handle:
        """Label an entry for people; None removes the label. No model sees it.

        Raises:
            InvalidInput: It is not a handle.
            NotFound: The session has no such dialog.
        """
        return self._write(Label(target=self._place(handle), label=label))

    def pin(self, handle: Handle | str, *, pinned: bool = True) -> Handle:
        """Pin an entry in every view; `pinned=False` unpins it.

        Raises:
            InvalidInput: It is not a handle.
            NotFound: The session has no such dialog.
        """
        return self._write(Pin(target=self._place(handle), pinned=pinned))

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
        entry = entry_at(self._store, _handle(place))
        count = len(blocks_of(entry))
        if not count:
            raise InvalidInput(
                f"{_handle(place)} is a {entry.kind} entry, which no view shows.",
                hint="Name a message or one block of it: dialog:entry or dialog:entry:block.",
            )
        if place.block is not None and place.block >= count:
            hint = f"The entry has {counted(count, 'block')}, numbered from 0."
            raise NotFound(str(_handle(place)), what="block", hint=hint)
        return self._write(Quarantine(target=place, reason=reason))

    def lift(self, handle: Handle | str, reason: str = "") -> Handle:
        """End a quarantine.

        Raises:
            InvalidInput: The block or entry is not in quarantine here.
            NotFound: The session has no such dialog.
        """
        place = self._place(handle)
        standing = self.quarantined
        if _handle(place) not in standing:
            near = [str(one) for one in standing if (one.dialog, one.seq) == (place.dialog, place.seq)]
            hint = f"In quarantine: {', '.join(near)}." if near else "`dialog.marks.quarantined` lists all quarantines."
            raise InvalidInput(f"{_handle(place)} is not in quarantine here.", hint=hint)
        return self._write(Quarantine(target=place, reason=reason, lifted=True))

    def _place(self, handle: Handle | str) -> Place:
        found = whole(self._store, self._node.session_id, handle)
        return Place(dialog=found.dialog, seq=found.seq, block=found.block)


def _set(found: dict[Handle, Any], place: Handle, value: object) -> None:
    """Set the newest mark of a place; None removes it."""
    found.pop(place, None)
    if value is not None:
        found[place] = value


def _handle(place: Place) -> Handle:
    return Handle(place.dialog, place.seq, place.block)


def _labels(store: Store, spans: Iterable[Span]) -> Iterator[tuple[Label, Handle]]:
    for span in spans:
        for header in store.headers(span.dialog, span.start, span.stop):
            place = Handle(span.dialog, header.seq)
            if header.kind == "label" and isinstance(entry := entry_at(store, place), Label):
                yield entry, place


def labels_of(store: Store, nodes: Iterable[Node]) -> dict[Handle, str]:
    """Return the labels in force in several dialogs; the newest by time wins."""
    own = (Span(node.dialog_id, 0, store.last(node.dialog_id).seq + 1) for node in nodes)
    found: dict[Handle, str] = {}
    for entry, _ in sorted(_labels(store, own), key=lambda one: one[0].at):
        _set(found, _handle(entry.target), entry.label)
    return found


def _with_gaps(store: Store, spans: Sequence[Span]) -> list[Span]:
    """Return all entries up to the end of some spans, including those that forks left out."""
    found: list[Span] = []
    place = spans[-1] if spans else None
    while place is not None:
        found.append(Span(place.dialog, 0, place.stop))
        ranges = store.node(place.dialog).ranges
        place = ranges[-1] if ranges else None
    return found[::-1]


def holders(store: Store, session_id: SessionId, place: Handle) -> tuple[DialogId, ...]:
    """Return the dialogs of a session that contain an entry, as their own or an ancestor's."""
    nodes = store.nodes(session_id)
    return tuple(
        node.dialog_id
        for node in nodes
        if any(place in span for span in lineage(node, store.last(node.dialog_id).seq + 1))
    )
