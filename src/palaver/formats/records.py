"""Read JSON Lines: records with their place in the file, and a report of each malformed line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from pydantic_core import from_json

from palaver.formats.events import Loss
from palaver.formats.streams import Chunks, ReadLimits
from palaver.log.headers import DIGEST_BYTES

MAX_LINE = 1 << 28
"""The longest line or element that is read, in bytes. A longer one is not a record, and would fill the memory."""

_AROUND = b" \t\r\n\xef\xbb\xbf"  # no JSON object begins or ends with one of these bytes


class TextLine(NamedTuple):
    """A line that is not blank.

    Attributes:
        number: Its number in the file, starting at 1.
        data: Its bytes without the line end; empty if it is longer than `MAX_LINE`.
        ended: False if the file ends inside it.
    """

    number: int
    data: bytes
    ended: bool = True


class Record(NamedTuple):
    """A JSON object of a transcript.

    Attributes:
        ordinal: Its number among the file's records, starting at 0; unreadable lines count, blank ones do not.
        place: Its place, for people: `line 812`.
        data: The bytes of its line.
        value: The object.
    """

    ordinal: int
    place: str
    data: bytes
    value: Mapping[str, object]

    @property
    def digest(self) -> bytes:
        """The first 16 bytes of the SHA-256 of its bytes, without a byte order mark or white space around them."""
        return sha256(self.data.strip(_AROUND)).digest()[:DIGEST_BYTES]


class Parsed(NamedTuple):
    """The content of a piece of text.

    Attributes:
        values: The JSON values, each with the offset after it.
        repairs: The repairs made to read them: (code, reason).
        fault: Why the rest could not be read, or empty.
    """

    values: tuple[tuple[object, int], ...]
    repairs: tuple[tuple[str, str], ...] = ()
    fault: str = ""


class Decoder:
    """Python's JSON decoder, which keeps numbers that JSON lacks as text.

    Attributes:
        odd: The names of such numbers since the last clearing.
    """

    def __init__(self) -> None:
        self.odd: list[str] = []
        self._decoder = json.JSONDecoder(parse_constant=self._constant, strict=False)

    def _constant(self, name: str) -> str:
        self.odd.append(name)
        return name

    def value(self, text: str, at: int) -> tuple[object, int]:
        """Read the value at `at`; return it with the offset after it.

        Raises:
            ValueError: There is no value, or it is cut off, nested too deeply, or contains an integer too long to read.
        """
        try:
            return self._decoder.raw_decode(text, at)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    def repairs(self) -> tuple[tuple[str, str], ...]:
        """Return the repairs since the last call, as (code, reason)."""
        odd, self.odd = sorted(set(self.odd)), []
        return (("nonfinite", f"{', '.join(odd)} became text: JSON has no such number"),) if odd else ()


def parse(data: bytes) -> Parsed:
    """Read the JSON values in a text: one, or several if two writers wrote to one line. Never raise."""
    try:
        return Parsed(((from_json(data, allow_inf_nan=False), len(data)),))
    except ValueError:
        return _parse_slowly(data)


def _parse_slowly(data: bytes) -> Parsed:
    repairs: tuple[tuple[str, str], ...] = ()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        repairs = (("encoding", f"byte {error.start} of the record is not UTF-8; such bytes became U+FFFD"),)
    decoder, values, fault = Decoder(), [], ""
    at = skip(text, 0)
    while at < len(text) and not fault:
        try:
            value, at = decoder.value(text, at)
        except ValueError as error:
            fault = str(error)
        else:
            values.append((value, at))
            at = skip(text, at)
    return Parsed(tuple(values), (*repairs, *decoder.repairs()), fault)


def skip(text: str, at: int) -> int:
    """Return the offset of the next character that is not white space."""
    while at < len(text) and text[at] in " \t\r\n\ufeff":
        at += 1
    return at


def lines(chunks: Chunks) -> Iterator[TextLine]:
    """Split a stream into non-blank lines. The last one has `ended` False if it has no line end."""
    number, size, pending = 1, 0, [b""]
    for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        pending.append(first)
        size += len(first)
        if size > MAX_LINE:
            pending = [b""]
        for part in rest:
            yield from _line(number, b"".join(pending), size, ended=True)
            number, size, pending = number + 1, len(part), [part]
    yield from _line(number, b"".join(pending), size, ended=False)


def text_lines(chunks: Chunks) -> Iterator[tuple[int, str, bool]]:
    """Split a stream into lines of text; bytes that are not UTF-8 become U+FFFD. See `Member.text_lines`."""
    number, size, pending = 1, 0, list[bytes]()
    for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        pending.append(first[: MAX_LINE - size])
        size += len(pending[-1])
        for part in rest:
            yield number, b"".join(pending).decode(errors="replace") + "\n", True
            number, size, pending = number + 1, len(part), [part]
    if size:
        yield number, b"".join(pending).decode(errors="replace"), False


def _line(number: int, data: bytes, size: int, *, ended: bool) -> Iterator[TextLine]:
    if size > MAX_LINE:
        yield TextLine(number, b"", ended)
    elif data.strip():
        yield TextLine(number, data, ended)


def records(chunks: Chunks, limits: ReadLimits, within: str = "") -> Iterator[Record | Loss]:
    """Read a file of one JSON object per line, as far as possible. Yield a report for each unreadable line.

    Args:
        chunks: The file.
        limits: The maximum number of lines.
        within: A prefix for each place, such as the name of an archive's member; or empty.
    """
    early: list[str] = []
    ordinal = 0
    for line in lines(_noting(chunks, early)):
        if line.number > limits.records:
            early = [f"it has more than {limits.records:,} lines, the limit"]
            break
        place = f"{within}line {line.number}"
        parsed = parse(line.data)
        yield from _losses(parsed, line, place)
        start = 0
        for value, stop in parsed.values:
            if isinstance(value, dict):
                data = line.data if len(parsed.values) == 1 else line.data.decode(errors="replace")[start:stop].encode()
                yield Record(ordinal, place, data, value)
            start = stop
            ordinal += 1
        ordinal += not parsed.values
    if early and early[0]:
        reason = f"The file is incomplete: {early[0]}."
        yield Loss(place=f"{within}end", reason=reason, code="torn_tail", severity="loss")


def _noting(chunks: Chunks, early: list[str]) -> Chunks:
    early.append((yield from chunks))
    return early[0]


def _losses(parsed: Parsed, line: TextLine, place: str) -> Iterator[Loss]:
    for code, reason in parsed.repairs:
        yield Loss(place=place, reason=f"{reason}.", code=code)
    if not line.data:
        yield Loss(place=place, reason=f"The line is longer than {MAX_LINE} bytes.", code="bad_record", severity="loss")
    elif parsed.fault:
        code, what = ("bad_record", "is not JSON") if line.ended else ("torn_tail", "is cut off")
        yield Loss(place=place, reason=f"The line {what}: {parsed.fault}.", code=code, severity="loss")
    elif not all(isinstance(value, dict) for value, _ in parsed.values):
        yield Loss(place=place, reason="The line has JSON that is not an object.", code="bad_record", severity="loss")
    if len(parsed.values) > 1:
        reason = f"The line has {len(parsed.values)} records; each was read."
        yield Loss(place=place, reason=reason, code="glued_records")
