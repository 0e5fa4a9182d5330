"""Reading: lists of any dialect as messages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from itertools import count
from reprlib import repr as shortened
from typing import Any, NamedTuple

from palaver import providers, wire
from palaver.dialects.dialect import MessageDialect
from palaver.errors import InvalidInput, InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import Message
from palaver.plurals import a_type
from palaver.providers import APIS, Dialect, Item

__all__ = ["ReadList", "dialect_of", "item_reader", "messages_of", "names", "read_list", "read_messages"]

ENTRY_POINTS = "palaver.dialects"


class _DialectRow(NamedTuple):
    """A dialect that is not an API's.

    Attributes:
        module: Its module in this package.
        keys: Sets of keys; an item that has all keys of one set is written in the dialect.
        objects: The module of its message objects, or empty.
        key: The key whose value shows the dialect, too; empty if the keys suffice.
        values: The values of this key.
    """

    module: str
    keys: tuple[frozenset[str], ...]
    objects: str = ""
    key: str = ""
    values: frozenset[object] = frozenset()

    def claims(self, item: Mapping[str, Any]) -> bool:
        """Return whether an item is written in the dialect."""
        value = item.get(self.key)
        shown = not self.key or (isinstance(value, str) and value in self.values)
        return shown and any(signs <= item.keys() for signs in self.keys)


_ROWS: Mapping[str, _DialectRow] = {
    "vercel-ui": _DialectRow("vercel_ui", (frozenset({"id", "role", "parts"}),)),
    "langchain": _DialectRow(
        "langchain",
        (frozenset({"type", "data"}), frozenset({"lc", "id", "kwargs"})),
        "langchain_core.messages",
        "type",
        frozenset(
            [
                "human",
                "ai",
                "system",
                "tool",
                "function",
                "chat",
                "AIMessageChunk",
                "HumanMessageChunk",
                "SystemMessageChunk",
                "constructor",
            ]
        ),
    ),
    "pydantic-ai": _DialectRow(
        "pydantic_ai",
        (frozenset({"kind", "parts"}),),
        "pydantic_ai.messages",
        "kind",
        frozenset({"request", "response"}),
    ),
    "agent-framework": _DialectRow(
        "agent_framework",
        (frozenset({"type", "role", "contents"}),),
        "agent_framework.",
        "type",
        frozenset({"message", "chat_message"}),
    ),
}


def names() -> tuple[str, ...]:
    """Return the names of all dialects: the APIs', palaver's own others, and those that packages add."""
    return (*APIS, *_ROWS, *(entry.name for entry in entry_points(group=ENTRY_POINTS)))


@cache
def named(name: str) -> MessageDialect | None:
    """Return a dialect that is not an API's, or None."""
    if name in _ROWS:
        dialect: MessageDialect = import_module(f"{__package__}.{_ROWS[name].module}").DIALECT
        return dialect
    entry = next(iter(entry_points(group=ENTRY_POINTS, name=name)), None)
    return None if entry is None else entry.load()


