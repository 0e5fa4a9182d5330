"""Dicts of other interfaces are read without loss, recorded ones too."""

import base64
import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
import zstandard

from palaver.errors import InvalidMessage
from palaver.messages import (
    Message,
    Role,
    StopReason,
    ToolCallContent,
    UnknownContent,
    decode,
    encode,
    from_anthropic_dict,
    from_chat_dict,
    stop_reason_of,
)
from tests.recorded import Recording, recordings

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
SOUND = base64.b64encode(b"RIFF\0\0\0\0WAVE").decode()
IMAGE = [{"data": PNG, "media_type": "image/png"}]


def test_calls_come_in_several_spellings() -> None:
    """A key that a call has no field for stays on it; arguments that are not an object are kept as text."""
    call = {"id": "c", "type": "custom", "name": "f", "arguments": [1]}
    (found,) = from_chat_dict({"role": "assistant", "tool_calls": [call]}).tool_calls()
    assert (found.name, found.raw_args, found.model_extra) == ("f", "[1]", {"source_type": "custom"})
    old = from_chat_dict({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}})
    assert old.tool_calls() == [ToolCallContent("", "f")]


ANTHROPIC_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PNG}}
PARTS: list[tuple[Any, dict[str, Any]]] = [
    ("bare", {"type": "text", "content": "bare"}),
    ({"text": "untyped"}, {"type": "text", "content": "untyped"}),
    ({"type": "text", "text": "a", "cache_control": {}}, {"type": "text", "content": "a", "cache_control": {}}),
    ({"type": "input_text", "text": "b"}, {"type": "text", "content": "b", "part_type": "input_text"}),
    ({"type": "refusal", "refusal": "no"}, {"type": "text", "content": "no", "part_type": "refusal"}),
    (
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
        {"type": "image", "images": [{"url": "https://example.org/a.png"}], "detail": "low"},
    ),
    ({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}, {"type": "image", "images": IMAGE}),
    (
        {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}},
        {"type": "audio", "audio": [{"data": SOUND, "media_type": "audio/wav"}]},
    ),
    (
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "thinking", "content": "hm", "signature": "sig", "provider": "anthropic"},
    ),
    (
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "thinking", "redacted": "xyz", "provider": "anthropic"},
    ),
    (
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 1}, "caller": {}},
        {"type": "tool_call", "id": "t1", "name": "f", "args": {"b": 1}, "caller": {}},
    ),
    (ANTHROPIC_IMAGE, {"type": "image", "images": IMAGE}),
    (
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x"}, ANTHROPIC_IMAGE]},
        {"type": "tool_result", "id": "t1", "content": [{"type": "text", "content": "x"}, {"type": "image", "images": IMAGE}]},
    ),
    (
        {"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": True},
        {"type": "tool_result", "id": "t2", "content": "no", "is_error": True},
    ),
    ({"type": "tool_result", "tool_use_id": "t3"}, {"type": "tool_result", "id": "t3"}),
]  # fmt: skip


def test_parts_become_blocks() -> None:
    """Parts of chat completions, responses and Anthropic; a key of a part stays on its block."""
    for part, block in PARTS:
        expected = Message.from_dict({"role": "assistant", "contents": [block]}).contents
        assert from_chat_dict({"role": "assistant", "content": [part]}).contents == expected
        assert from_anthropic_dict({"role": "assistant", "content": [part]}).contents == expected


def test_anthropic_results_are_a_tool_message() -> None:
    """A user message of results alone is the tool's; with words beside them it stays the user's."""
    result = {"type": "tool_result", "tool_use_id": "t"}
    assert from_anthropic_dict({"role": "user", "content": [result]}).role is Role.TOOL
    assert from_anthropic_dict({"role": "user", "content": [result, {"type": "text", "text": "x"}]}).role is Role.USER


def test_anthropic_response_object() -> None:
    """Fragments of one response share response_id; the provider's own word for the reason stays."""
    response = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []}
    reason = {"stop_reason": "tool_use", "stop_sequence": None}
    usage = {"input_tokens": 1, "cache_read_input_tokens": 2}
    message = from_anthropic_dict({**response, **reason, "usage": usage}, id="derived")
    assert (message.id, message.response_id, message.model) == ("derived", "msg_1", "claude")
    assert (message.stop_reason, message.usage.input_tokens) == (StopReason.TOOL_CALLS, 3)
    assert message.model_extra == {"source_stop_reason": "tool_use", "stop_sequence": None}


def test_stop_reasons_have_one_vocabulary() -> None:
    """R215: the map of the providers' words; an unknown word is no reason."""
    cases: list[tuple[list[str | None], StopReason | None]] = [
        (["end_turn", "stop_sequence"], StopReason.STOP),
        (["max_tokens", "MAX_TOKENS"], StopReason.LENGTH),
        (["tool_use", "toolUse"], StopReason.TOOL_CALLS),
        (["refusal"], StopReason.REFUSAL),
        (["SAFETY", "content_filter"], StopReason.CONTENT_FILTER),
        (["whatever", "", None], None),
    ]
    for words, reason in cases:
        assert {stop_reason_of(word) for word in words} == {reason}


