"""Frames: the outer form of a bundle, in which a cut or a flipped byte cannot go unseen.

A bundle is a line that names it, then frames. A frame is a line `kind length digest`, then `length` bytes of payload and a newline. The last
frame, `end`, counts the frames before it and gives the digest of all their digests. Text tools can read it, and every payload that is JSON is
one line of canonical JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from palaver.errors import InvalidBundle
from palaver.messages import canonical_json
from palaver.plurals import counted

NAME = b"palaver-bundle "
"""What a bundle of any version begins with."""

MAGIC = NAME + b"1\n"
_ANY_MAGIC = re.compile(rb"palaver-bundle (\d{1,9})\n")
_HEAD = re.compile(rb"([a-z]{1,16}) (\d{1,12}) ([0-9a-f]{64})\n")
_LONGEST_HEAD = 16 + 1 + 12 + 1 + 64 + 1
_END = "end"


class Frame(NamedTuple):
    """One frame.

    Attributes:
        kind: What the payload is, in lower-case letters.
        payload: Its bytes.
    """

    kind: str
    payload: bytes


def write_frames(frames: Iterable[Frame]) -> Iterator[bytes]:
    """Give the bytes of a bundle, piece by piece."""
    yield MAGIC
    count = 0
    whole = sha256()
    for frame in frames:
        head, digest = _head(frame)
        whole.update(digest)
        count += 1
        yield head
        yield frame.payload
        yield b"\n"
    end = Frame(_END, canonical_json({"digest": whole.hexdigest(), "frames": count}))
    yield _head(end)[0]
    yield end.payload
    yield b"\n"


def _head(frame: Frame) -> tuple[bytes, bytes]:
    digest = sha256(frame.payload)
    return b"%s %d %s\n" % (frame.kind.encode(), len(frame.payload), digest.hexdigest().encode()), digest.digest()


def read_frames(read: Callable[[int], bytes], name: str) -> Iterator[Frame]:
    """Give the frames of a bundle, each checked before it is given, and the end before the iterator ends.

    Args:
        read: Gives at most so many of the next bytes, and none at the end.
        name: The bundle's name in errors.

    Raises:
        InvalidBundle: It is no bundle, of a newer version, cut off, or damaged; the error says at which byte.
    """
    stream = _Stream(read, name)
    stream.magic()
    count = 0
    whole = sha256()
    while True:
        frame, digest = stream.frame()
        if frame.kind == _END:
            break
        count += 1
        whole.update(digest)
        yield frame
    if frame.payload != canonical_json({"digest": whole.hexdigest(), "frames": count}):
        raise stream.fault(f"its end does not speak of the {counted(count, 'frame')} before it")
    if stream.more():
        raise stream.fault("there is something after its end")


class _Stream:
    """Bytes read in order, with the place of the next one."""

    def __init__(self, read: Callable[[int], bytes], name: str) -> None:
        self._read = read
        self._name = name
        self._buffer = b""
        self._at = 0

    def fault(self, why: str) -> InvalidBundle:
        return InvalidBundle(f"{self._name} is damaged at byte {self._at}: {why}.")

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            piece = self._read(max(size - len(self._buffer), 1 << 16))
            if not piece:
                return
            self._buffer += piece

    def _take(self, size: int) -> bytes:
        self._fill(size)
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        if len(taken) < size:
            raise self.fault(f"it ends {counted(size - len(taken), 'byte')} early")
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
            raise InvalidBundle(f"{self._name} is no palaver bundle.")
        raise InvalidBundle(f"{self._name} has version {int(found[1])}; this palaver reads version 1. Use a newer one.")

    def frame(self) -> tuple[Frame, bytes]:
        self._fill(_LONGEST_HEAD)
        found = _HEAD.match(self._buffer)
        if found is None:
            raise self.fault("a frame's head is missing" if self._buffer else "it ends before its end frame")
        self._take(found.end())
        kind, size, digest = found[1].decode(), int(found[2]), found[3].decode()
        payload = self._take(size)
        real = sha256(payload)
        if real.hexdigest() != digest:
            raise self.fault(f"the {kind} frame before it is not what was written")
        if self._take(1) != b"\n":
            raise self.fault("a frame does not end where it says")
        return Frame(kind, payload), real.digest()
