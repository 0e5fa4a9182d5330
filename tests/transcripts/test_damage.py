"""Damaged files on their way into a store: cut and flipped at every byte; a typed error or a true report, and nothing half written."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from palaver.errors import InvalidBundle, PalaverError, UnsupportedTranscript
from palaver.log import decode_entry
from palaver.store import MemoryStore
from palaver.store.copying import fingerprint
from palaver.testing.logs import Log, model, user
from palaver.transcripts import Importer, examine_file, export_bundle, import_bundle_file
from palaver.transcripts.importing import Imported
from tests.formats.test_damage import FORMATS
from tests.formats.test_lists_damage import KINDS, packed, sample
from tests.transcripts.test_bundle import bundle
from tests.transcripts.test_bundle import sample as sample_log

FLIPS = (0x01, 0x20, 0xFF)
EVERY = [pytest.param(29, id="some"), pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(3600)], id="every")]


def damaged(whole: bytes, every: int, *, start: int = 0) -> Iterator[tuple[str, bytes]]:
    """Give a file cut, and with one byte flipped, at every so many bytes; the cuts are at all of them in turn for each number of flips."""
    for at in range(start, len(whole), every):
        yield f"cut at byte {at}", whole[:at]
        flip = FLIPS[at % len(FLIPS)]
        for bits in FLIPS if every == 1 else (flip,):
            yield f"byte {at} flipped by {bits:#x}", whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :]


@pytest.fixture(scope="module")
def log() -> Log:
    """Give a session with a fork, a picture, an annotation, a compaction and an open call."""
    return sample_log()


@pytest.mark.parametrize("every", EVERY)
def test_d20_of_a_damaged_bundle_nothing_is_written(tmp_path: Path, log: Log, every: int) -> None:
    """D20: a bundle cut or flipped at any byte is refused, and the store is as it was, whether or not it has the session already."""
    path = tmp_path / "session.bundle"
    path.write_bytes(bundle(log))
    having, empty = MemoryStore(), MemoryStore()
    import_bundle_file(having, path)
    log.put(user("grown"), model("since"))
    whole = bundle(log)
    before = [fingerprint(store) for store in (having, empty)]
    for where, data in damaged(whole, every):
        path.write_bytes(data)
        for store, known in zip((having, empty), before, strict=True):
            with pytest.raises((InvalidBundle, UnsupportedTranscript)):
                import_bundle_file(store, path)
            assert fingerprint(store) == known, where
        with pytest.raises((InvalidBundle, UnsupportedTranscript)):
            list(examine_file(path))
    path.write_bytes(whole)
    assert import_bundle_file(having, path).entries == 2
    assert import_bundle_file(empty, path).entries > 2
    assert fingerprint(having) == fingerprint(empty)


@pytest.mark.parametrize("every", EVERY)
def test_d20_a_damaged_compressed_bundle_is_refused_or_whole(tmp_path: Path, log: Log, every: int) -> None:
    """D20: a bundle that was compressed is refused, or, where the damage is in nothing that counts, it is taken whole."""
    path = tmp_path / "session.bundle.gz"
    packed_bundle = gzip.compress(bundle(log), mtime=0)
    for where, data in damaged(packed_bundle, every):
        path.write_bytes(data)
        store = MemoryStore()
        try:
            taken = import_bundle_file(store, path)
        except PalaverError:
            assert fingerprint(store) == fingerprint(MemoryStore()), where
        else:
            assert b"".join(export_bundle(store, taken.session_id)) == bundle(log), where


def list_of_messages(kind: str) -> bytes:
    """Write a small file of a format that is one document."""
    return packed(kind, sample(kind))


FOREIGN: dict[str, Callable[[], bytes]] = {
    **FORMATS,
    **{kind: partial(list_of_messages, kind) for kind in sorted(KINDS)},
}


def kept(store: MemoryStore) -> set[int]:
    """Give the numbers of the file's records that are in a store as some entry: what is of an unknown kind is one, too."""
    nodes = [node for record in store.sessions() for node in store.nodes(record.session_id)]
    sources = [decode_entry(body).source for node in nodes for _, body in store.bodies(node.dialog_id)]
    return {source.ordinal for source in sources if source is not None}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", FOREIGN)
def test_a_damaged_transcript_is_refused_or_truly_reported(tmp_path: Path, kind: str, every: int) -> None:
    """A foreign file with a byte flipped is refused, with nothing to see of it, or imported; where there is less than before, that is said."""
    whole = FOREIGN[kind]()
    path = tmp_path / "foreign.jsonl"
    path.write_bytes(whole)
    whole_store = MemoryStore()
    sound = list(Importer(whole_store).import_path(path))
    records = kept(whole_store)
    for where, data in damaged(whole, every * (1 if every == 1 else 1 + len(whole) // 700)):
        path.write_bytes(data)
        store = MemoryStore()
        try:
            found = list(Importer(store).import_path(path))
        except UnsupportedTranscript:
            assert len(list(store.sessions())) < len(sound), where  # of several conversations, those that could be read
            continue
        said = reported(found) - reported(sound)
        at_an_end = (
            where.startswith("cut") and b"\n" in whole[len(data) - 1 : len(data) + 1]
        )  # a shorter file, and a whole one
        fewer = len(kept(store)) < len(records) and said_in(found) < said_in(sound)
        assert not fewer or said or at_an_end, where
        for one in found:
            for node in store.nodes(one.session_id):
                assert store.verify(node.dialog_id) == (), where


def said_in(found: list[Imported]) -> int:
    """Count the messages of imports."""
    return sum(one.messages for one in found)


def reported(found: list[Imported]) -> set[tuple[str, str, str]]:
    """Give all that imports said."""
    return {(loss.code, loss.place, loss.reason) for one in found for loss in one.losses}
