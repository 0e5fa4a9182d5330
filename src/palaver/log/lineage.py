"""The tree: which entries a dialog has, its own and those that it shares with its ancestors, as spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol

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


# --- counts of messages -----------------------------------------------------------------------------------------------------------


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
