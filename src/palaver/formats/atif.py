"""ATIF, the Agent Trajectory Interchange Format of Harbor: one JSON object with the steps of a run.

Based on ATIF 1.0 to 1.7 (harbor-framework/harbor, rfcs/0001-trajectory-format.md). A step of an agent has its calls and what they returned. After a
compaction with the boundary `replace` the agent saw only what that step's observation has, and later steps. Trajectories of sub-agents that are
in the file are dialogs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record, guarded, no_instructions
from palaver.formats.events import NOTHING, Branch, Conversation, Event, Loss, without_losses
from palaver.formats.lists import Item, clean, declare, kept, numbered, priced, torn, word
from palaver.formats.sources import Member, SourceFile
from palaver.log import Custom, Derived
from palaver.messages import Message, Speaker, ThinkingContent, from_chat_dict

NAME = "atif"
_STEPS, _PARTS = "steps", "subagent_trajectories"
_READ = frozenset(
    {"step_id", "timestamp", "source", "message", "reasoning_content", "tool_calls", "observation", "model_name"}
)
_ROLES = {"user": "user", "agent": "assistant", "system": "system"}


class Atif:
    """ATIF trajectories: one conversation per file."""

    name = NAME
    title = "ATIF trajectories"
    signs = "a JSON object with schema_version ATIF-v1 and steps"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is such a trajectory, from 0.0 to 1.0."""
        opening = source.opening.fields
        steps = fields.objects(opening, _STEPS)
        if fields.text(opening, "schema_version").startswith("ATIF-v1"):
            return 1.0
        return 0.9 if any({"step_id", "source", "message"} <= step.keys() for step in steps) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read each file of the source as a separate run."""
        for ordinal, member in enumerate(source.members):
            yield from _run(member, ordinal)


def _run(member: Member, ordinal: int) -> Iterator[Event]:
    losses: list[Loss] = []
    about, first, led = _survey(member, losses)
    started_at = fields.moment(first)
    agent = fields.mapping(about, "agent")
    yield Conversation(
        key=fields.text(about, "session_id") or fields.text(about, "trajectory_id"),
        ordinal=ordinal,
        model=fields.text(agent, "model_name"),
        started_at=started_at,
        metadata=kept(about, {"session_id", "trajectory_id", _STEPS, _PARTS}),
    )
    writer = DialogWriter("main", NAME)
    yield writer.branch(word(agent.get("name") or NAME))
    yield from losses
    if not led:
        yield no_instructions(member.place("whole file"))
    place = member.place("agent.tool_definitions")
    yield from guarded(place, _tools(writer, agent, Item(0, place, agent.get("tool_definitions")), started_at))
    at = started_at
    for element in without_losses(member.elements((_STEPS, _PARTS)), []):
        item = Item(element.nth, member.place(element.path), element.value)
        if element.key == _STEPS and element.nth >= 0 and element.whole:
            at = _when(item.value) or at
            yield from guarded(item.place, _step(item, writer, at))
    for element in without_losses(member.elements((_STEPS, _PARTS)), []):
        if element.key == _PARTS and element.nth >= 0 and element.whole:
            item = Item(element.nth, member.place(element.path), element.value)
            yield from guarded(item.place, _part(item, f"part:{element.nth}", "main"))


def _survey(member: Member, losses: list[Loss]) -> tuple[Mapping[str, object], object, bool]:
    """Return the values next to the steps, the first step's time, and whether a step is the system's."""
    about: dict[str, object] = {}
    first, led = None, False
    for element in without_losses(member.elements((_STEPS, _PARTS)), losses):
        losses += torn(element, member.place(element.path))
        if element.nth < 0:
            about[element.key] = element.value
        elif element.key == _STEPS and isinstance(element.value, dict):
            first = first or element.value.get("timestamp")
            led = led or element.value.get("source") == "system"
    return about, first, led


def _part(item: Item, key: str, parent: str) -> Iterator[Event]:
    """Read the trajectory of a sub-agent as a dialog, and those in it."""
    part = item.value if isinstance(item.value, dict) else NOTHING
    if not isinstance(part.get(_STEPS), list):
        yield bad_record(item.place, "it is not a trajectory")
        return
    about = kept(part, {_STEPS, _PARTS})
    yield Branch(dialog=key, parent=parent, owner=NAME, relation="subagent", metadata=about)
    writer, at = DialogWriter(key, NAME), 0.0
    for step in numbered(part[_STEPS], f"{item.place}.{_STEPS}"):
        at = _when(step.value) or at
        yield from guarded(step.place, _step(step, writer, at))
    for inner in numbered(part.get(_PARTS), f"{item.place}.{_PARTS}"):
        yield from _part(inner, f"{key}:{inner.ordinal}", key)


def _tools(writer: DialogWriter, agent: Mapping[str, object], item: Item, at: float) -> Iterator[Event]:
    yield from declare(writer, clean(agent.get("tool_definitions")), at, item.origin("tools"))


def _when(step: object) -> float:
    return fields.moment(step.get("timestamp")) if isinstance(step, dict) else 0.0


def _step(item: Item, writer: DialogWriter, at: float) -> Iterator[Event]:
    step = item.value
    if not isinstance(step, dict) or step.get("source") not in _ROLES:
        yield bad_record(item.place, "it is not a step of a system, user or agent")
        return
    results = fields.objects(fields.mapping(step, "observation"), "results")
    management = fields.mapping(fields.mapping(step, "extra"), "context_management")
    if management.get("type") == "compaction":
        yield from _compaction(item, step, writer, results, at)
        return
    key = f"{NAME}:{writer.key}:{item.ordinal}"
    calls = [
        {
            **kept(call, {"tool_call_id", "function_name"}),
            "id": call.get("tool_call_id"),
            "name": call.get("function_name"),
        }
        for call in fields.objects(step, "tool_calls")
    ]
    metrics = fields.mapping(step, "metrics")
    beside = kept(fields.mapping(step, "observation"), {"results"})
    metadata = {**kept(step, _READ), **({"observation": beside} if beside else {})}
    about: dict[str, Any] = {"id": key, "timestamp": at, "metadata": metadata}
    if step["source"] == "agent":
        about |= {"model": fields.text(step, "model_name") or None, "usage": priced(metrics, metrics.get("cost_usd"))}
    said = {"role": _ROLES[step["source"]], "content": _content(step.get("message")), "tool_calls": calls or None}
    message = from_chat_dict(said, **about)
    if thought := fields.text(step, "reasoning_content"):
        message = message.model_copy(update={"contents": (ThinkingContent(content=thought), *message.contents)})
    yield from writer.say(message, item.origin(), counted=1)
    made = {call.id for call in message.tool_calls()}
    for number, result in enumerate(results):
        answer = _result(result, made, f"{key}:{number}", at)
        yield from writer.say(answer, item.part(f"{item.ordinal}:{number}", result))


def _result(result: Mapping[str, object], made: set[str], key: str, at: float) -> Message:
    """Return what a call returned, or what an action without a call did, which the agent is told as a user's words."""
    about: dict[str, Any] = {"id": key, "timestamp": at, "metadata": kept(result, {"source_call_id", "content"})}
    call, content = fields.text(result, "source_call_id"), _content(result.get("content"))
    if call in made:
        return from_chat_dict({"role": "tool", "tool_call_id": call, "content": content}, **about)
    return from_chat_dict({"role": "user", "content": content or ""}, **about, speaker=Speaker.TOOL)


