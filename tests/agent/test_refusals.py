"""A session that its provider refuses for good: the error names the block, it is set aside, and the turn is answered."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from palaver import Agent, Prompt, ProviderInvoker
from palaver.errors import ModelCallFailed, RequestRefused
from palaver.messages import AssistantMessage
from palaver.models.anthropic import AnthropicProvider
from palaver.tools.portal import run_sync
from palaver.wire import Request
from tests.agent.helper import scripted
from tests.peers.server import Peer

POISON = "poison-in-here"


def test_a_session_that_is_refused_for_good_goes_on_when_the_block_is_set_aside() -> None:
    """A provider answers 400 to every request with the block: the turn fails typed, the block is found and set aside, the turn is answered."""

    def refuses(request: Request) -> object:
        for index, message in enumerate(request.body["messages"]):
            if POISON in str(message):
                said = f"Error code: 400 - messages.[{index}].content: Invalid value"
                return RequestRefused(said.replace(".[", "["), status=400)
        return "Fine."

    agent, provider = scripted(refuses)
    agent.current_dialog.put_text(f"Read this: {POISON}")
    agent.current_dialog.append(AssistantMessage(content="I have."))
    agent.receive("And now?")
    with pytest.raises(ModelCallFailed):
        agent.respond()
    agent.receive("And now?")
    with pytest.raises(ModelCallFailed) as refused:  # it stays refused
        agent.respond()
    dialog = agent.current_dialog
    place = dialog.blamed(provider.requests[-1], str(refused.value.error))
    assert place is not None
    assert refused.value.place == str(place)
    assert f"palaver quarantine {place}" in str(refused.value)
    dialog.quarantine(refused.value.place, str(refused.value.error))
    assert agent.respond().content == "Fine."
    assert POISON in str(dialog.recall(place))


@pytest.mark.parametrize("words", ["not today", "messages.99.content: there is no such message", "messages.x: what?"])
def test_a_refusal_that_names_no_block_blames_none(words: str) -> None:
    """Where the provider names no place, or one that is not there, nothing is blamed and the error says only what was said."""
    agent, _ = scripted([RequestRefused(words, status=400)])
    agent.receive("Hello.")
    with pytest.raises(ModelCallFailed) as refused:
        agent.respond()
    assert (refused.value.place, "quarantine" in str(refused.value)) == ("", False)


@pytest.mark.peer
def test_a_refused_session_goes_on_over_a_vendors_own_client(
    start_peer: Callable[[Path], Peer], tmp_path: Path
) -> None:
    """Anthropic's client gets a 400 from the peer server for each request; when the block that the error names is set aside it is answered."""
    said = {
        "type": "invalid_request_error",
        "message": "messages.0.content.0.text: Output blocked by content filtering policy",
    }
    refused = [
        {"match": {"userMessage": "And now?", "sequenceIndex": turn}, "response": {"error": said, "status": 400}}
        for turn in range(2)
    ]
    answered = {"match": {"userMessage": "And now?"}, "response": {"content": "Fine."}}
    (tmp_path / "refusing.json").write_text(json.dumps({"fixtures": [*refused, answered]}), encoding="utf-8")
    server = start_peer(tmp_path / "refusing.json")
    provider = AnthropicProvider(base_url=server.url, api_key="none")
    prompt = Prompt(path="reader/system", prompt="Read.")
    agent = Agent("reader", prompt, "claude-sonnet-4-5", ProviderInvoker(provider)).open("main")
    agent.current_dialog.put_text(f"Read this: {POISON}")
    agent.current_dialog.append(AssistantMessage(content="I have."))
    agent.receive("And now?")
    try:
        with pytest.raises(ModelCallFailed):
            agent.respond()
        with pytest.raises(ModelCallFailed) as told:  # the same turn, which stays refused
            agent.respond()
        agent.current_dialog.quarantine(told.value.place)
        assert agent.respond().content == "Fine."
    finally:
        run_sync(provider.aclose)
    sent = [json.dumps(entry["body"]) for entry in server.journal()]
    assert [POISON in one for one in sent] == [True, True, False]
