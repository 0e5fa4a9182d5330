"""Files of records: a line for each record, with its checksum.

The checksum is the first half of the SHA-256 of the line without it. A whole file ends with a line that has the number of its records and the digest of
their checksums, so that every cut and every changed byte is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256

from palaver.errors import UnsupportedTranscript
from palaver.messages import canonical_json
from palaver.transfer.records import VERSION

NAME = b'{"palaver":'
"""The first bytes of a file of any version."""

_ANY_VERSION = re.compile(rb'\{"palaver":(\d{1,9}),')
_SUM = re.compile(rb',"sum":"([0-9a-f]{32})"\}\Z')
_END = b'{"digest":'
_PIECE = 1 << 16


def sealed(text: bytes) -> bytes:
    """Return a line with its checksum, without the end of the line."""
    return b'%s,"sum":"%s"}' % (text[:-1], _sum(text))


def unsealed(line: bytes) -> bytes | None:
    """Return a line without its checksum; None when it is not what was written."""
    seal = _SUM.search(line)
    text = line[: seal.start()] + b"}" if seal else b""
    return text if seal and seal[1] == _sum(text) else None


def _sum(text: bytes) -> bytes:
    return sha256(text).hexdigest()[:32].encode()


def write_lines(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a whole file with these records."""
    end = _Ending()
    for text in texts:
        end.add(text)
        yield sealed(text) + b"\n"
    yield sealed(end.line()) + b"\n"


def read_lines(read: Callable[[int], bytes], name: str) -> Iterator[bytes]:
    """Yield the records of a whole file, each after its checksum was checked, and check the end.

    Args:
        read: Returns the next bytes, up to a maximum; none at the end.
        name: The file's name in errors.

    Raises:
        UnsupportedTranscript: It is no such file, has a newer version, or is cut off or damaged; the error names the byte.
    """
    at, end, ended = 0, _Ending(), False
    for line in _lines(read):
        if not at:
            _check_begin(line, name)
        text = unsealed(line[:-1]) if line.endswith(b"\n") else None
        if text is None or ended:
            why = "there is something after its end" if ended else "a line is cut off, or not what was written"
            raise _damaged(name, at, why)
        if text.startswith(_END):
            ended = text == end.line()
            if not ended:
                raise _damaged(name, at, f"its end does not match the {end.count} records before it")
        else:
            end.add(text)
            yield text
        at += len(line)
    if not ended:
        raise _damaged(name, at, "it ends before its last line") if at else _no_bundle(name)


class _Ending:
    """The last line of a file, from the lines before it."""

    def __init__(self) -> None:
        self.count = 0
        self._sums = sha256()

    def add(self, text: bytes) -> None:
        self.count += 1
        self._sums.update(_sum(text))

    def line(self) -> bytes:
        return canonical_json({"digest": self._sums.hexdigest(), "end": self.count})


def _check_begin(line: bytes, name: str) -> None:
    version = _ANY_VERSION.match(line)
    if version is not None and int(version[1]) != VERSION:
        why = f"it is a bundle of version {int(version[1])}, and this palaver reads version {VERSION}"
        raise UnsupportedTranscript(name, why, hint="Use a newer palaver.")
    if version is None and not line.startswith(_END):
        raise _no_bundle(name)


def _no_bundle(name: str) -> UnsupportedTranscript:
    return UnsupportedTranscript(name, "it is not a palaver bundle")


def _damaged(name: str, at: int, why: str) -> UnsupportedTranscript:
    return UnsupportedTranscript(name, f"it is damaged at byte {at}: {why}")


def _lines(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield lines with their ends; the last one may have none."""
    waiting = bytearray()
    while piece := read(_PIECE):
        searched = len(waiting)
        waiting += piece
        start = 0
        while (stop := waiting.find(b"\n", max(start, searched))) >= 0:
            yield bytes(waiting[start : stop + 1])
            start = stop + 1
        del waiting[:start]
    if waiting:
        yield bytes(waiting)
