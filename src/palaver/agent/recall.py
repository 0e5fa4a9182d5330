"""The recall tools of an agent: what its view leaves out, read from the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palaver.context.recall import RECALL_TOOLS, Said, recalled, searched
from palaver.errors import NotFound
from palaver.log import Entry, Handle, MessageEntry, Span
from palaver.messages import AudioContent, Content, ImageContent, ToolResultContent
from palaver.session import Dialog
from palaver.session.recall import recall, searchable
from palaver.tools import CallContext, Function

__all__ = ["recall_tools"]

_HITS = 200
"""Messages among which one search pages."""


def recall_tools() -> tuple[Function, ...]:
    """Return `recall` and `search_history`, which read the dialog that they are called in."""
    work = {"recall": _recall, "search_history": _search}
    return tuple(
        Function(
            spec.name,
            spec.description,
            dict(spec.parameters["properties"]),
            tuple(spec.parameters["required"]),
            function=work[spec.name],
            idempotent=True,
            allow_repeat=True,
        )
        for spec in RECALL_TOOLS
    )


def _recall(context: CallContext, **args: Any) -> tuple[Any, ...]:  # noqa: ANN401 - the arguments of the tool
    """Return what a handle names, with the images and sounds of a single block."""
    dialog: Dialog = context.dialog
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
    return (recalled(args, read), *media)


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


def _search(context: CallContext, **args: Any) -> str:  # noqa: ANN401 - as above
    """Return the messages of the session that have all words."""
    dialog: Dialog = context.dialog
    query = str(args.get("query", ""))
    dialog.store.index(searchable, session_id=dialog.session_id)
    hits = dialog.store.search(query, session_id=dialog.session_id, limit=_HITS)
    texts = (Said(hit.handle, hit.role or hit.kind, _whole(dialog, hit.handle)) for hit in hits)
    return searched(args, texts)


def _whole(dialog: Dialog, handle: Handle) -> str:
    store = dialog.store
    return searchable("", store.body(handle.dialog, handle.seq))
