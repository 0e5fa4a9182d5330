"""What a conversation with OpenAI, Gemini and servers of chat completions may go through: nothing is refused, and nothing leaves without a note."""

from __future__ import annotations

from typing import Any

import pytest
from google import genai

from palaver.agent import Agent
from palaver.errors import InvalidRequest
from palaver.messages import (
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
)
from palaver.prompts import Format
from palaver.providers import connect_provider
from palaver.testing import strict
from tests.testing.strict.ways import AgentWay, DialogWay, FitWay, Json, Way, accepted, bash, made, read, ways

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession", "ignore:The window of")
LONG = "word " * 300
NEWEST, GPT, GEMINI = "gpt-6.2-sol", "gpt-6-sol", "gemini-3.6-flash"
REASONING: Json = {"type": "reasoning"}
CALL: Json = {"type": "function_call", "name": "bash", "arguments": "{}"}
SAY: list[Json | str] = [REASONING, "Done."]
ROUND = ([REASONING, CALL], SAY)
SEALED: Json = {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "gAAAAgAAAA"}


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 - a generator
    """Return a running stand-in, by default of the Responses API."""
    with getattr(request, "param", strict.openai_responses)() as running:
        yield running


@pytest.fixture
def way(request: pytest.FixtureRequest, server: strict.StrictServer) -> Way:
    """Return a conversation in one of the ways, with OpenAI's Responses."""
    include = {"include": ["reasoning.encrypted_content"]} if request.param == "fit" else {}
    return made(request.param, server, "openai-responses", NEWEST, **include)


def types(body: Json) -> list[str]:
    """Return the types of the items of a request."""
    return [item.get("type", "message") for item in body["input"]]


def reasoned(body: Json) -> int:
    """Count the items of reasoning in a request."""
    return types(body).count("reasoning")


# --- OpenAI --------------------------------------------------------------------------------------------------------------


@ways("request", "agent")
def test_changes_withhold_no_reasoning(way: Way, server: strict.StrictServer) -> None:
    """«tools/format/input edit x GPT-6.2»: tools are appended; what a format unbinds leaves that call with notes."""
    way.turn("One.", *ROUND)
    way.system, way.tools = "Be kind.", (bash, read)
    (second,) = way.turn("Two.", SAY)
    (third,) = way.turn("Three.", [REASONING, "1"], format=Format(int))
    assert any(note.startswith("thinking: signed for other words") for note in way.notes)
    (fourth,) = way.turn("Four.", SAY)
    assert [reasoned(body) for body in (second, third, fourth)] == [2, 0, 3]
    accepted(server)


@pytest.mark.parametrize("model", [NEWEST, GPT])
@ways()
def test_cuts_withhold_no_reasoning(way: Way, server: strict.StrictServer, model: str) -> None:
    """«tools/format/input edit x GPT-6.2»: cuts and shortened outputs leave out what is not bound any more, with notes."""
    way.model, counts = model, []
    for number in range(6):
        counts.append(reasoned(way.turn(f"{number} {LONG}", *ROUND, budget=3_500)[-1]))
        assert counts[-1] == 2 * number + 1 or way.notes
    assert 0 < sum(counts[3:]) < 27
    accepted(server)


@ways("request", "agent")
def test_instructions_are_in_the_prefix(way: Way, server: strict.StrictServer) -> None:
    """«`instructions` every turn x GPT-6.2»: they are the first developer item."""
    way.turn("One.", *ROUND)
    (body,) = way.turn("Two.", SAY)
    assert "instructions" not in body
    assert body["input"][0]["role"] == "developer"
    assert reasoned(body) == 2
    accepted(server)


def test_tools_of_newer_models_need_responses() -> None:
    """«GPT-6 chat + tools»: refused before anything is sent, with the way out."""
    provider = connect_provider("openai", api="chat", api_key="key")
    with pytest.raises(InvalidRequest, match="openai-responses"):
        Agent("tester", "Be brief.", GPT, provider, tools=[bash]).respond("One.")


@ways()
def test_reasoning_needs_what_it_led_to(way: Way, server: strict.StrictServer) -> None:
    """«reasoning without following item»: an answer that broke off after its reasoning leaves with a note."""
    way.turn("One.", SAY)
    way.turn("Two.", [REASONING])
    (body,) = way.turn("Three.", SAY)
    assert reasoned(body) == 1
    assert way.notes
    accepted(server)


