"""Answers read from the JSON of each API: whole and streamed alike, wherever the stream is cut, and valid at any moment."""

from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import suppress
from json import JSONDecodeError
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidInput, ProviderError
from palaver.messages import (
    AssistantMessage,
    Content,
    ImageContent,
    StopReason,
    TextContent,
    ToolCallContent,
    UnknownContent,
    UserMessage,
    decode,
    encode,
)
from palaver.providers import APIS as ROWS
from palaver.providers import End, Event, TextDelta, collect, profile
from palaver.providers.anthropic.read import AnthropicAnswer
from palaver.providers.client import ClientProvider, transport_error
from palaver.providers.gemini.read import GeminiAnswer
from palaver.providers.gemini_interactions.read import InteractionAnswer
from palaver.providers.openai_chat.read import ChatAnswer
from palaver.providers.openai_responses.read import ResponsesAnswer
from palaver.providers.reader import AnswerReader
from palaver.session import Dialog
from palaver.wire import Request
from tests.providers.api_answers import STREAMS, WHOLES, Json, contents, cutting
from tests.providers.asking import answer as answer_of
from tests.providers.asking import ask
from tests.wire.pictures import png
from tests.wire.scenes import BASH, MODELS, Scene

READERS: Mapping[str, type[AnswerReader]] = {
    "openai-chat": ChatAnswer,
    "openai-responses": ResponsesAnswer,
    "anthropic": AnthropicAnswer,
    "gemini": GeminiAnswer,
    "gemini-interactions": InteractionAnswer,
}
MAKERS = {name: row.maker for name, row in ROWS.items()}
APIS = pytest.mark.parametrize("api", READERS)
HALF: dict[str, Any] = {"thought": None, "text": "Half", "calls": [], "usage": (1, 2, 3)}


def reader(api: str) -> AnswerReader:
    """Begin to read an answer."""
    return READERS[api](ask(profile=api), MAKERS[api])


def whole(api: str, data: Json) -> AssistantMessage:
    """Read a whole answer."""
    reading = reader(api)
    list(reading.whole(data))
    return reading.end().message


def streamed(api: str, pieces: Iterable[Json]) -> AssistantMessage:
    """Read a stream."""
    reading = reader(api)
    for piece in pieces:
        list(reading.piece(piece))
    return reading.end().message


def said(message: AssistantMessage) -> Json:
    """Return all of a message but its id and time."""
    return {key: value for key, value in message.to_dict().items() if key not in {"id", "timestamp"}}


@given(st.sampled_from(tuple(READERS)), contents(), cutting())
def test_any_cut_is_the_same_message(api: str, answer: Json, cut: Any) -> None:  # noqa: ANN401 - a way to cut
    """Blocks, signatures, ids, usage and stop reason do not depend on how the answer travelled."""
    assert said(streamed(api, STREAMS[api](answer, cut))) == said(whole(api, WHOLES[api](answer)))


@given(st.sampled_from(tuple(READERS)), contents(), cutting(), st.data())
def test_any_prefix_is_valid_and_broken(api: str, answer: Json, cut: Any, data: st.DataObject) -> None:  # noqa: ANN401
    """Wherever the connection breaks, the part that arrived can be stored, and is never taken for the whole."""
    pieces = list(STREAMS[api](answer, cut))
    reading = reader(api)
    for piece in pieces[: data.draw(st.integers(0, len(pieces) - 1))]:
        list(reading.piece(piece))
    partial = reading.assembly.partial
    assert decode(encode(partial)[0]) == partial
    if not reading.complete:
        with pytest.raises(ProviderError) as caught:
            reading.end()
        assert (caught.value.kind, caught.value.partial.contents) == ("broken", partial.contents)
        assert caught.value.partial.stop_reason is StopReason.ERROR


