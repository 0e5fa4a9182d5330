"""Writing: messages as a list of any dialect, and views of a list that is not an API's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from palaver.dialects.dialect import MessageDialect
from palaver.dialects.fitted import ReadList
from palaver.dialects.lists import other_dialect
from palaver.errors import Erased, InvalidInput, MissingFile, NotFound, StoreDamaged
from palaver.ids import BlobId, DialogId, derive_id
from palaver.log import Handle, MessageEntry
from palaver.messages import Content, Message, Role, TextContent, ToolResultContent, hydrate
from palaver.plurals import a_type
from palaver.providers import APIS, Written, profile
from palaver.view import Block, Exchange, View, fold_messages
from palaver.view.exchange import read
from palaver.wire import Call, How, Report, compile  # noqa: A004 - the word for it
from palaver.wire.media import Load
from palaver.wire.script import ChangeNotes, left_out

__all__ = ["WrittenList", "WrittenView", "write_messages", "write_view"]

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

    The list is valid: results follow their calls, an interrupted call has a result that says so, and empty messages are left out. A text replaces an image or sound whose bytes are in a store and not in memory.

    Args:
        messages: The messages, oldest first.
        dialect: One of the dialects of `read_messages`.
        model: The model that will read the list. Default: the one that wrote the newest answer. A provider's thinking stays for all of its models, because a
            list is not a request yet.

    Raises:
        InvalidInput: No dialect has this name, or a value is not a Message.
    """
    given: Sequence[object] = tuple(messages)
    read = [message for message in given if isinstance(message, Message)]
    if wrong := [item for item in given if not isinstance(item, Message)]:
        raise InvalidInput(
            f"The messages have {a_type(wrong[0])}, not a Message.", hint="Read dicts with read_messages() first."
        )
    spoken = model or next((message.model for message in reversed(read) if message.model), None) or ""
    written = _written(fold_messages(read, _LIST), dialect, spoken, _in_memory, lambda place: read[place.seq])
    return WrittenList(written.items, written.system, written.report)


def _in_memory(digest: str) -> bytes:
    raise MissingFile(digest, what="payload", hint="Read the messages from their dialog, which loads it.")


class WrittenView(NamedTuple):
    """A view as a list of a dialect.

    Attributes:
        items: The list, in JSON.
        system: The instructions, where they are not in the list: a text, blocks or a content, as the API takes them; else empty.
        tools: The schemas of the declared tools.
        report: As in `WrittenList`.
    """

    items: list[Any]
    system: Any
    tools: list[Any]
    report: Report


def write_view(view: View, dialect: str, load: Load) -> WrittenView:
    """Write a view of a dialog as a list of a dialect, valid as with `write_messages`.

    Args:
        view: The view.
        dialect: One of the dialects of `read_messages`.
        load: Returns the bytes of an image or sound by its digest. A text replaces lost or erased ones.

    Raises:
        InvalidInput: No dialect has this name.
    """

    def own(place: Handle) -> Message | None:
        entry = None if view.reader is None else read(view.reader, [place])[place]
        return entry.message if isinstance(entry, MessageEntry) else None

    return _written(view, dialect, view.model, load, own)


def _written(view: View, dialect: str, model: str, load: Load, own: Callable[[Handle], Message | None]) -> WrittenView:
    other = other_dialect(dialect, ())
    if other is not None:
        return _of_other(view, other, load, own)
    spoken = model or "unknown"
    rules = profile(dialect, spoken)
    rules = replace(rules, reasoning=replace(rules.reasoning, bound=False))
    request = compile(view, rules, Call(model=spoken, cache=False), load)
    said, body = APIS[dialect].dialect, request.body
    system = body.get(said.system, "") if said.system else ""
    return WrittenView(body.get(said.items, []), system, body.get("tools", []), request.report)


def _of_other(view: View, other: MessageDialect, load: Load, own: Callable[[Handle], Message | None]) -> WrittenView:
    notes = ChangeNotes()
    messages = [
        message.model_copy(
            update={"contents": tuple(_loaded(content, message, load, notes) for content in message.contents)}
        )
        for message in _shown(view, own)
    ]
    items = list(other.write(messages, notes))
    return WrittenView(items, "", [other.declare(tool) for tool in view.tools], Report(tuple(notes)))


def _loaded(content: Content, message: Message, load: Load, notes: ChangeNotes) -> Content:
    """Return a block of a message with the bytes of its media, or with a text in the place of each whose bytes cannot be had."""
    if isinstance(content, ToolResultContent) and isinstance(content.content, tuple):
        inside = tuple(_loaded(part, message, load, notes) for part in content.content)
        return content.model_copy(update={"content": inside})
    try:
        alone = message.model_copy(update={"contents": (content,)})
        return hydrate(alone, lambda digest: load(BlobId(digest))).contents[0]
    except (NotFound, Erased, StoreDamaged) as error:
        why = f"its bytes cannot be had: {type(error).__name__}"
        notes.add(None, content.type, How.REPLACED, why)
        return TextContent(content=left_out(content.type, why, None))


def _shown(view: View, own: Callable[[Handle], Message | None]) -> Iterator[Message]:
    """Yield the messages of a view with the fields of the messages whose blocks they show."""
    for _, made in view.by_message():
        for message, blocks in made:
            yield _named(message, blocks, own)


def _named(message: Message, blocks: Sequence[Block], own: Callable[[Handle], Message | None]) -> Message:
    places = {block.origin._replace(block=None) for block in blocks if block.origin is not None}
    known = own(places.pop()) if len(places) == 1 else None
    if known is None or known.contents == message.contents:
        return known or message
    return known.model_copy(update={"contents": message.contents})


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
                group.messages.append(_named(message, blocks, lambda place: self.source.read[place.seq]))
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
