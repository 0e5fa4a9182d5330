"""Tombstones: what stands in place of an erased entry, so that everything around it stays readable and valid.

A tombstone keeps the kind, the role, the place, and the ids of calls and of the response: no count, fork, cut or request changes its form. Every word
is gone, and so is what only tells of words: names of senders, metadata, all of a provider's record but its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.log.decoding import entry_at
from palaver.log.entries import (
    KINDS,
    BranchSummary,
    Compaction,
    ContextEdit,
    Custom,
    Entry,
    Instructions,
    Label,
    MessageEntry,
    Quarantine,
    Tombstone,
)
from palaver.log.handles import Handle, Span
from palaver.log.headers import SILENT, Header, shape
from palaver.log.lineage import Reader
from palaver.log.values import BlockEdit, Derived, Erasure, Omitted, Place, Run, Section, Source, ToolSpec
from palaver.messages import Content, Message, TextContent, ThinkingContent, ToolCallContent, ToolResultContent

__all__ = [
    "ATTEMPT",
    "COPY_OF",
    "ERASED",
    "NOTE",
    "copy_of",
    "erased_since",
    "from_header",
    "is_note",
    "note",
    "originals",
    "stand_in",
    "without",
]

ERASED = "[erased]"
"""What stands where words were. One word, because a changed one breaks every cached prefix."""

ATTEMPT = "palaver.compaction"
"""The type of the custom entry that records a rejected compaction. An approved one is a compaction that records its attempt."""

COPY_OF = "palaver.copy_of"
"""The metadata key with which a message, or a tool result in it, names the entries whose words it repeats: a list of `dialog:entry`. It is erased with any
of them."""

NOTE = "palaver.erasure"
"""The policy of a context edit that records an erasure (`note`)."""


def copy_of(places: Iterable[Handle]) -> Mapping[str, Any]:
    """Return the metadata of a message that repeats the words of entries, so that it is erased with them; empty where it repeats none."""
    names = dict.fromkeys(f"{one.dialog}:{one.seq}" for one in places)
    return {COPY_OF: list(names)} if names else {}


def originals(metadata: Mapping[str, Any]) -> Iterator[Handle]:
    """Yield the entries that `copy_of` named; what is not a handle is nothing of ours."""
    names = metadata.get(COPY_OF)
    for name in names if isinstance(names, list | tuple) else ():
        with suppress(InvalidInput):
            yield Handle.parse(str(name))


_Suspect: TypeAlias = Callable[[Derived | BranchSummary], bool]
"""Returns whether a derived text may hold words of erased entries."""


def note(entries: Iterable[tuple[Handle, Entry]], base: int) -> ContextEdit | None:
    """Return the entry that tells a dialog which of its entries were erased; None when no view, recorded call or memory depends on them.

    It is a context edit, because that is what an erasure is to a view. Whoever holds an older view, or something made of one, lets go of it.

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


_UNSEEN = frozenset({"call_started", "turn_ended", "approval", "late_result", "label", "error"})
"""Kinds on which no view, recorded call or memory depends."""


def is_note(entry: Entry) -> bool:
    """Return whether an entry records an erasure of others."""
    return isinstance(entry, ContextEdit) and entry.policy == NOTE


