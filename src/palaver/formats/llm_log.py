"""Logs of requests and responses: JSON lines in turn, each request with all messages. The growing requests of one conversation are one dialog.

Based on the interaction logs of agents on LiteLLM: `{"timestamp", "type": "request", "request_params"}` and then
`{"timestamp", "type": "response", "response"}`, a response of chat completions.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from functools import partial

from palaver.formats import fields
from palaver.formats.dialogs import bad_record
from palaver.formats.events import NOTHING, Event, Loss
from palaver.formats.lineage import CallSurvey, LoggedCall
from palaver.formats.records import Record
from palaver.formats.snapshots import CallReader
from palaver.formats.sources import Member, SourceFile

NAME = "llm-log"
OWNER = "agent"
_PARAMS = "request_params"
_MIRRORS = frozenset({"type", "timestamp", "outputs", _PARAMS})


class LlmLog:
    """Logs of requests and responses: one conversation per file."""

    name = NAME
    title = "request logs"
    signs = "JSON lines of type request with request_params, and of type response"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is such a log, from 0.0 to 1.0."""
        records = source.opening.records
        return 1.0 if any("messages" in fields.mapping(record, _PARAMS) for record in records) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as a conversation, one call in memory at a time."""
        again = _calls(source.member)  # the second pass reads the calls in the order of the first
        calls = ((partial(_next_call, again), call) for call in _calls(source.member))
        survey = CallSurvey(calls, source.member.place("whole file"), timed=False)
        yield from CallReader(survey, 0, NAME, OWNER).events()


def _next_call(calls: Iterator[LoggedCall | Loss]) -> LoggedCall | Loss:
    return next(call for call in calls if isinstance(call, LoggedCall))


def _calls(member: Member) -> Generator[LoggedCall | Loss, None, None]:
    """Return every request with its response. The last request is no call until its response is written."""
    asked: Record | None = None
    for record in member.records():
        if isinstance(record, Loss):
            yield record
        elif isinstance(record.value.get(_PARAMS), dict):
            if asked is not None:
                yield _call(asked, NOTHING)
            asked = record
        elif asked is None or record.value.get("type") != "response":
            yield bad_record(record.place, "it is neither a request nor the response to one")
        else:
            yield _call(asked, record.value)
            asked = None
    if asked is not None:
        reason = "The last request has no response, and is not read."
        yield Loss(place=asked.place, reason=reason, code="unanswered", severity="loss")


def _call(asked: Record, answered: Mapping[str, object]) -> LoggedCall:
    params = fields.mapping(asked.value, _PARAMS)
    response = fields.mapping(answered, "response")
    value = {
        **{key: item for both in (asked.value, answered) for key, item in both.items() if key not in _MIRRORS},
        "timestamp": asked.value.get("timestamp"),
        "messages": params.get("messages"),
        "kwargs": {key: item for key, item in params.items() if key not in {"messages", "api_key"}},
    }
    return LoggedCall(asked.place, fields.items(params, "messages"), response, value)
