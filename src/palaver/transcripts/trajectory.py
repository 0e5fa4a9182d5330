"""A session as a trajectory in ATIF, the Agent Trajectory Interchange Format of Harbor.

Source: RFC 0001, version 1.7, and 1.8 for sounds (harborframework.com/docs/trajectory-format). A compaction is a step with `boundary: "replace"`: by
section VII, what the model saw later is the content of that step and the steps after it. So the instructions and exchanges that the compaction kept
follow it as copied steps, which name the steps that they repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from palaver.errors import Erased, NotFound, StoreDamaged
from palaver.ids import BlobId, DialogId
from palaver.log import Handle, Header, MessageEntry, Span
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Media,
    Message,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    thaw,
    words_of,
)
from palaver.providers import APIS
from palaver.session.costs import cost_of_messages
from palaver.store.protocol import SessionRecord, Store
from palaver.store.titles import own_title
from palaver.view import Block, Exchange, View, fold
from palaver.view.exchange import read
from palaver.wire import How
from palaver.wire.media import Load
from palaver.wire.script import ChangeNotes, left_out

_VERSION, _WITH_SOUND = "ATIF-v1.7", "ATIF-v1.8"
_SOURCES = {Role.USER: "user", Role.SYSTEM: "system", Role.ASSISTANT: "agent"}
_TAKEN = {
    "image": frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
    "audio": frozenset({"audio/wav", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/flac", "audio/webm"}),
}
"""The media types that the format has."""


def trajectory(
    store: Store, record: SessionRecord, view: View, load: Load, notes: ChangeNotes, *, whole: bool
) -> Mapping[str, Any]:
    """Return a dialog as a trajectory.

    Args:
        store: The store.
        record: The session.
        view: A view of the dialog.
        load: Returns the bytes of an image or sound by its digest.
        notes: Collects content that the format cannot express.
        whole: Whether the view shows the whole conversation: then its compactions are steps.
    """
    steps = _Steps(store, view, _StepContent(load, notes))
    steps.write(_compactions(store, view) if whole else ())
    formats = [source.format for source in store.sources(record.session_id) if not source.is_export]
    node = store.node(view.dialog_id)
    own = [node.owner] if node.relation == "subagent" and node.owner else formats
    agent: dict[str, Any] = {"name": (own or [node.owner or "palaver"])[0], "version": "unknown"}
    if view.model:
        agent["model_name"] = view.model
    if view.tools:
        agent["tool_definitions"] = [thaw(APIS["openai-chat"].dialect.declare(tool)) for tool in view.tools]
    about = {"title": own_title(store, record), "folder": record.workdir, "name": record.name}
    views = [fold(store, dialog, whole=whole) for dialog in subagents(store, view)]
    for inner in views:
        inner.load()
    parts = [trajectory(store, record, inner, load, notes, whole=whole) for inner in views]
    return {
        "schema_version": _WITH_SOUND if steps.parts.sounds else _VERSION,
        "session_id": record.session_id,
        "trajectory_id": view.dialog_id,
        "agent": agent,
        "steps": steps.done,
        **({"subagent_trajectories": parts} if parts else {}),
        "final_metrics": {**steps.totals, "total_steps": len(steps.done)},
        "extra": {"palaver": {key: value for key, value in about.items() if value}},
    }


def subagents(store: Store, view: View) -> Iterator[DialogId]:
    """Yield the dialogs of the sub-agents that a view's dialog, or one that it shares entries with, began."""
    callers = {view.dialog_id, *(span.dialog for span in view.shared)}
    for node in store.nodes(store.node(view.dialog_id).session_id):
        if node.relation == "subagent" and node.parent_id in callers:
            yield node.dialog_id


def _compactions(store: Store, view: View) -> Iterator[tuple[Handle, Header]]:
    """Yield the compactions of a dialog, those of its ancestors included, oldest first."""
    for span in (*view.shared, Span(view.dialog_id, 0, view.at + 1)):
        headers = list(store.latest_of_kind(span.dialog, "compaction", span.start, span.stop))
        yield from ((Handle(span.dialog, header.seq), header) for header in reversed(headers))


