"""The bytes that are stored and hashed: golden, sorted, and the same from every writer; media and their types."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given

from palaver.errors import InvalidMessage, MissingFile, NotFound, StoreDamaged
from palaver.messages import (
    AssistantMessage,
    CompactionSummaryMessage,
    ImageContent,
    Media,
    Message,
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
            b'{"digest":"f02a830cf03a1cf756c0461481db682bc9254a5a399f847494d33850c3ff7156","media_type":"image/png","size":12}'
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
    for message, golden in GOLDEN:
        assert encode(message)[0] == golden
        assert decode(golden) == message


@given(some.json_objects())
def test_json_is_written_as_json_writes_it(value: dict[str, Any]) -> None:
    """Two writers that share no code agree, strings and floats included."""
    assert (
        canonical_json(value) == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    )


def test_what_is_not_json_is_refused() -> None:
    """No NaN, no keys that are not text, no bytes, no lone surrogate: an InvalidMessage, never bad bytes."""
    cases: list[object] = [float("nan"), float("inf"), {1: 2}, object(), b"", {"a": {3}}, "\ud800", {"\ud800": 1}]
    for bad in cases:
        with pytest.raises(InvalidMessage, match="cannot be written as JSON"):
            canonical_json(bad)


def test_bytes_of_no_message_are_refused() -> None:
    """decode() raises InvalidMessage, whatever the bytes."""
    for body in (b"", b"{", b"[]", b'{"role":"user"}', b'{"role":[],"contents":[]}', b"\xff", b'{"a":NaN}'):
        with pytest.raises(InvalidMessage):
            decode(body)


# --- media ---------------------------------------------------------------------------------------------------------------


@given(some.images() | some.sounds())
def test_media_are_known_by_their_bytes(media: Media) -> None:
    """Equality and hash go by address, digest and type; in memory or not makes no difference."""
    again = Media.from_dict(json.loads(media.model_dump_json()))
    assert (again, hash(again), again.data) == (media, hash(media), media.data)
    bare = media.model_copy(update={"data": None})
    assert bare == media
    assert bare.data is None
    assert (media.url is None) == bool(media.digest)
    if media.data is not None:
        assert (media.digest, media.size) == (digest(media.data), len(media.data))
        assert media.to_base64() == (base64.b64encode(media.data).decode(), media.media_type)


def test_missing_bytes_raise_not_found() -> None:
    """The error names the payload and what to do; the dict for a provider never holds a bare digest."""
    bare = Media(media_type="image/png", digest=digest(PNG), size=len(PNG))
    with pytest.raises(NotFound, match="hydrate"):
        ImageContent([bare]).to_base64()
    with pytest.raises(NotFound):
        Media.from_text("https://example.org/a.png").payload()
    with pytest.raises(NotFound):
        Message(content=[ImageContent([bare])]).to_api_dict()
    with pytest.raises(StoreDamaged, match="digest"):
        hydrate(Message(content=[ImageContent([bare])]), lambda _: b"other bytes")
    with pytest.raises(MissingFile):
        ImageContent.from_file("/no/such/file")


def test_claimed_types_count_only_for_unknown_bytes() -> None:
    """R190: never a wrong label; a type nobody can check is the claimant's word."""
    assert Media.from_bytes(PNG, media_type="image/jpeg").media_type == "image/png"
    assert Media.from_bytes(b"....ftypavif", media_type="image/avif").media_type == "image/avif"
    assert Media.from_bytes(b"....", "audio", "audio/webm").media_type == "audio/webm"
    with pytest.raises(InvalidMessage, match="no image"):
        Media.from_bytes(b"%PDF-1.7", media_type="application/pdf")


def test_a_digest_and_its_bytes_belong_together() -> None:
    """Fields that contradict each other are refused; a medium needs bytes, digest or address."""
    spelt = base64.b64encode(PNG).decode()
    with pytest.raises(InvalidMessage, match="not those of"):
        Media(digest="0" * 64, data=PNG)
    with pytest.raises(InvalidMessage, match="not those of"):
        Message(contents=[{"type": "image", "images": [{"digest": "0" * 64, "data": spelt}]}])
    with pytest.raises(InvalidMessage, match="bytes, the digest"):
        Media()
    with pytest.raises(InvalidMessage):
        Media(url="")
    assert Media.from_dict({"data": spelt}).media_type == "image/png"
