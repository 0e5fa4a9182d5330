"""Answers read from the JSON of each API: whole and streamed alike, wherever the stream is cut, and valid at any moment."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import BrokenAnswer, ContextOverflow, ProviderDown, ProviderError, RateLimited
from palaver.messages import (
    APITypes,
    AssistantMessage,
    ImageContent,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    UnknownContent,
    UserMessage,
    decode,
    encode,
)
from palaver.models.answers import AnswerReader, AnthropicAnswer, ChatAnswer, GeminiAnswer, ResponsesAnswer
from palaver.session import Dialog
from palaver.wire import profile
from tests.models.asking import ask
from tests.models.cut_answers import STREAMS, WHOLES, Json, contents, cutting
from tests.wire.check.pictures import png
from tests.wire.scenes import BASH, MODELS, Scene

READERS: Mapping[str, type[AnswerReader]] = {
    "openai-chat": ChatAnswer,
    "openai-responses": ResponsesAnswer,
    "anthropic": AnthropicAnswer,
    "gemini": GeminiAnswer,
}
MAKERS = {"openai-chat": "openai", "openai-responses": "openai", "anthropic": "anthropic", "gemini": "google"}
APIS = pytest.mark.parametrize("api", READERS)


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
    """Give all of a message but its id and time."""
    return {key: value for key, value in message.to_dict().items() if key not in {"id", "timestamp"}}


@APIS
@given(contents(), cutting())
def test_any_cut_of_any_answer_is_the_same_message(api: str, answer: Json, cut: Any) -> None:  # noqa: ANN401 - a way to cut
    """Blocks, signatures, ids, usage and stop reason: nothing depends on how the answer travelled."""
    assert said(streamed(api, STREAMS[api](answer, cut))) == said(whole(api, WHOLES[api](answer)))


@APIS
@given(contents(), cutting(), st.data())
def test_any_prefix_of_a_stream_is_a_valid_message_and_no_whole_answer(
    api: str,
    answer: Json,
    cut: Any,  # noqa: ANN401 - a way to cut
    data: st.DataObject,
) -> None:
    """Wherever the connection breaks, what came can be stored, and the answer is broken, never taken for whole."""
    pieces = list(STREAMS[api](answer, cut))
    reading = reader(api)
    for piece in pieces[: data.draw(st.integers(0, len(pieces) - 1))]:
        list(reading.piece(piece))
    partial = reading.assembly.partial
    assert decode(encode(partial)[0]) == partial
    if not reading.told:
        with pytest.raises(BrokenAnswer) as caught:
            reading.end()
        assert caught.value.partial.contents == partial.contents
        assert caught.value.partial.stop_reason is StopReason.ERROR


@APIS
@given(contents())
def test_an_answer_is_sent_back_as_it_came(api: str, answer: Json) -> None:
    """In the next request the blocks of the answer are there with all that their provider wants back."""
    model = MODELS[api]
    reading = READERS[api](Scene(tools=[BASH]).user("x").request(api), MAKERS[api])
    list(reading.whole(WHOLES[api](answer)))
    message = reading.end().message
    dialog = Dialog(owner="asker")
    dialog.append(UserMessage(content="x"))
    dialog.append(message)
    dialog.append(UserMessage(content="go on"))
    request = dialog.request(profile(api, model), model)
    sent = request.data.decode()
    for call in answer["calls"]:
        assert call["id"] in sent
    led_to = (answer["text"] and answer["text"].strip()) or answer["calls"]
    if answer["thought"] and answer["thought"].strip() and led_to and api in {"anthropic", "openai-responses"}:
        assert ("c2lnbmVk" in sent) == ("rs_1" not in sent)
        assert {"anthropic": "cmVkYWN0ZWQ=", "openai-responses": "c2VjcmV0"}[api] in sent
    if api == "gemini" and answer["calls"]:
        assert "c2lnbmVkIHRvbw==" in sent


KEYS = [
    "choices",
    "delta",
    "message",
    "content",
    "tool_calls",
    "function",
    "index",
    "type",
    "item",
    "output",
    "response",
    "content_block",
    "parts",
    "candidates",
    "text",
    "usage",
    "error",
    "functionCall",
    "arguments",
    "input",
    "id",
]
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@APIS
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["choices", "type", "response", "delta", "candidates", "item", "index"]), ODD),
        max_size=3,
    )
)
def test_nonsense_is_a_typed_error_or_nothing(api: str, pieces: list[Json]) -> None:
    """No JSON object, however wrong its shape, raises anything but a ProviderError."""
    with suppress(ProviderError):
        streamed(api, pieces)
    for piece in pieces:
        with suppress(ProviderError):
            whole(api, piece)


@pytest.mark.parametrize(
    "item", [{}, {"type": 7}, {"type": ""}, {"type": "text"}, {"type": "thinking", "thinking": 1}, {"changes": []}]
)
def test_a_part_of_no_known_shape_is_kept(item: Json) -> None:
    """Also one that calls itself by the name of a block of ours."""
    message = whole("openai-responses", {"status": "completed", "output": [item]})
    assert len(message.contents) == 1
    assert decode(encode(message)[0]) == message


def chat(message: Json, reason: str = "stop", **more: Any) -> AssistantMessage:  # noqa: ANN401 - fields of an answer
    """Read a chat completion of one message."""
    return whole("openai-chat", {"id": "c", "choices": [{"message": message, "finish_reason": reason}], **more})


def test_names_are_ours_again() -> None:
    """A tool that had to be spelt otherwise on the wire is called by its own name."""
    spec = BASH.model_copy(update={"name": "files.edit"})
    request = Scene(tools=[spec]).user("x").request("openai-chat")
    wire = next(name for name, ours in request.tool_names.items() if ours == "files.edit")
    assert wire != "files.edit"
    reading = ChatAnswer(request, "openai")
    call = {"id": "c1", "type": "function", "function": {"name": wire, "arguments": "{}"}}
    list(reading.whole({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}))
    assert reading.end().message.tool_calls()[0].name == "files.edit"


def test_malformed_arguments_are_kept_with_the_reason() -> None:
    """They are the model's words; never an empty object."""
    function = {"name": "bash", "arguments": '{"command": "ls'}
    call = chat({"tool_calls": [{"id": "c1", "function": function}]}).tool_calls()[0]
    assert (call.raw_args, call.args) == ('{"command": "ls', {})
    assert call.error


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", StopReason.STOP),
        ("length", StopReason.LENGTH),
        ("content_filter", StopReason.CONTENT_FILTER),
        ("eos", None),
    ],
)
def test_chat_stop_reasons(reason: str, expected: StopReason | None) -> None:
    """In our words, and the provider's own word beside them."""
    message = chat({"content": "x"}, reason)
    assert (message.stop_reason, message.metadata["stop_reason"]) == (expected, reason)


