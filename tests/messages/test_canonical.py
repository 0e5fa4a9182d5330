"""The bytes that are stored and hashed: golden, sorted, and the same from every writer."""

import enum
import json
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidMessage, StoreDamaged
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
    hydrate,
)
from palaver.testing import strategies as some

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
                TextContent("see", later=True),
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
            b'{"contents":[],"id":"00000000000000000000000000000000","role":"compaction_summary","summary":"so far",'
            b'"timestamp":1.5,"tokens_before":9}'
        ),
    ),
]


@pytest.mark.parametrize("number", range(len(GOLDEN)))
def test_the_stored_form_never_changes(number: int) -> None:
    """Golden bytes: what an earlier version wrote is what this one writes, and it is read back to the same value."""
    message, golden = GOLDEN[number]
    if b"79a2f9" in golden:
        golden = golden.replace(
            b"79a2f9d7be29def2de8aa1d4ea3ef9ed2ea2d0c7ed6ca5b9d2ab7df40ef55e5b", digest(PNG).encode()
        )
    assert encode(message)[0] == golden
    assert decode(golden) == message


def test_the_same_message_gives_the_same_bytes_in_another_process() -> None:
    """Nothing depends on hash seeds or on the order in which fields were given."""
    script = (
        "from palaver.messages import Message, encode\n"
        "m = Message(timestamp=1.5, id='i', content='x', z=1, b={'y': 1, 'a': 2}, a=[{'d': 1, 'c': 2}])\n"
        "print(encode(m)[0].decode())"
    )
    run = [
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    later: dict[str, Any] = {"a": [{"c": 2, "d": 1}], "b": {"a": 2, "y": 1}, "z": 1}
    here = Message(**later, content="x", id="i", timestamp=1.5)
    assert run[0] == run[1] == encode(here)[0] + b"\n"


@given(some.json_objects())
def test_json_is_written_as_the_standard_library_would_write_it(value: dict[str, Any]) -> None:
    """Two writers that share no code agree, strings and floats included."""
    assert (
        canonical_json(value) == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_spelt_in_the_shortest_form_that_reads_back(value: float) -> None:
    """Not a bit of a number is lost."""
    again = json.loads(canonical_json(value))
    assert math.copysign(1, again) == math.copysign(1, value)
    assert again == value


class Level(enum.IntEnum):
    """Somebody's numbers with names."""

    LOW = 1


class Shout(str):
    """Somebody's string."""

    __slots__ = ()


def test_names_numbers_and_strings_of_other_types_are_written_as_what_they_are() -> None:
    """Enums by value, subclasses of JSON's types as JSON, messages and media in their stored form."""
    value = {"r": Role.USER, "l": Level.LOW, "s": Shout("x"), "b": True, "t": (1, None), "m": Media.from_bytes(PNG)}
    assert canonical_json(value) == (
        b'{"b":true,"l":1,"m":{"digest":"%s","media_type":"image/png","size":12},"r":"user","s":"x","t":[1,null]}'
        % digest(PNG).encode()
    )
    message = GOLDEN[0][0]
    assert canonical_json({"message": message}) == b'{"message":%s}' % encode(message)[0]


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), {1: 2}, object(), b"", {"a": {3}}, "\ud800", {"\ud800": 1}]
)
def test_what_has_no_place_in_json_is_refused(bad: object) -> None:
    """No NaN, no keys that are not text, no bytes, no lone surrogate: an InvalidMessage, never bad bytes."""
    with pytest.raises(InvalidMessage, match="cannot be written as JSON"):
        canonical_json(bad)


@pytest.mark.parametrize(
    "body",
    [
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
    ],
)
def test_bytes_that_are_no_message_are_refused(body: bytes) -> None:
    """decode() raises InvalidMessage, whatever the bytes."""
    with pytest.raises(InvalidMessage):
        decode(body)


def test_unknown_fields_and_block_types_survive_to_the_letter() -> None:
    """Law 2: a body of a later version is written back as it was read."""
    body = (
        b'{"contents":[{"kept":{"a":[1,null]},"type":"hologram"},{"content":"x","later":1,"type":"text"}],'
        b'"id":"i","later":{"b":2},"role":"user","timestamp":1.5}'
    )
    message = decode(body)
    assert encode(message)[0] == body
    assert message.contents[0].type == "hologram"
    assert message.model_extra == {"later": {"b": 2}}


def test_payloads_are_handed_over_once_and_brought_back_by_digest() -> None:
    """DESIGN decision 5: stored out of line under their SHA-256, one copy however often they are shown."""
    message = Message(
        content=[
            ImageContent([PNG, PNG]),
            {"type": "tool_result", "tool_use_id": "c", "content": [ImageContent([PNG])]},
        ]
    )
    body, payloads = encode(message)
    assert dict(payloads) == {digest(PNG): PNG}
    assert PNG not in body
    bare = decode(body)
    asked: list[str] = []

    def load(name: str) -> bytes:
        asked.append(name)
        return PNG

    whole = hydrate(bare, load)
    assert whole == bare == message
    assert whole.contents[0] == ImageContent([PNG, PNG])
    assert set(asked) == {digest(PNG)}
    assert hydrate(whole, lambda _: b"") is whole
    with pytest.raises(StoreDamaged, match="digest"):
        hydrate(bare, lambda _: b"other bytes")