def _compaction(
    item: Item, step: Mapping[str, object], writer: DialogWriter, results: Sequence[Mapping[str, object]], at: float
) -> Iterator[Event]:
    """Read what the agent saw from here on. Of another boundary than `replace`, only the step itself is kept."""
    extra = fields.mapping(step, "extra")
    if fields.mapping(extra, "context_management").get("boundary") == "replace":
        texts = [_words(result.get("content")) for result in results]
        sources = tuple(writer.spans())
        pieces = [Derived(text=text, label="summary", sources=sources) for text in texts if text]
        yield writer.put(writer.compaction(pieces, at=at), item.origin(f"{item.ordinal}:compaction"))
    else:
        reason = "A compaction of another boundary than `replace`: the view does not show it."
        yield Loss(place=item.place, reason=reason, code="compaction", severity="warning")
    yield writer.put(Custom(custom_type=f"{NAME}/compaction", data=clean(dict(step)), at=at), item.origin(), counted=1)


def _words(content: object) -> str:
    parts = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(fields.text(part, "text") for part in parts if isinstance(part, dict))


def _content(content: object) -> object:
    """Return content as that of chat completions. An image is a path next to the file, which is not read: it stays as it is."""
    if not isinstance(content, list):
        return content
    return [
        {**part, "type": "atif_image"} if isinstance(part, dict) and part.get("type") == "image" else part
        for part in content
    ]
