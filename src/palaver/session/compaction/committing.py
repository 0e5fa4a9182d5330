"""Committing a view: one entry, written only when it is smaller, whole, and reads back as the view it was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from palaver.errors import Conflict, InvalidInput, StoreBusy
from palaver.ids import DialogId
from palaver.log import (
    NOTHING,
    Compaction,
    Draft,
    Entry,
    Handle,
    Header,
    Node,
    Reader,
    Span,
    draft,
    entry_at,
    next_header,
)
from palaver.session.reading.erased import require_unerased
from palaver.store.protocol import Store
from palaver.view import Block, View, checkpoint, fold, held
from palaver.view.lines import material

__all__ = ["MARGIN", "compaction", "in_one_step", "proven", "undoing", "worth", "writable"]

MARGIN = 0.05
"""By how much a view must become smaller to be worth a commit: each one costs the provider's cache of all that follows it."""


def worth(before: int, after: int, margin: float = MARGIN) -> bool:
    """Tell whether a view that becomes so much smaller is worth a commit."""
    return after <= before * (1 - margin) and after < before


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


class _Overtaken(Exception):
    """Another writer came between looking and writing: what was written is undone, and it is tried again."""


_TRIES = 200
"""So often another writer may come between; each time he has written something, so that not all of them wait."""


def in_one_step(store: Store, dialog_id: DialogId, make: Callable[[], Entry]) -> Header:
    """Make an entry and write it, both about the same log: what another writer added in between is looked at before it is written.

    Other writers wait while a block is open, or (where a store locks nothing) take a number each: an entry that did not get the number after
    those that were looked at is taken back, and made anew.

    Args:
        store: Where the dialog lies.
        dialog_id: The dialog.
        make: Makes the entry for the log as it stands, or refuses.

    Raises:
        StoreBusy: Other writers of the same dialog were always faster.
    """
    for _ in range(_TRIES):
        looked_at = store.last(dialog_id).seq
        ready, _ = draft(make())
        try:
            with store.together():
                now = store.last(dialog_id).seq
                if now != looked_at:
                    looked_at, (ready, _) = now, draft(make())
                return _next(store, dialog_id, ready, looked_at)
        except _Overtaken:
            continue
    raise StoreBusy(f"Other writers of dialog {dialog_id} were always faster.", hint="Try again.")


def _next(store: Store, dialog_id: DialogId, ready: Draft, looked_at: int) -> Header:
    header = store.annotate(dialog_id, ready)
    if header.seq != looked_at + 1:
        raise _Overtaken
    return header


def compaction(  # noqa: PLR0913 - a view, and all that is told of it
    reader: Reader,
    view: View,
    *,
    policy: str,
    before: int,
    after: int,
    margin: float,
    attempt: Mapping[str, object] | None = None,
) -> Compaction:
    """Make the entry that writes a view down, or refuse.

    Args:
        reader: The log as it is now, perhaps longer than when the view was made.
        view: The view.
        policy: The policy that made it.
        before: The size of the view that it replaces, in tokens.
        after: Its own size, in tokens.
        margin: By which share of `before` it must be smaller.
        attempt: How it came about, where that is recorded.

    Raises:
        Conflict: Another compaction was committed since the view was made, or something that the dialog holds was erased.
        InvalidInput: The view is not smaller by the margin, leaves out what every view must hold, or leaves something out unsaid.
    """
    require_unerased(reader, view.dialog_id, view.at, "the plan", "Make the plan again.")
    _require_current(reader, view.dialog_id, view.at)
    if not worth(before, after, margin):
        raise InvalidInput(
            f"The view would have {after:,} tokens instead of {before:,}: not smaller by {margin:.0%}.",
            hint="Commit a view that a policy made smaller; one that fits needs no commit.",
        )
    standing = fold(reader, view.dialog_id, view.at)
    _require_held(standing, fold(reader, view.dialog_id), view)
    _require_said(standing, view)
    entry = proven(reader, view, policy=policy, before=before, after=after)
    return entry if attempt is None else Compaction.model_validate({**dict(entry), "attempt": attempt})


