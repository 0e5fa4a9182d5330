"""Byte streams of transcripts: files and their compression. Content determines the type, never a name.

A stream is an opener: calling it returns a fresh generator of chunks, so that readers can read twice without keeping the content in
memory. The generator returns why it ended too early, or an empty string. A torn stream still yields all its content.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import IO, NamedTuple, TypeAlias

import zstandard

Chunks: TypeAlias = Generator[bytes, None, str]
Opener: TypeAlias = Callable[[], Chunks]

CHUNK = 1 << 16
_WINDOW = 1 << 31  # the window of `zstd --long=31`
_ZSTD_STEP = 1 << 11  # a block of 128 KiB takes at least 4 bytes (RFC 8878, 3.1.1.2): a step unpacks to at most 64 MiB
_GZIP = 31  # zlib's window bits for a gzip wrapper (zlib manual, inflateInit2)
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # RFC 8878, section 3.1.1
_GZIP_MAGIC = b"\x1f\x8b\x08"  # RFC 1952, section 2.3.1
HEAD = 262
"""The number of leading bytes that identify a compression or an archive; tar's mark is at 257."""
_LAYERS = 3  # a compressed member of a compressed archive


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much of a file is read. A file beyond a limit is read up to it, and the report says so.

    Attributes:
        unpacked: The maximum size of an unpacked stream in bytes. The largest recorded trajectories have 1 GB.
        records: The maximum number of lines, elements of a document, or members of an archive.
        archive: The maximum size of all compressed members of an archive together, unpacked, in bytes.
    """

    unpacked: int = 1 << 30
    records: int = 2_000_000
    archive: int = 1 << 32


class Layer(NamedTuple):
    """One stream that may contain a transcript.

    Attributes:
        name: The name within an archive, for people, never used as a path; or empty.
        opener: Returns the decompressed bytes.
    """

    name: str
    opener: Opener


def read_head(opener: Opener, size: int) -> tuple[bytes, str]:
    """Read at most `size` bytes from the start. Return them, and why the stream ended early if it did."""
    parts: list[bytes] = []
    missing = size
    chunks = opener()
    try:
        while missing > 0:
            chunk = next(chunks)
            parts.append(chunk[:missing])
            missing -= len(chunk)
    except StopIteration as end:
        return b"".join(parts), end.value
    finally:
        chunks.close()
    return b"".join(parts), ""


def stretch(reopen: Callable[[], IO[bytes]], start: int, size: int, *, keep: bool, early: str = "") -> Opener:
    """Return an opener for `size` bytes of a file from `start`.

    Each read seeks first, so that several readers of one kept file do not disturb each other. `early` says why the file may end too early.
    """

    def opener() -> Chunks:
        file = reopen()
        at, stop = start, start + size
        try:
            while at < stop:
                file.seek(at)
                chunk = file.read(min(CHUNK, stop - at))
                if not chunk:
                    return f"it ends after {at - start} of {size} bytes{': ' if early else ''}{early}"
                at += len(chunk)
                yield chunk
        finally:
            if not keep:
                file.close()
        return ""

    return opener


class Allowance:
    """Counts what the streams of one file unpack to.

    Attributes:
        size: How much each stream may unpack to, in bytes.
        left: How much all of them may still unpack to, in bytes. What is read again counts once.
    """

    def __init__(self, limits: ReadLimits) -> None:
        """Allow what the limits allow."""
        self.size = limits.unpacked
        self.left = limits.archive


def decompressed(opener: Opener, allowance: Allowance) -> tuple[Opener, bytes]:
    """Return the stream under all compression, and its first bytes."""
    head = b""
    for _ in range(_LAYERS):
        head, _early = read_head(opener, HEAD)
        if head.startswith(_ZSTD_MAGIC):
            opener = over(opener, unzstd, allowance)
        elif head.startswith(_GZIP_MAGIC):
            opener = over(opener, partial(inflate, _GZIP), allowance)
        else:
            break
    return opener, head


def over(under: Opener, layer: Callable[[Chunks], Chunks], allowance: Allowance) -> Opener:
    """Return the stream that a layer of decompression makes of another, within the allowance."""
    most = 0

    def opener() -> Chunks:
        nonlocal most
        chunks, size = layer(under()), 0
        while True:
            try:
                chunk = next(chunks)
            except StopIteration as end:
                return str(end.value)
            limit = min(allowance.size, most + allowance.left)
            cut, chunk = len(chunk) > limit - size, chunk[: limit - size]
            size += len(chunk)
            allowance.left -= max(size - most, 0)
            most = max(size, most)
            for start in range(0, len(chunk), CHUNK):  # a few bytes can unpack to 64 MiB of short lines
                yield chunk[start : start + CHUNK]
            if cut and size == allowance.size:
                return f"it unpacks to more than {allowance.size:,} bytes, the limit"
            if cut:
                return "the members of the archive unpack to more than the limit"

    return opener


def unzstd(chunks: Chunks) -> Chunks:
    """Decompress frame after frame; the library's own stream reader does not detect a torn frame."""
    context = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    frame: zstandard.ZstdDecompressionObj | None = None
    while True:
        try:
            chunk = next(chunks)
        except StopIteration as end:
            return end.value or ("its zstd data is cut off" if frame else "")
        for start in range(0, len(chunk), _ZSTD_STEP):
            rest = chunk[start : start + _ZSTD_STEP]
            while rest:
                frame = frame or context.decompressobj()
                try:
                    out = frame.decompress(rest)
                except zstandard.ZstdError as error:
                    return f"its zstd data is damaged ({error})"
                if out:
                    yield out
                rest = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame


def inflate(window: int, chunks: Chunks) -> Chunks:
    """Decompress gzip members, or raw deflate data, one after the other; `window` is zlib's window bits."""
    member = None
    while True:
        try:
            rest = next(chunks)
        except StopIteration as end:
            return end.value or ("its compressed data is cut off" if member else "")
        while rest:
            member = member or zlib.decompressobj(window)
            try:
                out = member.decompress(rest, CHUNK)
            except zlib.error as error:
                return f"its compressed data is damaged ({error})"
            if out:
                yield out
            rest = member.unused_data.lstrip(b"\0") if member.eof else member.unconsumed_tail
            member = None if member.eof else member
