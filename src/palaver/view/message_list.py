"""Views of plain lists of messages, by the rules of the fold, for callers without a log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from palaver.ids import DialogId, SessionId
from palaver.log import NOTHING, Entry, Handle, Header, MessageEntry, Node, Pin, Place, Span, message_draft, next_header
from palaver.messages import Message, TextContent, ThinkingContent, ToolCallContent, ToolResultContent
from palaver.view.blocks import Block
from palaver.view.exchange import Exchange
from palaver.view.state import State
from palaver.view.view import View


def fold_messages(
    messages: Sequence[Message],
    dialog_id: DialogId,
    *,
    origins: Sequence[Handle | None] | None = None,
    pinned: Collection[int] = (),
) -> View:
    """Return the view of a list of messages. Its blocks show the very blocks of the messages.

    Sizes are characters, not bytes, because nothing is encoded. System messages before the conversation become `view.system`.

    Args:
        messages: The messages, in order.
        dialog_id: The dialog of the view. Without `origins` the messages are its entries 0, 1, 2, ...
        origins: The entry that each message is, or None for one that no entry holds: its blocks get no handle.
        pinned: Indexes of messages that every view must show.
    """

    def read(wanted: Iterable[Handle]) -> Mapping[Handle, Entry]:
        said = ((place, messages[place.seq]) for place in wanted)
        return {place: MessageEntry(at=message.timestamp, message=message) for place, message in said}

    state = State(Node(dialog_id=dialog_id, session_id=SessionId("")), _no_headers, read)
    before = NOTHING
    for message in messages:
        header = next_header(message_draft(message, message.timestamp, b""), before)
        header = header._replace(size=_characters(message))
        state.message(dialog_id, header, before)
        before = header
    for index in pinned:
        state.marks.pin(Handle(dialog_id, index), Pin(target=Place(dialog=dialog_id, seq=index)))
    view = state.view(len(messages) - 1)
    return view if origins is None else _with_origins(view, origins)


def _no_headers(span: Span) -> Iterator[Header]:
    raise AssertionError(span)  # only spans of ancestors are read again, and a list has none


def _characters(message: Message) -> int:
    """Return a cheap estimate of a message's size: the characters of its texts, calls and results."""
    size = 0
    for content in message.contents:
        if isinstance(content, TextContent | ThinkingContent):
            size += len(content.content)
        elif isinstance(content, ToolResultContent):
            size += len(content.text())
        elif isinstance(content, ToolCallContent):
            size += len(str(content.args))
    return size


def _with_origins(view: View, origins: Sequence[Handle | None]) -> View:
    """Return a view of a list whose blocks have the handles of the entries that the messages are."""

    def moved(block: Block) -> Block:
        known = None if block.origin is None else origins[block.origin.seq]
        return replace(block, origin=block.origin and known and Handle(known.dialog, known.seq, block.origin.block))

    def exchange(each: Exchange) -> Exchange:
        entries = [origin for place in each.entries() if (origin := origins[place.seq]) is not None]
        made = Exchange.of(
            tuple(replace(turn, blocks=tuple(map(moved, turn.blocks))) for turn in each.turns),
            runs=[Span(entry.dialog, entry.seq, entry.seq + 1) for entry in entries],
            pinned=each.pinned,
            open=each.open,
            derived="" if entries else "notice",
            messages=each.messages if entries else 0,
        )
        return replace(made, size=each.size)

    return replace(
        view,
        system=tuple(map(moved, view.system)),
        exchanges=tuple(map(exchange, view.exchanges)),
        omissions=(),
        state=(),
        response=None,
    )
