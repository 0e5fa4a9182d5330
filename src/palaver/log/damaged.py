"""What stands for an entry whose bytes cannot be read any more: its header says enough for everything around it to stay readable."""

from __future__ import annotations

from palaver.errors import InvalidInput
from palaver.log.codec import decode_entry
from palaver.log.entries import Entry, MessageEntry
from palaver.log.handles import Handle
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

__all__ = ["decoded"]

_UNREADABLE = "[Entry {handle} cannot be read: the store gives back other bytes than were written.]"


def decoded(reader: Reader, handle: Handle, body: bytes) -> Entry:
    """Read an entry; in place of one whose bytes are no entry any more, give a message of the harness that says so.

    It has the calls and results that the header names, so that those of other entries keep their other half. What a damaged entry said is
    lost, and `verify` names it; nothing else of the session is.
    """
    try:
        return decode_entry(body)
    except InvalidInput:
        return _stand_in(reader, handle)


def _stand_in(reader: Reader, handle: Handle) -> MessageEntry:
    header = reader.header(handle.dialog, handle.seq)
    before = reader.header(handle.dialog, handle.seq - 1) if handle.seq else NOTHING
    response = header.response if header.number == before.number else ""  # a header also bears the response before it
    message = _message(header, response, _UNREADABLE.format(handle=handle))
    return MessageEntry(at=header.at, message=message.model_copy(update={"id": str(handle), "timestamp": header.at}))


def _message(header: Header, response: str, text: str) -> Message:
    if header.role == Role.TOOL:
        results = tuple(ToolResultContent(id=call, content=text, is_error=True) for call in header.calls)
        return ToolMessage(contents=results or (ToolResultContent(content=text, is_error=True),))
    said = TextContent(content=text)
    if header.role in {Role.ASSISTANT, Role.TOOL_CALL}:
        calls = (ToolCallContent(id=call, name="unreadable") for call in header.calls)
        return AssistantMessage(contents=(said, *calls), response_id=response or None)
    return UserMessage(contents=(said,), speaker=Speaker.HARNESS)
