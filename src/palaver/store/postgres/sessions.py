"""Sessions and the sources they came from, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from palaver.errors import InvalidInput
from palaver.ids import BlobId, DialogId, SessionId
from palaver.store.activity import Chosen
from palaver.store.erasing_rows import gone, unknown_session
from palaver.store.postgres.connections import Connection, ask
from palaver.store.postgres.rows import PostgresRows
from palaver.store.postgres.statements import Row
from palaver.store.postgres.texts import given, held, held_or_none
from palaver.store.protocol import SessionRecord, SourceRecord
from palaver.store.records import check_changes, checked, frozen_metadata, metadata_text


def _bindings(record: SessionRecord) -> dict[str, Any]:
    return {
        "session_id": held(record.session_id),
        "name": held(record.name),
        "subject": held(record.subject),
        "workdir": held(record.workdir),
        "created_at": record.created_at,
        "trashed_at": record.trashed_at,
        "root": held_or_none(record.root),
        "metadata": metadata_text(record.metadata),
    }


def _record(row: Row) -> SessionRecord:
    session_id, name, subject, workdir, created_at, updated_at, trashed_at, root, metadata = row
    return SessionRecord(
        session_id=SessionId(given(session_id)),
        name=given(name),
        subject=given(subject),
        workdir=given(workdir),
        created_at=created_at,
        updated_at=updated_at,
        trashed_at=trashed_at,
        root=None if root is None else DialogId(given(root)),
        metadata=frozen_metadata(metadata),
    )


def session_no(connection: Connection, session_id: SessionId, *, lock: bool = False) -> int:
    """Give the number of a session; with `lock`, nobody else changes it or its tree until the end of the transaction."""
    row = ask(connection, "session_lock" if lock else "session_no", (held(session_id),)).fetchone()
    if row is None:
        raise unknown_session(PostgresRows(connection), session_id)
    return int(row[0])


def add(connection: Connection, record: SessionRecord) -> None:
    """Write a new session."""
    erased = gone(PostgresRows(connection), "session", record.session_id)
    if erased is not None:
        raise erased.error("session", record.session_id)
    if ask(connection, "session_add", _bindings(record)).rowcount == 0:
        raise InvalidInput(f"Session {record.session_id} exists already.")


def get(connection: Connection, session_id: SessionId) -> SessionRecord:
    """Read one session."""
    found = several(connection, [session_id])
    if not found:
        raise unknown_session(PostgresRows(connection), session_id)
    return found[0]


def several(connection: Connection, session_ids: Sequence[SessionId]) -> list[SessionRecord]:
    """Read sessions in the order in which they are named; what is not there is left out."""
    return [_record(row) for row in ask(connection, "sessions_get", ([held(one) for one in session_ids],))]


def newest_first(connection: Connection, chosen: Chosen, bounds: dict[str, Any]) -> list[SessionId]:
    """Give the ids of sessions, newest activity first."""
    wanted = chosen.of("session_list", "session_list_named", "session_list_about", "session_list_trashed")
    bindings = bounds | {"name": held_or_none(chosen.name), "subject": held_or_none(chosen.subject)}
    return [SessionId(given(row[0])) for row in ask(connection, wanted, bindings)]


def beginning(connection: Connection, prefix: str, limit: int) -> list[SessionId]:
    """Give ids of sessions that begin with a prefix."""
    found = ask(connection, "sessions_beginning", {"prefix": prefix, "limit": max(0, limit)})
    return [SessionId(given(row[0])) for row in found]


def change(connection: Connection, session_id: SessionId, changes: dict[str, Any]) -> SessionRecord:
    """Change what may change of a session."""
    check_changes(changes)
    session_no(connection, session_id, lock=True)
    record = checked(replace(get(connection, session_id), **changes))
    ask(connection, "session_set", _bindings(record))
    return record


def put_source(connection: Connection, record: SourceRecord) -> None:
    """Write, or replace, a source."""
    bindings = {
        name: held(value) if isinstance(value, str) else value
        for name, value in asdict(record).items()
        if name != "session_id"
    }
    ask(connection, "source_put", bindings | {"session_no": session_no(connection, record.session_id)})


def _source(row: Row) -> SourceRecord:
    identity, session_id, form, path, digest, raw, index, imported_at = row
    return SourceRecord(
        identity=given(identity),
        session_id=SessionId(given(session_id)),
        format=given(form),
        path=given(path),
        digest=given(digest),
        raw=None if raw is None else BlobId(given(raw)),
        index=None if index is None else BlobId(given(index)),
        imported_at=imported_at,
    )


def source(connection: Connection, identity: str) -> SourceRecord | None:
    """Read a source."""
    row = ask(connection, "source_get", (held(identity),)).fetchone()
    return None if row is None else _source(row)


def sources(connection: Connection, session_id: SessionId) -> tuple[SourceRecord, ...]:
    """Read the sources of a session, by identity."""
    found = map(_source, ask(connection, "sources_of", (session_no(connection, session_id),)))
    return tuple(sorted(found, key=lambda record: record.identity))
