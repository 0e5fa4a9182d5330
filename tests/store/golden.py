"""A store with something of everything: the golden file of each format.

`python -m tests.store.golden` writes those of the newest format into tests/golden: once, when a format is new, and never again after its release.
"""

import gzip
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from palaver.ids import SessionId, derive_dialog_id, derive_id
from palaver.log import Draft, Node, Span
from palaver.store import SessionRecord, SourceRecord, SqliteStore, Store
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
    raw = store.put_blob(SESSION, PAYLOAD)
    source = SourceRecord(
        identity="f:1", session_id=SESSION, format="f", path="/p", digest="d", raw=raw, imported_at=12.0
    )
    store.put_source(source)
    store.index(lambda _kind, body: body.decode(), limit=5)


def main() -> None:
    """Write the golden files of the newest format."""
    from tests.postgres_wheel import wheel_server  # noqa: PLC0415 - a test's own

    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with SqliteStore(path) as store:
            write(store)
        _keep("store-v1.db.gz", path.read_bytes())
    with wheel_server() as server:
        url = server.url("golden")
        with PostgresStore(url) as other:
            write(other)
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
