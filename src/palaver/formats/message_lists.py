"""Where lists of messages are in a file: the file itself, a value of its object, or a value of each object in its array or lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from palaver.formats.dialogs import bad_record
from palaver.formats.events import NOTHING, Loss, without_losses
from palaver.formats.lists import Item, listed, numbered, torn, values
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


def message_lists(
    member: Member, keys: Sequence[str], asked: Mapping[str, object] = NOTHING
) -> Iterator[MessageList | Loss]:
    """Find the lists of a file. One that is the whole file is read twice, and not kept in memory.

    Args:
        member: The file.
        keys: The keys of the messages in an object. What several keys have is one list, in this order.
        asked: The fields of the message that a text in place of the first list is. Empty: a text is no list.
    """
    opening = member.opening
    lines = opening.document is None and bool(opening.records)
    first = next(iter(opening.records if lines else opening.elements), NOTHING)
    nested = not first.keys().isdisjoint(keys)
    if nested and lines:
        for record in member.records():
            yield record if isinstance(record, Loss) else _nested(record.value, record.place, keys, asked, ())
    elif nested:
        for element in member.elements():
            if isinstance(element, Loss):
                yield element
            else:
                place = member.place(element.path)
                yield _nested(element.value, place, keys, asked, torn(element, place))
    elif lines:
        yield _of_lines(member)
    else:
        yield _of_document(member, keys, asked)


def _nested(
    value: object, place: str, keys: Sequence[str], asked: Mapping[str, object], faults: Iterable[Loss]
) -> MessageList:
    about = dict(value) if isinstance(value, dict) else {}
    losses = list(faults)
    first = _question(about, keys[0], f"{place}.{keys[0]}", asked)
    lists = {key: about.pop(key) for key in keys if isinstance(about.get(key), list)}
    if not first and not lists:
        losses.append(bad_record(f"{place}.{keys[0]}", "it is not a list of messages"))

    def items() -> Iterator[Item]:
        return _counted(chain(first, (item for key in lists for item in numbered(lists[key], f"{place}.{key}"))))

    return MessageList(place, about, items, losses)


def _question(about: dict[str, object], key: str, place: str, asked: Mapping[str, object]) -> Sequence[Item]:
    """Take a text that stands in place of a list from the values of an object, as a message."""
    if not asked or not about.get(key) or not isinstance(about[key], str):
        return ()
    return (Item(0, place, {**asked, "content": about.pop(key)}),)


def _of_lines(member: Member) -> MessageList:
    losses = [line for line in values(member) if isinstance(line, Loss)]
    return MessageList(member.place("whole file"), NOTHING, lambda: without_losses(values(member), []), losses)


def _of_document(member: Member, keys: Sequence[str], asked: Mapping[str, object]) -> MessageList:
    about: dict[str, object] = {}
    losses: list[Loss] = []
    found = {item.key for item in listed(member, keys, about, losses)}
    first = _question(about, keys[0], member.place(keys[0]), asked)

    def items() -> Iterator[Item]:
        """Yield the messages of each key in turn, in whatever order the file has the keys."""
        turns = [key for key in ("", *keys) if key in found]
        return _counted(chain(first, (item for turn in turns for item in listed(member, keys) if item.key == turn)))

    return MessageList(member.place("whole file"), about, items, losses)


def _counted(items: Iterable[Item]) -> Iterator[Item]:
    """Number the items of several lists as those of one."""
    return (item._replace(ordinal=number) for number, item in enumerate(items))
