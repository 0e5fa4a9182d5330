"""The acceptance scenarios of the source documents that messages alone can meet, and the conflicts between them."""

import base64
import io
import json
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import pytest
from PIL import Image
from pydantic import ValidationError

from palaver.errors import InvalidMessage
from palaver.messages import (
    APITypes,
    AssistantContent,
    AssistantMessage,
    AudioContent,
    BaseMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    FunctionCall,
    ImageContent,
    Message,
    MessageRole,
    Modalities,
    Role,
    Roles,
    Speaker,
    StopReason,
    SystemContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    TokenLogprob,
    ToolCallContent,
    ToolContent,
    ToolKind,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    Usage,
    UsageCost,
    UserContent,
    UserMessage,
    decode,
    encode,
)
from palaver.messages.blocks import MALFORMED

JPEG, PNG, GIF = b"\xff\xd8\xff\xe0rest", b"\x89PNG\r\n\x1a\nrest", b"GIF89arest"
WEBP = b"RIFF\x04\0\0\0WEBPrest"


def b64(data: bytes) -> str:
    """Spell bytes as base64."""
    return base64.b64encode(data).decode()


class Opaque:
    """An object of a tool that JSON knows nothing of."""

    def __str__(self) -> str:
        return "opaque"


def test_every_field_survives_a_dict() -> None:
    """A2, R5, R8, R9, R11, R12, R18, R19, R123: from_dict(to_dict(m)) equals m for every field, and json.dumps works, objects of tools included."""
    call = FunctionCall("c1", "look", {"at": "it"}, result=Opaque(), result_str="seen", error_message="no")
    later: dict[str, Any] = {"later_field": {"kept": [True]}}
    image = {"type": "image_url", "image_url": {"url": f"data:;base64,{b64(PNG)}"}}
    message = Message(
        role="assistant",
        content=[{"type": "text", "text": "see"}, image],
        function_calls=[call],
        parsed={"answer": [1, {"a": None}]},
        usage={"prompt_tokens": 1, "service_tier": "default"},
        logprobs=[{"token": "a", "logprob": -0.5, "later": 1}, -1.5, float("-inf"), "b"],
        metadata={"tool_call_id": "c0", "dialog_id": "d" * 32},
        api_type=APITypes.RESPONSE,
        vectors=[0.5, 1.0],
        stop_reason="tool_calls",
        modality="image",
        model="gpt-4o",
    )
    fields = message.to_dict() | later
    again = Message.from_dict(json.loads(json.dumps(fields)))
    for name in type(message).model_fields:
        assert getattr(again, name) == getattr(message, name), name
    assert again.model_extra == {"later_field": {"kept": [True]}}
    assert [(one.token, one.logprob) for one in again.logprobs] == [("a", -0.5), ("", -1.5), ("", None), ("b", None)]
    assert isinstance(again.logprobs[0], TokenLogprob)
    (seen,) = again.function_calls
    assert (seen.result, seen.result_str, seen.error_message, seen.success) == ("opaque", "seen", "no", False)


def test_block_defaults_are_not_shared() -> None:
    """A27, R184, R186, R187, R200-R202: each default, by keyword and by position; no default is shared or can be changed."""
    defaults: dict[type, dict[str, Any]] = {
        TextContent: {"type": "text", "content": ""},
        ImageContent: {"type": "image", "images": ()},
        AudioContent: {"type": "audio", "audio": ()},
        ThinkingContent: {"type": "thinking", "content": "", "signature": ""},
        ToolCallContent: {"type": "tool_call", "id": "", "name": "", "kind": None, "args": {}},
        ToolResultContent: {"type": "tool_result", "id": "", "content": "", "is_error": False, "metadata": {}},
    }
    assert ToolResultContent().terminate is False
    for kind, fields in defaults.items():
        block = kind()
        assert {name: getattr(block, name) for name in fields} == fields
    with pytest.raises(TypeError):
        ToolCallContent().args["a"] = 1  # type: ignore[index]
    with pytest.raises(TypeError):
        ToolResultContent().metadata["a"] = 1  # type: ignore[index]
    given = {"a": [1]}
    call = ToolCallContent("c1", "look", ToolKind.READ, given)
    given["a"].append(2)
    assert (call.id, call.name, call.kind, call.args) == ("c1", "look", "read", {"a": [1]})
    assert TextContent("x").content == "x"
    assert ThinkingContent("why", "sig").signature == "sig"
    with pytest.raises(TypeError, match="at most 1 positional"):
        TextContent("x", "y")  # type: ignore[call-arg]
    shown = signature(UserMessage).parameters
    assert next(iter(shown)) == "content"
    assert {"tool_calls", "usage", "name"} < shown.keys()
    assert (shown["id"].annotation, shown["id"].default, shown["model"].default) == ("str", ..., None)
    assert "Undefined" not in str(signature(Message))


