"""Adapters: the laws of providers; the bytes that arrive, time-outs, the caller's clients, and LiteLLM without network or output."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import anthropic
import anyio
import openai
import pytest

from palaver.errors import ProviderError
from palaver.messages import thaw
from palaver.providers import Provider, collect
from palaver.providers.anthropic.client import AnthropicProvider
from palaver.providers.litellm import LiteLLMProvider
from palaver.providers.openai_chat.client import OpenAIProvider
from palaver.testing.provider_laws import ProviderLaws, Question
from tests.peers.server import Peer
from tests.providers.asking import answer, ask
from tests.wire.scenes import BASH

FIXTURES = Path(__file__).parent / "fixtures" / "answers.json"
APIS = pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic", "gemini"])


@pytest.fixture
def peer(start_peer: Callable[[Path], Peer]) -> Peer:
    """Return the server that knows our questions."""
    return start_peer(FIXTURES)


def google(http: dict[str, object]) -> Provider:
    """Return a provider over google-genai, which needs a newer Pydantic than palaver: `./run floor` has none."""
    pytest.importorskip("google.genai")
    from palaver.providers.gemini.client import GoogleProvider  # noqa: PLC0415

    return GoogleProvider(api_key="none", http_options=http)


def made(api: str, peer: Peer, timeout: float = 30.0) -> Provider:
    """Return a provider that asks the peer."""
    if api == "gemini":
        http = {"base_url": peer.url, "api_version": "v1beta", "timeout": int(timeout * 1000)}
        return google(http)
    if api == "anthropic":
        return AnthropicProvider(base_url=peer.url, api_key="none", timeout=timeout)
    return OpenAIProvider(
        api="responses" if api == "openai-responses" else "chat",
        base_url=f"{peer.url}/v1",
        api_key="none",
        timeout=timeout,
    )


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
@pytest.mark.parametrize("stream", [False, True])
@APIS
def test_request_arrives_as_it_was_compiled(peer: Peer, api: str, *, stream: bool) -> None:
    """Nothing is added to the body or left out."""
    more = {} if api == "gemini" else {"parameters": {"metadata": {"user_id": "ü"}}}
    request = ask("say hello", profile=api, stream=stream, **more)
    answer(made(api, peer), request)
    entry = peer.journal()[-1]
    sent = int(entry["headers"]["content-length"])
    body = json.dumps(thaw(request.body), ensure_ascii=False, separators=(",", ":")).encode()
    assert entry["response"]["status"] == 200
    assert sent == len(body) or (api == "gemini" and sent > len(body))  # google-genai spaces its JSON


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")
def test_slow_answer_is_a_timeout(peer: Peer) -> None:
    """The client's own time-out applies; the request is worth a retry."""
    for api in ["openai-chat", "openai-responses", "anthropic", "gemini"]:
        with pytest.raises(ProviderError) as caught:
            answer(made(api, peer, timeout=0.2), ask("take your time", profile=api, stream=True))
        assert (caught.value.kind, caught.value.status, caught.value.retryable) == ("down", None, True)


@pytest.mark.peer
def test_callers_client_is_used_and_left_open(peer: Peer) -> None:
    """Its options apply, its retries do not, and closing the provider does not close it."""

    async def use() -> tuple[str | None, str | None]:
        async with (
            openai.AsyncOpenAI(base_url=f"{peer.url}/v1", api_key="mine", max_retries=5) as first,
            anthropic.AsyncAnthropic(base_url=peer.url, api_key="mine", max_retries=5) as second,
        ):
            async with (
                aclosing(OpenAIProvider(client=first, name="mine")) as one,
                aclosing(AnthropicProvider(client=second)) as two,
            ):
                said = await collect(one.stream(ask("say hello")))
                again = await collect(two.stream(ask("say hello", profile="anthropic")))
                before = len(peer.journal())
                with pytest.raises(ProviderError):
                    await collect(one.stream(ask("be broken")))
                assert len(peer.journal()) == before + 1
            assert not first.is_closed()
            assert not second.is_closed()
            return said.provider, again.provider

    assert anyio.run(use) == ("mine", "anthropic")


