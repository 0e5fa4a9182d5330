"""The laws of payloads."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from palaver.errors import MissingBlob
from palaver.ids import BlobId
from palaver.store.protocol import Store
from palaver.testing.store_laws.backend import LawGroup

_LARGE = 5_000_000


class PayloadLaws(LawGroup):
    """What `put_blob`, `blob` and `has_blob` promise."""

    @pytest.mark.parametrize("data", [b"", b"\x00", b"x" * 10_000, bytes(range(256)) * (_LARGE // 256)])
    def test_a_payload_comes_back(self, store: Store, data: bytes) -> None:
        """A payload of any size is kept under its SHA-256."""
        blob = store.put_blob(data)
        assert blob == sha256(data).hexdigest()
        assert store.has_blob(blob)
        assert store.blob(blob) == data

    def test_the_same_payload_is_one(self, store: Store) -> None:
        """Storing it again changes nothing."""
        assert store.put_blob(b"a") == store.put_blob(b"a")
        assert store.blob(store.put_blob(b"a")) == b"a"

    @pytest.mark.parametrize("blob", ["0" * 64, "", "zz", "0" * 63, "A" * 64, "\ud800"])
    def test_a_missing_payload_is_missing(self, store: Store, blob: str) -> None:
        """What is not stored, or could not even be, is told so."""
        store.put_blob(b"")
        assert not store.has_blob(BlobId(blob))
        with pytest.raises(MissingBlob):
            store.blob(BlobId(blob))

    def test_a_buffer_may_be_used_again(self, store: Store) -> None:
        """The store keeps the bytes, not the buffer they came in."""
        buffer: Any = bytearray(b"abc")
        blob = store.put_blob(buffer)
        buffer[0] = 0
        assert store.blob(blob) == b"abc"
        assert isinstance(store.blob(blob), bytes)