def saved(image: Image.Image, kind: str) -> bytes:
    """Encode a Pillow image."""
    buffer = io.BytesIO()
    image.save(buffer, format=kind)
    return buffer.getvalue()


def test_roles_do_not_restrict_their_blocks() -> None:
    """R185: the blocks of each role have a name, for readers; a message of any role may have any block."""
    assert (SystemContent, ToolContent) == (TextContent, ToolResultContent)
    assert get_args(UserContent) == (TextContent, ImageContent, AudioContent, ToolResultContent)
    assert get_args(AssistantContent) == (TextContent, ThinkingContent, ToolCallContent)
    for kind in (SystemMessage, UserMessage, AssistantMessage, ToolMessage):
        message = kind(contents=[ThinkingContent("why"), ToolCallContent("1", "look"), ToolResultContent("0", "x")])
        assert decode(encode(message)[0]) == message


def test_images_from_every_source(tmp_path: Path) -> None:
    """A28, R187-R190, R192, R193: the pairs of to_base64() are exact, in order, and the label is what the bytes are."""
    path = tmp_path / "shot.png"
    path.write_bytes(PNG)
    block = ImageContent(["https://example.org/a.png", b64(JPEG), PNG, GIF, WEBP, path])
    assert block.to_base64() == [
        ("https://example.org/a.png", ""),
        (b64(JPEG), "image/jpeg"),
        (b64(PNG), "image/png"),
        (b64(GIF), "image/gif"),
        (b64(WEBP), "image/webp"),
        (b64(PNG), "image/png"),
    ]
    for name in (path, str(path)):
        assert ImageContent.from_file(name).to_base64() == [(b64(PNG), "image/png")]
    assert ImageContent.from_url("http://example.org/b").to_base64() == [("http://example.org/b", "")]
    path.unlink()
    assert block.to_base64()[-1] == (b64(PNG), "image/png")  # read when it was made
    assert ImageContent().images == ()


def test_pillow_images_keep_a_known_format() -> None:
    """A28, R191: an image's own format, PNG for one without and for formats no model reads, so that the label is true."""
    kinds = dict.fromkeys(("JPEG", "PNG", "GIF", "WEBP"), "") | {"BMP": "image/png", "TIFF": "image/png"}
    for kind, other in kinds.items():
        expected = other or f"image/{kind.lower()}"
        loaded = Image.open(io.BytesIO(saved(Image.new("RGB", (2, 2), "red"), kind)))
        ((data, media_type),) = ImageContent([loaded]).to_base64()
        assert media_type == expected
        assert Image.MIME[str(Image.open(io.BytesIO(base64.b64decode(data))).format)] == expected
    assert ImageContent([Image.new("CMYK", (1, 1))]).to_base64()[0][1] == "image/png"


def test_unknown_bytes_are_refused() -> None:
    """A28, R190: unknown bytes are an error, never a wrong label; a string is never a path."""
    strings = ["not base64!", "file:/etc/hostname", "/etc/hostname", "data:image/png", b64(b"BMno")]
    for bad in (b"no image", b"", 7, *strings):
        with pytest.raises(InvalidMessage):
            ImageContent([bad])


