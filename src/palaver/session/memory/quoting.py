"""Quoting: what is brought back from the log, as a model reads it: in pages, with where it is from, who said it, and how far to trust it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import groupby
from typing import NamedTuple, TypeAlias

from palaver.context.units import media_in
from palaver.errors import Erased, InvalidHandle, MissingBlob, UnknownHandle
from palaver.ids import DialogId, SessionId
from palaver.log import (
    KINDS,
    BranchSummary,
    Compaction,
    Constraint,
    Derived,
    Entry,
    ErrorEntry,
    Handle,
    Inbox,
    Instructions,
    LateResult,
    MessageEntry,
    Tombstone,
)
from palaver.messages import AudioContent, Content, ImageContent, Speaker, ToolResultContent, Trust
from palaver.messages.said import words_of
from palaver.session.reading.recalling import recall, whole
from palaver.store.protocol import Store
from palaver.view import Hearing

__all__ = ["LONGEST_PAGE", "Quote", "enclosed", "page", "quotes", "spelt"]

LONGEST_PAGE = 20_000
"""Characters that one call of a tool gives back at most."""

_RUN = re.compile(
    r"(?P<first>(?P<dialog>[^:\s]+):\d{1,12})(?:\s*-\s*(?:(?P=dialog):)?| to (?P=dialog):)(?P<last>\d{1,12})\Z"
)
_LOOSE = re.compile(r"(?P<dialog>[0-9A-Za-z]{4,32})\s*[:/#.]\s*(?P<seq>\d{1,12})(?:\s*[:/#.]\s*(?P<block>\d{1,6}))?")
_LONGEST_HANDLE = 120
_WHERE = "list_omitted and search_history give handles."
_MOST_ENTRIES = 200
"""Entries of one run that are read in one call; behind them stands where it goes on."""


_MOST_SEEN = 8
"""Images and sounds that one call gives back with a run; of the first block that has any, all."""

Seen: TypeAlias = ImageContent | AudioContent


class Quote(NamedTuple):
    """Something that was said.

    Attributes:
        handle: Where.
        what: What it is, in a few words.
        by: Who said it.
        trust: How far that may be followed.
        text: The words.
        seen: The images and sounds in it.
    """

    handle: Handle
    what: str
    by: Speaker
    trust: Trust
    text: str
    seen: tuple[Seen, ...] = ()


def spelt(store: Store, session_id: SessionId, text: str) -> tuple[Handle, int]:
    """Read a handle, or a run of entries as placeholders print it, and give it with the number of the last entry.

    Raises:
        InvalidHandle: It is neither; the error says what it may have been meant to be.
        UnknownHandle: The session has no such dialog; the same.
    """
    asked = text.strip().strip("[]()`'\"").removeprefix("recall ").strip()
    if len(asked) > _LONGEST_HANDLE:
        raise InvalidHandle(f"{asked[:_LONGEST_HANDLE]!r}… is no handle.", hint=_WHERE)
    found = _RUN.match(asked)
    try:
        first = whole(store, session_id, found["first"] if found else asked)
    except (InvalidHandle, UnknownHandle) as error:
        near = close(store, session_id, asked)
        hint = f"Close: {', '.join(near)}." if near else _WHERE
        raise type(error)(error.message if isinstance(error, InvalidHandle) else text, hint=hint) from error
    last = int(found["last"]) if found else first.seq
    if last < first.seq:
        raise InvalidHandle(f"{text!r} ends before it begins.")
    return first, last


def close(store: Store, session_id: SessionId, text: str) -> tuple[str, ...]:
    """Give handles that a text may have been meant to be: of dialogs whose id looks like it, at most three."""
    found = _LOOSE.search(text)
    if found is None:
        return ()
    shorts = {node.dialog_id[:12]: node.dialog_id for node in store.nodes(session_id)}
    near = get_close_matches(found["dialog"].lower()[:12], shorts, n=3, cutoff=0.5)
    return tuple(str(_within(store, shorts[short], int(found["seq"]), found["block"])) for short in near)


def _within(store: Store, dialog: DialogId, seq: int, block: str | None) -> Handle:
    """Give the handle, or that of the newest entry where the dialog is not that long."""
    newest = max(store.last(dialog).seq, 0)
    return Handle(dialog, seq, None if block is None else int(block)) if seq <= newest else Handle(dialog, newest)


def quotes(
    store: Store, session_id: SessionId, first: Handle, last: int, aside: Iterable[Handle] = ()
) -> Iterator[Quote]:
    """Give what stands at a handle, or in a run of entries, one quote a block.

    Args:
        store: Where the session lies.
        session_id: The session.
        first: The handle.
        last: The number of the last entry of the run.
        aside: What is in quarantine: it is said that it is, and not shown.

    Raises:
        UnknownHandle: There is no such entry or block; the hint says which there are.
    """
    newest = store.last(first.dialog).seq
    if first.seq > newest:
        raise UnknownHandle(str(first), hint=f"The newest entry of this dialog is {newest}.")
    refused, end, hearing = frozenset(aside), min(last, newest), Hearing(store)
    stop = min(end + 1, first.seq + _MOST_ENTRIES)
    for seq in range(first.seq, stop):
        place = Handle(first.dialog, seq, first.block if seq == first.seq == last else None)
        found = _at(store, session_id, place, refused, hearing)
        yield from (quote for quote in found if first.seq == last or quote.what not in _SILENT)
    if stop <= end:
        rest = Handle(first.dialog, stop)
        yield _ours(rest, "more", f"(The run goes on: recall {rest if stop == end else f'{rest}-{end}'} for the rest.)")


def _at(
    store: Store, session_id: SessionId, place: Handle, refused: frozenset[Handle], hearing: Hearing
) -> Iterator[Quote]:
    entry_at = Handle(place.dialog, place.seq)
    try:
        entry = recall(store, session_id, entry_at)
    except (Erased, MissingBlob) as error:
        yield _ours(place, "erased", f"(This is not there any more: {error})")
        return
    if isinstance(entry, Entry) and entry.erased is not None and not entry.erased.part:
        yield _ours(place, "erased", f"(This {entry.kind} was erased on purpose; nothing of it is left.)")
    elif isinstance(entry, Entry):
        found = list(_in(entry_at, entry, hearing))
        chosen = (
            found if place.block is None else [quote for quote in found if quote.handle.block in {place.block, None}]
        )
        if place.block is not None and not chosen:
            raise UnknownHandle(str(place), hint=f"The entry has {len(found)} blocks.")
        for quote in chosen:
            yield _spared(quote) if {quote.handle, entry_at} & refused else quote


def _spared(quote: Quote) -> Quote:
    said = "(A provider refused this; it is set aside.)"
    return quote._replace(text=said, by=Speaker.HARNESS, trust=Trust.HARNESS, seen=())


def _in(place: Handle, entry: Entry, hearing: Hearing) -> Iterator[Quote]:
    """Give what an entry says, a block at a time."""
    match entry:
        case MessageEntry(message=message) | Inbox(message=message) | LateResult(message=message):
            said = isinstance(entry, MessageEntry)  # what was not yet put into the conversation answers nothing in it
            by = hearing.speaker(place, message) if said else message.speaker
            who = by.value if by is not message.speaker else message.name or message.role.value
            for index, block in enumerate(message.contents):
                what = f"{block.type.replace('_', ' ')} of {who}"
                yield Quote(place._replace(block=index), what, by, by.trust, _words(block), _seen(block))
        case Instructions(sections=sections):
            for index, section in enumerate(sections):
                yield _ours(place._replace(block=index), "instructions", section.text)
        case Compaction(pieces=pieces):
            texts = (piece for piece in pieces if isinstance(piece, Derived))
            yield from (_summary(place, piece.label, piece.trust, piece.text) for piece in texts)
        case BranchSummary(summary=text, trust=trust):
            yield _summary(place, "summary of another branch", trust or "", text)
        case _:
            yield _ours(place, *_aside(entry))


def _aside(entry: Entry) -> tuple[str, str]:
    """Say what an entry is in which nothing was said to anybody."""
    match entry:
        case Tombstone(was=was):
            return "erased", f"(This {was} was erased on purpose.)"
        case ErrorEntry(error=error):
            return "error", error
        case Constraint(text=text):
            return "constraint", text
        case _:
            return entry.kind, f"(An entry of kind {entry.kind}: nothing was said in it.)"


_SILENT = frozenset(KINDS) - {"constraint", "error", "instructions"}
"""What stands in a run of entries without anything having been said in it; an entry that is asked for by itself says so."""


def _ours(place: Handle, what: str, text: str) -> Quote:
    return Quote(place, what, Speaker.HARNESS, Trust.HARNESS, text)


def _summary(place: Handle, what: str, trust: str, text: str) -> Quote:
    return Quote(place, what, Speaker.SUMMARY, Trust.__members__.get(trust.upper(), Trust.OUTSIDE), text)


def _words(block: Content) -> str:
    return words_of(block) or f"({block.type}: no text)"


def _seen(block: Content) -> tuple[Seen, ...]:
    if isinstance(block, ImageContent | AudioContent):
        return (block,)
    parts = block.content if isinstance(block, ToolResultContent) and not isinstance(block.content, str) else ()
    return tuple(part for part in parts if isinstance(part, ImageContent | AudioContent))


def page(found: Iterable[Quote], offset: int, limit: int) -> tuple[str | Seen, ...]:
    """Give a page of quotes: what stands in each is marked with who said it, and can neither end its mark nor begin another one.

    The images and sounds of a quote stand behind its mark, on the page on which it begins.

    Args:
        found: The quotes.
        offset: How many characters of them to pass over.
        limit: How many to give.
    """
    begin = max(offset, 0)
    end = begin + min(max(limit, 1), LONGEST_PAGE)
    at, shown, more, room = 0, list[str | Seen](), False, _MOST_SEEN
    for quote in found:
        if not quote.text:
            continue
        if at >= end:
            more = True
            break
        start, stop = max(begin - at, 0), min(end - at, len(quote.text))
        if start < stop:
            count = sum(1 for part in quote.seen for _ in media_in(part))
            media = quote.seen if start == 0 and (count <= room or room == _MOST_SEEN) else ()
            room -= count if media else 0
            where = "below" if media else "by its handle" if start == 0 else "on the page where this begins"
            shown += [_marked(quote, start, stop, where), *media]
        at += len(quote.text)
        more = at > end
    if not shown:
        return (f"(Nothing: what was recalled has {at:,} characters.)",)
    rest = [f"(There is more: recall the same with offset={end}.)"] if more else []
    return tuple(_joined([*shown, *rest]))


def _joined(parts: Iterable[str | Seen]) -> Iterator[str | Seen]:
    """Make one text of those that stand behind one another."""
    for texts, group in groupby(parts, lambda part: isinstance(part, str)):
        if texts:
            yield "\n".join(part for part in group if isinstance(part, str))
        else:
            yield from group


def _marked(quote: Quote, start: int, stop: int, where: str) -> str:
    about: dict[str, object] = {
        "handle": quote.handle,
        "what": quote.what,
        "by": quote.by,
        "trust": quote.trust.name.lower(),
    }
    cut: dict[str, object] = (
        {} if (start, stop) == (0, len(quote.text)) else {"characters": f"{start}-{stop} of {len(quote.text)}"}
    )
    return enclosed("recalled", about | cut | _media(quote, where), quote.text[start:stop])


def _media(quote: Quote, where: str) -> dict[str, object]:
    """Name the images and sounds of a quote, and say where they are."""
    media = [each for part in quote.seen for each in media_in(part)]
    if not media:
        return {}
    kind = f"{media[0].media_type or 'an address'} ({media[0].size:,} bytes)"
    more = f" and {len(media) - 1} more" if len(media) > 1 else ""
    return {"media": f"{kind}{more}, {where}"}


def enclosed(mark: str, about: Mapping[str, object], text: str) -> str:
    """Give a text between marks that say what it is; nothing in it can end them, nor begin others like them."""
    facts = " ".join(f'{name}="{_attribute(str(value))}"' for name, value in about.items())
    inside = re.sub(rf"<(?=/?\s*{mark}\b)", "&lt;", text, flags=re.IGNORECASE)
    return f"<{mark} {facts}>\n{inside}\n</{mark}>"


def _attribute(text: str) -> str:
    return re.sub(r"[\"<>\s]+", " ", text)[:60]
