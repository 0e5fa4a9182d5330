"""One file of a series: the request of a call as it was sent, and the answer to it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from palaver.formats import fields
from palaver.formats.events import Loss
from palaver.formats.lists import bad_record, digest_of
from palaver.formats.records import MAX_LINE, parse
from palaver.formats.sources import Member

NAME = "openhands-llm-calls"
MARK = "cache_control"
"""The mark that tells Anthropic's cache where a prefix ends; it moves from call to call, so it is no part of what was said."""


class Snapshot(NamedTuple):
    """A call.

    Attributes:
        name: The name of its file.
        messages: What was sent.
        response: The answer, or empty.
        value: The whole object.
    """

    name: str
    messages: Sequence[object]
    response: Mapping[str, object]
    value: Mapping[str, object]

    @property
    def at(self) -> float:
        """When the call was logged, in seconds since 1970-01-01 UTC."""
        return fields.moment(self.value.get("timestamp")) or fields.moment(self.response.get("created"))

    @property
    def model(self) -> str:
        """The model that answered."""
        return fields.text(self.response, "model")

    @property
    def tools(self) -> object:
        """The tools that were sent."""
        return fields.mapping(self.value, "kwargs").get("tools") or self.value.get("tools")

    @property
    def answer(self) -> Mapping[str, object]:
        """The message of the answer, or empty."""
        return fields.mapping(self.choice, "message")

    @property
    def choice(self) -> Mapping[str, object]:
        """The first choice of the answer, or empty."""
        return next(iter(fields.objects(self.response, "choices")), fields.NOTHING)


def is_snapshot(values: Mapping[str, object], keys: Collection[str]) -> bool:
    """Tell from its values and keys whether an object is a call."""
    named = set(keys) | values.keys()
    return "messages" in named and "response" in named and ("kwargs" in named or "args" in named)


def read(member: Member) -> Snapshot | Loss:
    """Read a file of the series."""
    parsed = parse(member.read(MAX_LINE))
    value = parsed.values[0][0] if parsed.values else None
    place = member.place("whole file")
    if not isinstance(value, dict):
        return bad_record(place, f"no JSON object: {parsed.fault or 'another value'}")
    if not is_snapshot(value, ()):
        return Loss(place=place, reason="Not read: it is no call.", code="skipped", severity="note")
    return Snapshot(member.name, fields.items(value, "messages"), fields.mapping(value, "response"), value)


def essence(message: object) -> bytes:
    """Give a digest of what a message says: an answer and the form in which it is sent back are the same."""
    if not isinstance(message, dict):
        return digest_of(message)
    calls = [_call(call) for call in fields.objects(message, "tool_calls")]
    return digest_of([message.get("role"), _parts(message.get("content")), calls, message.get("tool_call_id")])


def _parts(content: object) -> object:
    """Give content without cache marks; text is the same alone or as parts, and none as empty."""
    if not isinstance(content, list):
        return content or ""
    parts = [_unmarked(part) for part in content]
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.keys() <= {"type", "text"}]
    if len(texts) == len(parts) and all(isinstance(text, str) for text in texts):
        return "\n".join(str(text) for text in texts)
    return parts


def _unmarked(part: object) -> object:
    return {name: value for name, value in part.items() if name != MARK} if isinstance(part, dict) else part


def _call(call: Mapping[str, object]) -> list[object]:
    function = fields.mapping(call, "function")
    return [call.get("id"), function.get("name"), function.get("arguments")]


def marked(message: object) -> bool:
    """Tell whether a message, or a part of it, bears a cache mark."""
    return f'"{MARK}"' in json.dumps(message) and isinstance(message, dict) and _bears(message)


def _bears(message: Mapping[str, object]) -> bool:
    return MARK in message or any(MARK in part for part in fields.objects(message, "content"))
