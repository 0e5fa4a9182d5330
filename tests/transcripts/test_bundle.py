"""Bundles: a session leaves whole and arrives whole, or is refused and nothing is written."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial, reduce
from io import BytesIO
from operator import getitem
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    PalaverError,
    StoreDamaged,
    StoreError,
    UnsupportedTranscript,
)
from palaver.formats import ReadLimits
from palaver.ids import SessionId, new_session_id
from palaver.log import (
    BlockEdit,
    BranchSummary,
    Compaction,
    ContextEdit,
    Label,
    MessageEntry,
    Place,
    Quarantine,
    Run,
    child_of,
    draft,
)
from palaver.messages import ImageContent, TextContent, UserMessage
from palaver.session import Session
from palaver.store import verify_store
from palaver.store.memory import MemoryStore
from palaver.store.protocol import SourceRecord
from palaver.testing.logs import Log, model, result, system, user
from palaver.transcripts.bundle import export_bundle, import_bundle, import_bundle_file
from palaver.transcripts.frames import Frame, read_frames, write_frames
from tests.stores import fingerprint
from tests.transcripts.test_importing import FullStore

_PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


def sample() -> Log:
    """Return a session with a fork, a picture, an annotation, a compaction and an open call."""
    log = Log()
    said = [system("be brief"), user("hi"), model("", "a"), result("a"), model("done", response="r")]
    log.put(*said, model("!", response="r"))
    log.put(UserMessage(contents=(TextContent("see"), ImageContent(images=(_PNG,)))))
    log.put(Label(target=Place(dialog=log.dialog, seq=1), label="start"))
    pieces = (Run(dialog=log.dialog, start=0, stop=2), Run(dialog=log.dialog, start=6, stop=7))
    log.put(Compaction(base=6, pieces=pieces))
    log.fork().put(user("elsewhere"), model("", "b"))
    log.put(user("on"))
    return log


def bundle(log: Log) -> bytes:
    """Export a log's session."""
    return b"".join(export_bundle(log.store, log.session))


def taken(store: MemoryStore, data: bytes) -> int:
    """Import a bundle, and return how many entries that wrote."""
    return import_bundle(store, BytesIO(data).read).entries


def test_export_import_export_gives_the_same_bytes() -> None:
    """Importing it again changes nothing, and a grown bundle adds what is new."""
    log, other = sample(), MemoryStore()
    data = bundle(log)
    found = import_bundle(other, BytesIO(data).read)
    assert (found.dialogs, found.entries) == (2, 12)
    assert b"".join(export_bundle(other, found.session_id)) == data
    assert other.session(found.session_id).trashed_at is None
    elsewhere = other.nodes(found.session_id)[1].dialog_id
    moved = other.update_session(found.session_id, root=elsewhere, trashed_at=1.0)
    log.put(model("more"))
    assert taken(other, data) == 0
    assert other.session(found.session_id) == moved
    assert taken(other, bundle(log)) == 1
    log.fork()
    found = import_bundle(other, BytesIO(bundle(log)).read)
    assert (found.entries, found.added) == (0, 1)


def test_bundle_moves_a_session_unless_it_was_moved_here() -> None:
    """A bundle that brings a fork, and goes on there, is followed; a session that goes on in a dialog of its own is not moved."""
    log = sample()
    before, fork = bundle(log), log.fork().dialog
    log.store.update_session(log.session, root=fork)
    for moved in (False, True):
        store = MemoryStore()
        taken(store, before)
        here = (
            store.create_dialog(child_of(store.node(log.dialog), (), 0, relation="fork")).dialog_id
            if moved
            else log.dialog
        )
        store.update_session(log.session, root=here, trashed_at=1.0)
        taken(store, bundle(log))
        assert store.session(log.session).root == (here if moved else fork)
        assert store.session(log.session).trashed_at is None


def test_another_history_of_the_same_session_is_a_conflict() -> None:
    """Two stores that continued a session differently are not mixed; the store is as it was."""
    log, other = sample(), MemoryStore()
    taken(other, bundle(log))
    log.put(model("here"))
    there = draft(MessageEntry(message=model("there")))[0]
    other.append(log.dialog, [there], other.last(log.dialog).turn_head)
    before = fingerprint(other)
    with pytest.raises(Conflict, match="another history"):
        taken(other, bundle(log))
    assert fingerprint(other) == before


_BUNDLE = bundle(sample())


