"""Any message: hypothesis strategies for everything that ``palaver.messages`` can hold.

``dirty_*`` strategies give what may arrive from outside, the others what is there once it has arrived. A strategy is made once: those of whole
messages hold hundreds of others.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

from palaver.messages import (
    AssistantMessage,
    AudioContent,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Content,
    CustomMessage,
    ImageContent,
    Media,
    Message,
    Role,
    Speaker,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    TokenLogprob,
    ToolCallContent,
    ToolKind,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    Usage,
    UserMessage,
)
from palaver.messages.forms import CONVENIENT
from palaver.messages.media import sniff

_FINITE = st.floats(allow_nan=False, allow_infinity=False)
_SMALL = st.integers(-(2**80), 2**80)
_IMAGE_HEADS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"RIFF\0\0\0\0WEBP", b"II*\0", b"MM\0*")
_SOUND_HEADS = (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"OggS", b"fLaC", b"RIFF\0\0\0\0WAVE", b"?")


@cache
def clean_texts(max_size: int | None = 40) -> st.SearchStrategy[str]:
    """Return text of any script, without NUL and lone surrogates."""
    return st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=max_size)


@cache
def dirty_texts(max_size: int | None = 40) -> st.SearchStrategy[str]:
    """Return any text that Python can hold: NUL and lone surrogates often."""
    spoiled = st.characters(categories=["Cs"]) | st.just("\0")
    return st.text(st.characters(exclude_categories=()) | spoiled, max_size=max_size)


def _json(
    texts: st.SearchStrategy[str], scalars: st.SearchStrategy[Any], keys: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    nested: st.SearchStrategy[Any] = st.recursive(
        scalars | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=8,
    )
    return nested


@cache
def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """Return JSON objects that need no normalising."""
    texts = clean_texts(12)
    value = _json(texts, st.none() | st.booleans() | _SMALL | _FINITE, texts)
    return st.dictionaries(texts, value, max_size=3)


@cache
def dirty_json() -> st.SearchStrategy[Any]:
    """Return what programs take for JSON: numbers that are not finite, keys of any type, bytes, sets, dirty strings."""
    texts = dirty_texts(12)
    scalars: st.SearchStrategy[Any] = (
        st.none() | st.booleans() | _SMALL | st.floats() | st.binary(max_size=4) | st.sets(st.integers(), max_size=3)
    )
    return _json(texts, scalars, texts | st.integers() | st.booleans() | st.none())


@cache
def _own_keys(kind: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    """Return fields that a class does not know, seldom."""
    taken = {*dir(kind), *kind.model_fields, *CONVENIENT}
    keys = clean_texts(8).filter(lambda key: key not in taken)
    return st.one_of(
        st.just({}), st.just({}), st.dictionaries(keys, _json(clean_texts(8), st.booleans(), keys), max_size=2)
    )


def _with_own(made: type[BaseModel], *always: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Build a value of some of its fields, those that it always has, and fields of a later version."""
    required = {name: fields.pop(name) for name in always}
    known = st.fixed_dictionaries(required, optional=fields)
    return st.builds(lambda own, later: _extended(made(**own), later), known, _own_keys(made))


def _extended(value: Any, later: dict[str, Any]) -> Any:  # noqa: ANN401 - a value and its copy
    return value.from_dict({**dict(value), **later}) if later else value


@cache
def images() -> st.SearchStrategy[Media]:
    """Return images: bytes of every known type, references without bytes, addresses."""
    payloads = st.builds(
        lambda head, rest: Media.from_bytes(head + rest), st.sampled_from(_IMAGE_HEADS), st.binary(max_size=8)
    )
    addresses = clean_texts(12).map(lambda path: Media.from_text(f"https://example.org/{path}"))
    return payloads | payloads.map(_without_bytes) | addresses


@cache
def sounds() -> st.SearchStrategy[Media]:
    """Return sounds: bytes of every known type and of none, and references without bytes."""
    payloads = st.builds(
        lambda head, rest: Media.from_bytes(head + rest, "audio"), st.sampled_from(_SOUND_HEADS), st.binary(max_size=8)
    )
    return payloads | payloads.map(_without_bytes)


def _without_bytes(media: Media) -> Media:
    assert media.data is not None
    assert sniff(media.data, "image") or media.media_type.startswith("audio/")
    return Media(media_type=media.media_type, digest=media.digest, size=media.size)


@cache
def tool_calls() -> st.SearchStrategy[ToolCallContent]:
    """Return tool calls, with arguments as mappings, as text, and as text that is malformed."""
    words = clean_texts(12)
    return _with_own(
        ToolCallContent,
        id=words,
        name=words,
        kind=st.sampled_from(ToolKind) | st.none(),
        args=json_objects()
        | words
        | st.sampled_from(['{"b":1,"a":[]}', '{ "a": 1 }', "{bad", "[1]", "", "{}", '{"a":1,"a":2}']),
        artefact=json_objects(),
    )


