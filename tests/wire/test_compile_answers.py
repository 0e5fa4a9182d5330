"""The structure of answers, and the tools that providers run themselves, in each provider's words."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from palaver.errors import InvalidInput
from palaver.log import ToolSpec
from palaver.messages import thaw
from palaver.prompts import Format
from palaver.wire import PROVIDED, How
from tests.wire.check.vendor_types import hold_to_types
from tests.wire.scenes import BASH, MODELS, Scene

NAMES = tuple(MODELS)


class Bird(BaseModel):
    """What was seen."""

    name: str
    count: int = Field(ge=1)
    ring: str | None = None


BIRD = Format(Bird)
OPEN = Format(dict[str, int], "counts")


def body(name: str, *, tools: tuple[ToolSpec, ...] = (), model: str = "", **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Compile a question, hold it to the provider's types, and give the body."""
    request = Scene(tools=tools).user("What do you see?").request(name, model=model, **fields)
    plain: dict[str, Any] = thaw(request.body)
    hold_to_types(name, plain)
    return plain


def report(name: str, *, tools: tuple[ToolSpec, ...] = (), model: str = "", **fields: Any) -> list[str]:  # noqa: ANN401
    """Give the lines of the report."""
    request = Scene(tools=tools).user("What do you see?").request(name, model=model, **fields)
    return [str(change) for change in request.report]


# --- formats -----------------------------------------------------------------------------------------------------------------


def test_r111_the_schema_is_really_sent() -> None:
    """Each provider gets the schema in its own field: OpenAI strict and complete, Anthropic closed, Gemini beside the type of content."""
    chat = body("openai-chat", format=BIRD)["response_format"]
    assert chat["type"] == "json_schema"
    assert (chat["json_schema"]["name"], chat["json_schema"]["strict"]) == ("Bird", True)
    assert chat["json_schema"]["schema"]["required"] == ["name", "count", "ring"]
    assert chat["json_schema"]["schema"]["additionalProperties"] is False
    assert body("openai-responses", format=BIRD)["text"] == {"format": {"type": "json_schema", **chat["json_schema"]}}
    claude = body("anthropic", format=BIRD)["output_config"]["format"]
    assert claude["type"] == "json_schema"
    assert claude["schema"]["properties"]["count"]["description"] == "(minimum 1)"
    gemini = body("gemini", format=BIRD)["generationConfig"]
    assert gemini["responseMimeType"] == "application/json"
    assert gemini["responseJsonSchema"]["properties"]["count"]["minimum"] == 1


def test_the_order_of_members_is_kept() -> None:
    """A model writes members in the order of the schema, so that reasoning can come before the verdict."""

    class Verdict(BaseModel):
        reasons: str
        answer: str

    for name in NAMES:
        sent = str(body(name, format=Format(Verdict)))
        assert sent.index("reasons") < sent.index("answer")


def test_a_description_goes_along_where_there_is_a_field() -> None:
    """OpenAI has one for the format as a whole."""
    told = Format(Bird, "sighting", description="What was seen.")
    assert body("openai-chat", format=told)["response_format"]["json_schema"]["description"] == "What was seen."
    assert "description" not in body("openai-chat", format=BIRD)["response_format"]["json_schema"]


def test_a_schema_that_cannot_be_strict_goes_out_all_the_same() -> None:
    """OpenAI takes it without promising; the report says why."""
    sent = body("openai-chat", format=OPEN)["response_format"]["json_schema"]
    assert (sent["strict"], sent["schema"]) == (False, thaw(OPEN.schema))
    assert report("openai-chat", format=OPEN) == [
        "answer schema changed: answers are not held to it, because it may have members of any name"
    ]
    loose = Format(Bird, strict=False)
    assert body("openai-responses", format=loose)["text"]["format"]["strict"] is False
    assert report("openai-responses", format=loose) == []


