"""A whole answer of any API, read as a message."""

from __future__ import annotations

from palaver.errors import InvalidMessage
from palaver.messages import Message
from palaver.providers.lists import api_of
from palaver.providers.reader import Json
from palaver.wire import Profile, Report, Request


def read_answer(answer: Json, request: Request | None = None) -> Message:
    """Read an answer as a message, with its usage, ids and stop reason.

    Args:
        answer: The answer as JSON, of OpenAI's Chat Completions or Responses, Anthropic's Messages or Gemini's generateContent.
        request: The request of the answer; its tool names are mapped back.

    Raises:
        InvalidMessage: The value is not an answer of these APIs.
        ProviderError: It reports a failure, or stops before its end.
    """
    api = api_of(answer)
    if api is None:
        raise InvalidMessage(f"This is not a provider's answer; its keys: {', '.join(map(str, answer)) or 'none'}.")
    reader = api.reader(request or _unknown_request(api.profile(), answer), api.maker)
    for _ in reader.whole(answer):
        pass
    return reader.end().message


def _unknown_request(profile: Profile, answer: Json) -> Request:
    model = answer.get("model") or answer.get("modelVersion") or ""
    return Request(profile=profile, model=str(model), body={}, report=Report(), tool_names={})
