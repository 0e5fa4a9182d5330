"""Where the source documents disagree: each conflict, as it was decided."""

import json

import pytest
from pydantic import ValidationError

from palaver.errors import InvalidMessage
from palaver.messages import (
    AssistantMessage,
    FunctionCall,
    Message,
    MessageRole,
    Modalities,
    Role,
    Roles,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    Usage,
    UsageCost,
    UserMessage,
    decode,
    encode,
)
from palaver.messages.blocks import MALFORMED

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "it"}'}}


def test_c1_content_is_a_view_of_blocks() -> None:
    """A string for one text block, parts for more, None for calls alone; the constructor takes all of them."""
    assert Message(role="user", content="hi").contents == (TextContent("hi"),)
    assert Message(role="user", contents=[TextContent("hi")]).content == "hi"
    assert Message(role="assistant", tool_calls=[CALL]).content is None
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    assert Message(role="user", content=parts).content == parts
    assert Message(role="user", content="").content == ""
    both = Message(role="assistant", content="ok", tool_calls=[CALL])
    assert (both.content, len(both.contents)) == ("ok", 2)
    with pytest.raises(ValidationError):
        both.content = "other"  # type: ignore[misc]
    changed = both.model_copy(update={"content": "other"})
    assert (changed.content, changed.tool_calls(), both.content) == ("other", both.tool_calls(), "ok")


def test_c2_one_family_of_frozen_models() -> None:
    """DESIGN decision 1 replaces C2: a UserMessage is a Message from the start."""
    assert type(Message(role="user", content="hi")) is UserMessage
    assert isinstance(UserMessage.text("hi"), Message)
    assert type(Message.from_dict(AssistantMessage(content="x").to_dict())) is AssistantMessage


def test_c3_one_role_enum_under_three_names() -> None:
    """Role, Roles and MessageRole are one; members equal their words; developer is read as system."""
    assert Role is Roles is MessageRole
    assert " ".join(Role) == "system user assistant tool tool_call custom branch_summary compaction_summary"
    assert Message(content="hi").role == "user"
    assert Message(role="developer", content="be brief").role is Role.SYSTEM
    assert Role("developer") is Role.SYSTEM
    assert f"{Role.USER}" == "user"


def test_c4_tool_requests_keep_their_role() -> None:
    """R20, R24: TOOL_CALL and ASSISTANT are both on the assistant's side, is_function_call decides, the wire role is assistant."""
    kept = Message(role=Role.TOOL_CALL, tool_calls=[CALL])
    usual = Message(role=Role.ASSISTANT, tool_calls=[CALL])
    assert (kept.role, usual.role) == (Role.TOOL_CALL, Role.ASSISTANT)
    assert type(kept) is type(usual) is AssistantMessage
    for message in (kept, usual):
        assert message.is_assistant_side
        assert message.is_function_call
        assert message.to_api_dict()["role"] == "assistant"
        assert decode(encode(message)[0]).role is message.role
    assert kept.model_copy(update={"role": "assistant"}).role is Role.ASSISTANT
    assert not Message(content="hi").is_assistant_side


def test_c5_calls_are_views_of_blocks() -> None:
    """R291, R294: as DESIGN decides: tool_calls() and function_calls show the blocks; the dict form goes in and to_api_dict() comes out."""
    from_dicts = Message(role="assistant", tool_calls=[CALL])
    from_calls = Message(role="assistant", function_calls=[FunctionCall("c1", "look", {"at": "it"})])
    from_blocks = Message(role="assistant", contents=[ToolCallContent("c1", "look", args={"at": "it"})])
    for message in (from_dicts, from_calls, from_blocks):
        (call,) = message.function_calls
        (block,) = message.tool_calls()
        assert (
            (call.id, call.name, call.arguments) == (block.id, block.name, block.args) == ("c1", "look", {"at": "it"})
        )
        assert json.loads(message.to_api_dict()["tool_calls"][0]["function"]["arguments"]) == {"at": "it"}
    assert from_dicts.to_api_dict()["tool_calls"] == [CALL]  # to the letter, spaces included
    assert from_calls.function_calls[0].is_repeated(from_blocks.function_calls)
    assert not from_calls.function_calls[0].equals(FunctionCall("c1", "look", {"at": "her"}))


def test_c5_malformed_arguments_are_kept_raw() -> None:
    """They are never turned into {}: the text goes back as it came, and the error says why it could not be read."""
    cases: list[str] = ["{bad", "[1]", "null", '{"a": NaN}', '"x"', "[" * 5000, '{"a":' * 200 + "1" + "}" * 200]
    for raw in cases:
        message = Message(role="assistant", tool_calls=[{"id": "c1", "function": {"name": "look", "arguments": raw}}])
        (call,) = decode(encode(message)[0]).tool_calls()
        assert (call.args, call.raw_args, call.arguments) == ({}, raw, raw)
        assert call.error
        assert message.function_calls[0].error_message == call.error
        sent = message.to_api_dict()["tool_calls"][0]["function"]["arguments"]
        assert json.loads(sent) == {MALFORMED: raw}  # a server that parses history accepts it


