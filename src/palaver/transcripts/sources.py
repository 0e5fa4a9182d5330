"""The source file itself, kept whole: nothing is lost that an importer did not understand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import zstandard

from palaver.errors import StoreDamaged
from palaver.ids import BlobId
from palaver.messages import canonical_json
from palaver.plurals import counted
from palaver.store.protocol import Store

PIECE = 1 << 22
"""How much of a file is compressed and stored as one blob, in bytes: what importing holds in memory of the file itself."""


def file_digest(path: Path) -> str:
    """Give the SHA-256 of a file, hexadecimal, reading it in pieces."""
    return _digest(_pieces(path))


def keep(store: Store, path: Path) -> BlobId:
    """Store a file in compressed pieces, and give the blob that lists them. A file that grew shares the pieces that did not change."""
    compressor = zstandard.ZstdCompressor()
    size = 0
    listed: list[BlobId] = []
    whole = sha256()
    for piece in _pieces(path):
        whole.update(piece)
        size += len(piece)
        listed.append(store.put_blob(compressor.compress(piece)))
    return store.put_blob(canonical_json({"digest": whole.hexdigest(), "pieces": listed, "size": size}))


class Keeper:
    """Keeps one file: at the first call, and again where a piece is gone since, which a sweep took from an import that lasted longer than its age."""

    def __init__(self, store: Store, path: Path) -> None:
        """Keep nothing yet."""
        self._store = store
        self._path = path
        self._raw: BlobId | None = None

    def __call__(self) -> BlobId:
        """Give the blob that lists the pieces; all of them are there. Inside a block of the store's they stay until it ends."""
        if self._raw is None or not self._whole(self._raw):
            self._raw = keep(self._store, self._path)
        return self._raw

    def _whole(self, raw: BlobId) -> bool:
        has = self._store.has_blob
        return has(raw) and all(has(BlobId(piece)) for piece in json.loads(self._store.blob(raw))["pieces"])


def kept(store: Store, raw: BlobId) -> Iterator[bytes]:
    """Give the bytes of a kept file, piece by piece.

    Raises:
        StoreDamaged: What the store gives back is not what was kept.
        MissingBlob: A piece is gone.
    """
    try:
        listing = json.loads(store.blob(raw))
        pieces, size, digest = listing["pieces"], int(listing["size"]), str(listing["digest"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamaged(f"blob {raw}", f"it lists no kept file: {error}") from error
    whole = sha256()
    given = 0
    for piece in pieces:
        try:
            data = zstandard.ZstdDecompressor().decompress(store.blob(BlobId(piece)), max_output_size=PIECE)
        except zstandard.ZstdError as error:
            raise StoreDamaged(f"blob {piece}", f"a piece of a kept file cannot be decompressed: {error}") from error
        whole.update(data)
        given += len(data)
        yield data
    if given != size or whole.hexdigest() != digest:
        raise StoreDamaged(
            f"blob {raw}", f"the kept file has {counted(given, 'byte')} instead of {size}, or other ones"
        )


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _digest(pieces: Iterator[bytes]) -> str:
    whole = sha256()
    for piece in pieces:
        whole.update(piece)
    return whole.hexdigest()
