"""Golden files of the log: every kind of entry, a bundle, and a recorded call with its view and request.

Entries are lines of JSON, written by hand, in an order that the log accepts: one of every kind, and two of a later version. `python -m
tests.transcripts.golden` makes the bundle and the request of them: once for each version, and never again after its release.
"""

from __future__ import annotations

from pathlib import Path

from palaver import Session
from palaver.ids import DialogId, SessionId, derive_dialog_id, derive_id
from palaver.log import Entry, Node, Span, decode_entry, draft, rule
from palaver.messages import canonical_json
from palaver.store import MemoryStore, SessionRecord, Store
from palaver.transcripts import export_bundle
from palaver.wire import Request

GOLDEN = Path(__file__).parent.parent / "golden"
VERSION = 1

SESSION = SessionId(derive_id("session", "golden"))
ROOT, CHILD = (derive_dialog_id(SESSION, name) for name in ("root", "child"))


def _put(store: Store, dialog: DialogId, entry: Entry) -> None:
    last = store.last(dialog)
    ready, _ = draft(entry)
    if rule(entry.kind).turn:
        store.append(dialog, [ready], last.turn_head)
    else:
        store.annotate(dialog, ready)


def write(store: Store, lines: list[bytes]) -> Store:
    """Write a session with these entries, a fork, and a recorded call."""
    about = {"of_later": {"x": [1]}}
    store.create_session(SessionRecord(session_id=SESSION, name="golden", created_at=1.0, metadata=about))
    store.create_dialog(Node(dialog_id=ROOT, session_id=SESSION, owner="a", created_at=1.0))
    store.update_session(SESSION, root=ROOT)
    for line in lines:
        _put(store, ROOT, decode_entry(line))
    Session.open(store, SESSION).dialog(ROOT).calls.record(request(store))
    ranges = (Span(ROOT, 0, 12),)
    store.create_dialog(
        Node(
            dialog_id=CHILD,
            session_id=SESSION,
            owner="a",
            parent_id=ROOT,
            ranges=ranges,
            split_point=4,
            last_n=0,
            first_k=4,
            inherited=4,
            created_at=91.0,
            relation="fork",
        )
    )
    words = {"role": "user", "id": "m92", "timestamp": 92.0, "contents": [{"type": "text", "content": "Elsewhere?"}]}
    _put(store, CHILD, decode_entry(canonical_json({"at": 92.0, "kind": "message", "message": words})))
    return store


def request(store: Store) -> Request:
    """Compile what the golden session's root would send next."""
    return Session.open(store, SESSION).dialog(ROOT).request("anthropic", "claude-sonnet-4-5", max_tokens=400)


def main() -> None:
    """Write the files."""
    store = write(MemoryStore(), (GOLDEN / f"entries-v{VERSION}.jsonl").read_bytes().splitlines())
    (GOLDEN / f"request-v{VERSION}.json").write_bytes(request(store).data + b"\n")
    (GOLDEN / f"bundle-v{VERSION}.palaver").write_bytes(b"".join(export_bundle(store, SESSION)))


if __name__ == "__main__":
    main()
