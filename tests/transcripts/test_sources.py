"""The file itself, kept in pieces."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.store.memory import MemoryStore
from palaver.transcripts import kept
from palaver.transcripts.sources import PIECE, Keeper


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_what_was_swept_from_an_import_that_lasted_too_long_is_kept_again(gone: int, tmp_path: Path) -> None:
    """A piece, or the list of them, that is gone when the file is to be named: it is there again, byte for byte; else nothing is read twice."""
    path = tmp_path / "large"
    path.write_bytes(b"one line of it\n" * (PIECE // 10))
    store = MemoryStore()
    keeper = Keeper(store, path)
    raw = keeper()
    before = {one.blob_id for one in store.strays()}
    assert len(before) == 3
    with store.erasing() as eraser:
        eraser.remove_blobs([sorted(before)[gone]])
    assert keeper() == raw
    assert b"".join(kept(store, raw)) == path.read_bytes()
    path.unlink()
    assert keeper() == raw
