"""Answers of Gemini's Interactions: statuses, errors, the events of a stream, and steps that nobody knows."""

from base64 import b64encode
from typing import Any

import pytest

from palaver.dialects import read_messages
from palaver.errors import ProviderError
from palaver.messages import AssistantMessage, ImageContent, StopReason, TextContent, ThinkingContent, UnknownContent
from palaver.providers import connect_model
from palaver.providers.gemini_interactions.read import InteractionAnswer
from palaver.session import Dialog
from tests.providers.asking import ask
from tests.wire.pictures import png

Json = dict[str, Any]

WORDS: Json = {"type": "model_output", "content": [{"type": "text", "text": "Well."}]}
CALL: Json = {"type": "function_call", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}
SEARCH: Json = {"type": "google_search_call", "id": "g1", "arguments": {"queries": ["x"]}, "signature": "c2ln"}


def reader() -> InteractionAnswer:
    """Begin to read an answer."""
    return InteractionAnswer(ask(profile="gemini-interactions"), "google")


def whole(*steps: Json, status: str = "completed", **fields: object) -> AssistantMessage:
    """Read a whole interaction."""
    reading = reader()
    list(reading.whole({"id": "v1_1", "status": status, "steps": list(steps)} | fields))
    return reading.end().message


def streamed(*events: Json, end: Json | None = None) -> AssistantMessage:
    """Read the events of a stream that ends."""
    reading = reader()
    done = {"event_type": "interaction.completed", "interaction": {"id": "v1_1", "status": "completed"}}
    for event in (*events, end or done):
        list(reading.piece(event))
    return reading.end().message


def start(index: int, **step: object) -> Json:
    """Return the beginning of a step."""
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: int, **fields: object) -> Json:
    """Return more of a step."""
    return {"event_type": "step.delta", "index": index, "delta": fields}


def test_each_status_is_a_stop_reason() -> None:
    """The statuses of an interaction, each as what a loop does next; the provider's word stays in the metadata."""
    reasons = {
        "completed": StopReason.STOP,
        "requires_action": StopReason.TOOL_CALLS,
        "incomplete": StopReason.LENGTH,
        "budget_exceeded": StopReason.LENGTH,
        "requires_continuation": StopReason.CONTINUE,
    }
    for status, reason in reasons.items():
        for message in (
            whole(WORDS, status=status),
            streamed(start(0, **WORDS), end={"event_type": "interaction.done", "interaction": {"status": status}}),
        ):
            assert (message.stop_reason, message.metadata["stop_reason"]) == (reason, status)
    assert whole(CALL).stop_reason is StopReason.TOOL_CALLS
    cut = whole(WORDS, status="requires_continuation", continuation_token="abc")
    assert cut.metadata["continuation_token"] == "abc"
    odd = whole(WORDS, status="novel")
    assert (odd.stop_reason, odd.metadata["stop_reason"]) == (None, "novel")


def test_an_interaction_that_runs_is_no_answer() -> None:
    """In the background it has not ended."""
    for status in ("in_progress", "queued", ""):
        with pytest.raises(ProviderError, match="has not ended") as caught:
            whole(WORDS, status=status)
        assert caught.value.kind == "broken"


def test_failed_interactions_by_their_codes() -> None:
    """«Interactions: thought step dropped»: `missing_thought_signature` is a refused request; a model that went wrong is worth a retry; blocked words are an answer."""
    kinds = {
        "missing_thought_signature": ("refused", False),
        "malformed_function_call": ("down", True),
        "rate_limit_exceeded": ("rate", True),
        "model_not_found": ("model", False),
        "": ("down", True),
    }
    for code, (kind, again) in kinds.items():
        with pytest.raises(ProviderError) as caught:
            whole(WORDS, status="failed", errors=[{"code": code, "message": "No."}])
        assert (caught.value.kind, caught.value.retryable) == (kind, again), code
    with pytest.raises(ProviderError, match="is cancelled"):
        whole(status="cancelled")
    blocked = whole(status="failed", errors=[{"code": "prohibited_content", "message": "No."}])
    assert (blocked.contents, blocked.stop_reason) == ((), StopReason.CONTENT_FILTER)
    assert blocked.metadata["errors"] == [{"code": "prohibited_content", "message": "No."}]


def test_an_error_event_fails_with_what_arrived() -> None:
    """The error has the code, and the part before it."""
    reading = reader()
    list(reading.piece(start(0, type="model_output")))
    list(reading.piece(delta(0, type="text", text="Half")))
    with pytest.raises(ProviderError) as caught:
        list(reading.piece({"event_type": "error", "error": {"code": "quota_exceeded", "message": "No more."}}))
    assert (caught.value.kind, caught.value.code) == ("rate", "quota_exceeded")
    assert caught.value.partial is not None
    assert caught.value.partial.text_content() == "Half"


