"""Plain message lists: four shapes of two interfaces, and nothing else taken for one."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import UnsupportedTranscript
from palaver.formats import detect, open_source
from palaver.log import Instructions, Toolset
from palaver.messages import Role, TextContent, ThinkingContent
from palaver.store.memory import MemoryStore
from tests.formats.reading import Read, imported, read_bytes, refused, views, written
from tests.formats.samples import TOOL, anthropic, chat, document, jsonl

SHAPES: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "array": document,
    "indented": lambda messages: json.dumps(messages, indent=1).encode(),
    "object": lambda messages: document({"model": "gpt-4o", "messages": messages}),
    "lines": lambda messages: jsonl({"messages": messages}, {"messages": messages}),
    "objects": lambda messages: document([{"messages": messages}, {"messages": messages}]),
    "message lines": lambda messages: jsonl(*messages),
}
LISTS: dict[str, Callable[[], list[dict[str, Any]]]] = {"chat-completions": chat, "anthropic-messages": anthropic}


def name_of(folder: Path, data: bytes) -> str:
    """Return the format of a file."""
    with open_source(written(folder, data)) as source:
        return detect(source).name


def test_every_shape_of_both_interfaces(tmp_path: Path) -> None:
    """It is recognised, read whole into valid histories, and adds nothing the second time."""
    for name, make in LISTS.items():
        for shape, form in SHAPES.items():
            messages = make()
            path = written(tmp_path, form(messages))
            assert name_of(tmp_path, path.read_bytes()) == name, (name, shape)
            store = MemoryStore()
            found = imported(store, path)
            count = 2 if shape in {"lines", "objects"} else 1
            assert [(one.records, one.messages) for one in found] == [(len(messages), len(messages))] * count, (
                name,
                shape,
            )
            assert {loss.code for one in found for loss in one.losses} <= {"no_instructions"}, (name, shape)
            assert all(refused(store, view) == [] for view in views(store, found)), (name, shape)
            assert [one.entries for one in imported(store, path)] == [0] * count, (name, shape)


def test_system_and_tools_beside_the_messages_are_kept(tmp_path: Path) -> None:
    """Anthropic's system, as text or blocks, is instructions; tools keep their order. Tools that are not declared are not made up."""
    blocks = [
        {"type": "text", "text": "One.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Two."},
    ]
    tools = [{"name": "leap", "input_schema": {"type": "object"}}, {"name": "look", "description": "D"}]
    for system, texts in ((blocks, ["One.", "Two."]), ("One.", ["One."])):
        found = read_bytes(tmp_path, document({"messages": anthropic(), "tools": tools, "system": system}))
        told, declared = found.entries()[:2]
        assert isinstance(told, Instructions)
        assert [section.text for section in told.sections] == texts
        assert isinstance(declared, Toolset)
        assert [tool.name for tool in declared.tools] == ["leap", "look"]
        assert found.losses == []
    found = read_bytes(tmp_path, document({"messages": chat(), "tools": [TOOL]}))
    assert [[tool.name for tool in one.tools] for one in found.entries() if isinstance(one, Toolset)] == [["look"]]
    assert not [one for one in read_bytes(tmp_path, document(chat())).entries() if isinstance(one, Toolset)]


def test_text_as_input_is_the_words_of_the_user(tmp_path: Path) -> None:
    """Responses and Interactions take a text in place of a list, in a file of one request and in a log of several."""
    words = [{"type": "output_text", "text": "A stone.", "annotations": []}]
    answer = {"type": "message", "role": "assistant", "id": "m1", "status": "completed", "content": words}
    step = {"type": "model_output", "content": [{"type": "text", "text": "A stone."}]}
    for name, beside in (("openai-responses", {"output": [answer]}), ("gemini-interactions", {"steps": [step]})):
        asked = {"model": "m", "input": "What is there?", **beside}
        for data in (document(asked), jsonl(asked, asked)):
            assert name_of(tmp_path, data) == name
            found = read_bytes(tmp_path, data)
            assert found.codes() == Counter()
            assert found.shown() == ["user: What is there?", "assistant: A stone."]