def test_c5_readable_arguments_keep_their_text() -> None:
    """Where writing them again would give another text, the text is stored, once, and read again on decoding."""
    for raw in ['{"b": 1, "a": 2}', '{"a":1,"a":2}', "{ }", "", '{"a":1e2}', '{"a":"\\u00e9"}']:
        call = ToolCallContent("c1", "look", args=raw)
        assert (call.error, call.arguments) == (None, raw)
        body, _ = encode(AssistantMessage(contents=[call]))
        assert b'"args"' not in body
        assert decode(body).tool_calls() == [call]
        assert call.args == (json.loads(raw) if raw else {})
        assert call.json_arguments == (raw or "{}")


def test_c6_one_message_a_result() -> None:
    """Property, metadata key and block id agree; a batch splits into messages that share a batch id."""
    by_field = Message(role="tool", content="seen", tool_call_id="c1")
    by_metadata = Message(role="tool", content="seen", metadata={"tool_call_id": "c1"})
    by_block = ToolMessage.from_result(ToolResultContent("c1", "seen"))
    for message in (by_field, by_metadata, by_block):
        assert message.tool_call_id == "c1"
        assert message.tool_results() == [ToolResultContent("c1", "seen")]
        assert message.content == "seen"
    batch = ToolMessage.from_results([ToolResultContent("c1", "x", name="f"), ToolResultContent("c2", "y")])
    assert batch.tool_call_id is None
    with pytest.raises(InvalidMessage, match="split"):
        batch.to_api_dict()
    one, other = batch.split()
    assert (one.tool_call_id, other.tool_call_id) == ("c1", "c2")
    assert (one.name, other.name) == ("f", "tool")
    assert one.metadata["batch_id"] == other.metadata["batch_id"] == batch.id
    assert len({one.id, other.id, batch.id}) == 3
    assert by_block.split() == (by_block,)


def test_c7_usage_is_the_raw_record() -> None:
    """As DESIGN decision 2 has it: a read-only mapping equal to what the provider sent, and cost from any vocabulary."""
    raw = {"input_tokens": 5, "cache_read_input_tokens": 1_000, "output_tokens": 7}
    message = Message(role="assistant", content="x", usage=raw)
    assert message.usage == raw
    assert message.usage["input_tokens"] == 5
    assert message.usage.input_tokens == 1_005
    assert message.token_usage is message.usage
    assert message.cost.prompt_tokens == 1_005
    with pytest.raises(TypeError):
        message.usage["input_tokens"] = 0
    own = AssistantMessage(content="x", usage=Usage(input_tokens=3, cost=UsageCost(input=0.5, total=0.5)))
    assert (own.cost.prompt_tokens, own.cost.cost) == (3, 0.5)


def test_c8_names_default_to_the_role() -> None:
    """The name of a tool's message is the tool's; API dicts carry a name only if it says something."""
    roles = ("system", "user", "assistant", "tool_call", "custom")
    names = " ".join(Message(role=role, content="x").name for role in roles)
    assert names == "system user assistant assistant custom"
    assert Message(role="tool", content="x").name == "tool"
    assert ToolMessage.from_result(ToolResultContent("c1", name="look")).name == "look"
    assert "name" not in Message(content="x").to_api_dict()
    assert Message(content="x", name="ann/a").to_api_dict()["name"] == "ann_a"


def test_c9_ids_and_times_survive() -> None:
    """Automatic, unlike each other, and part of the round trip."""
    one, other = Message(content="x"), Message(content="x")
    assert one.id != other.id
    again = decode(encode(one)[0])
    assert (again.id, again.timestamp) == (one.id, one.timestamp)
    given = Message(content="x", id="msg_1", timestamp=12.5)
    assert (given.id, given.timestamp) == ("msg_1", 12.5)


def test_c20_stored_text_is_not_a_template() -> None:
    """R254: braces of any kind stay as they are; ``static`` is accepted and forgotten."""
    text = "{x} {{y}} {% z %} ${w} %s"
    message = Message(content=text, static=False)
    assert message.content == text
    assert message.to_api_dict() == {"role": "user", "content": text}


def test_c27_modalities_include_audio() -> None:
    """R22: TEXT, IMAGE, AUDIO and FUNCTION_CALL; derived from the blocks unless it is given."""
    assert {modality.value for modality in Modalities} == {"text", "image", "audio", "function_call"}
    assert Message(content="x").modality is Modalities.TEXT
    assert Message(role="assistant", content="x", tool_calls=[CALL]).modality is Modalities.FUNCTION_CALL
    assert Message(content="x", modality="audio").modality is Modalities.AUDIO
    kept = decode(encode(Message(role="assistant", tool_calls=[CALL], modality="text"))[0])
    assert kept.modality is Modalities.TEXT
