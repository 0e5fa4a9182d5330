"""D20: logs that were cut, spoilt or written by somebody newer."""

from __future__ import annotations

import itertools
import json
from io import BytesIO
from pathlib import Path

from palaver import Dialog, MemoryStore, Session, Store
from palaver.log import UnknownEntry, decode_entry
from palaver.messages import canonical_json
from palaver.store.copying import copy_store
from palaver.transcripts import Importer, examine, examine_file, export_bundle, import_bundle
from tests.demand.ground import PAGE, Place, answers, asks, bodies, reopened, says, shown, valid
from tests.store.backends import SqliteBackend


def small(store: Store | None = None) -> Dialog:
    """Return a short conversation."""
    dialog = Dialog(owner="user", store=store)
    dialog.append([asks("go"), says("I look.", "c1"), answers("c1", "a.py"), says("done"), asks("and?"), says("well")])
    return dialog


def pi() -> bytes:
    """Return the same conversation as a file of pi's, with a record of an unknown kind in the middle."""
    call: dict[str, object] = {"type": "toolCall", "id": "c1", "name": "shell", "arguments": {"command": "run c1"}}
    result = {"toolCallId": "c1", "toolName": "shell", "isError": False}
    said: list[tuple[str, list[dict[str, object]], dict[str, object]]] = [
        ("user", [_text("go")], {}),
        ("assistant", [_text("I look."), call], {}),
        ("toolResult", [_text("a.py")], result),
        ("assistant", [_text("done")], {}),
        ("user", [_text("and?")], {}),
        ("assistant", [_text("well")], {}),
    ]
    records: list[dict[str, object]] = [
        {"type": "message", "message": {"role": role, "content": content, "timestamp": 1_795_441_109_000, **more}}
        for role, content, more in said
    ]
    records.insert(2, {"type": "hologram", "light": [1.5, "\u00fc"]})
    at = "2026-11-23T13:38:29.000Z"
    head = {"type": "session", "version": 3, "id": "b7f4cc9fda8a1649c8546aca1bb4b373", "timestamp": at, "cwd": ""}
    chained = [
        {**each, "id": f"ff00ff0{number}", "parentId": f"ff00ff0{number - 1}" if number else None, "timestamp": at}
        for number, each in enumerate(records)
    ]
    return b"\n".join(map(canonical_json, [head, *chained])) + b"\n"


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def test_d20_each_record_spoilt_in_turn(tmp_path: Path) -> None:
    """One bad record, or none after a torn one: all that is whole loads, the report has the place, and the session goes on."""
    path, listed, dialog = tmp_path / "session.jsonl", pi().splitlines(), small()
    spoils = (b"{]", b'{"type": "message", "id"', b"\0\0\0\0", b"\xff\xfe", b'"text"', b"")
    said = [json.loads(line).get("type") == "message" for line in listed]
    for index, spoilt, torn in itertools.product(range(1, len(listed)), spoils, (False, True)):
        if torn and index < 2:
            continue  # a file without a message holds no conversation
        after = [] if torn else [*listed[index + 1 :], b""]
        path.write_bytes(b"\n".join([*listed[:index], spoilt, *after]))
        store = MemoryStore()
        (one,) = Importer(store).import_path(path)
        dialog = Session.open(store, one.session_id).root
        assert len(dialog.messages) == sum(said[:index]) + (0 if torn else sum(said[index + 1 :]))
        places = {finding.place for found in examine_file(path) for finding in found.findings}
        assert not spoilt or any(str(index + 1) in place for place in places), (index, spoilt, places)
        dialog.append(asks("next"))
    valid(dialog)


def test_d20_unknown_records_survive_being_rewritten(place: Place) -> None:
    """A record of a kind that nobody knows: written out again byte for byte, from every store."""
    dialog = small(place.open())
    dialog.record(
        UnknownEntry.model_validate({"kind": "hologram", "at": 1.5, "light": {"ü": [1, None, "\N{SNOWMAN}"]}})
    )
    dialog.append(asks("next"))
    written = bodies(dialog)
    found = reopened(place, dialog)
    assert bodies(found) == written
    assert decode_entry(written[6][1]).kind == "hologram"
    other = MemoryStore()
    copy_store(found.store, other)
    assert list(other.bodies(dialog.dialog_id)) == written
    third = MemoryStore()
    import_bundle(third, BytesIO(b"".join(export_bundle(other, dialog.session_id))).read)
    assert list(third.bodies(dialog.dialog_id)) == written
    assert shown(found)[-1] == "next"


def test_d20_each_entry_of_a_store_spoilt_in_turn(tmp_path: Path) -> None:
    """The bytes of one entry are spoilt on the disk: all others load, the place is told, the session can be asked and goes on."""
    for seq in range(6):
        backend = SqliteBackend(tmp_path / f"{seq}.db")
        store = backend.open()
        dialog = small(store)
        before = shown(dialog)
        store.close()
        backend.damage(dialog.dialog_id, seq)
        again = backend.open()
        session = Session.open(again, dialog.session_id)
        extent = session.extent(verify=True)
        assert [handle.seq for handle in extent.damaged] == [seq]
        assert extent.total - extent.reachable == 1
        found = session.root
        assert len(found.messages) == 6
        seen = shown(found)
        assert any(f"{dialog.dialog_id[:12]}:{seq}" in line for line in seen)
        kept = [line for line in before if line not in seen]
        assert len(kept) <= 2, "what the spoilt entry said is lost, and nothing else"
        valid(found)
        assert {finding.code for finding in examine(again, dialog.session_id).findings} >= {"damaged_entry"}
        found.append(asks(f"next {PAGE[:20]}"))
        assert found.messages[-1].content == f"next {PAGE[:20]}"
        again.close()
