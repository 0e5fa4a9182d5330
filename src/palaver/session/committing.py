"""Committing a view: one entry, written only when it is smaller, whole, and reads back as the view it was made from."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.errors import Conflict, InvalidInput
from palaver.ids import DialogId
from palaver.log import NOTHING, Compaction, Handle, Header, Node, Reader, Span, draft, next_header
from palaver.view import View, checkpoint, fold, held

__all__ = ["MARGIN", "compaction", "undoing"]

MARGIN = 0.05
"""By how much a view must become smaller to be worth a commit: each one costs the provider's cache of all that follows it."""


class _With(Reader):
    """A log as it would be if a dialog ended with one entry more, and that entry were its last."""

    def __init__(self, reader: Reader, dialog_id: DialogId, header: Header, body: bytes) -> None:
        self._reader = reader
        self._dialog = dialog_id
        self._header = header
        self._body = body

    def _new(self, dialog_id: DialogId, seq: int) -> bool:
        return dialog_id == self._dialog and seq == self._header.seq

    def node(self, dialog_id: DialogId) -> Node:
        return self._reader.node(dialog_id)

    def last(self, dialog_id: DialogId) -> Header:
        return self._header if dialog_id == self._dialog else self._reader.last(dialog_id)

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        return self._header if self._new(dialog_id, seq) else self._reader.header(dialog_id, seq)

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        found = list(self._reader.headers(dialog_id, start, self._stop(dialog_id, stop)))
        if self._within(dialog_id, start, stop):
            found.append(self._header)
        return reversed(found) if reverse else iter(found)

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        yield from self._reader.bodies(dialog_id, start, self._stop(dialog_id, stop))
        if self._within(dialog_id, start, stop):
            yield self._header.seq, self._body

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        return self._body if self._new(dialog_id, seq) else self._reader.body(dialog_id, seq)

    def _stop(self, dialog_id: DialogId, stop: int | None) -> int | None:
        if dialog_id != self._dialog:
            return stop
        return self._header.seq if stop is None else min(stop, self._header.seq)

    def _within(self, dialog_id: DialogId, start: int, stop: int | None) -> bool:
        return dialog_id == self._dialog and start <= self._header.seq and (stop is None or self._header.seq < stop)


def compaction(reader: Reader, view: View, *, policy: str, before: int, after: int, margin: float) -> Compaction:
    """Make the entry that writes a view down, or refuse.

    Args:
        reader: The log as it is now, perhaps longer than when the view was made.
        view: The view.
        policy: The policy that made it.
        before: The size of the view that it replaces, in tokens.
        after: Its own size, in tokens.
        margin: By which share of `before` it must be smaller.

    Raises:
        Conflict: Another compaction was committed since the view was made.
        InvalidInput: The view is not smaller by the margin, leaves out what every view must hold, or leaves something out unsaid.
    """
    _require_current(reader, view)
    if after > before * (1 - margin) or after >= before:
        raise InvalidInput(
            f"The view would have {after:,} tokens instead of {before:,}: not smaller by {margin:.0%}.",
            hint="Commit a view that a policy made smaller; one that fits needs no commit.",
        )
    standing = fold(reader, view.dialog_id, view.at)
    _require_held(standing, fold(reader, view.dialog_id), view)
    _require_said(standing, view)
    return _proven(reader, view, policy=policy, before=before, after=after)


def undoing(reader: Reader, dialog_id: DialogId, *, at: int) -> Compaction:
    """Make the entry that chooses the view before the dialog's newest own compaction up to entry `at`; what came since stays in it.

    Raises:
        InvalidInput: The dialog has no compaction of its own.
    """
    newest = reader.header(dialog_id, at).view_base if at >= 0 else -1
    if newest < 0:
        raise InvalidInput(
            "This dialog has no compaction of its own to undo.",
            hint="Fork the dialog that has it, or look at an earlier view.",
        )
    view = fold(reader, dialog_id, newest - 1)
    return _proven(reader, view, policy="undo", before=0, after=0)


def _require_current(reader: Reader, view: View) -> None:
    last = reader.last(view.dialog_id)
    known = reader.header(view.dialog_id, view.at).view_base if view.at >= 0 else -1
    if last.view_base != known:
        raise Conflict(
            view.dialog_id, known, last.view_base, hint="A compaction was committed meanwhile: make the view anew."
        )


def _require_held(standing: View, now: View, view: View) -> None:
    """Insist on what a view must hold, as things stood when it was made and as they stand now: something may have been pinned since."""
    known = _shown(standing)
    must = {entry for index in standing.protected() for entry in _entries(standing.exchanges[index].runs)}
    kept = (exchange for exchange in now.exchanges if exchange.pinned or exchange.open)
    must |= {entry for exchange in kept for entry in _entries(exchange.runs) if entry in known}
    lost = min(must - _shown(view), default=None)
    if lost is not None:
        raise InvalidInput(f"The view leaves out {lost}, which every view must hold: what is newest, pinned or open.")


def _require_said(standing: View, view: View) -> None:
    """Insist that whatever is left out is among the omissions."""
    said = {entry for gone in view.omissions if gone.span is not None for entry in _entries((gone.span,))}
    said |= {Handle(gone.handle.dialog, gone.handle.seq) for gone in view.omissions if gone.handle is not None}
    unsaid = min(_shown(standing) - _shown(view) - said, default=None)
    if unsaid is not None:
        raise InvalidInput(f"The view leaves out {unsaid} without a reason.", hint="Make views with plans.")


def _shown(view: View) -> set[Handle]:
    """Give the entries that a view shows."""
    return {entry for exchange in view.exchanges for entry in _entries(exchange.runs)}


def _entries(runs: tuple[Span, ...]) -> Iterator[Handle]:
    for run in runs:
        for seq in range(run.start, run.stop):
            yield Handle(run.dialog, seq)


def _proven(reader: Reader, view: View, *, policy: str, before: int, after: int) -> Compaction:
    """Write a view down as an entry, and read it back as if it had been committed."""
    spans = held(reader, view.dialog_id, view.at)
    entry = checkpoint(view, spans, policy=policy, tokens_before=before, tokens_after=after)
    ready, _ = draft(entry)
    last = reader.header(view.dialog_id, view.at) if view.at >= 0 else NOTHING
    header = next_header(ready, last, turn=False)
    again = fold(_With(reader, view.dialog_id, header, ready.body), view.dialog_id)
    if (again.system, again.tools, again.exchanges) != (view.system, view.tools, view.exchanges):
        raise InvalidInput(
            "The view cannot be written down: reading it back gives another one.", hint="Make views with plans."
        )
    return entry