def test_data_addresses_are_split_and_checked() -> None:
    """A28, R188: only http and https are addresses; a data: address is decoded, and its bytes overrule its label."""
    assert ImageContent([f"data:image/jpeg;base64,{b64(PNG)}"]).to_base64() == [(b64(PNG), "image/png")]
    assert ImageContent(["data:image/svg+xml,%3Csvg/%3E"]).to_base64() == [(b64(b"<svg/>"), "image/svg+xml")]


AUDIO = [
    (b"ID3rest", "audio/mpeg"),
    (b"\xff\xfbrest", "audio/mpeg"),
    (b"\xff\xf3rest", "audio/mpeg"),
    (b"\xff\xf2rest", "audio/mpeg"),
    (b"OggSrest", "audio/ogg"),
    (b"fLaCrest", "audio/flac"),
    (b"RIFF\0\0\0\0WAVErest", "audio/wav"),
    (b"RIFF\0\0\0\0AVI rest", "audio/mpeg"),
    (b"whatever", "audio/mpeg"),
]


def test_sounds_are_known_by_first_bytes(tmp_path: Path) -> None:
    """A29, R194-R199: every row of the table, as bytes, base64, file: and through the factories."""
    for data, expected in AUDIO:
        path = tmp_path / "clip"
        path.write_bytes(data)
        pair = (b64(data), expected)
        assert AudioContent([data, b64(data), f"file:{path}", path]).to_base64() == [pair] * 4
        assert AudioContent.from_file(path).to_base64() == AudioContent.from_base64(b64(data)).to_base64() == [pair]


def test_only_a_constructor_reads_a_file() -> None:
    """A29, R197: a string that came from outside is never a path, whatever door it comes through."""
    stolen = {"type": "audio", "audio": ["file:/etc/hostname"]}
    doors: list[Callable[[], object]] = [
        lambda: AudioContent.model_validate(stolen),
        lambda: Message(role="user", content=[stolen]),
        lambda: Message.from_dict({"role": "user", "contents": [stolen]}),
        lambda: ImageContent.model_validate({"images": [Path("/etc/hostname")]}),
        lambda: AudioContent.from_dict(stolen),
    ]
    for door in doors:
        with pytest.raises(ValueError, match=r"neither an address nor base64|no image"):
            door()
    foreign = {"type": "tool_result", "tool_use_id": "c1", "content": [stolen]}
    assert Message(content=[foreign]).contents == (UnknownContent(type="unreadable", part=foreign),)
    odd = {"type": "input_audio", "input_audio": {"data": b64(b"ID3")}, "images": ["file:/etc/hostname"]}
    assert Message(content=[odd]).contents[0].model_extra == {"images": ["file:/etc/hostname"]}
    with pytest.raises(FileNotFoundError):
        AudioContent(["file:/no/such/file"])


def test_user_message_with_sound_has_text_then_sound(tmp_path: Path) -> None:
    """A30, R209: the seed's snippet, and the same with images."""
    (tmp_path / "clip.mp3").write_bytes(b"ID3rest")
    msg = UserMessage.with_audio("Transcribe this", [(tmp_path / "clip.mp3").read_bytes()])
    text, sound = msg.contents
    assert (text, sound) == (TextContent("Transcribe this"), AudioContent([b"ID3rest"]))
    assert msg.modality is Modalities.AUDIO
    seen = UserMessage.with_images("describe this", [PNG, JPEG])
    assert seen.contents == (TextContent("describe this"), ImageContent([PNG, JPEG]))
    assert seen.modality is Modalities.IMAGE