@pytest.mark.parametrize(
    ("name", "model", "made", "tools", "why"),
    [
        ("anthropic", "claude-opus-4-6", OPEN, (), "members of any name"),
        ("anthropic", "claude-3-haiku", BIRD, (), "this model takes no schema"),
        ("anthropic", "claude-sonnet-4-20250514", BIRD, (), "this model takes no schema"),
        ("gemini", "gemini-2.5-flash", BIRD, (BASH,), "takes none while tools are declared"),
        ("openai-chat", "gpt-4-turbo", BIRD, (), "this model takes no schema"),
        ("openai-responses", "gpt-3.5-turbo", BIRD, (), "this model takes no schema"),
    ],
)
def test_where_there_is_no_field_the_instructions_ask(
    name: str, model: str, made: Format, tools: tuple[ToolSpec, ...], why: str
) -> None:
    """The whole schema stands at the end of the instructions; no field asks for it; the report says why."""
    request = (
        Scene(system=["Be careful."], tools=tools).user("What do you see?").request(name, model=model, format=made)
    )
    sent = request.data.decode()
    assert not {"response_format", "output_config", "text"} & request.body.keys()
    assert "responseJsonSchema" not in sent
    assert "holds to the JSON Schema below" in sent
    assert sent.index("Be careful.") < sent.index("JSON Schema below")
    assert [change.what for change in request.report if change.how is How.CHANGED] == ["answer schema"]
    assert why in str(next(iter(request.report)))
    assert request.report.lost() == ()


@pytest.mark.parametrize(
    ("name", "model", "native"),
    [
        ("anthropic", "claude-opus-4-1-20250805", True),
        ("anthropic", "claude-haiku-4-5", True),
        ("anthropic", "claude-opus-5-5", True),
        ("anthropic", "claude-opus-4-20250514", False),
        ("anthropic", "claude-opus-4-0", False),
        ("anthropic", "claude-3-7-sonnet-latest", False),
        ("openai-chat", "gpt-4o-mini", True),
        ("openai-chat", "gpt-4.1", True),
        ("openai-chat", "gpt-4", False),
        ("openai-chat", "gpt-4-0613", False),
        ("openai-chat", "gpt-4o-2024-05-13", False),
        ("openai-chat", "o1", True),
        ("openai-chat", "o1-mini", False),
        ("openai-chat", "mistral-large", True),
        ("openai-chat", "deepseek/deepseek-v4-pro", False),
        ("gemini", "gemini-2.5-flash", True),
        ("gemini", "gemini-3-pro", True),
    ],
)
def test_which_models_take_a_schema(name: str, model: str, native: bool) -> None:
    """By what the providers publish; a model of another maker behind OpenAI's API is taken for a new one."""
    sent = body(name, model=model, format=BIRD)
    assert (name == "gemini" or bool({"response_format", "output_config"} & sent.keys())) is native


def test_tools_and_a_format_go_together() -> None:
    """OpenAI, Anthropic and Gemini 3 take both in one request."""
    for name in NAMES:
        sent = body(name, tools=(BASH,), format=BIRD)
        assert sent["tools"]
        assert {"response_format", "text", "output_config", "generationConfig"} & sent.keys()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("openai-chat", {"response_format": {"type": "json_object"}}),
        ("openai-responses", {"text": {"format": {"type": "text"}}}),
        ("anthropic", {"output_config": {"format": {"type": "json_schema", "schema": {}}}}),
        ("gemini", {"generationConfig": {"responseMimeType": "text/plain"}}),
    ],
)
def test_a_format_is_not_asked_for_twice(name: str, parameters: dict[str, Any]) -> None:
    """A parameter that says another structure beside the format is refused; other parameters of the same object go along."""
    with pytest.raises(InvalidInput, match="asks for another"):
        body(name, format=BIRD, parameters=parameters)
    assert (
        body("openai-responses", format=BIRD, parameters={"text": {"verbosity": "low"}})["text"]["verbosity"] == "low"
    )
    effort = body("anthropic", format=BIRD, parameters={"output_config": {"effort": "low"}})["output_config"]
    assert effort.keys() == {"format", "effort"}