@settings(max_examples=200)
@given(st.integers(0, len(_BUNDLE) - 1), st.integers(0, 7))
def test_flipped_bit_anywhere_is_found(place: int, bit: int) -> None:
    """D20: no flipped bit goes unseen."""
    flipped = bytearray(_BUNDLE)
    flipped[place] ^= 1 << bit
    with pytest.raises(UnsupportedTranscript):
        taken(MemoryStore(), bytes(flipped))


_FRAMES = st.tuples(st.sampled_from(["blob", "entry"]), st.binary(max_size=40)).map(lambda pair: Frame(*pair))


@given(st.lists(_FRAMES, max_size=6))
def test_frames_are_read_as_they_were_written(frames: list[Frame]) -> None:
    """Whatever bytes a payload holds, newlines and heads of frames too."""
    assert list(read_frames(BytesIO(b"".join(write_frames(frames))).read, "it")) == frames


# --- a bundle that lies -------------------------------------------------------------------------------------------------------


def refused(frames: Sequence[Frame]) -> str:
    """Import frames whose sums are right into a store that has another session, and return why they are refused."""
    store = sample().store
    before = fingerprint(store)
    with pytest.raises(UnsupportedTranscript) as raised:
        taken(store, b"".join(write_frames(frames)))
    assert fingerprint(store) == before, "nothing was written"
    return raised.value.why


def test_what_is_no_bundle_is_refused() -> None:
    """The error says what it is; bytes of the right sums and no session, too."""
    for data, why in [
        (b"hello", "not a palaver bundle"),
        (b"palaver-bundle 1\nhello", "damaged at byte 17"),
        (b"palaver-bundle 2\n", "version 2, and this palaver reads version 1"),
        (b"".join(write_frames([])), "holds no session"),
    ]:
        with pytest.raises(UnsupportedTranscript, match=why):
            taken(MemoryStore(), data)


def changed(kind: str, change: Callable[[dict[str, Any]], object], nth: int = 0) -> list[Frame]:
    """Return the sample's frames, with the fields of one changed."""
    frames = list(read_frames(BytesIO(_BUNDLE).read, "it"))
    place = [index for index, frame in enumerate(frames) if frame.kind == kind][nth]
    fields = json.loads(frames[place].payload)
    change(fields)
    frames[place] = Frame(kind, json.dumps(fields).encode())
    return frames


def test_frame_that_declares_gigabytes_allocates_nothing() -> None:
    """Its length is a claim; what is there is read in small pieces."""
    tracemalloc.start()
    with pytest.raises(UnsupportedTranscript, match="bytes early"):
        taken(MemoryStore(), b"palaver-bundle 1\nblob 8000000000 " + b"0" * 64 + b"\nshort")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_compressed_bundle_meets_the_limit(tmp_path: Path) -> None:
    """It unpacks to no more than the limit, which is told and can be raised."""
    path = tmp_path / "b.gz"
    path.write_bytes(gzip.compress(b"palaver-bundle 1\nblob 90000000 " + b"0" * 64 + b"\n" + bytes(50_000_000)))
    with pytest.raises(UnsupportedTranscript, match="more than 1,000,000 bytes, the limit"):
        import_bundle_file(MemoryStore(), path, ReadLimits(unpacked=1_000_000))


def _share(span: list[int], fields: dict[str, Any]) -> None:
    fields["ranges"][0][1:3] = span


def _bound(bound: dict[str, object], fields: dict[str, Any]) -> None:
    fields["pieces"][0].update(bound)


def test_bundle_names_only_what_is_there() -> None:
    """Ranges, runs and targets end where their dialogs do, before anybody counts through them; pictures have their bytes."""
    for span in ([0, 10**12], [-1, 2], [3, 2], [7, 13]):
        assert refused(changed("dialog", partial(_share, span), 1)), span
    bounds: tuple[dict[str, object], ...] = (
        {"stop": 10**12},
        {"start": -1},
        {"start": 9, "stop": 2},
        {"dialog": "0" * 32},
    )
    for bound in bounds:
        assert refused(changed("annotation", partial(_bound, bound), 1)), bound
    assert "names entry 99" in refused(changed("annotation", lambda fields: fields["target"].update(seq=99)))
    frames = [frame for frame in read_frames(BytesIO(_BUNDLE).read, "it") if frame.kind != "blob"]
    assert "cannot be read" in refused(frames)


def _changed_entry(kind: str, change: Callable[[dict[str, Any]], object]) -> list[Frame]:
    """Return the frames of a session with everything, with one entry of a kind changed."""
    frames = list(_EVERYTHING)
    place, fields = next(
        (index, json.loads(frame.payload))
        for index, frame in enumerate(frames)
        if frame.kind == "annotation" and json.loads(frame.payload)["kind"] == kind
    )
    change(fields)
    frames[place] = Frame("annotation", json.dumps(fields).encode())
    return frames


