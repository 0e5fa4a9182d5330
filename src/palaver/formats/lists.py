"""Helpers for formats that record a conversation as a list of messages.

Such formats have no record ids. A message is identified by its number in its list, and by a digest of its value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from palaver.errors import InvalidMessage
from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Origin, bad_record
from palaver.formats.documents import Element
from palaver.formats.events import NOTHING, Event, Loss, without_losses
from palaver.formats.sources import Member, SourceFile
from palaver.log import Instructions, Section, Toolset, ToolSpec
from palaver.log.headers import DIGEST_BYTES
from palaver.messages import Usage, clean_text, freeze, stop_reason_of, thaw
from palaver.plurals import counted

_WORD = 200  # τ² names tasks by lists of faults, up to this long
_SPEC = frozenset({"name", "description", "parameters", "input_schema", "type", "function"})


class Item(NamedTuple):
    """A value of a list.

    Attributes:
        ordinal: Its number in the list, starting at 0.
        place: Where it is, for people.
        value: The value.
        key: Its key, or that of its list, in a document that is an object; or empty.
    """

    ordinal: int
    place: str
    value: object
    key: str = ""

    @property
    def fields(self) -> Mapping[str, Any]:
        """Its value if it is an object, or else empty."""
        return self.value if isinstance(self.value, dict) else NOTHING

    def expect(self, what: str = "a message") -> Mapping[str, Any]:
        """Return its value, an object.

        Raises:
            ValueError: It is not an object, and so not `what`.
        """
        if not isinstance(self.value, dict):
            raise ValueError(f"it is not {what}")  # noqa: TRY004 - a fault of the file
        return self.value

    def origin(self, record: str = "") -> Origin:
        """Return it as a record, named by its number by default."""
        return self.part(record or str(self.ordinal), self.value)

    def part(self, record: str, value: object) -> Origin:
        """Return a part of it as a record of its own."""
        return Origin(record, self.ordinal, digest_of(value), self.place)


def conversations(
    source: SourceFile, read: Callable[[Mapping[str, object], str, int], Iterator[Event]], *, partly: str = ""
) -> Iterator[Event]:
    """Read each element of an array as a conversation, one in memory at a time.

    Args:
        source: The source, an array of objects.
        read: Reads an object, from its value, its place and its number.
        partly: The key of the messages, if the conversation in which a file ends is read as far as it goes.
    """
    ordinal = 0
    for element in source.member.elements():
        if isinstance(element, Loss):
            yield element
            continue
        place, value = source.member.place(element.path), element.value
        if isinstance(value, dict) and (element.whole or fields.items(value, partly)):
            yield from read(value, place, ordinal)
            yield from torn(element, place)
            ordinal += 1
        else:
            what = "it is not a conversation" if element.whole else "the file ends in this conversation"
            yield bad_record(place, what)


def document_parts(member: Member, keys: Collection[str] = ()) -> Iterator[Item | Loss]:
    """Read the parts of a document that are whole, one in memory at a time: the elements of an array, or the values of an object.

    Args:
        member: The file.
        keys: The keys of the lists in an object, which are read by their elements. Its other values have the number -1.
    """
    for element in member.elements(keys):
        if isinstance(element, Loss):
            yield element
            continue
        place = member.place(element.path)
        yield from torn(element, place, read=False)
        if element.whole:
            yield Item(element.nth, place, element.value, element.key)


def values(member: Member) -> Iterator[Item | Loss]:
    """Read the elements of an array that are whole, or else the lines of a file, one in memory at a time."""
    if isinstance(member.opening.document, list):
        yield from document_parts(member)
        return
    for record in member.records():
        yield record if isinstance(record, Loss) else Item(record.ordinal, record.place, record.value)


def listed(
    member: Member, keys: Collection[str], about: dict[str, object] | None = None, losses: list[Loss] | None = None
) -> Iterator[Item]:
    """Read the elements of the lists of a document that are whole, one in memory at a time.

    Args:
        member: The file. An array is one list.
        keys: The keys of the lists in a file that is an object.
        about: Receives the object's other values. None: an earlier pass has them.
        losses: Receives the reports of what cannot be read. None: an earlier pass reported it.
    """
    about, losses = {} if about is None else about, [] if losses is None else losses
    for part in without_losses(document_parts(member, keys), losses):
        if part.ordinal >= 0:
            yield part
            continue
        about[part.key] = part.value
        if part.key in keys and not isinstance(part.value, str | None):
            losses.append(bad_record(part.place, "it is not a list"))


def numbered(values: object, path: str) -> Iterator[Item]:
    """Return the elements of a list as items, and none for any other value."""
    for number, value in enumerate(values if isinstance(values, list) else ()):
        yield Item(number, f"{path}[{number}]", value)


def digest_of(value: object) -> bytes:
    """Return the first 16 bytes of the SHA-256 of a JSON value, ignoring the order of keys."""
    return sha256(json.dumps(value, sort_keys=True).encode()).digest()[:DIGEST_BYTES]


def clean(value: object) -> object:
    """Return a JSON value in which every string can be stored. One that is nested too deeply for an entry becomes its JSON text."""
    try:
        return thaw(freeze(value))
    except InvalidMessage:
        return clean_text(json.dumps(value), "", [])


def word(value: object) -> str:
    """Return a value as a short text for a name: a string unchanged, anything else as JSON."""
    return clean_text(value if isinstance(value, str) else json.dumps(value), "", [])[:_WORD]


def kept(value: Mapping[str, object], read: Collection[str]) -> dict[str, object]:
    """Return the values of an object that are not read into a message, for its metadata; nulls are left out."""
    return {word(key): clean(item) for key, item in value.items() if key not in read and item is not None}


def run_key(answer: str, at: float) -> str:
    """Return the name of a run after its first answer: the provider's id and the time, since some servers' ids repeat; or empty."""
    return f"{answer}:{at:.3f}" if answer else ""


def instructs(message: object) -> bool:
    """Return whether a message contains instructions."""
    return isinstance(message, dict) and fields.text(message, "role") in {"system", "developer"}


def priced(usage: Mapping[str, object], cost: object) -> Usage:
    """Return a usage record with its dollars added."""
    return Usage({**usage, **({"cost": cost} if isinstance(cost, int | float) and cost else {})})


def answer_fields(response: Mapping[str, object], cost: object) -> dict[str, Any]:
    """Return what a response of chat completions says about its message: model, id, usage and stop reason."""
    choice = next(iter(fields.objects(response, "choices")), NOTHING)
    return {
        "model": fields.text(response, "model") or None,
        "response_id": fields.text(response, "id") or None,
        "usage": priced(fields.mapping(response, "usage"), cost),
        "stop_reason": stop_reason_of(fields.text(choice, "finish_reason") or None),
    }


def torn(element: Element, place: str, *, read: bool = True) -> Iterator[Loss]:
    """Report the repairs of an element, and whether it is cut off or damaged; `read`: what is whole in such an element is read."""
    for code, reason in element.repairs:
        yield Loss(place=place, reason=f"{reason}.", code=code)
    if not element.whole:
        reason = f"It is cut off or damaged{'; what is whole in it was read' if read else ', and not read'}."
        yield Loss(place=place, reason=reason, code="torn_tail", severity="loss")


def declare(writer: DialogWriter, tools: object, at: float, origin: Origin) -> Iterator[Event]:
    """Put the tools that a recording declares, in either interface's format, if there are any. Report what has no name."""
    declared: Sequence[object] = tools if isinstance(tools, list) else (tools,) if tools else ()
    specs = tuple(_spec(tool) for tool in declared if isinstance(tool, dict) and _name(tool))
    if specs:
        yield writer.put(Toolset(tools=specs, at=at), origin)
    if unread := len(declared) - len(specs):
        yield bad_record(origin.place, f"{counted(unread, 'tool')} without a name")