def test_a_model_that_calls_stops_for_its_calls() -> None:
    """Whatever the server says: some say `stop` (Gemini and Ollama always do)."""
    message = chat({"tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": "{}"}}]}, "stop")
    assert message.stop_reason is StopReason.TOOL_CALLS
    cut = chat({"tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": "{"}}]}, "length")
    assert cut.stop_reason is StopReason.LENGTH


def test_a_refusal_is_text_that_is_marked() -> None:
    """It can be shown and sent back; the stop reason tells that it is no answer."""
    for message in (
        chat({"content": None, "refusal": "I will not."}),
        whole(
            "openai-responses",
            {
                "status": "completed",
                "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}],
            },
        ),
    ):
        assert message.contents == (TextContent.from_dict({"content": "I will not.", "part_type": "refusal"}),)
        assert message.stop_reason is StopReason.ERROR


def test_the_spellings_of_other_servers_are_read() -> None:
    """Mistral's parts, Ollama's argument objects, the old function call, a name in every chunk, calls without numbers."""
    assert chat({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}).content == "ab"
    call = chat({"tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": {"a": 1}}}]}).tool_calls()[0]
    assert call.args == {"a": 1}
    assert chat({"function_call": {"name": "bash", "arguments": "{}"}}).tool_calls()[0].name == "bash"
    chunks = [
        {"tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": '{"a"'}}]},
        {"tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": ": 1}"}}]},
        {"tool_calls": [{"id": "c2", "function": {"name": "ba", "arguments": ""}}]},
        {"tool_calls": [{"id": "c2", "function": {"name": "sh", "arguments": "{}"}}]},
    ]
    pieces = [{"choices": [{"delta": chunk}]} for chunk in chunks] + [
        {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    ]
    assert [(made.name, made.args) for made in streamed("openai-chat", pieces).tool_calls()] == [
        ("bash", {"a": 1}),
        ("bash", {}),
    ]


def test_thinking_blocks_that_litellm_passes_on_are_read_with_their_signatures() -> None:
    """In their order, redacted ones among them."""
    blocks = [
        {"type": "thinking", "thinking": "a", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "thinking", "thinking": "b", "signature": "s2"},
    ]
    message = chat({"content": "x", "thinking_blocks": blocks, "reasoning_content": "ab"})
    assert [(block.content, block.signature, block.redacted) for block in message.thinking()] == [
        ("a", "s1", ""),
        ("", "", "d"),
        ("b", "s2", ""),
    ]
    assert {block.provider for block in message.thinking()} == {"anthropic"}


def test_a_reasoning_item_is_kept_whole() -> None:
    """Its id and encrypted content go back; its status may not."""
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x", "status": "completed"}
    data = {
        "status": "completed",
        "output": [item, {"type": "message", "content": [{"type": "output_text", "text": "a"}]}],
    }
    message = whole("openai-responses", data)
    assert message.contents[0] == ThinkingContent(
        provider="openai", model="gpt-5.2", artefact={key: value for key, value in item.items() if key != "status"}
    )
    assert message.api_type is APITypes.RESPONSE


def test_the_phase_of_a_text_is_kept() -> None:
    """OpenAI wants it back: a commentary is not the final answer."""
    part = {"type": "output_text", "text": "a", "annotations": []}
    data = {"status": "completed", "output": [{"type": "message", "phase": "commentary", "content": [part]}]}
    assert whole("openai-responses", data).contents == (TextContent.from_dict({"content": "a", "phase": "commentary"}),)


@pytest.mark.parametrize(
    ("status", "details", "expected"),
    [
        ("incomplete", {"reason": "max_output_tokens"}, StopReason.LENGTH),
        ("incomplete", {"reason": "content_filter"}, StopReason.CONTENT_FILTER),
        ("incomplete", None, StopReason.LENGTH),
        ("completed", None, StopReason.STOP),
    ],
)
def test_responses_stop_reasons(status: str, details: Json | None, expected: StopReason) -> None:
    """The API tells only when it was cut off."""
    output = [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]
    assert (
        whole("openai-responses", {"status": status, "incomplete_details": details, "output": output}).stop_reason
        is expected
    )


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("end_turn", StopReason.STOP),
        ("stop_sequence", StopReason.STOP),
        ("pause_turn", StopReason.STOP),
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.LENGTH),
        ("refusal", StopReason.ERROR),
    ],
)
def test_anthropic_stop_reasons(word: str, expected: StopReason) -> None:
    """The word itself stays in the metadata: a paused turn is asked to go on, a refused one is not."""
    message = whole("anthropic", {"content": [{"type": "text", "text": "a"}], "stop_reason": word})
    assert (message.stop_reason, message.metadata["stop_reason"]) == (expected, word)