class _Steps:
    """The steps of a trajectory while they are written."""

    def __init__(self, store: Store, view: View, parts: _StepContent) -> None:
        """Begin with none."""
        self.done: list[dict[str, Any]] = []
        self.totals: dict[str, float] = {}
        self.parts = parts
        self._store, self._view = store, view
        self._numbers: dict[Handle, int] = {}
        self._told: dict[str, int] = {}
        self._results: dict[tuple[Handle | None, str], Block] = {}

    def write(self, compactions: Iterable[tuple[Handle, Header]]) -> None:
        """Write the instructions and the exchanges, and each compaction before the first exchange that came after it."""
        ranks = {span.dialog: rank for rank, span in enumerate(self._view.shared)}

        def order(place: Handle) -> tuple[int, int]:
            return ranks.get(place.dialog, len(ranks)), place.seq

        waiting = list(compactions)
        self._instruct(self._view.system)
        for exchange in self._view.exchanges:
            while waiting and exchange.first is not None and order(exchange.first) > order(waiting[0][0]):
                self._compacted(*waiting.pop(0))
            if exchange.derived:
                self._boundary([exchange], 0.0)
            else:
                self._add(self._step(exchange), exchange.first)
        for place, header in waiting:
            self._compacted(place, header)

    def _instruct(self, blocks: Sequence[Block], *, copied: bool = False) -> None:
        for text in filter(None, (words_of(block.content) for block in blocks)):
            known = self._told.setdefault(text, len(self.done) + 1)
            marks = _copied(None, known if known <= len(self.done) else None) if copied else {}
            self._add({"source": "system", "message": text, **marks})

    def _compacted(self, place: Handle, header: Header) -> None:
        """Write what the model saw right after a compaction: the boundary, and copies of what was kept."""
        after = fold(self._store, place.dialog, at=place.seq)
        first = next((index for index, shown in enumerate(after.exchanges) if not shown.derived), len(after.exchanges))
        self._boundary(after.exchanges[:first], header.at)
        self._instruct(after.system, copied=True)
        for exchange in after.exchanges[first:]:
            if exchange.derived:
                self._add({"source": "system", "message": _words(exchange), **_copied(None, None, exchange.derived)})
                continue
            step = self._step(exchange)
            step.pop("metrics", None)  # each call counts once
            number = self._numbers.get(exchange.first) if exchange.first is not None else None
            self._add({**step, **_copied(step.get("extra"), number)})

    def _boundary(self, texts: Sequence[Exchange], at: float) -> None:
        content = [{"content": _words(exchange)} for exchange in texts]
        self._add(
            {
                "source": "system",
                "message": "The conversation was compacted.",
                **_stamped(at),
                "observation": {"results": content},
                "extra": {"context_management": {"type": "compaction", "boundary": "replace"}},
            }
        )

    def _add(self, step: dict[str, Any], first: Handle | None = None) -> None:
        number = len(self.done) + 1
        self.done.append({"step_id": number, **step})
        if first is not None:
            self._numbers.setdefault(first, number)
        for name, count in step.get("metrics", {}).items():
            if name != "extra":
                total = "total_cost_usd" if name == "cost_usd" else f"total_{name}"
                self.totals[total] = self.totals.get(total, 0) + count

    def _step(self, exchange: Exchange) -> dict[str, Any]:
        """Return an exchange as a step: an answer has its calls and their results."""
        said, *answered = exchange.turns
        entries = read(self._view.reader, exchange.entries()) if self._view.reader is not None else {}
        messages = [entry.message for entry in entries.values() if isinstance(entry, MessageEntry)]
        at = min((entry.at for entry in entries.values()), default=0.0)
        step: dict[str, Any] = {"source": _SOURCES[said.role], **_stamped(at)}
        contents = [block.content for block in said.blocks]
        step["message"] = self.parts.content(contents)
        extra: dict[str, Any] = {}
        if said.role is Role.ASSISTANT:
            step |= self._agent(contents, [message for message in messages if message.usage], said.model)
            step |= self._observed(exchange, [block for turn in answered for block in turn.blocks])
        elif exchange.speaker is not Message(role=said.role, contents=()).speaker:
            extra["speaker"] = exchange.speaker.value
        return {**step, "extra": extra} if extra else step

    def _agent(self, contents: Sequence[Content], paid: Sequence[Message], model: str) -> Iterator[tuple[str, Any]]:
        """Yield the fields that only answers have."""
        if model:
            yield "model_name", model
        if thought := "\n\n".join(
            part.content for part in contents if isinstance(part, ThinkingContent) and part.content
        ):
            yield "reasoning_content", thought
        if calls := [_call(content) for content in contents if isinstance(content, ToolCallContent)]:
            yield "tool_calls", calls
        if paid:
            yield "metrics", _metrics(paid)

    def _observed(self, exchange: Exchange, blocks: Sequence[Block]) -> Mapping[str, Any]:
        """Return the results of an answer's calls. A copy of an answer also has results that came after the compaction."""
        results = []
        for block in blocks:
            if not isinstance(block.content, ToolResultContent):
                continue
            key = exchange.first, block.content.id
            known = block if not block.derived else self._results.get(key)
            if known is not None and isinstance(known.content, ToolResultContent):
                self._results[key] = known
                results.append(self.parts.result(known.content))
        return {"observation": {"results": results}} if results else {}


