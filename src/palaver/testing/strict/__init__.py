"""Servers on this machine that refuse what the vendors' APIs refuse: test your own loop against them.

Each enforces the rules of one API, with its texts and status codes, and signs what the vendor signs: a word that changed before a block of thinking is refused
as the vendor refuses it. They import nothing of palaver that writes or reads requests: two readings of one page must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from palaver.testing.strict.claude.api import AnthropicApi, tokens_of
from palaver.testing.strict.google.generate import GeminiApi
from palaver.testing.strict.google.interactions import InteractionsApi
from palaver.testing.strict.openai.chat import ChatApi
from palaver.testing.strict.openai.responses import ResponsesApi
from palaver.testing.strict.seal import Json
from palaver.testing.strict.server import HttpRequest, NextAnswer, Refused, Served, StrictServer

__all__ = [
    "HttpRequest",
    "Json",
    "NextAnswer",
    "Refused",
    "Served",
    "StrictServer",
    "anthropic",
    "gemini",
    "interactions",
    "openai_chat",
    "openai_responses",
]


def anthropic(
    *,
    key: str = "strict",
    new_account: bool = True,
    accounts: Mapping[str, str] | None = None,
    tokens: Callable[[object], int] = tokens_of,
) -> StrictServer:
    """Return a server of Anthropic's Messages API.

    Args:
        key: The key of its signatures. Servers with the same key read each other's blocks.
        new_account: Whether accounts are of those whose prefixes are checked by default (since 2026-08-31).
        accounts: Names of accounts by API key; other keys belong to one account.
        tokens: Counts the tokens of a JSON value; thresholds are compared with its result.
    """
    return StrictServer(AnthropicApi(key=key, new_account=new_account, accounts=accounts, tokens=tokens))


def openai_responses(
    *,
    key: str = "strict",
    organizations: Mapping[str, str] | None = None,
    tokens: Callable[[object], int] = tokens_of,
) -> StrictServer:
    """Return a server of OpenAI's Responses API.

    Args:
        key: The key of its encryption. Servers with the same key read each other's items.
        organizations: Names of organizations by API key; other keys belong to one organization.
        tokens: Counts the tokens of a JSON value; thresholds are compared with its result.
    """
    return StrictServer(ResponsesApi(key=key, organizations=organizations, tokens=tokens), "/v1")


def openai_chat(*, server: str = "openai", key: str = "strict") -> StrictServer:
    """Return a server of chat completions.

    Args:
        server: Whose rules hold: `openai`, `deepseek`, `kimi`, `glm`, `minimax`, `openrouter`, `mistral`, `vllm`, `sglang`, `ollama` or `gemini`.
        key: The key of its signatures.
    """
    return StrictServer(ChatApi(server=server, key=key), "/v1")


def gemini(*, key: str = "strict") -> StrictServer:
    """Return a server of Gemini's generateContent. Servers with the same key read each other's signatures."""
    return StrictServer(GeminiApi(key=key))


def interactions(*, key: str = "strict") -> StrictServer:
    """Return a server of Gemini's Interactions, without state. Servers with the same key read each other's signatures."""
    return StrictServer(InteractionsApi(key=key))
