"""Bundles: a session leaves whole and arrives whole, or is refused and nothing is written."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial, reduce
from io import BytesIO
from operator import getitem
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

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
from palaver.transfer.bundle import export_bundle, import_bundle, import_bundle_file
from palaver.transfer.files import read_lines, write_lines
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


# --- a bundle that lies -------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A record of a bundle: its kind, what it says, and all of it."""

    kind: str
    fields: dict[str, Any]
    record: dict[str, Any]


def parts(data: bytes) -> list[Part]:
    """Return the records of a bundle. An entry that belongs to no turn is an annotation."""
    found = []
    for text in read_lines(BytesIO(data).read, "it"):
        record = json.loads(text)
        name = next(name for name in ("session", "dialog", "entry", "source", "blob") if name in record)
        kind = "annotation" if record.get("turn") is False else name
        found.append(Part(kind, record if name == "blob" else record[name], record))
    return found


def written(records: Iterable[Part]) -> bytes:
    """Return a bundle with these records."""
    return b"".join(write_lines(json.dumps(part.record, separators=(",", ":")).encode() for part in records))


def refused(records: Iterable[Part]) -> str:
    """Import records whose sums are right into a store that has another session, and return why they are refused."""
    store = sample().store
    before = fingerprint(store)
    with pytest.raises(UnsupportedTranscript) as raised:
        taken(store, written(records))
    assert fingerprint(store) == before, "nothing was written"
    return raised.value.why


def test_what_is_no_bundle_is_refused() -> None:
    """The error says what it is; bytes of the right sums and no session, too."""
    for data, why in [
        (b"hello", "not a palaver bundle"),
        (_BUNDLE.splitlines(keepends=True)[0] + b"hello", "damaged at byte 2"),
        (_BUNDLE.splitlines(keepends=True)[0], "ends before its last line"),
        (b'{"palaver":2,"session":{}}\n', "version 2, and this palaver reads version 1"),
        (written([]), "has no session"),
    ]:
        with pytest.raises(UnsupportedTranscript, match=why):
            taken(MemoryStore(), data)


def changed(kind: str, change: Callable[[dict[str, Any]], object], nth: int = 0) -> list[Part]:
    """Return the sample's records, with the fields of one changed."""
    found = parts(_BUNDLE)
    change([part for part in found if part.kind == kind][nth].fields)
    return found


def test_compressed_bundle_meets_the_limit(tmp_path: Path) -> None:
    """It unpacks to no more than the limit, which is told and can be raised."""
    path = tmp_path / "b.gz"
    path.write_bytes(gzip.compress(b'{"palaver":1,' + bytes(50_000_000)))
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
    assert "cannot be read" in refused(part for part in parts(_BUNDLE) if part.kind != "blob")


def _changed_entry(kind: str, change: Callable[[dict[str, Any]], object]) -> list[Part]:
    """Return the records of a session with everything, with one entry of a kind changed."""
    found = parts(_EVERYTHING)
    change(next(part.fields for part in found if part.fields.get("kind") == kind))
    return found


def everything() -> bytes:
    """Return the bundle of a session with forks, windows, pictures, marks, edits, a recorded call, and compactions that were undone."""
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
    return b"".join(export_bundle(root.store, root.session_id))


_EVERYTHING = everything()
_IDS = [part.fields["dialog_id"] for part in parts(_EVERYTHING) if part.kind == "dialog"]


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
    found = parts(_EVERYTHING)
    unknown = {"kind": "of tomorrow", "at": 1.0, "message": "digest", "digest": ""}
    record = {"seq": found[-1].record["seq"] + 1, "turn": False, "entry": unknown}
    assert taken(MemoryStore(), written([*found, Part("annotation", unknown, record)]))


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
        found = parts(_EVERYTHING)
        kind = draw.choice(["dialog", "annotation", "annotation", "entry"])
        fields = draw.choice([part for part in found if part.kind == kind]).fields
        *above, key = draw.choice(list(_parts(fields)))
        inner = reduce(getitem, above, fields)
        inner[key] = _mutated(inner[key], draw)
        store = MemoryStore()
        try:
            taken(store, written(found))
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


def source(session: str, **changes: object) -> Part:
    """Return a record that says where a session came from."""
    fields = (
        asdict(SourceRecord(identity="codex:x", format="codex", session_id=SessionId(session), path="/x")) | changes
    )
    return Part("source", fields, {"source": fields})


def test_bundle_never_plants_a_source_in_another_session() -> None:
    """It would make the next import of that file write into a session of the bundle's choice."""
    found = parts(_BUNDLE)
    own = found[0].fields["session_id"]
    assert "belongs to session" in refused([*found, source(new_session_id())])
    assert "cannot be read" in refused([*found, source(own, index="0" * 64)])
    store = MemoryStore()
    taken(store, written([*found, source(own)]))
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
    found = parts(_BUNDLE)
    part = found[data.draw(st.integers(0, len(found) - 1))]
    fields = data.draw(st.sampled_from([part.fields, part.fields, part.record]))
    name = data.draw(st.sampled_from(sorted(fields)) | st.text(max_size=5))
    if data.draw(st.booleans()):
        fields[name] = data.draw(_JSON)
    else:
        fields.pop(name, None)
    other = data.draw(st.sampled_from(["", "", "", "entry", "dialog", "session", "source"]))
    if other:
        part.record[other] = dict(fields)
    store = MemoryStore()
    try:
        taken(store, written(found))
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
