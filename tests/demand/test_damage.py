"""D20: logs that were cut, spoilt or written by somebody newer."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from palaver import Dialog, MemoryStore, Session, Store, rebuild
from palaver.errors import UnsupportedTranscript
from palaver.log import LOST, Custom, UnknownEntry, decode_entry
from palaver.messages import canonical_json
from palaver.session.replay_log import ReplayLogWarning
from palaver.store.copying import copy_store
from palaver.transcripts import Importer, examine, examine_file, export_bundle, import_bundle
from tests.demand.ground import PAGE, Place, Proof, answers, asks, bodies, reopened, says, shown
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


PI = pi()


def taken_in(path: Path) -> tuple[Store, Dialog]:
    """Import a file, and open the dialog that it is about."""
    store = MemoryStore()
    (one,) = Importer(store).import_path(path)
    return store, Session.open(one.session_id, store).root


def _cuts(step: int) -> Iterator[int]:
    begin = PI.index(b"\n", PI.index(b"\n") + 1) + 1  # a file without a message holds no conversation
    ends = {place + more for place, byte in enumerate(PI) if byte == 10 for more in (0, 1) if place >= begin}
    return iter(sorted(ends | set(range(begin + 1, len(PI), step))))


@pytest.mark.parametrize("step", [67, pytest.param(1, marks=pytest.mark.soak)])
def test_d20_a_transcript_cut_anywhere(tmp_path: Path, proof: Proof, step: int) -> None:
    """Cut at (in CI, at each 67th and around each line's end; else at every) byte: what is whole loads, the rest is told, and it goes on."""
    path, dialog = tmp_path / "session.jsonl", small()
    for cut in _cuts(step):
        path.write_bytes(PI[:cut])
        lines = PI[:cut].splitlines()
        whole = [line for line in lines if _is_json(line)]
        _, dialog = taken_in(path)
        messages = sum(json.loads(line).get("type") == "message" for line in whole)
        assert len(dialog.messages) == messages
        codes = {finding.code for found in examine_file(path) for finding in found.findings}
        assert ("torn_tail" in codes) == (len(whole) < len(lines))
        dialog.append(asks("next"))
        assert dialog.messages[-1].content == "next"
    proof.valid(dialog)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_d20_each_record_spoilt_in_turn(tmp_path: Path, proof: Proof) -> None:
    """One bad record in the middle: everything before it and after it loads, and the report has its place."""
    path, dialog = tmp_path / "session.jsonl", small()
    listed = PI.splitlines()
    spoils = (b"{]", b'{"type": "message", "id"', b"\0\0\0\0", b"\xff\xfe", b'"text"', b"")
    for index, spoilt in ((index, spoilt) for index in range(1, len(listed)) for spoilt in spoils):
        path.write_bytes(b"\n".join([*listed[:index], spoilt, *listed[index + 1 :]]) + b"\n")
        _, dialog = taken_in(path)
        record = json.loads(listed[index])
        lost = record.get("type") == "message"
        assert len(dialog.messages) == 6 - lost
        places = {finding.place for found in examine_file(path) for finding in found.findings}
        assert not spoilt or any(str(index + 1) in place for place in places), (index, places)
        dialog.append(asks("next"))
    proof.valid(dialog)


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


@pytest.mark.parametrize("step", [31, pytest.param(1, marks=pytest.mark.soak)])
def test_d20_a_replay_log_cut_anywhere(tmp_path: Path, step: int) -> None:
    """Our own log in lines, cut anywhere: rebuilt up to the last whole line, and the next line is not glued to the torn one."""
    folder = tmp_path / "log"
    dialog = Dialog(owner="user", log_base=folder)
    dialog.append([asks("go"), says("I look.", "c1"), answers("c1", "a.py"), says("done")])
    (path,) = folder.glob("*.jsonl")
    data = path.read_bytes()
    warnings.simplefilter("ignore", ReplayLogWarning)  # a torn line that was not written again is told
    for cut in [*range(data.index(b"\n") + 1, len(data), step), len(data)]:
        path.write_bytes(data[:cut])
        whole = sum(_is_json(line) for line in data[:cut].splitlines()) - 1
        again = rebuild(folder)
        assert len(again.root.messages) == whole
        other = Session.open(again.session_id, again.store, log_base=folder)
        other.root.append(asks("next"))
        lines = path.read_bytes().splitlines()
        assert sum(_is_json(line) for line in lines) == whole + 2
        assert [message.content for message in rebuild(folder).root.messages][-1] == "next"
        path.unlink()


def test_d20_a_bundle_that_was_cut_or_flipped_is_refused_whole() -> None:
    """A bundle is one thing: cut or flipped at any of many places it is refused with the place, and no half of a session appears."""
    dialog = small()
    data = b"".join(export_bundle(dialog.store, dialog.session_id))
    for place in range(0, len(data), 41):
        for spoilt in (data[:place], data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]):
            store = MemoryStore()
            with pytest.raises(UnsupportedTranscript):
                import_bundle(store, BytesIO(spoilt).read)
            assert list(store.sessions()) == []


def test_d20_each_entry_of_a_store_spoilt_in_turn(tmp_path: Path, proof: Proof) -> None:
    """The bytes of one entry are spoilt on the disk: all others load, the place is told, the session can be asked and goes on."""
    for seq in range(6):
        backend = SqliteBackend(tmp_path / f"{seq}.db")
        store = backend.open()
        dialog = small(store)
        before = shown(dialog)
        store.close()
        backend.damage(dialog.dialog_id, seq)
        again = backend.open()
        session = Session.open(dialog.session_id, again)
        extent = session.extent(verify=True)
        assert [handle.seq for handle in extent.damaged] == [seq]
        assert extent.total - extent.reachable == 1
        found = session.root
        assert len(found.messages) == 6
        seen = shown(found)
        assert any(f"{dialog.dialog_id[:12]}:{seq}" in line for line in seen)
        kept = [line for line in before if line not in seen]
        assert len(kept) <= 2, "what the spoilt entry said is lost, and nothing else"
        proof.valid(found)
        assert {finding.code for finding in examine(again, dialog.session_id).findings} >= {"damaged_entry"}
        found.append(asks(f"next {PAGE[:20]}"))
        assert found.messages[-1].content == f"next {PAGE[:20]}"
        again.close()


def test_d20_a_gap_in_a_replay_log_is_told(tmp_path: Path) -> None:
    """A spoilt line in the middle of our own log: only that entry is lost, a warning names it, and an entry that names itself lost stands in its place."""
    folder = tmp_path / "log"
    dialog = Dialog(owner="user", log_base=folder)
    dialog.append([asks("one"), says("two"), asks("three")])
    (path,) = folder.glob("*.jsonl")
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:2], b"{spoilt", *lines[3:]]) + b"\n")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        again = rebuild(folder)
    assert shown(again.root) == ["one", "three"]
    kept = [decode_entry(body) for _, body in bodies(again.root)]
    assert isinstance(kept[1], Custom)
    assert kept[1].custom_type == LOST
    assert any(issubclass(one.category, ReplayLogWarning) and ":1 is lost" in str(one.message) for one in told)
