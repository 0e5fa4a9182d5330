"""The stand-ins as sides of the histories of :mod:`palaver.testing.binding_laws`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from palaver.testing import strict

__all__ = ["AnthropicSide", "ChatSide", "GeminiSide", "ResponsesSide"]

Json = dict[str, Any]

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


class AnthropicSide:
    """Anthropic's Messages API."""

    api = "anthropic"
    headers: Mapping[str, str] = MappingProxyType({"x-api-key": "key", "anthropic-version": "2026-10-21"})

    def __init__(self, *models: str, offered: str = "web_search") -> None:
        """Choose the models, and the tool that the server runs; empty for none."""
        self.offered = offered
        self.models: Sequence[str] = models or (
            "claude-fable-5-1",
            "claude-fable-5-2",
            "claude-opus-5-5",
            "claude-opus-5",
        )
        self.server = strict.anthropic()

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
        """Return whether a report of the server is about that message, or about thinking that it takes no longer because of it."""
        return str(dropped.get("path", "")).startswith(f"messages.{at}.") or "prefix" in str(dropped.get("reason"))


class ResponsesSide:
    """OpenAI's Responses API."""

    api = "openai-responses"
    offered = ""
    headers: Mapping[str, str] = MappingProxyType({"authorization": "Bearer key"})

    def __init__(self, *models: str, server: strict.StrictServer | None = None) -> None:
        """Choose the models."""
        self.models: Sequence[str] = models or ("gpt-6.2-sol", "gpt-6.2-astra", "gpt-6-sol", "gpt-5.6-luna")
        self.server = server or strict.openai_responses()

    def path(self, model: str) -> str:
        """Return the path of requests."""
        del model
        return "/v1/responses"

    def said(self, kind: str, tag: str, *, resumed: bool) -> list[Json | str]:
        """Return the content of an answer of a kind."""
        del resumed
        think: Json = {"type": "reasoning"}
        call: Json = {"type": "function_call", "name": "bash", "arguments": f'{{"command": "{tag}"}}'}
        contents: dict[str, list[Json | str]] = {
            "say": [think, f"answer {tag}"],
            "call": [think, call],
            "calls": [think, f"calls {tag}", call, call],
            "late": [f"first {tag}", think, call],
            "novel": [think, {"type": "novelty", "tag": tag}, f"answer {tag}"],
            "silent": [f"answer {tag}"],
        }
        return contents.get(kind, contents["say"])

    def content(self, answer: Json) -> list[Json]:
        """Return the items of an answer."""
        return [_plain(item) for item in answer["output"]]

    def calls(self, answer: Json) -> list[str]:
        """Return the ids of the calls that are ours to run."""
        return [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]

    def waits(self, answer: Json) -> bool:
        """Return whether the turn is paused: never."""
        del answer
        return False

    def thinks(self, block: Json) -> bool:
        """Return whether an item is reasoning."""
        return bool(block["type"] == "reasoning")

    def matched(self, body: Json, answer: Sequence[Json]) -> tuple[int, list[Json]] | None:
        """Return where the first call or text of an answer is, with the items of the answer around it."""
        items = [_plain(item) for item in body["input"]]
        marks = [_item_mark(item) for item in answer if _item_mark(item)]
        at = next((n for n, item in enumerate(items) if marks and _item_mark(item) == marks[0]), None)
        if at is None:
            return None
        seen = [item for item in answer if _encrypted(item) in map(_encrypted, items)]
        return at, seen

    def restored(self, body: Json, at: int, answer: Sequence[Json]) -> Json:
        """Return the request with the reasoning of an answer before its first other item."""
        reasoning = [item for item in answer if item["type"] == "reasoning"]
        return body | {"input": [*body["input"][:at], *reasoning, *body["input"][at:]]}

    def concerns(self, dropped: Json, at: int) -> bool:
        """Return whether a report of the server is about a place: any counts."""
        del dropped, at
        return True