def erased_since(reader: Reader, dialog_id: DialogId, at: int) -> int | None:
    """Return the number of the first entry after `at` that tells a dialog of an erasure, or None.

    An erasure writes such an entry into every dialog that holds what it took, in its own transaction.
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


def without(
    entry: Entry,
    gone: Iterable[Span],
    mark: Erasure,
    suspect: _Suspect = lambda _: True,
) -> Entry | None:
    """Return an entry without what was made of erased entries; None when it holds nothing of them.

    A derived text was made of them when its sources meet them. Where they do not, or are not recorded, `suspect` decides. It also decides about the
    record of an attempt, because what a policy or a provider said of a failure may quote what it was given.

    Args:
        entry: A compaction, an attempt at one, a context edit, branch summary, label or quarantine; other kinds hold nothing of others.
        gone: The erased entries.
        mark: What is recorded about the erasure.
        suspect: Returns whether a derived text may hold words of them all the same.
    """
    changed = _unquoted(entry, tuple(gone), suspect)
    if all(getattr(entry, name) == value for name, value in changed.items()):
        return None
    return entry.model_copy(update={**changed, "erased": mark.model_copy(update={"part": True})})


def _unquoted(entry: Entry, spans: tuple[Span, ...], suspect: _Suspect) -> dict[str, Any]:
    """Return the fields of an entry that may quote erased entries, without what they quote."""

    def tells(text: Derived | BranchSummary) -> bool:
        return _meet(text.sources or (), spans) or suspect(text)

    match entry:
        case Compaction(pieces=pieces, attempt=attempt):
            left = (_blank(each) if isinstance(each, Derived) and tells(each) else each for each in pieces)
            return {"pieces": tuple(left), "edits": _edits(entry, spans), "attempt": _attempt(attempt, suspect)}
        case Custom(custom_type=custom_type, data=data) if custom_type == ATTEMPT:
            return {"data": _attempt(data, suspect)}
        case ContextEdit():
            return {"edits": _edits(entry, spans)}
        case BranchSummary() if tells(entry):
            return {"summary": ERASED}
        case Label(target=target) | Quarantine(target=target) if _at(target, spans):
            return {"label": None} if isinstance(entry, Label) else {"reason": ""}
    return {}


def _attempt(data: object, suspect: _Suspect) -> object:
    if not isinstance(data, Mapping):
        return data
    found = {name: ERASED if name in {"focus", "rejected"} and value else value for name, value in data.items()}
    if data.get("trigger") == "overflow" and data.get("why"):  # the provider's words
        found["why"] = ERASED
    summary = data.get("summary")
    if isinstance(summary, Mapping) and summary.get("failed"):
        found["summary"] = {**summary, "failed": ERASED}
    return found if found != data and suspect(Derived(text="")) else data


def _edits(entry: Compaction | ContextEdit, spans: tuple[Span, ...]) -> tuple[BlockEdit, ...]:
    return tuple(_edit(each, spans) for each in entry.edits)


def _edit(edit: BlockEdit, spans: tuple[Span, ...]) -> BlockEdit:
    """Return an edit without words of erased entries; where only its sources are erased, the block can still be recalled."""
    if _at(edit.target, spans):
        return edit.model_copy(update={"text": ERASED, "reversible": False})
    if not _meet(edit.sources or (), spans):
        return edit
    return edit.model_copy(update={"text": f"{ERASED} [recall {edit.target.handle}]"})


def _at(place: Place, spans: tuple[Span, ...]) -> bool:
    return any(place.handle in span for span in spans)


def _meet(runs: Iterable[Run], spans: tuple[Span, ...]) -> bool:
    return any(
        run.dialog == span.dialog and run.start < span.stop and span.start < run.stop for run in runs for span in spans
    )


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
    nested = {key: _numbers(each) if isinstance(each, Mapping) else each for key, each in value.items()}
    return {key: each for key, each in nested.items() if each != {} and isinstance(each, int | float | dict)}


# --- the other kinds --------------------------------------------------------------------------------------------------------------


def _compaction(entry: Compaction) -> dict[str, Any]:
    pieces = tuple(piece if isinstance(piece, Run) else _blank(piece) for piece in entry.pieces)
    numbers = _fields(
        entry, "base", "leading", "closed", "tokens_before", "tokens_after", "foreign", "undone", "policy"
    )
    return {**numbers, "pieces": pieces, **_edited(entry)}


def _blank(piece: Derived) -> Derived:
    return Derived(text=ERASED, label=piece.label, speaker=piece.speaker, trust=piece.trust, sources=piece.sources)


def _edited(entry: Compaction | ContextEdit) -> dict[str, Any]:
    edits = (BlockEdit(target=edit.target, text=ERASED, reason=edit.reason, reversible=False) for edit in entry.edits)
    omitted = (Omitted.model_validate(_fields(gone, *Omitted.model_fields)) for gone in entry.omitted)
    return {"edits": tuple(edits), "omitted": tuple(omitted)}


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
    "compaction": _compaction,
    "context_edit": lambda entry: {**_fields(entry, "base", "policy"), **_edited(entry)},
    "call_started": lambda entry: _fields(entry, "call_id", "tool", "idempotent", "repeats"),
    "turn_started": lambda entry: _fields(entry, "agent"),
    "turn_ended": lambda entry: _fields(entry, "outcome"),
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
