"""Transport: what a sample says reaches a server through the provider's own client, byte for byte what it says.

The server is one that others wrote (tests/peers). It does not judge requests, but it reads each provider's into one form of
its own, which its journal shows: so a call that was lost on the way, or stood where nobody looks for it, would show.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from tests.peers.server import Peer
from tests.wire.check.relay import Relay, relaying
from tests.wire.check.samples import SAMPLES

pytestmark = pytest.mark.peer

FIXTURES = Path(__file__).parent / "fixtures"
ANSWER = "Taken."
STANDARD = str.maketrans("-_", "+/")


@pytest.fixture(scope="module")
def peer(start_peer: Callable[[Path], Peer]) -> Peer:
    """Return a server that answers the last words of each sample."""
    return start_peer(FIXTURES)


@pytest.fixture
def relay(peer: Peer) -> Iterator[Relay]:
    """Return a relay to the server that keeps what is sent."""
    with relaying(peer.url) as running:
        yield running


def calls_read(peer: Peer) -> list[str]:
    """Give the names of the tools that were called, as the server read them in the last request."""
    messages: list[dict[str, Any]] = peer.journal()[-1]["body"]["messages"]
    called = [call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()]
    answers = [message for message in messages if message["role"] == "tool"]
    assert len(answers) == len(called)
    return called


def as_documented(fields: dict[str, Any]) -> dict[str, Any]:
    """Give an object of Google's client the names and the base64 that the API's reference has; the API takes both."""
    spelt = {re.sub("_([a-z])", lambda found: found[1].upper(), name): value for name, value in fields.items()}
    return {name: value.translate(STANDARD) if name == "data" else value for name, value in spelt.items()}


def test_a_chat_completion_arrives(peer: Peer, relay: Relay) -> None:
    """The body of a chat completion is on the wire what the sample says, and its calls and results are read."""
    body = SAMPLES["openai-chat"].request()
    with openai.OpenAI(base_url=f"{relay.url}/v1", api_key="none", max_retries=0) as client:
        answer = client.chat.completions.create(**body)
    assert answer.choices[0].message.content == ANSWER
    assert [json.loads(sent) for sent in relay.bodies] == [body]
    assert calls_read(peer) == ["read_file", "screenshot", "read_file"]


def test_a_response_arrives(peer: Peer, relay: Relay) -> None:
    """The body of a response is on the wire what the sample says; the server reads its functions, not its custom tools."""
    body = SAMPLES["openai-responses"].request()
    with openai.OpenAI(base_url=f"{relay.url}/v1", api_key="none", max_retries=0) as client:
        answer = client.responses.create(**body)
    assert answer.output_text == ANSWER
    assert [json.loads(sent) for sent in relay.bodies] == [body]
    assert calls_read(peer) == ["read_file", "read_file"]


def test_a_message_arrives(peer: Peer, relay: Relay) -> None:
    """The body of a message is on the wire what the sample says, and its calls and results are read."""
    body = SAMPLES["anthropic"].request()
    with anthropic.Anthropic(base_url=relay.url, api_key="none", max_retries=0) as client:
        answer = client.messages.create(**body)
    assert [block.text for block in answer.content if block.type == "text"] == [ANSWER]
    assert [json.loads(sent) for sent in relay.bodies] == [body]
    assert calls_read(peer) == ["read_file", "screenshot", "read_file"]


def test_a_generation_arrives(peer: Peer, relay: Relay) -> None:
    """The body of a generation is on the wire what the sample says, read and written again by Google's types.

    They write some names in snake case and some payloads in the other alphabet of base64.
    """
    body = SAMPLES["gemini"].request()
    config = {name: value for name, value in body.items() if name not in ("contents", "generationConfig")}
    options = types.HttpOptions(base_url=relay.url, api_version="v1beta")
    with genai.Client(api_key="none", http_options=options) as client:
        answer = client.models.generate_content(
            model="gemini-3-pro",
            contents=[types.Content.model_validate_json(json.dumps(content)) for content in body["contents"]],
            config=types.GenerateContentConfig.model_validate_json(json.dumps(config | body["generationConfig"])),
        )
    assert answer.text == ANSWER
    assert [json.loads(sent, object_hook=as_documented) for sent in relay.bodies] == [body]
    assert calls_read(peer) == ["read_file", "screenshot", "read_file", "read_file"]
