"""Convert Claude Code's records to messages (based on recorded sessions of versions 2.1.5 to 2.1.39)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.errors import InvalidMessage, PalaverError
from palaver.formats import fields
from palaver.ids import now
from palaver.log import Custom, Entry, ErrorEntry, MessageEntry, Source
from palaver.messages import (
    AssistantMessage,
    Message,
    Speaker,
    ToolMessage,
    ToolResultContent,
    Usage,
    UserMessage,
    stop_reason_of,
)
from palaver.messages.forms import blocks_of

NAME = "claude-code"

MESSAGES = frozenset({"user", "assistant"})
CHAIN = frozenset({"user", "assistant", "system", "progress", "attachment"})
"""Types of records in the chain of parents."""

SNAPSHOT = "prompt_snapshot"
"""The type of the attachment with the system prompt and the tools (version 2.1.332)."""

SYNTHETIC = "<synthetic>"
"""The model of an assistant record that the harness wrote."""

_HARNESS_MARKS = (
    "<local-command-caveat>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<command-name>",
    "<command-message>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<system-reminder>",
    "[Request interrupted by user",
)
"""The prefixes of text that the harness writes into user records."""


def said(value: Mapping[str, object]) -> Mapping[str, object]:
    """Return the message in a record.

    Raises:
        InvalidMessage: The record has no message.
    """
    message = value.get("message")
    if not isinstance(message, dict):
        raise InvalidMessage("It has no message.")
    return message


_OF_CONTEXT = ("context_management", "input_transformations")
"""What an answer says of what Anthropic cleared or left out of its request."""


def provider(model: str) -> str | None:
    """Return the provider of a model, or None: Claude Code can use other providers."""
    return "anthropic" if model.startswith("claude") else None


def messages_of(value: Mapping[str, object], key: str, at: float, *, last: bool = True) -> Iterator[Message]:
    """Read a record of the user or the assistant.

    A user record contains tool results, text of the user or of the harness, or both; each becomes a message. An assistant record is one
    fragment of a response, usually a single block.

    Args:
        value: The record.
        key: The message's id.
        at: The time, in seconds since 1970-01-01 UTC.
        last: True for the last fragment of its response in the file. Only this one keeps the usage: every fragment repeats it, but
            only the last one has the final output count.

    Raises:
        InvalidMessage: The record is not a message.
    """
    if value.get("type") != "assistant":
        yield from _of_user(value, key, at)
        return
    message = said(value)
    model = fields.text(message, "model")
    synthetic = model == SYNTHETIC
    yield AssistantMessage(
        id=key,
        timestamp=at,
        contents=blocks_of(message.get("content")),
        model=None if synthetic else model or None,
        provider=provider(model),
        usage=Usage(fields.mapping(message, "usage")) if last and not synthetic else Usage(),
        stop_reason=None if synthetic else stop_reason_of(fields.text(message, "stop_reason") or None),
        response_id=fields.text(message, "id") or None,
        fragment=True,
        speaker=Speaker.HARNESS if synthetic else Speaker.MODEL,
        metadata={name: message[name] for name in _OF_CONTEXT if message.get(name) is not None},
    )


def _of_user(value: Mapping[str, object], key: str, at: float) -> Iterator[Message]:
    contents = blocks_of(said(value).get("content"))
    results = tuple(block for block in contents if isinstance(block, ToolResultContent))
    rest = tuple(block for block in contents if not isinstance(block, ToolResultContent))
    if results:
        yield ToolMessage(id=key, timestamp=at, contents=results)
    if rest or not results:
        speaker = Speaker.HARNESS if said_by_harness(value) else Speaker.HUMAN
        yield UserMessage(id=f"{key}.1" if results else key, timestamp=at, contents=rest, speaker=speaker)


def plain(content: object) -> str:
    """Return a message's content if it is only text, or else an empty string."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        return fields.text(content[0], "text")
    return ""


def is_prompt(value: Mapping[str, object]) -> bool:
    """Return whether a record is a prompt of the user. A record that answers a call is not, even if the user added text."""
    if value.get("type") != "user" or value.get("isMeta") or value.get("isCompactSummary"):
        return False
    content = fields.mapping(value, "message").get("content")
    if isinstance(content, str):
        return bool(content)
    blocks = fields.objects(fields.mapping(value, "message"), "content")
    return bool(blocks) and not any(block.get("type") == "tool_result" for block in blocks)


