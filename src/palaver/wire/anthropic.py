"""A draft in the words of Anthropic's Messages API (platform.claude.com/docs/en/api/messages)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

from palaver.wire.draft import Body, Declared, Draft, with_parameters
from palaver.wire.parts import CallPart, MediaPart, ResultPart, ServedPart, Speech, TextPart, ThinkingPart
from palaver.wire.profiles import Profile
from palaver.wire.request import Call, How, Notes

__all__ = ["MAX_TOKENS", "OWNED", "body", "written"]

OWNED = frozenset({"model", "messages", "system", "tools"})
"""The fields that are compiled from the view and the call, and that no parameter may replace."""

MAX_TOKENS = 4096
"""Tokens the answer may have when the call does not say: the API asks for a figure, and this is the most that every model gives
(Claude 3 Haiku and Opus, docs/en/about-claude/models/overview). A thinking budget is added to it."""

_ROLES: Mapping[str, str] = MappingProxyType({"user": "user", "tool": "user", "assistant": "assistant"})
_CHOICES: Mapping[str, str] = MappingProxyType({"auto": "auto", "none": "none", "required": "any"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_MARKED_MESSAGES = 2
"""Messages of the user that end in a cache mark: the newest is written, and the one before it is what the last request wrote."""


def body(draft: Draft) -> Body:
    """Write the body of a message's creation."""
    call = draft.call
    out: Body = {"model": call.model, "max_tokens": _max_tokens(call)}
    if draft.system:
        out["system"] = [_text(part) for part in draft.system]
    if draft.tools or draft.provided.tools:
        out["tools"] = [*(_tool(tool) for tool in draft.tools), *draft.provided.tools]
    if draft.choice:
        choice = _CHOICES.get(draft.choice)
        out["tool_choice"] = {"type": "tool", "name": draft.choice} if choice is None else {"type": choice}
    out["messages"] = list(draft.said)
    if call.cache:
        _mark(out, draft)
    if draft.asked is not None:
        out["output_config"] = {"format": {"type": "json_schema", "schema": draft.asked.schema}}
    if call.stream:
        out["stream"] = True
    return with_parameters(out | _sampling(draft), call, without=_forbidden(draft, out["messages"]))


def _max_tokens(call: Call) -> int:
    if call.max_tokens is not None:
        return call.max_tokens
    config = call.parameters.get("thinking")
    budget = config.get("budget_tokens", 0) if isinstance(config, Mapping) else 0
    return MAX_TOKENS + (budget if isinstance(budget, int) else 0)


def _tool(tool: Declared) -> Body:
    described = {"description": tool.description} if tool.description.strip() else {}
    return {"name": tool.name, **described, "input_schema": tool.schema, **({"strict": True} if tool.strict else {})}


# --- parameters that the conversation forbids ----------------------------------------------------------------------------


def _sampling(draft: Draft) -> Body:
    """Give the temperature, where the model takes one."""
    temperature = draft.call.temperature
    if temperature is None:
        return {}
    if not draft.profile.reasoning.sampling:
        draft.notes.add(None, "parameter", How.DROPPED, "temperature: this model takes no sampling parameters")
        return {}
    if _thinks(draft.call) and temperature != 1:
        draft.notes.add(None, "parameter", How.DROPPED, "temperature: it is 1 while the model thinks")
        return {}
    return {"temperature": temperature}


def _thinks(call: Call) -> bool:
    config = call.parameters.get("thinking")
    return isinstance(config, Mapping) and config.get("type") in {"enabled", "adaptive"}


def _forbidden(draft: Draft, messages: Sequence[Body]) -> frozenset[str]:
    """Name the thinking parameter while results go back in a turn that did not begin with thinking of this model's.

    «When `thinking` is enabled, a final `assistant` message must start with a thinking block» (anomalyco/opencode#3077). Such a turn
    comes from another model, or its thinking was signed for words that have been edited; the next turn thinks again.
    """
    config = draft.call.parameters.get("thinking")
    if not (isinstance(config, Mapping) and config.get("type") == "enabled" and _began_without_thinking(messages)):
        return frozenset()
    draft.notes.add(
        None, "parameter", How.DROPPED, "thinking: the turn that uses tools did not begin with thinking of this model"
    )
    return frozenset({"thinking"})


