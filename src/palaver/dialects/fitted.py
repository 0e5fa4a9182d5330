"""Lists that are fitted: what was read from a list, and the caller's own items for what stays."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from palaver.dialects.dialect import MessageDialect
from palaver.dialects.lists import api_dialect, items_of, listed, other_dialect, read_at
from palaver.log import ToolSpec
from palaver.messages import Message
from palaver.providers import Dialect, Item


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
    given = listed(messages)
    other = other_dialect(name, given)
    if other is not None:
        return _read(None, other, given, given)
    items = items_of(given)
    named = name if isinstance(name, str) else None
    return _read(api_dialect(named, items, tools, model), None, items, given)


def _read(said: Dialect | None, other: MessageDialect | None, items: Sequence[Any], given: Sequence[Any]) -> ReadList:
    if other is None:
        read = () if said is None else said.read(items)
        return ReadList(said, None, items, given, read, range(len(items)))
    made: list[Message] = []
    owners: list[int] = []
    ids: set[str] = set()
    reader = other.reader()
    for index, item in enumerate(items):
        for message in read_at(index, partial(reader, item, id=f"message-{index}", timestamp=0.0)):
            fresh = next(name for name in _numbered(message.id) if name not in ids)
            ids.add(fresh)
            made.append(message if message.id == fresh else message.model_copy(update={"id": fresh}))
            owners.append(index)
    return ReadList(None, other, items, [given[owner] for owner in owners], made, owners)


def _numbered(name: str) -> Iterator[str]:
    """Yield a name, and the name with a number."""
    yield name
    yield from (f"{name}-{number}" for number in count(2))
