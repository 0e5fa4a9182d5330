"""Any view: hypothesis strategies for the laws of compiling.

`views()` gives what no fold would and a program may: results without calls, ids used twice, blocks in roles that cannot say them, names
and schemas that no provider takes, media of every kind with and without bytes. `closed_views()` gives what a fold gives: every call has its result
beside it. Both have handles as a log has them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from palaver.errors import NotFound
from palaver.ids import DialogId
from palaver.log import Handle, Span, ToolSpec
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Media,
    Role,
    Speaker,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UnknownContent,
)
from palaver.prompts import Format
from palaver.view import Block, Exchange, Turn, View
from palaver.wire.request import Call

DIALOG = DialogId("d" * 32)
"""The dialog of every view."""

SECRET = "never-to-be-sent"
"""Stands in everything that must not reach the wire: metadata of results and fields that no block has."""

PAYLOADS: Mapping[str, bytes] = MappingProxyType(
    {
        hashlib.sha256(data).hexdigest(): data
        for data in (
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\0\0\0\0",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x40\0\0\0\0\x02\x08\0\0\0\0",
            b"GIF89a\x02\0\x02\0\0\0\0;",
            b"\xff\xd8\xff\xc0\0\x0b\x08\0\x02\0\x02\x01\0\x11\0",
            b"RIFF\x0e\0\0\0WEBPVP8L\x05\0\0\0\x2f\x01\0\0\0",
            b"RIFF\x24\0\0\0WAVEfmt ",
            b"ID3\x04\0\0",
            b"OggS\0\x02",
            b"II*\0\x08\0\0\0",
            b"BM no picture",
        )
    }
)
"""The payloads that `load` has, by digest: images small, wide and unreadable, sounds, and what is neither."""


def load(digest: str) -> bytes:
    """Return a payload by its digest.

    Raises:
        NotFound: There is none.
    """
    try:
        return PAYLOADS[digest]
    except KeyError:
        raise NotFound(digest, what="blob") from None


# --- words ---------------------------------------------------------------------------------------------------------------

_WORDS = st.one_of(
    st.sampled_from(
        ["", " ", "\n", "yes", "a\u2028b", "{{ 7*7 }}", "</from-harness>", "\ufffd", "\U0001f600" * 3, " end "]
    ),
    st.text(max_size=12),
)
_CALL_IDS = st.one_of(
    st.sampled_from(["shell:0", "a", "b", "call_x|fc_y", "toolu_01A", "", "i" * 70, "ä ö", "call_" + "0" * 24]),
    st.text(max_size=5),
)
_NAMES = st.one_of(
    st.sampled_from(["bash", "Read File", "a.b", "", "n" * 90, "9lives", "not_available", "bash_"]), st.text(max_size=6)
)
_MODELS = st.sampled_from(
    ["", "claude-opus-4-6", "claude-opus-4-6-20260101", "gpt-5.2", "gemini-3-pro", "gemini-2.5-flash", "other"]
)
_PROVIDERS = st.sampled_from(["", "anthropic", "openai", "google", "amazon-bedrock"])
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _FLOATS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_OBJECTS = st.dictionaries(st.text(max_size=4), _JSON, max_size=3)
_MALFORMED = st.sampled_from(['{"a":', "", "[1]", "nonsense", '{"b": 1, "a": 2}', '"text"'])

# --- media ---------------------------------------------------------------------------------------------------------------

_KINDS = ("image/png", "image/png", "image/gif", "image/jpeg", "image/webp", "audio/wav", "audio/mpeg", "audio/ogg")
_TYPES = st.sampled_from((*_KINDS, "image/bmp"))
_GOOD = st.sampled_from(list(zip(PAYLOADS.items(), _KINDS, strict=False)))
_MEDIA = st.one_of(
    _GOOD.map(lambda good: Media(media_type=good[1], digest=good[0][0], size=len(good[0][1]))),
    _GOOD.map(lambda good: Media(media_type=good[1], data=good[0][1])),
    st.builds(lambda data, kind: Media(media_type=kind, data=data), st.sampled_from([*PAYLOADS.values(), b""]), _TYPES),
    st.builds(lambda digest, kind: Media(media_type=kind, digest=digest, size=9), st.sampled_from([*PAYLOADS]), _TYPES),
    st.builds(lambda kind, size: Media(media_type=kind, digest="f" * 64, size=size), _TYPES, st.integers(0, 8_000_000)),
    st.builds(lambda url: Media(url=url), st.sampled_from(["https://example.org/a.png", "http://example.org/a.png"])),
)
_IMAGES = st.builds(lambda media: ImageContent(images=tuple(media)), st.lists(_MEDIA, max_size=3))
_SOUNDS = st.builds(lambda media: AudioContent(audio=tuple(media)), st.lists(_MEDIA, max_size=2))

# --- blocks --------------------------------------------------------------------------------------------------------------

_TEXTS = st.builds(
    lambda text, extra: TextContent.from_dict({"content": text, **extra}),
    _WORDS,
    st.sampled_from(
        [{}, {}, {"phase": "commentary"}, {"phase": "odd"}, {"thoughtSignature": "AAAA"}, {"note": SECRET}]
    ),
)
_OPAQUE = st.integers(0, 10**9).map(lambda number: f"{number:012x}")
"""What only its maker can read: base64, and hardly ever the same twice, so that it can be looked for."""
_ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"}
_REASONING = st.sampled_from(
    [
        {},
        {**_ITEM, "note": SECRET},
        {**_ITEM, "id": "rs_2", "summary": [{"type": "summary_text", "text": "so"}], "encrypted_content": "BBBB"},
        {"type": "reasoning", "id": "rs_3", "summary": []},
        {"type": "reasoning", "summary": [], "encrypted_content": "CCCC"},
        {"thoughtSignature": "AAAA"},
        {"thoughtSignature": "not base64!"},
    ]
)
_BY: Mapping[str, st.SearchStrategy[str]] = {"provider": _PROVIDERS, "model": _MODELS}
_THOUGHTS = st.one_of(
    st.builds(ThinkingContent, content=_WORDS, signature=st.just("") | _OPAQUE, **_BY),
    st.builds(ThinkingContent, redacted=_OPAQUE, **_BY),
    st.builds(ThinkingContent, content=_WORDS, artefact=_REASONING, **_BY),
)
"""What one maker leaves in a block: words, signed or not, a block that only it can read, or an item."""
_SIGNED = st.builds(ThinkingContent, content=_WORDS, signature=_OPAQUE, provider=st.just("anthropic"))
_REDACTED = st.builds(ThinkingContent, redacted=_OPAQUE, provider=st.just("anthropic"))
_NATIVE: Mapping[str, tuple[str, st.SearchStrategy[ThinkingContent]]] = {
    "anthropic": ("claude-opus-4-6", _SIGNED | _REDACTED),
    "openai": (
        "gpt-5.2",
        st.integers(0, 10**9).map(
            lambda number: ThinkingContent(provider="openai", artefact={**_ITEM, "id": f"rs_{number}"})
        ),
    ),
    "google": (
        "gemini-3-pro",
        _WORDS.map(lambda text: ThinkingContent(text, provider="google", artefact={"thoughtSignature": "AAAA"})),
    ),
}
"""What each provider's model thinks, whole and signed."""