def dialect_of(items: Sequence[Any], tools: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the dialect that something in a list of items, or in the tools beside it, is a sign of; an empty text where nothing is."""
    first = _claimed(items[0]) if items else ""
    return first or next((name for name, _ in providers.signs(items, tools)), "")


def item_reader(name: str) -> Callable[..., Sequence[Message]]:
    """Return a function that reads the items of one list in order: an item in JSON, and fields for messages to which it gives none.

    Raises:
        InvalidInput: No dialect has this name.
    """
    other = other_dialect(name, ())
    if other is not None:
        return other.reader()
    read = providers.dialect(name, (), (), "").reader()
    return lambda item, **about: tuple(read(plain, **about) for plain in providers.items_of([item])[1])


def other_dialect(name: object, items: Sequence[Any]) -> MessageDialect | None:
    """Return the dialect of a list, by its name or its first item; None where it is an API's.

    Raises:
        InvalidInput: No dialect has this name.
    """
    if name is None:
        first = _claimed(items[0]) if items else ""
        return named(first) if first else None
    found = named(name) if isinstance(name, str) and name not in APIS else None
    if found is None and (not isinstance(name, str) or name not in APIS):
        raise InvalidInput(f"There is no dialect {shortened(name)}.", hint=f"Dialects: {', '.join(names())}.")
    return found


def _claimed(item: object) -> str:
    """Return the dialect that an item or a message object is written in, unless it is an API's."""
    if isinstance(item, Mapping):
        return next((name for name, row in _ROWS.items() if row.claims(item)), "")
    homes = [kind.__module__ for kind in type(item).__mro__]
    rows = ((name, row.objects) for name, row in _ROWS.items() if row.objects)
    return next((name for name, home in rows if any(module.startswith(home) for module in homes)), "")


def read_messages(items: object, dialect: str | None = None) -> tuple[Message, ...]:
    """Read messages of any dialect.

    Args:
        items: A list of dicts or message objects of one dialect, a whole answer of a provider, `Message` values, or one of these alone.
        dialect: `openai-chat`, `openai-responses`, `anthropic`, `gemini`, `gemini-interactions`, `vercel-ui`, `langchain`, `pydantic-ai`,
            `agent-framework`, or one that a package adds. Default: found from the items.

    Returns:
        The messages, in order. An item with the results of several calls is one message; an item of a dialect that joins an answer with its
        results is several.

    Raises:
        TypeError: A value is neither a message nor an item.
        InvalidMessage: An item is not a message of the dialect; the error names its index.
        InvalidInput: No dialect has this name.
        ProviderError: An answer reports a failure, or stops before its end.
    """
    return tuple(message for message, _ in messages_of(items, None, dialect))


def messages_of(
    given: object, request: wire.Request | None = None, dialect: str | None = None
) -> Iterator[tuple[Message, bool]]:
    """Yield the messages that a caller passes, each with whether it is a provider's whole answer.

    Args:
        given: As for `read_messages`.
        request: The request of an answer, if known. Its tool names are mapped back.
        dialect: As for `read_messages`.
    """
    if isinstance(given, Message) and dialect is None:
        yield given, False
        return
    one = providers.is_one(given)
    items = [given] if one else given if isinstance(given, list | tuple) else None
    if dialect is None and (not items or not _claimed(items[0])):
        yield from providers.messages_of(given, request)
        return
    if items is None:
        items = list(_iterable(given))
    other = other_dialect(dialect, items)
    if other is None:
        _, plain = providers.items_of(items)
        read = providers.dialect(dialect, plain, (), "").reader()
        yield from ((_at(index, partial(read, item)), False) for index, item in enumerate(plain))
        return
    reader = other.reader()
    for index, item in enumerate(items):
        yield from ((message, False) for message in _at(index, partial(reader, item)))


def _iterable(given: object) -> Iterable[Any]:
    if not isinstance(given, Iterable):
        raise TypeError(f"Messages are a list, not {a_type(given)}.")
    return given


def _at(index: int, read: Callable[[], Any]) -> Any:  # noqa: ANN401 - what it reads
    """Return what is read, or name the item that is not a message."""
    try:
        return read()
    except InvalidMessage as error:
        text = f"Item {index} of the messages: {error.message}"
        raise InvalidMessage(text, faults=error.faults, hint=error.hint) from error


# --- lists that are fitted ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadList:
    """A list, and what was read from it.

    Attributes:
        dialect: Its dialect, where it is an API's; else None.
        other: Its dialect, where it is not an API's; else None.
        items: Its items; JSON objects where it is an API's.
        given: The caller's item of each message.
        read: The messages.
        owners: The index of the item of each message.
    """

    dialect: Dialect | None
    other: MessageDialect | None
    items: Sequence[Any]
    given: Sequence[Any]
    read: Sequence[Message]
    owners: Sequence[int]

    def own(self, items: Sequence[Any]) -> list[Any]:
        """Return items with the caller's own objects wherever nothing was done to them."""
        if self.dialect is None:
            return list(items)
        theirs = {  # OpenAI's schema of a call does not allow an id of None: such a message is sent without it
            id(item): own
            for item, own in zip(self.items, self.given, strict=True)
            if "id" in item or not (isinstance(own, Mapping) and own.get("id", "") is None)
        }
        return [theirs.get(id(item), item) for item in items]

    def declare(self, tool: ToolSpec) -> Mapping[str, Any]:
        """Return the schema of a tool in the list's dialect."""
        said = self.other or self.dialect
        return {} if said is None else said.declare(tool)

    def again(self, items: Sequence[Any]) -> ReadList:
        """Return a list that was written in the same dialect, read."""
        return _read(self.dialect, self.other, items, items)

    def of(self, item: int) -> Sequence[int]:
        """Return the indexes of the messages of an item, which follow each other."""
        return range(bisect_left(self.owners, item), bisect_right(self.owners, item))


def read_list(messages: object, name: object, tools: Sequence[Item], model: str) -> ReadList:
    """Read a list, with equal ids and times whenever it is read.

    Args:
        messages: The list.
        name: Its dialect; None to find it from its items, the tools and the model.
        tools: The schemas of the tools that are sent with it.
        model: The model.

    Raises:
        InvalidInput: No dialect has this name.
        InvalidMessage: It is not a list, or an item is not a message.
    """
    given = messages if isinstance(messages, list | tuple) else None
    if given is None and isinstance(messages, Iterable) and not providers.is_one(messages):
        given = tuple(messages)
    other = other_dialect(name, given or ())
    if other is not None:
        return _read(None, other, given or (), given or ())
    own, items = providers.items_of(messages if given is None else given)
    return _read(providers.dialect(name, items, tools, model), None, items, own)


def _read(said: Dialect | None, other: MessageDialect | None, items: Sequence[Any], given: Sequence[Any]) -> ReadList:
    if other is None:
        read = () if said is None else said.read(items)
        return ReadList(said, None, items, given, read, range(len(items)))
    made: list[Message] = []
    owners: list[int] = []
    ids: set[str] = set()
    reader = other.reader()
    for index, item in enumerate(items):
        for message in _at(index, partial(reader, item, id=f"message-{index}", timestamp=0.0)):
            fresh = next(name for name in _numbered(message.id) if name not in ids)
            ids.add(fresh)
            made.append(message if message.id == fresh else message.model_copy(update={"id": fresh}))
            owners.append(index)
    return ReadList(None, other, items, [given[owner] for owner in owners], made, owners)


def _numbered(name: str) -> Iterator[str]:
    """Yield a name, and the name with a number."""
    yield name
    yield from (f"{name}-{number}" for number in count(2))
