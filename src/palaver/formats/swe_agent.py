"""SWE-agent trajectories: one JSON object with the history of messages, each with its action.

Based on trajectories of SWE-agent 0.7 to 1.1 (SWE-agent/SWE-agent, docs/usage/trajectories.md). Where the model writes its commands as
text, the output comes back in the role `user`: a message of that role right after an action is the tool's, unless one of the two belongs
to a demonstration and the other does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, guarded, no_instructions
from palaver.formats.events import NOTHING, Conversation, Event, Loss
from palaver.formats.lists import Item, clean, instructs, listed, word
from palaver.formats.sources import Member, SourceFile
from palaver.formats.unread import Unread
from palaver.messages import Speaker, from_chat_dict

NAME = "swe-agent"
_HISTORY = "history"
_LISTS = (_HISTORY, "trajectory")
_KEPT = ("exit_status", "submission", "model_stats", "swe_agent_version")
_SAID = ("role", "content", "name", "tool_calls", "tool_call_id")
_KEYS = {
    "": "environment info replay_config",
    "info": "edited_files30 edited_files50 edited_files70 exit_status model_stats submission swe_agent_version",
    "step": "action execution_time extra_info messages observation query response state thought",
}
"""The keys of objects that are not kept whole. A step repeats the messages; the configuration of a replay is not a part of the run."""


class SweAgent:
    """SWE-agent trajectories."""

    name = NAME
    title = "SWE-agent"
    signs = "a JSON object with history, trajectory and info, its messages with an agent"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is a SWE-agent trajectory, from 0.0 to 1.0."""
        opening = source.opening.fields
        steps, said = fields.objects(opening, "trajectory"), fields.objects(opening, "history")
        acted = any("action" in step and "observation" in step for step in steps)
        return 1.0 if acted or any("agent" in message and "role" in message for message in said) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as a run."""
        return _run(source.member)


def _run(member: Member) -> Iterator[Event]:
    about: dict[str, object] = {}
    losses: list[Loss] = []
    unread, led = Unread(_KEYS), False
    for item in listed(member, _LISTS, about, losses):
        if item.key == _HISTORY:
            led = led or instructs(item.value)
        else:
            unread.see(item.value, item.place, "step")
    info = fields.mapping(about, "info")
    metadata = {name: clean(info[name]) for name in _KEPT if info.get(name) is not None}
    yield Conversation(key="", title=fields.text(about, "environment"), metadata=metadata)
    writer = DialogWriter("main", NAME)
    yield writer.branch(NAME)
    yield from losses
    if not led:
        yield no_instructions(member.place("whole file"))
    before: Mapping[str, object] = NOTHING
    for item in listed(member, _LISTS):
        if item.key == _HISTORY:
            yield from guarded(item.place, _message(item, before, writer, f"{NAME}:{item.ordinal}"))
            before = item.fields
    unread.see(about, member.place("whole file"))
    yield from unread.losses()


def _message(item: Item, before: Mapping[str, object], writer: DialogWriter, key: str) -> Iterator[Event]:
    value = item.expect()
    metadata = {word(name): clean(field) for name, field in value.items() if name not in _SAID and field is not None}
    about: dict[str, Any] = {"id": key, "timestamp": 0.0, "metadata": metadata}
    if value.get("role") == "user" and "action" in before and value.get("is_demo") == before.get("is_demo"):
        about["speaker"] = Speaker.TOOL
    said = {name: value[name] for name in _SAID if value.get(name) is not None}
    calls = fields.items(value, "tool_call_ids")
    if calls and "tool_call_id" not in said:
        said["tool_call_id"] = calls[0]
    yield from writer.say(from_chat_dict(said, **about), item.origin(), counted=1)
