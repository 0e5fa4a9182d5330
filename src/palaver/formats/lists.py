"""Conversations that are a list of messages: what the formats of that shape have in common.

Such formats have no ids of records. A message is known by its number in its list, and by a digest of its value.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from palaver.errors import PalaverError
from palaver.formats import fields
from palaver.formats.dialogs import Calls, DialogWriter, Origin
from palaver.formats.events import Event, Loss
from palaver.formats.records import parse
from palaver.formats.splitting import Part, split
from palaver.formats.streams import Chunks
from palaver.formats.stubs import Stubs
from palaver.log import Entry, ModelChange, Toolset, ToolSpec
from palaver.log.headers import DIGEST_BYTES
from palaver.messages import Message, clean_text, freeze, thaw

TOOLS_RECORD = "tools"
"""The identity of what declares a conversation's tools, where it is no record of its own."""

_WORD = 200  # τ² names tasks by lists of faults, up to this long
_SPEC = frozenset({"name", "description", "parameters", "input_schema", "type"})


class Item(NamedTuple):
    """A value of a list.

    Attributes:
        ordinal: Its number in the list, starting at 0.
        place: Where it stands, for people.
        value: The value.
    """

    ordinal: int
    place: str
    value: object

    def origin(self, record: str = "") -> Origin:
        """Give the record it is, named by its number unless told otherwise."""
        return Origin(record or str(self.ordinal), self.ordinal, digest_of(self.value), self.place)


class ListCalls(Calls):
    """The calls of a list, where the same id may be given to a call again: each of them has a result of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._open: Counter[str] = Counter()

    def made(self, message: Message) -> None:
        """Take notice of a message's calls."""
        super().made(message)
        self._open.update(call.id for call in message.tool_calls())

    def unexpected(self, message: Message, writer: DialogWriter, place: str) -> Iterator[Loss]:
        """Report results that answer nothing."""
        awaited = [result.id for result in message.tool_results() if self._open[result.id] > 0]
        self._open.subtract(awaited)
        if len(awaited) < len(message.tool_results()):
            yield from super().unexpected(message, writer, place)


class Lane:
    """One dialog of a conversation, while it is written.

    Attributes:
        writer: Counts its puts.
        calls: The calls made in the conversation; dialogs of one conversation may share them.
        model: The model in force.
    """

    def __init__(self, writer: DialogWriter, calls: Calls) -> None:
        self.writer = writer
        self.calls = calls
        self.model = ""
        self._tools: tuple[Toolset, Origin] | None = None

    def declare(self, tools: Toolset | None, origin: Origin, *, known: bool = False) -> Iterator[Event]:
        """Put the tools: at once where the recording declares them, else before the first call.

        What was reconstructed from the calls stands where the first of them does, so that a file which grows its first call later only grows.
        """
        if tools is None:
            return
        if known:
            yield self.put(tools, origin, derived=True)
        else:
            self._tools = (tools, origin)

    def put(self, entry: Entry, origin: Origin, *, counted: int = 0, derived: bool = False) -> Event:
        """Put an entry that is no message."""
        return self.writer.put(entry, origin, counted=counted, derived=derived)

    def say(self, message: Message, origin: Origin, *, counted: int = 1, provider: str = "") -> Iterator[Event]:
        """Put a message, before it a change of the model, and a report of results that answer nothing."""
        if self._tools is not None and message.is_function_call:
            (tools, known), self._tools = self._tools, None
            yield self.put(tools, known, derived=True)
        self.calls.made(message)
        yield from self.calls.unexpected(message, self.writer, origin.place)
        if message.model and message.model != self.model:
            self.model = message.model
            yield self.put(ModelChange(model=message.model, provider=provider, at=message.timestamp), origin)
        yield from self.writer.say(message, origin, counted=counted)


def digest_of(value: object) -> bytes:
    """Give the first 16 bytes of the SHA-256 of a JSON value, however its keys are ordered."""
    return sha256(json.dumps(value, sort_keys=True).encode()).digest()[:DIGEST_BYTES]


def clean(value: object) -> object:
    """Give a JSON value in which every string can be stored."""
    return thaw(freeze(value, "", []))


def word(value: object) -> str:
    """Give a number or a short text for use in a name; what is neither, as JSON text, and never more than a line."""
    shown = value if isinstance(value, str) else json.dumps(value)
    return clean_text(shown, "", [])[:_WORD]


def run_key(answer: str, at: float) -> str:
    """Name a run after its first answer: the provider's id and the time, since the ids of some servers are small numbers; else empty."""
    return f"{answer}:{at:.3f}" if answer else ""


def instructs(message: object) -> bool:
    """Tell whether a message holds instructions."""
    return isinstance(message, dict) and fields.text(message, "role") in {"system", "developer"}


def guarded(place: str, events: Iterable[Event]) -> Iterator[Event]:
    """Give what is said of a record; one that cannot be read is reported instead, and the next one is read."""
    try:
        yield from events
    except (PalaverError, ValueError, TypeError, RecursionError) as error:  # what the odd shape of a record can cause
        reason = f"The record cannot be read: {str(error)[:200]}"
        yield Loss(place=place, reason=reason, code="bad_record", severity="loss")


def bad_record(place: str, what: str) -> Loss:
    """Report a record of the wrong kind."""
    return Loss(place=place, reason=f"It is {what}.", code="bad_record", severity="loss")


# --- documents ----------------------------------------------------------------------------------------------------------


class Unfolded(NamedTuple):
    """An object of a document, as far as it can be read.

    Attributes:
        value: Its values.
        losses: What could not be read.
        torn: True when it is cut off or damaged, and what is whole in it was read.
    """

    value: Mapping[str, object]
    losses: tuple[Loss, ...] = ()
    torn: bool = False


