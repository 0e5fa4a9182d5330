"""OpenCode's SQLite database as an archive: one member per session, in the format of `opencode export`.

No file is created next to the database. A reader of a write-ahead log would create an index, so the log is read with OpenCode's own
index, and a database without a log is opened as immutable. The tables are those of OpenCode 1.18.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import apsw

from palaver.formats.archives import Unpacked
from palaver.formats.streams import Chunks, Layer, Opener, ReadLimits

_MAGIC = b"SQLite format 3\0"  # sqlite.org/fileformat.html, section 1.3
_TABLES = frozenset({"session", "message", "part"})
_RENAMED = {"project_id": "projectID", "workspace_id": "workspaceID", "parent_id": "parentID"}
_GROUPS = ("time", "tokens_cache", "tokens", "summary", "share")
"""The prefixes of columns that the export groups in an object."""


def is_database(path: Path) -> bool:
    """Return whether a file is an SQLite database."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def sessions(path: Path, limits: ReadLimits) -> Unpacked:
    """Find OpenCode's sessions in a database, parents before their sub-agents, in one consistent snapshot.

    Raises:
        OSError: The database cannot be read, or has no sessions of OpenCode.
    """
    try:
        database = apsw.Connection(_address(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            keys = _keys(database, limits.records + 1)
        except BaseException:
            database.close()
            raise
    except apsw.Error as error:
        raise OSError(f"SQLite: {error}") from error
    faults = (("database", f"it has more than {limits.records:,} sessions, the limit"),)
    layers = tuple(Layer(key, _export(database, key)) for key in keys[: limits.records])
    return Unpacked(layers, archive=True, faults=faults if len(keys) > len(layers) else (), spool=database, apart=True)


def _keys(database: apsw.Connection, limit: int) -> list[str]:
    """Return the ids of the sessions, in a transaction that lasts as long as the connection."""
    database.execute("BEGIN")
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    rows = (
        database.execute("SELECT id FROM session ORDER BY time_created, id LIMIT ?", (limit,))
        if tables >= _TABLES
        else ()
    )
    keys = [str(key) for (key,) in rows]
    if not keys:
        raise OSError("it is an SQLite database without sessions of OpenCode")
    return keys


def _address(path: Path) -> str:
    log, index = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    unwritten = log.exists() and log.stat().st_size
    if unwritten and not index.exists():
        raise OSError(f"the index of its write-ahead log, {index.name}, is missing: copy it next to the database")
    return f"file:{quote(str(path.resolve()))}?{'readonly_shm=1' if unwritten else 'immutable=1'}"


def _export(database: apsw.Connection, key: str) -> Opener:
    def opener() -> Chunks:
        try:
            rows = database.execute("SELECT * FROM session WHERE id = ?", (key,))
            names = [name for name, _ in rows.get_description()]
            yield _json('{"info":', _info(dict(zip(names, next(rows), strict=True))), ',\n"messages":[')
            ordered = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
            for number, (message, said) in enumerate(database.execute(ordered, (key,))):
                ids = {"sessionID": key, "messageID": message}
                stored = database.execute("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (message,))
                parts = [_row(data, {"id": part, **ids}) for part, data in stored]
                info = _row(said, {"id": message, "sessionID": key})
                yield _json("," if number else "", {"info": info, "parts": parts}, "")
            yield b"]}\n"
        except apsw.Error as error:
            return f"SQLite: {error}"
        return ""

    return opener


def _json(before: str, value: object, after: str) -> bytes:
    return f"{before}{json.dumps(value, separators=(',', ':'), default=str)}{after}".encode()


def _info(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of a session in the export's format, without empty columns."""
    info: dict[str, object] = {}
    for column, value in row.items():
        if value is None:
            continue
        group = next((prefix for prefix in _GROUPS if column.startswith(f"{prefix}_")), "")
        inner = info
        for name in group.split("_") if group else ():
            inner = inner.setdefault(name, {})  # type: ignore[assignment]
        plain = _value(value) if isinstance(value, str) and value[:1] in "[{" else value
        inner[_RENAMED.get(column, column.removeprefix(f"{group}_"))] = plain
    return info


def _row(data: object, ids: Mapping[str, object]) -> object:
    value = _value(data)
    return {**value, **ids} if isinstance(value, dict) else data


def _value(text: object) -> object:
    """Return the JSON value of a text, or the text if it is not JSON."""
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        return text
