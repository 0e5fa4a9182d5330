"""Records: a session as a stream of values, which is what files, dictionaries and stores exchange.

A stream begins with its session. Each dialog, in the order of creation, comes with its own entries, and the sources come last. A payload comes before the
first record that names it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import BlobId
from palaver.log import Header, Node
from palaver.messages import canonical_json, thaw
from palaver.store.protocol import SessionRecord, SourceRecord

VERSION = 1
"""The version of the records."""

_MINE = {"updated_at", "trashed_at"}
"""Fields of a session that each store decides by itself."""

_ENTRY = b',"entry":'

_Kind = TypeVar("_Kind", SessionRecord, Node, SourceRecord)


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """An entry in a stream.

    Attributes:
        seq: Its number in its dialog.
        turn: Whether it belonged to a turn.
        body: Its bytes.
        header: Its header, to be kept as it is; None where the header follows from the body and the entries before it. It is never written to a file.
    """

    seq: int
    turn: bool
    body: bytes
    header: Header | None = None


@dataclass(frozen=True, slots=True)
class Payload:
    """The bytes of a payload in a stream."""

    data: bytes


Record: TypeAlias = SessionRecord | Node | EntryRecord | Payload | SourceRecord


def pieces_in(listing: bytes) -> tuple[BlobId, ...]:
    """Return the payloads of a stored file, from the payload that lists them.

    Raises:
        StoreDamaged: It does not list a stored file.
    """
    try:
        return tuple(BlobId(str(piece)) for piece in json.loads(listing)["pieces"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamaged("the list of a kept file", f"it cannot be read: {error}") from error


# --- as JSON ----------------------------------------------------------------------------------------------------------------------


def to_json(record: Record) -> dict[str, Any]:
    """Return a record as a JSON object."""
    match record:
        case SessionRecord():
            return {"palaver": VERSION, "session": {name: value for name, value in _plain(record) if name not in _MINE}}
        case Node(ranges=ranges):
            spans = [[span.dialog, span.start, span.stop] for span in ranges]
            return {"dialog": dict(_plain(record)) | {"ranges": spans}}
        case EntryRecord(seq=seq, turn=turn, body=body):
            return {"seq": seq, "turn": turn, "entry": json.loads(body)}
        case Payload(data=data):
            return {"blob": sha256(data).hexdigest(), "data": base64.b64encode(data).decode()}
        case SourceRecord():
            return {"source": dict(_plain(record))}


def _plain(value: SessionRecord | Node | SourceRecord) -> Iterator[tuple[str, Any]]:
    for field in fields(value):
        item = getattr(value, field.name)
        yield field.name, thaw(dict(item)) if isinstance(item, Mapping) else item


def from_json(value: object) -> Record:
    """Read a record from a JSON object.

    Raises:
        InvalidInput: It is not a record of this version, or a payload does not match its digest.
    """
    match value:
        case {"palaver": 1, "session": session, **rest} if not rest:
            return _typed(SessionRecord, session)
        case {"palaver": version, **_rest}:
            raise InvalidInput(f"These records have version {version}, and this palaver reads version {VERSION}.")
        case {"dialog": {"ranges": list(ranges), **own}, **rest} if not rest:
            spans = [_span(span) for span in ranges]
            return _typed(Node, {**own, "ranges": spans})
        case {"seq": int(seq), "turn": bool(turn), "entry": entry, **rest} if not rest:
            return EntryRecord(seq, turn, canonical_json(entry))
        case {"blob": str(blob), "data": str(text), **rest} if not rest:
            return _payload(blob, text)
        case {"source": source, **rest} if not rest:
            return _typed(SourceRecord, source)
    raise InvalidInput("This is not a record of a session as palaver writes it.")


def _span(value: object) -> dict[str, object]:
    match value:
        case [dialog, start, stop]:
            return {"dialog": dialog, "start": start, "stop": stop}
    raise InvalidInput("The ranges of a dialog cannot be read: each is a dialog and two numbers.")


def _payload(blob: str, text: str) -> Payload:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"Payload {blob[:12]} cannot be read: {error}.") from error
    if sha256(data).hexdigest() != blob:
        raise InvalidInput(f"Payload {blob[:12]} does not match its digest.")
    return Payload(data)


def _typed(kind: type[_Kind], value: object) -> _Kind:
    """Return a typed value of a JSON object, without unknown fields."""
    if not isinstance(value, dict):
        raise InvalidInput(f"A {kind.__name__} is a JSON object.")
    if unknown := sorted(set(value) - {field.name for field in fields(kind)}):
        raise InvalidInput(f"The fields {', '.join(unknown)} of a {kind.__name__} are unknown.")
    try:
        made: _Kind = _adapter(cast("Any", kind)).validate_json(canonical_json(value), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(f"A {kind.__name__} cannot be read: {first['loc']}: {first['msg']}.") from error
    return made


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a type
    return TypeAdapter(kind)


def from_list(records: object) -> Iterator[Record]:
    """Yield the records of a list of JSON objects.

    Raises:
        InvalidInput: It is not a list of records.
    """
    if not isinstance(records, list):
        raise InvalidInput("The records of a session are a list.")
    yield from map(from_json, records)


# --- as a line --------------------------------------------------------------------------------------------------------------------


def to_line(record: Record) -> bytes:
    """Return a record as one line of JSON. An entry has its own bytes in it.

    Raises:
        InvalidInput: An entry is not one line.
    """
    if not isinstance(record, EntryRecord):
        return canonical_json(to_json(record))
    if b"\n" in record.body:
        raise InvalidInput(f"Entry {record.seq} is not one line of JSON.")
    return b'{"seq":%d,"turn":%s,"entry":%s}' % (record.seq, b"true" if record.turn else b"false", record.body)


def from_line(line: bytes) -> Record:
    """Read a record from its line.

    Raises:
        InvalidInput: As `from_json`, or it is not JSON.
    """
    head, mark, rest = line.partition(_ENTRY) if line.startswith(b'{"seq":') else (line, b"", b"")
    try:
        value = json.loads(head + mark + b"null}" if mark else head)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"A line is not JSON: {error}.") from error
    record = from_json(value)
    return EntryRecord(record.seq, record.turn, rest[:-1]) if isinstance(record, EntryRecord) and mark else record
