"""Dicts of other interfaces are read without loss, recorded ones too."""

import base64
import json
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
import zstandard

from palaver.errors import InvalidMessage
from palaver.messages import (
    AssistantMessage,
    AudioContent,
    ImageContent,
    Message,
    Role,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    UserMessage,
    decode,
    encode,
    from_anthropic_dict,
    from_chat_dict,
    stop_reason_of,
)
from tests.recorded import Recording, recordings

PNG = b"\x89PNG\r\n\x1a\nrest"
SPELT = base64.b64encode(PNG).decode()


def test_a_chat_message_is_read_key_by_key() -> None:
    """Text, calls, name, model and usage are fields; whatever else stays under its name, or source_ and its name."""
    message = from_chat_dict(
        {
            "role": "assistant",
            "content": "on it",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "index": 0,
                    "function": {"name": "look", "arguments": '{"at": 1}', "strict": True},
                }
            ],
            "model": "gpt-5",
            "usage": {"prompt_tokens": 3},
            "id": "chatcmpl-1",
            "timestamp": "2026-01-02",
            "error": False,
            "content_": 1,
            "refusal": None,
        },
        id="derived",
        timestamp=1.5,
    )
    assert type(message) is AssistantMessage
    assert (message.id, message.timestamp, message.model, message.usage.input_tokens) == ("derived", 1.5, "gpt-5", 3)
    assert message.contents[0] == TextContent("on it")
    (call,) = message.tool_calls()
    assert (call.id, call.name, call.args, call.arguments) == ("c1", "look", {"at": 1}, '{"at": 1}')
    assert call.model_extra == {"index": 0, "function_strict": True}
    assert message.model_extra == {
        "source_id": "chatcmpl-1",
        "source_timestamp": "2026-01-02",
        "source_error": False,
        "content_": 1,
        "refusal": None,
    }


@pytest.mark.parametrize(
    ("role", "kind", "kept"),
    [
        ("developer", SystemMessage, {"source_role": "developer"}),
        ("function", ToolMessage, {"source_role": "function"}),
        ("system", SystemMessage, {}),
        ("user", UserMessage, {}),
        ("tool", ToolMessage, {}),
    ],
)
def test_roles_of_other_times_are_read_and_remembered(role: str, kind: type[Message], kept: dict[str, str]) -> None:
    """The word itself survives where the role has another name here."""
    message = from_chat_dict({"role": role, "content": "x", "name": "n"})
    assert type(message) is kind
    assert message.model_extra == kept
    assert (message.content, message.name) == ("x", "n")


def test_recorded_messages_may_be_empty() -> None:
    """An answer that was cut short is history, though nobody may construct one by accident (C: R250 is for callers)."""
    for empty in ({"role": "assistant", "content": None}, {"role": "assistant"}, {"role": "user", "content": []}):
        message = from_chat_dict(empty)
        assert message.contents == ()
        assert decode(encode(message)[0]) == message


def test_a_call_of_the_old_interface_is_a_call_without_an_id() -> None:
    """function_call became tool_calls; both are calls."""
    message = from_chat_dict({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}})
    assert message.tool_calls() == [ToolCallContent("", "f")]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            {"id": "c", "name": "f", "arguments": {"a": 1}, "requestor": "user"},
            ToolCallContent("c", "f", args={"a": 1}, requestor="user"),
        ),
        ({"id": "c", "function": "f", "arguments": None}, ToolCallContent("c", "f")),
        ({"id": None, "type": "function", "function": {"name": "f"}}, ToolCallContent("", "f")),
        (
            {"id": "c", "type": "custom", "name": "f", "error": 3},
            ToolCallContent("c", "f", source_type="custom", source_error=3),
        ),
    ],
)
def test_calls_come_in_several_spellings(call: dict[str, Any], expected: ToolCallContent) -> None:
    """tau2, inspect, lists without ids: what a call has no field for stays on it."""
    assert from_chat_dict({"role": "assistant", "tool_calls": [call]}).tool_calls() == [expected]


