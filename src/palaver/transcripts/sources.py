"""Store the imported file, or the session of a database, completely, so that no content is lost that the importer did not understand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import zstandard

from palaver.errors import StoreDamaged
from palaver.ids import BlobId, SessionId
from palaver.messages import canonical_json
from palaver.store.protocol import Store
from palaver.transfer.records import pieces_in

if TYPE_CHECKING:
    from palaver.formats import SourceFile

PIECE = 1 << 22
"""The size of a piece of a file that is compressed and stored as one payload, in bytes. It bounds the memory needed."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    return _digest(_pieces_of_file(path))


def source_digest(source: SourceFile) -> str:
    """Return the SHA-256 of the bytes that `keep` stores of a source, hexadecimal."""
    return _digest(_pieces(source))


def keep(store: Store, session_id: SessionId, source: SourceFile) -> BlobId:
    """Store a file in compressed pieces, and return the payload that lists them. A grown file shares the unchanged pieces.

    Of a database, only the source's session is stored.
    """
    compressor = zstandard.ZstdCompressor()
    size = 0
    listed: list[BlobId] = []
    whole = sha256()
    for piece in _pieces(source):
        whole.update(piece)
        size += len(piece)
        listed.append(store.put_blob(session_id, compressor.compress(piece)))
    return store.put_blob(session_id, canonical_json({"digest": whole.hexdigest(), "pieces": listed, "size": size}))


def is_kept(store: Store, session_id: SessionId, raw: BlobId) -> bool:
    """Return whether a session has the pieces of a stored file."""
    has = partial(store.has_blob, session_id)
    return has(raw) and all(map(has, pieces_in(store.blob(session_id, raw))))


def kept(store: Store, session_id: SessionId, raw: BlobId) -> Iterator[bytes]:
    """Yield the bytes of a stored file of a session in pieces.

    Raises:
        NotFound: A piece is missing.
        StoreDamaged: The store returns other bytes than were stored.
    """
    pieces = pieces_in(store.blob(session_id, raw))
    whole = sha256()
    for piece in pieces:
        try:
            data = zstandard.ZstdDecompressor().decompress(store.blob(session_id, piece), max_output_size=PIECE)
        except zstandard.ZstdError as error:
            raise StoreDamaged(f"blob {piece}", f"a piece of a kept file cannot be decompressed: {error}") from error
        whole.update(data)
        yield data
    if whole.hexdigest() != json.loads(store.blob(session_id, raw)).get("digest"):
        raise StoreDamaged(f"blob {raw}", "the kept file has other bytes")


def _digest(pieces: Iterator[bytes]) -> str:
    whole = sha256()
    for piece in pieces:
        whole.update(piece)
    return whole.hexdigest()


def _pieces(source: SourceFile) -> Iterator[bytes]:
    if not source.apart:
        yield from _pieces_of_file(source.path)
        return
    for member in source.members:
        read = member.reader()
        while piece := read(PIECE):
            yield piece


def _pieces_of_file(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
