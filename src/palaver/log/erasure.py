"""Tombstones: what replaces an erased entry, so that everything around it stays readable and valid.

A tombstone keeps the kind, the role, the place, and the ids of calls and of the response: no count, fork, cut or request changes its form. Every word
is gone, and so is what only says something about words: names of senders, metadata, all of a provider's record but its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.log.decoding import entry_at
from palaver.log.entries import (
    KINDS,
    BranchSummary,
    ContextEdit,
    Entry,
    Instructions,
    MessageEntry,
    Tombstone,
)
from palaver.log.handles import Handle
from palaver.log.headers import SILENT, Header, shape
from palaver.log.lineage import Reader
from palaver.log.values import BlockEdit, Erasure, Omitted, Place, Section, Source, ToolSpec
from palaver.messages import Content, Message, TextContent, ThinkingContent, ToolCallContent, ToolResultContent

ERASED = "[erased]"
"""What replaces words. One word, because a changed one breaks every cached prefix."""

ATTEMPT = "palaver.compaction"
"""The type of the custom entry that records a rejected compaction. An approved one is a compaction that records its attempt."""

COPY_OF = "palaver.copy_of"
"""The metadata key with which a message, or a tool result in it, names the entries whose words it repeats: a list of `dialog:entry`. It is erased with any
of them."""

NOTE = "palaver.erasure"
"""The policy of a context edit that records an erasure (`note`)."""


def copy_of(places: Iterable[Handle]) -> Mapping[str, Any]:
    """Return the metadata of a message that repeats the words of entries, so that it is erased with them; empty where it repeats none."""
    names = dict.fromkeys(f"{place.dialog}:{place.seq}" for place in places)
    return {COPY_OF: list(names)} if names else {}


def originals(metadata: Mapping[str, Any]) -> Iterator[Handle]:
    """Yield the entries that `copy_of` named; what is not a handle is nothing of ours."""
    names = metadata.get(COPY_OF)
    for name in names if isinstance(names, list | tuple) else ():
        with suppress(InvalidInput):
            yield Handle.parse(str(name))


def note(entries: Iterable[tuple[Handle, Entry]], base: int) -> ContextEdit | None:
    """Return the entry that records in a dialog which of its entries were erased; None when no view, recorded call or memory depends on them.

    It is a context edit, because that is what an erasure is to a view. Whoever keeps an older view, or something made of one, drops it.

    Args:
        entries: The entries as they were, with their places.
        base: The number of the dialog's newest own entry.
    """
    edits: list[BlockEdit] = []
    omitted: list[Omitted] = []
    seen = False
    for place, entry in entries:
        seen |= entry.kind in KINDS and entry.kind not in _UNSEEN
        for index, content in enumerate(_blocks(entry)):
            target = Place.of(place._replace(block=index))
            if isinstance(content, ThinkingContent):
                omitted.append(Omitted(target=target, reason="erased", by=NOTE))
            else:
                edits.append(BlockEdit(target=target, text=ERASED, reason="erased", reversible=False))
    return ContextEdit(base=base, edits=tuple(edits), omitted=tuple(omitted), policy=NOTE) if seen else None


_UNSEEN = frozenset({"call_started", "turn_ended", "cancelled", "approval", "late_result", "label", "error"})
"""Kinds on which no view, recorded call or memory depends."""


def is_note(entry: Entry) -> bool:
    """Return whether an entry records an erasure of others."""
    return isinstance(entry, ContextEdit) and entry.policy == NOTE


def erased_since(reader: Reader, dialog_id: DialogId, at: int) -> int | None:
    """Return the number of the first entry after `at` that records an erasure, or None.

    An erasure writes such an entry into every dialog that has what it took, in its own transaction.
    """
    for header in reader.headers(dialog_id, at + 1):
        if header.kind == "context_edit" and is_note(entry_at(reader, Handle(dialog_id, header.seq))):
            return header.seq
    return None


def _blocks(entry: Entry) -> tuple[Content | None, ...]:
    """Return the blocks that a view may show of an entry, None for one that is no content."""
    if isinstance(entry, MessageEntry):
        return _message(entry.message).contents or (None,)
    if isinstance(entry, Instructions):
        return (None,) * len(entry.sections)
    return (None,) if isinstance(entry, BranchSummary) else ()


def from_header(header: Header) -> Entry:
    """Return a stand-in for an entry that is lost or cannot be read, made from its header."""
    if header.kind != "message":
        return Tombstone(at=header.at, was=header.kind)
    if header.role == "tool":
        contents: list[Content] = [ToolResultContent(id=call, content=ERASED, is_error=True) for call in header.calls]
    else:
        contents = [ToolCallContent(id=call, name="erased", args={}) for call in header.calls]
    said = (
        {"response_id": header.response or None, "fragment": True} if header.role in {"assistant", "tool_call"} else {}
    )
    values = {"role": header.role, "contents": contents or [TextContent(content=ERASED)], "timestamp": header.at}
    return MessageEntry(at=header.at, message=Message.from_dict(values | said))


def stand_in(entry: Entry, mark: Erasure) -> Entry:
    """Return the tombstone of an entry: of the same kind, with the same calls, without words. A tombstone's tombstone says the same."""
    maker = _MAKERS.get(entry.kind)
    if maker is None:
        was = entry.was if isinstance(entry, Tombstone) else entry.kind
        return Tombstone(at=entry.at, was=was, erased=mark)
    source = None if entry.source is None else Source(format=entry.source.format, ordinal=entry.source.ordinal)
    return KINDS[entry.kind].model_validate({**maker(entry), "at": entry.at, "source": source, "erased": mark})


