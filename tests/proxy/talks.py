"""Conversations by the vendors' SDKs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import anthropic
import openai
from google import genai

from palaver.testing import strict
from palaver.testing.strict import StrictServer
from tests.clients import opened
from tests.proxy.running import KEY

Ask: TypeAlias = Callable[[list[str], bool], str]
"""Asks a model after what was said so far, streamed or not, and returns its answer."""


def _chat(url: str) -> Ask:
    client = opened(openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0))

    def ask(said: list[str], stream: bool) -> str:
        messages: Any = [{"role": "system", "content": "Be brief."}, *_listed(said, "content", "assistant")]
        answer: Any = client.chat.completions.create(model="gpt-4.1", messages=messages, stream=stream)
        if not stream:
            return str(answer.choices[0].message.content)
        return "".join(piece.choices[0].delta.content or "" for piece in answer if piece.choices)

    return ask


def _responses(url: str) -> Ask:
    client = opened(openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0))

    def ask(said: list[str], stream: bool) -> str:
        items = _listed(said, "content", "assistant")
        asked: Any = {"model": "gpt-5", "input": items, "instructions": "Be brief.", "store": False}
        if not stream:
            return str(client.responses.create(**asked).output_text)
        with client.responses.stream(**asked) as events:
            return str(events.get_final_response().output_text)

    return ask


def _claude(url: str) -> Ask:
    client = opened(anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0))

    def ask(said: list[str], stream: bool) -> str:
        messages = _listed(said, "content", "assistant")
        asked: Any = {"model": "claude-opus-4-6", "max_tokens": 99, "system": "Be brief.", "messages": messages}
        if not stream:
            return str(client.messages.create(**asked).content[0].text)
        with client.messages.stream(**asked) as events:
            return str(events.get_final_text())

    return ask


def _gemini(url: str) -> Ask:
    client = opened(genai.Client(api_key=KEY, http_options=genai.types.HttpOptions(base_url=url)))

    def ask(said: list[str], stream: bool) -> str:
        items = _listed(said, "parts", "model")
        contents = [{"role": item["role"], "parts": [{"text": item["parts"]}]} for item in items]
        asked: Any = {"model": "gemini-3.5-flash", "contents": contents, "config": {"system_instruction": "Be brief."}}
        if not stream:
            return str(client.models.generate_content(**asked).text)
        return "".join(piece.text or "" for piece in client.models.generate_content_stream(**asked))

    return ask


def _listed(said: list[str], key: str, model: str) -> list[dict[str, str]]:
    return [{"role": ("user", model)[index % 2], key: text} for index, text in enumerate(said)]


TALKS: Mapping[str, tuple[Callable[[], StrictServer], Callable[[str], Ask]]] = {
    "openai-chat": (strict.openai_chat, _chat),
    "openai-responses": (strict.openai_responses, _responses),
    "anthropic": (strict.anthropic, _claude),
    "gemini": (strict.gemini, _gemini),
}