class ChatSide:
    """Chat completions of a server."""

    api = "openai"
    offered = ""
    headers: Mapping[str, str] = MappingProxyType({"authorization": "Bearer key"})

    def __init__(self, *models: str, server: str = "openai") -> None:
        """Choose the server and the models."""
        self.models: Sequence[str] = models or ("gpt-5.2", "gpt-4.1")
        self.server = strict.openai_chat(server=server)

    def path(self, model: str) -> str:
        """Return the path of requests."""
        del model
        return "/v1/chat/completions"

    def said(self, kind: str, tag: str, *, resumed: bool) -> list[Json | str]:
        """Return the content of an answer of a kind."""
        del resumed
        think: Json = {"type": "reasoning", "text": f"thought {tag}"}
        call: Json = {"type": "function", "name": "bash", "arguments": f'{{"command": "{tag}"}}'}
        contents: dict[str, list[Json | str]] = {
            "call": [think, call],
            "calls": [think, f"calls {tag}", call, call],
        }
        return contents.get(kind, [think, f"answer {tag}"])

    def content(self, answer: Json) -> list[Json]:
        """Return nothing: its reasoning is not bound."""
        del answer
        return []

    def calls(self, answer: Json) -> list[str]:
        """Return the ids of the calls that are ours to run."""
        return [call["id"] for call in answer["choices"][0]["message"].get("tool_calls") or []]

    def waits(self, answer: Json) -> bool:
        """Return whether the turn is paused: never."""
        del answer
        return False

    def thinks(self, block: Json) -> bool:
        """Return whether a block is bound: none is."""
        del block
        return False

    def matched(self, body: Json, answer: Sequence[Json]) -> tuple[int, list[Json]] | None:
        """Return None."""
        del body, answer
        return None

    def restored(self, body: Json, at: int, answer: Sequence[Json]) -> Json:
        """Return the request."""
        del at, answer
        return body

    def concerns(self, dropped: Json, at: int) -> bool:
        """Return whether a report of the server is about a place."""
        del dropped, at
        return False


class GeminiSide(ChatSide):
    """Gemini's generateContent."""

    api = "gemini"
    headers: Mapping[str, str] = MappingProxyType({"x-goog-api-key": "key"})

    def __init__(self, *models: str) -> None:
        """Choose the models."""
        super().__init__(*(models or ("gemini-3.6-flash", "gemini-4-argon", "gemini-2.5-pro")))
        self.server = strict.gemini()

    def path(self, model: str) -> str:
        """Return the path of requests."""
        return f"/v1beta/models/{model}:generateContent"

    def said(self, kind: str, tag: str, *, resumed: bool) -> list[Json | str]:
        """Return the content of an answer of a kind."""
        del resumed
        think: Json = {"text": f"thought {tag}", "thought": True}
        call: Json = {"functionCall": {"name": "bash", "args": {"command": tag}}}
        contents: dict[str, list[Json | str]] = {
            "call": [think, call],
            "calls": [think, f"calls {tag}", call, call],
            "silent": [f"answer {tag}"],
            "late": [f"first {tag}", call],
            "novel": [{"novelty": tag}, f"answer {tag}"],
        }
        return contents.get(kind, [think, f"answer {tag}"])

    def calls(self, answer: Json) -> list[str]:
        """Return the ids of the calls that are ours to run."""
        parts = answer["candidates"][0]["content"]["parts"]
        return [part["functionCall"].get("id", "") for part in parts if "functionCall" in part]


def _plain(block: Json) -> Json:
    return {name: value for name, value in block.items() if name != "cache_control" and value is not None}


def _marks(blocks: Sequence[Json]) -> list[str]:
    """Return what an answer is known by: its texts, and the ids of its calls."""
    return [
        block["text"] if block["type"] == "text" else block["id"]
        for block in blocks
        if block["type"] in ("text", "tool_use")
    ]


def _item_mark(item: Json) -> str:
    """Return what an item is known by: its text, or the id of its call."""
    if item.get("type", "message") == "message" and item.get("role") == "assistant":
        content = item["content"]
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return str(item.get("call_id", "")) if item.get("type") == "function_call" else ""


def _encrypted(item: Json) -> str:
    """Return what makes an item the same: its encrypted content, or its mark."""
    return str(item.get("encrypted_content") or _item_mark(item) or item)
