"""What is true of single adapters: what arrives at the server, time that runs out, clients passed in, and LiteLLM kept at home."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import anyio
import openai
import pytest

from palaver.errors import AuthenticationFailed, ModelUnavailable, ProviderDown
from palaver.messages import thaw
from palaver.models import Provider, collect
from palaver.models.anthropic import AnthropicProvider
from palaver.models.google import GoogleProvider
from palaver.models.litellm import LiteLLMProvider
from palaver.models.openai import OpenAIProvider
from tests.models.asking import answer, ask
from tests.models.peer_questions import FIXTURES
from tests.peers.server import Peer


@pytest.fixture
def peer(start_peer: Callable[[Path], Peer]) -> Peer:
    """Return the server that knows our questions."""
    return start_peer(FIXTURES)


def _openai(peer: Peer, **options: Any) -> Provider:  # noqa: ANN401 - options of a client
    return OpenAIProvider(base_url=f"{peer.url}/v1", api_key="none", **options)


def _responses(peer: Peer, **options: Any) -> Provider:  # noqa: ANN401 - options of a client
    return OpenAIProvider(api="responses", base_url=f"{peer.url}/v1", api_key="none", **options)


def _anthropic(peer: Peer, **options: Any) -> Provider:  # noqa: ANN401 - options of a client
    return AnthropicProvider(base_url=peer.url, api_key="none", **options)


def _google(peer: Peer, timeout: float | None = None) -> Provider:
    http = {"base_url": peer.url, "api_version": "v1beta"}
    return GoogleProvider(api_key="none", http_options=http | ({"timeout": int(timeout * 1000)} if timeout else {}))


MAKERS: dict[str, Callable[..., Provider]] = {
    "openai-chat": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _google,
}


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", MAKERS)
def test_the_request_arrives_as_it_was_compiled(peer: Peer, api: str, *, stream: bool) -> None:
    """Nothing is added to the body and nothing is left out of it."""
    more = {} if api == "gemini" else {"parameters": {"metadata": {"user_id": "ü"}}}
    request = ask("say hello", profile=api, stream=stream, **more)
    answer(MAKERS[api](peer), request)
    entry = peer.journal()[-1]
    body = json.dumps(thaw(request.body), ensure_ascii=False, separators=(",", ":")).encode()
    assert entry["response"]["status"] == 200
    if api != "gemini":  # google-genai spaces its JSON
        assert int(entry["headers"]["content-length"]) == len(body)
    else:
        assert int(entry["headers"]["content-length"]) >= len(body)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")
@pytest.mark.parametrize("api", MAKERS)
def test_an_answer_that_takes_too_long_is_given_up(peer: Peer, api: str) -> None:
    """The client's own timeout counts; it may be tried again."""
    with pytest.raises(ProviderDown) as caught:
        answer(MAKERS[api](peer, timeout=0.2), ask("take your time", profile=api, stream=True))
    assert caught.value.status is None
    assert caught.value.retryable


@pytest.mark.peer
def test_a_client_that_is_passed_in_is_used_and_left_open(peer: Peer) -> None:
    """It is its owner's: its options count, its retries do not, and closing the provider does not close it."""

    async def use() -> tuple[str, str]:
        async with (
            openai.AsyncOpenAI(base_url=f"{peer.url}/v1", api_key="mine", max_retries=5) as first,
            anthropic.AsyncAnthropic(base_url=peer.url, api_key="mine", max_retries=5) as second,
        ):
            async with OpenAIProvider(client=first, name="mine") as one, AnthropicProvider(client=second) as two:
                said = await collect(one.stream(ask("say hello")))
                again = await collect(two.stream(ask("say hello", profile="anthropic")))
                before = len(peer.journal())
                with pytest.raises(ProviderDown):
                    await collect(one.stream(ask("be broken")))
                assert len(peer.journal()) == before + 1
            assert not first.is_closed()
            assert not second.is_closed()
            return said.provider or "", again.provider or ""

    assert anyio.run(use) == ("mine", "anthropic")


@pytest.mark.filterwarnings("ignore")  # what LiteLLM does among its own modules is no fault of ours
def test_litellm_s_own_refusals_are_typed(capfd: pytest.CaptureFixture[str]) -> None:
    """A name that it does not know, a key that is not there: nothing is sent, and nothing is printed."""
    with pytest.raises(ModelUnavailable):
        answer(LiteLLMProvider(), ask(model="no-such-model"))
    with pytest.raises(AuthenticationFailed):
        answer(LiteLLMProvider(), ask(model="openai/gpt-5.2"))
    printed = capfd.readouterr()
    assert printed.out == printed.err == ""


def test_litellm_stays_at_home_while_it_is_imported(tmp_path: Path) -> None:
    """No look-up, no file of the working folder, no environment of tiktoken's changed, no word on the screen; and not before it is asked."""
    (tmp_path / ".env").write_text("FROM_DOTENV=1\n", encoding="utf-8")
    program = """
import os, socket, sys
def forbid(*a, **k): raise AssertionError("a look-up")
socket.getaddrinfo = forbid
from palaver.models.litellm import LiteLLMProvider, loaded
LiteLLMProvider()
assert "litellm" not in sys.modules
loaded()
assert "litellm" in sys.modules
assert "TIKTOKEN_CACHE_DIR" not in os.environ and "FROM_DOTENV" not in os.environ
"""
    environment = {key: value for key, value in os.environ.items() if key != "TIKTOKEN_CACHE_DIR"}
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