_CALLS = st.one_of(
    st.builds(
        ToolCallContent,
        id=_CALL_IDS,
        name=_NAMES,
        args=_OBJECTS,
        artefact=st.sampled_from([{}, {"thoughtSignature": "AAAA"}]),
    ),
    st.builds(ToolCallContent, id=_CALL_IDS, name=_NAMES, args=_MALFORMED),
)
_UNKNOWN = st.builds(UnknownContent, type=st.sampled_from(["document", "server_tool_use"]), payload=st.just(SECRET))
_INSIDE = st.lists(st.one_of(_TEXTS, _IMAGES, _SOUNDS, _UNKNOWN), max_size=3).map(tuple)


def _results(ids: st.SearchStrategy[str]) -> st.SearchStrategy[ToolResultContent]:
    return st.builds(
        ToolResultContent,
        id=ids,
        content=st.one_of(_WORDS, _INSIDE),
        is_error=st.booleans(),
        metadata=st.just({"note": SECRET}),
        terminate=st.booleans(),
    )


_USER = st.one_of(_TEXTS, _TEXTS, _IMAGES, _SOUNDS, _UNKNOWN)
_ASSISTANT = st.one_of(_TEXTS, _THOUGHTS, _CALLS)
_ANY = st.one_of(_USER, _ASSISTANT, _results(_CALL_IDS))

