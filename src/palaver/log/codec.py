"""Entries to canonical bytes and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic_core import ValidationError, from_json

from palaver.errors import InvalidInput, InvalidMessage
from palaver.ids import BlobId
from palaver.log.entries import KINDS, CallStarted, Entry, Inbox, LateResult, MessageEntry, UnknownEntry
from palaver.log.headers import SILENT, Draft
from palaver.messages import (
    Content,
    CustomMessage,
    Message,
    Role,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    canonical_json,
    is_plain,
    payloads,
)
from palaver.messages.frozen import STORED
from palaver.messages.message import SummaryMessage
from palaver.messages.roles import SPEAKER_OF_ROLE

_SAID = {Role.ASSISTANT.value, Role.TOOL_CALL.value}
_FAILED = frozenset({StopReason.ERROR, StopReason.ABORT})


def draft(entry: Entry, *, continues: str = "") -> tuple[Draft, Mapping[BlobId, bytes]]:  # noqa: ARG001 - to be removed with its last caller
    """Return what a store writes for an entry, and the media payloads that must be durable before it, by blob id.

    Args:
        entry: The entry.
        continues: Ignored: the store decides which response an entry continues (`next_header`).
    """
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
