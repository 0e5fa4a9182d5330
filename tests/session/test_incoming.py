"""What a program of its own appends and sends: dicts and answers of the SDKs, requests as keyword arguments."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai.types import GenerateContentConfig

from palaver import tool
from palaver.errors import InvalidInput, InvalidMessage
from palaver.messages import AssistantMessage, Message, Role, Speaker, UserMessage
from palaver.session import Dialog, Session
from tests.providers.test_whole_answers import ANSWERS

LOOK = {
    "name": "look",
    "description": "Look.",
    "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}},
}
QUESTION: dict[str, Any] = {"role": "user", "content": "Which tests fail?"}
SAID = [
    [QUESTION, {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "c1", "content": "None."}],
    [QUESTION, {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c1", "output": "None."}],
    [QUESTION, {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "None."}]}],
    [{"role": "user", "parts": [{"text": "Which tests fail?"}]}, {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "look", "args": {}}}]}, {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "look", "response": {"output": "None."}}}]}],
]  # fmt: skip


LAST: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Two."},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two."}]},
    {"role": "assistant", "content": "Two."},
    {"role": "model", "parts": [{"text": "Two."}]},
]


@pytest.mark.parametrize("at_once", [True, False])
def test_dicts_of_every_dialect_are_appended(at_once: bool) -> None:
    """A question, a call, its result and an answer, one by one and as a list, make the same conversation."""
    for items, answer in zip(SAID, LAST, strict=True):
        dialog = Dialog("assistant")
        appended = dialog.append(items) if at_once else [dialog.append(item) for item in items]
        assert [len(message.contents) for message in appended] == [1, 1, 1], items
        assert len(dialog.view().exchanges) == 2
        assert dialog.request("openai", "gpt-5")["messages"][-1]["content"] == "None."
        dialog.append(answer)
        assert [message.text_content() for message in dialog.messages][-2:] == ["None.", "Two."]


@pytest.mark.parametrize("api", ANSWERS)
def test_a_loop_of_ones_own_is_recorded(api: str) -> None:
    """The request goes to the SDK as keywords; its answer comes back as it is, with usage; the call is given back to the byte."""
    data, sdk = ANSWERS[api]
    session = Session.create()
    dialog = session.root
    assert dialog.session is session
    dialog.append(QUESTION)
    request = dialog.request(api, "gpt-5", tools=[{"type": "function", "function": LOOK}])
    sent = dict(**request)
    assert sent["model"] == "gpt-5"
    assert ("messages" in sent, "input" in sent, "contents" in sent).count(True) == 1
    answer = dialog.append(sdk.model_validate(data))
    assert isinstance(answer, AssistantMessage)
    assert [call.request().data for call in dialog.calls] == [request.data]
    assert dialog.append({"role": "tool", "tool_call_id": "c1", "content": "None."}).role is Role.TOOL
    assert (dialog.cost.total_tokens, dialog.cost.estimated > 0) == (10, True)
    assert dialog.cost.cost == dialog.cost.estimated == session.cost.cost
    dialog.append(sdk.model_validate(data))  # some servers give every answer the same id
    assert [message.role for message in dialog.messages][-2:] == [Role.TOOL, answer.role]


def test_an_answer_to_another_request_records_no_call() -> None:
    """Only what was asked and what came back without anything in between is a call that the dialog knows."""
    dialog = Dialog("assistant")
    dialog.append(QUESTION)
    dialog.request("openai", "gpt-5")
    dialog.append(UserMessage("And quickly."))
    dialog.append(ANSWERS["openai-chat"][0])
    assert (len(dialog.messages), len(dialog.calls)) == (3, 0)


def test_tools_of_a_request_are_the_dialogs_from_then_on() -> None:
    """They are recorded once; schemas and functions may be mixed; an earlier view has its own."""

    @tool
    def tail(page: int) -> str:
        """Read a page."""
        return f"{page}"

    dialog = Dialog("assistant")
    dialog.append(QUESTION)
    for tools in ([LOOK, tail], [LOOK, tail], None):
        request = dialog.request("openai", "gpt-5", tools=tools)
        assert [each["function"]["name"] for each in request["tools"]] == ["look", "tail"]
    assert dialog.view().at == 1
    with pytest.raises(InvalidInput, match="earlier view"):
        dialog.request("openai", "gpt-5", tools=[], at=0)


def test_gemini_takes_the_request_as_keywords() -> None:
    """Settings and instructions are in `config`, as its SDK wants them."""
    dialog = Dialog("assistant")
    dialog.append([Message("system", "Be brief."), QUESTION])
    request = dialog.request("google", "gemini-2.5-pro", temperature=0.5)
    assert set(request) == {"model", "contents", "config"}
    config = GenerateContentConfig.model_validate(request["config"])
    assert (config.temperature, "Be brief." in str(config.system_instruction)) == (0.5, True)


@pytest.mark.parametrize("wrong", [3, "hi", None, [3], {"role": "user"}, [{"a": 1}], {"role": [], "content": "hi"}])
def test_what_is_not_a_message_is_refused(wrong: Any) -> None:  # noqa: ANN401 - anything
    """Nothing is written, and the error says what to append."""
    dialog = Dialog("assistant")
    with pytest.raises((TypeError, InvalidMessage)):
        dialog.append([QUESTION, wrong] if isinstance(wrong, dict) else wrong)
    assert len(dialog.messages) == 0


def test_a_stream_is_refused_before_it_is_read() -> None:
    """The error says to append the answer once it is whole."""
    stream = iter([{"object": "chat.completion.chunk", "choices": []}])
    with pytest.raises(TypeError, match=r"get_final_completion"):
        Dialog("assistant").append(stream)
    assert len(list(stream)) == 1


@pytest.mark.parametrize("dialect", [None, "openai-responses"])
def test_lone_items_of_responses_are_read_as_what_they_are(dialect: str | None) -> None:
    """A compaction and a question for consent are the model's; a screenshot is a tool's, so that its words are believed as those of a tool."""
    items: list[tuple[dict[str, Any], str, Speaker]] = [
        ({"type": "compaction", "encrypted_content": "gAAA"}, "compaction", Speaker.MODEL),
        (
            {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"},
            "tool_call",
            Speaker.MODEL,
        ),
        (
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "file_id": "f"}},
            "computer_call_output",
            Speaker.TOOL,
        ),
    ]
    for item, kind, speaker in items:
        dialog = Session.create().root
        message = dialog.append(item) if dialect is None else dialog.append(item, dialect=dialect)
        assert isinstance(message, Message)
        assert ([content.type for content in message.contents], message.speaker) == ([kind], speaker)