def test_arguments_that_are_a_list_are_malformed_and_kept() -> None:
    """JSON that is no object is no set of arguments; its text goes back as it was."""
    (call,) = from_chat_dict(
        {"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "arguments": [1, 2]}]}
    ).tool_calls()
    assert (call.args, call.arguments) == ({}, "[1, 2]")
    assert call.error


def test_parts_of_chat_completions_and_responses_become_blocks() -> None:
    """Text, images by address and inline, sound; keys of a part stay on its block."""
    sound = base64.b64encode(b"RIFF\0\0\0\0WAVE").decode()
    message = from_chat_dict(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                {"type": "input_text", "text": "b"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
                {"type": "input_image", "image_url": f"data:image/png;base64,{SPELT}"},
                {"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}},
                {"type": "refusal", "refusal": "no"},
                "bare",
                {"text": "untyped"},
            ],
        }
    )
    assert message.contents == (
        TextContent("a", cache_control={"type": "ephemeral"}),
        TextContent("b", part_type="input_text"),
        ImageContent(["https://example.org/a.png"], detail="low"),
        ImageContent([PNG]),
        AudioContent([sound]),
        TextContent("no", part_type="refusal"),
        TextContent("bare"),
        TextContent("untyped"),
    )


def test_parts_of_anthropic_become_blocks() -> None:
    """Thinking with its signature, redacted thinking, calls, results with images, images by source."""
    message = from_anthropic_dict(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "xyz"},
                {"type": "text", "text": "a", "citations": None},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 1, "a": 2}, "caller": {"type": "direct"}},
            ],
        }
    )
    assert message.contents == (
        ThinkingContent("hm", "sig", provider="anthropic"),
        ThinkingContent(redacted="xyz", provider="anthropic"),
        TextContent("a", citations=None),
        ToolCallContent("t1", "f", args={"a": 2, "b": 1}, caller={"type": "direct"}),
    )
    source = {"type": "base64", "media_type": "image/jpeg", "data": SPELT}
    answer = from_anthropic_dict(
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "x"}, {"type": "image", "source": source}],
                },
                {"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": True},
                {"type": "tool_result", "tool_use_id": "t3"},
            ],
        }
    )
    assert answer.role is Role.TOOL
    assert answer.contents == (
        ToolResultContent("t1", [TextContent("x"), ImageContent([PNG])]),
        ToolResultContent("t2", "no", is_error=True),
        ToolResultContent("t3"),
    )
    mixed = from_anthropic_dict(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}, {"type": "text", "text": "and"}]}
    )
    assert mixed.role is Role.USER


def test_a_response_object_of_anthropic_gives_its_id_model_usage_and_reason() -> None:
    """Fragments of one response share response_id; the provider's own word for the reason stays."""
    message = from_anthropic_dict(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "cache_read_input_tokens": 2},
        },
        id="derived",
    )
    assert (message.id, message.response_id, message.model) == ("derived", "msg_1", "claude")
    assert (message.stop_reason, message.usage.input_tokens) == (StopReason.TOOL_CALLS, 3)
    assert message.model_extra == {"source_stop_reason": "tool_use", "stop_sequence": None}


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", StopReason.STOP),
        ("stop_sequence", StopReason.STOP),
        ("max_tokens", StopReason.LENGTH),
        ("tool_use", StopReason.TOOL_CALLS),
        ("toolUse", StopReason.TOOL_CALLS),
        ("refusal", StopReason.ERROR),
        ("MAX_TOKENS", StopReason.LENGTH),
        ("SAFETY", StopReason.CONTENT_FILTER),
        ("content_filter", StopReason.CONTENT_FILTER),
        ("whatever", None),
        ("", None),
        (None, None),
    ],
)
def test_r215_reasons_to_stop_have_one_vocabulary(word: str | None, reason: StopReason | None) -> None:
    """The map of the providers' words; a word nobody knows is no reason."""
    assert stop_reason_of(word) is reason


def test_a_refusal_beside_the_content_is_what_was_said() -> None:
    """OpenAI puts the words of a refusal beside a content that is null: they are text of the message, marked as what they are."""
    message = from_chat_dict({"role": "assistant", "content": None, "refusal": "I cannot help with that."})
    part = from_chat_dict(
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot help with that."}]}
    )
    assert message.text_content() == "I cannot help with that."
    assert message.contents == part.contents
    assert message.model_extra == {"refusal": "I cannot help with that."}
    assert from_chat_dict({"role": "assistant", "content": "Sure.", "refusal": None}).text_content() == "Sure."
    assert from_chat_dict({"role": "user", "content": None, "refusal": "no"}).contents == ()


def test_reasoning_beside_the_content_becomes_thinking() -> None:
    """DeepSeek's text, LiteLLM's signed blocks; the signed ones win and the text stays as a key."""
    plain = from_chat_dict({"role": "assistant", "content": "a", "reasoning_content": "hm"})
    assert plain.contents == (ThinkingContent("hm"), TextContent("a"))
    signed = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    both = from_chat_dict({"role": "assistant", "content": "a", "reasoning_content": "hm", "thinking_blocks": signed})
    assert both.thinking() == [ThinkingContent("hm", "s", provider="anthropic")]
    assert both.model_extra == {"reasoning_content": "hm"}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "<omitted>"}},
        {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,JVBERi0="}},
        {"type": "image_url", "image_url": None},
        {"type": "image", "source": {"type": "file", "file_id": "f1"}},
        {"type": "document", "source": {"type": "text", "data": "x"}},
        {"type": "tool_use", "name": "f", "input": {}},
        {"type": "text", "text": 7},
        {"type": "file", "file": {"file_id": "f1"}},
    ],
)
def test_a_part_that_cannot_be_read_is_kept_whole(part: dict[str, Any]) -> None:
    """Unknown types keep their type; an unreadable part of a type that palaver uses is wrapped, and survives storing."""
    message = from_chat_dict({"role": "user", "content": [part]})
    (block,) = message.contents
    assert isinstance(block, UnknownContent)
    assert part in ({"type": block.type, **(block.model_extra or {})}, (block.model_extra or {}).get("part"))
    assert decode(encode(message)[0]) == message


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"role": "nobody", "content": "x"},
        {"role": "user", "content": 7},
        {"role": "user", "content": [{"no": 1}]},
        {"role": "assistant", "tool_calls": [7]},
        {"role": "assistant", "tool_calls": "x"},
    ],
)
def test_what_is_no_message_is_refused(bad: dict[str, Any]) -> None:
    """InvalidMessage, with what is wrong."""
    for read in (from_chat_dict, from_anthropic_dict):
        try:
            read(bad)
        except InvalidMessage:
            continue
        assert "tool_calls" in bad  # Anthropic has no such key: it is kept
        assert read is from_anthropic_dict


