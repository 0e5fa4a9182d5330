"""One record of Claude Code by itself, as it comes: what it says, without the rest of its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.errors import PalaverError
from palaver.formats import fields
from palaver.formats.claude_code import messages
from palaver.formats.claude_code.messages import CHAIN, MESSAGES, NAME, plain
from palaver.ids import now
from palaver.log import Custom, Entry, ErrorEntry, MessageEntry, Source
from palaver.messages import Message, ToolMessage

__all__ = ["compact_summary", "entries_of", "parent_of"]


def entries_of(record: Mapping[str, object], ordinal: int) -> tuple[Entry, ...]:
    """Return what one record says, in at least one entry: a record that no other kind fits becomes a custom entry.

    Every fragment of a response keeps its usage, because which one is the last is unknown; of a whole response the last one counts.

    Args:
        record: The record.
        ordinal: Its number in its file, starting at 0.
    """
    try:
        found = tuple(_entries(record, ordinal))
    except (PalaverError, ValueError, RecursionError):  # what a record of an odd shape can cause
        found = ()
    kind = fields.text(record, "type") or "record"
    return found or (Custom(custom_type=f"{NAME}/{kind}", at=_at(record), source=_source(record, ordinal)),)


def compact_summary(record: Mapping[str, object]) -> str | None:
    """Return the summary that a compaction put in place of the conversation; None for any other record."""
    if not record.get("isCompactSummary") or not isinstance(record.get("message"), dict):
        return None
    return plain(messages.said(record).get("content"))


def parent_of(record: Mapping[str, object]) -> str | None:
    """Return the id of the record before it: None for one beside the conversation, empty for one that begins it."""
    if fields.text(record, "type") not in CHAIN or "parentUuid" not in record:
        return None
    return fields.text(record, "parentUuid")


def _at(record: Mapping[str, object]) -> float:
    return fields.moment(record.get("timestamp")) or now()


def _source(record: Mapping[str, object], ordinal: int) -> Source:
    return Source(format=NAME, record=fields.text(record, "uuid"), ordinal=ordinal)


def _entries(record: Mapping[str, object], ordinal: int) -> Iterator[Entry]:
    kind, at, source = fields.text(record, "type"), _at(record), _source(record, ordinal)
    if kind == "system" and fields.text(record, "subtype") == "api_error":
        yield ErrorEntry(error=messages.error_text(record), at=at, source=source)
    elif kind in MESSAGES and record.get("isApiErrorMessage"):
        error = plain(messages.said(record).get("content")) or "API error"
        yield ErrorEntry(error=error, at=at, source=source)
    elif kind in MESSAGES:
        for message in _messages(record, at, ordinal):
            yield MessageEntry(message=message, at=at, source=source)


def _messages(record: Mapping[str, object], at: float, ordinal: int) -> Iterator[Message]:
    key = fields.text(record, "uuid") or str(ordinal)
    if record.get("type") == "assistant":
        yield messages.assistant(record, key, at, last=True)
        return
    for message in messages.user(record, key, at):
        yield from message.split() if isinstance(message, ToolMessage) else (message,)
