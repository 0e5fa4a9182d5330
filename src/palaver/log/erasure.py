"""Tombstones: what stands in place of an entry that was erased, so that everything around it stays readable and valid.

An erased entry keeps its kind, its role, the ids of its calls and of its response, and its place: so no count, fork, cut or request changes
its form. Every word is gone, and what only told of it: names of senders, metadata, records of providers but for their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from palaver.log.entries import (
    KINDS,
    Approval,
    BranchSummary,
    CallStarted,
    Compaction,
    Constraint,
    ContextEdit,
    Custom,
    Entry,
    ErrorEntry,
    Inbox,
    Instructions,
    Invocation,
    Label,
    LateResult,
    MessageEntry,
    ModeChange,
    ModelChange,
    Pin,
    Quarantine,
    Tombstone,
    Toolset,
    TurnEnded,
    TurnStarted,
)
from palaver.log.handles import Handle, Span
from palaver.log.headers import Header
from palaver.log.legality import rule
from palaver.log.values import BlockEdit, Derived, Erasure, Omitted, Place, Run, Section, Source, ToolSpec, Value
from palaver.messages import Content, Message, TextContent, ThinkingContent, ToolCallContent, ToolResultContent

__all__ = ["ATTEMPT", "ERASED", "NOTE", "from_header", "is_note", "note", "stand_in", "unquoting", "without"]

ERASED = "[erased]"
"""What stands where words were. One word, because a changed one breaks every cached prefix."""


ATTEMPT = "palaver.compaction"
"""The custom entry of a compaction that was previewed and rejected. One that was approved is a compaction, with its attempt in it."""

_QUOTING, _OVERFLOW = frozenset({"focus", "rejected"}), "overflow"

NOTE = "palaver.erasure"
"""The policy of a context edit that says what was erased (`note`)."""


def note(entries: Iterable[tuple[Handle, Entry]], base: int) -> ContextEdit | None:
    """Give the entry that tells a dialog what was erased of what it holds; None where neither a view nor a record of a call is made of it.

    It is a context edit, because that is what an erasure is to a view: what a provider signed behind the place was signed for other words,
    and whoever has an older view in hand, or something that he made of one, must let go of it.

    Args:
        entries: The entries as they were, with their places.
        base: The number of the dialog's newest own entry.
    """
    edits: list[BlockEdit] = []
    omitted: list[Omitted] = []
    seen = False
    for place, entry in entries:
        law = rule(entry.kind)
        unreadable = isinstance(entry, Tombstone)  # views say of any entry that it is
        seen |= law.shown or bool(law.holds) or law.sought or unreadable
        for index, content in enumerate(_shown(entry)):
            target = Place(dialog=place.dialog, seq=place.seq, block=index)
            if isinstance(content, ThinkingContent):
                omitted.append(Omitted(target=target, reason="erased", by=NOTE))
            else:
                edits.append(BlockEdit(target=target, text=ERASED, reason="erased", reversible=False))
    return ContextEdit(base=base, edits=tuple(edits), omitted=tuple(omitted), policy=NOTE) if seen else None


def is_note(entry: Entry) -> bool:
    """Tell whether an entry says that others were erased."""
    return isinstance(entry, ContextEdit) and entry.policy == NOTE


def _shown(entry: Entry) -> tuple[Content | None, ...]:
    """Give the blocks that a view may show of an entry."""
    if isinstance(entry, MessageEntry):
        blocks = _message(entry.message).contents
        return blocks or (None,)
    if isinstance(entry, Instructions):
        return (None,) * len(entry.sections)
    return (None,) if isinstance(entry, BranchSummary) else ()


def from_header(header: Header) -> Entry:
    """Give what stands for an entry that is lost or cannot be read, as far as its header tells of it."""
    if header.kind != "message":
        return Tombstone(at=header.at, was=header.kind)
    if header.role == "tool":
        contents: list[Content] = [ToolResultContent(id=call, content=ERASED, is_error=True) for call in header.calls]
    else:
        contents = [ToolCallContent(id=call, name="erased", args={}) for call in header.calls]
    values = {"role": header.role, "contents": contents or [TextContent(content=ERASED)], "timestamp": header.at}
    said = header.role in {"assistant", "tool_call"}
    return MessageEntry(
        at=header.at, message=Message.from_dict(values | {"response_id": header.response or None if said else None})
    )


def stand_in(entry: Entry, mark: Erasure) -> Entry:
    """Give the tombstone of an entry: of the same kind, with the same calls, and none of its words.

    Idempotent but for the mark: the tombstone of a tombstone says the same.
    """
    make = _MAKERS.get(entry.kind)
    if make is None:
        was = entry.was if isinstance(entry, Tombstone) else entry.kind
        return Tombstone(at=entry.at, was=was, erased=mark)
    made = make(entry)
    source = None if entry.source is None else Source(format=entry.source.format, ordinal=entry.source.ordinal)
    return KINDS[entry.kind].model_validate(
        {**_shallow(made), "at": entry.at, "source": source, "erased": mark, "redacted": None}
    )


def without(
    entry: Entry,
    gone: Iterable[Span],
    mark: Erasure,
    suspect: Callable[[Derived | BranchSummary], bool] = lambda _: True,
) -> Entry | None:
    """Give an entry without what was made of erased entries: their summaries, records and shortened forms; None where it holds nothing of them.

    A derived text counts as made of them when its sources meet them; where they do not, or are not recorded, `suspect` decides. It decides of what is
    recorded of an attempt at compacting, too: what a policy or a provider said of its failure may quote what it was given.

    Args:
        entry: A compaction, an attempt at one, a context edit, branch summary, label or quarantine; any other kind holds nothing of others.
        gone: The erased entries.
        mark: What is written down about the erasure.
        suspect: Tells whether a derived text may hold words of them all the same.
    """
    spans = tuple(gone)

    def tells(text: Derived | BranchSummary) -> bool:
        return _meet(text.sources or (), spans) or suspect(text)

    match entry:
        case Compaction(pieces=pieces, edits=edits, attempt=attempt):
            changed: dict[str, Any] = {
                "pieces": tuple(_blank(one) if isinstance(one, Derived) and tells(one) else one for one in pieces),
                "edits": _edits(edits, spans),
                "attempt": _attempt(attempt, suspect),
            }
        case Custom():
            changed = _custom(entry, suspect)
        case ContextEdit(edits=edits):
            changed = {"edits": _edits(edits, spans)}
        case BranchSummary():
            changed = {"summary": ERASED} if tells(entry) else {}
        case Label(target=target) | Quarantine(target=target):
            words: dict[str, Any] = {"label": None} if isinstance(entry, Label) else {"reason": ""}
            changed = words if _at(target, spans) else {}
        case _:
            return None
    if all(getattr(entry, name) == value for name, value in changed.items()):
        return None
    part = mark.model_copy(update={"part": True})
    return entry.model_copy(update={**changed, "erased": part})


def _blank(piece: Derived) -> Derived:
    return Derived(text=ERASED, label=piece.label, speaker=piece.speaker, trust=piece.trust, sources=piece.sources)


def _custom(entry: Custom, suspect: Callable[[Derived | BranchSummary], bool]) -> dict[str, Any]:
    return {"data": _attempt(entry.data, suspect)} if entry.custom_type == ATTEMPT else {}


def unquoting(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give what is to be recorded of an attempt at compacting without the words that may quote what was erased since; its figures stay."""
    told = _attempt(data, lambda _: True)
    return told if isinstance(told, Mapping) else data