@given(st.sampled_from(tuple(READERS)), contents())
def test_answer_is_sent_back_as_it_came(api: str, answer: Json) -> None:
    """The next request has every block with all that its provider requires."""
    model = MODELS[api]
    reading = READERS[api](Scene(tools=[BASH]).user("x").request(api), MAKERS[api])
    list(reading.whole(WHOLES[api](answer)))
    dialog = Dialog(owner="asker")
    for message in (UserMessage(content="x"), reading.end().message, UserMessage(content="go on")):
        dialog.append(message)
    sent = dialog.request(profile(api, model), model).data.decode()
    assert all(call["id"] in sent for call in answer["calls"])
    followed = (answer["text"] and answer["text"].strip()) or answer["calls"]
    if answer["thought"] and answer["thought"].strip() and followed and api in {"anthropic", "openai-responses"}:
        assert ("c2lnbmVk" in sent) == ("rs_1" not in sent)
        assert {"anthropic": "cmVkYWN0ZWQ=", "openai-responses": "c2VjcmV0"}[api] in sent
    if api == "gemini" and answer["calls"]:
        assert "c2lnbmVkIHRvbw==" in sent
    if api == "gemini-interactions" and answer["thought"]:
        assert "c2lnbmVk" in sent


KEYS = (
    "choices delta message content tool_calls function index type item output response content_block parts candidates steps step"
    " summary interaction event_type status errors"
)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
KEY = st.sampled_from([*KEYS.split(), "text", "usage", "error", "functionCall", "arguments", "input", "id"])
ODD = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=4), max_leaves=12
)
HEADS = st.sampled_from(
    [
        "choices",
        "type",
        "response",
        "delta",
        "candidates",
        "item",
        "index",
        "steps",
        "step",
        "interaction",
        "event_type",
    ]
)


@given(st.sampled_from(tuple(READERS)), st.lists(st.dictionaries(HEADS, ODD), max_size=3))
def test_nonsense_raises_only_provider_errors(api: str, pieces: list[Json]) -> None:
    """Any JSON object, however wrong its shape."""
    with suppress(ProviderError):
        streamed(api, pieces)
    for piece in pieces:
        with suppress(ProviderError):
            whole(api, piece)


def test_unknown_part_is_kept() -> None:
    """Also one with the type of one of our blocks."""
    odd: list[Json] = [{}, {"type": 7}, {"type": "text"}, {"type": "thinking", "thinking": 1}, {"changes": []}]
    for item in odd:
        message = whole("openai-responses", {"status": "completed", "output": [item]})
        assert len(message.contents) == 1
        assert decode(encode(message)[0]) == message


def chat(message: Json, reason: str = "stop") -> AssistantMessage:
    """Read a chat completion of one message."""
    return whole("openai-chat", {"id": "c", "choices": [{"message": message, "finish_reason": reason}]})


def call(name: str, arguments: object, call_id: str = "c1") -> Json:
    """Return a call of a chat completion."""
    return {"id": call_id, "function": {"name": name, "arguments": arguments}}


def test_tool_names_are_mapped_back() -> None:
    """A tool whose name the provider does not accept is called by its own name."""
    spec = BASH.model_copy(update={"name": "files.edit"})
    request = Scene(tools=[spec]).user("x").request("openai-chat")
    sent = next(name for name, ours in request.tool_names.items() if ours == "files.edit")
    assert sent != "files.edit"
    reading = ChatAnswer(request, "openai")
    list(reading.whole({"choices": [{"message": {"tool_calls": [call(sent, "{}")]}, "finish_reason": "tool_calls"}]}))
    assert reading.end().message.tool_calls()[0].name == "files.edit"


def responses(output: list[Json], **more: object) -> Json:
    """Return a response with these items."""
    return {"status": "completed", "output": output, **more}


TEXT = [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]
STOP, LENGTH = StopReason.STOP, StopReason.LENGTH
WORDS: dict[str, dict[str, StopReason | None]] = {
    "openai-chat": {"stop": STOP, "length": LENGTH, "content_filter": StopReason.CONTENT_FILTER, "eos": None},
    "anthropic": {
        **dict.fromkeys(("end_turn", "stop_sequence"), STOP),
        "max_tokens": LENGTH,
        "pause_turn": StopReason.PAUSE,
        "model_context_window_exceeded": StopReason.OVERFLOW,
        "refusal": StopReason.REFUSAL,
    },
}


def test_stop_reason() -> None:
    """The provider's own word stays in the metadata; a model that calls a tool stops for it."""
    for api, words in WORDS.items():
        for word, expected in words.items():
            choice = {"choices": [{"message": {"content": "x"}, "finish_reason": word}]}
            message = whole(api, choice | {"content": [{"type": "text", "text": "a"}], "stop_reason": word})
            assert (message.stop_reason, message.metadata["stop_reason"]) == (expected, word)
    for word, expected in (("stop", StopReason.TOOL_CALLS), ("length", LENGTH)):
        assert chat({"tool_calls": [call("bash", "{}")]}, word).stop_reason is expected
    cut = responses(TEXT) | {"status": "incomplete"}
    filtered = cut | {"incomplete_details": {"reason": "content_filter"}}
    for data, expected in ((cut, LENGTH), (filtered, StopReason.CONTENT_FILTER)):
        assert whole("openai-responses", data).stop_reason is expected


