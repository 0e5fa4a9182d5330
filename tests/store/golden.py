"""The store of each old format, as it was when that format was the newest.

`python -m tests.store.golden` writes the newest one into tests/golden: once, when a format is new, and never again after its release.
"""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from palaver.ids import BlobId, DialogId, SessionId, derive_id
from palaver.log import Draft, Node, Span
from palaver.store import SessionRecord, SourceRecord, SqliteStore, Store
from palaver.store.sqlite.opening import newest_format

PAYLOAD = bytes(range(256)) * 40


def _text(_kind: str, body: bytes) -> str:
    return body.decode()


def write(store: Store) -> None:
    """Write something of everything."""
    session, trashed = (SessionId(derive_id("session", name)) for name in ("kept", "trashed"))
    root, child = (DialogId(derive_id("dialog", name)) for name in ("root", "child"))
    store.create_session(
        SessionRecord(
            session_id=session, name="naïve 名", subject="s", workdir="/w", created_at=1.5, metadata={"a": [1, None]}
        )
    )
    store.create_session(SessionRecord(session_id=trashed, created_at=1.0, trashed_at=2.0))
    store.create_dialog(
        Node(dialog_id=root, session_id=session, owner="coder", created_at=2.0, metadata={"b": {"c": 1.5}})
    )
    store.update_session(session, root=root)
    drafts = [
        Draft("turn_started", "", 0, (), (), "", 3.0, b"{}"),
        Draft("message", "user", 1, (), (), "", 4.0, "find foo_bar 你好".encode()),
        Draft("message", "assistant", 1, ("c1", 'c,"2'), (), "r1", 5.0, b"calling"),
        Draft("call_started", "", 0, (), ("c1",), "", 6.0, b"started"),
        Draft("message", "tool", 1, (), ("c1",), "", 7.0, b"\x31" * 9000),
        Draft("from_a_later_version", "", 0, (), (), "", 8.0, b"unknown"),
    ]
    store.append(root, drafts, -1)
    store.annotate(root, Draft("label", "", 0, (), (), "", 9.0, b"a label"))
    store.annotate(root, Draft("compaction", "", 0, (), (), "", 10.0, b"a summary"))
    store.create_dialog(
        Node(
            dialog_id=child,
            session_id=session,
            parent_id=root,
            ranges=(Span(root, 0, 3),),
            split_point=2,
            last_n=0,
            first_k=1,
            inherited=2,
            created_at=11.0,
            relation="fork",
        )
    )
    store.append(child, [drafts[1]], -1)
    blob = store.put_blob(PAYLOAD)
    store.put_source(
        SourceRecord(identity="f:1", session_id=session, format="f", path="/p", digest="d", raw=blob, imported_at=12.0)
    )
    store.index(_text, limit=5)


def content(store: Store) -> dict[str, Any]:
    """Give all that a store holds, as JSON."""
    records = [*store.sessions(), *store.sessions(trashed=True)]
    return {
        "sessions": [{name: getattr(r, name) for name in SessionRecord.__slots__} for r in records],
        "dialogs": [_dialog(store, node) for record in records for node in store.nodes(record.session_id)],
        "sources": [
            {name: getattr(s, name) for name in SourceRecord.__slots__}
            for r in records
            for s in store.sources(r.session_id)
        ],
        "blobs": {blob: b64encode(store.blob(blob)).decode() for blob in _blobs(store)},
        "lag": store.index_lag(),
        "found": {word: sorted(str(hit.handle) for hit in store.search(word)) for word in ("foo_bar", "你", "calling")},
    }


def _dialog(store: Store, node: Node) -> dict[str, Any]:
    described = {name: getattr(node, name) for name in Node.__slots__ if name != "ranges"}
    headers = [header._asdict() | {"digest": header.digest.hex()} for header in store.headers(node.dialog_id)]
    bodies = [b64encode(body).decode() for _seq, body in store.bodies(node.dialog_id)]
    ranges = [(span.dialog, span.start, span.stop) for span in node.ranges]
    return described | {"ranges": ranges, "headers": headers, "bodies": bodies}


def _blobs(store: Store) -> Iterator[BlobId]:
    for record in store.sessions():
        yield from (source.raw for source in store.sources(record.session_id) if source.raw is not None)


def main() -> None:
    """Write the golden file of the newest format."""
    to = Path(__file__).parents[1] / "golden"
    to.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        store = SqliteStore(path)
        write(store)
        described = json.dumps(content(store), indent=1, ensure_ascii=False, sort_keys=True)
        store.close()
        name = f"store-v{newest_format()}"
        (to / f"{name}.db.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    (to / f"{name}.json").write_text(described + "\n", "utf-8")


if __name__ == "__main__":
    main()