@ways("request", "agent")
def test_reasoning_of_others_stays_out(way: DialogWay, server: strict.StrictServer) -> None:
    """«foreign encrypted_content»: it leaves with a note."""
    way.turn("One.", SAY)
    way.dialog.put_text("Two.")
    thought = ThinkingContent(provider="openrouter", artefact=SEALED)
    way.dialog.append(AssistantMessage(contents=(thought, TextContent("Well.")), provider="openrouter", model=NEWEST))
    (body,) = way.turn("Three.", SAY)
    assert reasoned(body) == 1
    assert "thinking: another provider's" in way.notes
    accepted(server)


@ways()
def test_reasoning_is_read_within_a_family(way: Way, server: strict.StrictServer) -> None:
    """«GPT-5.6 → 6 reasoning»: it leaves with notes; of a list the API passes over it, and says so."""
    way.model = "gpt-5.6-sol"
    way.turn("One.", *ROUND)
    way.model = GPT
    (body,) = way.turn("Two.", SAY)
    if isinstance(way, FitWay):
        accepted(server, "model_mismatch")
        return
    assert reasoned(body) == 0
    assert way.notes.count("thinking: of a model whose thinking this one does not read") == 2
    accepted(server)


@ways()
def test_a_compaction_item_stands_for_what_precedes_it(way: Way, server: strict.StrictServer) -> None:
    """«items before newest compaction dropped x Responses»: requests begin with it; a list may keep what precedes it."""
    way.turn("One.", SAY)
    asked = {"context_management": [{"type": "compaction", "compact_threshold": 1}]}
    way.turn("Two.", SAY, **(asked if isinstance(way, FitWay) else {"parameters": asked}))
    (body,) = way.turn("Three.", SAY)
    said = types(body)
    assert said[said.index("compaction") :] == ["compaction", "reasoning", "message", "message"]
    assert isinstance(way, FitWay) or "One." not in str(body)
    accepted(server)


@ways()
def test_phases_go_back(way: Way, server: strict.StrictServer) -> None:
    """«`phase` lost»: a message goes back with its phase."""
    looking: Json = {"type": "message", "content": "Looking.", "phase": "commentary"}
    way.turn("One.", [REASONING, looking, CALL], [REASONING, looking | {"content": "Done.", "phase": "final_answer"}])
    (body,) = way.turn("Two.", SAY)
    assert [item["phase"] for item in body["input"] if item.get("phase")] == ["commentary", "final_answer"]
    accepted(server)


# --- Gemini --------------------------------------------------------------------------------------------------------------

THOUGHT: Json = {"text": "hm", "thought": True}
FUNCTION: Json = {"functionCall": {"name": "bash", "args": {"command": "ls"}}}
STEP: Json = {"type": "thought", "summary": [{"type": "text", "text": "hm"}]}
STEPPED: Json = {"type": "function_call", "name": "bash", "arguments": {"command": "ls"}}


def gemini(way: Way) -> Way:
    """Make a conversation one with Gemini."""
    way.api, way.model, way.call = "google", GEMINI, {}
    return way


@pytest.mark.parametrize("server", [strict.gemini], indirect=True)
@ways()
def test_signatures_go_back_with_their_calls(way: Way, server: strict.StrictServer) -> None:
    """«parallel Gemini calls merged/interleaved», «same, earlier turn», «Gemini thought text shortened, signature kept»: calls, then responses, cut or not."""
    gemini(way)
    for number in range(4):
        sent = way.turn(f"{number} {LONG}", [THOUGHT, "I look.", FUNCTION, FUNCTION], [THOUGHT, "Done."], budget=3_000)
        signed = [part for content in sent[-1]["contents"] for part in content["parts"] if "thoughtSignature" in part]
        assert signed
    assert "folded" in way.notes
    accepted(server)


@pytest.mark.parametrize("server", [strict.gemini], indirect=True)
@ways("request", "agent")
def test_foreign_calls_get_a_placeholder(way: DialogWay, server: strict.StrictServer) -> None:
    """«Gemini call without signature, current turn»: a call of another maker gets Google's placeholder, and the report says so."""
    gemini(way)
    way.dialog.put_text("One.")
    call = ToolCallContent("toolu_1", "bash", args={"command": "ls"})
    way.dialog.append(AssistantMessage(contents=(call,), provider="anthropic", model="claude-opus-5"))
    result = ToolMessage.from_results([ToolResultContent(id="toolu_1", name="bash", content="a.py")])
    way.dialog.append(result)
    if isinstance(way, AgentWay):
        (body,) = way.turn("", [FUNCTION], ["Done."])[:1]
    else:
        server.answers(["Done."])
        way.asked()
        body = server.served[-1].asked.body
    assert "skip_thought_signature_validator" in str(body)
    assert [note for note in way.notes if note.startswith("thought signature")] or isinstance(way, AgentWay)
    accepted(server)


