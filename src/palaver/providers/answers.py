"""A whole answer of any provider, as its SDK returns it, read as a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palaver.errors import InvalidMessage
from palaver.messages import Message
from palaver.providers.reader import Json
from palaver.providers.registry import APIS, ApiRow
from palaver.wire import Profile, Report, Request

__all__ = ["answer_json", "read_answer", "sdk_json"]


def _api(answer: Json) -> ApiRow | None:
    """Return the API whose key an answer has."""
    signs = ((row, *row.answer) for row in APIS.values())
    return next((row for row, key, value in signs if key in answer and (not value or answer[key] == value)), None)


def answer_json(value: object) -> Json | None:
    """Return the JSON of a provider's answer, given as JSON or as an SDK's object; None if it is not an answer."""
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type | Message):
        value = sdk_json(value)
    return value if isinstance(value, Mapping) and _api(value) is not None else None


def read_answer(answer: Json, request: Request | None = None) -> Message:
    """Read an answer as a message, with its usage, ids and stop reason.

    Args:
        answer: The answer as JSON, of OpenAI's Chat Completions or Responses, Anthropic's Messages or Gemini's generateContent.
        request: The request of the answer; its tool names are mapped back.

    Raises:
        InvalidMessage: The value is not an answer of these APIs.
        ProviderError: It reports a failure, or stops before its end.
    """
    api = _api(answer)
    if api is None:
        raise InvalidMessage(f"This is not a provider's answer; its keys: {', '.join(map(str, answer)) or 'none'}.")
    reader = api.reader(request or _unknown_request(api.profile(), answer), api.maker)
    for _ in reader.whole(answer):
        pass
    return reader.end().message


def _unknown_request(profile: Profile, answer: Json) -> Request:
    model = answer.get("model") or answer.get("modelVersion") or ""
    return Request(profile=profile, model=str(model), body={}, report=Report(), tool_names={})


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
