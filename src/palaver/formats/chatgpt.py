"""ChatGPT's export: `conversations.json`, an array of conversations, each a tree of messages. An edited or repeated message is a fork.

Based on exports of OpenAI's consumer site from 2023 to 2025. A message of the assistant to another recipient than `all` is a call of that tool, and a
message of a tool that directly follows it is the result. Images are files beside it, which this reader does not open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record
from palaver.formats.events import NOTHING, Conversation, Event, Loss
from palaver.formats.lists import Item, conversations, kept
from palaver.formats.sources import SourceFile
from palaver.formats.trees import ROOT, TreeWriter
from palaver.log import Custom
from palaver.messages import (
    AssistantMessage,
    Content,
    Message,
    Role,
    Speaker,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    UserMessage,
)

NAME = "chatgpt"
_ABOUT = frozenset({"mapping", "title", "conversation_id", "create_time", "current_node", "default_model_slug"})
_READ = frozenset({"id", "content", "create_time"})
_TEXTS = {
    "text": "parts",
    "multimodal_text": "parts",
    "code": "text",
    "execution_output": "text",
    "reasoning_recap": "content",
}
"""The key of what is said, by the type of the content."""
_CONTEXT = ("user_profile", "user_instructions")


class ChatGptExport:
    """Exports of ChatGPT, with their branches."""

    name = NAME
    title = "ChatGPT export"
    signs = "a JSON array of objects with mapping and current_node, also in the zip file of the export"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is such an export, from 0.0 to 1.0."""
        first = next(iter(source.opening.elements), NOTHING)
        return 1.0 if isinstance(first.get("mapping"), dict) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every conversation, one in memory at a time."""
        return conversations(source, _conversation)


def _conversation(value: Mapping[str, object], place: str, ordinal: int) -> Iterator[Event]:
    losses: list[Loss] = []
    nodes, parents = _nodes(fields.mapping(value, "mapping"), place, losses)
    tree = TreeWriter(parents, NAME, NAME)
    names = [node for node, _ in nodes]
    newest = fields.text(value, "current_node")
    yield Conversation(
        key=fields.text(value, "conversation_id") or fields.text(value, "id"),
        ordinal=ordinal,
        title=fields.text(value, "title"),
        model=fields.text(value, "default_model_slug"),
        started_at=fields.moment(value.get("create_time")),
        main=tree.key(names.index(newest)) if newest in names else tree.main,
        metadata=kept(value, _ABOUT),
    )
    yield tree.root.branch(NAME)
    yield from losses
    for number, (_, item) in enumerate(nodes):
        above = nodes[parents[number]][1].value if parents[number] != ROOT else None
        yield from tree.node(number, item.place, partial(_node, item, above))


def _nodes(
    mapping: Mapping[str, object], place: str, losses: list[Loss]
) -> tuple[Sequence[tuple[str, Item]], list[int]]:
    """Return the nodes, oldest first, and the number of each one's parent. A later export only adds to the end."""
    found = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    losses.extend(bad_record(f"{place}.mapping.{key}", "it is not a node") for key in mapping.keys() - found.keys())
    order: dict[str, tuple[float, int, str]] = {}  # its time, at least that of its parent, its depth and its key
    waiting = [key for key, node in found.items() if fields.text(node, "parent") not in found]
    children: dict[str, list[str]] = {}
    for key, node in found.items():
        children.setdefault(fields.text(node, "parent"), []).append(key)
    while waiting:
        key = waiting.pop()
        own = fields.moment(fields.mapping(found[key], "message").get("create_time"))
        above, depth, _ = order.get(fields.text(found[key], "parent"), (0.0, 0, ""))
        order[key] = (max(own, above), depth + 1, key)
        waiting += [child for child in children.get(key, ()) if child not in order]
    losses.extend(bad_record(f"{place}.mapping.{key}", "it is its own ancestor") for key in found.keys() - order.keys())
    ordered = sorted(order, key=order.__getitem__)
    numbers = {key: number for number, key in enumerate(ordered)}
    nodes = [(key, Item(number, f"{place}.mapping.{key}", found[key])) for key, number in numbers.items()]
    return nodes, [numbers.get(fields.text(found[key], "parent"), ROOT) for key in ordered]


