"""A branch without the faults: what a dialog says, in a form that any provider takes as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count

from palaver.errors import StoreDamaged
from palaver.ids import BlobId, DialogId
from palaver.log import Entry, MessageEntry, Node, child_of, decode_entry, draft
from palaver.messages import (
    AssistantMessage,
    AudioContent,
    Content,
    ImageContent,
    Media,
    Message,
    Role,
    Speaker,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.store.protocol import Store
from palaver.view import Block, Exchange, Turn, fold, held

_CARRIED = frozenset({"instructions", "toolset", "model_change", "message"})
"""Of the entries a view depends on, those that a repaired branch says again; messages among them are instructions."""

MALFORMED = "malformed_arguments"
"""The one argument of a call whose arguments could not be read: their text, as the model wrote it."""


def repair(store: Store, dialog_id: DialogId) -> Node:
    """Write a branch that says what the dialog says, without its faults; the dialog itself is left as it is.

    On the branch every call has a result and an id of its own, every result its call, arguments are objects, nothing is empty, every payload is
    there, and each response is one message. A provider takes it as it stands, also from a tool that knows nothing of palaver. The branch is
    written in one durable step.

    Raises:
        UnknownDialog: No such dialog.
        StoreDamaged: An entry of it is not what was written.
    """
    source = store.node(dialog_id)
    _check(store, dialog_id)
    view = fold(store, dialog_id, whole=True)
    branch = child_of(source, (), 0, relation="repair", metadata={"of": dialog_id, "at": view.at})
    state = (decode_entry(store.body(span.dialog, span.start)) for span in view.state)
    mender = _Mender(store)
    with store.together():
        node = store.create_dialog(branch)
        for entry in state:
            if entry.kind in _CARRIED:
                _write(store, node.dialog_id, mender.entry(entry))
        for exchange in view.exchanges:
            for message in mender.messages(exchange):
                _write(store, node.dialog_id, MessageEntry(message=message))
    return node


def _check(store: Store, dialog_id: DialogId) -> None:
    """Refuse to say again what was never said."""
    for span in held(store, dialog_id, None):
        for seq in store.verify(span.dialog):
            if span.start <= seq < span.stop:
                hint = "Import the transcript anew into another store."
                raise StoreDamaged(f"{span.dialog[:12]}:{seq}", "it is not what was written", hint=hint)


def _write(store: Store, dialog_id: DialogId, entry: Entry) -> None:
    ready, blobs = draft(entry)
    for data in blobs.values():
        store.put_blob(data)
    store.append(dialog_id, [ready], store.last(dialog_id).turn_head)


class _Mender:
    """Gives content without its faults, and every call an id that no call before it had."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ids: set[str] = set()

    def entry(self, entry: Entry) -> Entry:
        """Give an entry of the dialog's state; a message in it is mended."""
        if not isinstance(entry, MessageEntry):
            return entry
        contents = tuple(self._content(block) for block in entry.message.contents)
        return MessageEntry(message=entry.message.model_copy(update={"contents": contents}))

    def messages(self, exchange: Exchange) -> Iterator[Message]:
        """Give the messages of an exchange. Its results stand in the order of its calls, one for each."""
        called = (block.content for block in exchange.blocks() if isinstance(block.content, ToolCallContent))
        ids = [self._fresh(call.id) for call in called]
        calls, results = iter(ids), iter(ids)
        for turn in exchange.turns:
            yield _message(turn, tuple(self._named(block, calls, results) for block in turn.blocks))

    def _named(self, block: Block, calls: Iterator[str], results: Iterator[str]) -> Content:
        content = self._content(block.content)
        if isinstance(content, ToolCallContent):
            return content.model_copy(update={"id": next(calls)})
        if isinstance(content, ToolResultContent):
            return content.model_copy(update={"id": next(results)})
        return content

    def _fresh(self, wanted: str) -> str:
        """Give the id, or, where an earlier call has it, the first free one made from it."""
        others = (f"{wanted or 'call'}_{number}" for number in count(2))
        found = next(name for name in chain((wanted,), others) if name and name not in self._ids)
        self._ids.add(found)
        return found

    def _content(self, content: Content) -> Content:
        """Give a block that is whole: no damage to report, arguments that are an object, payloads that are there."""
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
        gone = [one for one in _payloads(content) if not self._store.has_blob(BlobId(one.digest))]
        if not gone:
            return content
        return TextContent(
            content="\n".join(f"[{one.media_type}, {one.size:,} bytes: its payload was lost]" for one in gone)
        )


def _payloads(content: ImageContent | AudioContent) -> Iterator[Media]:
    media = content.images if isinstance(content, ImageContent) else content.audio
    return (one for one in media if one.url is None)


def _message(turn: Turn, contents: tuple[Content, ...]) -> Message:
    speaker = _speaker(turn.blocks)
    if turn.role is Role.ASSISTANT:
        return AssistantMessage(contents=contents, model=turn.model or None, speaker=speaker)
    if turn.role is Role.TOOL:
        return ToolMessage(contents=contents, speaker=speaker)
    if turn.role is Role.SYSTEM:
        return SystemMessage(contents=contents, speaker=speaker)
    return UserMessage(contents=contents, speaker=speaker, name=turn.name or None)


def _speaker(blocks: tuple[Block, ...]) -> Speaker:
    """Give who said it; of several, the one to be trusted least."""
    return min((block.speaker for block in blocks), key=lambda speaker: speaker.trust)
