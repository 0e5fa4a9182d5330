"""Writing: messages as a list of any dialect, and views of a list that is not an API's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from palaver.dialects.lists import ReadList, other_dialect
from palaver.errors import InvalidInput, MissingFile
from palaver.ids import DialogId, derive_id
from palaver.log import Handle
from palaver.messages import Message, Role
from palaver.plurals import a_type
from palaver.providers import APIS, Written, profile
from palaver.view import Block, Exchange, View, fold_messages
from palaver.wire import Call, Report, compile  # noqa: A004 - the word for it
from palaver.wire.script import ChangeNotes

__all__ = ["WrittenList", "write_messages"]

_LIST = DialogId(derive_id("palaver", "dialects", "list"))


class WrittenList(NamedTuple):
    """Messages as a list of a dialect.

    Attributes:
        items: The list, in JSON.
        system: The instructions, where they are not in the list: a text, blocks or a content, as the API takes them; else empty.
        report: Each message or block that the list lacks or shows otherwise, and what was added.
    """

    items: list[Any]
    system: Any
    report: Report


def write_messages(messages: Iterable[Message], dialect: str, *, model: str = "") -> WrittenList:
    """Write messages as a list of a dialect.

    The list is valid: results follow their calls, an interrupted call has a result that says so, empty messages are left out.

    Args:
        messages: The messages, oldest first.
        dialect: One of the dialects of `read_messages`.
        model: The model that will read the list. Default: the one that wrote the newest answer. A provider's thinking stays for all of its models, because a
            list is not a request yet.

    Raises:
        InvalidInput: No dialect has this name, or a value is not a Message.
        MissingFile: The bytes of an image or sound are in a store and not in memory.
    """
    given: Sequence[object] = tuple(messages)
    read = [message for message in given if isinstance(message, Message)]
    if wrong := [item for item in given if not isinstance(item, Message)]:
        raise InvalidInput(
            f"The messages have {a_type(wrong[0])}, not a Message.", hint="Read dicts with read_messages() first."
        )
    view = fold_messages(read, _LIST)
    other = other_dialect(dialect, ())
    if other is not None:
        notes = ChangeNotes()
        items = other.write(list(_shown(view, read)), notes)
        return WrittenList(list(items), "", Report(tuple(notes)))
    spoken = model or next((message.model for message in reversed(read) if message.model), None) or "unknown"
    rules = profile(dialect, spoken)
    rules = replace(rules, reasoning=replace(rules.reasoning, bound=False))
    request = compile(view, rules, Call(model=spoken, cache=False), _in_memory)
    said = APIS[dialect].dialect
    return WrittenList(
        request.body.get(said.items, []), request.body.get(said.system, "") if said.system else "", request.report
    )


def _in_memory(digest: str) -> bytes:
    raise MissingFile(digest, what="payload", hint="Read the messages from their dialog, which loads it.")


def _shown(view: View, read: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages of a view with the fields of the messages whose blocks they show."""
    for _, made in view.by_message():
        for message, blocks in made:
            yield _named(message, blocks, read)


def _named(message: Message, blocks: Sequence[Block], read: Sequence[Message]) -> Message:
    places = {block.origin.seq for block in blocks if block.origin is not None}
    if len(places) != 1:
        return message
    own = read[places.pop()]
    return own if own.contents == message.contents else own.model_copy(update={"contents": message.contents})


# --- lists that are fitted ----------------------------------------------------------------------------------------------


@dataclass
class _Neighbours:
    """Neighbours in a view that are of one item, and what was added to them."""

    owner: int | None
    exchange: Exchange | None
    messages: list[Message] = field(default_factory=list)
    shown: list[tuple[Handle, Any] | None] = field(default_factory=list)


@dataclass(frozen=True)
class MessageWriter:
    """Writes views of one list that is not an API's. An item that a view shows unchanged is the caller's own object.

    Attributes:
        source: The list.
        before: The view of the whole list.
    """

    source: ReadList
    before: View

    def write(self, view: View) -> Written:
        """Write a view."""
        notes = ChangeNotes()
        items = [item for group in self._groups(view) for item in self._items(group, notes)]
        return Written(items, "", tuple(notes), grew=False)

    def _groups(self, view: View) -> list[_Neighbours]:
        groups: list[_Neighbours] = []
        for exchange, made in view.by_message():
            for message, blocks in made:
                owner = next((self.source.owners[place.seq] for place in _origins(blocks)), None)
                if owner is None and message.role is Role.SYSTEM and exchange is None:
                    continue  # instructions that the caller sends beside the list
                last = groups[-1] if groups else None
                joins = last is not None and (
                    last.owner == owner if owner is not None else exchange is not None and last.exchange is exchange
                )
                group = last if last is not None and joins else _Neighbours(owner, exchange)
                if group is not last:
                    groups.append(group)
                group.exchange = exchange
                group.messages.append(_named(message, blocks, self.source.read))
                group.shown += [None if block.origin is None else (block.origin, block.content) for block in blocks]
        return groups

    def _items(self, group: _Neighbours, notes: ChangeNotes) -> Sequence[Any]:
        if group.owner is not None and self._whole(group.owner) == [
            None if place is None else (place[0], id(place[1])) for place in group.shown
        ]:
            return (self.source.items[group.owner],)
        other = self.source.other
        return () if other is None else other.write(group.messages, notes)

    def _whole(self, owner: int) -> Sequence[tuple[Handle, int]]:
        """Return the blocks of an item, each with the identity of its content."""
        return [
            (Handle(self.before.dialog_id, index, number), id(content))
            for index in self.source.of(owner)
            for number, content in enumerate(self.source.read[index].contents)
        ]


def _origins(blocks: Sequence[Block]) -> Iterator[Handle]:
    return (block.origin for block in blocks if block.origin is not None)
