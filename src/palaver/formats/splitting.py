"""A large JSON document taken apart at its commas: one element in memory, never the document."""

from __future__ import annotations

import re
from collections.abc import Collection, Generator
from typing import NamedTuple

from palaver.formats.streams import Chunks

MAX_ELEMENT = 1 << 28
"""The largest element, in bytes: larger ones are no conversation and would be held in memory."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|([\[{])|([\]}])', re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*+")
_SCALAR = re.compile(rb"[^\s,\]}\"\[{:]++")
_REFILL = 1 << 16
_BOM = b"\xef\xbb\xbf"


class Part(NamedTuple):
    """A part of a document.

    Attributes:
        key: The top-level key it stands under; empty in an array.
        nth: Its number in the array it was taken from, starting at 0; -1 for a value that was not taken apart.
        offset: The offset of its first byte in the document.
        data: Its bytes.
        whole: False when the document ends within it.
    """

    key: str
    nth: int
    offset: int
    data: bytes
    whole: bool = True

    @property
    def path(self) -> str:
        """Where it stands, such as `[3]`, `info`, `simulations[3]`."""
        return f"{self.key}[{self.nth}]" if self.nth >= 0 else self.key


Parts = Generator[Part, None, str]


class _End(Exception):
    """The document ends, or goes wrong, here; it never leaves this module."""


class _Window:
    """The part of a document that is in memory."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._base = 0
        self.early = ""
        self.buffer = b""
        self.at = 0

    @property
    def offset(self) -> int:
        return self._base + self.at

    def refill(self) -> bool:
        """Add at least as many bytes as are pending, so that looking again costs twice at most; False at the end."""
        parts = [self.buffer[self.at :]]
        wanted = max(_REFILL, len(parts[0]))
        self._base, self.at = self.offset, 0
        had = wanted
        while wanted > 0:
            try:
                parts.append(next(self._chunks))
            except StopIteration as end:
                self.early = self.early or end.value or ""
                break
            wanted -= len(parts[-1])
        self.buffer = b"".join(parts)
        return wanted < had

    def peek(self) -> bytes:
        """Give the next byte that is no space, without taking it."""
        while True:
            found = _SPACE.match(self.buffer, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.buffer):
                return self.buffer[self.at : self.at + 1]
            if not self.refill():
                raise _End(self.early or "it is cut off")

    def expect(self, wanted: bytes) -> bytes:
        """Take one of the wanted bytes."""
        byte = self.peek()
        if byte not in wanted:
            raise _End(f"byte {self.offset} is {byte!r}, not one of {wanted!r}")
        self.at += 1
        return byte

    def value(self) -> tuple[bytes, bool]:
        """Take one value; False when the document ends within it."""
        scan = _scalar if self.peek() not in b'"[{' else _nested
        depth, past = 0, 0
        while True:
            depth, past, done = scan(self.buffer, self.at, past, depth)
            if done:
                data = self.buffer[self.at : self.at + past]
                self.at += past
                return data, True
            if len(self.buffer) - self.at > MAX_ELEMENT:
                raise _End(f"the value at byte {self.offset} is larger than {MAX_ELEMENT} bytes")
            if not self.refill():
                data, self.at = self.buffer[self.at :], len(self.buffer)
                return data, False


def _scalar(buffer: bytes, at: int, _past: int, _depth: int) -> tuple[int, int, bool]:
    found = _SCALAR.match(buffer, at)
    if not found:
        raise _End(f"no value begins at byte {buffer[at : at + 1]!r}")
    return 0, found.end() - at, found.end() < len(buffer)


def _nested(buffer: bytes, at: int, past: int, depth: int) -> tuple[int, int, bool]:
    """Look for the end of a string, array or object, from `past` bytes behind its start, `depth` brackets deep."""
    where = at + past
    while found := _TOKEN.search(buffer, where):
        closed, opens, closes = found.groups()
        if closed == b"":
            return depth, found.start() - at, False
        where = found.end()
        depth += (opens is not None) - (closes is not None)
        if depth <= 0:
            return 0, where - at, True
    return depth, max(len(buffer) - at, past), False


def split(chunks: Chunks, into: Collection[str] = ()) -> Parts:
    """Take a document apart: an array into its elements, an object into its values.

    Args:
        chunks: The document's bytes.
        into: The keys of a top-level object whose arrays are taken apart in turn.

    Returns:
        The generator returns why the document could not be taken apart to its end, or an empty string.
    """
    window = _Window(chunks)
    try:
        if window.peek() == _BOM[:1]:
            window.at += len(_BOM)
        if window.peek() == b"[":
            yield from _elements(window, "")
        else:
            yield from _members(window, into)
    except _End as end:
        return str(end)
    return window.early


def _elements(window: _Window, key: str) -> Generator[Part, None, None]:
    window.expect(b"[")
    index = 0
    if window.peek() == b"]":
        window.at += 1
        return
    while True:
        yield _part(window, key, index)
        index += 1
        if window.expect(b",]") == b"]":
            return


def _members(window: _Window, into: Collection[str]) -> Generator[Part, None, None]:
    window.expect(b"{")
    if window.peek() == b"}":
        window.at += 1
        return
    while True:
        if window.peek() != b'"':
            raise _End(f"byte {window.offset} begins no key")
        name, whole = window.value()
        if not whole:
            raise _End("it is cut off in a key")
        key = name[1:-1].decode(errors="replace")
        window.expect(b":")
        if key in into and window.peek() == b"[":
            yield from _elements(window, key)
        else:
            yield _part(window, key, -1)
        if window.expect(b",}") == b"}":
            return


def _part(window: _Window, key: str, index: int) -> Part:
    window.peek()
    offset = window.offset
    data, whole = window.value()
    return Part(key, index, offset, data, whole)
