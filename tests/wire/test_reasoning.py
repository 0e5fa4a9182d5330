"""What only its provider can read goes back to that provider unchanged, or not at all."""

from typing import Any

from palaver.messages import Content, TextContent, ThinkingContent, ToolCallContent, UnknownContent, thaw
from palaver.wire import How
from tests.wire.histories import CLAUDE, CODEX, GEMINI
from tests.wire.scenes import BASH, MODELS, Scene, at, call
from tests.wire.vendor_types import hold_to_types

UNREAD = "of a model whose thinking this one does not read: the provider passes over it"
SIGNED = ThinkingContent(content="I should look.", signature="c2lnbmVk", provider="anthropic")
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA", "status": "completed"}
ENCRYPTED = ThinkingContent(provider="openai", artefact=REASONING)


STEPS = ("google", "gemini-3.6-flash")


def test_signature_is_sent_before_the_call() -> None:
    """A34, R241: Anthropic gets its thinking back whole, before the call it led to; others do not get it, and the report says so."""
    scene = Scene(tools=[BASH]).user("go").model_says(SIGNED, "Looking.", call(), results=["a.py"], by=CLAUDE)
    said = scene.request("anthropic").body["messages"][1]["content"]
    assert thaw(said[0]) == {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"}
    assert [block["type"] for block in said] == ["thinking", "text", "tool_use"]
    for name in set(MODELS) - {"anthropic"}:
        assert [change.how for change in scene.request(name).report.about(at(1, 0))] == [How.DROPPED]


def test_signed_thinking_without_a_model_goes_back() -> None:
    """R200, R241: nothing says who thought it; only Anthropic signs blocks, so Anthropic gets it, whatever model is in force."""
    for model in ["", "gpt-5.2", "claude-sonnet-4-5"]:
        bare = ThinkingContent(content="Hm.", signature="c2lnbmVk")
        scene = Scene(tools=[BASH], model=model).user("go").model_says(bare, call(), results=["x"])
        assert "c2lnbmVk" in scene.request("anthropic").data.decode()
        opaque = Scene().user("go").model_says(ThinkingContent(redacted="b3BhcXVl"), "Done.").user("?")
        assert "b3BhcXVl" in opaque.request("anthropic").data.decode()
        for name in set(MODELS) - {"anthropic"}:
            assert "c2lnbmVk" not in scene.request(name).data.decode()


def test_thinking_goes_to_its_family_of_models() -> None:
    """A dated name and a seller's prefix are the same model; a later family reads an earlier one. What is not read goes back all the same, with a note."""
    cases: list[tuple[str, str, bool]] = [
        ("claude-opus-4-6-20260101", "claude-opus-4-6", True),
        ("claude-opus-4-6-20260101", "us.anthropic.claude-opus-4-6-v1:0", True),
        ("claude-opus-4-6-20260101", "claude-sonnet-4-6", True),
        ("claude-opus-4-6-20260101", "claude-opus-5", True),
        ("claude-opus-5", "claude-opus-4-6", False),
        ("claude-fable-5", "claude-opus-5", False),
        ("claude-novel-9", "claude-opus-5", False),
        ("claude-novel", "claude-opus-5", True),
    ]
    for maker, model, read in cases:
        scene = Scene().user("go").model_says(SIGNED, "Done.", by=("anthropic", maker)).user("and?")
        request = scene.request("anthropic", model=model)
        assert "c2lnbmVk" in request.data.decode(), (maker, model)
        assert [(change.how, change.why) for change in request.report] == ([] if read else [(How.KEPT, UNREAD)])


def test_thinking_of_a_turn_goes_back_all_or_none() -> None:
    """Where one block of a turn's thinking cannot go back, none does, and each is reported."""
    cases: list[tuple[list[Content | str], str]] = [
        (["Well.", SIGNED], "its turn breaks off after it"),
        ([SIGNED, ThinkingContent(content="more", provider="anthropic"), "Done."], "not signed"),
        ([SIGNED, ENCRYPTED, "Done."], "another provider's"),
    ]
    for said, why in cases:
        scene = Scene(tools=[BASH]).user("go").model_says(*said, results=["x"], by=CLAUDE).user("and?")
        dropped = [change for change in scene.request("anthropic").report if change.what == "thinking"]
        assert len(dropped) == sum(isinstance(each, ThinkingContent) for each in said)
        assert {change.why for change in dropped} == {why}


def test_thinking_is_off_in_a_turn_that_began_without() -> None:
    """Results go back in a turn that another model began: the thinking parameter is dropped and reported, and returns next turn."""
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    scene = Scene(tools=[BASH]).user("go").model_says(call("a"), results=["x"], by=CODEX)
    inside = scene.request("anthropic", parameters=thinking)
    assert "thinking" not in inside.body
    assert [change.what for change in inside.report] == ["parameter"]
    after = scene.model_says("Done.", by=CODEX).user("next").request("anthropic", parameters=thinking)
    assert after.body["thinking"]["type"] == "enabled"


def test_reasoning_items_go_out_once_before_what_they_led_to() -> None:
    """An item that two turns hold goes with the first; two items in a row, or one without a whole record, stay here."""
    other = ThinkingContent(provider="openai", artefact=REASONING | {"id": "rs_2"})
    bare = ThinkingContent(provider="openai", artefact={"type": "reasoning", "id": "rs_3", "summary": []})
    scene = Scene().user("go").model_says(ENCRYPTED, "one", by=CODEX).model_says(ENCRYPTED, "two", by=CODEX)
    scene.model_says(other, other, "three", by=CODEX).model_says(bare, "four", by=CODEX).user("and?")
    request = scene.request("openai-responses")
    assert [item["id"] for item in request.body["input"] if item["type"] == "reasoning"] == ["rs_1"]
    assert [change.handle for change in request.report] == [at(2), at(3, 0), at(3, 1), at(4)]


def test_gemini_gets_its_signatures_and_a_dummy_for_others() -> None:
    """A call or text that Gemini signed keeps its signature; a call of another model gets the placeholder that Google names."""
    own = ToolCallContent(id="a", name="bash", args={}, artefact={"thoughtSignature": "AAAA"})
    scene = Scene(tools=[BASH]).user("go").model_says(own, results=["x"], by=GEMINI)
    scene.model_says(call("b"), results=["y"], by=CODEX)
    parts = [part for content in scene.request("gemini").body["contents"] for part in content["parts"]]
    signatures = [part["thoughtSignature"] for part in parts if "functionCall" in part]
    assert signatures == ["AAAA", "skip_thought_signature_validator"]
    signed = TextContent.from_dict({"type": "text", "content": "Done.", "thoughtSignature": "BBBB"})
    words = Scene().user("go").model_says(signed, by=GEMINI).user("and?")
    assert words.request("gemini").body["contents"][1]["parts"][0]["thoughtSignature"] == "BBBB"
    other = words.request("gemini", model="gemini-3-flash")
    assert [change.what for change in other.report] == ["thought signature"]


def step(words: str, signature: str = "c2ln") -> ThinkingContent:
    """Make a thought of the Interactions API."""
    summary = [{"type": "text", "text": words}]
    return ThinkingContent(
        words, provider="google", artefact={"type": "thought", "signature": signature, "summary": summary}
    )


def test_thought_steps_go_back_verbatim() -> None:
    """«Interactions: thought step dropped»: each goes back whole and in its order, also to another model of the maker."""
    scene = (
        Scene(tools=[BASH])
        .user("go")
        .model_says(step("First."), "I look.", step("Then."), call("a"), call("b"), results=["x", "y"], by=STEPS)
    )
    for model in (STEPS[1], "gemini-4-argon"):
        request = scene.request("gemini-interactions", model=model)
        said = thaw(request.body)["input"][1:]
        assert [each["type"] for each in said] == [
            "thought",
            "model_output",
            "thought",
            *["function_call"] * 2,
            *["function_result"] * 2,
        ]
        assert [said[0], said[2]] == [dict(step(words).artefact) for words in ("First.", "Then.")]
        assert not request.report.changes


def test_calls_without_a_thought_get_a_placeholder_step() -> None:
    """«Gemini call without signature, current turn»: in steps, the calls of another model, or of another of the maker's APIs, follow the thought that Google names; earlier Gemini models want none."""
    own = ToolCallContent(id="a", name="bash", args={}, artefact={"thoughtSignature": "AAAA"})
    for said, by in (
        ((call("a"),), CODEX),
        ((own,), GEMINI),
        ((SIGNED, call("a")), CLAUDE),
        ((step("Hm.", ""), call("a")), STEPS),
    ):
        scene = Scene(tools=[BASH]).user("go").model_says(*said, call("b"), results=["x", "y"], by=by)
        request = scene.request("gemini-interactions")
        steps = thaw(request.body)["input"]
        assert steps[1] == {"type": "thought", "signature": "skip_thought_signature_validator"}
        assert [each["type"] for each in steps[2:4]] == ["function_call"] * 2
        lost = [change.how for change in request.report if change.what == "thinking"]
        assert lost == [How.DROPPED] * (len(said) - 1)
        older = thaw(scene.request("gemini-interactions", model="gemini-2.5-flash").body)["input"]
        assert [each["type"] for each in older[1:3]] == ["function_call"] * 2


def test_a_thought_behind_the_first_call_does_not_stand_for_it() -> None:
    """A call that comes before its turn's first thought step gets the placeholder, too."""
    scene = Scene(tools=[BASH]).user("go").model_says(call("a"), step("Hm."), results=["x"], by=STEPS)
    steps = thaw(scene.request("gemini-interactions").body)["input"]
    assert [each["type"] for each in steps[1:4]] == ["thought", "function_call", "thought"]
    assert steps[1]["signature"] == "skip_thought_signature_validator"


def test_a_shortened_thought_goes_back_whole_or_not() -> None:
    """«Gemini thought text shortened, signature kept»: no step has a signature over other words than its own."""
    short = ThinkingContent("Fir…", provider="google", artefact=step("First.").artefact)
    request = Scene().user("go").model_says(short, "Done.", by=STEPS).user("and?").request("gemini-interactions")
    assert thaw(request.body)["input"][1] == dict(step("First.").artefact)


# --- blocks of the provider's own tools ----------------------------------------------------------------------------------


def block(kind: str, **fields: Any) -> UnknownContent:  # noqa: ANN401 - JSON
    """Make a block that a provider's tool left."""
    return UnknownContent(type=kind, **fields)


SEARCH = {"web_search": True}
ASKED = block("server_tool_use", id="srv_1", name="web_search", input={"query": "herons"})
FOUND = block("web_search_tool_result", tool_use_id="srv_1", content=[{"type": "web_search_result", "title": "Herons", "url": "https://example.org", "encrypted_content": "x"}])  # fmt: skip
WORDS = TextContent("Herons fish.")
OF_CLAUDE, OF_GEMINI = (ASKED, FOUND, WORDS), (
    block("executableCode", executableCode={"language": "PYTHON", "code": "print(1)"}),
    block("codeExecutionResult", codeExecutionResult={"outcome": "OUTCOME_OK", "output": "1"}),
    WORDS,
)  # fmt: skip
OF_GPT = (
    ENCRYPTED,
    block("web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "x"}),
    WORDS,
)

OF_STEPS = (
    block("google_search_call", id="gs_1", arguments={"queries": ["x"]}, signature="c2ln"),
    block("google_search_result", call_id="gs_1", result=[], signature="c2ln"),
    WORDS,
)


def test_blocks_of_provider_tools_go_back() -> None:
    """They go back to their provider as they came, in their order; the report is empty."""
    cases: list[tuple[str, Any, Any, Any, list[str]]] = [
        ("anthropic", OF_CLAUDE, CLAUDE, SEARCH, ["server_tool_use", "web_search_tool_result", "text"]),
        ("openai-responses", OF_GPT, CODEX, SEARCH, ["reasoning", "web_search_call", "message"]),
        ("gemini", OF_GEMINI, GEMINI, {"code_execution": True}, ["executableCode", "codeExecutionResult", "text"]),
        (
            "gemini-interactions",
            OF_STEPS,
            STEPS,
            SEARCH,
            ["google_search_call", "google_search_result", "model_output"],
        ),
    ]
    for name, blocks, by, tools, sent in cases:
        request = (
            Scene().user("?").model_says(*blocks, by=by).user("And?").request(name, provider_tools=tools, cache=False)
        )
        body = thaw(request.body)
        hold_to_types(name, body)
        said = body.get("input", [])[1:4] or (body.get("messages") or body["contents"])[1]
        listed = said if isinstance(said, list) else said.get("content") or said["parts"]
        assert [each.get("type") or next(iter(each)) for each in listed] == sent
        assert len(request.report) == 0


def test_blocks_that_cannot_go_back_are_reported() -> None:
    """To another provider, without such tools in the request, without its other half or a field: only words of it go."""
    cases: list[tuple[Any, Any, str, Any, int]] = [
        (OF_CLAUDE, CLAUDE, "anthropic", {}, 2),
        (OF_CLAUDE, CLAUDE, "openai-responses", SEARCH, 2),
        ((FOUND, WORDS), CLAUDE, "anthropic", SEARCH, 1),
        ((ASKED, WORDS), CLAUDE, "anthropic", SEARCH, 1),
        ((FOUND, ASKED, WORDS), CLAUDE, "anthropic", SEARCH, 2),
        ((ASKED, block("web_search_tool_result", tool_use_id="srv_1"), WORDS), CLAUDE, "anthropic", SEARCH, 2),
        (OF_GPT, CODEX, "gemini", SEARCH, 2),
        (OF_GEMINI, GEMINI, "gemini", {}, 2),
        (OF_STEPS, STEPS, "gemini", SEARCH, 2),
        (OF_GEMINI, GEMINI, "gemini-interactions", {"code_execution": True}, 2),
    ]
    for blocks, by, to, tools, gone in cases:
        request = Scene().user("?").model_says(*blocks, by=by).user("And?").request(to, provider_tools=tools)
        sent = request.data.decode()
        assert not any(
            word in sent for word in ("server_tool_use", "tool_result", "web_search_call", "executableCode", "rs_1")
        )
        assert "Herons fish." in sent
        dropped = [change.how for change in request.report if change.what in {"block", "thinking"}]
        assert dropped == [How.DROPPED] * gone
