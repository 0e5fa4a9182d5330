"""Plain message lists: four shapes of two interfaces, and nothing else taken for one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import UnsupportedTranscript
from palaver.formats import detect, open_source
from palaver.log import Instructions, Toolset
from palaver.store.memory import MemoryStore
from tests.formats.reading import imported, read_bytes, refused, views, written
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


def test_text_alone_is_chat_completions(tmp_path: Path) -> None:
    """Where nothing tells the interfaces apart, the more common one is assumed; a system beside the messages is Anthropic's."""
    plain = [{"role": "user", "content": "Hm?"}, {"role": "assistant", "content": [{"type": "text", "text": "Hm."}]}]
    assert name_of(tmp_path, document(plain)) == "chat-completions"
    assert name_of(tmp_path, document({"system": "Be brief.", "messages": plain})) == "anthropic-messages"


def test_what_is_no_plain_list_is_refused(tmp_path: Path) -> None:
    """Records of other programs, and lists without messages, are refused with a word about what they look like."""
    for other in [
        {"version": 1, "sessionId": "s", "messages": [{"role": "user", "content": [], "id": "m", "ts": 1}]},
        [{"role": "user", "parts": [{"text": "Hm?"}]}],
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
