"""Frames: the outer format of a bundle, which detects every truncation and every changed byte.

A bundle is a line that names it, then frames. A frame is a line `kind length digest`, then `length` bytes of payload and a newline. The
last frame, `end`, has the number of frames before it and the digest of their digests. Every payload that is JSON is one line of
canonical JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from palaver.errors import UnsupportedTranscript
from palaver.messages import canonical_json

NAME = b"palaver-bundle "
"""The first bytes of a bundle of any version."""

MAGIC = NAME + b"1\n"
_ANY_MAGIC = re.compile(rb"palaver-bundle (\d{1,9})\n")
_HEAD = re.compile(rb"([a-z]{1,16}) (\d{1,12}) ([0-9a-f]{64})\n")
_LONGEST_HEAD = 16 + 1 + 12 + 1 + 64 + 1
_PIECE = 1 << 16
_END = "end"


class Frame(NamedTuple):
    """One frame.

    Attributes:
        kind: The kind of payload, in lower-case letters.
        payload: Its bytes.
    """

    kind: str
    payload: bytes


def write_frames(frames: Iterable[Frame]) -> Iterator[bytes]:
    """Yield the bytes of a bundle in pieces."""
    yield MAGIC
    count = 0
    whole = sha256()
    for frame in frames:
        count += 1
        whole.update(sha256(frame.payload).digest())
        yield from _written(frame)
    yield from _written(Frame(_END, canonical_json({"digest": whole.hexdigest(), "frames": count})))


def _written(frame: Frame) -> Iterator[bytes]:
    digest = sha256(frame.payload).hexdigest()
    yield b"%s %d %s\n" % (frame.kind.encode(), len(frame.payload), digest.encode())
    yield frame.payload
    yield b"\n"


def read_frames(read: Callable[[int], bytes], name: str) -> Iterator[Frame]:
    """Yield the frames of a bundle, each after it was checked, and check the end.

    Args:
        read: Returns the next bytes, up to a maximum; none at the end.
        name: The bundle's name in errors.

    Raises:
        UnsupportedTranscript: The data is not a bundle, has a newer version, or is cut off or damaged; the error names the byte.
    """
    stream = _Stream(read, name)
    stream.magic()
    count = 0
    whole = sha256()
    while True:
        frame = stream.frame()
        if frame.kind == _END:
            break
        count += 1
        whole.update(sha256(frame.payload).digest())
        yield frame
    if frame.payload != canonical_json({"digest": whole.hexdigest(), "frames": count}):
        raise stream.fault(f"its end does not fit the {count} frames before it")
    if stream.more():
        raise stream.fault("there is something after its end")


class _Stream:
    """Bytes read in order, with the position. It reads in small pieces, so that a wrong length in a frame does not allocate memory."""

    def __init__(self, read: Callable[[int], bytes], name: str) -> None:
        self._read = read
        self._name = name
        self._buffer = bytearray()
        self._at = 0

    def fault(self, why: str) -> UnsupportedTranscript:
        return UnsupportedTranscript(self._name, f"it is damaged at byte {self._at}: {why}")

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size and (piece := self._read(_PIECE)):
            self._buffer += piece

    def _take(self, size: int) -> bytes:
        self._fill(size)
        if len(self._buffer) < size:
            raise self.fault(f"it ends {size - len(self._buffer)} bytes early")
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._at += size
        return taken

    def more(self) -> bool:
        self._fill(1)
        return bool(self._buffer)

    def magic(self) -> None:
        self._fill(len(MAGIC))
        if self._buffer.startswith(MAGIC):
            self._take(len(MAGIC))
            return
        found = _ANY_MAGIC.match(self._buffer)
        if found is None:
            raise UnsupportedTranscript(self._name, "it is not a palaver bundle")
        why = f"it is a bundle of version {int(found[1])}, and this palaver reads version 1"
        raise UnsupportedTranscript(self._name, why, hint="Use a newer palaver.")

    def frame(self) -> Frame:
        self._fill(_LONGEST_HEAD)
        found = _HEAD.match(self._buffer)
        if found is None:
            raise self.fault("a frame's head is missing" if self._buffer else "it ends before its end frame")
        kind, size, digest = found[1].decode(), int(found[2]), found[3].decode()
        self._take(found.end())
        payload = self._take(size)
        if sha256(payload).hexdigest() != digest:
            raise self.fault(f"the {kind} frame before it is not what was written")
        if self._take(1) != b"\n":
            raise self.fault("a frame does not end where it says")
        return Frame(kind, payload)
