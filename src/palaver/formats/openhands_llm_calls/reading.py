"""The second reading of a series: what each call sent that was new, that it was sent, and the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter
from palaver.formats.events import Branch, Conversation, Event, Loss
from palaver.formats.leftovers import Leftovers
from palaver.formats.lists import Item, Lane, ListCalls, bad_record, clean, digest_of, guarded, run_key, specs, word
from palaver.formats.openhands_llm_calls.snapshots import NAME, Snapshot, marked, read
from palaver.formats.openhands_llm_calls.survey import Step, Survey
from palaver.log import Invocation, Toolset
from palaver.messages import Usage, from_chat_dict, stop_reason_of
from palaver.plurals import counted

OWNER = "openhands"
_READ = frozenset({"messages", "response", "kwargs", "args", "tools", "timestamp", "cost", "latency_sec"})
_READ_OF_RESPONSE = frozenset({"id", "object", "created", "model", "choices", "usage"})


class _Stand(NamedTuple):
    """How a dialog stands behind one of its messages: what a branch that leaves it there goes on with."""

    writer: DialogWriter
    puts: int
    tools: bytes
    model: str


class Reading:
    """The second reading."""

    def __init__(self, survey: Survey, ordinal: int) -> None:
        self._survey = survey
        self._ordinal = ordinal
        self._key = run_key(survey.first, survey.started_at)
        self._leftovers = Leftovers()
        self._calls = ListCalls()
        self._lanes: list[Lane] = []
        self._tools: list[bytes] = []
        self._said: list[list[_Stand]] = []
        self._beside = 0

    def events(self) -> Iterator[Event]:
        """Give the run."""
        survey = self._survey
        yield Conversation(
            key=self._key,
            ordinal=self._ordinal,
            model=survey.model,
            started_at=survey.started_at,
            main=_name(survey.steps[-1].dialog) if survey.steps else "main",
            metadata={"calls": len(survey.steps)},
        )
        yield from survey.losses
        if not survey.steps:
            yield Branch(dialog="main", owner=OWNER)
        for number, step in enumerate(survey.steps):
            yield from self._step(step, number)
        if self._beside:
            stand = counted(self._beside, "message stands on a branch", "messages stand on branches")
            reason = f"{stand} beside the longest one; the count of records leaves them out."
            yield Loss(place=survey.place, reason=reason, code="beside", severity="note")
        yield from self._leftovers.losses(survey.place)

    def _step(self, step: Step, number: int) -> Iterator[Event]:
        found = read(step.member)
        if isinstance(found, Loss):  # it could be read a moment ago
            yield found
            return
        if step.dialog == len(self._lanes):
            yield from self._open(step, found)
        lane = self._lanes[step.dialog]
        yield from guarded(found.name, self._declared(found, step, lane, number))
        for place in range(step.shared, len(found.messages)):
            item = Item(number, f"{found.name}, messages[{place}]", found.messages[place])
            yield from self._message(item, place, step, found.at)
        origin = Item(number, found.name, found.value).origin(f"{self._record(found)}:call")
        yield from guarded(found.name, iter((lane.put(_invocation(found), origin),)))
        if found.answer:
            yield from self._answer(found, step, number)
        else:
            yield bad_record(f"{found.name}, response", "without an answer")
        self._leftovers.fields(word(name) for name in found.value if name not in _READ)
        self._leftovers.fields(
            f"response.{word(name)}"
            for name, value in found.response.items()
            if name not in _READ_OF_RESPONSE and value is not None
        )
        for _ in fields.objects(found.response, "choices")[1:]:
            self._leftovers.record("further choice", "answers that the run did not go on with")

    def _open(self, step: Step, found: Snapshot) -> Iterator[Event]:
        key = _name(step.dialog)
        if step.parent < 0:
            self._lanes.append(Lane(DialogWriter(key, NAME), self._calls))
            self._tools.append(b"")
            self._said.append([])
            yield Branch(dialog=key, owner=OWNER)
            return
        said = self._said[step.parent][: step.shared]
        writer, puts, tools, model = said[-1] if said else _Stand(self._lanes[0].writer, 0, b"", "")
        lane = Lane(DialogWriter(key, NAME, parent=writer, at=puts), self._calls)
        lane.model = model
        self._lanes.append(lane)
        self._tools.append(tools)
        self._said.append(list(said))
        yield Branch(dialog=key, parent=writer.key, at=puts, owner=OWNER, relation="fork")
        reason = f"This call sent other messages than the ones before it from message {step.shared} on: a branch."
        yield Loss(place=found.name, reason=reason, code="rewritten", severity="note")

    def _declared(self, found: Snapshot, step: Step, lane: Lane, number: int) -> Iterator[Event]:
        """Put the tools that were sent, where they are not those in force."""
        tools = found.tools
        digest = digest_of(tools) if tools else b""
        if digest != self._tools[step.dialog]:
            self._tools[step.dialog] = digest
            origin = Item(number, found.name, tools).origin(f"{self._record(found)}:tools")
            yield lane.put(Toolset(tools=specs(tools), at=found.at), origin)

    def _message(self, item: Item, place: int, step: Step, at: float) -> Iterator[Event]:
        record = f"{_name(step.dialog)}:{place}"
        yield from guarded(item.place, self._said_to_model(item, step, place, record, at))
        self._note(step)

    def _said_to_model(self, item: Item, step: Step, place: int, record: str, at: float) -> Iterator[Event]:
        if not isinstance(item.value, dict):
            yield bad_record(item.place, "no message")
            return
        message = from_chat_dict(item.value, id=f"{self._key or NAME}:{record}", timestamp=at)
        counted = self._counts(step, place)
        yield from self._lanes[step.dialog].say(message, item.origin(record), counted=counted)

    def _answer(self, found: Snapshot, step: Step, number: int) -> Iterator[Event]:
        place = len(found.messages)
        item = Item(number, f"{found.name}, response", found.response)
        yield from guarded(item.place, self._answered(found, item, step, place))
        self._note(step)

    def _answered(self, found: Snapshot, item: Item, step: Step, place: int) -> Iterator[Event]:
        cost = found.value.get("cost")
        dollars = {"cost": cost} if isinstance(cost, int | float) and cost else {}
        record = f"{_name(step.dialog)}:{place}"
        about: dict[str, Any] = {
            "id": f"{self._key or NAME}:{record}",
            "timestamp": found.at,
            "model": found.model or None,
            "response_id": fields.text(found.response, "id") or None,
            "usage": Usage({**fields.mapping(found.response, "usage"), **dollars}),
            "stop_reason": stop_reason_of(fields.text(found.choice, "finish_reason") or None),
        }
        said = {name: value for name, value in found.answer.items() if value is not None}
        counted = self._counts(step, place)
        yield from self._lanes[step.dialog].say(from_chat_dict(said, **about), item.origin(record), counted=counted)

    def _counts(self, step: Step, place: int) -> int:
        """Tell whether a message counts: whether it is part of the longest run of messages."""
        longest = self._survey.longest
        counts = place < len(longest) and longest[place].dialog == step.dialog
        self._beside += not counts
        return int(counts)

    def _note(self, step: Step) -> None:
        lane = self._lanes[step.dialog]
        stand = _Stand(lane.writer, lane.writer.count, self._tools[step.dialog], lane.model)
        self._said[step.dialog].append(stand)

    @staticmethod
    def _record(found: Snapshot) -> str:
        return fields.text(found.response, "id") or found.name


def _name(dialog: int) -> str:
    return f"branch:{dialog}" if dialog else "main"


def _invocation(found: Snapshot) -> Invocation:
    """Write down what a call sent: how many messages of the dialog, which of them bore a cache mark, and its parameters."""
    kwargs = fields.mapping(found.value, "kwargs")
    sent = {
        "call": found.name,
        "messages": len(found.messages),
        "cache_marks": [place for place, message in enumerate(found.messages) if marked(message)],
        "parameters": {name: value for name, value in kwargs.items() if name != "tools"},
        "args": found.value.get("args"),
        "latency": found.value.get("latency_sec"),
        "usage": found.response.get("usage"),
        "cost": found.value.get("cost"),
    }
    return Invocation(model=found.model, manifest={name: clean(value) for name, value in sent.items()}, at=found.at)
