"""The peer server answers the real clients of three providers, and tells what reached it."""

from collections.abc import Callable
from pathlib import Path

import anthropic
import openai
import pytest
from google import genai

from tests.peers.server import Peer

pytestmark = pytest.mark.peer

FIXTURES = Path(__file__).parent / "fixtures"
ANSWER = "Hello from the peer."


@pytest.fixture(scope="module")
def peer(start_peer: Callable[[Path], Peer]) -> Peer:
    """Return a server that knows one greeting."""
    return start_peer(FIXTURES)


def test_openai_reaches_it(peer: Peer) -> None:
    """A chat completion goes out and comes back through the client of OpenAI."""
    with openai.OpenAI(base_url=f"{peer.url}/v1", api_key="none", max_retries=0) as client:
        answer = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hello"}])
    assert answer.choices[0].message.content == ANSWER


def test_anthropic_reaches_it(peer: Peer) -> None:
    """A message goes out and comes back through the client of Anthropic."""
    with anthropic.Anthropic(base_url=peer.url, api_key="none", max_retries=0) as client:
        answer = client.messages.create(model="a-model", max_tokens=50, messages=[{"role": "user", "content": "hello"}])
    assert [block.text for block in answer.content if block.type == "text"] == [ANSWER]


def test_google_reaches_it(peer: Peer) -> None:
    """A generation goes out and comes back through the client of Google."""
    options = genai.types.HttpOptions(base_url=peer.url, api_version="v1beta")
    with genai.Client(api_key="none", http_options=options) as client:
        answer = client.models.generate_content(model="gemini-2.5-flash", contents="hello")
    assert answer.text == ANSWER


def test_journal_has_the_request(peer: Peer) -> None:
    """What a client sent stands in the journal, with its path and body."""
    with openai.OpenAI(base_url=f"{peer.url}/v1", api_key="none", max_retries=0) as client:
        client.chat.completions.create(model="journalled", messages=[{"role": "user", "content": "hello"}])
    sent = [entry for entry in peer.journal() if (entry["body"] or {}).get("model") == "journalled"]
    assert [entry["path"] for entry in sent] == ["/v1/chat/completions"]
    assert sent[0]["body"]["messages"] == [{"role": "user", "content": "hello"}]
