"""Answers of OpenAI's Chat Completions API, and of the many servers that speak it (platform.openai.com/docs/api-reference/chat).

Beyond OpenAI's fields it reads the reasoning of DeepSeek, LiteLLM and vLLM (`reasoning_content`) and of OpenRouter and newer vLLM
(`reasoning`, `reasoning_details`). The API does not say where the text is among the calls; blocks are ordered thinking, text, refusal, calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver.messages import APITypes, StopReason
from palaver.providers.provider import Event
from palaver.providers.reader import AnswerReader, Json, as_json, items, kept, mapping, text
from palaver.wire import Request

_THINKING, _TEXT, _REFUSAL, _CALLS = range(4)
"""The indices of blocks; calls follow from the last on."""
_REASONING = ("reasoning_content", "reasoning")
_READ = frozenset({
    "id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier", "error", "obfuscation",
    "index", "message", "delta", "finish_reason", "logprobs",
    "role", "content", "refusal", "tool_calls", "function_call", *_REASONING, "reasoning_details",
})  # fmt: skip
"""The fields of completions, choices and messages that are read, or say nothing about the answer."""


class ChatAnswer(AnswerReader):
    """Reads a chat completion, or its chunks."""

    _api = APITypes.COMPLETION

    def __init__(self, request: Request, provider: str) -> None:
        """Begin to read the answer to a request."""
        super().__init__(request, provider)
        self._places: dict[object, int] = {}
        self._called: dict[int, str] = {}
        self._refused = False
        self._details: list[Json] = []
        self._field = ""

    def _whole(self, data: Json) -> Iterator[Event]:
        choices = items(data.get("choices"))
        if not choices:
            self._judge(data)
            raise self.broken("The answer has no choice.")
        yield from self._piece({**data, "choices": [{**choices[0], "delta": choices[0].get("message")}]})

    def _piece(self, data: Json) -> Iterator[Event]:
        self._judge(data)
        self._response_id = text(data.get("id")) or self._response_id
        self._served_by(data.get("model"))
        self._others(data, _READ)
        for choice in items(data.get("choices"))[:1]:
            self._others(choice, _READ)
            self._others(mapping(choice.get("delta")), _READ)
            yield from self._delta(mapping(choice.get("delta")))
            self._stop = text(choice.get("finish_reason")) or self._stop
            if text(choice.get("finish_reason")) == "error":
                self._judge(choice)
        yield from self._used(data.get("usage"))

    def _delta(self, delta: Json) -> Iterator[Event]:
        yield from self._thoughts(delta)
        yield from self._text(_TEXT, _words(delta.get("content")))
        refusal = text(delta.get("refusal"))
        if refusal:
            fields: dict[str, Any] = {} if self._refused else {"part_type": "refusal"}
            self._refused = True
            yield from self._text(_REFUSAL, refusal, **fields)
        for number, call in enumerate(items(delta.get("tool_calls"))):
            yield from self._tool_call(call, number)

    def _tool_call(self, call: Json, number: int) -> Iterator[Event]:
        """Read more of a call. Some servers number calls by id only; some repeat the name in every chunk."""
        function = mapping(call.get("function"))
        call_id, name = text(call.get("id")), text(function.get("name"))
        key = call.get("index") if isinstance(call.get("index"), int) else (call_id or number)
        index = _CALLS + self._places.setdefault(key, len(self._places))
        if name and self._called.get(index, "") not in {"", name}:
            name = self._called[index] + name
        self._called[index] = name or self._called.get(index, "")
        signed = text(mapping(mapping(call.get("extra_content")).get("google")).get("thought_signature"))
        more = kept(call, "index", "id", "type", "function", "extra_content")
        more |= {"artefact": {"thoughtSignature": signed}} if signed else {}
        yield from self._call(index, call_id, name, as_json(function.get("arguments")), **more)

    def _thoughts(self, delta: Json) -> Iterator[Event]:
        """Read reasoning, with the field that it came in: it goes back in that one."""
        key = next((key for key in _REASONING if text(delta.get(key))), "")
        said = text(delta.get(key)) or _thought(delta.get("content"))
        self._details += items(delta.get("reasoning_details"))
        fields: dict[str, Any] = {}
        self._field = self._field or key
        if self._details or self._field == "reasoning":
            details = {"reasoning_details": self._details} if self._details else {}
            fields["artefact"] = {**({"field": self._field} if self._field else {}), **details}
        if said or delta.get("reasoning_details"):
            yield from self._thinking(_THINKING, said, provider=self._provider, model=self._model, **fields)

    def _judge(self, data: Json) -> None:
        """Raise the error that the answer reports in place of a choice."""
        error = data.get("error")
        if error and isinstance(error, str | Mapping):
            raise self.failed({"message": error} if isinstance(error, str) else error, data)

    def _reason(self, *, calls: bool) -> StopReason | None:
        """Return the stop reason; the API has none for a refusal."""
        return StopReason.REFUSAL if self._refused else super()._reason(calls=calls)


def _words(content: object) -> str:
    """Return the text of content; Mistral sends it in parts."""
    if isinstance(content, str):
        return content
    return "".join(text(part.get("text")) for part in items(content) if part.get("type") in {"text", None})


def _thought(content: object) -> str:
    """Return the reasoning in content that is a list of parts, as Mistral sends it."""
    thoughts = [part for part in items(content) if part.get("type") == "thinking"]
    return "".join(text(inner.get("text")) for part in thoughts for inner in items(part.get("thinking")))


READER = ChatAnswer
