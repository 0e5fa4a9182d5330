"""Write a branch without faults: a dialog's content in a form that any provider accepts unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, count

from palaver.errors import StoreDamaged
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Entry, Handle, MessageEntry, Node, child_of, clip, copy_of, decode_entry
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Message,
    Role,
    TextContent,
    ToolCallContent,
    ToolResultContent,
    media_of,
)
from palaver.messages.blocks import MALFORMED
from palaver.session import opened
from palaver.store.protocol import Store
from palaver.view import Exchange, Turn, fold, held

_REPEATED = frozenset({"instructions", "toolset", "model_change", "message"})
"""The state entries that a repaired branch repeats. Messages among them are instructions."""


def repair(store: Store, dialog_id: DialogId) -> Node:
    """Write a branch with the dialog's content but without its faults. The dialog itself does not change.

    On the branch, every call has a result and a unique id, every result has a call, arguments are objects, nothing is empty, every
    payload exists, and each response is one message. A provider accepts it unchanged, even from a tool that does not know palaver. The
    branch is written in one transaction.

    Raises:
        NotFound: The dialog does not exist.
        StoreDamaged: An entry has other bytes than were written.
    """
    source = store.node(dialog_id)
    _require_undamaged(store, dialog_id)
    view = fold(store, dialog_id, whole=True)
    view.load()
    branch = child_of(source, (), 0, relation="repair", metadata={"of": dialog_id, "at": view.at})
    state = ((span, decode_entry(store.body(span.dialog, span.start))) for span in view.state)
    mender = _Mender(store, source.session_id)
    with store.transaction():
        node = store.create_dialog(branch)
        for span, entry in state:
            if entry.kind in _REPEATED:
                _write(store, node.dialog_id, mender.entry(entry, Handle(span.dialog, span.start)))
        for exchange in view.exchanges:
            for message in mender.messages(exchange):
                _write(store, node.dialog_id, MessageEntry(message=message))
    return node


def _require_undamaged(store: Store, dialog_id: DialogId) -> None:
    for span in held(store, dialog_id, None):
        for damaged in clip([span], store.verify(span.dialog)):
            hint = "Import the transcript again into another store."
            raise StoreDamaged(f"{span.dialog[:12]}:{damaged.start}", "it is not what was written", hint=hint)


def _write(store: Store, dialog_id: DialogId, entry: Entry) -> None:
    opened.append(store, dialog_id, [entry], store.last(dialog_id).turn_head)


class _Mender:
    """Returns content without faults, and gives every call a unique id."""

    def __init__(self, store: Store, session_id: SessionId) -> None:
        self._has = partial(store.has_blob, session_id)
        self._ids: set[str] = set()

    def entry(self, entry: Entry, place: Handle) -> Entry:
        """Return an entry of the dialog's state, with its message repaired."""
        if not isinstance(entry, MessageEntry):
            return entry
        contents = tuple(self._content(block) for block in entry.message.contents)
        metadata = {**entry.message.metadata, **copy_of([place])}
        return MessageEntry(message=entry.message.model_copy(update={"contents": contents, "metadata": metadata}))

    def messages(self, exchange: Exchange) -> Iterator[Message]:
        """Yield the messages of an exchange, with one result for each call, in the order of the calls."""
        called = (block.content for block in exchange.blocks() if isinstance(block.content, ToolCallContent))
        ids = [self._fresh(call.id) for call in called]
        calls, results = iter(ids), iter(ids)
        for turn in exchange.turns:
            yield self._message(turn, calls, results)

    def _message(self, turn: Turn, calls: Iterator[str], results: Iterator[str]) -> Message:
        contents = []
        for block in turn.blocks:
            content = self._content(block.content)
            if isinstance(content, ToolCallContent):
                content = content.model_copy(update={"id": next(calls)})
            elif isinstance(content, ToolResultContent):
                content = content.model_copy(update={"id": next(results)})
            contents.append(content)
        speaker = min((block.speaker for block in turn.blocks), key=lambda speaker: speaker.trust)
        name = turn.name if turn.role is Role.USER else None
        return Message(
            turn.role,
            contents=contents,
            speaker=speaker,
            name=name or None,
            model=turn.model or None,
            metadata=copy_of(block.origin for block in turn.blocks if block.origin is not None),
        )

    def _fresh(self, wanted: str) -> str:
        """Return the id or, if an earlier call has it, the first free id derived from it."""
        others = (f"{wanted or 'call'}_{number}" for number in count(2))
        name = next(name for name in chain((wanted,), others) if name and name not in self._ids)
        self._ids.add(name)
        return name

    def _content(self, content: Content) -> Content:
        """Return a repaired block: without faults, with arguments that are an object, and with existing payloads."""
        if isinstance(content, ImageContent | AudioContent):
            return self._media(content)
        changes: dict[str, object] = {"changes": ()}
        if isinstance(content, ToolCallContent) and content.error is not None:
            changes |= {"args": {MALFORMED: content.raw_args or ""}, "raw_args": None, "error": None}
        elif isinstance(content, ToolCallContent) and content.changes:
            changes |= {"raw_args": None}
        elif isinstance(content, ToolResultContent) and not isinstance(content.content, str):
            changes |= {"content": tuple(self._content(part) for part in content.content)}
        return content.model_copy(update=changes) if content.changes or len(changes) > 1 else content

    def _media(self, content: ImageContent | AudioContent) -> Content:
        gone = [
            media
            for media in media_of(Message(Role.USER, contents=(content,)))
            if media.url is None and not self._has(BlobId(media.digest))
        ]
        lost = "\n".join(f"[{medium.media_type}, {medium.size:,} bytes: its payload was lost]" for medium in gone)
        return TextContent(lost) if gone else content