def said_by_harness(value: Mapping[str, object]) -> bool:
    """Return whether the harness wrote a user record."""
    content = fields.mapping(value, "message").get("content")
    first = content[0] if isinstance(content, list) and content else None
    words = content if isinstance(content, str) else fields.text(first, "text") if isinstance(first, dict) else ""
    return bool(value.get("isMeta")) or words.startswith(_HARNESS_MARKS)


def agent_message(value: Mapping[str, object]) -> tuple[str, Mapping[str, object]] | None:
    """Return the agent's name and the message of a sub-agent in a progress record, or None."""
    data = fields.mapping(value, "data")
    agent, inner = fields.text(data, "agentId"), fields.mapping(data, "message")
    if data.get("type") != "agent_progress" or not agent or fields.text(inner, "type") not in MESSAGES:
        return None
    return f"agent:{agent}", inner


def failure(value: Mapping[str, object], at: float) -> ErrorEntry | None:
    """Return the failure of a request that a record reports, or None.

    Raises:
        InvalidMessage: The record should have a message, but has none.
    """
    kind = fields.text(value, "type")
    if kind in MESSAGES and value.get("isApiErrorMessage"):
        return ErrorEntry(error=_words(said(value).get("content")) or "API error", data=value.get("error"), at=at)
    if kind == "system" and fields.text(value, "subtype") == "api_error":
        return ErrorEntry(error=_error_text(value), data=value.get("error"), at=at)
    return None


def _words(content: object) -> str:
    parts = fields.objects({"content": content}, "content")
    return content if isinstance(content, str) else "\n".join(fields.text(part, "text") for part in parts)


def _error_text(value: Mapping[str, object]) -> str:
    """Return the text of an error record, as it was reported."""
    inner = fields.mapping(value, "error")
    while isinstance(inner.get("error"), dict):
        inner = fields.mapping(inner, "error")
    status = fields.mapping(value, "error").get("status")
    return fields.text(inner, "message") or (f"HTTP status {status}" if isinstance(status, int) else "unknown error")


# --- single records, as they arrive ------------------------------------------------------------------------------------------------


def entries_of(record: Mapping[str, object], ordinal: int) -> tuple[Entry, ...]:
    """Return one record as at least one entry. A record of no other kind becomes a custom entry.

    Every fragment of a response keeps its usage, because the last fragment is not known yet. In a whole response the last one counts.

    Args:
        record: The record.
        ordinal: Its number in its file, starting at 0.
    """
    kind, key, at = (
        fields.text(record, "type"),
        fields.text(record, "uuid"),
        fields.moment(record.get("timestamp")) or now(),
    )
    source = Source(format=NAME, record=key, ordinal=ordinal)
    entries: list[Entry] = []
    try:
        if failed := failure(record, at):
            entries.append(failed)
        elif kind in MESSAGES:
            whole = [said for message in messages_of(record, key or str(ordinal), at) for said in _one_by_one(message)]
            entries += (MessageEntry(message=said, at=at) for said in whole)
    except (PalaverError, ValueError, RecursionError):  # errors that a malformed record can cause
        entries = []
    entries = entries or [Custom(custom_type=f"{NAME}/{kind or 'record'}", at=at)]
    return tuple(entry.model_copy(update={"source": source}) for entry in entries)


def _one_by_one(message: Message) -> tuple[Message, ...]:
    return tuple(message.split()) if isinstance(message, ToolMessage) else (message,)


def compact_summary(record: Mapping[str, object]) -> str | None:
    """Return the summary with which a compaction replaced the conversation; None for any other record."""
    summary = record.get("isCompactSummary") and isinstance(record.get("message"), dict)
    return plain(said(record).get("content")) if summary else None


def parent_of(record: Mapping[str, object]) -> str | None:
    """Return the id of a record's parent: None outside the conversation, empty for its first record."""
    chained = fields.text(record, "type") in CHAIN and "parentUuid" in record
    return fields.text(record, "parentUuid") if chained else None
