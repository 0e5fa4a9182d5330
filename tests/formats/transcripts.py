"""Small transcripts written by hand, and what readers make of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.formats import Branch, Conversation, Event, Loss, Put, matches, open_source
from palaver.ids import DialogId, SessionId, derive_id
from palaver.log import Entry, MessageEntry, Node, Span, decode_entry, draft, rule
from palaver.messages import Message, ToolResultContent, canonical_json
from palaver.store.memory import MemoryStore
from palaver.store.protocol import SessionRecord
from palaver.view import View, fold

STAMP = "2026-01-02T03:04:{:02d}.000Z"


def jsonl(*records: object) -> bytes:
    """Write records as JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@dataclass
class Read:
    """Everything a reader said of a file, sorted."""

    conversations: list[Conversation] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def codes(self) -> Counter[str]:
        """Count the losses by code, those that every recording has left out."""
        return Counter(loss.code for loss in self.losses if loss.code not in {"stub", "skipped"})

    def entries(self, dialog: str = "main") -> list[Entry]:
        """Give what was put into a dialog."""
        return [put.entry for put in self.puts if put.dialog == dialog]

    def said(self, dialog: str = "main") -> list[Message]:
        """Give the messages that were put into a dialog."""
        return [entry.message for entry in self.entries(dialog) if isinstance(entry, MessageEntry)]

    def counted(self) -> int:
        """Give the number of message records."""
        return sum(put.counted for put in self.puts)

    def branch(self, dialog: str) -> Branch:
        """Give how a dialog began."""
        return next(branch for branch in self.branches if branch.dialog == dialog)


def gather(events: Iterable[Event | Loss]) -> Read:
    """Sort events by kind."""
    read = Read()
    lists: dict[type, list[Any]] = {
        Conversation: read.conversations,
        Branch: read.branches,
        Put: read.puts,
        Loss: read.losses,
    }
    for event in events:
        lists[type(event)].append(event)
        read.events.append(event)
    return read


def read_file(path: Path) -> Read:
    """Read a file as an importer would."""
    return gather(events_of(path))


def events_of(path: Path) -> Iterator[Event | Loss]:
    """Give all that is said of a file."""
    with open_source(path) as source:
        for match in matches(source):
            if isinstance(match, Loss):
                yield match
            else:
                yield from match.format.read(match.source)


def read_bytes(folder: Path, data: bytes, name: str = "file") -> Read:
    """Read a file with this content."""
    path = folder / name
    path.write_bytes(data)
    return read_file(path)


class Landed:
    """What was read, in a store in memory: an importer of a few lines, so that views can be folded."""

    def __init__(self, read: Read) -> None:
        self.store = MemoryStore()
        session = SessionId(derive_id("session"))
        self.store.create_session(SessionRecord(session_id=session))
        self.nodes: dict[str, Node] = {}
        for event in read.events:
            if isinstance(event, Branch):
                self._branch(event, session)
            elif isinstance(event, Put):
                self._put(event)

    def _branch(self, branch: Branch, session: SessionId) -> None:
        ranges: tuple[Span, ...] = ()
        if branch.parent is not None and branch.relation == "fork":
            parent = self.nodes[branch.parent]
            ranges = (*parent.ranges, *((Span(parent.dialog_id, 0, branch.at),) if branch.at else ()))
        parent_id = None if branch.parent is None else self.id(branch.parent)
        node = Node(dialog_id=self.id(branch.dialog), session_id=session, parent_id=parent_id, ranges=ranges)
        self.nodes[branch.dialog] = self.store.create_dialog(node)

    def _put(self, put: Put) -> None:
        dialog = self.id(put.dialog)
        entry = decode_entry(canonical_json(self._renamed(json.loads(draft(put.entry)[0].body))))
        last = self.store.last(dialog)
        ready, _ = draft(entry, continues=last.response)
        if rule(entry.kind).turn:
            self.store.append(dialog, [ready], last.turn_head)
        else:
            self.store.annotate(dialog, ready)

    def _renamed(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, list):
            return [self._renamed(item) for item in value]
        if not isinstance(value, dict):
            return value
        changed = {name: self._renamed(item) for name, item in value.items()}
        if isinstance(value.get("dialog"), str) and ("seq" in value or "start" in value):
            changed["dialog"] = self.id(value["dialog"])
        return changed

    @staticmethod
    def id(key: str) -> DialogId:
        """Give the id of the dialog with this key."""
        return DialogId(derive_id("dialog", key))

    def view(self, dialog: str = "main", *, whole: bool = False) -> View:
        """Fold a dialog."""
        return fold(self.store, self.id(dialog), whole=whole)


