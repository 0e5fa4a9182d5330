"""Logs of model calls: each has the whole request and the answer of one call, so that the requests of a run grow.

The messages of a run are the union of its requests, in order, each recorded once. An invocation entry records the messages of each call. A
request that continues an earlier one differently begins a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Mark, Skipped, bad_record, guarded
from palaver.formats.events import NOTHING, Branch, Conversation, Event, Loss
from palaver.formats.lists import Item, answer_fields, clean, declare, digest_of, run_key
from palaver.formats.unread import Unread
from palaver.log import Invocation
from palaver.messages import from_chat_dict
from palaver.plurals import counted

_MARK = "cache_control"
"""The mark at the end of a prefix for Anthropic's cache. It moves from call to call, so it is not part of a message."""

_KEYS = {
    "": "args cost kwargs latency_sec messages response timestamp tools",
    "response": "choices created id model object provider_specific_fields service_tier system_fingerprint usage",
    "response.choices": "finish_reason index logprobs message provider_specific_fields",
}
"""The keys of objects that are not kept whole."""


class LoggedCall(NamedTuple):
    """A call: its name, the request, the answer (or empty), and the whole object: messages, response, kwargs or args, timestamp, cost."""

    name: str
    messages: Sequence[object]
    response: Mapping[str, object]
    value: Mapping[str, object]

    @property
    def at(self) -> float:
        """When it was made, in seconds since 1970-01-01 UTC; 0.0 if not recorded."""
        return fields.moment(self.value.get("timestamp")) or fields.moment(self.response.get("created"))

    @property
    def model(self) -> str:
        """The model that answered, or empty."""
        return fields.text(self.response, "model")

    @property
    def answer(self) -> Mapping[str, object]:
        """The answering message, or empty."""
        return fields.mapping(next(iter(fields.objects(self.response, "choices")), NOTHING), "message")

    @property
    def tools(self) -> object:
        """The declared tools."""
        return fields.mapping(self.value, "kwargs").get("tools") or self.value.get("tools")


def _essence(message: object) -> bytes:
    """Return a digest of a message's content. It is the same for an answer and for the form in which it is sent back."""
    if not isinstance(message, dict):
        return digest_of(message)
    calls = [
        [call.get("id"), *(fields.mapping(call, "function").get(name) for name in ("name", "arguments"))]
        for call in fields.objects(message, "tool_calls")
    ]
    return digest_of([message.get("role"), _content(message.get("content")), calls, message.get("tool_call_id")])


def _content(content: object) -> object:
    """Return content without cache marks. Text is equal alone or as parts, and None is empty."""
    if not isinstance(content, list):
        return content or ""
    parts = [
        {name: value for name, value in part.items() if name != _MARK} if isinstance(part, dict) else part
        for part in content
    ]
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.keys() <= {"type", "text"}]
    if len(texts) == len(parts) and all(isinstance(text, str) for text in texts):
        return "\n".join(str(text) for text in texts)
    return parts


def _marked(message: object) -> bool:
    """Return whether a message, or a part of it, has a cache mark."""
    if not isinstance(message, dict):
        return False
    return _MARK in message or any(_MARK in part for part in fields.objects(message, "content"))


Reading: TypeAlias = Callable[[], LoggedCall | Loss]
"""Reads a call again."""


# --- the order of the calls ---------------------------------------------------------------------------------------------------


class _CallPlace(NamedTuple):
    """A call's place in the run.

    Attributes:
        read: Reads it again.
        dialog: The number of its dialog.
        shared: The number of sent messages that the dialog already has, including inherited ones.
        parent: The number of the dialog that this one forks from, if this call begins it; or else -1.
    """

    read: Reading
    dialog: int
    shared: int
    parent: int = -1


