"""The recall tools over a dialog: a model reads what its view leaves out, from any branch of the session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from palaver.context.recall import RECALL_TOOLS, Said, arguments_of, recalled, searched
from palaver.errors import NotFound
from palaver.log import Entry, Handle, MessageEntry, Span, ToolSpec
from palaver.messages import AudioContent, Content, ImageContent, ToolResultContent
from palaver.session.recall import recall, searchable

if TYPE_CHECKING:
    from palaver.session.dialog import Dialog

__all__ = ["answered", "read_back", "search_for", "with_recall"]

_HITS = 200
"""The maximum number of messages that one search pages through."""


def with_recall(tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Return tools with the recall tools after them. A tool of the caller's keeps its name."""
    names = {tool.name for tool in tools}
    return (*tools, *(tool for tool in RECALL_TOOLS if tool.name not in names))


def answered(dialog: Dialog, name: str, args: Mapping[str, Any] | str) -> str:
    """Answer a call of one of the recall tools.

    Raises:
        NotFound: There is no such tool.
    """
    given = arguments_of(name, args)
    if isinstance(given, str):
        return given
    return read_back(dialog, given)[0] if name == "recall" else search_for(dialog, given)


def read_back(dialog: Dialog, args: Mapping[str, Any]) -> tuple[str, list[Content]]:
    """Answer a call of `recall`: return a page of what the handle names, and the images and sounds of a single block."""
    media: list[Content] = []

    def read(place: Handle | Span) -> Iterator[Said]:
        single = isinstance(place, Handle)
        handles = (
            (place,)
            if isinstance(place, Handle)
            else (Handle(place.dialog, seq) for seq in range(place.start, place.stop))
        )
        for handle in handles:
            try:
                found = recall(dialog.store, dialog.session_id, handle)
            except NotFound:
                if single:
                    raise
                return
            if Handle(*handle[:2]) in refused or handle in refused:
                yield Said(handle, "palaver", "(A provider refused this; it is set aside.)")
            elif isinstance(found, Entry):
                yield from _said(dialog, handle, found)
            else:
                yield Said(handle, found.type, _text(found))
                media.extend(_media(found))

    refused = frozenset(dialog.marks.quarantined)
    return recalled(args, read), media


def _said(dialog: Dialog, handle: Handle, entry: Entry) -> Iterator[Said]:
    if isinstance(entry, MessageEntry):
        for index, block in enumerate(entry.message.contents):
            yield Said(Handle(*handle[:2], index), entry.message.speaker.value, _text(block))
    elif text := _whole(dialog, handle):
        yield Said(handle, entry.kind, text)


def _text(block: Content) -> str:
    if isinstance(block, ToolResultContent):
        return block.text()
    return str(getattr(block, "content", "") or getattr(block, "arguments", "") or f"({block.type})")


def _media(block: Content) -> Iterator[Content]:
    parts = block.content if isinstance(block, ToolResultContent) and not isinstance(block.content, str) else (block,)
    yield from (part for part in parts if isinstance(part, ImageContent | AudioContent))


def search_for(dialog: Dialog, args: Mapping[str, Any]) -> str:
    """Answer a call of `search_history`: return the messages of the session that contain all words."""
    query = str(args.get("query", ""))
    dialog.store.index(searchable, session_id=dialog.session_id)
    hits = dialog.store.search(query, session_id=dialog.session_id, limit=_HITS)
    texts = (Said(hit.handle, hit.role or hit.kind, _whole(dialog, hit.handle)) for hit in hits)
    return searched(args, texts)


def _whole(dialog: Dialog, handle: Handle) -> str:
    store = dialog.store
    return searchable("", store.body(handle.dialog, handle.seq))
