"""claude.ai's export: `conversations.json`, an array of conversations with their messages, which name their parents. An edited message is a fork.

Based on exports of Anthropic's consumer site from 2024 to 2026. An answer has its calls and their results in one list of blocks. Text that was taken from
an attached file is in the export; images are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record
from palaver.formats.events import NOTHING, Conversation, Event, Loss
from palaver.formats.lists import Item, conversations, kept, numbered
from palaver.formats.sources import SourceFile
from palaver.formats.trees import ROOT, TreeWriter
from palaver.messages import (
    AssistantMessage,
    Content,
    Message,
    TextContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.messages.forms import blocks_of

NAME = "claude-ai"
_ABOUT = frozenset({"uuid", "name", "created_at", "chat_messages"})
_READ = frozenset({"uuid", "text", "content", "sender", "created_at", "parent_message_uuid"})
_NO_PARENT = "00000000-0000-4000-8000-000000000000"


class ClaudeAiExport:
    """Exports of claude.ai, with their branches."""

    name = NAME
    title = "claude.ai export"
    signs = "a JSON array of objects with uuid and chat_messages, also in the zip file of the export"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is such an export, from 0.0 to 1.0."""
        first = next(iter(source.opening.elements), NOTHING)
        return 1.0 if isinstance(first.get("chat_messages"), list) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every conversation, one in memory at a time."""
        return conversations(source, _conversation)


def _conversation(value: Mapping[str, object], place: str, ordinal: int) -> Iterator[Event]:
    items = list(numbered(value.get("chat_messages"), f"{place}.chat_messages"))
    losses: list[Loss] = []
    if not isinstance(value.get("chat_messages"), list):
        losses.append(bad_record(place, "it has no list of messages"))
    tree = TreeWriter(_parents(items, losses), NAME, NAME)
    yield Conversation(
        key=fields.text(value, "uuid"),
        ordinal=ordinal,
        title=fields.text(value, "name"),
        started_at=fields.moment(value.get("created_at")),
        main=tree.main,
        metadata=kept(value, _ABOUT),
    )
    yield tree.root.branch(NAME)
    yield from losses
    for item in items:
        yield from tree.node(item.ordinal, item.place, partial(_message, item))


def _parents(items: Sequence[Item], losses: list[Loss]) -> list[int]:
    """Return the number of each message's parent; one that names none, or a later one, follows the message before it."""
    numbers: dict[str, int] = {}
    parents: list[int] = []
    for item in items:
        parent = fields.text(item.fields, "parent_message_uuid")
        if parent and parent != _NO_PARENT and parent not in numbers:
            reason = f"Its parent {parent[:40]} is not before it; it follows the message before it."
            losses.append(Loss(place=item.place, reason=reason, code="dangling_parent"))
        parents.append(ROOT if parent == _NO_PARENT else numbers.get(parent, item.ordinal - 1))
        numbers.setdefault(fields.text(item.fields, "uuid"), item.ordinal)
    return parents


def _message(item: Item, writer: DialogWriter) -> Iterator[Event]:
    value = item.fields
    sender, key = fields.text(value, "sender"), fields.text(value, "uuid") or str(item.ordinal)
    if sender not in {"human", "assistant"}:
        yield bad_record(item.place, "it is not a message of a human or an assistant")
        return
    listed = fields.items(value, "content") or (
        [{"type": "text", "text": said}] if (said := fields.text(value, "text")) else []
    )
    about: dict[str, Any] = {"timestamp": fields.moment(value.get("created_at")), "metadata": kept(value, _READ)}
    blocks = blocks_of(_paired(listed, key))
    groups = [
        (result, tuple(group)) for result, group in groupby(blocks, lambda block: isinstance(block, ToolResultContent))
    ]
    for number, (result, group) in enumerate(groups or [(False, ())]):
        own = {
            "id": f"{key}.{number}" if number else key,
            **(about if not number else {"timestamp": about["timestamp"]}),
        }
        message = _said(sender, group, own) if not result else ToolMessage(contents=group, **own)
        yield from writer.say(message, item.part(message.id, [sender, listed]), counted=int(not number))


def _said(sender: str, blocks: tuple[Content, ...], about: dict[str, Any]) -> Message:
    if sender == "assistant":
        return AssistantMessage(contents=blocks, provider="anthropic", **about)
    attached = fields.objects(about.get("metadata", NOTHING), "attachments")
    texts = (TextContent(content=text) for one in attached if (text := fields.text(one, "extracted_content")))
    return UserMessage(contents=(*blocks, *texts), **about)


def _paired(blocks: Sequence[object], key: str) -> Iterator[object]:
    """Yield the blocks. A call without an id is named by its number, and a result without one answers the call before it."""
    last = ""
    for number, block in enumerate(blocks):
        if not isinstance(block, dict) or block.get("type") not in {"tool_use", "tool_result"}:
            yield block
        elif block.get("type") == "tool_use":
            last = fields.text(block, "id") or f"{key}:{number}"
            yield {**block, "id": last}
        else:
            yield {**block, "tool_use_id": fields.text(block, "tool_use_id") or last}