def _began_without_thinking(messages: Sequence[Body]) -> bool:
    """Tell whether the messages end in results, and the first words of that turn are no thinking."""
    if not _has(messages[-1], {"tool_result"}):
        return False
    opening = None
    for each in reversed(messages):
        if each["role"] == "assistant":
            opening = each
        elif not _has(each, {"tool_result"}):
            break
    return opening is not None and opening["content"][0]["type"] not in _THOUGHTS


def _has(message: Body, kinds: set[str]) -> bool:
    return any(block["type"] in kinds for block in message["content"])


# --- messages ------------------------------------------------------------------------------------------------------------


def written(speech: Speech, _profile: Profile, _notes: Notes) -> Iterator[Body]:
    """Write a speech as one message."""
    yield {"role": _ROLES[speech.role], "content": [_BLOCKS[type(part)](part) for part in speech.parts]}


def _text(part: TextPart) -> Body:
    return {"type": "text", "text": part.text}


def _image(part: MediaPart) -> Body:
    if part.media.url is not None:
        return {"type": "image", "source": {"type": "url", "url": part.media.url}}
    return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}


def _thought(part: ThinkingPart) -> Body:
    said = part.content
    if said.redacted:
        return {"type": "redacted_thinking", "data": said.redacted}
    return {"type": "thinking", "thinking": said.content, "signature": said.signature}


def _call(part: CallPart) -> Body:
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.args}


def _result(part: ResultPart) -> Body:
    """Write a result. Of a failed call it must say something («content cannot be empty if `is_error` is true»)."""
    content: str | list[Body] = part.text
    if not all(isinstance(inner, TextPart) for inner in part.body):
        content = [_BLOCKS[type(inner)](inner) for inner in part.body]
    out: Body = {"type": "tool_result", "tool_use_id": part.id, "content": content}
    return out | {"is_error": True} if part.error else out


def _served(part: ServedPart) -> Body:
    return {"type": part.kind, **part.fields}


_BLOCKS: Mapping[type, Callable[[Any], Body]] = MappingProxyType(
    {
        TextPart: _text,
        MediaPart: _image,
        ThinkingPart: _thought,
        CallPart: _call,
        ResultPart: _result,
        ServedPart: _served,
    }
)


# --- cache marks ---------------------------------------------------------------------------------------------------------


def _mark(out: Body, draft: Draft) -> None:
    """Put cache marks at the end of the tools, of the instructions, and of the user's newest messages or where the call wants them.

    The provider reads tools, instructions and messages in this order, and what is cached up to a mark is found again by a request
    that begins alike (docs/en/build-with-claude/prompt-caching). Of more marks than it takes, the first ones of the messages are left out.
    """
    rules, call = draft.profile.cache, draft.call
    heads = [blocks[-1] for blocks in (out.get("system", ()), out.get("tools", ())) if blocks]
    ttl = {} if call.cache_ttl == "5m" else {"ttl": call.cache_ttl}
    mark = {rules.field: {"type": "ephemeral", **ttl}}
    for block in heads:
        block.update(mark)
    ends = list(_wanted(draft)) if call.cache_at else list(_newest(out["messages"]))
    for number, index in ends[len(heads) - rules.marks :]:
        message = out["messages"][number]
        blocks = [*message["content"][:index], message["content"][index] | mark, *message["content"][index + 1 :]]
        out["messages"][number] = message | {"content": blocks}


def _wanted(draft: Draft) -> Iterator[tuple[int, int]]:
    """Give message and block of each place where the call wants a mark, as far as it can stand there."""
    places = frozenset(draft.call.cache_at)
    for number, (speech, message) in enumerate(zip(draft.script, draft.said, strict=True)):
        for index, part in enumerate(speech.parts):
            if part.origin in places and message["content"][index]["type"] in draft.profile.cache.places:
                yield number, index


def _newest(messages: Sequence[Body]) -> Iterator[tuple[int, int]]:
    """Give message and block of the ends of the user's newest messages, the older one first."""
    numbers = (number for number in range(len(messages) - 1, -1, -1) if messages[number]["role"] == "user")
    for number in sorted(islice(numbers, _MARKED_MESSAGES)):
        yield number, len(messages[number]["content"]) - 1
