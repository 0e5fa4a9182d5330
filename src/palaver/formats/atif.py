"""ATIF, the Agent Trajectory Interchange Format of Harbor: one JSON object with the steps of a run.

Based on ATIF 1.0 to 1.8 (harbor-framework/harbor, rfcs/0001-trajectory-format.md). A step of an agent has its calls and what they returned. After a
compaction with the boundary `replace` the agent saw only what that step's observation has, and later steps. Where a copied step names the step that it
repeats, as in palaver's exports, it is no new message. Trajectories of sub-agents that are in the file are dialogs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from palaver.errors import InvalidInput
from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record, guarded, no_instructions
from palaver.formats.events import NOTHING, Branch, Conversation, Event, Loss
from palaver.formats.lists import Item, clean, declare, kept, listed, numbered, priced, word
from palaver.formats.sources import SourceFile
from palaver.log import Custom, Derived, Run
from palaver.messages import (
    AudioContent,
    ImageContent,
    Media,
    Message,
    Speaker,
    ThinkingContent,
    ToolMessage,
    ToolResultContent,
    from_chat_dict,
)
from palaver.messages.forms import result_of

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
        """Read the file as one run, a step in memory at a time."""
        member, losses = source.member, list[Loss]()
        about: dict[str, Any] = {}
        first = [
            (_when(item), item.fields.get("source"))
            for item in listed(member, (_STEPS, _PARTS), about, losses)
            if item.key == _STEPS
        ]
        started_at = next((at for at, _ in first if at), 0.0)
        agent, own = fields.mapping(about, "agent"), fields.mapping(fields.mapping(about, "extra"), "palaver")
        yield Conversation(
            key=fields.text(about, "session_id") or fields.text(about, "trajectory_id"),
            title=fields.text(own, "title"),
            workdir=fields.text(own, "folder"),
            model=fields.text(agent, "model_name"),
            started_at=started_at,
            metadata=kept(about, {"session_id", "trajectory_id", _STEPS, _PARTS}),
        )
        steps = _StepReader(DialogWriter("main", NAME), started_at)
        yield steps.writer.branch(word(agent.get("name") or NAME))
        yield from losses
        if all(source != "system" for _, source in first):
            yield no_instructions(member.place("whole file"))
        place, tools = member.place("agent.tool_definitions"), agent.get("tool_definitions")
        yield from guarded(
            place, declare(steps.writer, clean(tools), started_at, Item(0, place, tools).origin("tools"))
        )
        for item in listed(member, (_STEPS, _PARTS)):
            yield from guarded(item.place, steps.read(item)) if item.key == _STEPS else ()
        if not any(loss.code == "torn_tail" for loss in losses):  # more of the last compaction may follow
            yield from steps.compact()
        for item in listed(member, (_STEPS, _PARTS)):
            yield from guarded(item.place, _part(item, f"part:{item.ordinal}", "main")) if item.key == _PARTS else ()


def _part(item: Item, key: str, parent: str) -> Iterator[Event]:
    """Read the trajectory of a sub-agent as a dialog, and those in it."""
    part = item.fields
    if not isinstance(part.get(_STEPS), list):
        yield bad_record(item.place, "it is not a trajectory")
        return
    about = kept(part, {_STEPS, _PARTS})
    owner = fields.text(fields.mapping(part, "agent"), "name") or NAME
    yield Branch(dialog=key, parent=parent, owner=owner, relation="subagent", metadata=about)
    steps = _StepReader(DialogWriter(key, NAME), 0.0)
    for step in numbered(part[_STEPS], f"{item.place}.{_STEPS}"):
        yield from guarded(step.place, steps.read(step))
    yield from steps.compact()
    for inner in numbered(part.get(_PARTS), f"{item.place}.{_PARTS}"):
        yield from _part(inner, f"{key}:{inner.ordinal}", key)


def _when(step: Item) -> float:
    return fields.moment(step.fields.get("timestamp"))


class _CutContext(NamedTuple):
    """A compaction whose copied steps are being read: its step, when, what the agent saw, and the results of which it saw another text."""

    item: Item
    at: float
    pieces: list[Run | Derived]
    changed: dict[str, str]


class _StepReader:
    """Turns the steps of a trajectory into entries.

    Attributes:
        writer: The dialog.
    """

    def __init__(self, writer: DialogWriter, at: float) -> None:
        self.writer = writer
        self._at = at
        # the entries and results of each step, by its number
        self._steps: dict[object, tuple[Run, Mapping[str, object]]] = {}
        self._compaction: _CutContext | None = None

    def read(self, item: Item) -> Iterator[Event]:
        """Read a step."""
        step = item.expect("a step")
        if step.get("source") not in _ROLES:
            raise ValueError("it is not a step of a system, user or agent")
        self._at, start, extra = _when(item) or self._at, self.writer.count, fields.mapping(step, "extra")
        if step.get("is_copied_context") and self._compaction is not None and "palaver" in extra:
            yield from self._copied(item, step, self._compaction)
            return
        yield from self.compact()
        results = fields.objects(fields.mapping(step, "observation"), "results")
        management = fields.mapping(extra, "context_management")
        if management.get("type") != "compaction":
            yield from self._say(item, step, results)
            run = self.writer.run(start, self.writer.count)
            self._steps[step.get("step_id")] = (
                run,
                {word(result.get("source_call_id")): result.get("content") for result in results},
            )
        elif management.get("boundary") == "replace":
            sources = tuple(self.writer.spans())
            texts = filter(None, (_words(result.get("content")) for result in results))
            pieces: list[Run | Derived] = [Derived(text=text, label="summary", sources=sources) for text in texts]
            self._compaction = _CutContext(item, self._at, pieces, {})
        else:
            reason = "A compaction of another boundary than `replace`: the view does not show it."
            yield Loss(place=item.place, reason=reason, code="compaction", severity="warning")
            yield self._kept(item, self._at)

    def _copied(self, item: Item, step: Mapping[str, Any], compaction: _CutContext) -> Iterator[Event]:
        """Add a step that palaver copied to what the agent saw after a compaction. One that repeats no step is new, such as changed instructions."""
        own = fields.mapping(fields.mapping(step, "extra"), "palaver")
        results = fields.objects(fields.mapping(step, "observation"), "results")
        piece: Run | Derived
        if label := fields.text(own, "derived"):
            piece = Derived(text=_words(step.get("message")), label=label, sources=tuple(self.writer.spans()))
        elif (known := self._steps.get(own.get("copied_from"))) is not None:
            piece = known[0]
            for result in results:
                call, content = word(result.get("source_call_id")), result.get("content")
                if known[1].get(call, content) != content:
                    compaction.changed[call] = _words(content)
        else:
            start = self.writer.count
            yield from self._say(item, step, results)
            piece = self.writer.run(start, self.writer.count)
        told = step["source"] == "system" and isinstance(piece, Run)  # instructions are above all texts
        compaction.pieces.insert(0 if told else len(compaction.pieces), piece)

    def compact(self) -> Iterator[Event]:
        """Put the compaction that was read last, if its copied steps are complete."""
        done, self._compaction = self._compaction, None
        if done is None:
            return
        record = done.item.ordinal
        yield self.writer.put(self.writer.compaction(done.pieces, at=done.at), done.item.origin(f"{record}:compaction"))
        for call, text in done.changed.items():
            if (place := self.writer.result(call)) is not None:
                yield self.writer.put(
                    self.writer.clearing([place], text, at=done.at), done.item.origin(f"{record}:{call}")
                )
        yield self._kept(done.item, done.at)

    def _kept(self, item: Item, at: float) -> Event:
        return self.writer.put(
            Custom(custom_type=f"{NAME}/compaction", data=clean(item.value), at=at), item.origin(), counted=1
        )

    def _say(self, item: Item, step: Mapping[str, Any], results: Sequence[Mapping[str, object]]) -> Iterator[Event]:
        key, own = f"{NAME}:{self.writer.key}:{item.ordinal}", fields.mapping(step, "extra")
        beside = kept(fields.mapping(step, "observation"), {"results"})
        metadata = {**kept(step, _READ), **({"observation": beside} if beside else {})}
        about: dict[str, Any] = {"id": key, "timestamp": self._at, "metadata": metadata}
        if step["source"] == "agent":
            metrics = fields.mapping(step, "metrics")
            about["model"] = fields.text(step, "model_name") or None
            about["usage"] = priced(metrics, metrics.get("cost_usd"))
        if own.get("speaker") in set(Speaker):
            about["speaker"] = own["speaker"]
        calls = [_call(call) for call in fields.objects(step, "tool_calls")]
        said = {"role": _ROLES[step["source"]], "content": _content(step.get("message")), "tool_calls": calls or None}
        message = from_chat_dict(said, **about)
        if thought := fields.text(step, "reasoning_content"):
            message = message.model_copy(update={"contents": (ThinkingContent(content=thought), *message.contents)})
        yield from self.writer.say(message, item.origin(), counted=1)
        made = {call.id for call in message.tool_calls()}
        for number, result in enumerate(results):
            answer = _result(result, made, f"{key}:{number}", self._at)
            yield from self.writer.say(answer, item.part(f"{item.ordinal}:{number}", result))


def _call(call: Mapping[str, object]) -> dict[str, object]:
    raw = fields.mapping(call, "extra").get("raw_arguments")
    given = {"id": call.get("tool_call_id"), "name": call.get("function_name")}
    return {
        **kept(call, {"tool_call_id", "function_name"}),
        **given,
        **({"arguments": raw} if isinstance(raw, str) else {}),
    }


def _result(result: Mapping[str, object], made: set[str], key: str, at: float) -> Message:
    """Return what a call returned, or what an action without a call did, which the agent is told as a user's words."""
    about: dict[str, Any] = {"id": key, "timestamp": at, "metadata": kept(result, {"source_call_id", "content"})}
    call, content = fields.text(result, "source_call_id"), _content(result.get("content"))
    if call not in made:
        return from_chat_dict({"role": "user", "content": content or ""}, **about, speaker=Speaker.TOOL)
    failed = fields.mapping(result, "extra").get("is_error") is True
    return ToolMessage(contents=(ToolResultContent(id=call, content=result_of(content), is_error=failed),), **about)


def _words(content: object) -> str:
    parts = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(fields.text(part, "text") for part in parts if isinstance(part, dict))


def _content(content: object) -> object:
    """Return content as that of chat completions."""
    return [_part_of(part) for part in content] if isinstance(content, list) else content


def _part_of(part: object) -> object:
    """Return a part. An image or sound that is a path next to the file is not read: it stays as it is."""
    about = part if isinstance(part, dict) else NOTHING
    kind, source = about.get("type"), fields.mapping(about, "source")
    if kind not in {"image", "audio"}:
        return part
    address = fields.text(source, "path"), fields.text(source, "media_type")
    try:
        return (
            ImageContent([Media.from_text(address[0], "image", address[1])])
            if kind == "image"
            else AudioContent([Media.from_text(address[0], "audio", address[1])])
        )
    except InvalidInput:
        return {**about, "type": f"{NAME}_{kind}"}
