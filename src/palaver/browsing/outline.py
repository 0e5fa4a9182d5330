"""Outlines: what a view shows and leaves out, a row for each message, from headers; and the first words of rows that are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

from palaver.log import (
    BranchSummary,
    Compaction,
    Derived,
    Entry,
    Handle,
    Inbox,
    Instructions,
    LateResult,
    MessageEntry,
    Reader,
    entry_at,
)
from palaver.messages import Content, ToolCallContent, ToolResultContent, words_of
from palaver.session import Session
from palaver.view import Block, Exchange, Omission, View
from palaver.view.blocks import REASONS
from palaver.view.exchange import WAITING

_LABEL = 200


class ChangeRow(TypedDict):
    """A block that is shown in another form: its handle, the reason, and the text in its place; None where it is left out."""

    handle: str
    reason: str
    text: str | None


class ItemRow(TypedDict):
    """A message that a view shows, or something that it leaves out, at the place of its content.

    `what` is `instructions`, `message`, `result`, `derived` or `omission`. The first of the entries of a response has
    the `bytes` of all. A row without an entry has its `text`. An omission names its first entry, the `kind` of that, and how many there are.
    """

    what: str
    handle: str | None
    role: str
    speaker: str
    bytes: int
    reason: str | None
    text: NotRequired[str]
    derived: NotRequired[str]
    changes: NotRequired[list[ChangeRow]]
    place: NotRequired[str]
    why: NotRequired[str]
    kind: NotRequired[str]
    by: NotRequired[str]
    messages: NotRequired[int]
    entries: NotRequired[int]


def outline(view: View) -> Iterator[ItemRow]:
    """Yield what a view shows, in order, and each omission where its content was. Reads no body but of derived texts."""
    for block in view.system:
        yield _stated("instructions", "system", block)
    order = {str(span.dialog): index for index, span in enumerate(view.shared)}
    gone = sorted(((_first(omission), omission) for omission in view.omissions), key=lambda pair: _key(pair[0], order))
    waiting = iter(gone)
    following = next(waiting, None)
    for exchange in view.exchanges:
        runs = exchange.source.runs
        while following and runs and not exchange.derived and _key(following[0], order) < _key(runs[0], order):
            yield _omission(*following, view.reader)
            following = next(waiting, None)
        yield from _shown(exchange)
    while following:
        yield _omission(*following, view.reader)
        following = next(waiting, None)


def _key(place: Sequence[object], order: Mapping[str, int]) -> tuple[int, object]:
    """Return what orders places: the part of the lineage, the dialog's own entries last, then the number."""
    return order.get(str(place[0]), len(order)), place[1]


def _first(gone: Omission) -> Handle:
    """Return the first entry or block of an omission."""
    return next(gone.handles())


def _omission(first: Handle, gone: Omission, reader: Reader | None) -> ItemRow:
    size = gone.size
    if gone.span and reader and not size:  # what another agent compacted says only which entries
        before = reader.header(gone.span.dialog, gone.span.start - 1).total if gone.span.start else 0
        size = reader.header(gone.span.dialog, gone.span.stop - 1).total - before
    return {
        "what": "omission",
        "handle": str(first),
        "role": "",
        "speaker": "",
        "bytes": size,
        "reason": gone.reason.value,
        "place": gone.place,
        "why": REASONS[gone.reason.value],
        "by": gone.by,
        "kind": "entry" if reader is None else reader.header(first.dialog, first.seq).kind,
        "messages": gone.messages,
        "entries": 1 if gone.span is None else len(gone.span),
    }


def _shown(exchange: Exchange) -> Iterator[ItemRow]:
    source = exchange.source
    if not source.entries:
        for turn in exchange.turns:
            yield from (_stated("derived", turn.role.value, block) for block in turn.blocks)
        return
    results = sum(answer[3] for answer in source.answers if not isinstance(answer, str))
    said = max(exchange.size - results, 0)
    for dialog, seq, _ in source.entries:
        yield _recorded("message", Handle(dialog, seq), exchange.role.value, exchange, said)
        said = 0
    for answer in source.answers:
        if isinstance(answer, str):
            made = (block for turn in exchange.turns[1:] for block in turn.blocks if block.origin is None)
            yield from (_stated("derived", "tool", block) for block in made)
            return  # calls without a result come last: all further answers were made with them
        yield _recorded("result", Handle(*answer[:3]), "tool", exchange, answer[3])


def _recorded(what: str, place: Handle, role: str, exchange: Exchange, size: int) -> ItemRow:
    changes: list[ChangeRow] = [
        {"handle": str(handle), "reason": change.reason.value, "text": change.text}
        for handle, change in exchange.changes.items()
        if handle == place or (place.block is None and handle[:2] == place[:2]) or handle == place._replace(block=None)
    ]
    speaker = "tool" if what == "result" else exchange.speaker.value
    row: ItemRow = {"what": what, "handle": str(place), "role": role, "speaker": speaker, "bytes": size, "reason": None}
    if not changes:
        return row
    reason = changes[0]["reason"]
    return {**row, "reason": reason, "why": REASONS[reason], "changes": changes}


def _stated(what: str, role: str, block: Block) -> ItemRow:
    text = WAITING if block.derived == "waiting" else words_of(block.content) or f"[{block.content.type}]"
    return {
        "what": what,
        "handle": block.origin and str(block.origin),
        "role": role,
        "speaker": block.speaker.value,
        "bytes": len(text.encode(errors="replace")),
        "reason": block.reason and block.reason.value,
        "text": text,
        "derived": block.derived,
    }


# --- first words ---------------------------------------------------------------------------------------------------------------------------


class WordsRow(TypedDict):
    """The first words of an entry or block, or the arguments of its calls; the tools that it calls; whether it failed."""

    label: str
    tools: list[str]
    error: bool


def first_words(session: Session, handles: Iterable[str]) -> Iterator[WordsRow]:
    """Yield the words that a list shows for entries or blocks. Reads their bodies."""
    for place in map(session.place, handles):
        entry = entry_at(session.store, place._replace(block=None))
        blocks = _blocks(entry) if place.block is None else _blocks(entry)[place.block : place.block + 1]
        words = " ".join(_words(entry, blocks).split())
        yield {
            "label": words[:_LABEL],
            "tools": [block.name for block in blocks if isinstance(block, ToolCallContent)],
            "error": any(isinstance(block, ToolResultContent) and block.is_error for block in blocks) or _failed(entry),
        }


def _failed(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and bool(entry.message.error)


def _blocks(entry: Entry) -> tuple[Content, ...]:
    return entry.message.contents if isinstance(entry, MessageEntry | Inbox | LateResult) else ()


def _words(entry: Entry, blocks: Sequence[Content]) -> str:
    match entry:
        case MessageEntry(message=message) | Inbox(message=message) | LateResult(message=message):
            said = " ".join(words_of(block) for block in blocks if not isinstance(block, ToolCallContent))
            called = " ".join(block.arguments for block in blocks if isinstance(block, ToolCallContent))
            kinds = " ".join(f"[{block.type}]" for block in blocks)
            return said or called or message.text_content() or message.error or kinds
        case Instructions(sections=sections):
            return " ".join(section.text for section in sections)
        case Compaction(pieces=pieces):
            return " ".join(piece.text for piece in pieces if isinstance(piece, Derived))
        case BranchSummary(summary=text):
            return text
        case _:
            fields = entry.model_dump(mode="json", exclude_defaults=True)
            return ", ".join(
                f"{name} {value}"
                for name, value in fields.items()
                if isinstance(value, str | int) and name not in {"kind", "at"}
            )