def test_refusal_beside_the_content_is_text() -> None:
    """OpenAI puts the words of a refusal beside a content that is null."""
    message = from_chat_dict({"role": "assistant", "content": None, "refusal": "I cannot."})
    assert message.text_content() == "I cannot."
    assert message.model_extra == {"refusal": "I cannot."}
    assert from_chat_dict({"role": "assistant", "content": "Sure.", "refusal": None}).text_content() == "Sure."
    assert from_chat_dict({"role": "user", "content": None, "refusal": "no"}).contents == ()


def test_reasoning_beside_the_content_is_thinking() -> None:
    """DeepSeek's text, LiteLLM's signed blocks; the signed ones win and the text stays as a key."""
    message = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    plain = from_chat_dict(message)
    assert ([block.content for block in plain.thinking()], plain.text_content()) == (["hm"], "a")
    both = from_chat_dict({**message, "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]})
    assert [(block.content, block.signature) for block in both.thinking()] == [("hm", "s")]
    assert both.model_extra == {"reasoning_content": "hm"}


def test_unreadable_parts_are_kept_whole() -> None:
    """Unknown types keep their type; an unreadable part of a type that palaver uses is wrapped, and survives storing."""
    cases: list[dict[str, Any]] = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "<omitted>"}},
        {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,JVBERi0="}},
        {"type": "document", "source": {"type": "text", "data": "x"}},
        {"type": "tool_use", "name": "f", "input": {}},
        {"type": "text", "text": 7},
    ]
    for part in cases:
        message = from_chat_dict({"role": "user", "content": [part]})
        (block,) = message.contents
        assert isinstance(block, UnknownContent)
        assert part in ({"type": block.type, **block.model_extra}, block.model_extra.get("part"))
        assert decode(encode(message)[0]) == message


def test_what_is_no_message_is_refused() -> None:
    """InvalidMessage by either reader, with what is wrong."""
    bad_calls: list[dict[str, Any]] = [{"role": "assistant", "tool_calls": value} for value in ([7], "x")]
    for bad in [*bad_calls, {"role": "nobody", "content": "x"}, {"role": "user", "content": 7}, {}]:
        with pytest.raises(InvalidMessage):
            from_chat_dict(bad)
    with pytest.raises(InvalidMessage):
        from_anthropic_dict({"role": "user", "content": [{"no": 1}]})


# --- recorded sessions ------------------------------------------------------------------------------------------------


def _plain(recording: Recording) -> bytes:
    with recording.path.open("rb") as file:
        return zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file).read()


def chat_dicts(recording: Recording) -> Iterator[dict[str, Any]]:
    """Return the chat-completions messages of a recording."""
    if recording.kind == "openhands_llm_calls":
        with tarfile.open(fileobj=io.BytesIO(_plain(recording))) as tar:
            for member in tar:
                lines = tar.extractfile(member)
                if lines is not None and member.name.endswith(".json"):
                    yield from json.load(lines).get("messages", [])
        return
    whole = json.loads(_plain(recording))
    if recording.kind == "tau_bench":
        yield from (message for run in whole for message in run["traj"])
    else:
        yield from (message for message in whole["messages"] if message["role"] != "exit")


@pytest.mark.parametrize("recording", recordings("tau_bench", "mini_swe_agent", "openhands_llm_calls", each=2))
def test_recorded_chat_messages_lose_nothing(recording: Recording) -> None:
    """Every key and value of every message is there again, arguments to the letter, and storing keeps all of it."""
    fields = {"role", "content", "tool_calls", "usage", "model", "name", "tool_call_id", "reasoning_content"}
    seen = 0
    for source in chat_dicts(recording):
        message = from_chat_dict(source)
        assert decode(encode(message)[0]) == message
        found = {key.removeprefix("source_"): value for key, value in message.model_extra.items()}
        for key in set(source) - fields - {"thinking_blocks", "function_call"}:
            assert found[key] == source[key]
        if isinstance(source.get("content"), str):
            assert message.content == source["content"]
        assert message.usage == (source.get("usage") or {})
        for call, given in zip(message.tool_calls(), source.get("tool_calls") or [], strict=True):
            assert (call.id, call.name) == (given["id"], given["function"]["name"])
            assert call.arguments == given["function"]["arguments"]
        seen += 1
    assert seen > 0


@pytest.mark.parametrize("recording", recordings("claude_code", each=3))
def test_recorded_anthropic_messages_lose_nothing(recording: Recording) -> None:
    """Every block of every line is there again, field by field, and storing keeps all of it."""
    records = [json.loads(line) for line in _plain(recording).split(b"\n") if line.startswith(b"{")]
    sources = [record["message"] for record in records if record.get("type") in {"user", "assistant"}]
    assert sources
    for source in sources:
        message = from_anthropic_dict(source)
        assert decode(encode(message)[0]) == message
        if isinstance(source["content"], str):
            assert message.content == source["content"]
            continue
        for block, part in zip(message.contents, source["content"], strict=True):
            kept = json.dumps(block.model_dump(mode="json"), ensure_ascii=False)
            for value in part.values():
                if isinstance(value, str) and part["type"] != value:
                    assert json.dumps(value, ensure_ascii=False) in kept
            if isinstance(block, ToolCallContent):
                assert block.args == part["input"]
