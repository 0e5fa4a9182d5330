"""Cline's sessions: Anthropic's messages, each with its time, model and figures.

Two files have the same messages: the SDK's `session.messages.json`, an object, and the editor's `api_conversation_history.json`, a list in the folder of
its task. Based on files of both (cline/cline, `sdk/packages/core` and `src/core/storage`). The harness's text is marked: what surrounds a prompt, and the
result of a call that the model wrote as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record, guarded, no_instructions
from palaver.formats.events import Conversation, Event, Loss
from palaver.formats.lists import Item, clean, instruct, listed
from palaver.formats.sources import Member, SourceFile
from palaver.formats.unread import Unread
from palaver.messages import (
    AssistantMessage,
    Content,
    Speaker,
    TextContent,
    ToolMessage,
    ToolResultContent,
    Usage,
    UserMessage,
)
from palaver.messages.forms import blocks_of

NAME = "cline"
_HISTORY = "api_conversation_history.json"
_LISTS = ("messages",)
_OWN = frozenset({"ts", "modelInfo", "metrics"})
_ROLES = frozenset({"user", "assistant"})
_SURROUNDS = ("<environment_details>", "<explicit_instructions")
_RESULT = re.compile(r"\[\w+( for .*)?\] Result:")
_KEYS = {
    "": "agent sessionId system_prompt updated_at version",
    "message": "content id metrics modelInfo role ts",
    "message.metrics": "*",
    "message.modelInfo": "family id modelId mode provider providerId",
}


class ClineSession:
    """Cline sessions."""

    name = NAME
    title = "Cline"
    signs = "a JSON object with sessionId and messages, or an array of messages, with ts, modelInfo or metrics"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is a Cline session, from 0.0 to 1.0."""
        opening = source.opening
        messages = opening.elements or fields.objects(opening.fields, "messages")
        own = any(_OWN & message.keys() and {"role", "content"} <= message.keys() for message in messages)
        return 0.9 if own and (opening.elements or "sessionId" in opening.fields) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as a session."""
        return _session(source.member, source.path.parent.name if source.path.name.startswith(_HISTORY) else "")


def _session(member: Member, task: str) -> Iterator[Event]:
    about: dict[str, object] = {}
    losses: list[Loss] = []
    model, started_at = "", 0.0
    for item in listed(member, _LISTS, about, losses):
        started_at = started_at or fields.moment(item.fields.get("ts"))
        model = model or _model(item.fields)
    unread, place = Unread(_KEYS), member.place("whole file")
    unread.see(about, place)
    yield Conversation(
        key=fields.text(about, "sessionId") or task,
        model=model,
        started_at=started_at,
        metadata={name: clean(about[name]) for name in ("agent", "version") if about.get(name) is not None},
    )
    writer = DialogWriter("main", NAME)
    yield writer.branch(NAME)
    yield from losses
    system = about.get("system_prompt")
    yield from guarded(place, instruct(writer, system, started_at, Item(0, place, system).origin("system")))
    if not system:
        yield no_instructions(place)
    at = started_at
    for item in listed(member, _LISTS):
        at = fields.moment(item.fields.get("ts")) or at
        unread.see(item.value, item.place, "message")
        yield from guarded(item.place, _message(item.fields, item, at, writer))
    yield from unread.losses()


def _model(value: Mapping[str, object]) -> str:
    about = fields.mapping(value, "modelInfo")
    return fields.text(about, "id") or fields.text(about, "modelId")


def _message(value: Mapping[str, object], item: Item, at: float, writer: DialogWriter) -> Iterator[Event]:
    role, key = fields.text(value, "role"), fields.text(value, "id") or f"{NAME}:{item.ordinal}"
    if role not in _ROLES:
        yield bad_record(item.place, "it is not a message of a user or an assistant")
        return
    content = value.get("content")
    blocks = blocks_of([_part(part) for part in content] if isinstance(content, list) else content)
    origin = item.part(key, [role, content])
    if role == "assistant":
        about = fields.mapping(value, "modelInfo")
        message = AssistantMessage(
            id=key,
            timestamp=at,
            contents=blocks,
            model=_model(value) or None,
            provider=fields.text(about, "provider") or fields.text(about, "providerId") or None,
            usage=Usage(fields.mapping(value, "metrics")),
        )
        yield from writer.say(message, origin, counted=1)
        return
    for number, (speaker, group) in enumerate(groupby(blocks, _speaker)):
        own: dict[str, Any] = {"id": f"{key}.{number}" if number else key, "timestamp": at, "contents": tuple(group)}
        said = ToolMessage(**own) if speaker is None else UserMessage(speaker=speaker, **own)
        yield from writer.say(said, origin, counted=int(not number))
    if not blocks:
        yield from writer.say(UserMessage(id=key, timestamp=at), origin, counted=1)


def _speaker(block: Content) -> Speaker | None:
    """Return who said a block in the role `user`; None for a result."""
    if isinstance(block, ToolResultContent):
        return None
    text = block.content if isinstance(block, TextContent) else ""
    if _RESULT.match(text):
        return Speaker.TOOL
    return Speaker.HARNESS if text.startswith(_SURROUNDS) else Speaker.HUMAN


def _part(part: object) -> object:
    """Return a block in Anthropic's form: an attached file as text, and results without a type as JSON."""
    if not isinstance(part, dict):
        return part
    if part.get("type") == "file" and isinstance(part.get("content"), str):
        return {**part, "type": "text", "text": part["content"], "content": None}
    content = part.get("content")
    if part.get("type") == "tool_result" and isinstance(content, list):
        whole = all(isinstance(inner, dict) and "type" in inner for inner in content)
        return part if whole else {**part, "content": json.dumps(content, ensure_ascii=False)}
    return part
