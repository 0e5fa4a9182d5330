"""Rows to records and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from zlib import crc32

from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Node, Span
from palaver.store.protocol import SessionRecord, SourceRecord
from palaver.store.records import frozen_metadata, metadata_text, spans_text
from palaver.store.sql.database import Row

# --- sessions and sources -----------------------------------------------------------------------------------------------------------


def session_values(record: SessionRecord) -> dict[str, Any]:
    """Return a session as the values of a statement."""
    return {
        "session_id": record.session_id,
        "tenant": record.tenant,
        "name": record.name,
        "subject": record.subject,
        "workdir": record.workdir,
        "created_at": record.created_at,
        "trashed_at": record.trashed_at,
        "root": record.root,
        "metadata": metadata_text(record.metadata),
    }


def session(row: Row) -> SessionRecord:
    """Return the session of a row."""
    session_id, tenant, name, subject, workdir, created_at, updated_at, trashed_at, root, metadata = row
    return SessionRecord(
        session_id=SessionId(session_id),
        tenant=tenant,
        name=name,
        subject=subject,
        workdir=workdir,
        created_at=created_at,
        updated_at=updated_at,
        trashed_at=trashed_at,
        root=None if root is None else DialogId(root),
        metadata=frozen_metadata(metadata),
    )


def source_values(record: SourceRecord) -> dict[str, Any]:
    """Return a source as the values of a statement."""
    values = asdict(record)
    del values["session_id"]
    return values


def source(row: Row) -> SourceRecord:
    """Return the source of a row."""
    identity, session_id, form, path, digest, raw, index, imported_at = row
    return SourceRecord(
        identity=identity,
        session_id=SessionId(session_id),
        format=form,
        path=path,
        digest=digest,
        raw=None if raw is None else BlobId(raw),
        index=None if index is None else BlobId(index),
        imported_at=imported_at,
    )


# --- nodes --------------------------------------------------------------------------------------------------------------------------


def node_values(node: Node, shared: int) -> dict[str, Any]:
    """Return a node as the values of a statement; its first ranges, those that it shares with its parent, are left out."""
    own = spans_text(node.ranges[shared:])
    return {
        "dialog_id": node.dialog_id,
        "place": node.order,
        "owner": node.owner,
        "parent_id": node.parent_id,
        "shared": shared,
        "ranges": own,
        "split_point": node.split_point,
        "last_n": node.last_n,
        "first_k": node.first_k,
        "inherited": node.inherited,
        "created_at": node.created_at,
        "relation": node.relation,
        "metadata": metadata_text(node.metadata),
        "check_sum": node_sum(node.dialog_id, node.parent_id, shared, own, node.inherited),
    }


def node_sum(dialog_id: str, parent_id: str | None, shared: int, ranges: str, inherited: int) -> int:
    """Return the checksum that is kept with a dialog: CRC-32 over what says which entries it shares."""
    return crc32(repr((str(dialog_id), parent_id and str(parent_id), shared, ranges, inherited)).encode())


def node(row: Row, ranges: tuple[Span, ...]) -> Node:
    """Return the node of a row, with its ranges."""
    dialog_id, session_id, owner, parent_id, _shared, _own, place, *rest = row
    split_point, last_n, first_k, inherited, created_at, relation, metadata = rest
    return Node(
        dialog_id=DialogId(dialog_id),
        session_id=SessionId(session_id),
        owner=owner,
        parent_id=None if parent_id is None else DialogId(parent_id),
        ranges=ranges,
        order=place,
        split_point=split_point,
        last_n=last_n,
        first_k=first_k,
        inherited=inherited,
        created_at=created_at,
        relation=relation,
        metadata=frozen_metadata(metadata),
    )
