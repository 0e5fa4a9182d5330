"""What a call asks besides the conversation: limits, tools, structures of answers, and tools that the provider runs itself."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from palaver.errors import InvalidInput, InvalidRequest
from palaver.log import ToolSpec
from palaver.messages import thaw
from palaver.prompts import Format
from palaver.providers import profile
from palaver.wire import Request
from tests.wire.scenes import BASH, MODELS, Scene, at
from tests.wire.vendor_types import hold_to_types

NAMES = tuple(MODELS)
WRONG = {"anthropic": "metadata", "gemini": "safetySettings", "gemini-interactions": "generation_config"}
"""A parameter of each API that may not be a text."""


def asked(name: str, *tools: ToolSpec, model: str = "", **fields: Any) -> Request:  # noqa: ANN401 - fields of a call
    """Compile a question and check it against the provider's own types."""
    request = Scene(system=["Be careful."], tools=tools).user("What do you see?").request(name, model=model, **fields)
    if not fields.get("stream") and "server_option" not in fields.get("parameters", {}):
        hold_to_types(name, thaw(request.body))
    return request


def body(name: str, *tools: ToolSpec, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a call
    """Return the body of a question."""
    plain: dict[str, Any] = thaw(asked(name, *tools, **fields).body)
    return plain


def report(name: str, *tools: ToolSpec, **fields: Any) -> list[str]:  # noqa: ANN401 - fields of a call
    """Return the report of a question."""
    return [str(change) for change in asked(name, *tools, **fields).report]


# --- limits and parameters -----------------------------------------------------------------------------------------------


def test_limit_and_temperature_in_each_providers_words() -> None:
    """Three fields of the call, in the words of each API; two models take no temperature, and generateContent streams at another address."""
    limits: tuple[dict[str, Any], ...] = (
        {"max_completion_tokens": 500},
        {"max_output_tokens": 500},
        {"max_tokens": 500},
        {"generationConfig": {"maxOutputTokens": 500, "temperature": 0.5}},
        {"generation_config": {"max_output_tokens": 500}},
    )
    for name, limit in zip(NAMES, limits, strict=True):
        sent = body(name, max_tokens=500, temperature=0.5, stream=True)
        assert limit.items() <= sent.items()
        assert ("stream" in sent) is (name != "gemini")
        assert name.startswith("gemini") or sent.get("temperature") == (None if name == "anthropic" else 0.5)


def test_parameters_go_out_unchanged_and_win() -> None:
    """Further fields stand beside ours, objects are merged, and a parameter wins over a field of the call."""
    config = {"generationConfig": {"topK": 5, "temperature": 1.0}}
    sent = body("gemini", temperature=0.0, max_tokens=9, parameters=config)
    assert sent["generationConfig"] == {"maxOutputTokens": 9, "topK": 5, "temperature": 1.0}
    binding = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    assert Scene().user("go").request("anthropic", parameters=binding).body["thinking"] == binding["thinking"]


def test_unknown_parameter_passes_and_a_wrong_one_is_named() -> None:
    """Compatible servers have fields of their own; a fault of the caller's is not reported as a defect of palaver."""
    for name in NAMES:
        assert body(name, parameters={"server_option": 5})["server_option"] == 5
        wrong = WRONG.get(name, "top_p")
        with pytest.raises(InvalidRequest, match=f"given with the call are not as the provider wants them: {wrong}"):
            asked(name, parameters={wrong: "many"})
        taken = profile(name).conversation
        with pytest.raises(InvalidInput, match=taken):
            asked(name, parameters={taken: []})


# --- tools ---------------------------------------------------------------------------------------------------------------


def test_tool_choice_in_each_providers_words() -> None:
    """`auto`, `none`, `required` and a name go out; a name that is not declared is dropped and reported."""
    for name in NAMES:
        for choice in ("auto", "none", "required", "bash"):
            sent = body(name, BASH, tool_choice=choice)
            said = json.dumps(sent.get("tool_choice") or sent.get("toolConfig") or sent["generation_config"])
            assert {"required": "any", "bash": "bash"}.get(choice, choice) in said.lower().replace("required", "any")
        assert [change.what for change in asked(name, BASH, tool_choice="nothing").report] == ["parameter"]


def test_strict_tools_where_the_schema_permits_it() -> None:
    """A closed schema is promised; an open one is not, and the report says why."""
    closed = ToolSpec(name="closed", parameters={"type": "object", "properties": {}, "additionalProperties": False})
    request = asked("openai-responses", closed, BASH, strict_tools=True)
    assert [tool["strict"] for tool in request.body["tools"]] == [True, False]
    assert ["bash: arguments are not held to it" in change.why for change in request.report] == [True]


def test_tool_names_lead_back_to_ours() -> None:
    """A name that a model calls is found under the name that the program knows, also when two are spelled alike."""
    for name in NAMES:
        tools = [ToolSpec(name=spelled) for spelled in ("read file", "read_file", "read.file", "9")]
        request = asked(name, *tools)
        declared = request.body["tools"][0].get("functionDeclarations", request.body["tools"])
        sent = [tool.get("function", tool)["name"] for tool in declared]
        assert len(set(sent)) == 4
        assert [request.tool_names[spelled] for spelled in sent] == [tool.name for tool in tools]


# --- cache marks ---------------------------------------------------------------------------------------------------------


def test_cache_marks_stand_where_the_caller_wants() -> None:
    """R311: Anthropic's marks: on the last tool, the last section, and the user's two newest messages or the named blocks; never more than four."""
    scene = Scene(system=["a", "b"], tools=[BASH])
    for number in range(5):
        scene.user(f"{number}").model_says("well")
    usual = scene.user("5").request("anthropic", cache_ttl="1h").body
    assert thaw(usual["tools"][-1]["cache_control"]) == {"type": "ephemeral", "ttl": "1h"}
    assert ["cache_control" in section for section in usual["system"]] == [False, True]
    named = scene.request("anthropic", cache_at={at(2), at(4), at(6)}).body
    for sent, marked in ((usual, ["4", "5"]), (named, ["2", "3"])):
        blocks = [message["content"][-1] for message in sent["messages"]]
        assert [block["text"] for block in blocks if "cache_control" in block] == marked
    assert all("cache_control" in named[head][-1] for head in ("system", "tools"))


# --- structures of answers -----------------------------------------------------------------------------------------------


class Bird(BaseModel):
    """What was seen."""

    name: str
    count: int = Field(ge=1)
    ring: str | None = None


BIRD = Format(Bird)
OPEN = Format(dict[str, int], "counts")


def test_the_schema_is_really_sent() -> None:
    """R111: each provider gets the schema in its own field: OpenAI strict and complete, Anthropic closed, Gemini beside the content type."""
    chat = body("openai-chat", format=BIRD)["response_format"]["json_schema"]
    assert (chat["name"], chat["strict"], chat["schema"]["required"]) == ("Bird", True, ["name", "count", "ring"])
    assert body("openai-responses", format=BIRD)["text"] == {"format": {"type": "json_schema", **chat}}
    claude = body("anthropic", format=BIRD)["output_config"]["format"]
    assert claude["schema"]["properties"]["count"]["description"] == "(minimum 1)"
    gemini = body("gemini", format=BIRD)["generationConfig"]
    assert gemini["responseMimeType"] == "application/json"
    assert gemini["responseJsonSchema"]["properties"]["count"]["minimum"] == 1
    steps = body("gemini-interactions", format=BIRD)["response_format"]
    assert (steps["type"], steps["mime_type"]) == ("text", "application/json")
    assert steps["schema"] == gemini["responseJsonSchema"]
    told = Format(Bird, "sighting", description="What was seen.")
    assert body("openai-chat", format=told)["response_format"]["json_schema"]["description"] == "What was seen."
    for name in NAMES:  # a model writes members in the order of the schema
        sent = json.dumps(body(name, format=BIRD))
        assert sent.index('"count"') < sent.index('"ring"')


def test_schema_that_cannot_be_strict_goes_out_loose() -> None:
    """OpenAI accepts it without a promise; the report says why."""
    sent = body("openai-chat", format=OPEN)["response_format"]["json_schema"]
    assert (sent["strict"], sent["schema"]) == (False, thaw(OPEN.schema))
    assert report("openai-chat", format=OPEN) == [
        "answer schema changed: answers are not held to it, because it may have members of any name"
    ]
    loose = Format(Bird, strict=False)
    assert body("openai-responses", format=loose)["text"]["format"]["strict"] is False


def test_schema_without_a_field_is_asked_for_in_words() -> None:
    """The whole schema stands at the end of the instructions; no field asks for it; the report says why."""
    cases: list[tuple[str, str, Format, tuple[ToolSpec, ...], str]] = [
        ("anthropic", "claude-opus-4-6", OPEN, (), "members of any name"),
        ("anthropic", "claude-3-haiku", BIRD, (), "this model takes no schema"),
        ("gemini", "gemini-2.5-flash", BIRD, (BASH,), "takes none while tools are declared"),
        ("gemini-interactions", "gemini-2.5-flash", BIRD, (BASH,), "takes none while tools are declared"),
        ("openai-chat", "gpt-4-turbo", BIRD, (), "this model takes no schema"),
    ]
    for name, model, made, tools, why in cases:
        request = asked(name, *tools, model=model, format=made)
        sent = request.data.decode()
        assert not {"response_format", "output_config", "text"} & request.body.keys()
        assert "responseJsonSchema" not in sent
        assert sent.index("Be careful.") < sent.index("holds to the JSON Schema below")
        assert why in str(next(iter(request.report)))
        assert request.report.lost() == ()


def test_format_is_not_asked_for_twice() -> None:
    """A parameter that asks for another structure is refused; other parameters of the same object go along."""
    for text in ({"format": {"type": "text"}}, {"verbosity": "low", "format": {"type": "json_object"}}):
        with pytest.raises(InvalidInput, match="asks for another"):
            body("openai-responses", format=BIRD, parameters={"text": text})
    assert (
        body("openai-responses", format=BIRD, parameters={"text": {"verbosity": "low"}})["text"]["verbosity"] == "low"
    )


# --- tools of the provider's own -----------------------------------------------------------------------------------------


def test_provider_tools_in_each_providers_words() -> None:
    """R114: one name for all providers, options in the provider's own words, a version of one's own with `type`."""
    low, newer = {"search_context_size": "low"}, {"type": "web_search_20260318"}
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    cases: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("openai-responses", {"web_search": low}, {"type": "web_search"} | low),
        ("openai-responses", {"computer_use": True}, {"type": "computer"}),
        ("openai-responses", {"code_interpreter": True}, {"type": "code_interpreter", "container": {"type": "auto"}}),
        ("anthropic", {"web_search": {"max_uses": 3}}, search),
        ("anthropic", {"web_search": newer}, newer | {"name": "web_search"}),
        ("gemini", {"url_context": True}, {"urlContext": {}}),
        ("gemini", {"computer_use": {}}, {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}),
        (
            "gemini-interactions",
            {"web_search": {"search_types": ["web_search"]}},
            {"type": "google_search", "search_types": ["web_search"]},
        ),
        ("gemini-interactions", {"computer_use": True}, {"type": "computer_use", "environment": "browser"}),
    ]
    for name, wanted, sent in cases:
        assert body(name, provider_tools=wanted, cache=False)["tools"] == [sent]


def test_missing_provider_tool_is_reported() -> None:
    """The request goes out without it and is valid; the report has the reason. A value that means nothing is refused."""
    cases: list[tuple[str, str, tuple[ToolSpec, ...], str, str]] = [
        ("openai-chat", "gpt-4o", (), "web_search", "this model has no such tool"),
        ("openai-responses", "", (), "web_serach", "no such tool; it has web_search"),
        ("gemini", "gemini-2.5-flash", (BASH,), "web_search", "only without tools of your own"),
        ("gemini-interactions", "gemini-2.5-flash", (BASH,), "web_search", "only without tools of your own"),
        ("anthropic", "", (ToolSpec(name="web_search"),), "web_search", "a tool of your own has its name"),
    ]
    for name, model, tools, wanted, why in cases:
        found = report(name, *tools, model=model, provider_tools={wanted: True})
        assert len(found) == 1
        assert why in found[0]
        with pytest.raises(InvalidInput, match="web_search"):
            body(name, provider_tools={"web_search": "yes"})