def undoing(reader: Reader, dialog_id: DialogId, *, at: int) -> Compaction:
    """Make the entry that chooses the view before a compaction; what was said since stays in it.

    It undoes the newest of the dialog's own compactions up to entry `at` that is not undone yet: compactions are a stack.

    Raises:
        Conflict: Another compaction was committed since.
        InvalidInput: Every compaction of the dialog is undone, it has none, or its view starts from one that an ancestor made.
    """
    _require_current(reader, dialog_id, at)
    undone = _in_force(reader, dialog_id, at)
    if undone < 0:
        raise _nothing_to_undo(reader, dialog_id, at)
    view = fold(reader, dialog_id, undone - 1)
    return proven(reader, view, policy="undo", before=0, after=0).model_copy(update={"undone": undone})


def _in_force(reader: Reader, dialog_id: DialogId, at: int) -> int:
    """Give the number of the newest compaction up to entry `at` that is not undone, -1 where there is none.

    An entry that undoes one goes back to how things stood before that one.
    """
    while at >= 0:
        newest = reader.header(dialog_id, at).view_base
        undone = _undone(reader, dialog_id, newest) if newest >= 0 else None
        if undone is None:
            return newest
        at = undone - 1
    return -1


def _undone(reader: Reader, dialog_id: DialogId, seq: int) -> int | None:
    """Give the number of the compaction that an entry undoes, or None."""
    entry = entry_at(reader, Handle(dialog_id, seq))
    return entry.undone if isinstance(entry, Compaction) else None


def _nothing_to_undo(reader: Reader, dialog_id: DialogId, at: int) -> InvalidInput:
    """Say why there is nothing to undo, and what to do instead."""
    found = material(reader, reader.node(dialog_id), NOTHING, whole=False)
    if found.place is not None and _in_force(reader, found.place.dialog, found.place.seq) >= 0:
        owner = found.place.dialog
        return InvalidInput(
            f"This dialog has no compaction of its own to undo; its view starts from one that dialog {owner} made.",
            hint=f"Undo it in dialog {owner} and fork that one anew; a fork that exists keeps what it inherited.",
        )
    if at >= 0 and reader.header(dialog_id, at).view_base >= 0:
        return InvalidInput(
            "Every compaction of this dialog is undone.", hint="An earlier view can be had with view(at=...)."
        )
    return InvalidInput(
        "This dialog has no compaction: there is nothing to undo.", hint="Its view leaves nothing out by a commit."
    )


def _require_current(reader: Reader, dialog_id: DialogId, at: int) -> None:
    last = reader.last(dialog_id)
    known = reader.header(dialog_id, at).view_base if at >= 0 else -1
    if last.view_base != known:
        why = f"A compaction was committed meanwhile in dialog {dialog_id}, or taken back. Nothing was written."
        raise Conflict(dialog_id, known, last.view_base, why=why, hint="Reload the dialog, and look anew.")


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


def proven(reader: Reader, view: View, *, policy: str, before: int, after: int) -> Compaction:
    """Write a view down as an entry, and read it back as if it had been committed."""
    spans = held(reader, view.dialog_id, view.at)
    last = reader.header(view.dialog_id, view.at) if view.at >= 0 else NOTHING
    for apart in (
        False,
        True,
    ):  # where something was damaged since it left the view, only what the view shows is read back
        entry = checkpoint(view, spans, policy=policy, tokens_before=before, tokens_after=after, apart=apart)
        ready, _ = draft(entry)
        header = next_header(ready, last, turn=False)
        again = fold(_With(reader, view.dialog_id, header, ready.body), view.dialog_id)
        if _all_of(again) == _all_of(view):
            return entry
    raise InvalidInput(
        "The view cannot be written down: reading it back gives another one.",
        hint="Make views with plans; a text that was put in may hold characters that no log keeps.",
    )


def writable(reader: Reader, view: View) -> bool:
    """Tell whether a view can be written down so that it reads back as it is, whatever its size."""
    try:
        proven(reader, view, policy="", before=0, after=0)
    except InvalidInput:
        return False
    return True


def _all_of(view: View) -> tuple[object, ...]:
    """Give what must be the same when a view is read back."""
    return _said(view), view.tools, view.exchanges, view.carried


def _said(view: View) -> tuple[Block, ...]:
    """Give the instructions as they were said; what constraints put on by hand have a place in them each request says for itself."""
    return tuple(block for block in view.system if not block.derived)