# --- exchanges -----------------------------------------------------------------------------------------------------------


def _native(draw: st.DrawFn, seq: int) -> Turn:
    """A response as one provider's model gives it: thinking, words, and calls after them."""
    provider = draw(st.sampled_from(sorted(_NATIVE)))
    model, thoughts = _NATIVE[provider]
    said: list[Content] = [draw(thoughts)] if draw(st.booleans()) else []
    said.append(TextContent(content=draw(_WORDS) or "well"))
    said += draw(st.lists(_CALLS, max_size=2))
    return replace(_turn(draw, Role.ASSISTANT, said, seq), provider=provider, model=model)


def _turn(draw: st.DrawFn, role: Role, contents: list[Content], seq: int, derived: str = "") -> Turn:
    speaker = Speaker.SUMMARY if derived else draw(st.sampled_from([Speaker.HUMAN, Speaker.HARNESS, Speaker.SUMMARY]))
    blocks = tuple(
        Block(content=content, origin=None if derived else Handle(DIALOG, seq, index), derived=derived, speaker=speaker)
        for index, content in enumerate(contents)
    )
    name = draw(st.sampled_from(["", "", "ann", "Ann B.", "\ud800"]))
    # a provider's own blocks go back to it: what is never sent is another one's
    foreign = any(isinstance(content, UnknownContent) for content in contents)
    provider = "elsewhere" if foreign else draw(_PROVIDERS)
    return Turn(role=role, blocks=blocks, name=name, model=draw(_MODELS), provider=provider)


@st.composite
def exchanges(draw: st.DrawFn, seq: int = 0, *, closed: bool = True) -> Exchange:
    """Any exchange, its entries numbered from `seq` on; a closed one has a result for each of its calls, right after them."""
    kind = draw(
        st.sampled_from(["user", "user", "assistant", "native", "native", "native", "system", "derived", "any"])
    )
    if kind == "derived":
        label = draw(st.sampled_from(["record", "summary", "notice"]))
        turn = _turn(draw, Role.USER, [draw(_TEXTS)], seq, label)
        return Exchange.of([turn], derived=label)
    if kind == "any" and not closed:
        role = draw(st.sampled_from(list(Role)))
        turns = [_turn(draw, role, draw(st.lists(_ANY, max_size=4)), seq)]
    elif kind in {"assistant", "native"}:
        said = (
            _native(draw, seq)
            if kind == "native"
            else _turn(draw, Role.ASSISTANT, draw(st.lists(_ASSISTANT, min_size=1, max_size=5)), seq)
        )
        turns = [said]
        made = [block.content.id for block in said.blocks if isinstance(block.content, ToolCallContent)]
        if made:
            turns.append(_turn(draw, Role.TOOL, [draw(_results(st.just(call))) for call in made], seq + 1))
    else:
        role = Role.SYSTEM if kind == "system" else Role.USER
        turns = [_turn(draw, role, draw(st.lists(_USER, min_size=1, max_size=3)), seq)]
    return Exchange.of(turns, runs=[Span(DIALOG, seq, seq + len(turns))])