def test_text_alone_is_chat_completions(tmp_path: Path) -> None:
    """Where nothing tells the interfaces apart, the more common one is assumed; a system beside the messages is Anthropic's."""
    plain = [{"role": "user", "content": "Hm?"}, {"role": "assistant", "content": [{"type": "text", "text": "Hm."}]}]
    assert name_of(tmp_path, document(plain)) == "chat-completions"
    assert name_of(tmp_path, document({"system": "Be brief.", "messages": plain})) == "anthropic-messages"


def test_what_is_no_plain_list_is_refused(tmp_path: Path) -> None:
    """Records of other programs, and lists without messages, are refused with a word about what they look like."""
    for other in [
        {"version": 1, "sessionId": "s", "messages": [{"role": "user", "content": [], "id": "m", "tick": 1}]},
        [{"role": "someone", "parts": [{"text": "Hm?"}]}],
        [{"role": "user", "content": "Hm?", "weather": "wet", "is_demo": True}],
        {"samples": [{"messages": chat()}]},
        {"messages": "none"},
        [1, 2],
    ]:
        with pytest.raises(UnsupportedTranscript, match="is not a transcript palaver can read: it is"):
            name_of(tmp_path, document(other))


def test_large_first_message_does_not_hide_the_format(tmp_path: Path) -> None:
    """It may be larger than what formats are found from."""
    big = [{"role": "system", "content": "x" * 300_000}, *chat()[1:]]
    indented = [json.dumps(value, indent=1).encode() for value in (big, {"messages": big})]
    for data in (document({"messages": big}), document(big), jsonl({"messages": big}), *indented):
        assert name_of(tmp_path, data) == "chat-completions"
        assert read_bytes(tmp_path, data).counted() == 7


# --- Vercel's model messages, and log lines ------------------------------------------------------------------------------------


def vercel() -> list[dict[str, Any]]:
    """Return a conversation as the AI SDK keeps it: calls and results are parts, and a result says what kind its value is."""
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": {"at": "sky"}}
    values = ({"type": "text", "value": "blue"}, {"type": "error-json", "value": {"code": 3}})
    older = {"type": "tool-call", "toolCallId": "c2", "toolName": "look", "args": {"at": "sea"}}
    results = [
        {"type": "tool-result", "toolCallId": f"c{n}", "toolName": "look", "output": value}
        for n, value in enumerate(values, 1)
    ]
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What do you see?"}], "providerOptions": {"a": {"b": 1}}},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "I look."}, call, older],
        },
        {"role": "tool", "content": results},
        {"role": "assistant", "content": "Blue."},
    ]


def test_vercel_model_messages_keep_calls_and_results(tmp_path: Path) -> None:
    """A call is a call with its arguments, a result answers it and says whether it failed, and reasoning is thinking."""
    found = read_bytes(tmp_path, document(vercel()))
    assert found.codes() == Counter()
    said = found.said()
    assert [(call.id, call.name, dict(call.args)) for call in said[2].tool_calls()] == [
        ("c1", "look", {"at": "sky"}),
        ("c2", "look", {"at": "sea"}),
    ]
    assert [type(block) for block in said[2].contents[:2]] == [ThinkingContent, TextContent]
    assert [(one.id, one.text(), one.is_error) for one in said[3].tool_results()] == [
        ("c1", "blue", False),
        ("c2", '{"code":3}', True),
    ]
    assert refused_nowhere(found)


def refused_nowhere(found: Read) -> bool:
    """Return whether every provider takes the history."""
    return refused(found.landed[0], found.view()) == []


