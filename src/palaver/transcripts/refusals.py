"""What each provider says to a block as it was recorded: the smallest request with it, held to the provider's strict validator.

Requests that palaver compiles are valid whatever was recorded. These are the ones that somebody sends who repeats a record as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from palaver.wire import PROFILES, Violation, validate

__all__ = ["Refusal", "call", "image", "orphan", "text", "thought", "twice", "unanswered"]

Body = dict[str, Any]
_RESULT = "done"


class Refusal(NamedTuple):
    """One provider's refusal.

    Attributes:
        profile: The profile's name.
        rule: The id of the rule that is broken.
        why: What is wrong, in the validator's words.
    """

    profile: str
    rule: str
    why: str


def _refusals(bodies: Mapping[str, Body]) -> tuple[Refusal, ...]:
    found: list[Refusal] = []
    for name, body in bodies.items():
        wrong: tuple[Violation, ...] = validate(body, PROFILES[name], as_history=True)
        found.extend(Refusal(name, one.rule.value, one.message) for one in wrong[:1])
    return tuple(found)


# --- texts and media ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def text(said: str) -> tuple[Refusal, ...]:
    """Give who refuses a text of the user's."""
    return _refusals(
        _spoken(
            chat={"type": "text", "text": said},
            responses={"type": "input_text", "text": said},
            anthropic={"type": "text", "text": said},
            gemini={"text": said},
        )
    )


def image(media_type: str, data: str) -> tuple[Refusal, ...]:
    """Give who refuses an image, given as base64."""
    url = f"data:{media_type};base64,{data}"
    source = {"type": "base64", "media_type": media_type, "data": data}
    return _refusals(
        _spoken(
            chat={"type": "image_url", "image_url": {"url": url}},
            responses={"type": "input_image", "image_url": url},
            anthropic={"type": "image", "source": source},
            gemini={"inlineData": {"mimeType": media_type, "data": data}},
        )
    )


def _spoken(*, chat: Body, responses: Body, anthropic: Body, gemini: Body) -> dict[str, Body]:
    """Give a request of each provider whose user says one part."""
    return {
        "openai-chat": _chat([{"role": "user", "content": [chat]}]),
        "openai-responses": _responses([{"role": "user", "content": [responses]}]),
        "anthropic": _anthropic([{"role": "user", "content": [anthropic]}]),
        "gemini": _gemini([{"role": "user", "parts": [gemini]}]),
    }


@lru_cache(maxsize=64)
def thought(said: str, signature: str) -> tuple[Refusal, ...]:
    """Give who refuses a thought sent back as it was recorded; only Anthropic takes thoughts as blocks."""
    blocks = [{"type": "thinking", "thinking": said, "signature": signature}, {"type": "text", "text": "So."}]
    turns = [_USER["anthropic"], {"role": "assistant", "content": blocks}, _USER["anthropic"]]
    return _refusals({"anthropic": _anthropic(turns)})


# --- calls and results ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def call(call_id: str, name: str = "tool", arguments: str = "{}") -> tuple[Refusal, ...]:
    """Give who refuses a call with its result, for its id, its name or its arguments."""
    return _refusals(_conversations((call_id,), (call_id,), name, arguments))


@lru_cache(maxsize=8)
def unanswered(call_id: str = "c1") -> tuple[Refusal, ...]:
    """Give who refuses a call without a result, followed by words of the user."""
    return _refusals(_conversations((call_id,), (), "tool", "{}"))


@lru_cache(maxsize=8)
def orphan(call_id: str = "c1") -> tuple[Refusal, ...]:
    """Give who refuses a result without a call."""
    return _refusals(_conversations((), (call_id,), "tool", "{}"))


@lru_cache(maxsize=8)
def twice(call_id: str = "c1") -> tuple[Refusal, ...]:
    """Give who refuses two calls of one turn with the same id, each with its result."""
    return _refusals(_conversations((call_id, call_id), (call_id, call_id), "tool", "{}"))


def _conversations(calls: Iterable[str], results: Iterable[str], name: str, arguments: str) -> dict[str, Body]:
    """Give a conversation of each provider: the user, calls, results, the user."""
    return {one: build(tuple(calls), tuple(results), name, arguments) for one, build in _BUILDERS.items()}


def _in_chat(calls: tuple[str, ...], results: tuple[str, ...], name: str, arguments: str) -> Body:
    made = [{"id": one, "type": "function", "function": {"name": name, "arguments": arguments}} for one in calls]
    said = [{"role": "assistant", "content": None, "tool_calls": made}] if made else []
    given = [{"role": "tool", "tool_call_id": one, "content": _RESULT} for one in results]
    return _chat([_USER["openai-chat"], *said, *given, _USER["openai-chat"]])


def _in_responses(calls: tuple[str, ...], results: tuple[str, ...], name: str, arguments: str) -> Body:
    made = [{"type": "function_call", "call_id": one, "name": name, "arguments": arguments} for one in calls]
    given = [{"type": "function_call_output", "call_id": one, "output": _RESULT} for one in results]
    return _responses([_USER["openai-responses"], *made, *given, _USER["openai-responses"]])


def _in_anthropic(calls: tuple[str, ...], results: tuple[str, ...], name: str, arguments: str) -> Body:
    made = [{"type": "tool_use", "id": one, "name": name, "input": _object(arguments)} for one in calls]
    said = [_USER["anthropic"], {"role": "assistant", "content": made}] if made else []
    given = [{"type": "tool_result", "tool_use_id": one, "content": _RESULT} for one in results]
    last = {"role": "user", "content": [*given, {"type": "text", "text": "Go on."}]}
    return _anthropic([*said, last])


def _in_gemini(calls: tuple[str, ...], results: tuple[str, ...], name: str, arguments: str) -> Body:
    made = [{"functionCall": {"id": one, "name": name, "args": _object(arguments)}} for one in calls]
    said = [{"role": "model", "parts": made}] if made else []
    given = [{"functionResponse": {"id": one, "name": name, "response": {"output": _RESULT}}} for one in results]
    answers = [{"role": "user", "parts": given}] if given else []
    return _gemini([_USER["gemini"], *said, *answers, _USER["gemini"]])


def _object(arguments: str) -> object:
    """Give arguments as providers that take objects get them: what is no object stays a text, as it was recorded."""
    return {} if arguments == "{}" else arguments


_BUILDERS: Mapping[str, Callable[[tuple[str, ...], tuple[str, ...], str, str], Body]] = MappingProxyType(
    {
        "openai-chat": _in_chat,
        "openai-responses": _in_responses,
        "anthropic": _in_anthropic,
        "gemini": _in_gemini,
    }
)

_USER: Mapping[str, Body] = MappingProxyType(
    {
        "openai-chat": {"role": "user", "content": "Go."},
        "openai-responses": {"role": "user", "content": "Go."},
        "anthropic": {"role": "user", "content": "Go."},
        "gemini": {"role": "user", "parts": [{"text": "Go."}]},
    }
)


# --- bodies ---------------------------------------------------------------------------------------------------------------------

_SCHEMA = {"type": "object", "properties": {}}


def _chat(messages: list[Body]) -> Body:
    return {"model": PROFILES["openai-chat"].model, "messages": messages}


def _responses(items: list[Body]) -> Body:
    return {"model": PROFILES["openai-responses"].model, "input": items}


def _anthropic(messages: list[Body]) -> Body:
    tools = [{"name": "tool", "input_schema": _SCHEMA}]
    return {"model": PROFILES["anthropic"].model, "max_tokens": 1024, "messages": messages, "tools": tools}


def _gemini(contents: list[Body]) -> Body:
    return {"contents": contents}
