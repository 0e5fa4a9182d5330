"""Archives of transcripts: tar, plain or compressed, and zip. Their members are read where they lie; no name is used as a path."""

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from palaver.formats.streams import (
    Allowance,
    Chunks,
    Layer,
    Opener,
    ReadLimits,
    decompressed,
    inflate,
    over,
    stretch,
    unzstd,
)

_SPOOL = 1 << 26  # an unpacked archive larger than this goes to the temporary folder
_TAR_MAGIC = b"ustar"  # POSIX.1-1988; GNU tar writes the same five bytes
_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")  # APPNOTE.TXT 6.3.10, 4.3.7 and 4.3.16: a member, an empty archive
_ZIP_HEADER, _ZIP_NAMES = (
    30,
    struct.Struct("<HH"),
)  # 4.3.7: a member's header, which ends with the lengths of what follows it
_ENCRYPTED = 0x1  # 4.4.4
_STORED, _DEFLATED, _ZSTD = 0, 8, 93  # 4.4.5
_RAW = -15  # zlib's window bits for deflate without a wrapper
_LAYERS: dict[int, Callable[[Chunks], Chunks]] = {_DEFLATED: partial(inflate, _RAW), _ZSTD: unzstd}


class Closing(Protocol):
    """An object that must be closed."""

    def close(self) -> None:
        """Close it."""
        ...


class Unpacked(NamedTuple):
    """The streams in a file.

    Attributes:
        layers: The streams; one, unless the file is an archive.
        faults: Content that could not be unpacked: (place, why).
        archive: Whether the file is an archive, even of one member.
        spool: The unpacked archive, which must be closed, or None.
        apart: Whether each stream is a separate source in a file, a database, that contains more than these.
    """

    layers: tuple[Layer, ...]
    faults: tuple[tuple[str, str], ...] = ()
    archive: bool = False
    spool: Closing | None = None
    apart: bool = False


def unpack(path: Path, limits: ReadLimits) -> Unpacked:
    """Find the streams in a file.

    Raises:
        OSError: The file cannot be read, or there is no space to unpack an archive.
    """
    allowance = Allowance(limits)
    plain = stretch(lambda: path.open("rb"), 0, path.stat().st_size, keep=False)
    opener, head = decompressed(plain, allowance)
    list_members = _tar if head.endswith(_TAR_MAGIC) else _zip if head.startswith(_ZIP_MAGICS) else None
    if list_members is None:
        return Unpacked((Layer("", opener),))
    if opener is plain:
        with path.open("rb") as file:
            return list_members(_ArchiveFile(file, lambda: path.open("rb"), keep=False), allowance, limits)
    spool, early = _spooled(opener)
    found = list_members(_ArchiveFile(spool, lambda: spool, keep=True, early=early), allowance, limits)
    return found._replace(faults=(*found.faults, *([("archive", early)] if early else ())), spool=spool)


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


class _ArchiveFile(NamedTuple):
    """An archive's file.

    Attributes:
        file: The file.
        reopen: Returns the file for another reader.
        keep: Whether readers leave it open.
        early: Why it ends too early, or empty.
    """

    file: IO[bytes]
    reopen: Callable[[], IO[bytes]]
    keep: bool
    early: str = ""

    def stretch(self, start: int, size: int) -> Opener:
        """Return an opener for `size` bytes from `start`."""
        return stretch(self.reopen, start, size, keep=self.keep, early=self.early)


def _tar(source: _ArchiveFile, allowance: Allowance, limits: ReadLimits) -> Unpacked:
    import tarfile  # noqa: PLC0415 - slow to import, and few sources are archives

    layers: list[Layer] = []
    faults: list[tuple[str, str]] = []
    file = source.file
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                if len(layers) + len(faults) >= limits.records:
                    faults.append(("archive", f"it has more than {limits.records:,} members, the limit"))
                    return Unpacked(tuple(layers), tuple(faults), archive=True)
                if member.isreg() and not member.issparse():
                    inner = source.stretch(member.offset_data, member.size)
                    layers.append(Layer(member.name, decompressed(inner, allowance)[0]))
                elif not member.isdir():
                    faults.append((member.name, "it is a link or a special file"))
            file.seek(archive.offset)  # tarfile treats a cut off or damaged header as the end
            if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                faults.append(("archive", f"it is cut off or damaged after {len(layers)} members"))
    except tarfile.TarError as error:
        faults.append(("archive", f"its index is damaged after {len(layers)} members ({error})"))
    return Unpacked(tuple(layers), tuple(faults), archive=True)


def _zip(source: _ArchiveFile, allowance: Allowance, limits: ReadLimits) -> Unpacked:
    """Read the index of a zip archive, which is at its end. The members are unpacked here, within the allowance."""
    import zipfile  # noqa: PLC0415 - slow to import, and few sources are archives

    layers: list[Layer] = []
    faults: list[tuple[str, str]] = []
    try:
        with zipfile.ZipFile(source.file) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, EOFError) as error:
        why = f"its index, at the end of a zip archive, is missing or damaged ({error})"
        return Unpacked((), (("archive", why),), archive=True)
    for member in members:
        if len(layers) + len(faults) >= limits.records:
            faults.append(("archive", f"it has more than {limits.records:,} members, the limit"))
            break
        method = member.compress_type
        start = _zip_data(source.file, member.header_offset)
        if member.is_dir():
            continue
        if member.flag_bits & _ENCRYPTED:
            faults.append((member.filename, "it is encrypted"))
        elif method != _STORED and method not in _LAYERS:
            faults.append((member.filename, f"its compression, method {method} of zip, is not supported"))
        elif start < 0:
            faults.append((member.filename, "its header is damaged"))
        else:
            raw = source.stretch(start, member.compress_size)
            inner = raw if method == _STORED else over(raw, _LAYERS[method], allowance)
            layers.append(Layer(member.filename, decompressed(_checked(inner, member.CRC), allowance)[0]))
    return Unpacked(tuple(layers), tuple(faults), archive=True)


def _checked(under: Opener, checksum: int) -> Opener:
    """Return a stream that ends early, and says so, if its CRC-32 is another."""

    def opener() -> Chunks:
        chunks, found = under(), 0
        while True:
            try:
                chunk = next(chunks)
            except StopIteration as end:
                return end.value or ("" if found == checksum else "its checksum is wrong: it is damaged")
            found = zlib.crc32(chunk, found)
            yield chunk

    return opener


def _zip_data(file: IO[bytes], header: int) -> int:
    """Return where the data of a member begins, after its header; -1 if there is no header."""
    file.seek(max(header, 0))
    head = file.read(_ZIP_HEADER)
    if len(head) < _ZIP_HEADER or not head.startswith(_ZIP_MAGICS[0]):
        return -1
    name, extra = _ZIP_NAMES.unpack(head[-_ZIP_NAMES.size :])
    return header + _ZIP_HEADER + int(name + extra)