def test_log_line_with_a_response_has_the_answer(tmp_path: Path) -> None:
    """Whatever interface answered: the response is the last message, with its model and usage; what cannot be read is reported."""
    asked = [{"role": "user", "content": "2+2?"}]
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "4"}}
    block = {"type": "text", "text": "4"}
    responses: list[Any] = [
        {"id": "r1", "object": "chat.completion", "model": "gpt-4o", "choices": [choice], "usage": usage},
        {"id": "m1", "type": "message", "role": "assistant", "model": "claude-x", "content": [block], "usage": {}},
        {"role": "assistant", "content": "4"},
        "4",
    ]
    for response in responses:
        for form in (jsonl, document, lambda value: document([value])):
            found = read_bytes(tmp_path, form({"messages": asked, "response": response}))
            assert found.codes() == Counter(), response
            assert [message.text_content() for message in found.said()] == ["2+2?", "4"], response
            assert found.said()[1].role is Role.ASSISTANT
    for form in (jsonl, document, lambda value: document([value])):
        found = read_bytes(tmp_path, form({"messages": asked, **responses[0]}))
        assert found.codes() == Counter()
        assert [message.text_content() for message in found.said()] == ["2+2?", "4"]
        assert (found.said()[1].model, found.said()[1].usage["prompt_tokens"]) == ("gpt-4o", 3)
    losses = read_bytes(tmp_path, jsonl({"messages": asked, "response": "4", "choices": [choice]})).losses
    assert [(loss.code, "choices" in loss.reason) for loss in losses if loss.severity == "loss"] == [("unread", True)]
    labels = read_bytes(tmp_path, jsonl({"messages": asked, "choices": ["yes", "no"]})).losses
    assert [(loss.place, loss.severity) for loss in labels if loss.code == "bad_record"] == [("whole file", "loss")]
    found = read_bytes(tmp_path, jsonl({"messages": asked, "response": responses[0]}))
    assert found.said()[1].model == "gpt-4o"
    assert found.said()[1].usage["prompt_tokens"] == 3
    unread: list[Any] = [{"text": "4"}, [1], {"choices": []}]
    for bad in unread:
        losses = read_bytes(tmp_path, jsonl({"messages": asked, "response": bad})).losses
        assert [loss.severity for loss in losses if loss.place.endswith("response")] == ["loss"]


def test_what_is_not_read_is_reported(tmp_path: Path) -> None:
    """Text beside the messages is a loss, whatever its key, also what the metadata has; a block that no model is shown is a warning."""
    asked = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    found = read_bytes(tmp_path, jsonl({"messages": asked, "seed": 3, "stop": ["x"], "trace": "words " * 100}))
    assert [(loss.severity, "trace" in loss.reason) for loss in found.losses if loss.code == "unread"] == [
        ("loss", True)
    ]
    assert dict(found.conversations[0].metadata) == {"seed": 3, "stop": ["x"]}
    contents: list[Any] = ["5", "word " * 100, {"text": "5"}, [{"n": [1, "5"]}]]
    for key in ("completion", "output", "answer", "reply", "result", "content"):
        for content in contents:
            for form in (jsonl, document, lambda value: document([value])):
                found = read_bytes(tmp_path, form({"messages": asked, key: content, "id": "a1"}))
                losses = [(loss.code, loss.severity) for loss in found.losses if repr(key) in loss.reason]
                assert losses == [("unread", "loss")], (key, content)
                kept = {} if len(str(content)) > 200 else {key: content}
                assert dict(found.conversations[0].metadata) == {**kept, "id": "a1"}
    found = read_bytes(
        tmp_path,
        jsonl({"messages": asked, "score": 0.5, "ok": True, "counts": {"a": [1]}, "thinking": {"type": "enabled"}}),
    )
    assert found.codes() == Counter()
    odd = [{"role": "user", "content": [{"type": "hologram", "data": "x"}, {"type": "text", "text": "?"}]}, asked[1]]
    found = read_bytes(tmp_path, document(odd))
    assert [(loss.code, loss.severity) for loss in found.losses if "hologram" in loss.reason] == [
        ("unknown_block", "loss")
    ]


