"""Rewritten files: which messages of an imported branch repeat those of the dialog that it replaces, so that each counts once in a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from palaver.ids import DialogId
from palaver.log.decoding import entry_at, every_header
from palaver.log.entries import MessageEntry
from palaver.log.handles import Handle, Span
from palaver.log.headers import Header
from palaver.log.lineage import Node, Reader, lineage
from palaver.messages import canonical_json

REWRITE = "rewrite"
"""The relation of a dialog that repeats another from its beginning: of an imported file that was changed before its end, or of another machine."""

VERSION_OF = "palaver.sync"
"""The key in the metadata of a dialog that a sync made, because another machine went on with a dialog in another way: that dialog's id."""


class Repeats:
    """The messages that a dialog of a rewritten file may repeat: those of the dialogs it replaces that it does not share.

    A message is recognized by its role, time and calls, because a rewritten file may have it at another place or with edited text. Where no
    time is recorded, it is recognized by its content.

    Args:
        reader: The log.
        node: The dialog.
        own: How many of its own entries to pass over: those that are not asked about.
    """

    def __init__(self, reader: Reader, node: Node, own: int = 0) -> None:
        self._reader = reader
        self._left: Counter[tuple[object, ...]] = Counter()
        if node.relation == REWRITE:
            for older in _replaced(reader, node):
                self._left |= self._marks(lineage(older, reader.last(older.dialog_id).seq + 1))
            self._left -= self._marks(lineage(node, own))

    def repeats(self, dialog_id: DialogId, header: Header) -> bool:
        """Return whether an entry of the dialog repeats one. Ask in order, and once for each entry."""
        if header.kind != "message" or not self._left:
            return False
        mark = self._mark(dialog_id, header)
        self._left[mark] -= 1
        return self._left[mark] >= 0

    def _marks(self, spans: Iterable[Span]) -> Counter[tuple[object, ...]]:
        headers = ((span.dialog, header) for span in spans for header in every_header(self._reader, span))
        return Counter(self._mark(dialog, header) for dialog, header in headers if header.kind == "message")

    def _mark(self, dialog_id: DialogId, header: Header) -> tuple[object, ...]:
        if header.at:
            return header.role, header.at, header.calls
        entry = entry_at(self._reader, Handle(dialog_id, header.seq))
        return header.role, canonical_json(entry.message.contents if isinstance(entry, MessageEntry) else None)


def _replaced(reader: Reader, node: Node) -> Iterator[Node]:
    """Yield the dialogs that the dialog of a rewritten file replaces, the newest first."""
    while node.relation == REWRITE and node.parent_id is not None:
        node = reader.node(node.parent_id)
        yield node


def repeated(reader: Reader, node: Node) -> frozenset[int]:
    """Return the numbers of the own entries with which a dialog begins to repeat a message."""
    numbers: set[int] = set()
    if node.relation == REWRITE:
        repeats = Repeats(reader, node)
        for header in every_header(reader, Span(node.dialog_id, 0, reader.last(node.dialog_id).seq + 1)):
            if repeats.repeats(node.dialog_id, header) and header.begins:
                numbers.add(header.seq)
    return frozenset(numbers)


def count_messages(reader: Reader, nodes: Iterable[Node]) -> int:
    """Return the number of messages of a session's dialogs; one that dialogs share or repeat counts once.

    Reads one header of each dialog, and all headers of one that a rewritten file made.
    """
    return sum(reader.last(node.dialog_id).number - len(repeated(reader, node)) for node in nodes)
