"""The recall tools over a dialog: a model reads what its view leaves out, from any branch of the session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver import context
from palaver.errors import Erased, NotFound
from palaver.log import Entry, Handle, MessageEntry, Span, ToolSpec
from palaver.messages import AudioContent, Content, ImageContent, ToolResultContent, words_of
from palaver.session.marks import Marks
from palaver.session.recall import recall, searchable
from palaver.store.protocol import Store
from palaver.store.text import APART

_HITS = 200
"""The maximum number of messages that one search pages through."""


def with_recall(tools: tuple[ToolSpec, ...], *, recall: bool) -> tuple[ToolSpec, ...]:
    """Return tools with the recall tools after them, or without them. A tool of the caller's keeps its name."""
    if not recall:
        return tuple(tool for tool in tools if tool not in context.RECALL_TOOLS)
    names = {tool.name for tool in tools}
    return (*tools, *(tool for tool in context.RECALL_TOOLS if tool.name not in names))


def answered(marks: Marks, name: str, args: Mapping[str, Any] | str) -> str:
    """Answer a call of one of the recall tools over the dialog of these marks, and its session.

    Raises:
        NotFound: There is no such tool.
    """
    given = context.arguments_of(name, args)
    if isinstance(given, str):
        return given
    return read_back(marks, given)[0] if name == "recall" else search_for(marks, given)


def read_back(marks: Marks, args: Mapping[str, Any]) -> tuple[str, list[Content]]:
    """Answer a call of `recall`: return a page of what the handle names, and the images and sounds of a single block."""
    media: list[Content] = []

    def read(place: Handle | Span) -> Iterator[context.Said]:
        for handle, original in _originals(marks, place):
            if Handle(*handle[:2]) in refused or handle in refused:
                yield context.Said(handle, "palaver", "(A provider refused this; it is set aside.)")
            elif isinstance(original, Erased):
                yield context.Said(handle, "palaver", f"({original})")
            elif isinstance(original, Entry):
                yield from _said(marks.store, handle, original)
            else:
                yield context.Said(handle, original.type, _text(original))
                media.extend(_media(original))

    refused = frozenset(marks.quarantined)  # what a provider refuses must not reach it by this way
    return context.recalled(args, read), media


def _originals(marks: Marks, place: Handle | Span) -> Iterator[tuple[Handle, Entry | Content | Erased]]:
    """Yield what a handle names, or each entry of a span; an erased one of a span as the error that says so."""
    if isinstance(place, Handle):
        yield place, recall(marks.store, marks.session_id, place, marks.dialog_id)
        return
    for seq in range(place.start, place.stop):
        handle = Handle(place.dialog, seq)
        original: Entry | Content | Erased
        try:
            original = recall(marks.store, marks.session_id, handle, marks.dialog_id)
        except NotFound:
            if seq == place.start:
                raise
            return  # a span may end after the dialog's last entry
        except Erased as erased:
            original = erased
        yield handle, original


def _said(store: Store, handle: Handle, entry: Entry) -> Iterator[context.Said]:
    if isinstance(entry, MessageEntry):
        for index, block in enumerate(entry.message.contents):
            yield context.Said(Handle(*handle[:2], index), entry.message.speaker.value, _text(block))
    elif text := _whole(store, handle):
        yield context.Said(handle, entry.kind, text)


def _text(block: Content) -> str:
    return words_of(block) or str(getattr(block, "content", "") or f"({block.type})")


def _media(block: Content) -> Iterator[Content]:
    parts = block.content if isinstance(block, ToolResultContent) and not isinstance(block.content, str) else (block,)
    yield from (part for part in parts if isinstance(part, ImageContent | AudioContent))


def search_for(marks: Marks, args: Mapping[str, Any]) -> str:
    """Answer a call of `search_history`: return the messages of the session that contain all words."""
    query = str(args.get("query", ""))
    marks.store.index(searchable, session_id=marks.session_id)
    hits = marks.store.search(query, session_id=marks.session_id, limit=_HITS)
    texts = (context.Said(hit.handle, hit.role or hit.kind, _whole(marks.store, hit.handle)) for hit in hits)
    return context.searched(args, texts)


def _whole(store: Store, handle: Handle) -> str:
    return searchable("", store.body(handle.dialog, handle.seq)).replace(APART, "\n")
