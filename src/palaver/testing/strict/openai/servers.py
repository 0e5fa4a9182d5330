"""Servers of chat completions: how each returns reasoning, and what it refuses.

OpenAI's rules are those of https://developers.openai.com/api/docs/guides/latest-model and of its answers; those of the others are live answers that their users quoted:
DeepSeek (MoonshotAI/kimi-cli#2141, OpenHands/OpenHands#14177), Kimi (zeroclaw-labs/zeroclaw#5600), Mistral (OpenMinis/OpenMinis#87, vercel/ai#17969),
vLLM and SGLang (vllm-project/vllm#43995, sgl-project/sglang#28035), OpenRouter and Gemini's OpenAI layer (their documentation).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from palaver.testing.strict.openai.fields import error_body
from palaver.testing.strict.openai.models import model_named
from palaver.testing.strict.seal import Json, Seal
from palaver.testing.strict.server import Refused

__all__ = ["SERVERS", "ChatRules"]


_ID_LENGTH: Final = 40


@dataclass(frozen=True, slots=True)
class ChatRules:
    """A server of chat completions.

    Attributes:
        name: Its name.
        field: The field of a message with its reasoning; empty where it returns none.
        fields: The fields of messages that it accepts besides those of every server; None for any.
        check: Checks a request further.
        stops: The reason for which an answer with calls ends.
    """

    name: str
    field: str = ""
    fields: frozenset[str] | None = None
    check: Callable[[Json, Seal], None] | None = None
    stops: str = "tool_calls"


def refuse(message: str, param: str | None = None, code: str | None = None) -> NoReturn:
    """Refuse the request."""
    raise Refused(400, error_body(400, message, param, code))


def _calls(message: Json) -> list[Json]:
    return message.get("tool_calls") or []


def _assistants(body: Json) -> list[tuple[int, Json]]:
    return [(at, message) for at, message in enumerate(body["messages"]) if message["role"] == "assistant"]


def _check_ids(body: Json) -> None:
    for at, message in enumerate(body["messages"]):
        for number, call in enumerate(_calls(message)):
            if len(call["id"]) > _ID_LENGTH:
                place = f"messages[{at}].tool_calls[{number}].id"
                text = f"Expected a string with maximum length {_ID_LENGTH}, but got a string with length {len(call['id'])} instead."
                refuse(f"Invalid '{place}': string too long. {text}", place, "string_above_max_length")


def _openai(body: Json, seal: Seal) -> None:
    del seal
    _check_ids(body)
    model = model_named(str(body.get("model")))
    if model is None:
        message = f"The model `{body.get('model')}` does not exist or you do not have access to it."
        raise Refused(404, error_body(404, message, None, "model_not_found"))
    if not model.family:
        return
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in model.efforts:
        allowed = ", ".join(map(repr, model.efforts))
        refuse(f"Unsupported value: '{effort}' is not supported with the '{model.name}' model. Supported values are: {allowed}.",
               "reasoning_effort", "unsupported_value")  # fmt: skip
    if (body.get("tools") or body.get("functions")) and not model.chat_tools and effort != "none":
        refuse(
            f"Function tools with reasoning_effort are not supported for {model.name} in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            "reasoning_effort",
        )
    _check_sampling(body, samples=model.samples(effort))


def _check_sampling(body: Json, *, samples: bool) -> None:
    if body.get("max_tokens") is not None:
        text = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        refuse(text, "max_tokens", "unsupported_parameter")
    for name in ("temperature", "top_p"):
        if not samples and body.get(name) not in (None, 1):
            text = f"Unsupported value: '{name}' does not support {body[name]} with this model. Only the default (1) value is supported."
            refuse(text, name, "unsupported_value")


def _deepseek(body: Json, seal: Seal) -> None:
    del seal
    for at, message in _assistants(body):
        if _calls(message) and message.get("content") == "":
            refuse(f"messages[{at}]: content of a message with tool_calls must be null or not empty", "messages")
        if body.get("model") == "deepseek-reasoner" and message.get("reasoning_content") is not None:
            refuse("The input must not contain `reasoning_content`.", "messages")
        thinks = (body.get("thinking") or {}).get("type", "enabled") == "enabled" and body.get(
            "model"
        ) != "deepseek-reasoner"
        if thinks and body.get("tools") and message.get("reasoning_content") is None:
            refuse(
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
                "messages",
                "invalid_request_error",
            )


def _kimi(body: Json, seal: Seal) -> None:
    del seal
    if (body.get("thinking") or {}).get("type") == "disabled":
        return
    for at, message in _assistants(body):
        if _calls(message) and message.get("reasoning_content") is None:
            refuse(f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}")


def _mistral(body: Json, seal: Seal) -> None:
    del seal
    messages = body["messages"]
    for at, message in enumerate(messages):
        for call in _calls(message):
            if not re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]):
                refuse(f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9.")
        if at and messages[at - 1]["role"] == "tool" and message["role"] not in ("tool", "assistant"):
            refuse(f"Unexpected role '{message['role']}' after role 'tool'")  # mistral-common, `validator.py`


def _templated(body: Json, seal: Seal) -> None:
    """Check what a chat template reads: the arguments of calls."""
    del seal
    for _, message in _assistants(body):
        for call in _calls(message):
            try:
                read = json.loads(call["function"]["arguments"])
            except ValueError as error:
                refuse(str(error))
            if not isinstance(read, dict):
                refuse("Can only get item pairs from a mapping.")


def _gemini(body: Json, seal: Seal) -> None:
    """Check the signature of the first call of each step of the current turn."""
    users = [at for at, message in enumerate(body["messages"]) if message["role"] == "user"]
    for at, message in _assistants(body):
        if at < (users or [0])[-1] or not _calls(message):
            continue
        extra = _calls(message)[0].get("extra_content") or {}
        signature = (extra.get("google") or {}).get("thought_signature")
        if signature is None:
            name = _calls(message)[0]["function"]["name"]
            refuse(f"Function call `{name}` in the `{at + 1}.` content block is missing a `thought_signature`.")
        if signature != "skip_thought_signature_validator" and seal.open("chat", signature) is None:
            refuse("Invalid thought signature.")


def _openrouter(body: Json, seal: Seal) -> None:
    for at, message in _assistants(body):
        for detail in message.get("reasoning_details") or []:
            if detail.get("type") == "reasoning.encrypted" and seal.open("chat", detail.get("data")) is None:
                refuse(f"messages[{at}].reasoning_details: Invalid `signature` in `thinking` block")


_ROWS: Final = (
    ChatRules("openai", fields=frozenset({"refusal", "audio", "annotations", "function_call"}), check=_openai),
    ChatRules("deepseek", "reasoning_content", check=_deepseek),
    ChatRules("kimi", "reasoning_content", check=_kimi),
    ChatRules("glm", "reasoning_content"),
    ChatRules("minimax", "reasoning_details"),
    ChatRules("openrouter", "reasoning_details", check=_openrouter),
    ChatRules("mistral", "content", fields=frozenset({"prefix"}), check=_mistral),
    ChatRules("vllm", "reasoning", check=_templated),
    ChatRules("sglang", "reasoning_content", check=_templated),
    ChatRules("ollama", "reasoning", stops="stop"),
    ChatRules("gemini", check=_gemini),
)
SERVERS: Final[Mapping[str, ChatRules]] = {row.name: row for row in _ROWS}
"""The servers by name."""