def shown(view: View) -> list[str]:
    """Give what a view shows, a line a block: the role, and the text, call or result."""
    lines = []
    for exchange in view.exchanges:
        for turn in exchange.turns:
            for block in turn.blocks:
                content: Any = block.content
                words = {
                    "text": "{0.content}",
                    "tool_call": "{0.name}({0.id})",
                    "tool_result": "{0.id}={1}",
                    "thinking": "({0.content})",
                }.get(content.type, content.type)
                result = content.text() if isinstance(content, ToolResultContent) else ""
                words = words.format(content, result)
                lines.append(f"{turn.role.value}: {words}")
    return lines


# --- Claude Code ----------------------------------------------------------------------------------------------------------


class Claude:
    """Writes the records of a Claude Code session; each follows the one before unless told otherwise."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self._last: str | None = None
        self._count = 0

    def record(self, kind: str, uuid: str, *, after: str | None = "", **values: Any) -> str:  # noqa: ANN401
        """Add a record of the chain."""
        self._count += 1
        parent = self._last if after == "" else after
        base = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/u/project",
            "sessionId": "session-1",
            "version": "2.1.36",
            "gitBranch": "main",
            "type": kind,
            "uuid": uuid,
            "timestamp": STAMP.format(self._count % 60),
        }
        self.records.append(base | values)
        self._last = uuid
        return uuid

    def user(self, uuid: str, content: object, **values: Any) -> str:  # noqa: ANN401
        """Add words of the user."""
        return self.record("user", uuid, message={"role": "user", "content": content}, **values)

    def result(self, uuid: str, call: str, content: object = "done", **values: Any) -> str:  # noqa: ANN401
        """Add a tool's result."""
        block = {"tool_use_id": call, "type": "tool_result", "content": content, "is_error": False}
        return self.user(uuid, [block], toolUseResult={"stdout": content}, **values)

    def model(self, uuid: str, response: str, *blocks: Mapping[str, Any], output: int = 1, **values: Any) -> str:  # noqa: ANN401
        """Add a fragment of a response."""
        message = {
            "model": values.pop("model", "claude-opus-4-6"),
            "id": response,
            "type": "message",
            "role": "assistant",
            "content": list(blocks),
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 100, "output_tokens": output},
        }
        return self.record("assistant", uuid, message=message, requestId="req", **values)

    def other(self, **values: Any) -> None:  # noqa: ANN401
        """Add a record that stands outside the chain."""
        self.records.append(values)

    def bytes(self) -> bytes:
        """Write the file."""
        return jsonl(*self.records)


def text(words: str) -> dict[str, Any]:
    """Write a text block of Anthropic's."""
    return {"type": "text", "text": words}


def call(call_id: str, name: str = "Bash", **arguments: object) -> dict[str, Any]:
    """Write a call of Anthropic's."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {"command": "ls"}}


# --- Codex ----------------------------------------------------------------------------------------------------------------


def codex(*records: tuple[str, Mapping[str, Any]]) -> bytes:
    """Write a rollout: its head, and records as (type, payload)."""
    head = {
        "id": "thread-1",
        "timestamp": STAMP.format(0),
        "cwd": "/home/u/project",
        "cli_version": "0.142.2",
        "model_provider": "openai",
        "base_instructions": {"text": "You are Codex."},
    }
    found = [("session_meta", head), *records]
    return jsonl(
        *(
            {"timestamp": STAMP.format(i % 60), "type": kind, "payload": dict(value)}
            for i, (kind, value) in enumerate(found)
        )
    )


def item(kind: str, **values: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401
    """Write a response item."""
    return "response_item", {"type": kind, **values}


def said(role: str, words: str, **values: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401
    """Write a message item."""
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": words}], **values)


def event(kind: str, **values: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401
    """Write an event of the screen."""
    return "event_msg", {"type": kind, **values}


def tokens(last: int, total: int) -> tuple[str, dict[str, Any]]:
    """Write a count of tokens."""
    figures = [
        {"input_tokens": n, "cached_input_tokens": 0, "output_tokens": 1, "total_tokens": n + 1} for n in (last, total)
    ]
    return event("token_count", info={"last_token_usage": figures[0], "total_token_usage": figures[1]})
