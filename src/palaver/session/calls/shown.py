"""A view as messages: what the model is to see, in the form that users' context managers work on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from palaver.ids import DialogId
from palaver.log import Handle, MessageEntry, Reader, entry_at
from palaver.messages import Message, Role, ToolMessage
from palaver.view import Block, View

__all__ = ["messages_of"]


def messages_of(view: View, reader: Reader) -> Iterator[Message]:
    """Give the messages of a view in order, instructions first; results of tools one by one. Reads what the view shows and no more.

    A message is the recorded one where the view shows it as it was recorded, else a copy that says what the view says.
    """
    for group in _by_entry(view.system):
        yield _message(reader, group, Role.SYSTEM)
    for exchange in view.exchanges:
        for turn in exchange.turns:
            groups = [(block,) for block in turn.blocks] if turn.role is Role.TOOL else [turn.blocks]
            for group in groups:
                yield _message(reader, group, turn.role)


def _by_entry(blocks: Iterable[Block]) -> Iterator[tuple[Block, ...]]:
    for _, group in groupby(blocks, key=_entry):
        yield tuple(group)


def _entry(block: Block) -> Handle | None:
    return None if block.origin is None else Handle(block.origin.dialog, block.origin.seq)


def _message(reader: Reader, blocks: tuple[Block, ...], role: Role) -> Message:
    """Make the message of blocks, which is that of the first entry they come from."""
    contents = tuple(block.content for block in blocks)
    first = next((place for block in blocks if (place := _entry(block)) is not None), None)
    recorded = None if first is None else _recorded(reader, first.dialog, first.seq)
    if recorded is not None and _speaks_as(recorded, role):
        return recorded if recorded.contents == contents else recorded.model_copy(update={"contents": contents})
    metadata = {"derived": blocks[0].derived} if blocks[0].derived else {}
    values = {"role": role, "contents": contents, "metadata": metadata}
    return Message.from_dict(values if recorded is None else values | {"id": recorded.id})


def _recorded(reader: Reader, dialog: DialogId, seq: int) -> Message | None:
    entry = entry_at(reader, Handle(dialog, seq))
    return entry.message if isinstance(entry, MessageEntry) else None


def _speaks_as(message: Message, role: Role) -> bool:
    """Tell whether a recorded message may speak in a role; several results in one message are shown one by one."""
    if isinstance(message, ToolMessage):
        return role is Role.TOOL and len(message.contents) == 1
    return message.role is role or (message.is_assistant_side and role is Role.ASSISTANT)
