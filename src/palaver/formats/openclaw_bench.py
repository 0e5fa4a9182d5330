"""OpenClaw's benchmark results: one JSON object with tasks, each with the entries of an OpenClaw session, which are pi's.

OpenClaw's own session files are pi's, too, and read as such. Based on results of PinchBench. In the mode `continuous` all tasks are one session. A line of
the session that the benchmark could not read is an entry with the key `raw`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from palaver.formats import fields
from palaver.formats.dialogs import bad_record, no_instructions
from palaver.formats.events import Conversation, Event, Loss
from palaver.formats.lists import clean, numbered, torn
from palaver.formats.pi.reading import PiReader
from palaver.formats.pi.survey import PiSurvey
from palaver.formats.records import Record
from palaver.formats.sources import Member, SourceFile

NAME = "openclaw-bench"
_WHOLE = -1


class OpenClawBench:
    """Results of OpenClaw's benchmark."""

    name = NAME
    title = "OpenClaw benchmark results"
    signs = "a JSON object with tasks, each with a task_id and a transcript"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is such a file, from 0.0 to 1.0."""
        tasks = fields.objects(source.opening.fields, "tasks")
        return 1.0 if any("task_id" in task and isinstance(task.get("transcript"), list) for task in tasks) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as one session, or each of its tasks as one."""
        about, tasks, losses = _facts(source.member)
        runs: Sequence[int] = [_WHOLE] if about.get("session_mode") == "continuous" else range(len(tasks))
        for run in runs:
            own = tasks if run == _WHOLE else tasks[run : run + 1]
            yield from _session(source.member, run, about, own, losses)
            losses = []


def _facts(member: Member) -> tuple[dict[str, object], list[Mapping[str, object]], list[Loss]]:
    """Return the facts about the run, those about each task, and what could not be read."""
    about: dict[str, object] = {}
    tasks: list[Mapping[str, object]] = []
    losses: list[Loss] = []
    for element in member.elements(("tasks",)):
        if isinstance(element, Loss):
            losses.append(element)
            continue
        place = member.place(element.path)
        losses.extend(torn(element, place, read=element.value is not None))
        if element.nth < 0:
            about[element.key] = clean(element.value)
        elif isinstance(element.value, dict):
            tasks.append({key: clean(value) for key, value in element.value.items() if key != "transcript"})
            if not isinstance(element.value.get("transcript"), list):
                losses.append(bad_record(place, "it has no transcript"))
        else:
            tasks.append({})
            losses.append(bad_record(place, "it is not a task"))
    return about, tasks, losses


def _records(member: Member, run: int) -> Iterator[Record | Loss]:
    """Yield the entries of a task, or of all tasks."""
    ordinal = 0
    for element in member.elements(("tasks",)):
        if isinstance(element, Loss) or element.nth < 0 or run not in {_WHOLE, element.nth}:
            continue
        task = element.value if isinstance(element.value, dict) else {}
        for item in numbered(task.get("transcript"), member.place(f"{element.path}.transcript")):
            value = item.value
            if isinstance(value, dict) and not ("raw" in value and "type" not in value):
                yield Record(ordinal, item.place, json.dumps(value, sort_keys=True).encode(), value)
            else:
                yield bad_record(item.place, "the benchmark could not read this line of the session")
            ordinal += 1


def _session(
    member: Member, run: int, about: Mapping[str, object], tasks: list[Mapping[str, object]], losses: list[Loss]
) -> Iterator[Event]:
    survey = PiSurvey(_records(member, run))
    title = ", ".join(fields.text(task, "task_id") for task in tasks)
    name = fields.text(about, "run_id") or str(about.get("timestamp") or "")
    yield Conversation(
        key=":".join(filter(None, (name, fields.text(about, "model"), title if run != _WHOLE else ""))) if name else "",
        ordinal=max(run, 0),
        title=title,
        model=survey.model,
        started_at=survey.started_at,
        main=survey.main,
        metadata={**about, "tasks": tasks},
    )
    yield from losses
    yield from survey.losses
    place = member.place("whole file" if run == _WHOLE else f"tasks[{run}]")
    if not survey.instructed:
        yield no_instructions(place)
    reading = PiReader(survey, NAME)
    yield from reading.opening()
    for record in _records(member, run):
        if isinstance(record, Record):
            yield from reading.read(record)
    yield from reading.unread.losses()
