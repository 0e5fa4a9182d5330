"""The stand-ins as sides of the histories of :mod:`palaver.testing.binding_laws`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from palaver.testing import strict

__all__ = ["AnthropicSide"]

Json = dict[str, Any]

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


class AnthropicSide:
    """Anthropic's Messages API."""

    api = "anthropic"
    offered = "web_search"
    headers: Mapping[str, str] = MappingProxyType({"x-api-key": "key", "anthropic-version": "2026-10-21"})

    def __init__(self, *models: str, server: strict.StrictServer | None = None) -> None:
        """Choose the models."""
        self.models: Sequence[str] = models or (
            "claude-fable-5-1",
            "claude-fable-5-2",
            "claude-opus-5-5",
            "claude-opus-5",
        )
        self.server = server or strict.anthropic()

    def path(self, model: str) -> str:
        """Return the path of requests."""
        del model
        return "/v1/messages"

    def said(self, kind: str, tag: str, *, resumed: bool) -> list[Json | str]:
        """Return the content of an answer of a kind."""
        think: Json = {"type": "thinking", "thinking": f"thought {tag}"}
        call: Json = {"type": "tool_use", "name": "bash", "input": {"command": tag}}
        search: Json = {"type": "server_tool_use", "name": "web_search", "input": {"query": tag}}
        found: Json = {"type": "web_search_tool_result", "content": []}
        contents: dict[str, list[Json | str]] = {
            "say": [think, f"answer {tag}"],
            "call": [think, call],
            "calls": [think, f"calls {tag}", call, call],
            "late": [f"first {tag}", call, think, call],
            "search": [think, search, found, think, f"found {tag}"],
            "pause": [think, f"searching {tag}", search],
            "mixed": [think, search, call],
            "redacted": [{"type": "redacted_thinking"}, f"answer {tag}"],
            "novel": [think, {"type": "novelty", "tag": tag}, f"answer {tag}"],
            "silent": [f"answer {tag}"],
        }
        return [found, *contents[kind]] if resumed else contents[kind]

    def content(self, answer: Json) -> list[Json]:
        """Return the blocks of an answer."""
        return [_plain(block) for block in answer["content"]]

    def calls(self, answer: Json) -> list[str]:
        """Return the ids of the calls that are ours to run."""
        return [block["id"] for block in answer["content"] if block["type"] == "tool_use"]

    def waits(self, answer: Json) -> bool:
        """Return whether a tool of the server waits."""
        found = {block.get("tool_use_id") for block in answer["content"]}
        return any(block["type"] == "server_tool_use" and block["id"] not in found for block in answer["content"])

    def thinks(self, block: Json) -> bool:
        """Return whether a block is thinking."""
        return block["type"] in _THOUGHTS

    def matched(self, body: Json, answer: Sequence[Json]) -> tuple[int, list[Json]] | None:
        """Return the message with the texts and calls of an answer, and no others."""
        for at, message in enumerate(body["messages"]):
            if message["role"] == "assistant" and not isinstance(message["content"], str):
                blocks = [_plain(block) for block in message["content"]]
                if _marks(blocks) == _marks(answer) != []:
                    return at, blocks
        return None

    def restored(self, body: Json, at: int, answer: Sequence[Json]) -> Json:
        """Return the request with the whole answer at that place."""
        messages = list(body["messages"])
        messages[at] = {"role": "assistant", "content": list(answer)}
        return body | {"messages": messages}

    def concerns(self, dropped: Json, at: int) -> bool:
        """Return whether a report of the server is about that message."""
        return str(dropped.get("path", "")).startswith(f"messages.{at}.")


def _plain(block: Json) -> Json:
    return {name: value for name, value in block.items() if name != "cache_control" and value is not None}


def _marks(blocks: Sequence[Json]) -> list[str]:
    """Return what an answer is known by: its texts, and the ids of its calls."""
    return [
        block["text"] if block["type"] == "text" else block["id"]
        for block in blocks
        if block["type"] in ("text", "tool_use")
    ]