def test_roles_ids_times_and_factories() -> None:
    """A31, R206-R212, R215: fresh ids, the clock, role values, factories, accessors in order; the family shares one base."""
    made: list[Message] = [
        SystemMessage.text("You are a helpful assistant."),
        UserMessage.text("hello"),
        AssistantMessage(
            contents=[TextContent("a"), ThinkingContent("t", "s"), TextContent("b"), ToolCallContent("1", "f")]
        ),
        ToolMessage.from_results([ToolResultContent("1", "x"), ToolResultContent("2", "y")]),
        ToolMessage.from_result(ToolResultContent("1", "x")),
        CustomMessage(custom_type="note", content="for later"),
        BranchSummaryMessage(summary="went left", from_id="m1"),
        CompactionSummaryMessage(summary="so far", tokens_before=9),
    ]
    assert " ".join(message.role for message in made) == (
        "system user assistant tool tool custom branch_summary compaction_summary"
    )
    assert all(isinstance(message, BaseMessage) for message in made)
    assert len({message.id for message in made}) == len(made)
    assert all(message.timestamp > 1.7e9 for message in made)
    answer = made[2]
    assert answer.text_content() == "ab"
    assert [call.name for call in answer.tool_calls()] == ["f"]
    assert [thought.signature for thought in answer.thinking()] == ["s"]
    assert (answer.error, answer.usage) == ("", Usage())
    assert [result.id for result in made[3].tool_results()] == ["1", "2"]
    assert made[6].text_content() == "went left"
    assert made[7].content == "so far"
    assert [message.speaker for message in made[:4]] == [Speaker.HARNESS, Speaker.HUMAN, Speaker.MODEL, Speaker.TOOL]
    assert (
        " ".join(StopReason)
        == "stop length tool_calls content_filter abort error pause compaction continue refusal overflow retry defect"
    )
    results = [ToolResultContent("1", "x")]
    batch = ToolMessage.from_results(results)
    results.clear()
    assert len(batch.contents) == 1


def test_usage_defaults_are_zero() -> None:
    """A32, R235, R236, R238: all zero, the nested cost included; context size is input and output of the last turn."""
    usage = Usage()
    figures = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    assert figures == (0, 0, 0, 0)
    assert usage.cost == UsageCost(input=0.0, output=0.0, cache_read=0.0, cache_write=0.0, total=0.0)
    own = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=40, cost=UsageCost(total=0.5))
    assert (own.input_tokens, own.output_tokens, own.cache_read_tokens) == (100, 20, 40)
    assert own.cost.total == 0.5
    assert own.context_tokens == 120


def test_a_message_has_content_or_calls() -> None:
    """A35, R247-R252: None with calls is accepted, neither is refused, and plain text gives a dict of two keys."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"it"}'}}]
    asking = Message(role="assistant", content=None, tool_calls=calls)
    assert asking.content is None
    assert asking.to_api_dict() == {"role": "assistant", "content": None, "tool_calls": calls}
    silences: list[dict[str, Any]] = [
        {},
        {"content": None, "tool_calls": []},
        {"role": "assistant", "tool_calls": None},
    ]
    for silent in silences:
        with pytest.raises(InvalidMessage, match="needs content or tool calls"):
            Message(**silent)
        with pytest.raises(ValueError, match="needs content or tool calls"):
            Message.model_validate(silent)
    plain = Message(content="hi", metadata={"secret": 1}, static=True)
    assert plain.role is Role.USER
    assert plain.to_api_dict() == {"role": "user", "content": "hi"}
    assert "static" not in plain.to_dict()
    answered = Message(role="tool", content="seen", tool_call_id="c1", name="look")
    assert answered.to_api_dict() == {"role": "tool", "content": "seen", "tool_call_id": "c1", "name": "look"}
    for message in (plain, asking, answered):
        again = Message(**message.to_api_dict())
        assert again.contents == message.contents


# --- where the source documents disagree: each conflict, as it was decided ------------------------------------------------


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "it"}'}}


def test_content_is_a_view_of_blocks() -> None:
    """C1, R2: a string for one text block, parts for more, None for calls alone; the constructor takes all of them."""
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


def test_one_family_of_frozen_models() -> None:
    """C2: a UserMessage is a Message from the start."""
    assert type(Message(role="user", content="hi")) is UserMessage
    assert isinstance(UserMessage.text("hi"), Message)
    assert type(Message.from_dict(AssistantMessage(content="x").to_dict())) is AssistantMessage


def test_one_role_enum_under_three_names() -> None:
    """C3, R1: Role, Roles and MessageRole are one; members equal their words; developer is read as system."""
    assert Role is Roles is MessageRole
    assert " ".join(Role) == "system user assistant tool tool_call custom branch_summary compaction_summary"
    assert Message(content="hi").role == "user"
    assert Message(role="developer", content="be brief").role is Role.SYSTEM
    assert Role("developer") is Role.SYSTEM
    assert f"{Role.USER}" == "user"


def test_tool_requests_keep_their_role() -> None:
    """C4, R15, R20, R24: TOOL_CALL and ASSISTANT are both on the assistant's side, is_function_call decides, the wire role is assistant."""
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


