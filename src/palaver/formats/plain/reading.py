"""Reading plain message lists: one conversation a list, streamed where the list is the document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from palaver.errors import UnsupportedTranscript
from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Origin
from palaver.formats.events import Branch, Conversation, Event, Loss
from palaver.formats.leftovers import Leftovers
from palaver.formats.lists import (
    TOOLS_RECORD,
    Item,
    Lane,
    ListCalls,
    bad_record,
    clean,
    declare,
    digest_of,
    guarded,
    instructs,
    see_calls,
    specs,
    toolset,
    unfold,
    value_of,
    word,
)
from palaver.formats.plain.signs import ANTHROPIC, by_line, shown
from palaver.formats.sources import Member, Source
from palaver.formats.stubs import Stubs, no_instructions
from palaver.log import Instructions, Section
from palaver.messages import Message, from_anthropic_dict, from_chat_dict

OWNER = "agent"
_READ = frozenset({"messages", "system", "tools"})
_PARAMETERS = 200  # characters: a longer value beside the messages is content, and stays in the source


class _Talk(NamedTuple):
    """A list of messages, and what stands beside it.

    Attributes:
        ordinal: Its number in the source.
        place: Where it stands.
        about: What stands beside the messages.
        items: Gives the messages, from the start each time.
        losses: What could not be read.
    """

    ordinal: int
    place: str
    about: Mapping[str, object]
    items: Callable[[], Iterator[Item]]
    losses: Sequence[Loss] = ()


def conversations(source: Source, name: str) -> Iterator[Event]:
    """Read every list of a source as a conversation."""
    ordinal = 0
    for member in source.members:
        for found in _talks(member):
            if isinstance(found, Loss):
                yield found
            else:
                yield from _conversation(found._replace(ordinal=ordinal), name)
                ordinal += 1


# --- shapes -------------------------------------------------------------------------------------------------------------


def _talks(member: Member) -> Iterator[_Talk | Loss]:
    try:
        opening = member.opening
    except UnsupportedTranscript as error:  # a file of an archive whose first file is such a list
        yield Loss(place=member.place("whole file"), reason=f"Not read: {error.why}.", code="skipped", severity="note")
        return
    if opening.text.lstrip().startswith("["):
        about, _ = shown(opening)
        yield from _of_elements(member) if about else iter((_whole(member, _elements),))
    elif by_line(opening):
        yield from _of_lines(member) if "messages" in opening.records[0] else iter((_whole(member, _lines),))
    else:
        yield _whole(member, _members)


def _of_elements(member: Member) -> Iterator[_Talk | Loss]:
    for part in member.parts():
        if isinstance(part, Loss):
            yield part
        else:
            place = member.place(part.path)
            found = unfold(part, ("messages",), place)
            if found.torn and not fields.items(found.value, "messages"):
                yield from found.losses
            else:
                yield _held(found.value, place, found.losses)


def _of_lines(member: Member) -> Iterator[_Talk | Loss]:
    for record in member.records():
        yield record if isinstance(record, Loss) else _held(record.value, record.place, ())


def _held(value: Mapping[str, object], place: str, losses: Sequence[Loss]) -> _Talk:
    said = value.get("messages")
    if not isinstance(said, list):
        losses = (*losses, bad_record(f"{place}.messages", "no list of messages"))
        said = []
    messages: list[object] = said
    return _Talk(0, place, value, lambda: _numbered(messages, f"{place}.messages"), losses)


def _numbered(values: Sequence[object], path: str) -> Iterator[Item]:
    for number, value in enumerate(values):
        yield Item(number, f"{path}[{number}]", value)


_Streamed = Iterator[Item | Loss | tuple[str, object]]


def _whole(member: Member, stream: Callable[[Member], _Streamed]) -> _Talk:
    """Give a document that is one list; it is read twice, and never held."""
    losses: list[Loss] = []
    about: dict[str, object] = {}
    for found in stream(member):
        if isinstance(found, Loss):
            losses.append(found)
        elif not isinstance(found, Item):
            about[found[0]] = found[1]
    return _Talk(
        0,
        member.place("whole file"),
        about,
        lambda: (found for found in stream(member) if isinstance(found, Item)),
        losses,
    )


def _elements(member: Member) -> _Streamed:
    return _parts(member, "")


def _members(member: Member) -> _Streamed:
    return _parts(member, "messages")


def _parts(member: Member, key: str) -> _Streamed:
    ordinal = 0
    for part in member.parts((key,)):
        if isinstance(part, Loss):
            yield part
            continue
        place = member.place(part.path)
        value, losses = value_of(part, place)
        yield from losses
        if part.key != key:
            yield part.key, value
        elif part.nth < 0:
            yield bad_record(place, "no list of messages")
        else:
            if part.whole and not (value is None and losses):
                yield Item(ordinal, place, value)
            ordinal += 1


def _lines(member: Member) -> _Streamed:
    for record in member.records():
        yield record if isinstance(record, Loss) else Item(record.ordinal, record.place, record.value)


# --- a conversation -----------------------------------------------------------------------------------------------------


def _conversation(talk: _Talk, name: str) -> Iterator[Event]:
    stubs = Stubs()
    started_at, model, led = 0.0, fields.text(talk.about, "model"), False
    for item in talk.items():
        see_calls(stubs, item.value)
        led = led or instructs(item.value)
        if isinstance(item.value, dict):
            started_at = started_at or _when(item.value)
            model = model or fields.text(item.value, "model")
    short = {
        word(key): clean(value)
        for key, value in talk.about.items()
        if key not in _READ and isinstance(value, str | int | float) and len(str(value)) <= _PARAMETERS
    }
    yield Conversation(key="", ordinal=talk.ordinal, model=model, started_at=started_at, main="main", metadata=short)
    yield Branch(dialog="main", owner=OWNER)
    yield from talk.losses
    lane = Lane(DialogWriter("main", name), ListCalls())
    yield from guarded(talk.place, _preamble(talk, lane, stubs, started_at))
    yield from stubs.losses(talk.place)
    if not led and not talk.about.get("system"):
        yield no_instructions(talk.place)
    read = from_anthropic_dict if name == ANTHROPIC else from_chat_dict
    at = started_at
    for item in talk.items():
        at = (_when(item.value) if isinstance(item.value, dict) else 0.0) or at
        yield from guarded(item.place, _message(item, lane, read, f"{name}:{talk.ordinal}:{item.ordinal}", at))
    leftovers = Leftovers()
    leftovers.fields(word(key) for key in talk.about if key not in _READ and word(key) not in short)
    yield from leftovers.losses(talk.place)


def _preamble(talk: _Talk, lane: Lane, stubs: Stubs, at: float) -> Iterator[Event]:
    system = talk.about.get("system")
    if system:
        told = Instructions(sections=tuple(_sections(system)), at=at)
        yield lane.put(told, Origin("system", 0, digest_of(system), f"{talk.place}, system"))
    declared = specs(talk.about.get("tools"))
    declare(stubs, declared)
    origin = Origin(TOOLS_RECORD, 0, b"", f"{talk.place}, tools")
    yield from lane.declare(toolset(declared, stubs, at), origin, known=bool(declared))


def _sections(system: object) -> Iterator[Section]:
    """Read Anthropic's `system`: a text, or blocks of text."""
    if isinstance(system, str):
        yield Section(name="system", text=system)
        return
    blocks: Sequence[object] = system if isinstance(system, list) else ()
    for number, block in enumerate(blocks):
        if isinstance(block, dict) and (text := fields.text(block, "text")):
            rest: dict[str, Any] = {key: value for key, value in block.items() if key not in {"text", "type", "name"}}
            yield Section.model_validate({**rest, "name": f"system {number + 1}", "text": text})


def _message(item: Item, lane: Lane, read: Callable[..., Message], key: str, at: float) -> Iterator[Event]:
    if not isinstance(item.value, dict):
        yield bad_record(item.place, "no message")
        return
    told = {name: value for name, value in item.value.items() if name not in {"timestamp", "created_at", "metadata"}}
    about = fields.mapping(item.value, "metadata")
    message = read(told, id=key, timestamp=at, metadata=clean(about) if about else {})
    yield from lane.say(message, item.origin())


def _when(value: Mapping[str, object]) -> float:
    return fields.moment(value.get("timestamp")) or fields.moment(value.get("created_at"))