def _fields(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


# --- messages -------------------------------------------------------------------------------------------------------------------


def _message(message: Message) -> Message:
    """Return a message of the same role that makes and answers the same calls; each block keeps its place, because edits name it by that."""
    contents = [_content(content) for content in message.contents]
    if shape(message) not in SILENT:  # what said nothing says nothing still
        if all(isinstance(content, ThinkingContent) for content in contents):
            contents[:1] = [TextContent(content=ERASED)]
    else:
        contents = [TextContent(content="") for _ in contents]
    values = {
        **_fields(message, *(name for name in _KEPT if hasattr(message, name))),
        "contents": contents,
        "usage": _numbers(message.usage),
        "metadata": {name: value for name, value in message.metadata.items() if _structural(name, value)},
    }
    if not contents and hasattr(message, "summary"):
        values["summary"] = ERASED
    return Message.from_dict(values)


_KEPT = (
    *("role", "id", "timestamp", "model", "api_type", "stop_reason", "response_id", "fragment", "speaker"),
    *("custom_type", "in_context", "tokens_before"),
)
_DIALOG_ID = re.compile(r"[0-9a-f]{32}")


def _structural(name: str, value: object) -> bool:
    """Return whether metadata is the log's own: the dialog that a message was put into, the inbox entry that it delivered."""
    if name == "palaver.inbox":
        return isinstance(value, int)
    return name == "dialog_id" and isinstance(value, str) and _DIALOG_ID.fullmatch(value) is not None


def _content(content: Content) -> Content:
    if isinstance(content, ToolCallContent):
        return ToolCallContent(id=content.id, name=content.name, args={})
    if isinstance(content, ToolResultContent):
        return ToolResultContent(id=content.id, content=ERASED, is_error=content.is_error, name=content.name)
    return ThinkingContent() if isinstance(content, ThinkingContent) else TextContent(content=ERASED)


def _numbers(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers in a provider's record of usage, from which bills are made, and nothing that could be words."""
    nested = {key: _numbers(item) if isinstance(item, Mapping) else item for key, item in value.items()}
    return {key: item for key, item in nested.items() if item != {} and isinstance(item, int | float | dict)}


# --- the other kinds --------------------------------------------------------------------------------------------------------------


def _context_edit(entry: ContextEdit) -> dict[str, Any]:
    """Return what stays of an edit: nothing, so that its blocks are shown as they are; all of a note, which has no words."""
    return _fields(entry, "base", "policy", *(("edits", "omitted") if is_note(entry) else ()))


_MAKERS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    **dict.fromkeys(("message", "inbox", "late_result"), lambda entry: {"message": _message(entry.message)}),
    "instructions": lambda entry: {
        **_fields(entry, "replaces"),
        "sections": tuple(Section(name="erased", text=ERASED, behind=each.behind) for each in entry.sections),
    },
    "toolset": lambda entry: {
        "tools": tuple(ToolSpec(name=tool.name, stub=True) for tool in entry.tools),
        "provided": entry.provided and dict.fromkeys(entry.provided, True),
    },
    "compaction": lambda entry: _fields(entry, "base"),
    "context_edit": _context_edit,
    "call_started": lambda entry: _fields(entry, "call_id", "tool", "idempotent", "repeats"),
    "turn_started": lambda entry: _fields(entry, "agent"),
    "turn_ended": lambda entry: _fields(entry, "outcome"),
    "cancelled": lambda _entry: {},
    "approval": lambda entry: _fields(entry, "call_id", "decision"),
    "pin": lambda entry: _fields(entry, "target", "pinned"),
    "branch_summary": lambda entry: {**_fields(entry, "dialog", "left", "sources", "trust"), "summary": ERASED},
    "custom": lambda entry: _fields(entry, "custom_type"),
    "label": lambda entry: _fields(entry, "target"),
    "model_change": lambda entry: _fields(entry, "model", "provider"),
    "mode_change": lambda entry: _fields(entry, "mode"),
    "invocation": lambda entry: _fields(entry, "model"),
    "error": lambda _entry: {"error": ERASED},
    "quarantine": lambda entry: _fields(entry, "target", "lifted"),
}
"""What the tombstone of each kind keeps. Any other kind is from a later version, and becomes a `Tombstone`."""