def test_steps_are_the_same_whole_and_streamed() -> None:
    """A signature after its thought, annotations after their text, and the fields of a server's step in pieces; ends of steps may be missing."""
    mark = {"type": "url_citation", "url": "https://example.org"}
    thought = {"type": "thought", "summary": [{"type": "text", "text": "Hm."}], "signature": "c2ln"}
    said = {"type": "model_output", "content": [{"type": "text", "text": "Well.", "annotations": [mark]}]}
    novelty = {"type": "novelty", "new": [1], "signature": "c2ln"}
    message = streamed(
        start(0, type="thought"),
        delta(0, type="thought_summary", content={"type": "text", "text": "Hm."}),
        delta(0, type="thought_signature", signature="c2ln"),
        start(1, type="google_search_call", id="g1"),
        delta(1, type="google_search_call", arguments={"queries": ["x"]}, signature="c2ln"),
        {"event_type": "step.stop", "index": 1},
        start(2, type="novelty"),
        delta(2, type="novelty", new=[1], signature="c2ln"),
        start(3, type="model_output"),
        delta(3, type="text", text="We"),
        {"event_type": "an.event.of.tomorrow", "index": 3},
        delta(3, type="text", text="ll."),
        delta(3, type="text_annotation_delta", annotations=[mark]),
        start(4, **CALL | {"arguments": {}}),
        delta(4, type="arguments_delta", arguments='{"command": '),
        delta(4, type="arguments_delta", arguments='"ls"}'),
    )
    expected = whole(thought, SEARCH, novelty, said, CALL)
    assert message.contents[:4] == expected.contents[:4]
    assert message.tool_calls()[0].args == expected.tool_calls()[0].args == {"command": "ls"}
    assert isinstance(message.contents[0], ThinkingContent)
    assert dict(message.contents[0].artefact) == thought
    assert message.contents[3] == TextContent.from_dict({"content": "Well.", "annotations": [mark]})


def test_a_stream_may_end_with_its_status() -> None:
    """Without the last event, the status tells whether it ended; a stream that breaks off has none."""
    update = {"event_type": "interaction.status_update", "interaction_id": "v1_1", "status": "budget_exceeded"}
    message = streamed(start(0, **WORDS), start(1, **SEARCH), end=update)
    assert message.stop_reason is StopReason.LENGTH
    assert [block.type for block in message.contents] == ["text", "google_search_call"]
    with pytest.raises(ProviderError, match="stops before its end"):
        streamed(start(0, **WORDS), end=update | {"status": "in_progress"})


def test_media_that_the_model_makes() -> None:
    """An image is an image; what palaver cannot read goes back as a step of its own."""
    image = {"type": "image", "mime_type": "image/png", "data": b64encode(png()).decode()}
    video = {"type": "video", "mime_type": "video/mp4", "uri": "https://example.org/v"}
    pieces: list[Json] = [{"type": "text", "text": "Look."}, image, video]
    step: Json = {"type": "model_output", "content": pieces}
    for message in (
        whole(step),
        streamed(start(0, type="model_output"), *(delta(0, **each) for each in pieces)),
    ):
        text, picture, other = message.contents
        assert (text, type(picture)) == (TextContent("Look."), ImageContent)
        assert isinstance(other, UnknownContent)
        assert (other.type, other.model_extra) == ("model_output", {"content": [video]})


def test_an_answer_is_appended_and_goes_on() -> None:
    """A dict of the API is recognised by its steps, and the next request has them in their order."""
    dialog = Dialog("assistant")
    dialog.append({"role": "user", "content": "Go."})
    thought = {"type": "thought", "signature": "c2ln"}
    answer = {"id": "v1_1", "model": "gemini-3.6-flash", "status": "requires_action", "steps": [thought, WORDS, CALL]}
    assert read_messages(answer)[0].stop_reason is StopReason.TOOL_CALLS
    dialog.append(answer)
    dialog.append({"type": "function_result", "call_id": "c1", "name": "bash", "result": "a.txt"})
    request = dialog.request("gemini-interactions", "gemini-3.6-flash")
    result = {"type": "function_result", "call_id": "c1", "name": "bash", "result": "a.txt"}
    assert request["input"][1:] == [thought, WORDS, CALL, result]
    assert request["store"] is False


def test_model_strings_name_the_api() -> None:
    """`google-interactions/…` asks the fifth API; `google/…` stays with generateContent."""
    pytest.importorskip("google.genai")
    for prefix, api in (("google-interactions", "gemini-interactions"), ("google", "gemini")):
        provider, model = connect_model(f"{prefix}/gemini-4-argon", api_key="none")
        assert (provider.profile_for(model).name, model) == (api, "gemini-4-argon")
