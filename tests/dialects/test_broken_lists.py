"""Lists of frameworks that are broken at one place: read or refused with the item's number, never another error, and what is read can be written."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import read_messages, write_messages
from palaver.errors import InvalidMessage
from tests.dialects import test_agent_framework, test_bedrock, test_pydantic_ai, test_vercel_ui

WRONG: st.SearchStrategy[Any] = st.sampled_from([
    None, True, -1, 1e400, 2**70, "", "text", "\ud800\x00", "data:image/png;base64,!", [], {}, [[]], {"type": 7}, {"type": "tool_call"},
    {"type": "text", "text": None}, {"kind": "binary", "data": 7}, [None], ["text", 3], "[" * 50_000,
])  # fmt: skip
"""What stands where something else belongs."""


def thread() -> list[dict[str, Any]]:
    """Return messages of LangChain, as JSON."""
    call = {"name": "weather", "args": {"town": "Oslo"}, "id": "c1", "type": "tool_call"}
    use = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"town": "Oslo"}}
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "I look."}, use]
    about = {"model_name": "m", "model_provider": "anthropic"}
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    answer = {"content": content, "tool_calls": [call], "response_metadata": about, "usage_metadata": usage, "id": "a"}
    reasoning = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}], "index": 0}
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    return [
        {"type": "human", "data": {"content": ["Is it cold?", picture], "name": "ann"}},
        {"type": "ai", "data": answer},
        {"type": "tool", "data": {"content": "-4", "tool_call_id": "c1", "status": "success", "artifact": {"n": 1}}},
        {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": [reasoning, "Yes."]}},
    ]


LISTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "agent-framework": test_agent_framework.conversation,
    "bedrock": test_bedrock.conversation,
    "langchain": thread,
    "pydantic-ai": test_pydantic_ai.conversation,
    "vercel-ui": test_vercel_ui.page,
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - JSON
    """Yield the path of each value inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


@pytest.mark.parametrize("dialect", LISTS)
@given(data=st.data())
def test_one_wrong_value_is_read_or_refused(dialect: str, data: st.DataObject) -> None:
    """Each value of a list, replaced by another: the list is read and can be written in each dialect, or one item is named as wrong."""
    items = copy.deepcopy(LISTS[dialect]())
    *path, last = data.draw(st.sampled_from(list(places(items))))
    holder: Any = items
    for key in path:
        holder = holder[key]
    holder[last] = data.draw(WRONG)
    try:
        messages = read_messages(items, dialect)
    except InvalidMessage as error:
        refused = error.message
        messages = ()
    else:
        refused = "Item 0"
    assert refused.startswith("Item ")
    for other in (*LISTS, "openai-chat"):
        write_messages(messages, other)
