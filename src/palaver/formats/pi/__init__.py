"""pi's session files: JSON lines, a list in version 1 and a tree by parents since version 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.formats import fields
from palaver.formats.dialogs import no_instructions
from palaver.formats.events import Conversation, Event
from palaver.formats.pi.messages import NAME, ROLES
from palaver.formats.pi.reading import PiReader
from palaver.formats.pi.survey import TYPES, PiSurvey
from palaver.formats.records import Record
from palaver.formats.sources import Member, SourceFile

__all__ = ["PiFormat"]

_KEPT = ("version", "branchedFrom", "parentSession")


class PiFormat:
    """pi sessions, with their branches and compactions."""

    name = NAME
    title = "pi"
    signs = "JSON lines, the first of type session with id and cwd, then messages with a role"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is a pi session, from 0.0 to 1.0."""
        records = source.opening.records
        if any(
            record.get("type") == "session" and "cwd" in record and "payload" not in record for record in records[:2]
        ):
            return 0.95
        return 0.6 if any(map(_is_message, records)) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as a session."""
        return _session(source.member)


def _is_message(record: Mapping[str, object]) -> bool:
    known = fields.text(record, "type") in TYPES and "uuid" not in record and "sessionId" not in record
    return known and fields.text(fields.mapping(record, "message"), "role") in ROLES


def _session(member: Member) -> Iterator[Event]:
    survey = PiSurvey(member.records())
    header = survey.header
    yield Conversation(
        key=fields.text(header, "id"),
        title=survey.title,
        workdir=fields.text(header, "cwd"),
        model=fields.text(header, "modelId") or survey.model,
        started_at=fields.moment(header.get("timestamp")) or survey.started_at,
        main=survey.main,
        metadata={name: header[name] for name in _KEPT if header.get(name) is not None},
    )
    place = member.place("whole file")
    yield from survey.losses
    if not survey.instructed:
        yield no_instructions(place)
    reading = PiReader(survey)
    yield from reading.opening()
    for record in member.records():
        if isinstance(record, Record):
            yield from reading.read(record)
    yield from reading.unread.losses()
