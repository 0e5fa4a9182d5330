"""Damaged files on their way into a store: a typed error or a true report, and nothing half written."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.errors import PalaverError, UnsupportedTranscript
from palaver.log import decode_entry
from palaver.store import MemoryStore
from palaver.testing.logs import Log
from palaver.transcripts import Imported, Importer, export_bundle, import_bundle_file
from tests.formats.samples import KINDS
from tests.formats.samples import sample as foreign
from tests.stores import fingerprint
from tests.transcripts.test_bundle import bundle, sample

FLIPS = (0x01, 0x20, 0xFF)
EVERY = [pytest.param(61, id="some"), pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(3600)], id="every")]


def damaged(whole: bytes, every: int) -> Iterator[tuple[str, bytes]]:
    """Return a file cut, and with one byte flipped, at every so many bytes."""
    for at in range(0, len(whole), every):
        yield f"cut at byte {at}", whole[:at]
        for bits in FLIPS if every == 1 else (FLIPS[at % len(FLIPS)],):
            yield f"byte {at} flipped by {bits:#x}", whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :]


@pytest.fixture(scope="module")
def log() -> Log:
    """Return a session with a fork, a picture, an annotation, a compaction and an open call."""
    return sample()


@pytest.mark.parametrize("every", EVERY)
def test_damaged_compressed_bundle_is_refused_or_whole(tmp_path: Path, log: Log, every: int) -> None:
    """D20: where the damage is in nothing that counts, it is taken whole."""
    path = tmp_path / "session.bundle.gz"
    for where, data in damaged(gzip.compress(bundle(log), mtime=0), every):
        path.write_bytes(data)
        store = MemoryStore()
        try:
            found = import_bundle_file(store, path)
        except PalaverError:
            assert fingerprint(store) == fingerprint(MemoryStore()), where
        else:
            assert b"".join(export_bundle(store, found.session_id)) == bundle(log), where


def records_in(store: MemoryStore) -> set[int]:
    """Return the numbers of the file's records that are in a store as some entry."""
    nodes = [node for record in store.sessions() for node in store.nodes(record.session_id)]
    sources = [decode_entry(body).source for node in nodes for _, body in store.bodies(node.dialog_id)]
    return {source.ordinal for source in sources if source is not None}


def reported(found: list[Imported]) -> set[tuple[str, str, str]]:
    """Return all that imports reported."""
    return {(loss.code, loss.place, loss.reason) for one in found for loss in one.losses}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_transcript_is_refused_or_truly_reported(tmp_path: Path, kind: str, every: int) -> None:
    """Where there is less than before, that is said; what is there is whole."""
    whole = foreign(kind)
    path = tmp_path / "foreign"
    path.write_bytes(whole)
    sound_store = MemoryStore()
    sound = list(Importer(sound_store).import_path(path))
    records, messages = records_in(sound_store), sum(one.messages for one in sound)
    for where, data in damaged(whole, every * (1 if every == 1 else 1 + len(whole) // 700)):
        path.write_bytes(data)
        store = MemoryStore()
        try:
            found = list(Importer(store).import_path(path))
        except UnsupportedTranscript:
            assert len(list(store.sessions())) < len(sound), where  # of several conversations, those that could be read
            continue
        at_an_end = where.startswith("cut") and b"\n" in whole[len(data) - 1 : len(data) + 1]  # a shorter, whole file
        fewer = len(records_in(store)) < len(records) and sum(one.messages for one in found) < messages
        assert not fewer or reported(found) - reported(sound) or at_an_end, where
        for one in found:
            assert not any(store.verify(node.dialog_id) for node in store.nodes(one.session_id)), where
