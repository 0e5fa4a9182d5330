"""The tree: which entries a dialog has, its own and those that it shares with its ancestors, as spans."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple, Protocol

from palaver.errors import NotFound
from palaver.ids import DialogId, SessionId, new_dialog_id, now
from palaver.log.handles import Handle, Span
from palaver.log.headers import Header


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A dialog's place in the tree, written once when the dialog is created.

    Attributes:
        dialog_id: The dialog.
        session_id: The session it belongs to.
        owner: The agent that owns the dialog.
        parent_id: The dialog it was forked from, or None for a root.
        ranges: The ancestors' entries that it shares, in order, fixed when it is forked. Its own entries follow them.
        order: Its number among the session's dialogs, from 0, in the order in which they were created.
        split_point: How many messages it kept from its parent, or None for a root.
        last_n: How many trailing messages the fork asked for, or None for a root.
        first_k: How many leading messages the fork asked for, or None for a root.
        inherited: How many messages the ranges have.
        created_at: When it was created, in seconds since 1970-01-01 UTC.
        relation: What it is to its parent: `root`, `fork`, `rewind`, `subagent`, `rewrite`, `repair`.
        metadata: What its creator keeps with it; JSON values.
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


def child_of(  # noqa: PLR0913 - the fields of a node, by keyword
    parent: Node,
    ranges: tuple[Span, ...],
    kept: int,
    *,
    relation: str,
    owner: str = "",
    window: tuple[int, int] | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Node:
    """Return the node of a new dialog below another one, with a new id, to be written with `Store.create_dialog`.

    Args:
        parent: The node of its parent.
        ranges: The entries that it shares.
        kept: How many messages they have.
        relation: What it is to its parent.
        owner: The agent that owns it; empty for the parent's.
        window: The `last_n` and `first_k` that a fork asked for; None for all that it shares.
        metadata: What is kept with it.
    """
    last_n, first_k = (0, kept) if window is None else window
    return Node(
        dialog_id=new_dialog_id(parent.session_id),
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
    """What reading a log needs. Stores are readers, and so is anything that keeps entries in memory."""

    def node(self, dialog_id: DialogId) -> Node:
        """Return a dialog's node.

        Raises:
            NotFound: There is no such dialog.
        """
        ...

    def last(self, dialog_id: DialogId) -> Header:
        """Return the newest header of a dialog's own entries, `NOTHING` when it has none."""
        ...

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Return one header of a dialog's own entries.

        Raises:
            NotFound: There is no such entry.
        """
        ...

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Return the headers of own entries from `start` (inclusive) to `stop` (exclusive; None: all), lazily.

        A header that is lost is left out. `last` and `header` return that of an empty message in its place.
        """
        ...

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Return numbers and bodies of own entries from `start` (inclusive) to `stop` (exclusive; None: all), lazily.

        A body that is lost, or that does not match the digest in its header, is left out.
        """
        ...

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Return one body.

        Raises:
            NotFound: There is no such entry.
            StoreDamaged: It is lost, or does not match the digest in its header.
        """
        ...


def lineage(node: Node, length: int) -> tuple[Span, ...]:
    """Return the spans that a dialog with `length` own entries consists of, oldest first, without empty ones."""
    own = Span(node.dialog_id, 0, length)
    return tuple(span for span in (*node.ranges, own) if len(span))


def path_to(reader: Reader, place: Handle) -> tuple[Span, ...]:
    """Return the path to an entry, inclusive: the content of its dialog when it was written."""
    return lineage(reader.node(place.dialog), place.seq + 1)


# --- spans ----------------------------------------------------------------------------------------------------------------------


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Drop empty spans, and join neighbours that touch or overlap."""
    kept: list[Span] = []
    for span in spans:
        if not len(span):
            continue
        last = kept[-1] if kept else None
        if last is not None and last.dialog == span.dialog and last.start <= span.start <= last.stop:
            kept[-1] = Span(span.dialog, last.start, max(last.stop, span.stop))
        else:
            kept.append(span)
    return tuple(kept)


def last_of(spans: Sequence[Span]) -> Handle | None:
    """Return the last entry of spans, or None."""
    return Handle(spans[-1].dialog, spans[-1].stop - 1) if spans else None


def upto(spans: Sequence[Span], place: Handle) -> tuple[Span, ...]:
    """Return the spans up to an entry, inclusive.

    Raises:
        NotFound: The entry is not in them.
    """
    for index, span in enumerate(spans):
        if place in span:
            return (*spans[:index], Span(span.dialog, span.start, place.seq + 1))
    raise NotFound(str(place), what="entry", hint="This dialog does not contain it.")


def common(mine: Sequence[Span], theirs: Sequence[Span]) -> tuple[Span, ...]:
    """Return the common beginning of two paths."""
    shared: list[Span] = []
    for span, other in zip(mine, theirs, strict=False):
        if (span.dialog, span.start) != (other.dialog, other.start):
            break
        shared.append(Span(span.dialog, span.start, min(span.stop, other.stop)))
        if span.stop != other.stop:
            break
    return tuple(shared)


def apart(spans: Iterable[Span], others: Iterable[Span]) -> tuple[Span, ...]:
    """Return the parts of `spans` that are not in `others`, in order."""
    taken: dict[str, list[Span]] = {}
    for other in sorted(others):
        taken.setdefault(other.dialog, []).append(other)
    rest: list[Span] = []
    for span in spans:
        start = span.start
        for other in taken.get(span.dialog, ()):
            if start < min(other.start, span.stop):
                rest.append(Span(span.dialog, start, min(other.start, span.stop)))
            start = max(start, other.stop)
        if start < span.stop:
            rest.append(Span(span.dialog, start, span.stop))
    return tuple(rest)


def clip(spans: Iterable[Span], runs: Sequence[Span]) -> Iterator[Span]:
    """Return the parts of `spans` that lie within `runs`, in the order of `spans`."""
    for span in spans:
        for run in runs:
            if run.dialog == span.dialog:
                start, stop = max(span.start, run.start), min(span.stop, run.stop)
                if start < stop:
                    yield Span(span.dialog, start, stop)


def gaps(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return what lies between spans of one dialog, sorted: entries that a dialog with these spans does not have."""
    return tuple(
        Span(span.dialog, span.stop, after.start)
        for span, after in pairwise(sorted(spans))
        if span.dialog == after.dialog and span.stop < after.start
    )


def part_of(place: Handle, between: Sequence[Span]) -> tuple[DialogId, int]:
    """Return a key of the part in which a place lies, where `gaps` part the entries: equal for places of one part only."""
    return place.dialog, bisect_left(between, Span(place.dialog, place.seq, place.seq)) if between else 0


class Stretch(NamedTuple):
    """A span of a dialog's lineage with its message counts.

    Attributes:
        span: The entries.
        before: The number of messages before the span in its own dialog.
        first: The number of messages before the span in the lineage.
        messages: The number of messages that begin in the span.
    """

    span: Span
    before: int
    first: int
    messages: int


def stretches(reader: Reader, spans: Iterable[Span]) -> tuple[Stretch, ...]:
    """Return spans with their counts of messages. Read two headers per span."""
    parts: list[Stretch] = []
    first = 0
    for span in spans:
        before = reader.header(span.dialog, span.start - 1).number if span.start else 0
        begun = reader.header(span.dialog, span.stop - 1).number - before if len(span) else 0
        parts.append(Stretch(span, before, first, begun))
        first += begun
    return tuple(parts)


def messages_in(reader: Reader, spans: Iterable[Span]) -> int:
    """Return the number of messages that begin in spans."""
    return sum(stretch.messages for stretch in stretches(reader, spans))
