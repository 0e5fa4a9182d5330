"""The tree: which entries a dialog holds, its own and those it shares with its ancestors."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Protocol

from palaver.ids import DialogId, SessionId, new_dialog_id, now
from palaver.log.handles import Handle, Span
from palaver.log.headers import Header


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A dialog's place in the tree, written once when the dialog is made.

    Attributes:
        dialog_id: The dialog.
        session_id: The session it belongs to.
        owner: The agent that owns the dialog.
        parent_id: The dialog it was forked from, or None for a root.
        ranges: The ancestors' entries it shares, in order, fixed at the moment of the fork. Its own entries follow them.
        order: Its number among the session's dialogs, starting at 0: the order in which they were made.
        split_point: How many messages it kept from its parent, or None for a root.
        last_n: How many trailing messages the fork asked for, or None for a root.
        first_k: How many leading messages the fork asked for, or None for a root.
        inherited: How many messages the ranges hold.
        created_at: When it was made, in seconds since 1970-01-01 UTC.
        relation: What it is to its parent: `root`, `fork`, `rewind`, `subagent`, `rewrite`, `repair`.
        metadata: What its maker wants kept with it; JSON values.
    """

    dialog_id: DialogId
    session_id: SessionId
    owner: str = ""
    parent_id: DialogId | None = None
    ranges: tuple[Span, ...] = ()
    order: int = 0
    split_point: int | None = None
    last_n: int | None = None
    first_k: int | None = None
    inherited: int = 0
    created_at: float = 0.0
    relation: str = "root"
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


def child_of(  # noqa: PLR0913 - what a node says of its parent, all but the first three by keyword
    parent: Node,
    ranges: tuple[Span, ...],
    kept: int,
    *,
    relation: str,
    owner: str = "",
    window: tuple[int, int] | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Node:
    """Give the node of a new dialog below another one, with a new id, to be written with `Store.create_dialog`.

    Args:
        parent: The node of the dialog that it hangs on.
        ranges: The entries that it shares.
        kept: How many messages they hold.
        relation: What it is to its parent.
        owner: The agent that owns it; the parent's when empty.
        window: The `last_n` and `first_k` that a fork asked for; all of what it shares when not given.
        metadata: What is to be kept with it.
    """
    last_n, first_k = (0, kept) if window is None else window
    return Node(
        dialog_id=new_dialog_id(),
        session_id=parent.session_id,
        owner=owner or parent.owner,
        parent_id=parent.dialog_id,
        ranges=ranges,
        split_point=kept,
        last_n=last_n,
        first_k=first_k,
        inherited=kept,
        created_at=now(),
        relation=relation,
        metadata=metadata or {},
    )


class Reader(Protocol):
    """What is needed to read a log: stores are readers, and so is anything that holds entries in memory."""

    def node(self, dialog_id: DialogId) -> Node:
        """Give a dialog's node.

        Raises:
            UnknownDialog: No such dialog.
        """
        ...

    def last(self, dialog_id: DialogId) -> Header:
        """Give the newest header of a dialog's own entries, `NOTHING` when it has none."""
        ...

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Give one header of a dialog's own entries.

        Raises:
            UnknownHandle: No such entry.
        """
        ...

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Give the headers of own entries from `start` (inclusive) to `stop` (exclusive; None: all), lazily."""
        ...

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Give numbers and bodies of own entries from `start` (inclusive) to `stop` (exclusive; None: all), lazily."""
        ...

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Give one body.

        Raises:
            UnknownHandle: No such entry.
        """
        ...


def lineage(node: Node, length: int) -> tuple[Span, ...]:
    """Give all the spans that a dialog with `length` own entries holds, oldest first, empty ones left out."""
    own = Span(node.dialog_id, 0, length)
    return tuple(span for span in (*node.ranges, own) if len(span))


def clip(spans: Iterable[Span], runs: Sequence[Span]) -> Iterator[Span]:
    """Give the parts of `spans` that lie within `runs`, in the order of `spans`."""
    for span in spans:
        for run in runs:
            if run.dialog == span.dialog:
                start, stop = max(span.start, run.start), min(span.stop, run.stop)
                if start < stop:
                    yield Span(span.dialog, start, stop)


def gaps(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Give what lies between spans of one dialog, sorted: entries that whoever holds these spans does not hold."""
    return tuple(
        Span(one.dialog, one.stop, other.start)
        for one, other in pairwise(sorted(spans))
        if one.dialog == other.dialog and one.stop < other.start
    )


def part_of(place: Handle, between: Sequence[Span]) -> tuple[DialogId, int]:
    """Tell in which part of what is held a place lies, parts being parted by gaps (`gaps`): the same for places of one part, and only for them."""
    return place.dialog, bisect_left(between, Span(place.dialog, place.seq, place.seq)) if between else 0