def everything() -> list[Frame]:
    """Return the frames of a session with forks, windows, pictures, marks, edits, a recorded call, and compactions that were undone."""
    root = Session.create(MemoryStore(), "everything").root
    root.append([system("be brief"), user("hi"), model("", "a"), result("a"), model("done")])
    root.append([UserMessage(contents=(TextContent("see"), ImageContent(images=(_PNG,)))), model("a picture")])
    for number in range(6):
        root.append([user(f"{number} " + "w " * 60), model(f"{number} " + "v " * 60)])
    root.marks.label(root.messages.handle(1), "start")
    root.marks.pin(root.messages.handle(2))
    fork = root.fork()
    fork.append([user("elsewhere"), model("", "b")])
    root.compaction.preview("palaver", 400).approve()
    root.compaction.undo()
    root.append([user("on"), model("ok")])
    root.fork(last_n=3, first_k=1).append([user("in a window"), model("yes")])
    root.compaction.preview("palaver", 300).approve()
    root.calls.record(root.request("openai", "gpt-5"))
    root.append(user("again"))
    root.calls.record(root.request("openai", "gpt-5"))
    place = Place(dialog=root.dialog_id, seq=4, block=0)
    root.record(
        ContextEdit(base=3, edits=(BlockEdit(target=place, text="short", reason="shortened"),)),
        Quarantine(target=Place(dialog=root.dialog_id, seq=6)),
        beside=True,
    )
    sources = (Run(dialog=fork.dialog_id, start=0, stop=2),)
    root.record(BranchSummary(summary="a branch", dialog=fork.dialog_id, left=place, sources=sources))
    return list(read_frames(BytesIO(b"".join(export_bundle(root.store, root.session_id))).read, "it"))


_EVERYTHING = everything()
_IDS = [json.loads(frame.payload)["dialog_id"] for frame in _EVERYTHING if frame.kind == "dialog"]


def test_bundle_says_nothing_that_no_view_can_show() -> None:
    """Unknown reasons, speakers and trusts, checkpoints that follow from later entries, and counts that its ranges contradict are refused."""
    compaction: tuple[Callable[[dict[str, Any]], object], ...] = (
        lambda fields: fields["omitted"][0].update(reason="no reason"),
        lambda fields: fields["pieces"].append({"text": "x", "speaker": "nobody"}),
        lambda fields: fields["pieces"].append({"text": "x", "trust": ""}),
        lambda fields: fields.update(base=10**6),
        lambda fields: fields.update(undone=10**6),
    )
    for change in compaction:
        assert "cannot be read" in refused(_changed_entry("compaction", change))
    assert "'x'" in refused(_changed_entry("context_edit", lambda fields: fields["edits"][0].update(reason="x")))
    assert "not before it" in refused(_changed_entry("context_edit", lambda fields: fields.update(base=99)))
    dialog: tuple[Callable[[dict[str, Any]], object], ...] = (
        lambda fields: fields.update(inherited=99),
        lambda fields: fields.update(inherited=0),
        lambda fields: fields.update(ranges=[]),
    )
    for change in dialog:
        assert "share" in refused(changed("dialog", change, 1))
    unknown = json.dumps({"kind": "of tomorrow", "at": 1.0, "message": "digest", "digest": ""}).encode()
    assert taken(MemoryStore(), b"".join(write_frames([*_EVERYTHING, Frame("annotation", unknown)])))


