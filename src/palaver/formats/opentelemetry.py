"""OpenTelemetry's traces and events of generative AI in OTLP's JSON.

A model call is a span, or an event `gen_ai.client.inference.operation.details`, whose attributes have its messages, structured or as JSON texts (semantic
conventions 1.37 to 1.42, open-telemetry/semantic-conventions-genai, docs/gen-ai). `gen_ai.conversation.id` names the session, or else the trace does. A
request that extends an earlier one continues its dialog. Calls of an agent that another agent invoked are those of a sub-agent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from palaver.dialects.genai import EVENT, answered_in, essence_of, is_compaction, message_of
from palaver.formats import fields
from palaver.formats.dialogs import bad_record
from palaver.formats.events import Event, Loss
from palaver.formats.lineage import CallDialect, CallSurvey, LoggedCall, Reading
from palaver.formats.lists import digest_of, kept
from palaver.formats.otlp import BATCHES, KEYS, OtlpRecord, recorded
from palaver.formats.records import parse
from palaver.formats.snapshots import CallReader
from palaver.formats.sources import Member, SourceFile
from palaver.formats.unread import Unread, has_text

NAME = "opentelemetry"
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_TOLD, _TOOLS = "gen_ai.system_instructions", "gen_ai.tool.definitions"
_TOKENS = {
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "gen_ai.usage.cache_read.input_tokens": "cache_read_tokens",
    "gen_ai.usage.cache_creation.input_tokens": "cache_write_tokens",
    "gen_ai.usage.reasoning.output_tokens": "reasoning_tokens",
}
_MESSAGES = frozenset({_INPUT, _OUTPUT})
_LISTS = frozenset({_INPUT, _OUTPUT, _TOLD, _TOOLS})
_READ = _LISTS | _TOKENS.keys()
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_OPERATION, _TOOL_CALL, _RESULT = "gen_ai.operation.name", "gen_ai.tool.call.id", "gen_ai.tool.call.result"
_AGENTS = frozenset({"invoke_agent", "invoke_workflow"})
_ABOUT = re.compile(
    r"gen_ai\.((operation|provider|agent|tool|workflow|data_source)\.(name|id|type|version)|(request|response|conversation|output)\..*|tool\.call\.(id|arguments))"
)
"""The texts of other operations that are no content, or that the calls have, too."""
DIALECT = CallDialect(message_of, lambda message: digest_of(essence_of(message)), is_compaction)


class OpenTelemetry:
    """Traces and events of OpenTelemetry: one conversation per conversation id or trace."""

    name = NAME
    title = "OpenTelemetry"
    signs = "OTLP in JSON: objects with resourceSpans or resourceLogs"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is OTLP, from 0.0 to 1.0."""
        shown = (source.opening.fields, *source.opening.records)
        return 1.0 if any(fields.objects(record, key) for record in shown for key in BATCHES) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the records, and then the conversations. Of a message that calls repeat, one copy is in memory."""
        place, file = source.member.place("whole file"), _OtlpFile(source.member)
        sessions = file.sessions()
        if not sessions:
            reason = f"No span or event has messages: they are recorded only where {_CAPTURE} says so."
            yield Loss(place=place, reason=reason, code="no_messages", severity="loss")
        yield from file.losses
        for ordinal, (key, calls) in enumerate(sessions.items()):
            survey = CallSurvey(map(_known, calls), place, timed=False, dialect=DIALECT)
            yield from CallReader(survey, ordinal, NAME, NAME, key).events()
        yield from file.unread.losses()


def _known(call: LoggedCall) -> tuple[Reading, LoggedCall]:
    return lambda: call, call


def _section(part: object) -> object:
    """Return a part of the instructions as a block of text."""
    return (
        {"text" if key == "content" else key: value for key, value in part.items()} if isinstance(part, dict) else part
    )


class _OtlpFile:
    """The records of a file.

    Attributes:
        losses: What could not be read.
        unread: What is not read.
    """

    def __init__(self, member: Member) -> None:
        self.losses: list[Loss] = []
        self.unread = Unread(KEYS)
        self._spans: dict[tuple[str, str], OtlpRecord] = {}
        self._messages: dict[bytes, object] = {}
        self._records: list[OtlpRecord] = []
        for record in recorded(member, self.unread, EVENT):
            if isinstance(record, Loss):
                self.losses.append(record)
                continue
            for key in _LISTS & record.attributes.keys():
                record.attributes[key] = self._list(record, key)
            self._records.append(record)
            if record.is_span:
                self._spans[record.link("spanId")] = record

    def sessions(self) -> Mapping[str, list[LoggedCall]]:
        """Return the calls of each conversation in the order in which they ended. An event of a span that is a call, and a span around a call, repeat it."""
        said = [record for record in self._records if not _MESSAGES.isdisjoint(record.attributes)]
        spans = {record.link("spanId") for record in said if record.is_span}
        calls = [record for record in said if record.is_span or record.link("spanId") not in spans]
        around = {span for record in calls for span in self._above(record)}
        calls = [record for record in calls if not record.is_span or record.link("spanId") not in around]
        found: dict[str, list[LoggedCall]] = {}
        for record in sorted(calls, key=lambda record: record.at):
            name = fields.text(record.attributes, "gen_ai.conversation.id") or record.link("")[0]
            found.setdefault(name, []).append(self._call(record))
        known = set(map(id, calls))
        answered = {call for message in self._messages.values() for call in answered_in(message)}
        for record in self._records:
            if id(record) not in known:
                self._skip(record, answered)
        return found

    def _skip(self, record: OtlpRecord, answered: Collection[str]) -> None:
        """Count a record that is no call. What a tool returned is also in the next request, if there is one."""
        about = record.attributes
        self.unread.skip(
            fields.text(about, _OPERATION) or "other",
            "spans and events around the model calls, repetitions of one, or without messages",
            record.name,
        )
        self.unread.see(record.value, record.name, "record")
        read = _READ if fields.text(about, _TOOL_CALL) not in answered else {*_READ, _RESULT}
        for key, value in about.items():
            if key.startswith("gen_ai.") and key not in read and not _ABOUT.fullmatch(key) and has_text(value):
                self.unread.count(key, record.name)

    def _above(self, record: OtlpRecord) -> Iterator[tuple[str, str]]:
        """Yield the spans that a record is in, the innermost first."""
        known = set[tuple[str, str]]()
        span = record.link("parentSpanId" if record.is_span else "spanId")
        while span in self._spans and span not in known:
            known.add(span)
            yield span
            span = self._spans[span].link("parentSpanId")

    def _call(self, record: OtlpRecord) -> LoggedCall:
        said = record.attributes
        reason = next(iter(fields.items(said, "gen_ai.response.finish_reasons")), None)
        response = {
            "id": said.get("gen_ai.response.id"),
            "model": said.get("gen_ai.response.model") or said.get("gen_ai.request.model"),
            "usage": {name: fields.number(said, key) for key, name in _TOKENS.items() if fields.number(said, key)},
            "choices": [
                {"finish_reason": reason or message.get("finish_reason"), "message": message}
                for message in fields.objects(said, _OUTPUT)
            ],
        }
        value = {
            "timestamp": record.at,
            "provider": said.get("gen_ai.provider.name"),
            "instructions": [_section(part) for part in fields.items(said, _TOLD)],
            "kwargs": {**kept(said, _READ), "tools": said.get(_TOOLS)},
            "args": {**kept(record.value, ()), "resource": record.resource},
        }
        around = {span: self._spans[span].attributes for span in self._above(record)}
        agents = [span for span, about in around.items() if fields.text(about, _OPERATION) in _AGENTS]
        calls = [call for about in around.values() if (call := fields.text(about, _TOOL_CALL))]
        agent = fields.text(around[agents[0]] if agents else said, "gen_ai.agent.name")
        inside = (*calls, agents[0][1])[0] if len(agents) > 1 else ""
        return LoggedCall(record.name, fields.items(said, _INPUT), response, value, agent, inside)

    def _list(self, record: OtlpRecord, key: str) -> list[object]:
        """Return the elements of an attribute that is a list or its JSON, one object for all equal ones."""
        value = record.attributes.get(key)
        if isinstance(value, str):
            parsed = parse(value.encode(errors="replace"))
            value = parsed.values[0][0] if parsed.values and not parsed.fault else value
        listed = value if isinstance(value, list) else []
        if (value and not listed) or not all(isinstance(part, dict) for part in listed):
            self.losses.append(bad_record(f"{record.name}, {key}", "it is not a list of objects"))
        return [self._messages.setdefault(digest_of(part), part) for part in listed]