# --- recorded sessions ------------------------------------------------------------------------------------------------


def text_of(recording: Recording) -> bytes:
    """Decompress a recording."""
    with recording.path.open("rb") as file:
        return zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file).read()


def chat_dicts(recording: Recording) -> Iterator[dict[str, Any]]:
    """Give the chat-completions messages of a recording."""
    if recording.kind == "openhands_llm_calls":
        with (
            recording.path.open("rb") as file,
            zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file) as plain,
            tarfile.open(fileobj=plain, mode="r|") as tar,
        ):
            for member in tar:
                lines = tar.extractfile(member)
                if lines is not None and member.name.endswith(".json"):
                    yield from json.load(lines).get("messages", [])
    elif recording.kind == "tau_bench":
        yield from (message for run in json.loads(text_of(recording)) for message in run["traj"])
    elif recording.kind == "tau2_bench":
        for run in json.loads(text_of(recording))["simulations"]:
            for message in run["messages"]:
                yield from message.get("tool_messages") or [message]
    else:
        yield from (message for message in json.loads(text_of(recording))["messages"] if message["role"] != "exit")


def unread(message: Message) -> dict[str, Any]:
    """Undo from_chat_dict(), as far as a test has to see that nothing was lost."""
    extra = message.model_extra or {}
    fields = {key.removeprefix("source_"): value for key, value in extra.items()}
    fields |= message.to_api_dict()
    if "role" in {key.removeprefix("source_") for key in extra}:
        fields["role"] = extra["source_role"]
    return fields


@pytest.mark.parametrize(
    "recording", recordings("tau_bench", "tau2_bench", "mini_swe_agent", "openhands_llm_calls", each=2)
)
def test_recorded_chat_messages_lose_nothing(recording: Recording) -> None:
    """Every key and value of every message is there again, arguments to the letter, and storing keeps all of it."""
    seen = 0
    for source in chat_dicts(recording):
        message = from_chat_dict(source)
        assert decode(encode(message)[0]) == message
        assert not message.normalized
        found = unread(message)
        for key in set(source) - {
            "content",
            "tool_calls",
            "usage",
            "model",
            "name",
            "tool_call_id",
            "reasoning_content",
            "thinking_blocks",
            "function_call",
        }:
            assert found[key] == source[key]
        if isinstance(source.get("content"), str):
            assert found["content"] == source["content"]
        assert message.usage == (source.get("usage") or {})
        for call, given in zip(message.tool_calls(), source.get("tool_calls") or [], strict=True):
            function = given["function"] if isinstance(given.get("function"), dict) else given
            assert (call.id, call.name) == (given["id"], function["name"])
            arguments = function["arguments"]
            assert call.arguments == arguments if isinstance(arguments, str) else call.args == arguments
        seen += 1
    assert seen > 0


@pytest.mark.parametrize("recording", recordings("claude_code", each=4))
def test_recorded_anthropic_messages_lose_nothing(recording: Recording) -> None:
    """Every block of every line is there again: type by type, field by field, and storing keeps all of it."""
    lines = (line for line in text_of(recording).split(b"\n") if line.startswith(b"{"))
    sources = [record["message"] for record in map(json.loads, lines) if record.get("type") in {"user", "assistant"}]
    assert sources
    for source in sources:
        message = from_anthropic_dict(source)
        assert decode(encode(message)[0]) == message
        if isinstance(source["content"], str):
            assert message.content == source["content"]
            continue
        assert len(message.contents) == len(source["content"])
        for block, part in zip(message.contents, source["content"], strict=True):
            kept = json.dumps(block.model_dump(mode="json"), ensure_ascii=False)
            for value in part.values():
                if isinstance(value, str) and part["type"] != value:
                    assert json.dumps(value, ensure_ascii=False) in kept
            if isinstance(block, ToolCallContent):
                assert block.args == part["input"]