def _attempt(data: object, suspect: Callable[[Derived | BranchSummary], bool]) -> object:
    """Give what is recorded of an attempt without the words that may be taken from what it was made of; its figures stay."""
    if not isinstance(data, Mapping):
        return data
    found = {name: ERASED if name in _QUOTING and value else value for name, value in data.items()}
    if data.get("trigger") == _OVERFLOW and data.get("why"):  # in a provider's words
        found["why"] = ERASED
    summary = data.get("summary")
    if isinstance(summary, Mapping):
        said = {"refused": ERASED, "invented": (), "undigested": ()}
        found["summary"] = {**summary, **{name: gone for name, gone in said.items() if summary.get(name)}}
    return found if found != data and suspect(Derived(text="")) else data


def _edits(edits: Iterable[BlockEdit], spans: tuple[Span, ...]) -> tuple[BlockEdit, ...]:
    return tuple(_edit(one, spans) for one in edits)


def _edit(edit: BlockEdit, spans: tuple[Span, ...]) -> BlockEdit:
    """Give an edit without words of erased entries; where only they are gone, the block that it stands for can still be recalled."""
    if _at(edit.target, spans):
        return edit.model_copy(update={"text": ERASED, "reversible": False})
    if not _meet(edit.sources or (), spans):
        return edit
    place = Handle(edit.target.dialog, edit.target.seq, edit.target.block)
    return edit.model_copy(update={"text": f"{ERASED} [recall {place}]"})


def _at(place: Place, spans: tuple[Span, ...]) -> bool:
    return any(Handle(place.dialog, place.seq) in span for span in spans)


def _meet(runs: Iterable[Run], spans: tuple[Span, ...]) -> bool:
    return any(
        run.dialog == span.dialog and run.start < span.stop and span.start < run.stop for run in runs for span in spans
    )


def _shallow(value: Value) -> dict[str, Any]:
    """Give the fields of a value as they are, without those that this version does not know."""
    return {name: getattr(value, name) for name in type(value).model_fields}


# --- messages -------------------------------------------------------------------------------------------------------------------


def _message(message: Message) -> Message:
    """Give a message of the same role that makes and answers the same calls; each block keeps its place, for edits name it by that."""
    contents = [_content(content) for content in message.contents]
    says = any(not isinstance(content, ThinkingContent) for content in contents)
    if contents and not says:
        contents[0] = TextContent(content=ERASED)
    values: dict[str, Any] = {
        "role": message.role,
        "id": message.id,
        "timestamp": message.timestamp,
        "contents": contents or [TextContent(content=ERASED)],
        "model": message.model,
        "api_type": message.api_type,
        "usage": _numbers(message.usage),
        "stop_reason": message.stop_reason,
        "response_id": message.response_id,
        "speaker": message.speaker,
        "metadata": {name: value for name, value in message.metadata.items() if _structural(name, value)},
    }
    if not contents and hasattr(message, "summary"):
        values |= {"contents": [], "summary": ERASED}
    return Message.from_dict(values | {name: getattr(message, name) for name in _KEPT if hasattr(message, name)})


