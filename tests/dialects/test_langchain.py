"""Messages of LangChain: what its package makes is read, written back, and read as other providers' messages."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from palaver import fit, read_messages, write_messages
from palaver.errors import InvalidMessage
from palaver.messages import Role

said = pytest.importorskip("langchain_core.messages", reason="langchain-core is not installed")
load = pytest.importorskip("langchain_core.load")

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
USAGE = {
    "input_tokens": 7,
    "output_tokens": 2,
    "total_tokens": 9,
    "input_token_details": {"cache_read": 3},
}


def answers() -> list[Any]:
    """Return answers as LangChain's models of several providers give them, each with a call and its result."""
    call = {"id": "c1", "name": "weather", "args": {"town": "Oslo"}}
    text = {"type": "text", "text": "I look."}
    of = {provider: {"model_provider": provider, "model_name": "m"} for provider in ("anthropic", "openai")}
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "sig", "index": 0}
    use = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"town": "Oslo"}}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    function = {
        "type": "function_call",
        "id": "fc",
        "call_id": "c1",
        "name": "weather",
        "arguments": '{"town": "Oslo"}',
    }
    contents = [
        ("I look.", {}),
        ([], {}),
        ([thinking, text, use], of["anthropic"]),
        ([text, {**use, "input": {}, "partial_json": '{"town": "Oslo"}', "index": 1}], of["anthropic"]),
        ([{"type": "redacted_thinking", "data": "xyz"}, "bare", text, use], of["anthropic"]),
        ([{**reasoning, "encrypted_content": "e", "index": 0}, function, {**text, "annotations": []}], of["openai"]),
        (
            [
                {"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "s"}},
                text,
                {"type": "tool_call", **call},
            ],
            {},
        ),
        (
            [
                {"type": "server_tool_call", "id": "s1", "name": "search", "args": {"q": "Oslo"}},
                {"type": "server_tool_result", "tool_call_id": "s1", "status": "success", "output": [1]},
                {"type": "non_standard", "value": {"x": None}},
                {"type": "text", "text": "So.", "annotations": [{"type": "citation", "url": "https://example.org"}]},
            ],
            {"model": "m"},
        ),
    ]
    made: list[Any] = []
    for content, metadata in contents:
        made += [
            said.HumanMessage("Is it cold?", name="ann", id=f"h{len(made)}"),
            said.AIMessage(content, tool_calls=[call], usage_metadata=USAGE, response_metadata=metadata),
            said.ToolMessage("-4", tool_call_id="c1", name="weather", artifact={"degrees": -4}),
        ]
    return made


def conversation() -> list[Any]:
    """Return messages of every type and with every block."""
    image = said.content.create_image_block(base64=PIXEL, mime_type="image/png")
    pictures = [
        image,
        said.content.create_image_block(url="https://example.org/a.png"),
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.org/b.png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": PIXEL},
        {"type": "image", "file_id": "file_1"},
        {"type": "input_audio", "input_audio": {"data": "SUQzAAAA", "format": "mp3"}},
        said.content.create_file_block(base64="JVBERg==", mime_type="application/pdf"),
        said.content.create_plaintext_block("A note", title="note"),
        said.content.create_video_block(url="https://example.org/c.mp4"),
    ]
    broken = {"type": "invalid_tool_call", "id": "c9", "name": "weather", "args": '{"town": ', "error": "not JSON"}
    return [
        said.SystemMessage("Look before you answer.", additional_kwargs={"__openai_role__": "developer"}),
        said.ChatMessage("Be kind.", role="developer"),
        said.HumanMessage([{"type": "text", "text": "What is this?"}, *pictures]),
        *answers(),
        said.AIMessage("", invalid_tool_calls=[broken]),
        said.ToolMessage("It is not JSON.", tool_call_id="c9", status="error"),
        said.AIMessageChunk("Done", tool_call_chunks=[], chunk_position="last"),
        said.HumanMessage("And in pictures?"),
        said.AIMessage("", tool_calls=[{"id": "c10", "name": "draw", "args": {}}]),
        said.ToolMessage(
            [{"type": "text", "text": "Here"}, image, {"type": "reasoning", "reasoning": "?"}], tool_call_id="c10"
        ),
        said.HumanMessage("Thanks"),
    ]


@pytest.mark.parametrize("form", ["messages_to_dict", "dumpd"])
def test_what_langchain_writes_comes_back(form: str) -> None:
    """JSON of either form, of messages of all types and providers, is equal after reading and writing."""
    made = conversation()
    given = said.messages_to_dict(made) if form == "messages_to_dict" else [load.dumpd(message) for message in made]
    before = copy.deepcopy(given)
    written = write_messages(read_messages(given), "langchain")
    assert given == before
    assert (written.items, list(written.report)) == (given, [])


def test_objects_are_read_like_their_json() -> None:
    """`BaseMessage` values say what their JSON says, and need no dialect's name."""
    made = conversation()
    assert write_messages(read_messages(made), "langchain").items == said.messages_to_dict(made)


def test_messages_are_what_langchain_says_they_are() -> None:
    """Roles, usage, model, thinking, calls, broken arguments, results and failures are read."""
    read = read_messages(conversation())
    assert [message.role for message in read[:4]] == [Role.SYSTEM, Role.SYSTEM, Role.USER, Role.USER]
    answer = read[10]
    assert (answer.usage.input_tokens, answer.usage.cache_read_tokens, answer.model) == (7, 3, "m")
    assert [(block.content, block.signature, block.provider) for block in answer.thinking()] == [
        ("Hm.", "sig", "anthropic")
    ]
    assert [(call.id, dict(call.args)) for call in answer.tool_calls()] == [("c1", {"town": "Oslo"})]
    assert answer.text_content() == "I look."
    broken = next(call for message in read for call in message.tool_calls() if call.id == "c9")
    assert broken.error
    assert [result.is_error for message in read for result in message.tool_results() if result.id == "c9"] == [True]
    assert len([block for block in read[2].contents if block.type == "image"]) == 6


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini", "gemini-interactions"])
def test_providers_and_langchain_read_each_other(dialect: str) -> None:
    """Every call and result is in each provider's list, and back in messages that LangChain loads."""
    messages = read_messages(conversation())
    theirs = read_messages(write_messages(messages, dialect).items, dialect)
    ours = said.messages_from_dict(write_messages(theirs, "langchain").items)
    calls = [call["args"] for message in ours if message.type == "ai" for call in message.tool_calls]
    assert calls.count({"town": "Oslo"}) == len(answers()) // 3
    assert len([message for message in ours if message.type == "tool"]) == len(answers()) // 3 + 2


def test_a_list_fits() -> None:
    """Untouched messages are the caller's own objects, the others are loaded by LangChain, and no call lacks its result."""
    given = [said.SystemMessage("Look before you answer.")]
    for number in range(40):
        call = {"id": f"c{number}", "name": "weather", "args": {"town": number}}
        given += [
            said.HumanMessage(f"What is the weather in town {number}?"),
            said.AIMessage("", tool_calls=[call]),
            said.ToolMessage("Grey. " * 300, tool_call_id=f"c{number}", artifact={"n": number}),
            said.AIMessage(f"Grey in town {number}."),
        ]
    fitted = fit(given, model="gpt-5", budget=6_000)
    assert fitted.tokens <= 6_000 < fitted.tokens_before
    assert fitted.messages[0] is given[0]
    assert fitted.messages[-1] is given[-1]
    ids = {id(message) for message in given}
    sent = [item if id(item) in ids else said.messages_from_dict([item])[0] for item in fitted.messages]
    calls = [call["id"] for message in sent if message.type == "ai" for call in message.tool_calls]
    assert calls == [message.tool_call_id for message in sent if message.type == "tool"]
    shortened = [message for message in sent if message.type == "tool" and id(message) not in ids]
    assert all(message.artifact["n"] == int(message.tool_call_id[1:]) for message in shortened)
    for gone in fitted.omitted:
        assert all(fitted.recall(handle) for handle in gone.handles())
    assert fit(fitted.messages, model="gpt-5", budget=6_000).messages


@pytest.mark.parametrize(
    "item",
    [
        {"type": "remove", "data": {"content": "", "id": "1"}},
        {"type": "human", "data": "Hello"},
        {"type": "human", "data": {"content": {"text": "Hello"}}},
        {"type": "ai", "data": {"content": "", "tool_calls": ["weather"]}},
        {"type": "ai", "data": {"content": [7]}},
        7,
    ],
)
def test_wrong_items_are_refused(item: Any) -> None:  # noqa: ANN401 - anything
    """What is not a message is named by its place, not read in part."""
    with pytest.raises(InvalidMessage, match="Item 0 of the messages"):
        read_messages([item], "langchain")


def test_other_lists_keep_their_dialect() -> None:
    """An object with `type` and `data` that is not a message of LangChain is not taken for one."""
    with pytest.raises((InvalidMessage, TypeError), match="0"):
        read_messages([{"type": "image", "data": PIXEL}])
