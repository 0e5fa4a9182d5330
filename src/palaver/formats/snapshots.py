"""Logs of model calls: the messages of a run are the union of its requests, in order, each recorded once.

An invocation entry records the messages of each call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from palaver.errors import PalaverError
from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Mark, bad_record, guarded
from palaver.formats.events import Branch, Conversation, Event, Loss
from palaver.formats.lineage import CHAT, MARK, CallPlace, CallSurvey, LoggedCall
from palaver.formats.lists import Item, answer_fields, clean, declare, digest_of, instruct, run_key
from palaver.formats.unread import Unread
from palaver.log import Derived, Invocation, Run
from palaver.messages import words_of
from palaver.plurals import counted

_KEYS = {
    "": "args cost kwargs latency_sec messages response timestamp tools",
    "response": "choices created id model object provider_specific_fields service_tier system_fingerprint usage",
    "response.choices": "finish_reason index logprobs message provider_specific_fields",
}
"""The keys of objects that are not kept whole."""


class _ShownMessage(NamedTuple):
    """A message that a dialog shows: the point after it, the settings in force there, and its entries, or the text that stands for others."""

    end: Mark
    settings: bytes
    piece: Run | Derived | None


class CallReader:
    """The second pass: puts the new messages of each call, an invocation, and the answer."""

    def __init__(self, survey: CallSurvey, ordinal: int, name: str, owner: str, key: str = "") -> None:
        """Begin the second pass over a run, the `ordinal`-th of its file, for a format and the agent that owns the dialogs. `key` names it."""
        self._survey = survey
        self._format = name
        self._owner = owner
        self._ordinal = ordinal
        first = survey.first
        self._key = key or ("" if first is None else run_key(fields.text(first.response, "id"), first.at))
        self._unread = Unread(_KEYS if survey.dialect is CHAT else {})
        self._writers: list[DialogWriter] = []
        self._settings: list[bytes] = []
        self._shown: list[list[_ShownMessage]] = []
        self._counts: list[int] = []  # the messages of each dialog, also those that a compaction left out
        self._elsewhere = 0

    def events(self) -> Iterator[Event]:
        """Return the events of the run."""
        steps, first = self._survey.steps, self._survey.first
        yield Conversation(
            key=self._key,
            ordinal=self._ordinal,
            model="" if first is None else first.model,
            started_at=0.0 if first is None else first.at,
            main=next(
                (_name(step.dialog) for step in reversed(steps) if step.dialog not in self._survey.inner), "main"
            ),
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

    def _step(self, step: CallPlace, number: int) -> Iterator[Event]:
        call = step.read()
        if isinstance(call, Loss):  # it could be read a moment ago
            yield call
            return
        self._unread.see(call.value, call.name)
        if step.dialog == len(self._writers):
            yield from self._open(step, call)
        writer = self._writers[step.dialog]
        record = fields.text(call.response, "id") or call.name
        yield from self._set(step, number, record, call)
        if step.kept:
            yield from guarded(call.name, self._compact(step, number, record, call))
        for place in range(step.shared, len(call.messages)):
            item = Item(number, f"{call.name}, messages[{place}]", call.messages[place])
            yield from self._message(item, step, call)
        origin = Item(number, call.name, call.value).origin(f"{record}:call")
        yield from guarded(call.name, (writer.put(entry, origin) for entry in (_invocation(call),)))
        if call.answer:
            item = Item(number, f"{call.name}, response", call.answer)
            yield from self._message(item, step, call, answers=True)
        else:
            yield bad_record(f"{call.name}, response", "it has no answer")
        for _ in fields.objects(call.response, "choices")[1:]:
            self._unread.skip("further choice", "answers that the run did not continue with", call.name)

    def _set(self, step: CallPlace, number: int, record: str, call: LoggedCall) -> Iterator[Event]:
        """Put the instructions and the tools, if they are others than before."""
        tools, told = call.tools, call.instructions
        settings = digest_of([tools, told]) if tools or told else b""
        if settings == self._settings[step.dialog]:
            return
        self._settings[step.dialog] = settings
        writer = self._writers[step.dialog]
        origin = Item(number, call.name, told).origin(f"{record}:instructions")
        yield from guarded(call.name, instruct(writer, told, call.at, origin))
        origin = Item(number, call.name, tools).origin(f"{record}:tools")
        yield from guarded(call.name, declare(writer, tools, call.at, origin))

    def _open(self, step: CallPlace, call: LoggedCall) -> Iterator[Event]:
        key = _name(step.dialog)
        shown = self._shown[step.parent][: step.shared] if step.parent >= 0 else []
        if not self._writers or (step.dialog in self._survey.inner and step.parent < 0):
            writer, settings = DialogWriter(key, self._format), b""
        elif shown:
            writer, settings = shown[-1].end.writer.fork(key, shown[-1].end), shown[-1].settings
        else:
            first = self._writers[0]
            writer, settings = first.fork(key, Mark(first, 0, "", {})), b""
        self._writers.append(writer)
        self._settings.append(settings)
        self._shown.append(shown)
        self._counts.append(step.shared)
        if step.parent < 0 and len(self._writers) > 1 and call.inside:
            about = {"inside": call.inside}
            yield Branch(
                dialog=key, parent="main", owner=call.agent or self._owner, relation="subagent", metadata=about
            )
        else:
            yield writer.branch(call.agent or self._owner)
        if step.parent >= 0:
            reason = f"This call sent other messages than the ones before it from message {step.shared} on: a branch."
            yield Loss(place=call.name, reason=reason, code="rewritten", severity="note")

    def _compact(self, step: CallPlace, number: int, record: str, call: LoggedCall) -> Iterator[Event]:
        """Put what the call sent in place of earlier messages: those that it kept, and texts."""
        writer, before = self._writers[step.dialog], self._shown[step.dialog]
        pieces: list[Run | Derived | None] = []
        for place, known in enumerate(step.kept):
            text = "" if known >= 0 else self._words(call.messages[place])
            derived = Derived(text=text, label="summary", sources=tuple(writer.spans())) if text else None
            pieces.append(before[known].piece if known >= 0 else derived)
        entry = writer.compaction([piece for piece in pieces if piece is not None], at=call.at)
        yield writer.put(entry, Item(number, call.name, [*call.messages[: step.shared]]).origin(f"{record}:compaction"))
        self._shown[step.dialog] = [
            _ShownMessage(writer.mark(), self._settings[step.dialog], piece) for piece in pieces
        ]

    def _words(self, value: object) -> str:
        try:
            message = self._survey.dialect.read(value)
        except (PalaverError, ValueError, TypeError):
            return ""
        return "\n\n".join(filter(None, map(words_of, message.contents)))

    def _message(self, item: Item, step: CallPlace, call: LoggedCall, *, answers: bool = False) -> Iterator[Event]:
        writer = self._writers[step.dialog]
        start = writer.count
        yield from guarded(item.place, self._said(item, step, call, answers=answers))
        piece = writer.run(start, writer.count) if writer.count > start else None
        self._shown[step.dialog].append(_ShownMessage(writer.mark(), self._settings[step.dialog], piece))
        self._counts[step.dialog] += 1

    def _said(self, item: Item, step: CallPlace, call: LoggedCall, *, answers: bool) -> Iterator[Event]:
        value = item.expect()
        place = self._counts[step.dialog]
        record = f"{_name(step.dialog)}:{place}"
        about: dict[str, Any] = {"timestamp": call.at, "id": f"{self._key or self._format}:{record}"}
        if answers:
            about |= {**answer_fields(call.response, call.value.get("cost")), "provider": call.provider}
        longest = self._survey.longest
        counts = step.dialog in self._survey.inner or (place < len(longest) and longest[place] == step.dialog)
        self._elsewhere += not counts
        said = {name: field for name, field in value.items() if field is not None or name == "content"}
        message = self._survey.dialect.read(said, **about)
        yield from self._writers[step.dialog].say(message, item.origin(record), counted=int(counts))


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


def _marked(message: object) -> bool:
    """Return whether a message, or a part of it, has a cache mark."""
    if not isinstance(message, dict):
        return False
    return MARK in message or any(MARK in part for part in fields.objects(message, "content"))