def test_blocks_of_a_provider_s_own_tools_are_kept_whole() -> None:
    """Streamed input is put together; what palaver does not read is not lost."""
    block = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    data = {"content": [block, {"type": "text", "text": "a"}], "stop_reason": "end_turn"}
    message = whole("anthropic", data)
    kept = message.contents[0]
    assert isinstance(kept, UnknownContent)
    assert {"id": "srv_1", "name": "web_search", "input": {"query": "x"}}.items() <= kept.model_extra.items()
    pieces: list[Json] = [
        {"type": "content_block_start", "index": 0, "content_block": block | {"input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"query":'}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '"x"}'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ]
    assert streamed("anthropic", pieces).contents == (kept,)


def test_citations_are_kept_on_their_text() -> None:
    """Streamed one by one, whole in a list."""
    citation = {"type": "char_location", "cited_text": "a"}
    text = {"type": "text", "text": "a", "citations": [citation]}
    pieces: list[Json] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": citation}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ]
    expected = (TextContent.from_dict({"content": "a", "citations": [citation]}),)
    assert streamed("anthropic", pieces).contents == expected
    assert whole("anthropic", {"content": [text], "stop_reason": "end_turn"}).contents == expected


def test_gemini_signatures_stay_on_their_parts() -> None:
    """On a text, on the first call, on a thought; a call without an id gets one."""
    parts = [
        {"text": "Hm.", "thought": True, "thoughtSignature": "YQ=="},
        {"text": "So.", "thoughtSignature": "Yg=="},
        {"functionCall": {"name": "bash", "args": {"a": 1}}, "thoughtSignature": "Yw=="},
    ]
    message = whole("gemini", {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    thought, text, call = message.contents
    assert isinstance(thought, ThinkingContent)
    assert thought.artefact == {"thoughtSignature": "YQ=="}
    assert text == TextContent.from_dict({"content": "So.", "thoughtSignature": "Yg=="})
    assert isinstance(call, ToolCallContent)
    assert (call.artefact, call.args) == ({"thoughtSignature": "Yw=="}, {"a": 1})
    assert call.id.startswith("call_")
    assert message.stop_reason is StopReason.TOOL_CALLS


def test_gemini_images_and_blocked_prompts() -> None:
    """An image is an image; a prompt that is blocked is an answer without words."""
    data = {"inlineData": {"mimeType": "image/png", "data": b64encode(png(1, 1)).decode()}}
    message = whole("gemini", {"candidates": [{"content": {"parts": [data]}, "finishReason": "STOP"}]})
    assert isinstance(message.contents[0], ImageContent)
    blocked = whole("gemini", {"promptFeedback": {"blockReason": "SAFETY"}})
    assert (blocked.contents, blocked.stop_reason) == ((), StopReason.CONTENT_FILTER)
    assert blocked.metadata["block_reason"] == "SAFETY"


@pytest.mark.parametrize(
    ("api", "data", "kind"),
    [
        ("openai-chat", {"error": {"message": "Overloaded", "code": 503}}, ProviderDown),
        ("openai-chat", {"error": "out of memory"}, ProviderDown),
        ("openai-responses", {"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}, RateLimited),
        (
            "openai-responses",
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "server_error", "message": "x"}},
            },
            ProviderDown,
        ),
        (
            "openai-responses",
            {
                "type": "error",
                "error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window"},
            },
            ContextOverflow,
        ),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, ProviderDown),
        ("gemini", {"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}, ProviderDown),
    ],
)
def test_a_failure_inside_an_answer_is_that_failure(api: str, data: Json, kind: type[ProviderError]) -> None:
    """With what had come before it."""
    reading = reader(api)
    begin = next(
        iter(STREAMS[api]({"thought": None, "text": "Half", "calls": [], "usage": (0, 0, 0)}, lambda text: [text]))
    )
    list(reading.piece(begin))
    with pytest.raises(kind) as caught:
        list(reading.piece(data))
    assert caught.value.model == MODELS[api]
    assert (caught.value.partial is None) == (not reading.assembly.partial.contents)


@APIS
def test_another_name_for_the_model_is_kept_beside(api: str) -> None:
    """The message has the name that was asked for, by which the next request is compared; the other one is in the metadata."""
    message = whole(api, WHOLES[api]({"thought": None, "text": "a", "calls": [], "usage": (1, 2, 3)}))
    assert message.model == MODELS[api]
    assert message.metadata["served_model"] == "m-2026"
    assert message.response_id
    assert (message.usage.input_tokens, message.usage.cache_read_tokens, message.usage.output_tokens) == (3, 2, 3)
