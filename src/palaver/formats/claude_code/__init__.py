"""Claude Code's session files: JSON lines whose records form a tree by parents, which this reader splits into dialogs.

One response of the model has several lines, each repeating its usage. Results are children of their call. The messages of sub-agents
are in sidechains, in progress records of the call that started them, or in files of their own, with their type in a file next to each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from palaver.formats import fields
from palaver.formats.claude_code.messages import CHAIN, MESSAGES, NAME
from palaver.formats.claude_code.reading import ClaudeCodeReader
from palaver.formats.claude_code.survey import ClaudeCodeSurvey
from palaver.formats.claude_code.tree import BranchTree
from palaver.formats.dialogs import no_instructions
from palaver.formats.events import Conversation, Event, Loss
from palaver.formats.records import Record
from palaver.formats.sources import Member, SourceFile

__all__ = ["AGENT_FILE", "ClaudeCodeFormat", "about_agent"]

AGENT_FILE = "agent-"
"""The prefix of files of sub-agents, next to the session's file or in its folder `subagents`."""
_META_BYTES = 1 << 16
_UNCHAINED = frozenset({"summary", "file-history-snapshot", "queue-operation"})


class ClaudeCodeFormat:
    """Claude Code sessions, with their branches, sub-agents and compactions."""

    name = NAME
    title = "Claude Code"
    signs = "JSON lines with uuid, parentUuid, sessionId and a message"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is a Claude Code session, from 0.0 to 1.0."""
        records = source.opening.records
        if any(map(_is_in_chain, records)):
            return 1.0
        return 0.6 if records and all(fields.text(record, "type") in _UNCHAINED for record in records) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as a session."""
        return _session(source.member, _agent_type(source.path))


def _is_in_chain(record: Mapping[str, object]) -> bool:
    kind = fields.text(record, "type")
    said = kind not in MESSAGES or isinstance(record.get("message"), dict)
    return kind in CHAIN and "parentUuid" in record and "sessionId" in record and said


def about_agent(path: Path) -> Path | None:
    """Return the file that says which sub-agent's file `path` is; None where it is not a sub-agent's."""
    name, _, rest = path.name.partition(".")
    return path.with_name(f"{name}.meta.json") if name.startswith(AGENT_FILE) and rest.startswith("jsonl") else None


def _agent_type(path: Path) -> str:
    """Return the type of the sub-agent whose file it is, or an empty text."""
    about = about_agent(path)
    if about is None:
        return ""
    try:
        with about.open("rb") as file:
            meta = json.loads(file.read(_META_BYTES))
    except (OSError, ValueError, RecursionError):
        return ""
    return fields.text(meta, "agentType") if isinstance(meta, dict) else ""


def _session(member: Member, agent: str) -> Iterator[Event]:
    survey = ClaudeCodeSurvey(member.records())
    tree = BranchTree(survey)
    about = survey.about
    yield Conversation(
        key=about.session if tree.root == 0 else f"{about.session}/{survey.lanes[tree.root]}",
        title=about.title,
        workdir=about.first.get("cwd", ""),
        model=about.first.get("model", ""),
        started_at=about.started_at,
        main=tree.dialogs[tree.main].key,
        metadata={name: about.first[name] for name in ("gitBranch", "version") if name in about.first},
        part_of=about.session if tree.root else "",
    )
    place = member.place("whole file")
    yield from survey.losses
    if not about.instructed:
        yield no_instructions(place)
    if tree.linear:
        reason = "Hardly any record names its parent: the order of the file was kept, and branches are unknown."
        yield Loss(place=place, reason=reason, code="no_parents")
    reading = ClaudeCodeReader(survey, tree, agent or NAME)
    yield from reading.opening()
    for record in member.records():
        if isinstance(record, Record):
            yield from reading.read(record)
    yield from reading.closing(place)
