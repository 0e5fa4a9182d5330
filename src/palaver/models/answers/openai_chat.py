"""Answers of OpenAI's Chat Completions API, and of the many servers that speak it (platform.openai.com/docs/api-reference/chat).

Beside what OpenAI sends, read are the reasoning of DeepSeek and vLLM (`reasoning_content`), of OpenRouter and newer vLLM (`reasoning`,
`reasoning_details`), and LiteLLM's `thinking_blocks`. An answer has one text, whose place among the calls nobody tells: blocks stand in
the order thinking, text, refusal, calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from palaver.messages import APITypes, StopReason
from palaver.models.answers.reading import AnswerReader, Json, items, mapping, text
from palaver.models.events import Event
from palaver.wire import Request

__all__ = ["ChatAnswer"]

_THOUGHTS = 900
"""The place of the text: thinking blocks stand before it, one each."""
_REFUSAL = _THOUGHTS + 1
_CALLS = _REFUSAL + 1
_REASONING = ("reasoning_content", "reasoning")


class ChatAnswer(AnswerReader):
    """Reads a chat completion, or its chunks."""

    _api = APITypes.COMPLETION

    def __init__(self, request: Request, provider: str) -> None:
        """Begin to read the answer to a request."""
        super().__init__(request, provider)
        self._places: dict[object, int] = {}
        self._spelt: dict[int, str] = {}
        self._thought = 0
        self._refused = False
        self._details: list[Json] = []

    def _whole(self, data: Json) -> Iterator[Event]:
        choices = items(data.get("choices"))
        if not choices:
            self._judge(data)
            raise self.broken("The answer has no choice")
        yield from self._piece({**data, "choices": [{**choices[0], "delta": choices[0].get("message")}]})

    def _piece(self, data: Json) -> Iterator[Event]:
        self._judge(data)
        self._response_id = text(data.get("id")) or self._response_id
        self._named(data.get("model"))
        if text(data.get("system_fingerprint")):
            self._about["system_fingerprint"] = data["system_fingerprint"]
        for choice in items(data.get("choices"))[:1]:
            yield from self._delta(mapping(choice.get("delta")))
            self._stop = text(choice.get("finish_reason")) or self._stop
            if text(choice.get("finish_reason")) == "error":
                self._judge(choice)
        yield from self._used(data.get("usage"))

    def _delta(self, delta: Json) -> Iterator[Event]:
        yield from self._thoughts(delta)
        yield from self._text(_THOUGHTS, _words(delta.get("content")))
        refusal = text(delta.get("refusal"))
        if refusal:
            fields: dict[str, Any] = {} if self._refused else {"part_type": "refusal"}
            self._refused = True
            yield from self._text(_REFUSAL, refusal, **fields)
        for number, call in enumerate(items(delta.get("tool_calls"))):
            yield from self._tool_call(call, number)
        legacy = mapping(delta.get("function_call"))
        if legacy:
            yield from self._tool_call({"index": 0, "id": "call_0", "function": legacy}, 0)

    def _tool_call(self, call: Json, number: int) -> Iterator[Event]:
        """Read more of a call. Servers that do not number calls give each a new id; some repeat the name in every chunk."""
        function = mapping(call.get("function"))
        call_id, name = text(call.get("id")), text(function.get("name"))
        key = call.get("index") if isinstance(call.get("index"), int) else (call_id or number)
        index = _CALLS + self._places.setdefault(key, len(self._places))
        if name and self._spelt.get(index, "") not in {"", name}:
            name = self._spelt[index] + name
        self._spelt[index] = name or self._spelt.get(index, "")
        arguments = function.get("arguments")
        yield from self._call(index, call_id, name, _written(arguments))

    def _thoughts(self, delta: Json) -> Iterator[Event]:
        blocks = items(delta.get("thinking_blocks"))
        if blocks:
            for block in blocks:
                yield from self._thinking_block(block)
            return
        said = next(filter(None, (text(delta.get(key)) for key in _REASONING)), "")
        self._details += items(delta.get("reasoning_details"))
        fields: dict[str, Any] = (
            {"artefact": {"reasoning_details": self._details}} if delta.get("reasoning_details") else {}
        )
        if said or fields:
            yield from self._thinking(0, said, provider=self._provider, model=self._model, **fields)

    def _thinking_block(self, block: Json) -> Iterator[Event]:
        """Read a block of Anthropic's as LiteLLM passes it on; a signature ends one."""
        owner = {"provider": "anthropic", "model": self._model}
        if text(block.get("type")) == "redacted_thinking":
            yield from self._thinking(self._thought, "", redacted=text(block.get("data")), **owner)
            self._thought += 1
            return
        signature = text(block.get("signature"))
        yield from self._thinking(self._thought, text(block.get("thinking")), signature or None, **owner)
        self._thought += 1 if signature or not self._streamed else 0

    def _judge(self, data: Json) -> None:
        """Raise what the answer says in place of a choice."""
        error = data.get("error")
        if isinstance(error, str) and error:
            raise self.failed(error, details=data)
        if isinstance(error, Mapping):
            code = error.get("code")
            word = str(code) if isinstance(code, int) else text(code)
            raise self.failed(text(error.get("message")), word, text(error.get("type")), details=data)

    def _reason(self) -> StopReason | None:
        """Give why the model stopped; a refusal has no word of its own here."""
        return StopReason.ERROR if self._refused else super()._reason()


def _words(content: object) -> str:
    """Give the text of content; Mistral sends it in parts."""
    if isinstance(content, str):
        return content
    return "".join(text(part.get("text")) for part in items(content) if part.get("type") in {"text", None})


def _written(arguments: object) -> str:
    """Give arguments as JSON text; Ollama and others send the object itself."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
