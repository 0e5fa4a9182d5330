"""Lineage: what a request says, read from where an earlier one differs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import Session
from palaver.proxy.lineage import KnownDialog, Spoken, heard
from palaver.proxy.requests import ReadRequest, read_request
from palaver.store import MemoryStore

_TEXT = st.sampled_from(["", " ", "a", "b", "a b"])
_ITEM = st.one_of(
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant"]), _TEXT),
    st.builds(
        lambda text, mark: {"role": "user", "content": [{"type": "text", "text": text, **mark}]},
        _TEXT,
        st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}]),
    ),
    st.just({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}),
    st.just({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {"at": 1}}]}),
    st.just({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "found"}]}),
)
_LIST = st.lists(_ITEM, max_size=6)


@pytest.fixture(scope="module")
def session() -> Session:
    """Return a session."""
    return Session.create(MemoryStore())


@given(first=_LIST, kept=st.integers(0, 6), more=_LIST)
def test_repeated_items_are_not_read_again(session: Session, first: list[Any], kept: int, more: list[Any]) -> None:
    """A request says the same, whether all of it is read or only what comes after the items of an earlier one, whose marks may have moved."""
    earlier, later = _request(first), _request([*map(_unmarked, first[:kept]), *more])
    line = KnownDialog(session.root, heard((), earlier), earlier.items)
    whole = Spoken()
    whole.add(later.messages(0))
    again = heard([line], later)
    assert (again.pieces, again.ends, again.answered) == (whole.pieces, whole.ends, whole.answered)


def _request(messages: list[Any]) -> ReadRequest:
    return read_request("anthropic", json.dumps({"model": "m", "messages": messages}).encode())


def _unmarked(item: Any) -> Any:  # noqa: ANN401 - a JSON value
    content = item["content"]
    blocks = content if isinstance(content, str) else [{**block, "cache_control": None} for block in content]
    return {**item, "content": blocks}
