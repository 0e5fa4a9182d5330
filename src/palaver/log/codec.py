"""Entries to canonical bytes and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import ValidationError, from_json

from palaver.errors import InvalidInput
from palaver.ids import BlobId
from palaver.log.entries import KINDS, CallStarted, Entry, Inbox, LateResult, MessageEntry, UnknownEntry
from palaver.log.headers import Draft
from palaver.log.values import Source
from palaver.messages import Message, Role, ToolCallContent, ToolResultContent, canonical_json, encode
from palaver.messages.stored import Unusual, is_plain, number, read_stored, set_together, text, whole

_SAID = {Role.ASSISTANT.value, Role.TOOL_CALL.value}


def _calls(message: Message) -> tuple[tuple[str, ...], tuple[str, ...]]:
    opens = tuple(block.id for block in message.contents if isinstance(block, ToolCallContent))
    answers = tuple(block.id for block in message.contents if isinstance(block, ToolResultContent))
    return opens, answers


def draft(entry: Entry, *, continues: str = "") -> tuple[Draft, Mapping[BlobId, bytes]]:
    """Turn an entry into what a store writes, and the payloads that must be durable before it.

    Args:
        entry: The entry.
        continues: The response id of the assistant message that is being recorded in fragments, or empty: an assistant
            message with this response id is its next fragment and does not begin a message.

    Returns:
        The draft, and the media payloads by their blob id.
    """
    if isinstance(entry, MessageEntry):
        return _message_draft(entry, continues)
    body, blobs = _body(entry)
    answers = (entry.call_id,) if isinstance(entry, CallStarted) else ()
    return Draft(entry.kind, "", 0, (), answers, "", entry.at, body), blobs


def _message_draft(entry: MessageEntry, continues: str) -> tuple[Draft, Mapping[BlobId, bytes]]:
    message = entry.message
    role = message.role.value
    said = role in _SAID
    response = (message.response_id or "") if said else ""
    opens, answers = _calls(message)
    counts = 0 if response and response == continues else 1
    body, blobs = _body(entry)
    return Draft("message", role, counts, opens if said else (), answers, response, entry.at, body), blobs


def _body(entry: Entry) -> tuple[bytes, Mapping[BlobId, bytes]]:
    """Give canonical bytes: keys sorted, so that a message's own canonical bytes can be set in as they are."""
    if not isinstance(entry, MessageEntry | Inbox | LateResult):
        return canonical_json(entry.model_dump(mode="json")), {}
    said, blobs = encode(entry.message)
    source = entry.source
    marked = entry.erased is not None or entry.redacted is not None
    plain = not marked and not entry.model_extra and (source is None or not source.model_extra)
    if isinstance(entry, MessageEntry) and plain:
        # nearly every append, and nearly every entry of an import; the same bytes as below
        start = b'{"at":%s,"kind":"message","message":%s' % (canonical_json(entry.at), said)
        if entry.prompt is not None:
            start += b',"prompt":' + canonical_json(entry.prompt)
        if source is None:
            return start + b"}", blobs
        told = {"format": source.format, "ordinal": source.ordinal, "record": source.record}
        return b'%s,"source":%s}' % (start, canonical_json(told)), blobs
    rest = entry.model_dump(mode="json", exclude={"message"})
    parts = [
        canonical_json(key) + b":" + (said if key == "message" else canonical_json(rest[key]))
        for key in sorted({*rest, "message"})
    ]
    return b"{" + b",".join(parts) + b"}", blobs


def decode_entry(body: bytes) -> Entry:
    """Read an entry from its canonical bytes; a kind this version does not know becomes an `UnknownEntry`.

    Raises:
        InvalidInput: The bytes are no entry.
    """
    raw = _read_json(body)
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
        message = "an entry is a JSON object with a kind"
        raise InvalidInput(message)
    if raw["kind"] == "message" and is_plain(body) and (stored := _stored(raw)) is not None:
        return stored
    try:
        return KINDS.get(raw["kind"], UnknownEntry).model_validate(raw)
    except ValidationError as error:
        message = f"it is no entry of kind {raw['kind']}: {error.errors()[0]['msg']}"
        raise InvalidInput(message) from error


def _read_json(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Read JSON with the faster reader; what it refuses (NaN, lone surrogates, huge numbers) is read, or refused, by Python's."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError:
        pass
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        message = f"an entry's bytes are no JSON: {error}"
        raise InvalidInput(message) from error


def _stored(raw: Mapping[str, Any]) -> MessageEntry | None:
    """Set a message entry together as it was written; None where only validation can tell what it is."""
    if not raw.keys() <= _MESSAGE_FIELDS or "at" not in raw:
        return None
    message = read_stored(raw.get("message"))
    if message is None:
        return None
    try:
        prompt = text(raw["prompt"]) if "prompt" in raw else None
        fields = {
            "kind": "message",
            "at": number(raw["at"]),
            "source": _source(raw),
            "erased": None,
            "redacted": None,
            "message": message,
            "prompt": prompt,
        }
    except Unusual:
        return None
    return set_together(MessageEntry, fields, set(raw), {})


_MESSAGE_FIELDS = frozenset({"at", "kind", "message", "prompt", "source"})
_SOURCE_FIELDS = {"format": text, "record": text, "ordinal": whole}


def _source(raw: Mapping[str, Any]) -> Source | None:
    if "source" not in raw:
        return None
    given = raw["source"]
    if type(given) is not dict or "format" not in given or not given.keys() <= _SOURCE_FIELDS.keys():
        raise Unusual
    fields = {"format": "", "record": "", "ordinal": 0} | {
        name: _SOURCE_FIELDS[name](one) for name, one in given.items()
    }
    return set_together(Source, fields, set(given), {})