def _node(item: Item, above: object, writer: DialogWriter) -> Iterator[Event]:
    node = item.fields
    value = fields.mapping(node, "message")
    rest = kept(node, {"id", "message", "parent", "children"})
    if value or rest:
        message = _message(value, rest, _called(above))
        if (
            message.role is Role.SYSTEM and not message.contents
        ):  # a place for instructions, which the export leaves empty
            data, at = {**kept(value, ()), **rest}, message.timestamp
            yield writer.put(Custom(custom_type=f"{NAME}/system", data=data, at=at), item.origin(message.id))
        else:
            yield from writer.say(message, item.part(message.id, [value, rest]), counted=1)


def _called(above: object) -> str:
    """Return the id of the call that a node makes, or an empty text."""
    value = fields.mapping(above, "message") if isinstance(above, dict) else NOTHING
    calls = fields.text(fields.mapping(value, "author"), "role") == "assistant" and _recipient(value)
    return fields.text(value, "id") if calls else ""


def _recipient(value: Mapping[str, object]) -> str:
    name = fields.text(value, "recipient")
    return "" if name == "all" else name


def _message(value: Mapping[str, object], rest: Mapping[str, object], call: str) -> Message:
    content, key = fields.mapping(value, "content"), fields.text(value, "id")
    role = fields.text(fields.mapping(value, "author"), "role")
    about: dict[str, Any] = {"id": key, "timestamp": fields.moment(value.get("create_time"))}
    about["metadata"] = {**kept(value, _READ), **rest}
    blocks = tuple(_blocks(content)) if content else ()
    if role == "assistant":
        model = fields.text(fields.mapping(value, "metadata"), "model_slug")
        if name := _recipient(value):
            given = "\n".join(block.content for block in blocks if isinstance(block, TextContent))
            blocks = (
                ToolCallContent.from_dict(
                    {"id": key, "name": name, "args": {"input": given}, "content": dict(content)}
                ),
            )
        return AssistantMessage(contents=blocks, model=model or None, provider="openai", **about)
    if role == "system":
        return SystemMessage(contents=blocks, **about)
    if role == "tool" and call:
        name = fields.text(fields.mapping(value, "author"), "name")
        result: Any = {"id": call, "content": blocks, "name": name or None}
        return ToolMessage(contents=(ToolResultContent(**result),), **about)
    context = content.get("content_type") == "user_editable_context"
    speaker = Speaker.TOOL if role == "tool" else Speaker.HARNESS if context else Speaker.HUMAN
    return UserMessage(contents=blocks, speaker=speaker, **about)


def _blocks(content: Mapping[str, object]) -> Iterator[Content]:  # noqa: C901 - one case per type
    kind = fields.text(content, "content_type")
    if kind == "thoughts":
        rest = kept(content, {"content_type", "thoughts"})
        for thought in fields.objects(content, "thoughts"):
            text = "\n".join(filter(None, (fields.text(thought, "summary"), fields.text(thought, "content"))))
            own = {**rest, **kept(thought, {"summary", "content"}), "content": text, "provider": "openai"}
            yield ThinkingContent.from_dict(own)
        return
    if kind == "user_editable_context":
        rest = kept(content, {"content_type", *_CONTEXT})
        for key in _CONTEXT:
            if text := fields.text(content, key):
                yield TextContent.from_dict({**rest, "content": text})
        return
    said_in = _TEXTS.get(kind, "")
    said = content.get(said_in)
    if not isinstance(said, str | list):
        yield UnknownContent.from_dict({**content, "type": kind or "content"})
        return
    rest = kept(content, {"content_type", said_in})
    for part in said if isinstance(said, list) else [said]:
        if isinstance(part, str):
            if part:
                yield TextContent.from_dict({**rest, "content": part})
        elif isinstance(part, dict):
            named = fields.text(part, "content_type") or "part"
            yield UnknownContent.from_dict({**part, "type": named})
