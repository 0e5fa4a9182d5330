"""τ-bench results: an array of trajectories, each a list of chat completions between an agent and a simulated customer.

Read from the results that the benchmark's repository publishes (sierra-research/tau-bench, historical_trajectories).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Origin
from palaver.formats.events import Branch, Conversation, Event, Loss
from palaver.formats.lists import (
    TOOLS_RECORD,
    Item,
    Lane,
    ListCalls,
    bad_record,
    clean,
    digest_of,
    first_element,
    guarded,
    instructs,
    see_calls,
    toolset,
    unfold,
    word,
)
from palaver.formats.sources import Member, Source
from palaver.formats.stubs import Stubs, no_instructions
from palaver.messages import Message, from_chat_dict

NAME = "tau-bench"
OWNER = "agent"
_LIST = "traj"
_HASH = 12  # hexadecimal digits: what tells the runs of one task apart, not what protects them


class TauBench:
    """τ-bench results: one conversation a trajectory."""

    name = NAME
    title = "τ-bench results"
    signs = "a JSON array of objects with task_id and traj"
    series = False

    def sniff(self, source: Source) -> float:
        """Tell how surely it holds τ-bench trajectories."""
        opening = source.opening
        first = opening.elements[0] if opening.elements else first_element(opening.text)
        return 1.0 if "task_id" in first and isinstance(first.get(_LIST), list) else 0.0

    def read(self, source: Source) -> Iterator[Event]:
        """Read every trajectory as a conversation, one in memory at a time."""
        seen: Counter[str] = Counter()
        ordinal = 0
        for member in source.members:
            for part in member.parts():
                if isinstance(part, Loss):
                    yield part
                    continue
                place = member.place(part.path)
                found = unfold(part, (_LIST,), place)
                if found.value and (not found.torn or fields.items(found.value, _LIST)):
                    yield from _trajectory(found.value, member, part.path, ordinal, seen)
                    ordinal += 1
                yield from found.losses


def _trajectory(
    value: Mapping[str, object], member: Member, path: str, ordinal: int, seen: Counter[str]
) -> Iterator[Event]:
    key = _key(value)
    seen[key] += 1
    key = f"{key}:{seen[key]}" if seen[key] > 1 else key
    task, trial = value.get("task_id"), value.get("trial")
    yield Conversation(
        key=key,
        ordinal=ordinal,
        title=f"task {word(task)}" + ("" if trial is None else f", trial {word(trial)}"),
        main="main",
        metadata={word(name): clean(item) for name, item in value.items() if name != _LIST},
    )
    yield Branch(dialog="main", owner=OWNER)
    place = member.place(path)
    said = value.get(_LIST)
    if not isinstance(said, list):
        yield bad_record(f"{place}.{_LIST}", "no list of messages")
        said = []
    lane = Lane(DialogWriter("main", NAME), ListCalls())
    stubs = Stubs()
    for message in said:
        see_calls(stubs, message)
    yield from lane.declare(toolset((), stubs, 0.0), Origin(TOOLS_RECORD, 0, b"", place))
    for number, message in enumerate(said):
        item = Item(number, f"{place}.{_LIST}[{number}]", message)
        yield from guarded(item.place, _message(item, lane, key))
    yield from stubs.losses(place)
    if not any(map(instructs, said)):
        yield no_instructions(place)


def _message(item: Item, lane: Lane, key: str) -> Iterator[Event]:
    if not isinstance(item.value, dict):
        yield bad_record(item.place, "no message")
        return
    message: Message = from_chat_dict(item.value, id=f"{key}:{item.ordinal}", timestamp=0.0)
    yield from lane.say(message, item.origin())


def _key(value: Mapping[str, object]) -> str:
    """Name a run: its task, and a hash of its own figures, since every run of a task has the same number and the same beginning.

    The trial stands behind the trajectory in the file, so that one which is cut off would change its name with it.
    """
    own = value.get("info") or fields.items(value, _LIST)[:3]
    return f"{word(value.get('task_id'))}:{digest_of(own).hex()[:_HASH]}"
