"""Entries from their canonical bytes, and stand-ins for entries that cannot be read any more.

A header says enough for everything around its entry to stay readable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from pydantic_core import ValidationError, from_json

from palaver.errors import InvalidInput, InvalidMessage, NotFound, StoreDamaged
from palaver.ids import BlobId
from palaver.log.entries import KINDS, Entry, Inbox, LateResult, MessageEntry, UnknownEntry
from palaver.log.handles import Handle, Span
from palaver.log.headers import NOTHING, SAID, Header, body_digest, draft_of, next_header, rule
from palaver.log.lineage import Reader
from palaver.messages import (
    AssistantMessage,
    Message,
    Role,
    Speaker,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    is_plain,
    media_of,
)
from palaver.messages.frozen import STORED

_Row = TypeVar("_Row", Header, tuple[int, bytes])


def decode_entry(body: bytes) -> Entry:
    """Read an entry from its canonical bytes. A kind that this version does not know becomes an `UnknownEntry`.

    Raises:
        InvalidInput: The bytes are not an entry.
    """
    raw = _read_json(body)
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
        message = "An entry is a JSON object with a kind; these bytes are not."
        raise InvalidInput(message)
    if raw["kind"] == "message" and is_plain(body):  # reading a message as it was written is faster than normalising it
        with suppress(ValidationError, InvalidMessage):
            return MessageEntry.model_validate(raw, context=STORED)
    try:
        return KINDS.get(raw["kind"], UnknownEntry).model_validate(raw)
    except ValidationError as error:
        message = f"The bytes are not an entry of kind {raw['kind']}: {error.errors()[0]['msg']}."
        raise InvalidInput(message) from error


def media_in(body: bytes) -> Iterator[BlobId]:
    """Yield the payloads of the media in an entry.

    Raises:
        InvalidInput: The body is not an entry.
    """
    if b'"digest"' not in body:  # most entries name no payload, and need not be decoded
        return
    entry = decode_entry(body)
    for media in media_of(entry.message) if isinstance(entry, MessageEntry | Inbox | LateResult) else ():
        if media.url is None:
            yield BlobId(media.digest)


def derived_header(header: Header, body: bytes, last: Header) -> Header:
    """Return the header that follows from a body and the header before it. Of an unknown kind, only what every kind has.

    Raises:
        InvalidInput: The body is not an entry.
    """
    entry = decode_entry(body)
    general: dict[str, Any] = {
        "size": len(body),
        "total": last.total + len(body),
        "digest": body_digest(body),
        "seq": last.seq + 1,
    }
    if entry.kind not in KINDS or entry.kind == "tombstone":
        return header._replace(**general)
    law = rule(entry.kind)
    turn = header.turn_head == header.seq if law.turn and law.beside else law.turn
    made = next_header(draft_of(entry, body), last, turn=turn, judged=False)
    return made if entry.erased is None else made._replace(**_shape(header))


def _shape(header: Header) -> dict[str, Any]:
    """Return the fields after the digest: an erasure keeps them."""
    return dict(zip(Header._fields[14:], header[14:], strict=True))


def _read_json(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Read JSON with the faster reader, and what it refuses (NaN, lone surrogates, huge numbers) with Python's."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError:
        pass
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        message = f"The bytes of an entry are not JSON: {error}."
        raise InvalidInput(message) from error


# --- entries that cannot be read ----------------------------------------------------------------------------------------------------

LOST = "palaver.lost"
"""The mark of an entry that replaced a lost one when its session was rebuilt: a key in a message's metadata, or a custom entry's type."""

_UNREADABLE = "[Entry {handle} cannot be read: it is lost, or not what was written.]"


def every_body(reader: Reader, span: Span) -> Iterator[tuple[int, bytes]]:
    """Return numbers and bodies of a span, and an empty body for each entry whose own is lost or damaged. `decoded` makes a stand-in of an empty body."""
    return _every(reader.bodies(span.dialog, span.start, span.stop), span, lambda seq: (seq, b""))


def every_header(reader: Reader, span: Span) -> Iterator[Header]:
    """Return the headers of a span, and for each entry that the store has lost the header of a message that says so."""
    return _every(reader.headers(span.dialog, span.start, span.stop), span, lost_header)


def _every(rows: Iterable[_Row], span: Span, lost: Callable[[int], _Row]) -> Iterator[_Row]:
    """Return rows that begin with their number, and another for each number of the span that they pass over."""
    expected = span.start
    for row in rows:
        if row[0] != expected:
            yield from map(lost, range(expected, row[0]))
        yield row
        expected = row[0] + 1
    yield from map(lost, range(expected, span.stop))


def lost_header(seq: int) -> Header:
    """Return the header of an entry that a store has lost: a message that says so."""
    return NOTHING._replace(
        seq=seq, kind="message", role="user", speaker="harness", blocks="t", continues="message"
    )  # it counts as no message of its own


def entry_at(reader: Reader, handle: Handle) -> Entry:
    """Read one entry, or return its stand-in when its body is lost or damaged.

    Raises:
        NotFound: There is no such entry.
    """
    try:
        body = reader.body(handle.dialog, handle.seq)
    except StoreDamaged:
        body = b""
    return decoded(reader, handle, body)


def decoded(reader: Reader, handle: Handle, body: bytes) -> Entry:
    """Read an entry. In place of one whose bytes are not an entry, return a message of the harness that says so.

    The stand-in has the calls and results that the header names, so that those of other entries keep their other half. `Store.verify` lists damaged
    entries.
    """
    try:
        return decode_entry(body)
    except InvalidInput:
        return _stand_in(reader, handle)


def _stand_in(reader: Reader, handle: Handle) -> MessageEntry:
    try:
        header = reader.header(handle.dialog, handle.seq)
    except (NotFound, StoreDamaged):
        header = NOTHING  # the header is lost too
    message = _in_place_of(header, _UNREADABLE.format(handle=handle))
    return MessageEntry(at=header.at, message=message.model_copy(update={"id": str(handle), "timestamp": header.at}))


def _in_place_of(header: Header, text: str) -> Message:
    """Return a message in place of a lost one: of its role, with the calls that its header names, opened or answered."""
    if header.role == Role.TOOL:
        results = tuple(ToolResultContent(id=call, content=text, is_error=True) for call in header.calls)
        return ToolMessage(contents=results or (ToolResultContent(content=text, is_error=True),))
    said = TextContent(content=text)
    if header.role in SAID:
        calls = (ToolCallContent(id=call, name="unreadable") for call in header.calls)
        return AssistantMessage(contents=(said, *calls), response_id=header.response or None, fragment=True)
    return UserMessage(contents=(said,), speaker=Speaker.HARNESS)
