"""A whole answer of any provider, as its SDK returns it, read as a message."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from palaver.errors import InvalidMessage
from palaver.messages import Message
from palaver.models.answers.anthropic import AnthropicAnswer
from palaver.models.answers.gemini import GeminiAnswer
from palaver.models.answers.openai_chat import ChatAnswer
from palaver.models.answers.openai_responses import ResponsesAnswer
from palaver.models.answers.reader import AnswerReader, Json
from palaver.wire import Report, Request, profile

__all__ = ["answer_json", "read_answer", "sdk_json"]


class _Kind(NamedTuple):
    reader: type[AnswerReader]
    provider: str
    profile: str


_KINDS = MappingProxyType(
    {
        "choices": _Kind(ChatAnswer, "openai", "openai-chat"),
        "stop_reason": _Kind(AnthropicAnswer, "anthropic", "anthropic"),
        "candidates": _Kind(GeminiAnswer, "google", "gemini"),
    }
)
"""The kind of answer for each distinctive key. No message in a list has such a key."""

_RESPONSES = _Kind(ResponsesAnswer, "openai", "openai-responses")


def _kind(answer: Json) -> _Kind | None:
    if answer.get("object") == "response":
        return _RESPONSES
    return next((kind for key, kind in _KINDS.items() if key in answer), None)


def answer_json(value: object) -> Json | None:
    """Return the JSON of a provider's answer, given as JSON or as an SDK's object; None if it is not an answer."""
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type | Message):
        value = sdk_json(value)
    return value if isinstance(value, Mapping) and _kind(value) is not None else None


def read_answer(answer: Json, request: Request | None = None) -> Message:
    """Read an answer as a message, with its usage, ids and stop reason.

    Args:
        answer: The answer as JSON, of OpenAI's Chat Completions or Responses, Anthropic's Messages or Gemini's generateContent.
        request: The request of the answer; its tool names are mapped back.

    Raises:
        InvalidMessage: The value is not an answer of these APIs.
        ProviderError: It reports a failure, or stops before its end.
    """
    kind = _kind(answer)
    if kind is None:
        raise InvalidMessage(f"This is not a provider's answer; its keys: {', '.join(map(str, answer)) or 'none'}.")
    reader = kind.reader(request or _unknown_request(kind, answer), kind.provider)
    for _ in reader.whole(answer):
        pass
    return reader.end().message


def _unknown_request(kind: _Kind, answer: Json) -> Request:
    model = answer.get("model") or answer.get("modelVersion") or ""
    return Request(profile=profile(kind.profile), model=str(model), body={}, report=Report(), tool_names={})


def sdk_json(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - an object of any SDK
    """Return an SDK's object in its API's JSON format: Gemini's client has bytes in URL-safe base64, and the headers of the response."""
    data: dict[str, Any] = answer.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
    data.pop("sdkHttpResponse", None)
    for candidate in data.get("candidates") or ():
        for part in (candidate.get("content") or {}).get("parts") or ():
            for holder, key in ((part, "thoughtSignature"), (part.get("inlineData", {}), "data")):
                if isinstance(holder.get(key), str):
                    holder[key] = holder[key].replace("-", "+").replace("_", "/")
    return data
