"""Read a large JSON document element by element, with only one element in memory."""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Generator
from typing import NamedTuple

from pydantic_core import from_json

from palaver.formats.records import MAX_LINE, Decoder, skip
from palaver.formats.streams import Chunks, ReadLimits

_REFILL = 1 << 16


class Element(NamedTuple):
    """A part of a document.

    Attributes:
        key: Its top-level key; empty in an array.
        nth: Its number in its array, starting at 0; -1 for a value that was not split.
        value: The value, or the complete part of a value that is cut off.
        whole: False if the document ends or is damaged inside it.
        repairs: The repairs made to read it: (code, reason).
    """

    key: str
    nth: int
    value: object
    whole: bool = True
    repairs: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """Its path, such as `[3]`, `info`, `simulations[3]`."""
        return f"{self.key}[{self.nth}]" if self.nth >= 0 else self.key


class _DocumentEnd(Exception):
    """The document ends, or is damaged, here; never raised to a caller."""


class _Text:
    """The part of a document that is in memory, as text."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = Decoder()
        self._buffer = ""
        self._at = 0
        self.early = ""

    def _refill(self) -> bool:
        """Read at least as much as is pending, so that rescanning costs at most twice; return False at the end."""
        parts = [self._buffer[self._at :]]
        self._at, wanted = 0, max(_REFILL, len(parts[0]))
        had = wanted
        while wanted > 0:
            try:
                parts.append(self._utf8.decode(next(self._chunks)))
            except StopIteration as end:
                self.early = self.early or end.value or ""
                break
            wanted -= len(parts[-1])
        self._buffer = "".join(parts)
        return wanted < had

    def peek(self) -> str:
        """Return the next character that is not white space, without consuming it."""
        self._at = skip(self._buffer, self._at)
        while self._at == len(self._buffer):
            if not self._refill():
                raise _DocumentEnd(self.early or "it is cut off")
            self._at = skip(self._buffer, self._at)
        return self._buffer[self._at]

    def expect(self, wanted: str) -> str:
        """Consume one of the wanted characters."""
        token = self.peek()
        if token not in wanted:
            raise _DocumentEnd(f"it has {token!r} where one of {wanted!r} belongs")
        self._at += 1
        return token

    def element(self, key: str, nth: int) -> Element:
        """Read one value."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.value(self._buffer, self._at)
            except ValueError as error:
                if len(self._buffer) - self._at <= MAX_LINE and self._refill():
                    continue
                return self._torn(key, nth, str(error))
            size = end - self._at
            if end == len(self._buffer) and self._refill():  # a number may continue
                continue
            self._at += size
            return Element(key, nth, value, repairs=self._decoder.repairs())

    def _torn(self, key: str, nth: int, why: str) -> Element:
        rest, self._at = self._buffer[self._at :], len(self._buffer)
        self.early = self.early or why
        return Element(key, nth, _whole_part(rest) if len(rest) <= MAX_LINE else None, whole=False)


_SIGNS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)  # a string, closed or not, or a bracket


def _whole_part(text: str) -> object:
    """Return the complete part of a value that is cut off: values of an object, elements of its lists."""
    try:
        value = from_json(text.rstrip().encode(errors="replace"), allow_partial=True)
    except ValueError:
        return None
    brackets = [sign for sign in _SIGNS.findall(text) if len(sign) == 1 and sign != '"']
    opened = sum(1 if sign in "[{" else -1 for sign in brackets)
    newest = next(reversed(value.values()), None) if isinstance(value, dict) else None
    if opened > _LIST and isinstance(newest, list):
        newest.pop()
    return value


_LIST = 2  # how many brackets are open within a list of an object


def elements(chunks: Chunks, limits: ReadLimits, into: Collection[str] = ()) -> Generator[Element, None, str]:
    """Read a document: an array by its elements, an object by its values.

    Args:
        chunks: The document's bytes.
        limits: The maximum number of elements.
        into: The keys of a top-level object whose arrays are read element by element.

    Returns:
        The generator returns the reason why reading stopped before the end, or an empty string.
    """
    text = _Text(chunks)
    count = 0
    try:
        for element in _array(text, "") if text.peek() == "[" else _object(text, into):
            count += 1
            if count > limits.records:
                return f"it has more than {limits.records:,} elements, the limit"
            yield element
            if not element.whole:
                return text.early
    except _DocumentEnd as end:
        return str(end)
    return text.early


def _array(text: _Text, key: str) -> Generator[Element, None, None]:
    text.expect("[")
    if text.peek() == "]":
        text.expect("]")
        return
    nth = 0
    while True:
        yield text.element(key, nth)
        nth += 1
        if text.expect(",]") == "]":
            return


def _object(text: _Text, into: Collection[str]) -> Generator[Element, None, None]:
    text.expect("{")
    if text.peek() == "}":
        text.expect("}")
        return
    while True:
        if text.peek() != '"':
            raise _DocumentEnd(f"it has {text.peek()!r} where a key belongs")
        name = text.element("", -1)
        if not name.whole:
            raise _DocumentEnd("it is cut off in a key")
        key = str(name.value)
        text.expect(":")
        if key in into and text.peek() == "[":
            yield from _array(text, key)
        else:
            yield text.element(key, -1)
        if text.expect(",}") == "}":
            return
