"""Codex rollouts: JSON lines of response items, and events that repeat them for the screen, which are skipped.

A rollout does not record where a response ends, but it records each response's usage after it. A compaction replaces the whole history.
"""

from __future__ import annotations

from collections.abc import Iterator

from palaver.formats import fields
from palaver.formats.codex.messages import ENVELOPES, NAME, OUTPUTS, SPOKEN
from palaver.formats.codex.reading import CodexReader
from palaver.formats.codex.survey import CodexSurvey
from palaver.formats.events import Conversation, Event
from palaver.formats.records import Record
from palaver.formats.sources import Member, SourceFile

__all__ = ["Codex"]

_KEPT = ("cli_version", "originator", "source", "git", "forked_from_id")


class Codex:
    """Codex sessions, with their compactions and rollbacks."""

    name = NAME
    title = "Codex"
    signs = "JSON lines with timestamp, type and payload, the first a session_meta"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is a Codex rollout, from 0.0 to 1.0."""
        records = source.opening.records
        kinds = [(fields.text(record, "type"), record) for record in records]
        if any(kind in ENVELOPES and isinstance(record.get("payload"), dict) for kind, record in kinds):
            return 1.0
        bare = any(kind in SPOKEN | OUTPUTS for kind, _ in kinds)
        headed = bool(records) and "id" in records[0] and "timestamp" in records[0] and "type" not in records[0]
        return 0.8 if bare and headed else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as a session."""
        return _session(source.member)


def _session(member: Member) -> Iterator[Event]:
    survey = CodexSurvey(member.records())
    session = survey.session
    yield Conversation(
        key=fields.text(session, "id"),
        workdir=fields.text(session, "cwd"),
        model=survey.model,
        started_at=fields.moment(session.get("timestamp")) or survey.started_at,
        main=survey.main,
        metadata={name: session[name] for name in _KEPT if session.get(name) is not None},
    )
    yield from survey.losses
    reading = CodexReader(survey)
    yield from reading.opening()
    for record in member.records():
        if isinstance(record, Record):
            yield from reading.read(record)
    yield from reading.closing(member.place("whole file"))
