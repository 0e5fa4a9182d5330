"""Claude Code's session files: JSON lines, one record a line, a tree by parents that this reader takes apart into dialogs.

One response of the model stands on several lines, each repeating its usage; results hang off their own call; what sub-agents said
stands beside the conversation, in sidechains or within the progress of the call that started them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.formats import fields
from palaver.formats.claude_code.names import CHAIN, MESSAGES, NAME
from palaver.formats.claude_code.reading import Reading
from palaver.formats.claude_code.survey import Survey
from palaver.formats.claude_code.tree import Tree
from palaver.formats.events import Conversation, Event, Loss
from palaver.formats.records import Record
from palaver.formats.sources import Member, Source
from palaver.formats.stubs import no_instructions

__all__ = ["ClaudeCode"]


class ClaudeCode:
    """Claude Code sessions, with their branches, sub-agents and compactions."""

    name = NAME
    title = "Claude Code"
    signs = "JSON lines with uuid, parentUuid, sessionId and a message"
    series = False

    def sniff(self, source: Source) -> float:
        """Tell how surely it is a Claude Code session."""
        records = source.opening.records
        if not records:
            return 0.0
        in_chain = [record for record in records if _is_in_chain(record)]
        if in_chain:
            return 1.0
        titled = all(
            fields.text(record, "type") in {"summary", "file-history-snapshot", "queue-operation"} for record in records
        )
        return 0.6 if titled else 0.0

    def read(self, source: Source) -> Iterator[Event]:
        """Read every file of the source as a session of its own."""
        for ordinal, member in enumerate(source.members):
            yield from _session(member, ordinal)


def _is_in_chain(record: Mapping[str, object]) -> bool:
    said = isinstance(record.get("message"), dict) if fields.text(record, "type") in MESSAGES else True
    return "parentUuid" in record and "sessionId" in record and fields.text(record, "type") in CHAIN and said


def _session(member: Member, ordinal: int) -> Iterator[Event]:
    survey = Survey()
    survey.read(member.records())
    tree = Tree(survey)
    about = survey.about
    yield Conversation(
        key=about.session if tree.root == 0 else f"{about.session}/{survey.lane_names[tree.root]}",
        ordinal=ordinal,
        title=about.title,
        workdir=about.first.get("cwd", ""),
        model=about.first.get("model", ""),
        started_at=about.started_at,
        main=tree.dialogs[tree.main].key,
        metadata={name: about.first[name] for name in ("gitBranch", "version") if name in about.first},
        part_of=about.session if tree.root else "",
        prompt=survey.prompted.get(survey.lane_names[tree.root], ""),
    )
    yield from survey.losses
    yield from _of_the_whole(member, survey, tree)
    reading = Reading(survey, tree)
    yield from reading.opening()
    for record in member.records():
        if isinstance(record, Record):
            yield from reading.take(record)
    yield from reading.closing(member.place("whole file"))


def _of_the_whole(member: Member, survey: Survey, tree: Tree) -> Iterator[Loss]:
    place = member.place("whole file")
    yield no_instructions(place)
    for stubs in survey.stubs.values():
        yield from stubs.losses(place)
    if tree.linear:
        reason = "Hardly any record names its parent: the order of the file was kept, and branches cannot be told."
        yield Loss(place=place, reason=reason, code="no_parents")