def test_litellm_has_no_network_or_output_of_its_own(tmp_path: Path) -> None:
    """No look-up, no .env file, no change of tiktoken's environment; not imported before the first request.

    An unknown name and a missing key are errors: nothing is sent or printed.
    """
    (tmp_path / ".env").write_text("FROM_DOTENV=1\n", encoding="utf-8")
    program = """
import os, socket, sys
def forbid(*a, **k): raise AssertionError("a look-up")
socket.getaddrinfo = forbid
from palaver.errors import ProviderError
from palaver.providers.litellm import LiteLLMProvider
from tests.providers.asking import answer, ask
provider = LiteLLMProvider()
assert "litellm" not in sys.modules
for model, kind in (("no-such-model", "model"), ("openai/gpt-5.2", "auth")):
    try:
        answer(provider, ask(model=model))
    except ProviderError as error:
        assert error.kind == kind, error
    else:
        raise AssertionError(model)
assert "litellm" in sys.modules
assert "TIKTOKEN_CACHE_DIR" not in os.environ and "FROM_DOTENV" not in os.environ
"""
    environment = {key: value for key, value in os.environ.items() if key != "TIKTOKEN_CACHE_DIR"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


# --- the laws of providers: the vendors' own clients talk to the peer server, which others wrote ---------------------------

QUESTIONS = (
    Question("say hello"),
    Question("think first"),
    Question("look around", (BASH,)),
    Question("think and call", (BASH,)),
    Question("call without arguments", (BASH,)),
    Question("run out of room"),
    Question("say something forbidden"),
    Question("be limited", fails="rate"),
    Question("write a novel", fails="overflow"),
    Question("open the door", fails="auth"),
    Question("be another model", fails="model"),
    Question("take a wrong parameter", fails="refused"),
    Question("be busy", fails="down"),
    Question("be broken", fails="down"),
    Question("drop the request", fails="down"),
    Question("answer gibberish", fails="broken"),
    Question("hang up", fails="down"),
)
CUT = Question("hang up in the middle", fails="broken")
"""Only a streamed answer can be cut in the middle by this server."""


class PeerLaws(ProviderLaws):
    """The laws over the peer server."""

    sends_thinking: ClassVar[bool] = False
    peer: Peer

    @pytest.fixture(autouse=True)
    def _with_peer(self, start_peer: Callable[..., Peer]) -> None:
        self.peer = start_peer(FIXTURES)

    def questions(self) -> Iterable[Question]:
        """Ask everything that the server knows."""
        return QUESTIONS

    def lost(self, question: Question) -> frozenset[str]:
        """Expect thinking to stay behind where the API has no field for it, or the server does not sign it."""
        return frozenset({"thinking"} if "think" in question.text and not self.sends_thinking else ())

    def test_retry_after_arrives(self) -> None:
        """It passes through the vendor's client."""
        limited = [heard.error for heard in self._heard() if heard.question.fails == "rate"]
        assert [error.retry_after for error in limited if error is not None] == [7.0, 7.0]

    def test_cut_answer_keeps_its_beginning(self) -> None:
        """The connection closes in the middle of a stream."""
        error = self._failure(self._request(CUT, stream=True))
        assert (error.kind, error.retryable) == ("broken", True)
        assert "This sentence".startswith(error.partial.text_content()[:13])
        assert error.partial.text_content()
        assert error.partial.error


@pytest.mark.peer
class TestOpenAIChat(PeerLaws):
    """Chat completions over the openai client."""

    model = "gpt-5.2"

    def provider(self) -> Provider:
        """Ask the peer."""
        return OpenAIProvider(base_url=f"{self.peer.url}/v1", api_key="none")


@pytest.mark.peer
class TestOpenAIResponses(PeerLaws):
    """Responses over the openai client."""

    model = "gpt-5.2"
    sends_thinking = True

    def provider(self) -> Provider:
        """Ask the peer."""
        return OpenAIProvider(api="responses", base_url=f"{self.peer.url}/v1", api_key="none")

    def questions(self) -> Iterable[Question]:
        """Ask everything; this server reports filtered content as a failed response."""
        return [replace(one, fails="down") if "forbidden" in one.text else one for one in QUESTIONS]


@pytest.mark.peer
class TestAnthropic(PeerLaws):
    """Messages over the anthropic client."""

    model = "claude-opus-4-6"
    sends_thinking = True

    def provider(self) -> Provider:
        """Ask the peer."""
        return AnthropicProvider(base_url=self.peer.url, api_key="none")


@pytest.mark.peer
@pytest.mark.timeout(
    360
)  # the first of them imports LiteLLM: a minute, on a machine with seven times the work that it has cores for
@pytest.mark.filterwarnings("ignore")  # of LiteLLM's own modules
class TestLiteLLM(PeerLaws):
    """OpenAI over LiteLLM."""

    model = "openai/gpt-5.2"

    def provider(self) -> Provider:
        """Ask the peer."""
        return LiteLLMProvider(api_base=f"{self.peer.url}/v1", api_key="none")


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:.*is not a valid FinishReason")  # the server says FUNCTION_CALL; Google does not
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
class TestGoogle(PeerLaws):
    """Generated content over the google-genai client."""

    model = "gemini-2.5-pro"

    def provider(self) -> Provider:
        """Ask the peer."""
        return google({"base_url": self.peer.url, "api_version": "v1beta"})
