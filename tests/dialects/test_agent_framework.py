"""Messages of the Agent Framework without the package: their JSON is read, written back, fitted, and refused where it is wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from palaver import fit, read_messages, write_messages
from palaver.errors import InvalidMessage
from palaver.messages import Role

PIXEL = "data:image/png;base64,iVBORw0KGgo="
MORE: dict[str, Any] = {"additional_properties": {}}


def message(role: str, *contents: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a message as `to_dict` writes it."""
    parts = [MORE | content for content in contents]
    return {"type": "message", "role": role, "contents": parts, **MORE, **more}


def text(words: str) -> dict[str, Any]:
    """Return a text."""
    return {"type": "text", "text": words}


def result(call_id: str, *items: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return the result of a call."""
    words = "\n".join(item["text"] for item in items if item["type"] == "text")
    said = [MORE | item for item in items]
    return {"type": "function_result", "call_id": call_id, "result": words, "items": said, **more}


def conversation() -> list[dict[str, Any]]:
    """Return messages with each kind of content that is read, and some that are kept as they are."""
    call = {"type": "function_call", "name": "weather", "hosted": False}
    asked = {**call, "call_id": "c1", "arguments": '{"town": "Oslo"}', "id": "fc_1"}
    return [
        message("system", text("Look first.")),
        message(
            "user",
            text("Is it cold?"),
            {"type": "data", "uri": PIXEL, "media_type": "image/png"},
            {"type": "uri", "uri": "https://example.org/a.png", "media_type": "image/png"},
            {"type": "data", "uri": "data:application/pdf;base64,JVBERg==", "media_type": "application/pdf"},
            author_name="ann",
            additional_properties={"page": 1},
        ),
        message(
            "assistant",
            {"type": "text_reasoning", "text": "Hm.", "protected_data": "sig", "id": "rs_1"},
            {"type": "text_reasoning", "protected_data": "xyz"},
            {**text("I look."), "annotations": [{"type": "citation", "url": "https://example.org"}]},
            {"type": "mcp_server_tool_call", "call_id": "m1", "tool_name": "search", "arguments": {"q": "Oslo"}},
            asked,
            {**call, "call_id": "c2", "arguments": {"town": "Rome"}},
            {"type": "function_approval_request", "id": "c1", "function_call": asked, "user_input_request": True},
            message_id="msg_1",
        ),
        message(
            "tool",
            result("c1", text("-4"), additional_properties={"m": 1}),
            result("c2", text("Here"), {"type": "data", "uri": PIXEL, "media_type": "image/png"}, text("it is")),
        ),
        message("assistant", {**call, "call_id": "c3", "arguments": '{"town": '}),
        message("tool", result("c3", text("Error: it is not JSON."), exception="ValueError")),
        message("narrator", text("A pause.")),
        message("assistant", {"type": "usage", "usage_details": {"input_token_count": 7}}, text("Yes.")),
    ]


def test_messages_come_back_as_they_were() -> None:
    """What is read and written back is equal: contents that nothing is known of, ids and properties, too."""
    given = conversation()
    before = copy.deepcopy(given)
    written = write_messages(read_messages(given), "agent-framework")
    assert given == before
    assert (written.items, list(written.report)) == (given, [])


def test_messages_are_read_as_what_they_say() -> None:
    """Roles, names, images, calls, results and failures are read."""
    read = read_messages(conversation())
    roles = [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.TOOL, Role.USER, Role.ASSISTANT]
    assert [each.role for each in read] == roles
    assert read[1].name == "ann"
    assert [content.type for content in read[1].contents][:3] == ["text", "image", "image"]
    assert [(call.id, dict(call.args)) for call in read[2].tool_calls()] == [
        ("c1", {"town": "Oslo"}),
        ("c2", {"town": "Rome"}),
    ]
    results = [each for message in read for each in message.tool_results()]
    assert [(each.id, each.is_error) for each in results] == [("c1", False), ("c2", False), ("c3", True)]
    assert (results[0].content, len(results[1].content)) == ("-4", 3)


@pytest.mark.parametrize(
    "dialect", ["openai-chat", "openai-responses", "anthropic", "gemini", "langchain", "pydantic-ai", "vercel-ui"]
)
def test_providers_and_the_framework_read_each_other(dialect: str) -> None:
    """Every call and result is in each other dialect's list, and back in one message of results for each answer."""
    theirs = read_messages(write_messages(read_messages(conversation()), dialect).items, dialect)
    items = write_messages(theirs, "agent-framework").items
    parts = [(item["role"], part) for item in items for part in item["contents"]]
    assert [part["name"] for _, part in parts if part["type"] == "function_call"] == ["weather"] * 3
    assert [role for role, part in parts if part["type"] == "function_result"] == ["tool"] * 3
    assert [len(item["contents"]) for item in items if item["role"] == "tool"] == [2, 1]
    for _, part in parts:
        if "uri" in part:
            assert (part["type"] == "data") == part["uri"].startswith("data:")


def test_a_list_fits() -> None:
    """Untouched messages are the caller's own objects; a shortened result keeps its other fields, and no call lacks its result."""
    given = [message("system", text("Look first."))]
    for number in range(40):
        call = {"type": "function_call", "call_id": f"c{number}", "name": "weather", "arguments": "{}", "id": "x"}
        given += [
            message("user", text(f"What is the weather in town {number}?")),
            message("assistant", call),
            message("tool", result(f"c{number}", text("Grey. " * 300), id=f"r{number}")),
            message("assistant", text(f"Grey in town {number}.")),
        ]
    fitted = fit(given, model="gpt-5", budget=16_000)
    assert fitted.tokens <= 16_000 < fitted.tokens_before
    assert fitted.messages[0] is given[0]
    assert fitted.messages[-1] is given[-1]
    parts = [part for item in fitted.messages for part in item["contents"] if "call_id" in part]
    calls, results = ([part for part in parts if part["type"] == kind] for kind in ("function_call", "function_result"))
    assert [part["call_id"] for part in calls] == [part["call_id"] for part in results]
    short = [part for part in results if len(part["result"]) < 1_000]
    assert short
    for part in results:
        assert part["id"] == part["call_id"].replace("c", "r")
        assert part["items"] == [MORE | text(part["result"])]


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"type": "message", "role": "user", "contents": "Hello"}, "to_dict"),
        ({"type": "message", "role": 7, "contents": []}, "to_dict"),
        ({"type": "message", "role": "user", "contents": ["Hello"]}, "A content of a message is an object, not a str"),
    ],
)
def test_wrong_items_are_refused(item: Any, why: str) -> None:  # noqa: ANN401 - anything
    """What is not a message is named by its place."""
    with pytest.raises(InvalidMessage, match=f"Item 1 of the messages.*{why}"):
        read_messages([conversation()[0], item], "agent-framework")
