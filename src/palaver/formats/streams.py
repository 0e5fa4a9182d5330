"""Byte streams of transcripts: files, their compression, and archives in them. Content determines the type, never a name.

A stream is an opener: calling it returns a fresh generator of chunks, so that readers can read twice without keeping the content in
memory. The generator returns why it ended too early, or an empty string. A torn stream still yields all its content.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, Protocol, TypeAlias

import zstandard

Chunks: TypeAlias = Generator[bytes, None, str]
Opener: TypeAlias = Callable[[], Chunks]

CHUNK = 1 << 16
_SPOOL = 1 << 26  # an unpacked archive larger than this goes to the temporary folder
_WINDOW = 1 << 31  # the window of `zstd --long=31`
_ZSTD_STEP = 1 << 11  # a block of 128 KiB takes at least 4 bytes (RFC 8878, 3.1.1.2): a step unpacks to at most 64 MiB
_GZIP = 31  # zlib's window bits for a gzip wrapper (zlib manual, inflateInit2)
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # RFC 8878, section 3.1.1
_GZIP_MAGIC = b"\x1f\x8b\x08"  # RFC 1952, section 2.3.1
_TAR_AT, _TAR_MAGIC = 257, b"ustar"  # POSIX.1-1988; GNU tar writes the same five bytes
_LAYERS = 3  # a compressed member of a compressed archive


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much of a file is read. A file beyond a limit is read up to it, and the report says so.

    Attributes:
        unpacked: The maximum size of an unpacked stream in bytes. The largest recorded trajectories have 1 GB.
        records: The maximum number of lines, elements of a document, or members of an archive.
    """

    unpacked: int = 1 << 30
    records: int = 2_000_000


class Layer(NamedTuple):
    """One stream that may contain a transcript.

    Attributes:
        name: The name within an archive, for people, never used as a path; or empty.
        opener: Returns the decompressed bytes.
    """

    name: str
    opener: Opener


class Closing(Protocol):
    """An object that must be closed."""

    def close(self) -> None:
        """Close it."""
        ...


class Unpacked(NamedTuple):
    """The streams in a file.

    Attributes:
        layers: The streams; one, unless the file is an archive.
        archive: Whether the file is an archive, even of one member.
        faults: Content that could not be unpacked: (place, why).
        spool: The unpacked archive, which must be closed, or None.
        apart: Whether each stream is a separate source in a file, a database, that contains more than these.
    """

    layers: tuple[Layer, ...]
    archive: bool = False
    faults: tuple[tuple[str, str], ...] = ()
    spool: Closing | None = None
    apart: bool = False


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


def unpack(path: Path, limits: ReadLimits) -> Unpacked:
    """Find the streams in a file.

    Raises:
        OSError: The file cannot be read, or there is no space to unpack an archive.
    """
    plain = _stretch(lambda: path.open("rb"), 0, path.stat().st_size, keep=False)
    opener, head = _decompressed(plain, limits)
    if head[_TAR_AT:] != _TAR_MAGIC:
        return Unpacked((Layer("", opener),))
    if opener is plain:
        with path.open("rb") as file:
            layers, faults = _members(file, lambda: path.open("rb"), limits, keep=False)
        return Unpacked(layers, archive=True, faults=faults)
    spool, early = _spooled(opener)
    layers, faults = _members(spool, lambda: spool, limits, keep=True)
    return Unpacked(layers, archive=True, faults=(*faults, *([("archive", early)] if early else ())), spool=spool)


def _spooled(opener: Opener) -> tuple[IO[bytes], str]:
    """Unpack a compressed archive: its members are read in any order and more than once."""
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL)  # noqa: SIM115 - the source closes it
    chunks = opener()
    try:
        while True:
            spool.write(next(chunks))
    except StopIteration as end:
        return spool, end.value
    except OSError:
        spool.close()
        raise


def _members(
    file: IO[bytes], reopen: Callable[[], IO[bytes]], limits: ReadLimits, *, keep: bool
) -> tuple[tuple[Layer, ...], tuple[tuple[str, str], ...]]:
    import tarfile  # noqa: PLC0415 - slow to import, and few sources are archives

    layers: list[Layer] = []
    faults: list[tuple[str, str]] = []
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                if len(layers) + len(faults) >= limits.records:
                    faults.append(("archive", f"it has more than {limits.records:,} members, the limit"))
                    return tuple(layers), tuple(faults)
                if member.isreg() and not member.issparse():
                    inner = _stretch(reopen, member.offset_data, member.size, keep=keep)
                    layers.append(Layer(member.name, _decompressed(inner, limits)[0]))
                elif not member.isdir():
                    faults.append((member.name, "it is a link or a special file"))
            file.seek(archive.offset)  # tarfile treats a cut off or damaged header as the end
            if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                faults.append(("archive", f"it is cut off or damaged after {len(layers)} members"))
    except tarfile.TarError as error:
        faults.append(("archive", f"its index is damaged after {len(layers)} members ({error})"))
    return tuple(layers), tuple(faults)


def _stretch(reopen: Callable[[], IO[bytes]], start: int, size: int, *, keep: bool) -> Opener:
    """Return an opener for `size` bytes of a file from `start`.

    Each read seeks first, so that several readers of one kept file do not disturb each other.
    """

    def opener() -> Chunks:
        file = reopen()
        at, stop = start, start + size
        try:
            while at < stop:
                file.seek(at)
                chunk = file.read(min(CHUNK, stop - at))
                if not chunk:
                    return f"it ends after {at - start} of {size} bytes"
                at += len(chunk)
                yield chunk
        finally:
            if not keep:
                file.close()
        return ""

    return opener


def _decompressed(opener: Opener, limits: ReadLimits) -> tuple[Opener, bytes]:
    """Return the stream under all compression, and its first bytes."""
    head = b""
    for _ in range(_LAYERS):
        head, _early = read_head(opener, _TAR_AT + len(_TAR_MAGIC))
        if head.startswith(_ZSTD_MAGIC):
            opener = _over(opener, _unzstd, limits.unpacked)
        elif head.startswith(_GZIP_MAGIC):
            opener = _over(opener, _ungzip, limits.unpacked)
        else:
            break
    return opener, head


def _over(under: Opener, layer: Callable[[Chunks], Chunks], limit: int) -> Opener:
    def opener() -> Chunks:
        chunks, size = layer(under()), 0
        while True:
            try:
                chunk = next(chunks)
            except StopIteration as end:
                return str(end.value)
            size += len(chunk)
            if size > limit:
                return f"it unpacks to more than {limit:,} bytes, the limit"
            for start in range(0, len(chunk), CHUNK):  # a few bytes can unpack to 64 MiB of short lines
                yield chunk[start : start + CHUNK]

    return opener


def _unzstd(chunks: Chunks) -> Chunks:
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


def _ungzip(chunks: Chunks) -> Chunks:
    member = None
    while True:
        try:
            rest = next(chunks)
        except StopIteration as end:
            return end.value or ("its gzip data is cut off" if member else "")
        while rest:
            member = member or zlib.decompressobj(_GZIP)
            try:
                out = member.decompress(rest, CHUNK)
            except zlib.error as error:
                return f"its gzip data is damaged ({error})"
            if out:
                yield out
            rest = member.unused_data.lstrip(b"\0") if member.eof else member.unconsumed_tail
            member = None if member.eof else member
