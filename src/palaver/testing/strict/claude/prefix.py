"""The prefix of a block in a conversation, as a rolling digest.

https://platform.claude.com/docs/en/build-with-claude/preserved-thinking, what counts as an edit: the prefix is the top-level system prompt, the tools, and
every earlier message, from the newest compaction block on. Outside it are cache marks, the order of keys, every other parameter, deferred tools that
nothing referenced, and blocks of thinking: those have a chain of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from palaver.testing.strict.claude.fields import blocks
from palaver.testing.strict.claude.tools import deferred, references
from palaver.testing.strict.claude.turns import compaction_at
from palaver.testing.strict.seal import Json, Seal, digest

__all__ = ["THOUGHTS", "Prefix", "Thought", "walk"]

THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_MESSAGE_FIELDS: Final = ("clear_at", "output_config")


@dataclass(frozen=True, slots=True)
class Thought:
    """A block of thinking in a request, with the digests at its place: before its turn of the assistant, before itself, and of its turn alone."""

    where: str
    block: Json
    turn: int
    run: str
    now: str
    inner: str

    @property
    def text(self) -> str:
        """The text that the block shows."""
        return str(self.block.get("thinking", ""))

    @property
    def signature(self) -> str:
        """The sealed text."""
        return str(self.block.get("signature", self.block.get("data", "")))


@dataclass(slots=True)
class Prefix:
    """The digest of what was sent so far."""

    system: str
    tools: str
    deferred: dict[str, Json] = field(default_factory=dict)
    now: str = ""
    run: str = ""
    inner: str = ""
    role: str = ""
    turn: int = 0
    assistant: str = ""
    thoughts: list[Thought] = field(default_factory=list)

    @property
    def head(self) -> str:
        """The digest of the system prompt and the tools."""
        return digest(self.system, self.tools)

    def enter(self, role: str, *, results: bool = False) -> None:
        """Begin a message; consecutive messages of one role are one turn. A message of results does not end the turn of the assistant."""
        if role != self.role or role == "system":
            self.now = digest(self.now, role)
            self.run, self.inner = self.now, ""
            self.assistant = self.now if role == "assistant" else self.assistant
            self.turn += role == "user" and not results
        self.role = role

    def add(self, where: str, block: Json) -> None:
        """Add a block to the turn."""
        if block["type"] in THOUGHTS:
            self.thoughts.append(Thought(where, block, self.turn, self.run, self.now, self.inner))
            return
        self.now = digest(self.now, plain(block))
        self.inner = digest(self.inner, plain(block))
        for name in references(block):
            self.now = digest(self.now, plain(self.deferred.get(name, {})))

    def compact(self, block: Json, seal: Seal) -> None:
        """Begin anew after a compaction block; a signed one stands for the messages that it summarizes."""
        self.thoughts.clear()
        summary = seal.open("summary", block.get("signature")) or {}
        same = summary.get("head") == self.head and summary.get("end")
        self.now = str(summary["end"]) if same else digest(self.head, plain(block))
        self.role = ""

    def after_summary(self, role: str) -> None:
        """Note the role of the first kept message: after a system message at that place, the kept thinking is not valid."""
        if role == "system":
            self.now = digest(self.now, "a system message directly after the summary")

    def take(self, message: Json, listed: Sequence[tuple[str, Json]]) -> None:
        """Add a message with these of its blocks."""
        settings = {name: message[name] for name in _MESSAGE_FIELDS if name in message}
        if not listed and not settings:
            return
        results = bool(listed) and all(block["type"] == "tool_result" for _, block in listed)
        self.enter(message["role"], results=results)
        if settings:
            self.now = digest(self.now, settings)
        for where, block in listed:
            self.add(where, block)


def plain(block: Json) -> Json:
    """Return a block without what does not bind: cache marks, fields that say nothing, and the query of a URL, which rotates."""
    out = {key: value for key, value in block.items() if key != "cache_control" and value is not None}
    if out.get("caller") == {"type": "direct"}:
        del out["caller"]
    if isinstance(out.get("content"), list):
        out["content"] = [plain(part) if isinstance(part, dict) else part for part in out["content"]]
    source = out.get("source")
    if isinstance(source, dict) and source.get("type") == "url":
        out["source"] = source | {"url": str(source.get("url")).partition("?")[0]}
    return out


def walk(body: Json, seal: Seal) -> Prefix:
    """Return the prefix of what would come next, with the blocks of thinking since the newest compaction block."""
    system = body.get("system") or []
    texts = [{"type": "text", "text": system}] if isinstance(system, str) else [plain(block) for block in system]
    offered = [plain(tool) for tool in body.get("tools") or () if not tool.get("defer_loading")]
    prefix = Prefix(digest(texts), digest(offered), deferred(body))
    prefix.now = prefix.head
    begin = compaction_at(body["messages"])
    for at, message in enumerate(body["messages"][begin[0] :], begin[0]):
        listed = [(f"messages.{at}.content.{n}", block) for n, block in enumerate(blocks(message)) if (at, n) >= begin]
        if at == begin[0] and listed and _summarizes(listed[0][1]):
            prefix.compact(listed.pop(0)[1], seal)
        elif not prefix.role:
            prefix.after_summary(message["role"])
        prefix.take(
            message, [pair for pair in listed if pair[1]["type"] != "compaction"]
        )  # a failed one counts as nothing
    return prefix


def _summarizes(block: Json) -> bool:
    return block["type"] == "compaction" and block.get("content") is not None
