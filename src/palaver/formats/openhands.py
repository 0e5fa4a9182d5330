"""OpenHands' logs of model calls: an archive of files, each with the whole request and the answer of one call.

Based on logs of OpenHands 0.15 and of its SDK (`litellm` completion logs).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from posixpath import dirname

from palaver.errors import UnsupportedTranscript
from palaver.formats import fields
from palaver.formats.dialogs import bad_record
from palaver.formats.events import Event, Loss
from palaver.formats.lineage import CallSurvey, LoggedCall
from palaver.formats.records import MAX_LINE, parse
from palaver.formats.snapshots import CallReader
from palaver.formats.sources import Member, SourceFile

NAME = "openhands-llm-calls"
OWNER = "openhands"
_LOOKED_AT = 8  # files of an archive


class OpenHandsCalls:
    """OpenHands' logs of model calls: one conversation per run. The files of one folder are a run."""

    name = NAME
    title = "OpenHands model calls"
    signs = "an archive of JSON objects with messages, response, kwargs and timestamp"
    series = True

    def sniff(self, source: SourceFile) -> float:
        """Return 1.0 if most of the first files are calls, else 0.0."""
        looked = source.members[:_LOOKED_AT]
        return 1.0 if 2 * sum(map(_shows_call, looked)) > len(looked) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the files of every folder as the calls of a run."""
        runs: dict[str, list[Member]] = {}
        for member in source.members:
            runs.setdefault(dirname(member.name), []).append(member)
        for ordinal, members in enumerate(runs.values()):
            calls = ((partial(_read, member), _read(member)) for member in members)
            survey = CallSurvey(calls, members[0].place("whole series"), timed=True)
            yield from CallReader(survey, ordinal, NAME, OWNER).events()


def _shows_call(member: Member) -> bool:
    try:
        return _is_call(member.opening.fields)
    except UnsupportedTranscript:
        return False


def _is_call(keys: Collection[str]) -> bool:
    return "messages" in keys and "response" in keys and ("kwargs" in keys or "args" in keys)


def _read(member: Member) -> LoggedCall | Loss:
    parsed = parse(member.read(MAX_LINE))
    value = parsed.values[0][0] if parsed.values else None
    place = member.place("whole file")
    if not isinstance(value, dict):
        return bad_record(place, parsed.fault or "it is not a JSON object")
    if not _is_call(value):
        return Loss(place=place, reason="Not read: it is not a call.", code="skipped", severity="note")
    return LoggedCall(member.name, fields.items(value, "messages"), fields.mapping(value, "response"), value)