# --- tools of the provider's own ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "asked", "sent"),
    [
        ("openai-responses", {"web_search": True}, [{"type": "web_search"}]),
        ("openai-responses", {"web_search": {"search_context_size": "low"}}, [{"type": "web_search", "search_context_size": "low"}]),
        ("openai-responses", {"computer_use": True}, [{"type": "computer"}]),
        (
            "openai-responses",
            {"computer_use": {"display_width": 800, "display_height": 600, "environment": "browser"}},
            [{"type": "computer_use_preview", "display_width": 800, "display_height": 600, "environment": "browser"}],
        ),
        ("openai-responses", {"code_interpreter": True}, [{"type": "code_interpreter", "container": {"type": "auto"}}]),
        ("anthropic", {"web_search": {"max_uses": 3}}, [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}]),
        ("anthropic", {"web_search": {"type": "web_search_20260318"}}, [{"type": "web_search_20260318", "name": "web_search"}]),
        ("anthropic", {"computer_use": True}, [{"type": "computer_toolset_20260801"}]),
        ("gemini", {"web_search": True, "url_context": True}, [{"googleSearch": {}}, {"urlContext": {}}]),
        ("gemini", {"computer_use": {}}, [{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}]),
    ],
)  # fmt: skip
def test_r114_provider_tools_in_each_providers_words(
    name: str, asked: dict[str, Any], sent: list[dict[str, Any]]
) -> None:
    """One name for all providers, options in the provider's own words, a version of one's own with `type`."""
    assert body(name, provider_tools=asked, cache=False)["tools"] == sent


def test_provider_tools_stand_behind_declared_ones() -> None:
    """Both are sent; Gemini 3 is told that they are mixed; what is switched off is not there."""
    for name in ("openai-responses", "anthropic", "gemini"):
        assert len(body(name, tools=(BASH,), provider_tools={"web_search": True, "web_fetch": False})["tools"]) == 2
    assert body("gemini", tools=(BASH,), provider_tools={"web_search": True})["toolConfig"] == {
        "includeServerSideToolInvocations": True
    }


def test_chat_completions_search_with_the_models_that_can() -> None:
    """There search is a field of the body, for search models only."""
    assert (
        body("openai-chat", model="gpt-4o-search-preview", provider_tools={"web_search": True})["web_search_options"]
        == {}
    )
    assert report("openai-chat", model="gpt-4o", provider_tools={"web_search": True}) == [
        "provider tool dropped: web_search: this model has no such tool"
    ]


@pytest.mark.parametrize(
    ("name", "model", "tools", "asked", "why"),
    [
        ("openai-chat", "", (), "computer_use", "openai-chat has no such tool; it has web_search"),
        ("openai-responses", "", (), "web_serach", "no such tool; it has web_search"),
        ("openai-responses", "", (), "file_search", "it needs the option vector_store_ids"),
        ("gemini", "gemini-2.5-flash", (BASH,), "web_search", "only without tools of your own"),
        ("anthropic", "claude-3-haiku-20240307", (), "web_search", "this model has no such tool"),
        ("anthropic", "", (ToolSpec(name="web_search"),), "web_search", "a tool of your own has its name"),
    ],
)
def test_what_a_provider_does_not_have_is_left_out_and_reported(
    name: str, model: str, tools: tuple[ToolSpec, ...], asked: str, why: str
) -> None:
    """The request goes out without it and is valid; the report has the reason."""
    sent = report(name, model=model, tools=tools, provider_tools={asked: True})
    assert len(sent) == 1
    assert why in sent[0]


def test_a_value_that_means_nothing_is_refused() -> None:
    """True, false, nothing or options: another value is the caller's mistake."""
    with pytest.raises(InvalidInput, match="web_search"):
        body("anthropic", provider_tools={"web_search": "yes"})


def test_every_name_of_the_table_compiles() -> None:
    """With the options it needs, each tool in the table is one to its provider's types and validator."""
    needed: dict[str, dict[str, Any]] = {
        "file_search": {"openai-responses": {"vector_store_ids": ["v"]}, "gemini": {"fileSearchStoreNames": ["f"]}}
    }
    for name, kinds in PROVIDED.items():
        for kind in kinds:
            options = needed.get(kind, {}).get(name) or ({"server_label": "docs", "server_url": "https://example.org"} if kind == "mcp" else True)  # fmt: skip
            model = "gpt-4o-search-preview" if name == "openai-chat" else ""
            sent = body(name, model=model, provider_tools={kind: options})
            assert "tools" in sent or "web_search_options" in sent