ASKED = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]


def test_a_key_of_many_conversations_is_one_row(tmp_path: Path) -> None:
    """The labels of a data set are reported once a file, with the number of conversations that have them, whatever the file's shape."""
    lines = [
        {"messages": ASKED, "category": f"kind {at}", **({"topic": "sums"} if at == 3 else {})} for at in range(50)
    ]
    for content in (jsonl(*lines), document(lines)):
        found = read_bytes(tmp_path, content)
        assert len(found.conversations) == 50
        category, topic = (loss for loss in found.losses if loss.severity == "loss")
        assert category.reason == "The key 'category' of 50 records is not read; only the metadata has it."
        assert topic.reason == "The key 'topic' of 1 record is not read; only the metadata has it."
        assert ("0" in category.place or "1" in category.place, "3" in topic.place or "4" in topic.place) == (
            True,
            True,
        )
        assert found.conversations[3].metadata["category"] == "kind 3"


def test_a_parameter_next_to_the_messages_is_a_note(tmp_path: Path) -> None:
    """Law 16: what only the metadata has is reported, also a short text under the name of a request's parameter, and a number."""
    beside = {"user": "What is 2+2?", "metadata": {"answer": "5"}, "seed": 3}
    found = read_bytes(tmp_path, jsonl({"messages": ASKED, "model": "gpt-4o", **beside}))
    notes = [(loss.severity, loss.reason.split("'")[1]) for loss in found.losses if "the metadata has" in loss.reason]
    assert notes == [("note", key) for key in sorted(beside)]
    assert dict(found.conversations[0].metadata) == {"model": "gpt-4o", **beside}


def test_a_response_keeps_what_is_around_its_message(tmp_path: Path) -> None:
    """Law 16: the answer's message has every key of its response and choice that palaver does not read."""
    choice: Any = {
        "index": 0,
        "finish_reason": "length",
        "logprobs": {"content": []},
        "message": ASKED[1],
        "text": "four",
    }
    response: Any = {"id": "r1", "object": "chat.completion", "choices": [choice], "note": "cached", "usage": "none"}
    for line in (
        {"messages": ASKED[:1], "response": response},
        {"messages": ASKED[:1], "response": response, "id": "l1"},
    ):
        answer = read_bytes(tmp_path, jsonl(line)).said()[1]
        assert (answer.response_id, answer.stop_reason) == ("r1", "length")
        kept = {"index": 0, "finish_reason": "length", "text": "four", "object": "chat.completion", "note": "cached"}
        assert {key: answer.model_extra.get(key) for key in kept} == kept
        assert answer.model_extra["source_logprobs"] == choice["logprobs"]
        assert answer.model_extra["source_usage"] == "none"
    more = read_bytes(tmp_path, jsonl({"messages": ASKED[:1], "response": {**response, "choices": [choice, "or 5"]}}))
    assert [loss.place.rpartition(".")[2] for loss in more.losses if loss.code == "bad_record"] == ["choices[1]"]


def test_nothing_of_a_list_is_dropped_without_a_word(tmp_path: Path) -> None:
    """Law 16: a message's metadata and times that are none stay on it; instructions and tools that cannot be read are reported."""
    odd = {"role": "user", "content": "2+2?", "metadata": "a text", "timestamp": "noon", "created_at": 1_700_000_000}
    message = read_bytes(tmp_path, document([odd, ASKED[1]])).said()[0]
    assert message.timestamp == 1_700_000_000
    assert (message.model_extra["source_metadata"], message.model_extra["source_timestamp"]) == ("a text", "noon")
    about = {"system": [{"type": "text", "text": "Be brief."}, {"type": "image"}], "tools": ["bash", {"name": "ls"}]}
    found = read_bytes(tmp_path, document({**about, "messages": ASKED}))
    assert sorted(loss.place for loss in found.losses if loss.severity == "loss") == [
        "whole file, system[1]",
        "whole file, tools",
    ]
