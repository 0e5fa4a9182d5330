"""Writing: a session, or a part of it, as a stream of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Literal, TypeAlias

from palaver.errors import StoreDamaged
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Handle, Node, Span, media_in
from palaver.store.protocol import SourceRecord, Store
from palaver.transfer.records import EntryRecord, Payload, Record, pieces_in

Payloads: TypeAlias = Literal["all", "there", "none"]
"""Which payloads a stream has: all that its records name (a missing one is an error), those that the store has, or none."""


def stream(
    store: Store,
    session_id: SessionId,
    lengths: Mapping[DialogId, int] | None = None,
    *,
    since: Mapping[DialogId, int] | None = None,
    payloads: Payloads = "all",
    exact: bool = False,
) -> Iterator[Record]:
    """Yield the records of a session. The same session gives the same records from every store that it was brought to.

    Args:
        store: The store.
        session_id: The session.
        lengths: How many own entries of which dialogs. Default: the whole session, with its sources.
        since: The first entry of a dialog, if that is not entry 0.
        payloads: Which payloads to include.
        exact: Whether to include headers.

    Raises:
        NotFound: The session does not exist, or the store lacks a payload.
        StoreDamaged: The store returns other bytes than were written.
    """
    yield store.session(session_id)
    sent: set[BlobId] = set()
    nodes = [node for node in store.nodes(session_id) if lengths is None or node.dialog_id in lengths]
    for order, node in enumerate(nodes):
        parent = node.parent_id if lengths is None or node.parent_id in lengths else None
        yield replace(node, order=order, parent_id=parent)
        stop = store.last(node.dialog_id).seq + 1 if lengths is None else lengths[node.dialog_id]
        span = Span(node.dialog_id, min((since or {}).get(node.dialog_id, 0), stop), stop)
        yield from rows(store, session_id, span, sent, payloads=payloads, exact=exact)
    for source in store.sources(session_id) if lengths is None else ():
        if payloads != "none":
            yield from _payloads(store, session_id, named_by_source(store, source), sent)
        yield source


def rows(
    store: Store,
    session_id: SessionId,
    span: Span,
    sent: set[BlobId],
    *,
    payloads: Payloads = "there",
    exact: bool = False,
) -> Iterator[Record]:
    """Yield own entries of a dialog, every one: a stream must not turn damage into recorded content.

    Args:
        store: The store.
        session_id: The session.
        span: The entries.
        sent: The payloads that the stream already has; those of the entries are added.
        payloads: Which payloads to include.
        exact: Whether to include headers.

    Raises:
        NotFound: The store lacks a payload.
        StoreDamaged: An entry is lost, or not what was written.
    """
    bodies = store.bodies(span.dialog, span.start, span.stop)
    for header in store.headers(span.dialog, span.start, span.stop):
        seq, body = next(bodies, (-1, b""))
        if seq != header.seq:
            raise StoreDamaged(f"{Handle(span.dialog, header.seq)}", "it is lost, or not what was written")
        if payloads != "none":
            named = media_in(body)
            yield from _payloads(
                store,
                session_id,
                named if payloads == "all" else filter(partial(store.has_blob, session_id), named),
                sent,
            )
        yield EntryRecord(seq, header.turn_head == seq, body, header if exact else None)


def _payloads(store: Store, session_id: SessionId, named: Iterable[BlobId], sent: set[BlobId]) -> Iterator[Payload]:
    """Yield each payload once, before the record that names it."""
    for blob_id in named:
        if blob_id not in sent:
            sent.add(blob_id)
            data = store.blob(session_id, blob_id)
            if sha256(data).hexdigest() != blob_id:
                raise StoreDamaged(f"blob {blob_id[:12]}", "it is not what was written")
            yield Payload(data)


def named_by_source(store: Store, source: SourceRecord) -> Iterator[BlobId]:
    """Yield the payloads of a foreign conversation."""
    if source.index is not None:
        yield source.index
    if source.raw is not None:
        yield from pieces_in(store.blob(source.session_id, source.raw))
        yield source.raw


def family(store: Store, node: Node) -> dict[DialogId, int]:
    """Return the lengths of a dialog, its ancestors and its descendants, with all dialogs whose entries they share."""
    nodes = store.nodes(node.session_id)
    kin: set[DialogId | None] = {node.dialog_id}
    for other in nodes:  # a child is created after its parent
        if other.parent_id in kin:
            kin.add(other.dialog_id)
    for other in reversed(nodes):
        if other.dialog_id in kin:
            kin |= {other.parent_id, *(span.dialog for span in other.ranges)}
    return {other.dialog_id: store.last(other.dialog_id).seq + 1 for other in nodes if other.dialog_id in kin}


def path(store: Store, session_id: SessionId, spans: Iterable[Span]) -> dict[DialogId, int]:
    """Return the length of each dialog that a path needs, including entries that these dialogs share."""
    lengths: dict[DialogId, int] = {}
    ranges = {node.dialog_id: node.ranges for node in store.nodes(session_id)}
    waiting = list(spans)
    while waiting:
        span = waiting.pop()
        if span.dialog not in lengths:
            waiting.extend(ranges[span.dialog])
        lengths[span.dialog] = max(lengths.get(span.dialog, 0), span.stop)
    return lengths
