"""Compiled requests go out through the providers' own clients, and arrive as they were compiled."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from palaver.messages import thaw
from tests.peers.server import Peer
from tests.wire.histories import HISTORIES

pytestmark = pytest.mark.peer

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="module")
def peer(start_peer: Callable[[Path], Peer]) -> Peer:
    """Return a server that answers anything."""
    return start_peer(FIXTURES)


def _chat(url: str, body: Mapping[str, Any], _model: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        client.chat.completions.create(**body)


def _responses(url: str, body: Mapping[str, Any], _model: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        client.responses.create(**body)


def _anthropic(url: str, body: Mapping[str, Any], _model: str) -> None:
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        client.messages.create(**body)


def _gemini(url: str, body: Mapping[str, Any], model: str) -> None:
    """Hand the body to Google's client in its own types, as it wants it."""
    options = genai.types.HttpOptions(base_url=url, api_version="v1beta")
    contents = [genai.types.Content.model_validate_json(json.dumps(content)) for content in body["contents"]]
    config = {key: value for key, value in body.items() if key not in {"contents", "toolConfig"}}
    with genai.Client(api_key="none", http_options=options) as client:
        client.models.generate_content(
            model=model,
            contents=contents,
            config=genai.types.GenerateContentConfig.model_validate_json(json.dumps(config)),
        )


CLIENTS: Mapping[str, Callable[[str, Mapping[str, Any], str], None]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
PATHS = {
    "openai-chat": "/chat/completions",
    "openai-responses": "/responses",
    "anthropic": "/messages",
    "gemini": ":generateContent",
}


@pytest.mark.parametrize("name", CLIENTS)
def test_requests_pass_through_the_real_client(peer: Peer, name: str) -> None:
    """The client takes each body and sends as many bytes as were compiled, to the provider's address; the server answers.

    Google's client writes bodies in its own words (types in capitals, calls without empty arguments): there every text arrives.
    """
    for history in HISTORIES.values():
        request = history().request(name, then="go on")
        CLIENTS[name](peer.url, thaw(request.body), request.model)
        entry = peer.journal()[-1]
        assert entry["path"].partition("?")[0].endswith(PATHS[name])
        assert entry["response"]["status"] == 200
        if name != "gemini":
            assert int(entry["headers"]["content-length"]) == len(request.data)
        else:
            sent = json.dumps(entry["body"], ensure_ascii=False)
            parts = [part for content in request.body["contents"] for part in content["parts"] if "thought" not in part]
            for text in (part["text"] for part in parts if "text" in part):
                assert json.dumps(text, ensure_ascii=False)[1:-1] in sent
