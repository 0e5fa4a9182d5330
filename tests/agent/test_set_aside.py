"""An agent that is to go on without what its provider refuses: what it sets aside, what it never does, and how often."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver import Agent, Prompt, ProviderInvoker, Session
from palaver.agent import AgentEvent, Quarantined, build_agents, load_config
from palaver.errors import InvalidConfig, InvalidInput, ModelCallFailed, RequestRefused
from palaver.log import Instructions, Quarantine, Section
from palaver.messages import AssistantMessage, ImageContent, TextContent, ThinkingContent, UserMessage
from palaver.models.anthropic import AnthropicProvider
from palaver.tools import tool
from palaver.tools.portal import run_sync
from palaver.wire import Request
from tests.agent.helper import MODEL, QUICK, calling, entries, scripted
from tests.peers.server import Peer

POISON = "poison-in-here"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
Script = Callable[[Request], object]


def _refusing(word: str, answer: object = "Fine.") -> Script:
    """Refuse each request with a word in it, by the place of the first block that has it."""

    def script(request: Request) -> object:
        for index, message in enumerate(request.body["messages"]):
            content = message["content"]
            for at, block in enumerate(content if isinstance(content, list) else ()):
                if word in json.dumps(block):
                    return RequestRefused(f"messages.{index}.content.{at}: it is refused", status=400)
            if isinstance(content, str) and word in content:
                return RequestRefused(f"messages.{index}.content: it is refused", status=400)
        return answer

    return script


def _going_on(script: Script | list[object], **options: Any) -> Agent:  # noqa: ANN401 - what an agent takes
    return scripted(script, profile="anthropic", on_refused="quarantine", retry=QUICK, **options)[0]


def _quarantines(agent: Agent) -> list[Quarantine]:
    return [entry for entry in entries(agent.current_dialog) if isinstance(entry, Quarantine)]


def test_a_turn_goes_on_without_what_is_refused() -> None:
    """The block is set aside by an entry with the provider's words, an event and the trace say so, the log keeps it, and it can be undone."""
    agent = _going_on(_refusing(POISON))
    dialog = agent.current_dialog
    dialog.put_text(f"Read this: {POISON}")
    dialog.append(AssistantMessage(content="I have."))
    agent.receive("And now?")
    heard: list[AgentEvent] = []
    agent.stream_handler = heard.append
    session = agent.respond(return_session=True)
    assert session.delivery is not None
    assert session.delivery.content == "Fine."
    (event,) = [one for one in heard if isinstance(one, Quarantined)]
    assert session.set_aside == [event.handle]
    assert "it is refused" in event.reason
    assert [str(place) for place in dialog.quarantined] == [event.handle]
    assert POISON in str(dialog.recall(event.handle))
    dialog.lift_quarantine(event.handle)
    assert POISON in json.dumps(dialog.request("anthropic", "claude-sonnet-4-5").body["messages"][:1])


def test_by_default_nothing_is_set_aside() -> None:
    """An agent whose maker did not ask for it raises, and names the block; another word than the two is refused at once."""
    agent, _ = scripted(_refusing(POISON), profile="anthropic")
    agent.current_dialog.put_text(POISON)
    agent.current_dialog.append(AssistantMessage(content="I see."))
    agent.receive("And now?")
    with pytest.raises(ModelCallFailed) as refused:
        agent.respond()
    assert refused.value.place
    assert _quarantines(agent) == []
    with pytest.raises(InvalidInput, match="raise, quarantine"):
        scripted([], on_refused="ignore")


def test_what_the_user_asked_the_instructions_and_pins_stay() -> None:
    """Words of the newest question, instructions and pinned entries are never set aside without a human: the turn fails, and names the block."""
    asked = _going_on(_refusing(POISON))
    asked.receive(f"Do {POISON}.")
    pinned = _going_on(_refusing(POISON))
    pinned.current_dialog.put_text(f"Remember {POISON}")
    pinned.current_dialog.pin(pinned.current_dialog.messages.handle(-1))
    pinned.current_dialog.append(AssistantMessage(content="Yes."))
    pinned.receive("And now?")
    for agent in (asked, pinned):
        with pytest.raises(ModelCallFailed) as refused:
            agent.respond()
        assert refused.value.place
        assert _quarantines(agent) == []
    told = _going_on([RequestRefused("system.0: it is refused", status=400)])
    told.current_dialog.record(Instructions(sections=(Section(name="system", text=POISON),)))
    told.receive("Hello.")
    with pytest.raises(ModelCallFailed):
        told.respond()
    assert _quarantines(told) == []


