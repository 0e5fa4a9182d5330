"""OpenHands' events: runs of its evaluations, one JSON line each with its history, and lists of events.

Two generations are read: events with `action` or `observation` (OpenHands up to 1.0; early ones come in pairs and have no id), and those of its SDK with
`kind`. An observation answers the call that it names, the event that is its cause, or the action before it. Based on outputs of the evaluations, and on
the event types of the SDK (OpenHands/software-agent-sdk, `openhands/sdk/event`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record, guarded, no_instructions
from palaver.formats.events import NOTHING, Conversation, Event, Loss
from palaver.formats.lists import Item, answer_fields, clean, declare, digest_of, kept, numbered, values, word
from palaver.formats.openhands_sdk import KINDS, message_of
from palaver.formats.sources import SourceFile
from palaver.formats.unread import Unread
from palaver.log import Custom, Derived, Instructions, Run, Section
from palaver.messages import (
    AssistantMessage,
    Message,
    Speaker,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)

NAME = "openhands-events"
OWNER = "openhands"
_KEYS = {
    "system": "action args id message source timestamp",
    "system.args": "agent_class content openhands_version tools",
    "condensation": "action args cause id message source timestamp",
    "condensation.args": "forgotten_event_ids forgotten_events_end_id forgotten_events_start_id summary summary_offset",
    "SystemPromptEvent": "id kind source system_prompt timestamp tools",
    "SystemPromptEvent.system_prompt": "cache_prompt text type",
    "Condensation": "forgotten_event_ids id kind llm_response_id source summary summary_offset timestamp",
}
"""The keys of events that are not kept whole."""
_STATES = frozenset({"recall", "change_agent_state", "agent_state_changed", "null", "condensation_request"})
_HASH = 12  # hexadecimal digits
_READ = frozenset(
    {"id", "timestamp", "source", "message", "action", "observation", "content", "args", "cause", "tool_call_metadata"}
)


class OpenHandsEvents:
    """Histories of OpenHands: one conversation per run."""

    name = NAME
    title = "OpenHands events"
    signs = "JSON lines with history, or a list of events with action, observation or kind"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it has OpenHands' events, from 0.0 to 1.0."""
        opening = source.opening
        shown = [*opening.elements, *opening.records, opening.fields]
        events = [event for value in shown for event in (_flat(fields.items(value, "history")) or [value])]
        return 0.9 if any(_is_event(event) for event in events if isinstance(event, dict)) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every run as a conversation, one in memory at a time."""
        opening, ordinal = source.opening, 0
        rows = opening.records if opening.document is None or opening.fields else opening.elements
        if not any(isinstance(row.get("history"), list) for row in rows):
            place = source.member.place("whole file")
            yield from _session(place, "", NOTHING, list(values(source.member)), ordinal)
            return
        for item in values(source.member):
            if isinstance(item, Loss):
                yield item
            else:
                yield from _run(item, ordinal)
                ordinal += 1


def _flat(history: Sequence[object]) -> list[object]:
    """Return the events of a history whose oldest form has pairs of an action and its observation."""
    return [event for one in history for event in (one if isinstance(one, list) else [one])]


def _is_event(value: Mapping[str, object]) -> bool:
    if fields.text(value, "kind") in KINDS:
        return "source" in value
    return isinstance(value.get("action") or value.get("observation"), str) and bool(
        {"args", "content", "thought", "extras"} & value.keys()
    )


def _run(item: Item, ordinal: int) -> Iterator[Event]:
    row = item.fields
    name = fields.text(row, "instance_id") or word(fields.mapping(row, "issue").get("number") or "run")
    place = f"{item.place}, history"
    events: list[Item | Loss] = list(numbered(_flat(fields.items(row, "history")), place))
    if not isinstance(row.get("history"), list):
        events.append(bad_record(place, "it is not a list of events"))
    yield from _session(item.place, f"{name}:{digest_of(row).hex()[:_HASH]}", kept(row, {"history"}), events, ordinal)


def _session(
    place: str, key: str, about: Mapping[str, object], events: Sequence[Item | Loss], ordinal: int
) -> Iterator[Event]:
    shown = [event.fields for event in events if isinstance(event, Item)]
    started_at = next(filter(None, (fields.moment(value.get("timestamp")) for value in shown)), 0.0)
    yield Conversation(key=key, ordinal=ordinal, title=key.rpartition(":")[0], started_at=started_at, metadata=about)
    reading = _EventReader(key or NAME, started_at)
    yield reading.writer.branch(OWNER)
    if not any(value.get("kind") == "SystemPromptEvent" or value.get("action") == "system" for value in shown):
        yield no_instructions(place)
    for event in events:
        if isinstance(event, Loss):
            yield event
        else:
            yield from guarded(event.place, reading.read(event))
    yield from reading.unread.losses()


class _EventReader:
    """Turns events into entries.

    Attributes:
        writer: The dialog.
        unread: What is not read.
    """

    def __init__(self, key: str, at: float) -> None:
        self.writer = DialogWriter("main", NAME)
        self._key = key
        self._at = at
        self._calls: dict[str, str] = {}  # the call of each action, by the id of its event
        self._last = ""
        self._responses: set[str] = set()
        self.unread = Unread(_KEYS)
        self._shown: list[tuple[str, Run | Derived]] = []

    def read(self, item: Item) -> Iterator[Event]:
        """Read an event."""
        value = item.expect("an event")
        self._at = fields.moment(value.get("timestamp")) or self._at
        event, start = word(value.get("id")) if value.get("id") is not None else str(item.ordinal), self.writer.count
        kind = fields.text(value, "kind")
        yield from self._sdk(value, event, item) if kind in KINDS else self._event(value, event, item)
        if self.writer.count > start:
            self._shown.append((event, self.writer.run(start, self.writer.count)))

    def _event(self, value: Mapping[str, object], event: str, item: Item) -> Iterator[Event]:
        action, seen = fields.text(value, "action"), fields.text(value, "observation")
        given = fields.mapping(value, "args") or {name: part for name, part in value.items() if name not in _READ}
        text = fields.text(value, "content") or fields.text(given, "content")
        about = self._about(event, kept(value, _READ))
        self.unread.see(value, item.place, action)
        if action == "system":
            yield from self._instruct(text, given.get("tools"), item)
        elif action == "message":
            rest = {"metadata": {**about["metadata"], **kept(given, {"content"})}}
            blocks = (TextContent(content=text),) if text else ()
            agent = value.get("source") == "agent"
            yield from self._say(
                (AssistantMessage if agent else UserMessage)(contents=blocks, **{**about, **rest}), item
            )
        elif action == "condensation":
            yield from self._condense(given, item)
        elif (action or seen) in _STATES or not (action or seen):
            entry = Custom(custom_type=f"{NAME}/{action or seen or 'event'}", data=clean(dict(value)), at=self._at)
            yield self.writer.put(entry, item.origin(event), counted=int(bool(seen)))
        elif action:
            yield from self._act(value, given, event, item)
        else:
            meta = fields.mapping(value, "tool_call_metadata")
            call = fields.text(meta, "tool_call_id") or self._calls.get(word(value.get("cause")), "")
            if not call and "cause" not in value and seen != "error":
                call = self._last
            if call:
                block = ToolResultContent(
                    id=call, content=text, is_error=seen == "error", name=fields.text(meta, "function_name") or None
                )
                yield from self._say(ToolMessage(contents=(block,), **about), item)
            else:
                yield from self._say(
                    UserMessage(contents=(TextContent(content=text),), speaker=Speaker.HARNESS, **about), item
                )

    def _act(self, value: Mapping[str, object], given: Mapping[str, object], event: str, item: Item) -> Iterator[Event]:
        """Put a call: as the model wrote it, where its response is recorded, or else made from the action."""
        meta = fields.mapping(value, "tool_call_metadata")
        response = fields.mapping(meta, "model_response")
        name = fields.text(response, "id")
        about = self._about(event, kept(value, _READ))
        thought = fields.text(given, "thought")
        call = fields.text(meta, "tool_call_id") or f"{self._key}:{event}"
        tool = fields.text(meta, "function_name") or fields.text(value, "action")
        args: Any = kept(given, {"thought"})
        choice = next(iter(fields.objects(response, "choices")), NOTHING)
        message = fields.mapping(choice, "message")
        for made in fields.objects(message, "tool_calls"):
            if fields.text(made, "id") == call:
                function = fields.mapping(made, "function")
                args, thought = function.get("arguments", args), fields.text(message, "content") or thought
        first = self._begins(name)
        if response:
            own = {key: part for key, part in answer_fields(response, None).items() if first or key != "usage"}
            about |= {**own, "fragment": True}
        blocks = (TextContent(content=thought),) if thought and first else ()
        block = ToolCallContent.from_dict({"id": call, "name": tool, "args": args})
        self._calls[event], self._last = call, call
        yield from self._say(AssistantMessage(contents=(*blocks, block), **about), item)

    def _sdk(self, value: Mapping[str, object], event: str, item: Item) -> Iterator[Event]:
        kind, response = fields.text(value, "kind"), fields.text(value, "llm_response_id")
        self.unread.see(value, item.place, kind)
        if kind == "SystemPromptEvent":
            text = fields.text(fields.mapping(value, "system_prompt"), "text")
            yield from self._instruct(text, value.get("tools"), item)
        elif kind == "Condensation":
            yield from self._condense(value, item)
        else:
            about = {"id": f"{self._key}:{event}", "timestamp": self._at}
            yield from self._say(message_of(value, about, first=self._begins(response)), item)

    def _begins(self, response: str) -> bool:
        """Return whether a response was not seen before."""
        first = response not in self._responses or not response
        self._responses.add(response)
        return first

    def _about(self, event: str, rest: Mapping[str, object]) -> dict[str, Any]:
        return {"id": f"{self._key}:{event}", "timestamp": self._at, "metadata": rest}

    def _say(self, message: Message, item: Item) -> Iterator[Event]:
        yield from self.writer.say(message, item.origin(message.id), counted=1)

    def _instruct(self, text: str, tools: object, item: Item) -> Iterator[Event]:
        entry = Instructions(sections=(Section(name="system", text=text),) if text else (), at=self._at)
        yield self.writer.put(entry, item.part(f"{item.ordinal}", text), counted=1)
        yield from declare(self.writer, clean(tools), self._at, item.part(f"{item.ordinal}:tools", tools))

    def _condense(self, value: Mapping[str, object], item: Item) -> Iterator[Event]:
        """Put a condensation: the events that the model saw no more, and the summary in their place."""
        gone = {word(name) for name in fields.items(value, "forgotten_event_ids")}
        first, last = value.get("forgotten_events_start_id"), value.get("forgotten_events_end_id")
        if isinstance(first, int) and isinstance(last, int):
            gone |= {event for event, _ in self._shown if event.isdecimal() and first <= int(event) <= last}
        self._shown = [(event, piece) for event, piece in self._shown if event not in gone]
        if text := fields.text(value, "summary"):
            summary = Derived(text=text, label="summary", sources=tuple(self.writer.spans()))
            self._shown.insert(min(fields.number(value, "summary_offset"), len(self._shown)), ("", summary))
        entry = self.writer.compaction([piece for _, piece in self._shown], at=self._at)
        yield self.writer.put(entry, item.origin(f"{item.ordinal}:condensation"), counted=1)
