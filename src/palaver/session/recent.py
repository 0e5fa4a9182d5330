"""The newest entries of a dialog, kept while it is in use."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from palaver.ids import DialogId
from palaver.log import Header, Node
from palaver.store.protocol import TAIL_BYTES, TAIL_ENTRIES, Store
from palaver.store.records import within_tail

Row: TypeAlias = tuple[Header, bytes]
"""A header with its body."""


class Recent:
    """Reads the log, and a dialog's newest own entries without asking the store.

    A turn reads several times what it wrote a moment ago: over a network, each would be a round trip. An open end means the newest entry of which
    this process knows, and only `OpenDialog.refresh` asks for more.

    Attributes:
        rows: The newest own entries without a gap, oldest first: up to twice as many as `Store.tail` has. Empty when none are known. A list only
            grows at its end, and another one takes its place: so a reader in another thread never sees one change before the part that it reads.
    """

    def __init__(self, store: Store, node: Node) -> None:
        self.rows: list[Row] = []
        self._store = store
        self._node = node

    def start(self, rows: Sequence[Row] = ()) -> None:
        """Forget what is known, and keep these entries instead."""
        self.rows = list(rows)

    def follow(self, rows: Sequence[Row]) -> None:
        """Keep newer entries after those that are known; forget those if one is missing between."""
        if rows and self.rows and rows[0][0].seq != self.rows[-1][0].seq + 1:
            self.start()
        self.rows.extend(rows)
        if len(self.rows) > 2 * TAIL_ENTRIES or (
            self.rows and self.rows[-1][0].total - self.rows[0][0].total > 2 * TAIL_BYTES
        ):
            self.start(within_tail(self.rows))

    def _part(self, dialog_id: DialogId, start: int, stop: int | None) -> tuple[Sequence[Row], int | None]:
        """Return those entries of a range that are known, and where the others end: the range's end when none is known."""
        rows = self.rows
        if dialog_id != self._node.dialog_id or not rows or (stop is not None and stop <= rows[0][0].seq):
            return (), stop
        first = rows[0][0].seq
        return rows[max(0, start - first) : None if stop is None else stop - first], first

    # --- a reader (`palaver.log.Reader`) ------------------------------------------------------------------------------------------

    def node(self, dialog_id: DialogId) -> Node:
        """Return a dialog's node."""
        return self._node if dialog_id == self._node.dialog_id else self._store.node(dialog_id)

    def last(self, dialog_id: DialogId) -> Header:
        """Return the newest header of a dialog's own entries, `NOTHING` when it has none."""
        known, _ = self._part(dialog_id, 0, None)
        return known[-1][0] if known else self._store.last(dialog_id)

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Return one header of a dialog's own entries."""
        known, _ = self._part(dialog_id, seq, seq + 1)
        return known[0][0] if known else self._store.header(dialog_id, seq)

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Return one body."""
        known, _ = self._part(dialog_id, seq, seq + 1)
        return known[0][1] if known else self._store.body(dialog_id, seq)

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Return the headers of own entries from `start` (inclusive) to `stop` (exclusive; None: all), lazily."""
        known, others = self._part(dialog_id, start, stop)
        headers = [header for header, _body in known]
        if others is not None and start >= others:
            yield from reversed(headers) if reverse else headers
        elif reverse:
            yield from reversed(headers)
            yield from self._store.headers(dialog_id, start, others, reverse=True)
        else:
            yield from self._store.headers(dialog_id, start, others)
            yield from headers

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Return numbers and bodies of own entries from `start` (inclusive) to `stop` (exclusive; None: all), lazily."""
        known, others = self._part(dialog_id, start, stop)
        if others is None or start < others:
            yield from self._store.bodies(dialog_id, start, others)
        yield from ((header.seq, body) for header, body in known)

    def latest_of_kind(
        self, dialog_id: DialogId, kinds: str | Collection[str], start: int = 0, stop: int | None = None
    ) -> Iterator[Header]:
        """Return the headers of own entries of some kinds, newest first, from `start` (inclusive) to `stop` (exclusive; None: all), lazily."""
        known, others = self._part(dialog_id, start, stop)
        wanted = {kinds} if isinstance(kinds, str) else set(kinds)
        yield from (header for header, _body in reversed(known) if header.kind in wanted)
        if others is None or start < others:
            yield from self._store.latest_of_kind(dialog_id, kinds, start, others)
