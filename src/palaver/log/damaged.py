"""Stand-ins for entries that cannot be read any more. A header says enough for everything around its entry to stay readable."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.errors import InvalidInput, NotFound, StoreDamaged
from palaver.log.codec import decode_entry
from palaver.log.entries import Entry, MessageEntry
from palaver.log.handles import Handle, Span
from palaver.log.headers import NOTHING, Header
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
)

__all__ = ["LOST", "decoded", "entry_at", "every_body", "every_header", "in_place_of"]

LOST = "palaver.lost"
"""The mark of an entry that replaced a lost one when its session was rebuilt: a key in a message's metadata, or a custom entry's type."""

_UNREADABLE = "[Entry {handle} cannot be read: the store returns other bytes than were written.]"
_LOST = "[Entry {handle} cannot be read: the store has lost it.]"


def every_body(reader: Reader, span: Span) -> Iterator[tuple[int, bytes]]:
    """Return numbers and bodies of a span, and an empty body for each entry that the store has lost. `decoded` makes a stand-in of an empty body."""
    expected = span.start
    for seq, body in reader.bodies(span.dialog, span.start, span.stop):
        if seq != expected:
            yield from ((lost, b"") for lost in range(expected, seq))
        yield seq, body
        expected = seq + 1
    yield from ((lost, b"") for lost in range(expected, span.stop))


def every_header(reader: Reader, span: Span) -> Iterator[Header]:
    """Return the headers of a span, and for each entry that the store has lost the header of a message that says so."""
    expected = span.start
    for header in reader.headers(span.dialog, span.start, span.stop):
        if header.seq != expected:
            yield from map(_lost, range(expected, header.seq))
        yield header
        expected = header.seq + 1
    yield from map(_lost, range(expected, span.stop))


def _lost(seq: int) -> Header:
    return NOTHING._replace(seq=seq, kind="message", role="user", speaker="harness", blocks="t", number=-1)


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
        return _stand_in(reader, handle, body)


def _stand_in(reader: Reader, handle: Handle, body: bytes) -> MessageEntry:
    header = _header(reader, handle)
    message = in_place_of(header, header.response, (_UNREADABLE if body else _LOST).format(handle=handle))
    return MessageEntry(at=header.at, message=message.model_copy(update={"id": str(handle), "timestamp": header.at}))


def _header(reader: Reader, handle: Handle) -> Header:
    """Return a header, `NOTHING` when it is lost too."""
    try:
        return reader.header(handle.dialog, handle.seq)
    except NotFound:
        return NOTHING


def in_place_of(header: Header, response: str, text: str) -> Message:
    """Return a message in place of a lost one: of its role, with the calls that its header names, opened or answered.

    Args:
        header: Its header, or what is known of it.
        response: The response that it belonged to, or empty.
        text: What it says.
    """
    if header.role == Role.TOOL:
        results = tuple(ToolResultContent(id=call, content=text, is_error=True) for call in header.calls)
        return ToolMessage(contents=results or (ToolResultContent(content=text, is_error=True),))
    said = TextContent(content=text)
    if header.role in {Role.ASSISTANT, Role.TOOL_CALL}:
        calls = (ToolCallContent(id=call, name="unreadable") for call in header.calls)
        return AssistantMessage(contents=(said, *calls), response_id=response or None)
    return UserMessage(contents=(said,), speaker=Speaker.HARNESS)