REFUSED = TextContent.from_dict({"content": "I will not.", "part_type": "refusal"})
REFUSAL = {"type": "refusal", "refusal": "I will not."}
CITATION = {"type": "char_location", "cited_text": "a"}
SERVER_TOOL = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
MADE = [call("bash", '{"a"'), call("bash", ": 1}"), call("ba", "", "c2"), call("sh", "{}", "c2")]
PIECES: list[Json] = [
    *({"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in MADE),
    {"choices": [{"delta": {}, "finish_reason": "stop"}]},
]
BLOCKS: dict[str, tuple[AssistantMessage, tuple[Content, ...]]] = {
    "refusal, chat": (chat({"content": None, "refusal": "I will not."}), (REFUSED,)),
    "refusal, responses": (
        whole("openai-responses", responses([{"type": "message", "content": [REFUSAL]}])),
        (REFUSED,),
    ),
    "text in parts, Mistral": (
        chat({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        (TextContent("ab"),),
    ),
    "argument objects, Ollama": (
        chat({"tool_calls": [call("bash", {"a": 1})]}),
        (ToolCallContent("c1", "bash", args={"a": 1}),),
    ),
    "malformed arguments": (
        chat({"tool_calls": [call("bash", '{"command": "ls')]}),
        (ToolCallContent("c1", "bash", args='{"command": "ls'),),
    ),
    "calls without index, name in pieces": (
        streamed("openai-chat", PIECES),
        (ToolCallContent("c1", "bash", args='{"a": 1}'), ToolCallContent("c2", "bash")),
    ),
}


def test_blocks_of_special_answers() -> None:
    """Refusals, reasoning items, and the spellings of other servers."""
    for message, expected in BLOCKS.values():
        assert message.contents == expected
        if expected == (REFUSED,):
            assert message.stop_reason is StopReason.REFUSAL


def test_anthropic_block_is_whole_in_a_stream() -> None:
    """Blocks of its own tools, and citations."""
    cases: list[tuple[Json, list[Json], Json]] = [
        (
            SERVER_TOOL | {"input": {}},
            [{"type": "input_json_delta", "partial_json": piece} for piece in ('{"query":', '"x"}')],
            SERVER_TOOL,
        ),
        (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": "a"}, {"type": "citations_delta", "citation": CITATION}],
            {"type": "text", "text": "a", "citations": [CITATION]},
        ),
    ]
    for start, deltas, block in cases:
        message = whole("anthropic", {"content": [block], "stop_reason": "end_turn"})
        pieces: list[Json] = [
            {"type": "content_block_start", "index": 0, "content_block": start},
            *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        ]
        assert streamed("anthropic", pieces).contents == message.contents
        (kept,) = message.contents
        if block is SERVER_TOOL:
            assert isinstance(kept, UnknownContent)
            assert {"id": "srv_1", "name": "web_search", "input": {"query": "x"}}.items() <= kept.model_extra.items()
        else:
            assert kept == TextContent.from_dict({"content": "a", "citations": [CITATION]})


def test_gemini_images_and_blocked_prompts() -> None:
    """An image is an image block; a blocked prompt is an empty answer with the reason; a call without an id gets one."""
    data = {"inlineData": {"mimeType": "image/png", "data": b64encode(png(1, 1)).decode()}}
    nameless = {"functionCall": {"name": "bash"}}
    message = whole("gemini", {"candidates": [{"content": {"parts": [data, nameless]}, "finishReason": "STOP"}]})
    assert isinstance(message.contents[0], ImageContent)
    assert message.tool_calls()[0].id.startswith("call_")
    blocked = whole("gemini", {"promptFeedback": {"blockReason": "SAFETY"}})
    assert (blocked.contents, blocked.stop_reason) == ((), StopReason.CONTENT_FILTER)
    assert blocked.metadata["block_reason"] == "SAFETY"


FAILED = {"status": "failed", "error": {"code": "server_error", "message": "x"}}
TOO_LONG = {"code": "context_length_exceeded", "message": "Your input exceeds the context window"}


def test_failure_inside_an_answer() -> None:
    """The error has what arrived before it."""
    cases: list[tuple[str, Json, str]] = [
        ("openai-chat", {"error": {"message": "Overloaded", "code": 503}}, "down"),
        ("openai-responses", {"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}, "rate"),
        ("openai-responses", {"type": "response.failed", "response": FAILED}, "down"),
        ("openai-responses", {"type": "error", "error": TOO_LONG}, "overflow"),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "down"),
        ("gemini", {"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}, "down"),
        (
            "gemini-interactions",
            {"event_type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow"}},
            "rate",
        ),
        ("gemini-interactions", {"event_type": "interaction.completed", "interaction": {"status": "failed"}}, "down"),
    ]
    for api, data, kind in cases:
        reading = reader(api)
        list(reading.piece(next(iter(STREAMS[api](HALF, lambda text: [text])))))
        with pytest.raises(ProviderError) as caught:
            list(reading.piece(data))
        assert (caught.value.kind, caught.value.model) == (kind, MODELS[api])
        assert (caught.value.partial is None) == (not reading.assembly.partial.contents)


def test_served_model_is_kept_in_the_metadata() -> None:
    """The message has the name that was asked for, which the next request compares."""
    for api in READERS:
        message = whole(api, WHOLES[api](HALF))
        assert message.model == MODELS[api]
        assert message.metadata["served_model"] == "m-2026"
        assert message.response_id
        assert (message.usage.input_tokens, message.usage.cache_read_tokens, message.usage.output_tokens) == (3, 2, 3)


async def _events(*events: Event) -> AsyncIterator[Event]:
    for event in events:
        yield event


def test_collect_returns_the_message_of_the_end() -> None:
    """Without an end it raises, with what arrived."""
    message = AssistantMessage(content="Hello")
    assert anyio.run(collect, _events(TextDelta("Hello"), End(message))) is message
    with pytest.raises(ProviderError) as caught:
        anyio.run(collect, _events(TextDelta("Hel")))
    assert (caught.value.kind, caught.value.partial.content) == ("broken", "Hel")


# --- the common part of the adapters: which exceptions are failures of a call, and which are defects ------------------------

CHUNK = {"id": "c", "choices": [{"delta": {"content": "Half"}}]}
LAST = {"id": "c", "choices": [{"delta": {}, "finish_reason": "stop"}]}
RESET = ConnectionResetError("reset")


class Line(ClientProvider[object]):
    """A provider that sends these pieces, and raises those that are exceptions."""

    def __init__(self, *pieces: object) -> None:
        """Set the pieces."""
        super().__init__("line", "openai-chat", None)
        self.pieces = pieces

    def _make(self) -> object:
        return object()

    async def _close(self, client: object) -> None:
        """Do nothing."""

    def _reader(self, request: Request) -> AnswerReader:
        return ChatAnswer(request, self.name)

    async def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        del request
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def _mapped(self, error: Exception, model: str) -> None:
        del error, model


def test_broken_line_is_an_error_with_what_arrived() -> None:
    """Before anything arrived, the provider is down; afterwards, its answer is broken."""
    cases: list[tuple[list[object], str, str | None]] = [
        ([RESET], "down", None),
        ([CHUNK, RESET], "broken", "Half"),
        ([CHUNK], "broken", "Half"),
        ([CHUNK, JSONDecodeError("cut", '{"a":', 5)], "broken", "Half"),
        ([None], "broken", ""),
        ([["a"]], "broken", ""),
    ]
    for pieces, kind, partial in cases:
        with pytest.raises(ProviderError) as caught:
            answer_of(Line(*pieces), ask(stream=True))
        assert (caught.value.kind, caught.value.provider) == (kind, "line")
        found = caught.value.partial
        assert (found and found.text_content()) == partial
        assert found is None or found.error


def test_line_may_break_after_the_stop_reason() -> None:
    """Nothing of the answer is missing then."""
    assert answer_of(Line(CHUNK, LAST, RESET), ask(stream=True)).content == "Half"


def test_defect_is_not_a_failure_of_the_provider() -> None:
    """It is raised unchanged."""
    cases: list[Exception] = [TypeError("a defect"), InvalidInput("ours"), KeyError("x")]
    for error in cases:
        with pytest.raises(type(error)):
            answer_of(Line(CHUNK, error), ask(stream=True))
        assert transport_error(error, "p", "m") is None
