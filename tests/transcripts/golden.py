"""Golden files of the log: every kind of entry, a bundle, and a recorded call with its view and request.

`python -m tests.transcripts.golden` writes the files into tests/golden: once for each version, and never again after its release.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def _said(role: str, number: int, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    return {"role": role, "id": f"m{number}", "timestamp": float(number), **fields}


def _text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": words}]


def entries() -> Iterator[dict[str, Any]]:
    """Return one entry of every kind, in an order that the log accepts, and two of a later version."""
    place = {"dialog": ROOT, "seq": 4, "block": 0}
    yield {"kind": "instructions", "sections": [{"name": "role", "text": "Be brief."}]}
    yield {
        "kind": "toolset",
        "tools": [{"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}],
    }
    yield {"kind": "model_change", "model": "claude-sonnet-4-5", "provider": "anthropic"}
    yield {"kind": "turn_started", "agent": "a"}
    yield {
        "kind": "message",
        "message": _said("user", 4, contents=_text("Look.")),
        "source": {"format": "f", "record": "r", "ordinal": 3},
    }
    thought = {
        "type": "thinking",
        "content": "hm",
        "signature": "c2ln",
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
    }
    call = {"type": "tool_call", "id": "c1", "name": "look", "args": {"at": "it"}}
    yield {
        "kind": "message",
        "message": _said("assistant", 5, contents=[thought, call], response_id="r1", model="claude-sonnet-4-5"),
    }
    yield {"kind": "call_started", "call_id": "c1", "tool": "look"}
    yield {"kind": "approval", "call_id": "c1", "decision": "approve", "by": "me"}
    yield {
        "kind": "message",
        "message": _said("tool", 8, contents=[{"type": "tool_result", "id": "c1", "name": "look", "content": "seen"}]),
    }
    yield {
        "kind": "late_result",
        "message": _said("tool", 9, contents=[{"type": "tool_result", "id": "c1", "content": "late"}]),
    }
    yield {"kind": "inbox", "message": _said("user", 10, contents=_text("Stop?"))}
    yield {"kind": "message", "message": _said("assistant", 11, contents=_text("A dot."), response_id="r2")}
    yield {"kind": "turn_ended", "outcome": "final"}
    yield {"kind": "mode_change", "mode": "plan", "value": "on"}
    yield {"kind": "error", "error": "timeout", "data": {"status": 504}}
    yield {"kind": "custom", "custom_type": "note", "data": {"a": [1, None]}}
    yield {"kind": "label", "target": place, "label": "first"}
    yield {"kind": "pin", "target": {"dialog": ROOT, "seq": 4}}
    yield {"kind": "branch_summary", "summary": "Elsewhere it rained.", "trust": "outside"}
    yield {"kind": "quarantine", "target": {"dialog": ROOT, "seq": 11, "block": 0}, "reason": "refused"}
    yield {
        "kind": "context_edit",
        "base": 18,
        "edits": [{"target": {"dialog": ROOT, "seq": 8, "block": 0}, "text": "[recall]", "reason": "offloaded"}],
    }
    yield {
        "kind": "compaction",
        "base": 20,
        "pieces": [{"dialog": ROOT, "start": 0, "stop": 21}],
        "leading": 0,
        "policy": "p",
        "tokens_before": 9,
        "tokens_after": 8,
    }
    yield {"kind": "tombstone", "was": "of_a_later_version"}
    yield {"kind": "of_a_later_version", "anything": {"deep": [1, "ü", None]}, "message": "no message of ours"}
    yield {
        "kind": "message",
        "message": _said("user", 25, contents=_text("And now?"), of_later=[1]),
        "of_later": {"x": 1},
    }


def bodies() -> list[bytes]:
    """Return the entries as they are written, each a second after the one before."""
    given = [canonical_json({"at": 1.0 + number, **entry}) for number, entry in enumerate(entries())]
    return [draft(decode_entry(line))[0].body for line in given]


def _put(store: Store, dialog: DialogId, entry: Entry) -> None:
    last = store.last(dialog)
    ready, _ = draft(entry)
    if rule(entry.kind).turn:
        store.append(dialog, [ready], last.turn_head)
    else:
        store.annotate(dialog, ready)


def write(store: Store, lines: list[bytes]) -> Store:
    """Write a session with these entries, a fork, and a recorded call."""
    store.create_session(
        SessionRecord(session_id=SESSION, name="golden", created_at=1.0, metadata={"of_later": {"x": [1]}})
    )
    store.create_dialog(Node(dialog_id=ROOT, session_id=SESSION, owner="a", created_at=1.0))
    store.update_session(SESSION, root=ROOT)
    for line in lines:
        _put(store, ROOT, decode_entry(line))
    Session.open(SESSION, store).dialog(ROOT).calls.record(request(store))
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
    _put(
        store,
        CHILD,
        decode_entry(
            canonical_json({"at": 92.0, "kind": "message", "message": _said("user", 92, contents=_text("Elsewhere?"))})
        ),
    )
    return store


def request(store: Store) -> Request:
    """Compile what the golden session's root would send next."""
    return Session.open(SESSION, store).dialog(ROOT).request("anthropic", "claude-sonnet-4-5", max_tokens=400)


def main() -> None:
    """Write the files."""
    (GOLDEN / f"entries-v{VERSION}.jsonl").write_bytes(b"".join(line + b"\n" for line in bodies()))
    store = write(MemoryStore(), bodies())
    (GOLDEN / f"request-v{VERSION}.json").write_bytes(request(store).data + b"\n")
    (GOLDEN / f"bundle-v{VERSION}.palaver").write_bytes(b"".join(export_bundle(store, SESSION)))


if __name__ == "__main__":
    main()
