"""The way back into a store: a carried session becomes what it was, with the same ids, numbers and bytes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice

from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.log import NOTHING, Header, Node, Span, next_header
from palaver.plurals import counted
from palaver.session.carried.follower import ReplayLogWarning
from palaver.session.carried.portable import Carried, Line, drafted
from palaver.session.reading.transcript import stretches
from palaver.store.copying import Copyable
from palaver.store.protocol import SessionRecord, Store

__all__ = ["restore"]

_BATCH = 500  # entries a transaction


def restore(store: Store, session: SessionRecord, dialogs: Sequence[Carried]) -> None:
    """Write a session into a store that does not have it.

    Where an ancestor was not carried, or not whole, its dependants are written with what there is, and a warning says so.

    Args:
        store: The store.
        session: The session's record.
        dialogs: Its dialogs, parents before their children.

    Raises:
        InvalidInput: The store has the session, or a dialog's entries are not numbered 0, 1, 2 …
        IllegalEntry: An entry may not stand where it stood.
    """
    store.create_session(replace(session, root=None))
    lengths: dict[DialogId, int] = {}
    gaps = any(carried.gaps for carried in dialogs)
    for carried in dialogs:
        _put(store, carried.payloads)
        made = store.create_dialog(_fitting(store, carried.node, lengths, gaps=gaps))
        fill = _take if carried.gaps else _fill
        lengths[made.dialog_id] = fill(store, made.dialog_id, carried.lines)
        _put(store, carried.payloads)  # what an erasure or a sweep took meanwhile; now it is named
    first = next((carried.node.dialog_id for carried in dialogs if carried.node.parent_id not in lengths), None)
    root = session.root if session.root in lengths else first
    store.update_session(session.session_id, root=root)


def _put(store: Store, payloads: Iterable[bytes]) -> None:
    for payload in payloads:
        store.put_blob(payload)


def _fitting(store: Store, node: Node, lengths: Mapping[DialogId, int], *, gaps: bool) -> Node:
    """Give the node as far as its ancestors are there; behind gaps it is counted again how many messages they hold."""
    ranges = tuple(
        Span(span.dialog, span.start, min(span.stop, lengths[span.dialog]))
        for span in node.ranges
        if _within(span, lengths)
    )
    parent = node.parent_id if node.parent_id in lengths else None
    if (ranges, parent) == (node.ranges, node.parent_id):
        return replace(node, inherited=stretches(store, ranges)[1]) if gaps else node
    lost = sum(map(len, node.ranges)) - sum(map(len, ranges))
    warnings.warn(
        f"Dialog {node.dialog_id} was restored without {counted(lost, 'entry of its ancestors, which was', 'entries of its ancestors, which were')} not carried.",
        ReplayLogWarning,
        stacklevel=3,
    )
    return replace(node, ranges=ranges, parent_id=parent, inherited=stretches(store, ranges)[1])


def _within(span: Span, lengths: Mapping[DialogId, int]) -> bool:
    return span.start < lengths.get(span.dialog, 0)


def _fill(store: Store, dialog: DialogId, carried: Iterable[Line]) -> int:
    """Write entries, those of turns in batches, and give how many."""
    last = NOTHING
    for turn, group in groupby(carried, key=lambda line: line.turn):
        while batch := list(islice(group, _BATCH)):
            last = _write(store, dialog, batch, last, turn=turn)
    return last.seq + 1


def _take(store: Store, dialog: DialogId, carried: Iterable[Line]) -> int:
    """Write entries that are not judged again, because some before them are lost, and give how many."""
    if not isinstance(store, Copyable):
        return _fill(store, dialog, carried)
    last, waiting = NOTHING, iter(carried)
    while batch := list(islice(waiting, _BATCH)):
        taken = []
        for line in batch:
            last = next_header(drafted(line), last, turn=line.turn, judged=False)
            taken.append((last, line.body))
        store.take_entries(dialog, taken)
    return last.seq + 1


def _write(store: Store, dialog: DialogId, batch: Sequence[Line], last: Header, *, turn: bool) -> Header:
    if [line.seq for line in batch] != list(range(last.seq + 1, last.seq + 1 + len(batch))):
        raise InvalidInput(f"The entries of dialog {dialog} have a gap after {last.seq}.")
    drafts = [drafted(line) for line in batch]
    if turn:
        return store.append(dialog, drafts, last.turn_head)[-1]
    for ready in drafts:
        last = store.annotate(dialog, ready)
    return last