@cache
def _parts() -> tuple[st.SearchStrategy[Any], ...]:
    """Return the blocks that a tool result may hold: text, media, and types that no version knows yet."""
    types = clean_texts(12).map(lambda name: f"later_{name}")
    return (
        _with_own(TextContent, content=clean_texts()),
        _with_own(ImageContent, images=st.lists(images(), max_size=2)),
        _with_own(AudioContent, audio=st.lists(sounds(), max_size=2)),
        st.builds(lambda kind, later: UnknownContent(type=kind, **later), types, _own_keys(UnknownContent)),
    )


@cache
def blocks() -> st.SearchStrategy[Content]:
    """Return blocks of every type."""
    words = clean_texts(12)
    own = dict.fromkeys(("content", "signature", "redacted", "provider", "model"), words)
    thoughts = _with_own(ThinkingContent, **own, artefact=json_objects())
    results = _with_own(
        ToolResultContent,
        id=words,
        content=clean_texts() | st.lists(st.one_of(_parts()), max_size=2),
        is_error=st.booleans(),
        metadata=json_objects(),
        terminate=st.booleans(),
        name=words,
    )
    return st.one_of(*_parts(), thoughts, tool_calls(), results)


@cache
def usages() -> st.SearchStrategy[Usage]:
    """Return usage records in several vocabularies, and in none."""
    count = st.integers(0, 10**7) | st.none()
    cached = st.none() | st.fixed_dictionaries({"cached_tokens": count})
    shapes: list[dict[str, st.SearchStrategy[Any]]] = [
        dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), count)
        | {"prompt_tokens_details": cached},
        dict.fromkeys(
            ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"), count
        ),
        dict.fromkeys(("input_tokens", "output_tokens"), count) | {"input_tokens_details": cached},
        dict.fromkeys(("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"), count),
        dict.fromkeys(("input", "output", "cacheRead"), count) | {"cost": st.fixed_dictionaries({"total": _FINITE})},
    ]
    known = st.one_of([st.fixed_dictionaries({}, optional=shape) for shape in shapes])
    return (known | json_objects()).map(Usage)


_CLASSES: dict[type[Message], dict[str, st.SearchStrategy[Any]]] = {
    SystemMessage: {},
    UserMessage: {},
    AssistantMessage: {"role": st.sampled_from([Role.ASSISTANT, Role.TOOL_CALL])},
    ToolMessage: {},
    CustomMessage: {"custom_type": clean_texts(12), "in_context": st.booleans()},
    BranchSummaryMessage: {"summary": clean_texts(), "from_id": st.none() | clean_texts(12)},
    CompactionSummaryMessage: {"summary": clean_texts(), "tokens_before": st.integers(0, 10**7)},
}


def messages(*classes: type[Message]) -> st.SearchStrategy[Message]:
    """Return messages of the classes, by default of the whole family, with any of their fields."""
    return st.one_of([_messages_of(kind) for kind in classes or tuple(_CLASSES)])


@cache
def _messages_of(kind: type[Message]) -> st.SearchStrategy[Message]:
    words = clean_texts(12)
    common: dict[str, st.SearchStrategy[Any]] = {
        "contents": st.lists(blocks(), max_size=3),
        "id": words.filter(bool),
        "timestamp": st.floats(0, 1e12),
        "name": words,
        "metadata": json_objects(),
        "model": words,
        "usage": usages(),
        "parsed": json_objects(),
        "logprobs": st.lists(
            st.floats(max_value=0, allow_nan=False).map(lambda value: TokenLogprob(logprob=value)), max_size=2
        ),
        "vectors": st.lists(_FINITE, max_size=2),
        "stop_reason": st.sampled_from(StopReason),
        "error": words,
        "response_id": words,
        "fragment": st.booleans(),
        "speaker": st.sampled_from(Speaker),
    }
    return _with_own(kind, "contents", **common, **_CLASSES[kind])


@cache
def chat_dicts() -> st.SearchStrategy[dict[str, Any]]:
    """Return messages as chat completions spells them, keys of other vendors among them."""
    texts = dirty_texts(12)
    part = st.fixed_dictionaries(
        {"type": st.just("text"), "text": texts}, optional={"cache_control": st.just({"type": "ephemeral"})}
    )
    call = st.fixed_dictionaries(
        {
            "id": texts,
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": texts, "arguments": texts | st.just('{"a": 1}')}),
        }
    )
    return st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"])},
        optional={
            "content": st.none() | texts | st.lists(part, max_size=2),
            "name": texts,
            "tool_calls": st.none() | st.lists(call, max_size=2),
            "tool_call_id": texts,
            "refusal": st.none() | texts,
            "id": texts,
            "timestamp": texts,
            "error": st.booleans(),
            "metadata": dirty_json(),
            "cost": st.floats(),
        },
    )
