"""Chat completions, of OpenAI and of other servers: the rules that all share, and the answers, whole or as chunks."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from palaver.testing.strict.openai.fields import error_body
from palaver.testing.strict.openai.servers import SERVERS, ChatRules, refuse
from palaver.testing.strict.seal import Json, Seal, canonical
from palaver.testing.strict.server import HttpRequest, NextAnswer, Refused, Reply, Script

__all__ = ["ChatApi"]

_CHARACTERS_PER_TOKEN: Final = 4
_USUAL: Final = NextAnswer(({"type": "reasoning", "text": "hm"}, "Well."))
_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_FIELDS: Final = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
_ID_LENGTH: Final = 9
"""The length of a call's id that every server accepts."""


class ChatApi:
    """Chat completions of one server."""

    def __init__(self, *, server: str = "openai", key: str = "strict") -> None:
        """Make the API.

        Args:
            server: The server whose rules hold: a name in `SERVERS`.
            key: The key of its signatures.
        """
        self._server: ChatRules = SERVERS[server]
        self._seal = Seal(key)
        self._serial = 0
        self._lock = threading.Lock()

    def error(self, status: int, message: str) -> Json:
        """Return the body of an error."""
        return error_body(status, message)

    def reply(self, asked: HttpRequest, script: Script) -> Reply:
        """Return the answer to a request."""
        path, body = asked.path.partition("?")[0], asked.body
        if not path.endswith("/chat/completions") or asked.method != "POST":
            raise Refused(404, error_body(404, f"Invalid URL ({asked.method} {asked.path})"))
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            refuse("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
        for at, message in enumerate(body["messages"]):
            _check_message(self._server, at, message)
        _check_pairs(body["messages"])
        if self._server.check is not None:
            self._server.check(body, self._seal)
        with self._lock:
            self._serial += 1
            serial = f"{self._serial:06d}"
        answer = script.next(asked, _USUAL)
        completion = self._completion(body, answer, serial)
        stream: list[tuple[str, Json | str]] = [*_chunks(completion), ("", "[DONE]")]
        return Reply(completion, stream if body.get("stream") else None, cut=answer.cut)

    def _completion(self, body: Json, answer: NextAnswer, serial: str) -> Json:
        message = self._message(answer.content, serial)
        size, made = (len(canonical(value)) // _CHARACTERS_PER_TOKEN for value in (body["messages"], message))
        reason = answer.stop or (self._server.stops if message.get("tool_calls") else "stop")
        return {
            "id": f"chatcmpl-{serial}",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": body.get("model"),
            "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
            "usage": {"prompt_tokens": size, "completion_tokens": made, "total_tokens": size + made},
        } | dict(answer.fields)

    def _message(self, content: Sequence[Json | str], serial: str) -> Json:
        listed: list[Json] = [
            {"type": "text", "text": said} if isinstance(said, str) else dict(said) for said in content
        ]
        text = "".join(part["text"] for part in listed if part["type"] == "text")
        thought = "".join(part.get("text", "") for part in listed if part["type"] == "reasoning")
        calls = [self._call(part, f"{serial}{at:03d}") for at, part in enumerate(listed) if part["type"] == "function"]
        message: Json = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = calls
            self._sign(calls)
        if thought:
            message |= self._reasoning(thought, text)
        return message

    def _call(self, part: Json, serial: str) -> Json:
        named = part.get("function", part)  # as the API nests it, or flat
        function = {"name": named["name"], "arguments": named.get("arguments", "{}")}
        return {"id": part.get("id", serial[-_ID_LENGTH:]), "type": "function", "function": function}

    def _sign(self, calls: list[Json]) -> None:
        if self._server.name == "gemini":
            calls[0]["extra_content"] = {
                "google": {"thought_signature": self._seal.close("chat", {"call": calls[0]["id"]})}
            }

    def _reasoning(self, thought: str, text: str) -> Json:
        field = self._server.field
        if field == "reasoning_details":
            data = self._seal.close("chat", {"text": thought})
            details = [{"type": "reasoning.text", "text": thought}, {"type": "reasoning.encrypted", "data": data}]
            return {"reasoning": thought, field: details}
        if field == "content":
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": thought}], "closed": True}
            return {field: [thinking, *([{"type": "text", "text": text}] if text else [])]}
        return {field: thought} if field else {}


def _check_message(server: ChatRules, at: int, message: Json) -> None:
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        refuse(
            f"Invalid value: '{role}'. Supported values are: {', '.join(map(repr, _ROLES))}.",
            f"messages[{at}].role",
            "invalid_value",
        )
    if server.fields is not None:
        for name in message:
            if name not in _FIELDS | server.fields:
                _refuse_field(server, at, str(role), name)
    _check_parts(server, at, content)
    if content is None and not (role == "assistant" and (message.get("tool_calls") or message.get("function_call"))):
        refuse("Invalid value for 'content': expected a string, got null.", f"messages[{at}].content")


_PARTS: Final = ("text", "image_url", "input_audio", "file", "refusal", "video_url", "document_url")


def _check_parts(server: ChatRules, at: int, content: object) -> None:
    known = (*_PARTS, "thinking") if server.field == "content" else _PARTS
    for number, part in enumerate(content if isinstance(content, list) else ()):
        if part.get("type") not in known:
            text = f"Invalid value: '{part.get('type')}'. Supported values are: {', '.join(map(repr, known))}."
            refuse(text, f"messages[{at}].content[{number}].type", "invalid_value")


def _refuse_field(server: ChatRules, at: int, role: str, name: str) -> None:
    if server.name == "mistral":
        detail = {
            "type": "extra_forbidden",
            "loc": ["body", "messages", at, role, name],
            "msg": "Extra inputs are not permitted",
        }
        raise Refused(
            422, {"object": "error", "message": {"detail": [detail]}, "type": "invalid_request_error", "code": None}
        )
    refuse(f"Unknown parameter: 'messages[{at}].{name}'.", f"messages[{at}].{name}", "unknown_parameter")


def _check_pairs(messages: list[Json]) -> None:
    waiting: list[str] = []
    known: list[str] = []
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in known:
                refuse(
                    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
                    f"messages[{at}].role",
                )
            waiting = [call for call in waiting if call != message["tool_call_id"]]
            continue
        _check_answered(waiting, at)
        waiting = known = [call["id"] for call in message.get("tool_calls") or []]
    _check_answered(waiting, len(messages))


def _check_answered(waiting: list[str], at: int) -> None:
    if waiting:
        refuse(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
            f"The following tool_call_ids did not have response messages: {', '.join(waiting)}",
            f"messages[{at}].role",
        )


# --- chunks --------------------------------------------------------------------------------------------------------------


def _chunks(completion: Json) -> Iterator[tuple[str, Json]]:
    """Yield the chunks of a completion that is streamed."""
    choice = completion["choices"][0]
    message = choice["message"]
    yield "", _chunk(completion, {"role": "assistant", "content": ""})
    for name, value in message.items():
        if name == "tool_calls":
            for index, call in enumerate(value):
                begun = call | {"function": call["function"] | {"arguments": ""}, "index": index}
                yield "", _chunk(completion, {"tool_calls": [begun]})
                rest = {"index": index, "function": {"arguments": call["function"]["arguments"]}}
                yield "", _chunk(completion, {"tool_calls": [rest]})
        elif isinstance(value, str) and name != "role":
            for half in (value[: len(value) // 2], value[len(value) // 2 :]):
                yield "", _chunk(completion, {name: half})
        elif name != "role" and value is not None:
            yield "", _chunk(completion, {name: value})
    yield "", _chunk(completion, {}, choice["finish_reason"])
    yield "", _chunk(completion, None)


def _chunk(completion: Json, delta: dict[str, Any] | None, reason: str | None = None) -> Json:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}]
    usage = completion["usage"] if delta is None else None
    return completion | {"object": "chat.completion.chunk", "choices": choices, "usage": usage}
