"""The laws of providers for each adapter: the vendors' own clients talk to the peer server, which others wrote."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import ClassVar

import pytest

from palaver.models import Provider
from palaver.models.anthropic import AnthropicProvider
from palaver.models.google import GoogleProvider
from palaver.models.litellm import LiteLLMProvider
from palaver.models.openai import OpenAIProvider
from palaver.testing.provider_laws import ProviderLaws, Question
from tests.models.peer_questions import CUT, FIXTURES, QUESTIONS
from tests.peers.server import Peer


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
        return GoogleProvider(api_key="none", http_options={"base_url": self.peer.url, "api_version": "v1beta"})
