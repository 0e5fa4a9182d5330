"""A store with something of everything, and what it gives back: the golden file of each format.

`python -m tests.store.golden` writes those of the newest format into tests/golden: once, when a format is new, and never again after its release.
"""

import gzip
import json
import os
import subprocess
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from palaver.ids import SessionId, derive_dialog_id, derive_id
from palaver.log import Draft, Node, Span
from palaver.store import SessionRecord, SourceRecord, SqliteStore, Store
from palaver.store.copying import Copyable
from palaver.store.postgres import PostgresStore
from palaver.store.postgres.opening import address

GOLDEN = Path(__file__).parents[1] / "golden"
PAYLOAD = bytes(range(256)) * 40
SESSION, TRASHED = (SessionId(derive_id("session", name)) for name in ("kept", "trashed"))
ROOT, CHILD = (derive_dialog_id(SESSION, name) for name in ("root", "child"))


def write(store: Store) -> None:
    """Write something of everything."""
    metadata = {"a": [1, None], "b": {"c": 1.5}}
    record = SessionRecord(
        session_id=SESSION, tenant="t", name="naïve 名", subject="s", workdir="/w", created_at=1.5, metadata=metadata
    )
    root = Node(dialog_id=ROOT, session_id=SESSION, owner="coder", created_at=2.0, metadata=metadata)
    store.create_session(record, root)
    store.create_session(SessionRecord(session_id=TRASHED, created_at=1.0, trashed_at=2.0))
    drafts = [
        Draft("turn_started", "", 0, (), (), "", 3.0, b"{}"),
        Draft("message", "user", 1, (), (), "", 4.0, "find foo_bar 你好".encode()),
        Draft("message", "assistant", 1, ("c1", 'c,"2'), (), "r1", 5.0, b"calling"),
        Draft("call_started", "", 0, (), ("c1",), "", 6.0, b"started"),
        Draft("message", "tool", 1, (), ("c1",), "", 7.0, b"\x31" * 9000),
        Draft("from_a_later_version", "", 0, (), (), "", 8.0, b"unknown"),
    ]
    store.append(ROOT, drafts, -1)
    store.annotate(ROOT, Draft("label", "", 0, (), (), "", 9.0, b"a label"))
    store.annotate(ROOT, Draft("compaction", "", 0, (), (), "", 10.0, b"a summary"))
    fork = Node(
        dialog_id=CHILD,
        session_id=SESSION,
        parent_id=ROOT,
        ranges=(Span(ROOT, 0, 3),),
        split_point=2,
        last_n=0,
        first_k=1,
        inherited=2,
        created_at=11.0,
        relation="fork",
    )
    store.create_dialog(fork)
    store.append(CHILD, [drafts[1]], -1)
    raw = store.put_blob(PAYLOAD)
    source = SourceRecord(
        identity="f:1", session_id=SESSION, format="f", path="/p", digest="d", raw=raw, imported_at=12.0
    )
    store.put_source(source)
    store.index(lambda _kind, body: body.decode(), limit=5)


def content(store: Copyable) -> dict[str, Any]:
    """Return all that a store holds, as JSON."""
    records = [*store.sessions(), *store.sessions(trashed=True)]
    found = {word: sorted(str(hit.handle) for hit in store.search(word)) for word in ("foo_bar", "你", "calling")}
    return {
        "sessions": {
            r.session_id: {name: _plain(getattr(r, name)) for name in SessionRecord.__slots__} for r in records
        },
        "dialogs": {n.dialog_id: _dialog(store, n) for r in records for n in store.nodes(r.session_id)},
        "sources": [
            {name: getattr(s, name) for name in SourceRecord.__slots__}
            for r in records
            for s in store.sources(r.session_id)
        ],
        "blobs": {blob: b64encode(store.blob(blob)).decode() for blob in store.blob_ids()},
        "found": found,
    }


def _dialog(store: Store, node: Node) -> dict[str, Any]:
    described = {name: _plain(getattr(node, name)) for name in Node.__slots__ if name != "ranges"}
    headers = [header._asdict() | {"digest": header.digest.hex()} for header in store.headers(node.dialog_id)]
    bodies = [b64encode(body).decode() for _seq, body in store.bodies(node.dialog_id)]
    return described | {"ranges": [astuple(span) for span in node.ranges], "headers": headers, "bodies": bodies}


def _plain(value: object) -> Any:  # noqa: ANN401 - any JSON value
    return json.loads(json.dumps(dict(value))) if isinstance(value, Mapping) else value


def described(store: Store) -> Any:  # noqa: ANN401 - JSON
    """Return all that a store holds, as it comes back from JSON."""
    assert isinstance(store, Copyable)
    return json.loads(json.dumps(content(store)))


def main() -> None:
    """Write the golden files of the newest format."""
    from tests.postgres_wheel import wheel_server  # noqa: PLC0415 - a test's own

    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with SqliteStore(path) as store:
            write(store)
            told = json.dumps(described(store), indent=1, ensure_ascii=False, sort_keys=True)
        _keep("store-v1.db.gz", path.read_bytes())
    (GOLDEN / "store-v1.json").write_text(told + "\n", "utf-8")
    with wheel_server() as server:
        url = server.url("golden")
        with PostgresStore(url) as other:
            write(other)
            assert described(other) == json.loads(told)
        command = [
            str(server.programs / "pg_dump"),
            "--schema=golden",
            "--inserts",
            "--no-owner",
            address(url).conninfo,
        ]
        dumped = subprocess.run(command, capture_output=True, check=True, env={"PATH": os.defpath}).stdout
        lines = [
            line for line in dumped.splitlines() if not line.startswith((b"\\", b"SET ", b"SELECT pg_catalog.set"))
        ]
        _keep("postgres-v1.sql.gz", b"\n".join(lines) + b"\n")


def _keep(name: str, data: bytes) -> None:
    (GOLDEN / name).write_bytes(gzip.compress(data, mtime=0))


if __name__ == "__main__":
    main()