def unfold(part: Part, lists: Collection[str], place: str) -> Unfolded:
    """Read a part that is an object.

    Args:
        part: The part.
        lists: The keys of its arrays that hold messages: from a part that is cut off or damaged, what is whole in them is read.
        place: Where it stands.
    """
    parsed = parse(part.data) if part.whole else None
    if parsed is not None and not parsed.fault:
        losses = tuple(Loss(place=place, reason=f"{reason}.", code=code) for code, reason in parsed.repairs)
        value = parsed.values[0][0] if parsed.values else None
        if isinstance(value, dict):
            return Unfolded(value, losses)
        return Unfolded(fields.NOTHING, (*losses, bad_record(place, "JSON that is no object")))
    return _salvaged(part.data, lists, place)


def _salvaged(data: bytes, lists: Collection[str], place: str) -> Unfolded:
    found: dict[str, object] = {}
    taken: dict[str, list[object]] = {}
    reason = "It is cut off or damaged; what is whole in it was read."
    losses = [Loss(place=place, reason=reason, code="torn_tail", severity="loss")]
    for inner in split(_once(data), lists):
        values = parse(inner.data).values if inner.whole else ()
        if not values:
            continue
        if inner.nth < 0:
            found[inner.key] = values[0][0]
        else:
            taken.setdefault(inner.key, []).append(values[0][0])
    return Unfolded({**found, **taken}, tuple(losses), torn=True)


def value_of(part: Part, place: str) -> tuple[object, tuple[Loss, ...]]:
    """Read a part that is a value of any kind; None with a loss where it cannot be read, without one where the document ends in it."""
    if not part.whole:
        return None, ()
    parsed = parse(part.data)
    losses = tuple(Loss(place=place, reason=f"{reason}.", code=code) for code, reason in parsed.repairs)
    if parsed.fault or not parsed.values:
        return None, (*losses, bad_record(place, f"no JSON: {parsed.fault or 'empty'}"))
    return parsed.values[0][0], losses


def first_element(text: str, key: str = "") -> Mapping[str, object]:
    """Give the first element of an array from the beginning of its document's text, as far as it goes.

    Of an array within it the elements that are whole are given, of a text that is cut off nothing but that it is one.

    Args:
        text: The beginning of the document.
        key: The key of the array in a document that is an object; empty where the document is the array.
    """
    data = text.lstrip("\ufeff \t\r\n").encode(errors="replace")
    if key and data[:1] == b"{":
        data = next((part.data for part in split(_once(data)) if part.key == key), b"")
    if data[:1] != b"[":
        return fields.NOTHING
    first = next(split(_once(data)), None)
    return fields.NOTHING if first is None else _shallow(first.data)


def _shallow(data: bytes) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for part in split(_once(data)) if data[:1] == b"{" else ():
        values = parse(part.data).values if part.whole else ()
        if values:
            found[part.key] = values[0][0]
        elif part.data[:1] == b"[":
            inner = (parse(element.data).values for element in split(_once(part.data)) if element.whole)
            found[part.key] = [values[0][0] for values in inner if values]
        elif part.data[:1] == b'"':
            found[part.key] = ""
    return found


def _once(data: bytes) -> Chunks:
    yield data
    return ""


# --- tools --------------------------------------------------------------------------------------------------------------


def see_calls(stubs: Stubs, message: object) -> None:
    """Take notice of a message's calls, in the dict form of either interface."""
    if not isinstance(message, dict):
        return
    for call in fields.objects(message, "tool_calls"):
        function = fields.mapping(call, "function") or call
        stubs.see(fields.text(function, "name"), fields.arguments(function.get("arguments")))
    legacy = fields.mapping(message, "function_call")
    stubs.see(fields.text(legacy, "name"), fields.arguments(legacy.get("arguments")))
    for block in fields.objects(message, "content"):
        if block.get("type") == "tool_use":
            stubs.see(fields.text(block, "name"), block.get("input"))


def specs(tools: object) -> tuple[ToolSpec, ...]:
    """Read declarations of tools in the form of either interface, in order; what is none is left out.

    Raises:
        ValueError: A declaration holds what no tool has.
    """
    found: Sequence[object] = tools if isinstance(tools, list) else ()
    return tuple(_spec(tool) for tool in found if isinstance(tool, dict) and _named(tool))


def _named(tool: Mapping[str, object]) -> str:
    return fields.text(fields.mapping(tool, "function") or tool, "name")


def _spec(tool: Mapping[str, object]) -> ToolSpec:
    inner = fields.mapping(tool, "function")
    flat = {**{key: value for key, value in tool.items() if key != "function"}, **inner}
    parameters = fields.mapping(flat, "parameters") or fields.mapping(flat, "input_schema")
    rest = {key: value for key, value in flat.items() if key not in _SPEC and key not in ToolSpec.model_fields}
    own: dict[str, object] = {"name": _named(tool), "description": fields.text(flat, "description")}
    if parameters:
        own["parameters"] = freeze(parameters, "", [])
    return ToolSpec.model_validate({**rest, **own})


def toolset(declared: Sequence[ToolSpec], stubs: Stubs, at: float) -> Toolset | None:
    """Declare a conversation's tools: those that its recording declares, in order, then those that were only called; None without any."""
    names = {spec.name for spec in declared}
    called = stubs.toolset(at)
    missing = () if called is None else tuple(spec for spec in called.tools if spec.name not in names)
    return Toolset(tools=(*declared, *missing), at=at) if declared or missing else None


def declare(stubs: Stubs, declared: Iterable[ToolSpec]) -> None:
    """Tell the collector of calls which tools need no reconstruction."""
    for spec in declared:
        stubs.declare({"name": spec.name})