_KNOWN = [
    json.loads(line)
    for line in """
{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false}
{"type": "object", "properties": {"n": {"type": ["integer", "null"]}, "l": {"type": "array"}}, "required": ["n", "x"]}
{"$defs": {"T": {"properties": {"t": {"$ref": "#/$defs/T"}}}}, "type": "object", "properties": {"t": {"$ref": "#/$defs/T"}}}
{"anyOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"enum": ["x", "", null, 2]}}}]}
{"type": "object", "properties": {"a": {"oneOf": [{"type": "null"}, {"type": "string", "format": "uri"}]}, "b": true}}
{"type": "string"}
{"type": "object", "properties": {"a": {"required": true, "exclusiveMinimum": true, "items": [{"type": "object"}]}}}
""".strip().splitlines()
]
_SCHEMAS = st.sampled_from(_KNOWN) | _OBJECTS | _OBJECTS.map(lambda inside: {"type": "object", "properties": inside})


def tool_specs() -> st.SearchStrategy[ToolSpec]:
    """Any declaration of a tool, its schema sensible or not."""
    return st.builds(ToolSpec, name=_NAMES, description=_WORDS, parameters=_SCHEMAS)


@st.composite
def views(draw: st.DrawFn, *, closed: bool = False, most: int = 6) -> View:
    """Any view of at most `most` exchanges."""
    held: list[Exchange] = []
    for _ in range(draw(st.integers(0, most))):
        seq = sum(len(run) for each in held for run in each.runs)
        held.append(draw(exchanges(seq, closed=closed)))
    sections = draw(st.lists(_USER, max_size=2))
    return View(
        dialog_id=DIALOG,
        at=sum(len(run) for each in held for run in each.runs) - 1,
        system=tuple(
            Block(content=content, origin=Handle(DIALOG, 1000, index)) for index, content in enumerate(sections)
        ),
        tools=tuple(draw(st.lists(tool_specs(), max_size=3))),
        exchanges=tuple(held),
        model=draw(_MODELS),
    )


def closed_views(*, most: int = 6) -> st.SearchStrategy[View]:
    """Any view as a fold gives it: every call with its result."""
    return views(closed=True, most=most)


MODELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "openai-chat": ("gpt-5.2", "other"),
        "openai-responses": ("gpt-5.2", "gpt-5.2-2026-01-01", "o3"),
        "anthropic": ("claude-opus-4-6", "claude-opus-4-6-20260101", "claude-opus-4-8", "claude-3-haiku"),
        "gemini": ("gemini-3-pro", "gemini-2.5-flash"),
        "gemini-interactions": ("gemini-3.6-flash", "gemini-2.5-flash"),
    }
)
"""Models to call, by the profile that fits them."""

_FORMATS = (
    Format({"type": "object", "properties": {"bird": {"type": "string", "minLength": 1}}, "required": ["bird"]}),
    Format(dict[str, int]),
    Format(list[int], strict=False),
)
"""Structures of answers: one that every provider can hold a model to, one that some cannot, one that need not be held to."""


@st.composite
def calls(draw: st.DrawFn, /, profile: str, **fixed: Any) -> Call:  # noqa: ANN401 - the fields of a call
    """Any sensible call of a profile's models; fields given are kept."""
    thinking = draw(st.sampled_from([None, None, {"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}]))
    model = draw(st.sampled_from(MODELS[profile]))
    thinks = thinking is not None and model.startswith("claude-opus-4-6")
    chosen: dict[str, Any] = {
        "model": model,
        "max_tokens": None if thinks else draw(st.sampled_from([None, 16, 1000])),
        "temperature": draw(st.sampled_from([None, 0.0, 1.0])),
        "stream": draw(st.booleans()),
        "tool_choice": draw(
            st.sampled_from(
                ["", "auto", "none"] if thinks else ["", "auto", "none", "required", "bash", "no such tool"]
            )
        ),
        "strict_tools": draw(st.booleans()),
        "format": draw(st.sampled_from([None, None, *_FORMATS])),
        "provider_tools": draw(st.sampled_from([{}, {}, {"web_search": True}, {"web_fetch": True, "bash": True}])),
        "parameters": {"thinking": thinking} if thinks else {},
        "cache": draw(st.booleans()),
        "cache_ttl": draw(st.sampled_from(["5m", "1h"])),
        "then": draw(st.sampled_from([None, "", "go on"])),
    }
    return Call(**(chosen | fixed))
