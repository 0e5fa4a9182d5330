"""What stands for an entry whose bytes cannot be read any more: its header says enough for everything around it to stay readable."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.errors import InvalidInput, StoreDamaged, UnknownHandle
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

__all__ = ["LOST", "decoded", "entry_at", "every_body", "in_place_of"]

LOST = "palaver.lost"
"""What an entry is marked with that was put in the place of a lost one when its session was made again: in the metadata of a message, or as
the type of a custom entry."""

_UNREADABLE = "[Entry {handle} cannot be read: the store gives back other bytes than were written.]"
_LOST = "[Entry {handle} cannot be read: the store has lost it.]"


def every_body(reader: Reader, span: Span) -> Iterator[tuple[int, bytes]]:
    """Give numbers and bodies of a span, and an empty body for each entry that the store has lost.

    Stores pass over what they have lost. Nobody who shows a log may: `decoded` makes of an empty body what stands for the entry.
    """
    expected = span.start
    for seq, body in reader.bodies(span.dialog, span.start, span.stop):
        if seq != expected:
            yield from ((lost, b"") for lost in range(expected, seq))
        yield seq, body
        expected = seq + 1
    yield from ((lost, b"") for lost in range(expected, span.stop))


def entry_at(reader: Reader, handle: Handle) -> Entry:
    """Read one entry, or give what stands for it where the store has lost its body or gives back another.

    Raises:
        UnknownHandle: No such entry.
    """
    try:
        body = reader.body(handle.dialog, handle.seq)
    except StoreDamaged:
        body = b""
    return decoded(reader, handle, body)


def decoded(reader: Reader, handle: Handle, body: bytes) -> Entry:
    """Read an entry; in place of one whose bytes are no entry any more, give a message of the harness that says so.

    It has the calls and results that the header names, so that those of other entries keep their other half. What a damaged entry said is
    lost, and `verify` names it; nothing else of the session is.
    """
    try:
        return decode_entry(body)
    except InvalidInput:
        return _stand_in(reader, handle, body)


def _stand_in(reader: Reader, handle: Handle, body: bytes) -> MessageEntry:
    header = _header(reader, handle)
    before = _header(reader, Handle(handle.dialog, handle.seq - 1)) if handle.seq else NOTHING
    response = header.response if header.number == before.number else ""  # a header also bears the response before it
    message = in_place_of(header, response, (_UNREADABLE if body else _LOST).format(handle=handle))
    return MessageEntry(at=header.at, message=message.model_copy(update={"id": str(handle), "timestamp": header.at}))


def _header(reader: Reader, handle: Handle) -> Header:
    """Give a header; of an entry that is lost with its header nothing is known."""
    try:
        return reader.header(handle.dialog, handle.seq)
    except UnknownHandle:
        return NOTHING


def in_place_of(header: Header, response: str, text: str) -> Message:
    """Make the message that stands for one that is lost: of its role, with the calls that its header names, opened or answered.

    Args:
        header: Its header, or what is known of it.
        response: The response that it belonged to, or empty.
        text: What it is to say.
    """
    if header.role == Role.TOOL:
        results = tuple(ToolResultContent(id=call, content=text, is_error=True) for call in header.calls)
        return ToolMessage(contents=results or (ToolResultContent(content=text, is_error=True),))
    said = TextContent(content=text)
    if header.role in {Role.ASSISTANT, Role.TOOL_CALL}:
        calls = (ToolCallContent(id=call, name="unreadable") for call in header.calls)
        return AssistantMessage(contents=(said, *calls), response_id=response or None)
    return UserMessage(contents=(said,), speaker=Speaker.HARNESS)