class CallSurvey:
    """The first pass: finds the order of the calls, and the dialog that each continues."""

    def __init__(self, calls: Iterable[tuple[Reading, LoggedCall | Loss]], place: str, *, timed: bool) -> None:
        """Read the calls once; `place` is that of the whole run. With `timed`, their times are their order, else the calls are in order."""
        self.losses: list[Loss] = []
        self.place = place
        self.first: LoggedCall | None = None
        known: list[tuple[float, str, Reading, list[bytes], bytes]] = []
        for read, call in calls:
            if isinstance(call, Loss):
                self.losses.append(call)
                continue
            if self.first is None or call.at < self.first.at:  # files of an archive are in no particular order
                self.first = call._replace(messages=(), value={"timestamp": call.at})
            answer = _essence(call.answer) if call.answer else b""
            known.append((call.at, call.name, read, [_essence(message) for message in call.messages], answer))
        # the messages of each dialog, each with the dialog that contains it
        self._said: list[list[tuple[bytes, int]]] = []
        ordered = sorted(known, key=lambda call: call[:2]) if timed else known
        self.steps = tuple(self._step(read, sent, answer) for _, _, read, sent, answer in ordered)
        self.longest = max(self._said, key=len, default=[])

    def _step(self, read: Reading, sent: Sequence[bytes], answer: bytes) -> _CallPlace:
        """Find the dialog that has most of the sent messages. If it continues differently, the call begins a branch."""
        known = ((_common(said, sent), number) for number, said in enumerate(self._said))
        shared, dialog = max(known, default=(0, -1))
        parent = -1
        if dialog < 0 or shared < len(self._said[dialog]):
            parent = dialog
            self._said.append(self._said[dialog][:shared] if dialog >= 0 else [])
            dialog = len(self._said) - 1
        new = [*sent[shared:], *([answer] if answer else [])]
        self._said[dialog].extend((message, dialog) for message in new)
        return _CallPlace(read, dialog, shared, parent)


def _common(said: Sequence[tuple[bytes, int]], sent: Sequence[bytes]) -> int:
    """Count the leading messages that a request shares with a dialog."""
    pairs = enumerate(zip(said, sent, strict=False))
    return next((number for number, (message, other) in pairs if message[0] != other), min(len(said), len(sent)))


# --- the run ------------------------------------------------------------------------------------------------------------------


