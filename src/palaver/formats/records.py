"""Records of a transcript: JSON values with their place in the file, and a word about each that is not as it should be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from pydantic_core import from_json

from palaver.formats.events import Loss
from palaver.formats.streams import Chunks
from palaver.log.headers import DIGEST_BYTES

MAX_LINE = 1 << 28
"""The longest line that is read, in bytes: longer ones are no record and would be held in memory."""


_AROUND = b" \t\r\n\xef\xbb\xbf"  # no object of JSON begins or ends with one of these bytes


class Line(NamedTuple):
    """A line that is not blank.

    Attributes:
        number: Its number in the file, starting at 1.
        offset: The offset of its first byte.
        data: Its bytes without the line's end; empty when it is longer than `MAX_LINE`.
        ended: False when the file ends within it.
    """

    number: int
    offset: int
    data: bytes
    ended: bool = True


class Record(NamedTuple):
    """A JSON object of a transcript.

    Attributes:
        ordinal: Its number among the file's records, starting at 0; lines that cannot be read count, blank ones do not.
        place: Where it stands, for people: `line 812`.
        offset: The offset of its first byte.
        data: The bytes of its line.
        value: The object.
    """

    ordinal: int
    place: str
    offset: int
    data: bytes
    value: Mapping[str, object]

    @property
    def digest(self) -> bytes:
        """The first 16 bytes of the SHA-256 of its bytes, without a byte order mark or the line ends of another system around them."""
        return sha256(self.data.strip(_AROUND)).digest()[:DIGEST_BYTES]


def readable(found: Iterator[Record | Loss], losses: list[Loss]) -> Iterator[Record]:
    """Give the records that could be read; a word about each other one goes into `losses`."""
    for item in found:
        if isinstance(item, Loss):
            losses.append(item)
        else:
            yield item


class Parsed(NamedTuple):
    """What a piece of text holds.

    Attributes:
        values: The JSON values, each with the offset behind it.
        repairs: What was changed to read them: (code, reason).
        fault: Why the rest could not be read, or empty.
    """

    values: tuple[tuple[object, int], ...]
    repairs: tuple[tuple[str, str], ...] = ()
    fault: str = ""


class _Decoder:
    """Python's JSON decoder, told to note numbers that JSON does not know."""

    def __init__(self) -> None:
        self.odd: list[str] = []
        self._decoder = json.JSONDecoder(parse_constant=self._constant, strict=False)

    def _constant(self, name: str) -> str:
        self.odd.append(name)
        return name

    def read(self, data: bytes) -> Parsed:
        """Read all values; one that is JSON to the letter, as nearly all are, by a reader that is several times as fast."""
        try:
            return Parsed(((from_json(data, allow_inf_nan=False), len(data)),), (), "")
        except ValueError:
            return self._patiently(data)

    def _patiently(self, data: bytes) -> Parsed:
        text, repairs = _text(data)
        values: list[tuple[object, int]] = []
        self.odd.clear()
        at, fault = _skip(text, 0), ""
        while at < len(text) and not fault:
            try:
                value, at = self._decoder.raw_decode(text, at)
            except json.JSONDecodeError as error:
                fault = f"{error.msg} at character {error.pos}"
            except RecursionError:
                fault = "it is nested too deeply"
            except ValueError as error:  # an integer of more digits than Python reads
                fault = str(error)
            else:
                values.append((value, at))
                at = _skip(text, at)
        if self.odd:
            repairs = (
                *repairs,
                ("nonfinite", f"{', '.join(sorted(set(self.odd)))} became text: JSON has no such number"),
            )
        return Parsed(tuple(values), repairs, fault)


def _text(data: bytes) -> tuple[str, tuple[tuple[str, str], ...]]:
    try:
        return data.decode(), ()
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} of the record is not UTF-8; such bytes became U+FFFD"
        return data.decode(errors="replace"), (("encoding", reason),)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n\ufeff":
        at += 1
    return at


def parse(data: bytes) -> Parsed:
    """Read the JSON values in a piece of text: one, or several that two writers put on one line. Never raises."""
    return _Decoder().read(data)


def lines(chunks: Chunks) -> Iterator[Line]:
    """Take a stream apart into the lines that are not blank. The generator's last line has `ended` False without a line's end."""
    number, offset, size, pending = 1, 0, 0, []
    for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        pending.append(first)
        size += len(first)
        if size > MAX_LINE:
            pending = [b""]
        for part in rest:
            yield from _line(number, offset, b"".join(pending), size)
            number, offset, size, pending = number + 1, offset + size + 1, len(part), [part]
    yield from _line(number, offset, b"".join(pending), size, ended=False)


def _line(number: int, offset: int, data: bytes, size: int, *, ended: bool = True) -> Iterator[Line]:
    if size > MAX_LINE:
        yield Line(number, offset, b"", ended)
    elif data.strip():
        yield Line(number, offset, data, ended)


def records(chunks: Chunks, within: str = "") -> Iterator[Record | Loss]:
    """Read a file of one JSON object a line, as far as it can be read; what cannot be read is reported in its place.

    Args:
        chunks: The file.
        within: What to put before each place, such as the name of an archive's member; or empty.
    """
    early = _Ending(chunks)
    decoder = _Decoder()
    ordinal = 0
    for line in lines(early.chunks()):
        place = f"{within}line {line.number}"
        parsed = decoder.read(line.data)
        yield from _losses(parsed, line, place)
        start = 0
        for value, stop in parsed.values:
            if isinstance(value, dict):
                data = line.data if len(parsed.values) == 1 else line.data.decode(errors="replace")[start:stop].encode()
                yield Record(ordinal, place, line.offset, data, value)
            start = stop
            ordinal += 1
        ordinal += not parsed.values
    if early.why:
        yield Loss(
            place=f"{within}end", reason=f"The file is incomplete: {early.why}.", code="torn_tail", severity="loss"
        )


class _Ending:
    """Remembers why a stream ended early."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self.why = ""

    def chunks(self) -> Chunks:
        self.why = yield from self._chunks
        return self.why


def _losses(parsed: Parsed, line: Line, place: str) -> Iterator[Loss]:
    for code, reason in parsed.repairs:
        yield Loss(place=place, reason=f"{reason}.", code=code)
    objects = [value for value, _ in parsed.values if isinstance(value, dict)]
    if not line.data:
        yield Loss(place=place, reason=f"The line is longer than {MAX_LINE} bytes.", code="bad_record", severity="loss")
    elif parsed.fault and not line.ended:
        reason = f"The last line is cut off ({parsed.fault})."
        yield Loss(place=place, reason=reason, code="torn_tail", severity="loss")
    elif parsed.fault:
        yield Loss(place=place, reason=f"The line is no JSON: {parsed.fault}.", code="bad_record", severity="loss")
    elif len(objects) < len(parsed.values):
        yield Loss(place=place, reason="The line holds JSON that is no object.", code="bad_record", severity="loss")
    if len(parsed.values) > 1:
        reason = f"{len(parsed.values)} records stand on one line; each was read."
        yield Loss(place=place, reason=reason, code="glued_records")