@pytest.mark.parametrize("server", [strict.gemini], indirect=True)
@ways("request", "agent")
def test_an_explicit_cache_has_tools_and_instructions(way: DialogWay, server: strict.StrictServer) -> None:
    """«CachedContent + tools»: they move into the cache, and requests that name it have neither."""
    gemini(way)
    way.turn("One.", ["Done."])
    client = genai.Client(**way.options)
    cached = client.caches.create(**way.sent.explicit_cache()).name
    client.close()
    (body,) = way.turn("Two.", ["Done."], parameters={"cachedContent": cached})
    assert not {"systemInstruction", "tools", "toolConfig"} & body.keys()
    assert [note for note in way.notes if "the cache" in note]
    assert [served.message for served in server.refused] == []


@pytest.mark.parametrize("server", [strict.interactions], indirect=True)
@ways()
def test_steps_go_back_with_their_thoughts(way: Way, server: strict.StrictServer) -> None:
    """«Interactions: thought step dropped»: each step goes back with its signature, and cuts take whole rounds."""
    way.api, way.model, way.call = "google-interactions", GEMINI, {}
    for number in range(4):
        sent = way.turn(f"{number} {LONG}", [STEP, "I look.", STEPPED, STEPPED], [STEP, "Done."], budget=3_000)
        assert "thought" in [step["type"] for step in sent[-1]["input"]]
    assert "folded" in way.notes
    accepted(server)


# --- chat completions ----------------------------------------------------------------------------------------------------

SERVERS: dict[str, tuple[str, str]] = {
    "deepseek": ("deepseek-v4", "reasoning_content"),
    "kimi": ("kimi-k3", "reasoning_content"),
    "glm": ("glm-5.1", "reasoning_content"),
    "sglang": ("my-model", "reasoning_content"),
    "minimax": ("MiniMax-M3", "reasoning_details"),
    "openrouter": ("anthropic/claude-opus-5", "reasoning_details"),
    "vllm": ("my-model", "reasoning"),
    "ollama": ("gpt-oss", "reasoning"),
    "mistral": ("magistral-medium", "content"),
    "openai": ("gpt-4o", "content"),
}


@pytest.mark.parametrize("name", SERVERS)
@ways()
def test_reasoning_is_where_each_server_reads_it(way: Way, name: str) -> None:
    """«chat: reasoning_content missing x DeepSeek/Kimi», «chat: reasoning_content sent x R1, Mistral»: in its field, or left out with a note."""
    thought: Json = {"type": "reasoning", "text": "hm"}
    call: Json = {"type": "function", "name": "bash", "arguments": "{}"}
    with strict.openai_chat(server=name) as server:
        way.server, way.api, way.call = server, "openai", {}
        way.model, field = SERVERS[name]
        way.client = {"server": name} if name != "openai" else {}
        way.turn("One.", [thought, call], [thought, "Done."])
        (body,) = way.turn("Two.", [thought, "Well."])
        accepted(server)
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    assert all(message.get(field) or field == "content" for message in said) or way.notes


@pytest.mark.parametrize("name", ["vllm", "sglang"])
@ways("request", "agent")
def test_cut_arguments_are_repaired(way: DialogWay, name: str) -> None:
    """«truncated arguments in history x vLLM/SGLang»: they become an object, and the report says so."""
    with strict.openai_chat(server=name) as server:
        way.server, way.api, way.model, way.client = server, "openai", "my-model", {"server": name}
        way.dialog.put_text("One.")
        way.dialog.append(AssistantMessage(contents=(ToolCallContent("c1", "bash", args='{"command": "l'),)))
        way.dialog.append(ToolMessage.from_results([ToolResultContent(id="c1", name="bash", content="no")]))
        way.dialog.append(AssistantMessage("Well."))
        way.turn("Two.", ["Done."])
        assert [note for note in way.notes if note.startswith("arguments")]
        accepted(server)


@pytest.mark.filterwarnings("ignore")  # of LiteLLM's own modules
@ways("request", "agent")
def test_litellm_has_nothing_to_strip(way: Way) -> None:
    """«strict error through LiteLLM»: thinking leaves with a note before it is sent, so LiteLLM does not ask twice and strip it in silence."""
    with strict.anthropic() as server:
        way.server, way.api, way.model = server, "anthropic", "claude-fable-5-1"
        way.turn("One.", [{"type": "thinking", "thinking": "hm"}, "Done."])
        way.api, way.model = "litellm", "anthropic/claude-fable-5-1"
        way.system = "Be kind."
        (body,) = way.turn("Two.", [{"type": "thinking", "thinking": "hm"}, "Done."])
        assert "signature" not in str(body["messages"])
        assert [note for note in way.notes if note.startswith("thinking: ")]
        accepted(server)
