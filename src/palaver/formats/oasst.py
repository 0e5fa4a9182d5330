"""Open-Assistant trees: JSON lines, each a prompt with its replies, and their replies in turn. Each reply beyond the first is a fork.

Based on the trees that Open-Assistant publishes (LAION-AI/Open-Assistant, docs/docs/data/schemas.mdx).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record
from palaver.formats.events import Conversation, Event, Loss
from palaver.formats.lists import Item, kept
from palaver.formats.records import Record
from palaver.formats.sources import SourceFile
from palaver.formats.trees import ROOT, TreeWriter
from palaver.messages import AssistantMessage, TextContent, UserMessage

NAME = "oasst"
_READ = frozenset({"text", "role", "replies", "message_id", "parent_id"})


class OpenAssistant:
    """Open-Assistant trees: one conversation per line."""

    name = NAME
    title = "Open-Assistant trees"
    signs = "JSON lines with message_tree_id and prompt, whose messages have replies"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it contains such trees, from 0.0 to 1.0."""
        shown = any({"message_tree_id", "prompt"} <= record.keys() for record in source.opening.records)
        return 1.0 if shown else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every line as a conversation, one in memory at a time."""
        for record in source.member.records():
            yield from (record,) if isinstance(record, Loss) else _conversation(record)


def _conversation(record: Record) -> Iterator[Event]:
    losses: list[Loss] = []
    nodes, parents = _nodes(record, losses)
    tree = TreeWriter(parents, NAME, NAME)
    key, about = fields.text(record.value, "message_tree_id"), kept(record.value, {"message_tree_id", "prompt"})
    yield Conversation(key=key, ordinal=record.ordinal, main=tree.main, metadata=about)
    yield tree.root.branch(NAME)
    yield from losses
    for number, item in enumerate(nodes):
        yield from tree.node(number, item.place, partial(_message, item, key))


def _nodes(record: Record, losses: list[Loss]) -> tuple[Sequence[Item], Sequence[int]]:
    """Return the messages of a tree with the number of each one's parent, a message before its replies."""
    nodes: list[Item] = []
    parents: list[int] = []
    waiting: list[tuple[object, int, str]] = [(record.value.get("prompt"), ROOT, f"{record.place}, prompt")]
    while waiting:
        value, parent, place = waiting.pop()
        if not isinstance(value, dict):
            losses.append(bad_record(place, "it is not a message"))
            continue
        parents.append(parent)
        nodes.append(Item(len(nodes), place, value))
        replies = value.get("replies")
        if not isinstance(replies, list):
            losses.append(bad_record(place, "it has no list of replies"))
            continue
        below = enumerate(replies)
        waiting += reversed([(reply, len(nodes) - 1, f"{place}.replies[{nth}]") for nth, reply in below])
    return nodes, parents


def _message(item: Item, key: str, writer: DialogWriter) -> Iterator[Event]:
    value = item.fields
    role, text = value.get("role"), value.get("text")
    if role not in {"prompter", "assistant"} or not isinstance(text, str):
        yield bad_record(item.place, "it lacks a text, or its role is neither prompter nor assistant")
        return
    identity = fields.text(value, "message_id") or f"{key}:{item.ordinal}"
    contents = (TextContent(content=fields.text(value, "text")),)
    about = kept(value, _READ)
    at = fields.moment(value.get("created_date"))
    model = fields.text(value, "model_name") or None
    said = (
        UserMessage(id=identity, timestamp=at, contents=contents, metadata=about)
        if role == "prompter"
        else AssistantMessage(id=identity, timestamp=at, contents=contents, metadata=about, model=model)
    )
    yield from writer.say(said, item.part(str(item.ordinal), [role, text]), counted=1)
