"""What tools of the provider's own left in an answer: back to that provider as it came, and to nobody else."""

from typing import Any

import pytest

from palaver.messages import TextContent, ThinkingContent, UnknownContent, thaw
from palaver.wire import How
from tests.wire.check.vendor_types import hold_to_types
from tests.wire.scenes import Scene

SEARCH = {"web_search": True}

CLAUDE = (
    UnknownContent(type="server_tool_use", id="srvtoolu_1", name="web_search", input={"query": "herons"}),
    UnknownContent(
        type="web_search_tool_result",
        tool_use_id="srvtoolu_1",
        content=[
            {"type": "web_search_result", "title": "Herons", "url": "https://example.org", "encrypted_content": "x"}
        ],
    ),
    TextContent("Herons fish."),
)
NAMELESS = UnknownContent(type="server_tool_use", id="srvtoolu_1", input={"query": "herons"})
EMPTY = UnknownContent(type="web_search_tool_result", tool_use_id="srvtoolu_1")
GPT = (
    ThinkingContent(
        "I search.", provider="openai", model="gpt-5.2",
        artefact={"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
    ),
    UnknownContent(type="web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "herons"}),
    TextContent("Herons fish."),
)  # fmt: skip
GOOGLE = (
    UnknownContent(type="executableCode", executableCode={"language": "PYTHON", "code": "print(1)"}),
    UnknownContent(type="codeExecutionResult", codeExecutionResult={"outcome": "OUTCOME_OK", "output": "1"}),
    TextContent("It is 1."),
)


def scene(blocks: tuple[Any, ...], provider: str, model: str) -> Scene:
    """A question, an answer with such blocks, and another question."""
    return Scene().user("What do herons do?").model_says(*blocks, by=(provider, model)).user("And then?")


def test_anthropic_gets_its_calls_and_results_back() -> None:
    """Both blocks stand in the assistant's message as they came, before its words; the report is empty."""
    request = scene(CLAUDE, "anthropic", "claude-opus-4-6").request("anthropic", provider_tools=SEARCH, cache=False)
    body = thaw(request.body)
    assert [block["type"] for block in body["messages"][1]["content"]] == [
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]
    assert body["messages"][1]["content"][1]["content"][0]["encrypted_content"] == "x"
    assert len(request.report) == 0
    hold_to_types("anthropic", body)


def test_openai_gets_its_items_back_behind_what_was_thought() -> None:
    """The item follows its reasoning, without the id that nobody keeps."""
    body = thaw(scene(GPT, "openai", "gpt-5.2").request("openai-responses", provider_tools=SEARCH).body)
    assert [item["type"] for item in body["input"]] == ["message", "reasoning", "web_search_call", "message", "message"]
    assert body["input"][2] == {
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "herons"},
    }


def test_gemini_gets_its_parts_back() -> None:
    """Each is a part of its own kind."""
    body = thaw(scene(GOOGLE, "google", "gemini-3-pro").request("gemini", provider_tools={"code_execution": True}).body)
    assert [next(iter(part)) for part in body["contents"][1]["parts"]] == [
        "executableCode",
        "codeExecutionResult",
        "text",
    ]
    hold_to_types("gemini", body)


@pytest.mark.parametrize(
    ("blocks", "provider", "model", "to", "tools", "gone"),
    [
        (CLAUDE, "anthropic", "claude-opus-4-6", "anthropic", {}, 2),
        (CLAUDE, "anthropic", "claude-opus-4-6", "openai-responses", SEARCH, 2),
        (CLAUDE, "anthropic", "claude-opus-4-6", "openai-chat", {}, 2),
        (CLAUDE, "bedrock", "claude-opus-4-6", "anthropic", SEARCH, 2),
        (CLAUDE[1:], "anthropic", "claude-opus-4-6", "anthropic", SEARCH, 1),
        ((CLAUDE[0], CLAUDE[2]), "anthropic", "claude-opus-4-6", "anthropic", SEARCH, 1),
        ((CLAUDE[1], CLAUDE[0], CLAUDE[2]), "anthropic", "claude-opus-4-6", "anthropic", SEARCH, 2),
        (
            (UnknownContent(type="server_tool_use", payload="x"), CLAUDE[2]),
            "anthropic",
            "claude-opus-4-6",
            "anthropic",
            SEARCH,
            1,
        ),
        ((NAMELESS, *CLAUDE[1:]), "anthropic", "claude-opus-4-6", "anthropic", SEARCH, 2),
        ((CLAUDE[0], EMPTY, CLAUDE[2]), "anthropic", "claude-opus-4-6", "anthropic", SEARCH, 2),
        (GPT, "openai", "gpt-5.2", "openai-responses", {}, 2),
        (GPT, "openai", "gpt-5.2", "anthropic", SEARCH, 2),
        (GOOGLE, "google", "gemini-3-pro", "gemini", {}, 2),
    ],
)
def test_what_cannot_go_back_is_left_out_and_reported(
    blocks: tuple[Any, ...], provider: str, model: str, to: str, tools: dict[str, Any], gone: int
) -> None:
    """To another provider, without such tools in the request, with its other half or a field missing: the words stand alone, the request is valid."""
    request = scene(blocks, provider, model).request(to, provider_tools=tools)
    sent = request.data.decode()
    assert not any(
        word in sent for word in ("server_tool_use", "tool_result", "web_search_call", "executableCode", "rs_1")
    )
    assert "Herons fish." in sent or "It is 1." in sent
    assert [change.how for change in request.report if change.what in {"block", "thinking"}] == [How.DROPPED] * gone


def test_an_answer_of_nothing_else_leaves_a_valid_request() -> None:
    """A turn that was paused inside such a tool has nothing that can go back."""
    request = scene((CLAUDE[0],), "anthropic", "claude-opus-4-6").request("anthropic", provider_tools=SEARCH)
    assert [message["role"] for message in request.body["messages"]] == ["user"]
