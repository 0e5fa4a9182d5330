"""τ-bench results: an array of trajectories, each a list of chat completions between an agent and a simulated customer.

Based on the results that the benchmark's repository publishes (sierra-research/tau-bench, historical_trajectories).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record, guarded, no_instructions
from palaver.formats.events import Conversation, Event
from palaver.formats.lists import Item, clean, conversations, digest_of, instructs, numbered, word
from palaver.formats.sources import SourceFile
from palaver.messages import from_chat_dict

NAME = "tau-bench"
OWNER = "agent"
_HASH = 12  # hexadecimal digits: they distinguish the runs of one task


class TauBench:
    """τ-bench results: one conversation per trajectory."""

    name = NAME
    title = "τ-bench results"
    signs = "a JSON array of objects with task_id and traj"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it contains τ-bench trajectories, from 0.0 to 1.0."""
        first = next(iter(source.opening.elements), {})
        return 1.0 if "task_id" in first and isinstance(first.get("traj"), list) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every trajectory as a conversation, one in memory at a time."""
        return conversations(source, partial(_trajectory, Counter()), partly="traj")


def _trajectory(seen: Counter[str], run: Mapping[str, object], place: str, ordinal: int) -> Iterator[Event]:
    own = run.get("info") or fields.items(run, "traj")[:3]
    key = run_name("", run, own, seen)
    metadata = {word(name): clean(item) for name, item in run.items() if name != "traj"}
    yield Conversation(key=key, ordinal=ordinal, title=run_title(run), metadata=metadata)
    writer = DialogWriter("main", NAME)
    yield writer.branch(OWNER)
    items = list(numbered(run.get("traj"), f"{place}.traj"))
    if not isinstance(run.get("traj"), list):
        yield bad_record(f"{place}.traj", "it is not a list of messages")
    for item in items:
        yield from guarded(item.place, _message(item, writer, key))
    if not any(instructs(item.value) for item in items):
        yield no_instructions(place)


def _message(item: Item, writer: DialogWriter, key: str) -> Iterator[Event]:
    message = from_chat_dict(item.expect(), id=f"{key}:{item.ordinal}", timestamp=0.0)
    yield from writer.say(message, item.origin(), counted=1)


def run_title(run: Mapping[str, object]) -> str:
    """Return a run's task and trial."""
    trial = "" if run.get("trial") is None else f", trial {word(run['trial'])}"
    return f"task {word(run.get('task_id'))}{trial}"


def run_name(name: str, run: Mapping[str, object], own: object, seen: Counter[str]) -> str:
    """Return a run's name, by default its task and a hash of its own values, because all runs of a task begin the same way.

    A repeated name gets a number. The trial comes after the trajectory in the file, so with it a file that is cut off would get another name.
    """
    key = name or f"{word(run.get('task_id'))}:{digest_of(own).hex()[:_HASH]}"
    seen[key] += 1
    return f"{key}:{seen[key]}" if seen[key] > 1 else key