def test_a_picture_that_the_provider_cannot_process_is_found_without_a_place() -> None:
    """Anthropic says «Could not process image» and no place: the one that the model has not answered yet is meant, not the one before it."""

    def script(request: Request) -> object:
        pictures = json.dumps(request.body).count('"base64"')
        return RequestRefused("Could not process image", status=400) if pictures > 1 else "I see one."

    agent = _going_on(script)
    dialog = agent.current_dialog
    dialog.append(UserMessage(contents=(TextContent(content="Look."), ImageContent(images=(PNG,)))))
    assert agent.respond().content == "I see one."
    first = dialog.messages.handle(-2)
    dialog.append(UserMessage(contents=(TextContent(content="And this?"), ImageContent(images=(PNG + b"\0",)))))
    assert agent.respond().content == "I see one."
    (aside,) = dialog.quarantined
    assert (aside.dialog, aside.seq, aside.block) != (first.dialog, first.seq, 1)
    assert isinstance(dialog.recall(aside), ImageContent)
    assert "And this?" in json.dumps(dialog.request("anthropic", MODEL).body)


def test_a_picture_of_a_tool_is_set_aside_in_the_middle_of_a_turn() -> None:
    """A tool gives a picture that the provider does not read: its result is set aside, the call keeps its other half, and the turn is answered."""

    @tool
    def look() -> ImageContent:
        """Take a picture."""
        return ImageContent(images=(PNG,))

    def script(request: Request) -> object:
        told = json.dumps(request.body["messages"])
        if '"base64"' in told:
            return RequestRefused("Could not process image", status=400)
        return "I cannot see it." if "tool_result" in told else calling("look")

    agent = _going_on(script, tools=[look])
    agent.receive("Look around.")
    assert agent.respond().content == "I cannot see it."
    (aside,) = agent.current_dialog.quarantined
    assert agent.current_dialog.request("anthropic", MODEL).body["messages"][-2]["content"][0]["type"] == "tool_result"
    assert "recall" in json.dumps(agent.current_dialog.request("anthropic", MODEL).body)
    assert str(aside).startswith(agent.current_dialog.dialog_id[:12])


def test_several_new_pictures_go_together_and_words_about_something_else_blame_none() -> None:
    """Which of two new pictures is meant, nobody can tell: both go. A refusal that is about no media ends the turn as ever."""

    def script(request: Request) -> object:
        return (
            RequestRefused("Could not process image", status=400) if '"base64"' in json.dumps(request.body) else "No."
        )

    pictures = tuple(ImageContent(images=(PNG + bytes([number]),)) for number in range(2))
    agent = _going_on(script)
    agent.current_dialog.append(UserMessage(contents=(TextContent(content="Look."), *pictures)))
    assert agent.respond().content == "No."
    assert len(agent.current_dialog.quarantined) == len(pictures)
    other = _going_on([RequestRefused("temperature is deprecated", status=400)])
    other.current_dialog.append(UserMessage(contents=(TextContent(content="Look."), *pictures)))
    with pytest.raises(ModelCallFailed):
        other.respond()
    assert _quarantines(other) == []


def test_what_was_set_aside_in_vain_is_shown_again() -> None:
    """The words name no place, and are said again when every picture is gone: they were not about the pictures, which stand as before."""
    script = ["I see one.", *[RequestRefused("image generation is not for this model", status=400)] * 3]
    agent = _going_on(script)
    for number in range(2):
        picture = ImageContent(images=(PNG + bytes([number]),))
        agent.current_dialog.append(UserMessage(contents=(TextContent(content="Look."), picture)))
        if not number:
            agent.respond()
    with pytest.raises(ModelCallFailed) as refused:
        agent.respond()
    assert refused.value.session is not None
    assert (dict(agent.current_dialog.quarantined), refused.value.session.set_aside) == ({}, [])
    assert json.dumps(agent.current_dialog.request("anthropic", MODEL).body).count('"base64"') == 2


def test_a_place_that_is_refused_again_was_not_to_blame() -> None:
    """The provider names the same place when only the placeholder stands there: the block is shown again, the log says why, and the error tells it."""
    agent = _going_on([RequestRefused("messages.0.content.0: something is wrong", status=400)] * 3)
    agent.current_dialog.put_text("Innocent words.")
    agent.current_dialog.append(AssistantMessage(content="I see."))
    agent.receive("And now?")
    with pytest.raises(ModelCallFailed, match="something is wrong") as refused:
        agent.respond()
    assert [one.lifted for one in _quarantines(agent)] == [False, True]
    assert _quarantines(agent)[1].reason == "it was refused without it, too"
    assert dict(agent.current_dialog.quarantined) == {}
    assert (refused.value.place, refused.value.session.set_aside if refused.value.session else None) == ("", [])
    assert "is shown again: the request has another fault" in refused.value.hint
    assert "Innocent words." in json.dumps(agent.current_dialog.request("anthropic", MODEL).body)


def test_a_mark_that_compiling_adds_blames_no_block() -> None:
    """A mark of the cache is refused at the place of a block: the block is innocent, and so would be each that is marked in its stead."""
    agent = _going_on([RequestRefused("messages.0.content.0.cache_control.ttl: Extra inputs", status=400)])
    agent.current_dialog.put_text("Never delete a table.")
    agent.current_dialog.append(AssistantMessage(content="No."))
    agent.receive("And now?")
    with pytest.raises(ModelCallFailed) as refused:
        agent.respond()
    assert (refused.value.place, _quarantines(agent)) == ("", [])