def instruct(
    writer: DialogWriter, system: object, at: float, origin: Origin, *, name: str = "system"
) -> Iterator[Event]:
    """Put instructions, if there are any: a text, or blocks of text. Report a block that is none."""
    losses: list[Loss] = []
    if sections := tuple(without_losses(_sections(system, origin.place, name), losses)):
        yield writer.put(Instructions(sections=sections, at=at), origin)
    yield from losses


def _sections(system: object, place: str, name: str) -> Iterator[Section | Loss]:
    if isinstance(system, str) and system:
        yield Section(name=name, text=clean_text(system, "", []))
        return
    for number, block in enumerate(system if isinstance(system, list) else (system,) if system else ()):
        about = block if isinstance(block, dict) else NOTHING
        if text := fields.text(about, "text"):
            rest: dict[str, Any] = {key: value for key, value in about.items() if key not in {"text", "type", "name"}}
            yield Section.model_validate({**rest, "name": f"{name} {number + 1}", "text": text})
        elif about.get("text") != "":
            yield bad_record(f"{place}[{number}]", "it is not a block of text")


def _name(tool: Mapping[str, object]) -> str:
    return fields.text(fields.mapping(tool, "function") or tool, "name")


def _spec(tool: Mapping[str, object]) -> ToolSpec:
    flat = {**tool, **fields.mapping(tool, "function")}
    parameters = fields.mapping(flat, "parameters") or fields.mapping(flat, "input_schema")
    rest = {key: value for key, value in flat.items() if key not in _SPEC and key not in ToolSpec.model_fields}
    own: dict[str, object] = {"name": _name(tool), "description": fields.text(flat, "description")}
    if parameters:
        own["parameters"] = freeze(parameters)
    return ToolSpec.model_validate({**rest, **own})
