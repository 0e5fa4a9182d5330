"""The laws of providers over each of ours: the vendors' own clients speak to the peer server, which others wrote."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from palaver.errors import BrokenAnswer, ProviderDown, RateLimited
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

    peer: Peer

    @pytest.fixture(autouse=True)
    def _with_peer(self, start_peer: Callable[..., Peer]) -> None:
        """Start the server, once for all."""
        self.peer = start_peer(FIXTURES)

    def questions(self) -> Iterable[Question]:
        """Ask everything that the server knows."""
        return QUESTIONS

    def test_the_server_s_wish_to_be_left_alone_arrives(self) -> None:
        """`Retry-After` gets through the client to whoever retries."""
        limited = [heard.error for heard in self._heard() if heard.question.fails is RateLimited]
        assert [error.retry_after for error in limited if error is not None] == [7.0, 7.0]

    def test_an_answer_that_is_cut_is_broken_and_its_beginning_is_kept(self) -> None:
        """The connection goes in the middle of a stream: what came is in the error, marked as such."""
        error = self._failure(self._request(CUT, stream=True))
        assert isinstance(error, BrokenAnswer)
        assert "This sentence".startswith(error.partial.text_content()[:13])
        assert error.partial.text_content()
        assert error.partial.error
        assert error.retryable


@pytest.mark.peer
class TestOpenAIChat(PeerLaws):
    """Chat completions over the openai client."""

    model = "gpt-5.2"

    def provider(self) -> Provider:
        """Ask the peer."""
        return OpenAIProvider(base_url=f"{self.peer.url}/v1", api_key="none")

    def lost(self, question: Question) -> frozenset[str]:
        """The API takes no thinking back."""
        return frozenset({"thinking"} if "think" in question.text else ())


@pytest.mark.peer
class TestOpenAIResponses(PeerLaws):
    """Responses over the openai client."""

    model = "gpt-5.2"

    def provider(self) -> Provider:
        """Ask the peer."""
        return OpenAIProvider(api="responses", base_url=f"{self.peer.url}/v1", api_key="none")

    def questions(self) -> Iterable[Question]:
        """Ask everything; what is filtered is a failed response to this server."""
        return [
            replace(question, fails=ProviderDown) if "forbidden" in question.text else question
            for question in QUESTIONS
        ]


@pytest.mark.peer
class TestAnthropic(PeerLaws):
    """Messages over the anthropic client."""

    model = "claude-opus-4-6"

    def provider(self) -> Provider:
        """Ask the peer."""
        return AnthropicProvider(base_url=self.peer.url, api_key="none")


@pytest.mark.filterwarnings("ignore")  # what LiteLLM does among its own modules is no fault of ours
class LiteLLMLaws(PeerLaws):
    """LiteLLM over chat completions, to whatever speaks behind it."""

    def lost(self, question: Question) -> frozenset[str]:
        """The API takes no thinking back."""
        return frozenset({"thinking"} if "think" in question.text else ())


@pytest.mark.peer
class TestLiteLLMToOpenAI(LiteLLMLaws):
    """OpenAI behind LiteLLM."""

    model = "openai/gpt-5.2"

    def provider(self) -> Provider:
        """Ask the peer."""
        return LiteLLMProvider(api_base=f"{self.peer.url}/v1", api_key="none")


@pytest.mark.peer
class TestLiteLLMToAnthropic(LiteLLMLaws):
    """Anthropic behind LiteLLM."""

    model = "anthropic/claude-opus-4-6"

    def provider(self) -> Provider:
        """Ask the peer."""
        return LiteLLMProvider(api_base=self.peer.url, api_key="none")


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:.*is not a valid FinishReason")  # the server says FUNCTION_CALL; Google does not
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
class TestGoogle(PeerLaws):
    """Generation of content over the google-genai client."""

    model = "gemini-2.5-pro"

    def provider(self) -> Provider:
        """Ask the peer."""
        return GoogleProvider(api_key="none", http_options={"base_url": self.peer.url, "api_version": "v1beta"})

    def lost(self, question: Question) -> frozenset[str]:
        """The server does not sign thoughts, and Google takes none back that are not."""
        return frozenset({"thinking"} if "think" in question.text else ())
