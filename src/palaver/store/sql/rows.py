"""Rows to records and back, and the numbers by which rows name sessions and dialogs."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, TypeAlias
from zlib import crc32

from palaver.errors import PalaverError
from palaver.ids import DialogId
from palaver.log import Node, Span
from palaver.store.erasing import Gone, Thing
from palaver.store.protocol import SessionRecord, SourceRecord
from palaver.store.records import frozen_metadata, metadata_text, unknown
from palaver.store.sql.database import Row, Rows

_BLOB_ID = re.compile(r"(?:[0-9a-f]{64}|[0-9a-f]{96})\Z")  # the second is the sealed name of one

Place: TypeAlias = tuple[DialogId, int, int]
"""A dialog's id, its session's number and its own."""

_SESSION, _SOURCE, _NODE = ([field.name for field in fields(kind)] for kind in (SessionRecord, SourceRecord, Node))

# --- records: the columns of a statement are the fields of its record, in their order -----------------------------------------------


def values_of(record: SessionRecord | SourceRecord | Node) -> dict[str, Any]:
    """Return a record as the values of a statement."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return values if isinstance(record, SourceRecord) else values | {"metadata": metadata_text(record.metadata)}


def session(row: Row) -> SessionRecord:
    """Return the session of a row."""
    return SessionRecord(**dict(zip(_SESSION, row[:-1], strict=False)), metadata=frozen_metadata(row[-1]))


def source(row: Row) -> SourceRecord:
    """Return the source of a row."""
    return SourceRecord(**dict(zip(_SOURCE, row, strict=True)))


def node(row: Row, ranges: tuple[Span, ...]) -> Node:
    """Return the node of a row, with its ranges."""
    values = dict(zip(_NODE, row, strict=False))
    return Node(**values | {"ranges": ranges, "metadata": frozen_metadata(values["metadata"])})


def node_sum(dialog_id: str, parent_id: str | None, shared: int, ranges: str, inherited: int) -> int:
    """Return the checksum that is kept with a dialog: CRC-32 over what says which entries it shares."""
    return crc32(repr((str(dialog_id), parent_id and str(parent_id), shared, ranges, inherited)).encode())


# --- finding --------------------------------------------------------------------------------------------------------------------------


def missing(rows: Rows, thing: Thing, name: str) -> PalaverError:
    """Return the error for a session or dialog that is not there: erased, or never there."""
    found = rows.one("gone_get", thing=thing, name=name)
    return unknown(thing, name) if found is None else Gone(*found).error(thing, name)


def refuse_gone(row: Row | None, thing: Thing, name: str) -> None:
    """Raise `Erased` for what was erased: of which the statement `gone_get` returned a row."""
    if row is not None:
        raise Gone(*row).error(thing, name)


def session_no(rows: Rows, session_id: str, *, lock: bool = False) -> int:
    """Return the number of a session; with `lock`, nobody else changes it or its tree until the end of the transaction."""
    row = rows.one("session_lock" if lock else "session_no", session_id=session_id)
    if row is None:
        raise missing(rows, "session", session_id)
    return int(row[0])


def blob_digest(blob_id: str) -> bytes:
    """Return the bytes of a payload's id; a text that is not an id names no payload."""
    return bytes.fromhex(blob_id) if _BLOB_ID.match(blob_id) else b""
