"""Entries to canonical bytes and back, and stand-ins for entries that cannot be read any more.

A header says enough for everything around its entry to stay readable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from pydantic_core import ValidationError, from_json

from palaver.errors import InvalidInput, InvalidMessage, NotFound, StoreDamaged
from palaver.ids import BlobId
from palaver.log.entries import KINDS, CallStarted, Entry, Inbox, LateResult, MessageEntry, UnknownEntry
from palaver.log.handles import Handle, Span
from palaver.log.headers import NOTHING, SILENT, Draft, Header
from palaver.log.lineage import Reader
from palaver.messages import (
    AssistantMessage,
    Content,
    CustomMessage,
    Message,
    Role,
    Speaker,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    canonical_json,
    is_plain,
    payloads,
)
from palaver.messages.family import SummaryMessage
from palaver.messages.frozen import STORED
from palaver.messages.roles import SPEAKER_OF_ROLE

_SAID = {Role.ASSISTANT.value, Role.TOOL_CALL.value}
_FAILED = frozenset({StopReason.ERROR, StopReason.ABORT})
_Row = TypeVar("_Row", Header, tuple[int, bytes])


def draft(entry: Entry) -> tuple[Draft, Mapping[BlobId, bytes]]:
    """Return what a store writes for an entry, and the media payloads that must be durable before it, by blob id."""
    body = canonical_json(entry)
    blobs = payloads(entry.message) if isinstance(entry, MessageEntry | Inbox | LateResult) else {}
    if isinstance(entry, MessageEntry):
        return message_draft(entry.message, entry.at, body), blobs
    answers = (entry.call_id,) if isinstance(entry, CallStarted) else ()
    return Draft(entry.kind, "", 0, (), answers, "", entry.at, body), blobs


def message_draft(message: Message, at: float, body: bytes) -> Draft:
    """Return the draft of a message, except for media payloads.

    Args:
        message: The message.
        at: When it happened, in seconds since 1970-01-01 UTC.
        body: The entry's canonical bytes.
    """
    role = message.role.value
    said = role in _SAID
    opens = tuple(block.id for block in message.contents if isinstance(block, ToolCallContent)) if said else ()
    answers = tuple(block.id for block in message.contents if isinstance(block, ToolResultContent))
    blocks = shape(message)
    response = (message.response_id or "") if said and blocks not in SILENT else ""
    speaker = "" if message.speaker is SPEAKER_OF_ROLE[message.role] else message.speaker.value
    return Draft("message", role, 1, opens, answers, response, at, body, speaker, blocks)


def shape(message: Message) -> str:
    """Return one letter for each block of a message, so that a view can be laid out without reading bodies.

    Letters:
        `t` text, `h` thinking, `c` a tool call, `r` a tool result, `m` media or a block of a kind unknown here, `.` a block that says nothing.

    Returns:
        The letters in order. Empty when the message has nothing to show: no block says anything, or it is a custom message kept out of the
        context. `!` when it has nothing to show because the response failed.
    """
    if isinstance(message, CustomMessage) and not message.in_context:
        return ""
    if isinstance(message, SummaryMessage):
        return "t" if message.text_content().strip() else ""
    letters = "".join([letter(content) for content in message.contents])
    if letters.strip("."):
        return letters
    return "!" if message.error or message.stop_reason in _FAILED else ""


def letter(content: Content) -> str:
    """Return the letter of one block (`shape`)."""
    if isinstance(content, TextContent):
        return "t" if content.content and not content.content.isspace() else "."
    if isinstance(content, ThinkingContent):
        return "h" if content.content or content.signature or content.redacted or content.artefact else "."
    if isinstance(content, ToolCallContent):
        return "c"
    return "r" if isinstance(content, ToolResultContent) else "m"


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

_UNREADABLE = "[Entry {handle} cannot be read: the store returns other bytes than were written.]"
_LOST = "[Entry {handle} cannot be read: the store has lost it.]"


def every_body(reader: Reader, span: Span) -> Iterator[tuple[int, bytes]]:
    """Return numbers and bodies of a span, and an empty body for each entry that the store has lost. `decoded` makes a stand-in of an empty body."""
    return _every(reader.bodies(span.dialog, span.start, span.stop), span, lambda seq: (seq, b""))


def every_header(reader: Reader, span: Span) -> Iterator[Header]:
    """Return the headers of a span, and for each entry that the store has lost the header of a message that says so."""
    return _every(reader.headers(span.dialog, span.start, span.stop), span, _lost)


def _every(rows: Iterable[_Row], span: Span, lost: Callable[[int], _Row]) -> Iterator[_Row]:
    """Return rows that begin with their number, and another for each number of the span that they pass over."""
    expected = span.start
    for row in rows:
        if row[0] != expected:
            yield from map(lost, range(expected, row[0]))
        yield row
        expected = row[0] + 1
    yield from map(lost, range(expected, span.stop))


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
    try:
        header = reader.header(handle.dialog, handle.seq)
    except NotFound:
        header = NOTHING  # the header is lost too
    message = _in_place_of(header, (_UNREADABLE if body else _LOST).format(handle=handle))
    return MessageEntry(at=header.at, message=message.model_copy(update={"id": str(handle), "timestamp": header.at}))


def _in_place_of(header: Header, text: str) -> Message:
    """Return a message in place of a lost one: of its role, with the calls that its header names, opened or answered."""
    if header.role == Role.TOOL:
        results = tuple(ToolResultContent(id=call, content=text, is_error=True) for call in header.calls)
        return ToolMessage(contents=results or (ToolResultContent(content=text, is_error=True),))
    said = TextContent(content=text)
    if header.role in _SAID:
        calls = (ToolCallContent(id=call, name="unreadable") for call in header.calls)
        return AssistantMessage(contents=(said, *calls), response_id=header.response or None)
    return UserMessage(contents=(said,), speaker=Speaker.HARNESS)