class _StepContent:
    """Blocks as content of the format."""

    def __init__(self, load: Load, notes: ChangeNotes) -> None:
        """Begin with no sound."""
        self.sounds = False
        self._load, self._notes = load, notes

    def result(self, result: ToolResultContent) -> dict[str, Any]:
        """Return the result of a call."""
        blocks = (TextContent(result.content),) if isinstance(result.content, str) else result.content
        made: dict[str, Any] = {"source_call_id": result.id, "content": self.content(blocks)}
        return {**made, "extra": {"is_error": True}} if result.is_error else made

    def content(self, blocks: Sequence[Content]) -> str | list[dict[str, Any]]:
        """Return blocks as a text, or as parts where there are several, or images or sounds."""
        parts = [part for block in blocks for part in self._of(block)]
        if len(parts) > 1 or any(part["type"] != "text" for part in parts):
            return parts
        return parts[0]["text"] if parts else ""

    def _of(self, block: Content) -> Iterator[dict[str, Any]]:
        match block:
            case TextContent():
                yield {"type": "text", "text": block.content}
            case ImageContent() | AudioContent():
                yield from (self._media(media, block.type) for media in block.media)
            case ThinkingContent():
                if block.artefact or block.redacted or block.signature:
                    self._notes.add(
                        None, "thinking", How.CHANGED, "the format has no place for what is signed or encrypted"
                    )
            case ToolCallContent():
                pass  # beside the message
            case _:
                self._notes.add(None, block.type, How.DROPPED, "the format has texts, images and sounds")

    def _media(self, media: Media, kind: str) -> dict[str, Any]:
        """Return an image or sound, its bytes in a data: address; or a text where the format does not have it."""
        try:
            if media.url is not None:
                media_type, path = media.media_type or f"{kind}/{'png' if kind == 'image' else 'wav'}", media.url
            elif media.media_type in _TAKEN[kind]:
                loaded = (
                    media
                    if media.data is not None
                    else media.model_copy(update={"data": self._load(BlobId(media.digest))})
                )
                media_type, path = media.media_type, f"data:{media.media_type};base64,{loaded.to_base64()[0]}"
            else:
                return self._lost(kind, f"the format has no {media.media_type}")
        except (NotFound, Erased, StoreDamaged) as error:
            return self._lost(kind, f"its bytes cannot be had: {type(error).__name__}")
        self.sounds = self.sounds or kind == "audio"
        return {"type": kind, "source": {"media_type": media_type, "path": path}}

    def _lost(self, kind: str, why: str) -> dict[str, Any]:
        self._notes.add(None, kind, How.REPLACED, why)
        return {"type": "text", "text": left_out(kind, why, None)}


def _call(call: ToolCallContent) -> dict[str, Any]:
    made = {"tool_call_id": call.id, "function_name": call.name, "arguments": thaw(call.args)}
    return made if call.raw_args is None else {**made, "extra": {"raw_arguments": call.raw_args}}


def _metrics(paid: Sequence[Message]) -> dict[str, Any]:
    usage, cost = paid[-1].usage, cost_of_messages(paid[-1:])
    more = {"reasoning_tokens": usage.reasoning_tokens, "cache_creation_input_tokens": usage.cache_write_tokens}
    made: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_tokens,
        "cost_usd": cost.cost,
    }
    kept = {name: count for name, count in more.items() if count}
    return {**made, "extra": kept} if kept else made


def _copied(extra: Mapping[str, Any] | None, number: int | None, derived: str = "") -> dict[str, Any]:
    """Return the marks of a step that repeats an earlier one, by its number, or has a text that nobody said, by its kind."""
    about = {"copied_from": number, "derived": derived}
    return {
        "is_copied_context": True,
        "extra": {**(extra or {}), "palaver": {name: it for name, it in about.items() if it}},
    }


def _words(exchange: Exchange) -> str:
    return "\n\n".join(words_of(block.content) for block in exchange.blocks())


def _stamped(seconds: float) -> Mapping[str, str]:
    """Return the time of a step, if it is known."""
    return {"timestamp": datetime.fromtimestamp(seconds, UTC).isoformat()} if seconds else {}