_KEPT = ("custom_type", "in_context", "tokens_before")

_DIALOG_ID = re.compile(r"[0-9a-f]{32}")


def _structural(name: str, value: object) -> bool:
    """Tell whether metadata is of the log's own: which dialog a message was put into, and which inbox entry it delivered."""
    if name == "palaver.inbox":
        return isinstance(value, int)
    return name == "dialog_id" and isinstance(value, str) and _DIALOG_ID.fullmatch(value) is not None


def _content(content: Content) -> Content:
    if isinstance(content, ToolCallContent):
        return ToolCallContent(id=content.id, name=content.name, args={})
    if isinstance(content, ToolResultContent):
        return ToolResultContent(id=content.id, content=ERASED, is_error=content.is_error, name=content.name)
    if isinstance(content, ThinkingContent):
        return ThinkingContent()
    return TextContent(content=ERASED)


def _numbers(value: Mapping[str, Any]) -> dict[str, Any]:
    """Give the numbers in a provider's record of usage, which bills are made of, and nothing that could be words."""
    found: dict[str, Any] = {}
    for key, one in value.items():
        if isinstance(one, Mapping):
            if inner := _numbers(one):
                found[key] = inner
        elif isinstance(one, int | float):
            found[key] = one
    return found


# --- the other kinds --------------------------------------------------------------------------------------------------------------


def _said(entry: Any) -> Entry:  # noqa: ANN401 - any of the three kinds that hold a message
    changed: dict[str, Any] = {"message": _message(entry.message)}
    made: Entry = entry.model_copy(update=changed)
    return made


def _instructions(entry: Instructions) -> Entry:
    sections = tuple(
        Section.model_validate({**_shallow(one), "name": "erased", "text": ERASED}) for one in entry.sections
    )
    return Instructions(at=entry.at, sections=sections)


def _toolset(entry: Toolset) -> Entry:
    return Toolset(at=entry.at, tools=tuple(ToolSpec(name=tool.name, stub=True) for tool in entry.tools))


def _compaction(entry: Compaction) -> Entry:
    pieces = tuple(piece if isinstance(piece, Run) else _blank(piece) for piece in entry.pieces)
    return entry.model_copy(
        update={
            "pieces": pieces,
            "edits": _blanked(entry.edits),
            "omitted": _bare(entry.omitted),
            "attempt": None,
        }
    )


def _context_edit(entry: ContextEdit) -> Entry:
    return entry.model_copy(update={"edits": _blanked(entry.edits), "omitted": _bare(entry.omitted)})


def _blanked(edits: Iterable[BlockEdit]) -> tuple[BlockEdit, ...]:
    return tuple(BlockEdit(target=edit.target, text=ERASED, reason=edit.reason, reversible=False) for edit in edits)


def _bare(omitted: Iterable[Omitted]) -> tuple[Omitted, ...]:
    return tuple(Omitted.model_validate(_shallow(gone)) for gone in omitted)


_MAKERS: Mapping[str, Callable[[Any], Entry]] = {
    MessageEntry.model_fields["kind"].default: _said,
    Inbox.model_fields["kind"].default: _said,
    LateResult.model_fields["kind"].default: _said,
    Instructions.model_fields["kind"].default: _instructions,
    Toolset.model_fields["kind"].default: _toolset,
    Compaction.model_fields["kind"].default: _compaction,
    ContextEdit.model_fields["kind"].default: _context_edit,
    "call_started": lambda entry: CallStarted(call_id=entry.call_id, tool=entry.tool, idempotent=entry.idempotent),
    "turn_started": lambda entry: TurnStarted(agent=entry.agent),
    "turn_ended": lambda entry: TurnEnded(outcome=entry.outcome),
    "approval": lambda entry: Approval(call_id=entry.call_id, decision=entry.decision),
    "pin": lambda entry: Pin(target=entry.target, pinned=entry.pinned),
    "branch_summary": lambda entry: BranchSummary(
        summary=ERASED, dialog=entry.dialog, left=entry.left, sources=entry.sources, trust=entry.trust
    ),
    "custom": lambda entry: Custom(custom_type=entry.custom_type),
    "label": lambda entry: Label(target=entry.target),
    "model_change": lambda entry: ModelChange(model=entry.model, provider=entry.provider),
    "mode_change": lambda entry: ModeChange(mode=entry.mode),
    "invocation": lambda entry: Invocation(model=entry.model),
    "error": lambda _entry: ErrorEntry(error=ERASED),
    "quarantine": lambda entry: Quarantine(target=entry.target, lifted=entry.lifted),
    "constraint": lambda _entry: Constraint(text=ERASED, stands=False),
}
"""How the tombstone of each kind is made. A kind that is not here is one of a later version, and becomes a `Tombstone`."""