def test_a_signature_that_is_not_taken() -> None:
    """The thought whose signature the provider refuses is set aside, and the request stays valid."""
    thought = ThinkingContent(content="Hm.", signature="spoilt", provider="anthropic")

    def script(request: Request) -> object:
        for index, message in enumerate(request.body["messages"]):
            for at, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
                if block.get("signature") == "spoilt":
                    return RequestRefused(
                        f"messages.{index}.content.{at}: Invalid `signature` in `thinking` block", status=400
                    )
        return "Fine."

    agent = _going_on(script)
    agent.current_dialog.put_text("Think.")
    agent.current_dialog.append(AssistantMessage(contents=(thought, TextContent(content="Done.")), model=MODEL))
    agent.receive("And now?")
    assert agent.respond().content == "Fine."
    (aside,) = agent.current_dialog.quarantined
    assert agent.current_dialog.recall(aside) == thought


def test_it_is_bounded() -> None:
    """A provider that refuses one block after the other is asked a limited number of times; each block is set aside once."""
    asked: list[int] = []

    def script(request: Request) -> object:
        asked.append(1)
        places = [at for at, one in enumerate(request.body["messages"]) if "part" in json.dumps(one)]
        return RequestRefused(f"messages.{places[0]}.content: no", status=400) if places else "Fine."

    agent = _going_on(script)
    for number in range(12):
        agent.current_dialog.put_text(f"part {number}")
        agent.current_dialog.append(AssistantMessage(content="Go on."))
    agent.receive("And now?")
    with pytest.raises(ModelCallFailed) as refused:
        agent.respond()
    assert (len(_quarantines(agent)), len(asked)) == (8, 9)
    assert refused.value.place
    assert f"It is about {refused.value.place}" in refused.value.hint
    assert "8 blocks, which stay so" in refused.value.hint
    assert "--undo" in refused.value.hint
    assert agent.respond().content == "Fine."  # asked again, it may go on


def test_a_turn_that_dies_behind_a_quarantine_goes_on_without_the_block(tmp_path: Path) -> None:
    """What was set aside is durable: the next process asks without it, and the limit counts what the first one did."""
    agent = _going_on(_refusing(POISON), store=str(tmp_path / "s.db"))
    agent.current_dialog.put_text(POISON)
    agent.current_dialog.append(AssistantMessage(content="I see."))
    agent.receive("And now?")

    def dies(event: AgentEvent) -> None:
        if isinstance(event, Quarantined):
            raise KeyboardInterrupt

    agent.stream_handler = dies
    with pytest.raises(KeyboardInterrupt):
        agent.respond()
    with Session.open(agent.current_dialog.session_id, str(tmp_path / "s.db")) as session:
        assert len(session.root.quarantined) == 1
    again, provider = scripted(_refusing(POISON), profile="anthropic")
    again.adopt("there", agent.current_dialog.reload())
    assert again.respond().content == "Fine."
    assert len(provider.requests) == 1


def test_a_configuration_says_it() -> None:
    """`on_refused` is a word of configurations; another value than the two is refused with its place."""
    text = "agent_configs:\n  - {name: a, model: gpt-4o, system_prompt: Hi., invoker: scripted, on_refused: %s}\n"
    (agent,) = build_agents(load_config(text % "quarantine"), llm_invoker=ProviderInvoker(_nobody())).values()
    assert agent.on_refused == "quarantine"
    with pytest.raises(InvalidConfig, match="raise or quarantine"):
        load_config(text % "ignore")


def _nobody() -> AnthropicProvider:
    return AnthropicProvider(api_key="none")


@pytest.mark.peer
def test_over_a_vendors_own_client(start_peer: Callable[[Path], Peer], tmp_path: Path) -> None:
    """Anthropic's client gets «Could not process image» from the peer server: the picture goes, and the same turn is answered."""
    said = {"type": "invalid_request_error", "message": "Could not process image"}
    refused = {"match": {"userMessage": "Look.", "sequenceIndex": 0}, "response": {"error": said, "status": 400}}
    answered = {"match": {"userMessage": "Look."}, "response": {"content": "I cannot see it."}}
    (tmp_path / "refusing.json").write_text(json.dumps({"fixtures": [refused, answered]}), encoding="utf-8")
    server = start_peer(tmp_path / "refusing.json")
    provider = AnthropicProvider(base_url=server.url, api_key="none")
    prompt = Prompt(path="looker/system", prompt="Look.")
    agent = Agent("looker", prompt, "claude-sonnet-4-5", ProviderInvoker(provider), on_refused="quarantine").open(
        "main"
    )
    agent.current_dialog.append(UserMessage(contents=(ImageContent(images=(PNG,)), TextContent(content="Look."))))
    try:
        assert agent.respond().content == "I cannot see it."
    finally:
        run_sync(provider.aclose)
    assert len(server.journal()) == len(["refused", "answered"])
    assert len(agent.current_dialog.quarantined) == 1