class CallReader:
    """The second pass: puts the new messages of each call, an invocation, and the answer."""

    def __init__(self, survey: CallSurvey, ordinal: int, name: str, owner: str) -> None:
        """Begin the second pass over a run, the `ordinal`-th of its file, for a format and the agent that owns the dialogs."""
        self._survey = survey
        self._format = name
        self._owner = owner
        self._ordinal = ordinal
        first = survey.first
        self._key = "" if first is None else run_key(fields.text(first.response, "id"), first.at)
        self._skipped = Skipped()
        self._unread = Unread(_KEYS)
        self._writers: list[DialogWriter] = []
        self._tools: list[bytes] = []
        self._marks: list[list[tuple[Mark, bytes]]] = []  # after each message of each dialog, with the tools in force
        self._elsewhere = 0

    def events(self) -> Iterator[Event]:
        """Return the events of the run."""
        steps, first = self._survey.steps, self._survey.first
        yield Conversation(
            key=self._key,
            ordinal=self._ordinal,
            model="" if first is None else first.model,
            started_at=0.0 if first is None else first.at,
            main=_name(steps[-1].dialog) if steps else "main",
            metadata={"calls": len(steps)},
        )
        yield from self._survey.losses
        if not steps:
            yield Branch(dialog="main", owner=self._owner)
        for number, step in enumerate(steps):
            yield from self._step(step, number)
        if self._elsewhere:
            what = counted(self._elsewhere, "message is on a branch", "messages are on branches")
            reason = f"{what} other than the longest one; the count of records excludes them."
            yield Loss(place=self._survey.place, reason=reason, code="beside", severity="note")
        yield from self._unread.losses()
        yield from self._skipped.losses(self._survey.place)

    def _step(self, step: _CallPlace, number: int) -> Iterator[Event]:
        call = step.read()
        if isinstance(call, Loss):  # it could be read a moment ago
            yield call
            return
        self._unread.see(call.value, call.name)
        if step.dialog == len(self._writers):
            yield from self._open(step, call)
        writer = self._writers[step.dialog]
        record = fields.text(call.response, "id") or call.name
        tools = digest_of(call.tools) if call.tools else b""
        if tools != self._tools[step.dialog]:
            self._tools[step.dialog] = tools
            origin = Item(number, call.name, call.tools).origin(f"{record}:tools")
            yield from guarded(call.name, declare(writer, call.tools, call.at, origin))
        for place in range(step.shared, len(call.messages)):
            item = Item(number, f"{call.name}, messages[{place}]", call.messages[place])
            yield from self._message(item, place, step, call)
        origin = Item(number, call.name, call.value).origin(f"{record}:call")
        yield from guarded(call.name, (writer.put(entry, origin) for entry in (_invocation(call),)))
        if call.answer:
            item = Item(number, f"{call.name}, response", call.answer)
            yield from self._message(item, len(call.messages), step, call, answers=True)
        else:
            yield bad_record(f"{call.name}, response", "it has no answer")
        for _ in fields.objects(call.response, "choices")[1:]:
            self._skipped.record("further choice", "answers that the run did not continue with")

    def _open(self, step: _CallPlace, call: LoggedCall) -> Iterator[Event]:
        key = _name(step.dialog)
        marks = self._marks[step.parent][: step.shared] if step.parent >= 0 else []
        if step.parent < 0:
            writer, tools = DialogWriter(key, self._format), b""
        elif marks:
            writer, tools = marks[-1][0].writer.fork(key, marks[-1][0]), marks[-1][1]
        else:
            first = self._writers[0]
            writer, tools = first.fork(key, Mark(first, 0, "", {})), b""
        self._writers.append(writer)
        self._tools.append(tools)
        self._marks.append(marks)
        yield writer.branch(self._owner)
        if step.parent >= 0:
            reason = f"This call sent other messages than the ones before it from message {step.shared} on: a branch."
            yield Loss(place=call.name, reason=reason, code="rewritten", severity="note")

    def _message(
        self, item: Item, place: int, step: _CallPlace, call: LoggedCall, *, answers: bool = False
    ) -> Iterator[Event]:
        yield from guarded(item.place, self._said(item, place, step, call, answers=answers))
        self._marks[step.dialog].append((self._writers[step.dialog].mark(), self._tools[step.dialog]))

    def _said(self, item: Item, place: int, step: _CallPlace, call: LoggedCall, *, answers: bool) -> Iterator[Event]:
        value = item.expect()
        record = f"{_name(step.dialog)}:{place}"
        about: dict[str, Any] = {"timestamp": call.at, "id": f"{self._key or self._format}:{record}"}
        if answers:
            about |= answer_fields(call.response, call.value.get("cost"))
        longest = self._survey.longest
        counts = place < len(longest) and longest[place][1] == step.dialog
        self._elsewhere += not counts
        said = {name: field for name, field in value.items() if field is not None or name == "content"}
        origin = item.origin(record)
        yield from self._writers[step.dialog].say(from_chat_dict(said, **about), origin, counted=int(counts))


def _name(dialog: int) -> str:
    return f"branch:{dialog}" if dialog else "main"


def _invocation(call: LoggedCall) -> Invocation:
    """Return an entry with the number of messages that a call sent, those with a cache mark, and its parameters."""
    kwargs = fields.mapping(call.value, "kwargs")
    sent = {
        "call": call.name,
        "messages": len(call.messages),
        "cache_marks": [place for place, message in enumerate(call.messages) if _marked(message)],
        "parameters": {name: value for name, value in kwargs.items() if name != "tools"},
        "args": call.value.get("args"),
        "latency": call.value.get("latency_sec"),
        "usage": call.response.get("usage"),
        "cost": call.value.get("cost"),
    }
    return Invocation(model=call.model, manifest={name: clean(value) for name, value in sent.items()}, at=call.at)
