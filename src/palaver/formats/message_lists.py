"""Where lists of messages are in a file: the file itself, a value of its object, or a value of each object in its array or lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from palaver.formats.dialogs import bad_record
from palaver.formats.events import NOTHING, Loss, without_losses
from palaver.formats.lists import Item, listed, numbered, torn
from palaver.formats.sources import Member


class MessageList(NamedTuple):
    """A list of messages.

    Attributes:
        place: Its place.
        about: The other values of its object.
        items: Returns the messages, from the start each time.
        losses: Reports of what could not be read.
    """

    place: str
    about: Mapping[str, object]
    items: Callable[[], Iterator[Item]]
    losses: Sequence[Loss] = ()


def message_lists(member: Member, keys: Sequence[str]) -> Iterator[MessageList | Loss]:
    """Find the lists of a file. One that is the whole file is read twice, and not kept in memory.

    Args:
        member: The file.
        keys: The keys of the messages in an object. What several keys have is one list, in this order.
    """
    opening = member.opening
    lines = opening.document is None and bool(opening.records)
    first = next(iter(opening.records if lines else opening.elements), NOTHING)
    nested = not first.keys().isdisjoint(keys)
    if nested and lines:
        for record in member.records():
            yield record if isinstance(record, Loss) else _nested(record.value, record.place, keys, ())
    elif nested:
        for element in member.elements():
            if isinstance(element, Loss):
                yield element
            else:
                place = member.place(element.path)
                yield _nested(element.value, place, keys, torn(element, place))
    elif lines:
        yield _of_lines(member)
    else:
        yield _of_document(member, keys)


def _nested(value: object, place: str, keys: Sequence[str], faults: Iterable[Loss]) -> MessageList:
    about = value if isinstance(value, dict) else NOTHING
    losses = list(faults)
    if not any(isinstance(about.get(key), list) for key in keys):
        losses.append(bad_record(f"{place}.{keys[0]}", "it is not a list of messages"))

    def items() -> Iterator[Item]:
        return _counted(item for key in keys for item in numbered(about.get(key), f"{place}.{key}"))

    beside = {key: value for key, value in about.items() if not isinstance(value, list) or key not in keys}
    return MessageList(place, beside, items, losses)


def _of_lines(member: Member) -> MessageList:
    losses = [record for record in member.records() if isinstance(record, Loss)]

    def items() -> Iterator[Item]:
        records = without_losses(member.records(), [])
        return (Item(record.ordinal, record.place, record.value) for record in records)

    return MessageList(member.place("whole file"), NOTHING, items, losses)


def _of_document(member: Member, keys: Sequence[str]) -> MessageList:
    about: dict[str, object] = {}
    losses: list[Loss] = []
    found = {item.key for item in listed(member, keys, about, losses)}

    def items() -> Iterator[Item]:
        """Yield the messages of each key in turn, in whatever order the file has the keys."""
        turns = [key for key in ("", *keys) if key in found]
        return _counted(item for turn in turns for item in listed(member, keys) if item.key == turn)

    return MessageList(member.place("whole file"), about, items, losses)


def _counted(items: Iterable[Item]) -> Iterator[Item]:
    """Number the items of several lists as those of one."""
    return (item._replace(ordinal=number) for number, item in enumerate(items))
