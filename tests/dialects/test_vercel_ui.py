"""Messages of a page that uses Vercel's AI SDK: read, written back, appended and fitted."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from palaver import Session, UserMessage, fit, read_messages, write_messages
from palaver.errors import InvalidInput, InvalidMessage
from palaver.messages import Role

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def page(turns: int = 1) -> list[dict[str, Any]]:
    """Return a conversation as `useChat` keeps it: each answer has two steps."""
    made: list[dict[str, Any]] = [
        {"id": "s", "role": "system", "parts": [{"type": "text", "text": "Look before you answer."}]}
    ]
    for number in range(turns):
        picture = [{"type": "file", "mediaType": "image/png", "url": PIXEL}] if number == 0 else []
        text = {"type": "text", "text": f"What is the weather in town {number}?"}
        made.append({"id": f"u{number}", "role": "user", "parts": [text, *picture]})
        tool = {
            "type": "tool-weather",
            "toolCallId": f"call_{number}",
            "state": "output-available",
            "input": {"town": number},
            "output": {"sky": "grey. " * 300, "degrees": number},
        }
        parts = [
            {"type": "step-start"},
            {"type": "reasoning", "text": "I have to look.", "providerMetadata": {"vendor": {"signature": "s1"}}},
            tool,
            {"type": "step-start"},
            {"type": "text", "text": f"Grey in town {number}.", "state": "done"},
        ]
        made.append({"id": f"a{number}", "role": "assistant", "parts": parts, "metadata": {"seconds": number}})
    return made


def test_messages_stay_among_items_of_a_dialect() -> None:
    """The dialect is that of the first item that is not a message; a message is itself, wherever it is in the list."""
    said = UserMessage("And now?")
    given = page()
    read = read_messages([said, *given, said])
    assert (read[0], read[-1]) == (said, said)
    assert [message.contents for message in read[1:-1]] == [message.contents for message in read_messages(given)]
    assert read_messages([said, {"role": "user", "content": "hi"}], "anthropic")[0] is said
    with pytest.raises(InvalidInput, match="no dialect"):
        read_messages(said, "nope")


def test_a_page_comes_back_as_it_was() -> None:
    """What is read and written back is equal: ids, metadata, providers' own fields, structured output, images."""
    given = page(3)
    written = write_messages(read_messages(given), "vercel-ui")
    assert written.items == given
    assert (written.system, list(written.report)) == ("", [])


def test_an_answer_is_read_as_its_steps() -> None:
    """Each step is a message of the model, each result a tool's message."""
    roles = [message.role for message in read_messages(page())]
    assert roles == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ({"state": "output-error", "input": {}, "errorText": "It broke."}, "It broke."),
        ({"state": "output-denied", "input": {}, "approval": {"id": "1", "approved": False, "reason": "No."}}, "No."),
    ],
)
def test_a_failed_call_comes_back(part: dict[str, Any], says: str) -> None:
    """A call that failed, or that a person denied, is an error of the tool, and is written as it was."""
    call = {"type": "dynamic-tool", "toolName": "run", "toolCallId": "c", **part}
    given = [{"id": "a", "role": "assistant", "parts": [{"type": "step-start"}, call]}]
    result = read_messages(given)[1].tool_results()[0]
    assert (result.is_error, result.text()) == (True, says)
    assert write_messages(read_messages(given), "vercel-ui").items == given


def test_it_becomes_a_request_of_any_provider() -> None:
    """The same conversation is valid chat, Responses, Anthropic and Gemini, with every call and result."""
    messages = read_messages(page(2))
    for dialect in ("openai-chat", "openai-responses", "anthropic", "gemini", "gemini-interactions"):
        written = write_messages(messages, dialect)
        again = read_messages(written.items, dialect)
        assert [call.args for said in again for call in said.tool_calls()] == [{"town": 0}, {"town": 1}], dialect
        assert sum(len(said.tool_results()) for said in again) == 2, dialect


def test_a_page_fits() -> None:
    """Untouched messages are the caller's own objects; what is left out is named, and comes back by its handle."""
    given = page(40)
    before = copy.deepcopy(given)
    fitted = fit(given, model="gpt-5", budget=6_000, pinned=[3])
    assert given == before
    assert fitted.tokens <= 6_000 < fitted.tokens_before
    assert given[0] is fitted.messages[0]
    assert any(item is given[3] for item in fitted.messages)
    assert fitted.messages[-1] is given[-1]
    assert fitted.omitted
    for gone in fitted.omitted:
        for handle in gone.handles():
            assert fitted.recall(handle)
    again = read_messages(fitted.messages, "vercel-ui")
    made = [call.id for said in again for call in said.tool_calls()]
    answered = [result.id for said in again for result in said.tool_results()]
    assert made == answered


def test_an_item_that_loses_a_part_is_written_anew() -> None:
    """A shortened output is text where it was structured; the item keeps its id and its metadata."""
    given = page(40)
    fitted = fit(given, model="gpt-5", budget=16_000)
    own = {id(item) for item in given}
    names = {item["id"] for item in given if item["role"] == "assistant"}  # the record has an id that is made up
    changed = [item for item in fitted.messages if id(item) not in own and item["id"] in names]
    assert changed
    for item in changed:
        assert item["metadata"] == {"seconds": int(item["id"][1:])}


def test_it_is_appended_with_metadata(tmp_path: Path) -> None:
    """A dialog takes the page's messages, and keeps the caller's metadata with each."""
    dialog = Session.create(str(tmp_path / "chat.db")).root
    stored = dialog.append(page(), metadata={"page": 7})
    assert [message.metadata["page"] for message in stored] == [7] * 5
    assert [call.name for message in dialog.messages for call in message.tool_calls()] == ["weather"]


def test_wrong_items_are_named() -> None:
    """An item that is no message, a dialect that does not exist and a dict in place of a Message are refused with a hint."""
    with pytest.raises(InvalidMessage, match="Item 1 of the messages: The role is 'robot'"):
        read_messages([page()[0], {"id": "1", "role": "robot", "parts": []}])
    with pytest.raises(InvalidInput, match="There is no dialect 'vercel'"):
        read_messages(page(), "vercel")
    with pytest.raises(InvalidInput, match="not a Message"):
        write_messages(page(), "vercel-ui")  # type: ignore[arg-type]


def test_unknown_parts_are_kept() -> None:
    """Data, sources and parts of a later version come back whole."""
    parts = [
        {"type": "step-start"},
        {"type": "data-chart", "id": "d", "data": {"rows": [1]}},
        {"type": "source-url", "sourceId": "s", "url": "https://example.org"},
        {"type": "text", "text": "So."},
    ]
    given = [
        {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Hm"}]},
        {"id": "a", "role": "assistant", "parts": parts},
    ]
    assert write_messages(read_messages(given), "vercel-ui").items == given