def _parts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - any JSON value
    """Yield the path to each value inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*path, key)
        yield from _parts(item, (*path, key))


def _mutated(value: Any, draw: Random) -> Any:  # noqa: ANN401 - any JSON value
    """Return another value of the same kind: ids of other dialogs, numbers nearby and far, lists in another order, with less or more."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice([value - 1, value + 1, value + 3, max(0, value - 3), -1, 0, -value, 10**6, 2**40])
    if isinstance(value, str):
        return draw.choice([*_IDS, "0" * 32, "", value[::-1]])
    if isinstance(value, list) and value:
        at = draw.randrange(len(value))
        return draw.choice([value[::-1], value[:at] + value[at + 1 :], [*value, value[at]], []])
    return draw.choice([None, 0, "", [], {}])


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(3_000), marks=[pytest.mark.soak, pytest.mark.timeout(1200)])]
)
def test_mutated_bundle_is_refused_or_works(seeds: range) -> None:
    """Any value of any record changed: a typed error and nothing written, or a session that is viewed, requested and verified."""
    for seed in seeds:
        draw = Random(seed)  # noqa: S311 - no secret
        frames = list(_EVERYTHING)
        kind = draw.choice(["dialog", "annotation", "annotation", "entry"])
        place = draw.choice([index for index, frame in enumerate(frames) if frame.kind == kind])
        fields = json.loads(frames[place].payload)
        *above, key = draw.choice(list(_parts(fields)))
        inner = reduce(getitem, above, fields)
        inner[key] = _mutated(inner[key], draw)
        frames[place] = Frame(kind, json.dumps(fields).encode())
        store = MemoryStore()
        try:
            taken(store, b"".join(write_frames(frames)))
        except UnsupportedTranscript:
            assert fingerprint(store) == fingerprint(MemoryStore())
            continue
        session = Session.open(store, next(store.sessions()).session_id)
        assert list(verify_store(store, session.session_id)) == [], (seed, fields)
        for dialog in session.dialogs:
            dialog.view("palaver", 2_000)
            dialog.calls.record(dialog.request("openai", "gpt-5"))
            for call in dialog.calls:
                with suppress(PalaverError):  # its record was changed, or what it depends on
                    call.request()
            dialog.fork(last_n=2).request("anthropic", "claude-sonnet-4-5")
            with suppress(InvalidInput):  # it has no compaction of its own
                dialog.compaction.undo()


def source(session: str, **changes: object) -> Frame:
    """Return a frame that says where a session came from."""
    record = SourceRecord(identity="codex:x", format="codex", session_id=SessionId(session), path="/x")
    return Frame("source", json.dumps(asdict(record) | changes).encode())


def test_bundle_never_plants_a_source_in_another_session() -> None:
    """It would make the next import of that file write into a session of the bundle's choice."""
    frames = list(read_frames(BytesIO(_BUNDLE).read, "it"))
    own = json.loads(frames[0].payload)["session_id"]
    assert "belongs to session" in refused([*frames, source(new_session_id())])
    assert "cannot be read" in refused([*frames, source(own, index="0" * 64)])
    store = MemoryStore()
    taken(store, b"".join(write_frames([*frames, source(own)])))
    assert [one.identity for one in store.sources(own)] == ["codex:x"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=150)
@given(st.data())
def test_bundle_of_any_content_is_taken_or_refused(data: st.DataObject) -> None:
    """Sums that are right and content that is not: a typed error, and nothing is written."""
    frames = list(read_frames(BytesIO(_BUNDLE).read, "it"))
    place = data.draw(st.integers(0, len(frames) - 1))
    kind, payload = frames[place]
    if kind != "blob":
        fields = json.loads(payload)
        name = data.draw(st.sampled_from(sorted(fields)) | st.text(max_size=5))
        if data.draw(st.booleans()):
            fields[name] = data.draw(_JSON)
        else:
            fields.pop(name, None)
        payload = json.dumps(fields).encode()
    other = data.draw(st.sampled_from([kind, kind, kind, "entry", "dialog", "session", "source"]))
    frames[place] = Frame(other, payload)
    store = MemoryStore()
    try:
        taken(store, b"".join(write_frames(frames)))
    except UnsupportedTranscript:
        assert fingerprint(store) == fingerprint(MemoryStore())


# --- a store that fails -------------------------------------------------------------------------------------------------------


def test_import_that_was_cut_off_leaves_nothing() -> None:
    """It is one transaction."""
    for room in [0, 1, 5, 7, 8, 9]:
        store = FullStore()
        store.room = room
        with pytest.raises(StoreError):
            taken(store, _BUNDLE)
        assert fingerprint(store) == fingerprint(MemoryStore()), room
        store.room = 100
        assert taken(store, _BUNDLE) == 12, room


def test_damage_is_never_exported() -> None:
    """An entry or payload that is not what was written is named: a bundle would make it look like what was said."""
    log = sample()
    good = log.store.contents.logs[log.dialog].bodies[1]
    log.store.contents.logs[log.dialog].bodies[1] = good.replace(b"hi", b"ho")
    with pytest.raises(StoreDamaged, match=f"{log.dialog[:12]}:1"):
        bundle(log)
    log.store.contents.logs[log.dialog].bodies[1] = good
    (blob,) = log.store.contents.blobs
    log.store.contents.blobs[blob] += b"!"
    with pytest.raises(StoreDamaged, match="blob"):
        bundle(log)
    with pytest.raises(NotFound):
        next(export_bundle(MemoryStore(), log.session))
