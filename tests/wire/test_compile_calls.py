"""What a call asks besides going on with the conversation, in each provider's words."""

from typing import Any

import pytest

from palaver.errors import InvalidRequest
from palaver.log import ToolSpec
from palaver.messages import thaw
from palaver.wire import How
from palaver.wire.anthropic import MAX_TOKENS
from tests.wire.scenes import BASH, MODELS, Scene

NAMES = tuple(MODELS)


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("openai-chat", {"max_completion_tokens": 500}),
        ("openai-responses", {"max_output_tokens": 500}),
        ("anthropic", {"max_tokens": 500}),
        ("gemini", {"generationConfig": {"maxOutputTokens": 500, "temperature": 0.5}}),
    ],
)
def test_limit_temperature_and_stream_go_where_each_provider_has_them(name: str, limit: dict[str, Any]) -> None:
    """Three fields of the call, in the words of four providers; Gemini streams at another address."""
    body = thaw(Scene().user("go").request(name, max_tokens=500, temperature=0.5, stream=True).body)
    assert limit.items() <= body.items()
    assert ("stream" in body) is (name != "gemini")
    assert name == "gemini" or body["temperature"] == 0.5


def test_the_limit_has_a_default_where_the_provider_asks_for_one() -> None:
    """Anthropic gets the documented default, and a thinking budget on top of it."""
    scene = Scene().user("go")
    assert scene.request("anthropic").body["max_tokens"] == MAX_TOKENS
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    assert scene.request("anthropic", parameters=thinking).body["max_tokens"] == MAX_TOKENS + 2048
    assert "max_completion_tokens" not in scene.request("openai-chat").body


def test_a_limit_that_is_too_small_is_raised_and_reported() -> None:
    """Responses takes no limit below 16 tokens."""
    request = Scene().user("go").request("openai-responses", max_tokens=1)
    assert request.body["max_output_tokens"] == 16
    assert [(change.what, change.how) for change in request.report] == [("parameter", How.CHANGED)]


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("claude-opus-4-8", {}), ("claude-opus-4-6", {"thinking": {"type": "adaptive"}})],
)
def test_a_temperature_that_cannot_stand_is_dropped_and_reported(model: str, parameters: dict[str, Any]) -> None:
    """Newer models take none, and a model that thinks takes only 1."""
    request = Scene().user("go").request("anthropic", model=model, temperature=0.0, parameters=parameters)
    assert "temperature" not in request.body
    assert [(change.what, change.how) for change in request.report] == [("parameter", How.DROPPED)]


def test_parameters_go_out_as_they_are_and_win() -> None:
    """Further fields stand beside ours, objects are put together, and a parameter wins over a field of the call."""
    config = {"generationConfig": {"topK": 5, "temperature": 1.0}}
    body = Scene().user("go").request("gemini", temperature=0.0, max_tokens=9, parameters=config).body
    assert thaw(body["generationConfig"]) == {"maxOutputTokens": 9, "topK": 5, "temperature": 1.0}
    assert Scene().user("go").request("openai-chat", parameters={"seed": 7}).body["seed"] == 7


def test_more_tools_than_a_provider_takes_are_left_out_and_reported() -> None:
    """OpenAI takes 128 tools: the first ones go, each other is in the report."""
    tools = [ToolSpec(name=f"tool_{number}") for number in range(130)]
    request = Scene(tools=tools).user("go").request("openai-chat")
    assert [tool["function"]["name"] for tool in request.body["tools"]] == [tool.name for tool in tools[:128]]
    assert [change.how for change in request.report] == [How.DROPPED, How.DROPPED]
    assert len(Scene(tools=tools).user("go").request("anthropic").body["tools"]) == 130


def test_strict_tools_are_strict_where_the_schema_permits_it() -> None:
    """A closed schema is asked to be held to; an open one is not, and the report says why."""
    closed = ToolSpec(name="closed", parameters={"type": "object", "properties": {}, "additionalProperties": False})
    request = Scene(tools=[closed, BASH]).user("go").request("openai-responses", strict_tools=True)
    assert [tool["strict"] for tool in request.body["tools"]] == [True, False]
    assert [change.why for change in request.report] == [
        "bash: arguments are not held to it, because an object in it is open"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_tools_lead_back_to_ours(name: str) -> None:
    """What a model calls is found again under the name that the program knows, also when two names are spelt alike."""
    tools = [ToolSpec(name=spelt) for spelt in ("read file", "read_file", "read.file", "9")]
    request = Scene(tools=tools).user("go").request(name)
    body = request.body
    declared = body["tools"][0].get("functionDeclarations", body["tools"])
    sent = [tool.get("function", tool)["name"] for tool in declared]
    assert len(set(sent)) == 4
    assert [request.tool_names[spelt] for spelt in sent] == [tool.name for tool in tools]


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_of_the_caller_s_own_is_let_through_and_a_wrong_one_is_called_his(name: str) -> None:
    """Servers that speak a provider's language have fields of their own; what is the caller's is not reported as a defect of palaver."""
    request = Scene().user("go").request(name, parameters={"server_option": 5})
    request.check()
    assert request.body["server_option"] == 5

    taken = {"openai-chat": "top_p", "openai-responses": "top_p", "anthropic": "top_k", "gemini": "safetySettings"}[
        name
    ]
    with pytest.raises(InvalidRequest, match=f"given with the call are not as the provider wants them: {taken}"):
        Scene().user("go").request(name, parameters={taken: "many"}).check()