def test_calls_are_views_of_blocks() -> None:
    """C5, R124, R291, R294: tool_calls() and function_calls show the blocks; the dict form goes in and to_api_dict() comes out."""
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


def test_malformed_arguments_are_kept_raw() -> None:
    """C5: they are never turned into {}: the text goes back as it came, and the error says why it could not be read."""
    cases: list[str] = ["{bad", "[1]", "null", '{"a": NaN}', '"x"', "[" * 5000, '{"a":' * 200 + "1" + "}" * 200]
    for raw in cases:
        message = Message(role="assistant", tool_calls=[{"id": "c1", "function": {"name": "look", "arguments": raw}}])
        (call,) = decode(encode(message)[0]).tool_calls()
        assert (call.args, call.raw_args, call.arguments) == ({}, raw, raw)
        assert call.error
        assert message.function_calls[0].error_message == call.error
        sent = message.to_api_dict()["tool_calls"][0]["function"]["arguments"]
        assert json.loads(sent) == {MALFORMED: raw}  # a server that parses history accepts it


def test_readable_arguments_keep_their_text() -> None:
    """C5: where writing them again would give another text, the text is stored, once, and read again on decoding."""
    for raw in ['{"b": 1, "a": 2}', '{"a":1,"a":2}', "{ }", "", '{"a":1e2}', '{"a":"\\u00e9"}']:
        call = ToolCallContent("c1", "look", args=raw)
        assert (call.error, call.arguments) == (None, raw)
        body, _ = encode(AssistantMessage(contents=[call]))
        assert b'"args"' not in body
        assert decode(body).tool_calls() == [call]
        assert call.args == (json.loads(raw) if raw else {})
        assert call.json_arguments == (raw or "{}")


def test_one_message_a_result() -> None:
    """C6: property, metadata key and block id agree; a batch splits into messages that share a batch id."""
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


def test_names_default_to_the_role() -> None:
    """C8, R3: the name of a tool's message is the tool's; API dicts carry a name only if it says something."""
    roles = ("system", "user", "assistant", "tool_call", "custom")
    names = " ".join(Message(role=role, content="x").name for role in roles)
    assert names == "system user assistant assistant custom"
    assert Message(role="tool", content="x").name == "tool"
    assert ToolMessage.from_result(ToolResultContent("c1", name="look")).name == "look"
    assert "name" not in Message(content="x").to_api_dict()
    assert Message(content="x", name="ann/a").to_api_dict()["name"] == "ann_a"


def test_stored_text_is_not_a_template() -> None:
    """C20, R254: braces of any kind stay as they are; ``static`` is accepted and forgotten."""
    text = "{x} {{y}} {% z %} ${w} %s"
    message = Message(content=text, static=False)
    assert message.content == text
    assert message.to_api_dict() == {"role": "user", "content": text}


def test_modalities_include_audio() -> None:
    """C27, R22: TEXT, IMAGE, AUDIO and FUNCTION_CALL; derived from the blocks unless it is given."""
    assert {modality.value for modality in Modalities} == {"text", "image", "audio", "function_call"}
    assert Message(content="x").modality is Modalities.TEXT
    assert Message(role="assistant", content="x", tool_calls=[CALL]).modality is Modalities.FUNCTION_CALL
    assert Message(content="x", modality="audio").modality is Modalities.AUDIO
    kept = decode(encode(Message(role="assistant", tool_calls=[CALL], modality="text"))[0])
    assert kept.modality is Modalities.TEXT
