"""Sessions and the sources they came from, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import apsw

from palaver.errors import InvalidInput
from palaver.ids import BlobId, DialogId, SessionId
from palaver.store.activity import Chosen
from palaver.store.erasing_rows import gone, unknown_session
from palaver.store.protocol import SessionRecord, SourceRecord
from palaver.store.records import check_changes, checked, frozen_metadata, metadata_text
from palaver.store.sqlite import activity
from palaver.store.sqlite.rows import SqliteRows
from palaver.store.sqlite.statements import Row, statements


def _bindings(record: SessionRecord) -> dict[str, Any]:
    return {
        "session_id": record.session_id,
        "name": record.name,
        "subject": record.subject,
        "workdir": record.workdir,
        "created_at": record.created_at,
        "trashed_at": record.trashed_at,
        "root": record.root,
        "metadata": metadata_text(record.metadata),
    }


def _record(row: Row) -> SessionRecord:
    session_id, name, subject, workdir, created_at, updated_at, trashed_at, root, metadata = row
    return SessionRecord(
        session_id=SessionId(session_id),
        name=name,
        subject=subject,
        workdir=workdir,
        created_at=created_at,
        updated_at=updated_at,
        trashed_at=trashed_at,
        root=None if root is None else DialogId(root),
        metadata=frozen_metadata(metadata),
    )


def session_no(connection: apsw.Connection, session_id: SessionId) -> int:
    """Give the number of a session."""
    found = connection.execute(statements()["session_no"], (session_id,)).get
    if found is None:
        raise unknown_session(SqliteRows(connection), session_id)
    return int(found)


def add(connection: apsw.Connection, record: SessionRecord) -> None:
    """Write a new session."""
    erased = gone(SqliteRows(connection), "session", record.session_id)
    if erased is not None:
        raise erased.error("session", record.session_id)
    connection.execute(statements()["session_add"], _bindings(record))
    if not connection.changes():
        raise InvalidInput(f"Session {record.session_id} exists already.")
    activity.add(connection, record.session_id)


def get(connection: apsw.Connection, session_id: SessionId) -> SessionRecord:
    """Read one session."""
    row = connection.execute(statements()["session_get"], (session_id,)).fetchone()
    if row is None:
        raise unknown_session(SqliteRows(connection), session_id)
    return _record(row)


def newest_first(connection: apsw.Connection, chosen: Chosen, bounds: dict[str, Any]) -> list[SessionId]:
    """Give the ids of sessions, newest activity first."""
    sql = statements()
    wanted = chosen.of(
        sql["session_list"], sql["session_list_named"], sql["session_list_about"], sql["session_list_trashed"]
    )
    bindings = bounds | {"name": chosen.name, "subject": chosen.subject}
    return [SessionId(row[0]) for row in connection.execute(wanted, bindings)]


def beginning(connection: apsw.Connection, prefix: str, limit: int) -> list[SessionId]:
    """Give ids of sessions that begin with a prefix."""
    bindings = {"prefix": prefix, "limit": max(0, limit)}
    return [SessionId(row[0]) for row in connection.execute(statements()["sessions_beginning"], bindings)]


def change(connection: apsw.Connection, session_id: SessionId, changes: dict[str, Any]) -> SessionRecord:
    """Change what may change of a session."""
    check_changes(changes)
    record = checked(replace(get(connection, session_id), **changes))
    connection.execute(statements()["session_set"], _bindings(record))
    return record


def put_source(connection: apsw.Connection, record: SourceRecord) -> None:
    """Write, or replace, a source."""
    bindings = asdict(record) | {"session_no": session_no(connection, record.session_id)}
    connection.execute(statements()["source_put"], bindings)


def _source(row: Row) -> SourceRecord:
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


def source(connection: apsw.Connection, identity: str) -> SourceRecord | None:
    """Read a source."""
    row = connection.execute(statements()["source_get"], (identity,)).fetchone()
    return None if row is None else _source(row)


def sources(connection: apsw.Connection, session_id: SessionId) -> Iterator[SourceRecord]:
    """Read the sources of a session, by identity."""
    return map(_source, connection.execute(statements()["sources_of"], (session_no(connection, session_id),)))
