"""Reading back what a store holds: the short way gives exactly what validation gives, or leaves it to validation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import PalaverError
from palaver.messages import Message, decode, encode
from palaver.messages.stored import is_plain, read_stored
from palaver.testing.strategies import dirty_json, json_objects, messages


def _state(value: Any) -> Any:  # noqa: ANN401 - a message, a block, or what is in them
    """Give everything that is in a value: types, fields, which of them were given, and those of later versions."""
    if isinstance(value, tuple):
        return tuple(map(_state, value))
    if not hasattr(value, "__pydantic_fields_set__"):
        return type(value), repr(value)
    fields = {name: _state(field) for name, field in value.__dict__.items()}
    later = {name: _state(field) for name, field in value.__pydantic_extra__.items()}
    return type(value), list(fields), fields, value.__pydantic_fields_set__, later, value.__pydantic_private__


@given(messages())
def test_law_2_the_short_way_gives_what_validation_gives(message: Message) -> None:
    """Law 2: any message, read the short way, is in every respect the one that validation makes of the same fields."""
    body, _ = encode(message)
    fields = json.loads(body)
    found = read_stored(fields) if is_plain(body) else None

    assert found is None or _state(found) == _state(Message(**fields))
    assert decode(body) == decode(json.dumps(fields))


def test_usual_messages_take_the_short_way() -> None:
    """What every conversation consists of is never validated again."""
    text = {"type": "text", "content": "hi"}
    call = {"type": "tool_call", "id": "c", "name": "read", "args": {"path": "a", "deep": [{"b": 1.5}]}}
    result = {"type": "tool_result", "id": "c", "name": "read", "content": "x", "is_error": True}
    parts = {"type": "tool_result", "id": "d", "content": [text]}
    kept = {"type": "tool_call", "id": "e", "name": "read", "raw_args": '{"path": "a"}'}
    for role, contents in (
        ("user", [text]),
        ("assistant", [{"type": "thinking", "content": "hm", "signature": "s"}, text, call, kept]),
        ("tool", [result, parts]),
        ("system", [text]),
    ):
        fields: dict[str, Any] = {
            "role": role,
            "contents": contents,
            "id": "m",
            "timestamp": 1.5,
            "usage": {"input": 3},
            "later": [1],
        }

        found = read_stored(fields)

        assert found is not None
        assert _state(found) == _state(Message(**fields))


_MOSTLY = st.sampled_from(["type", "content", "role", "id", "args", "name", "usage", "timestamp", "contents", "model"])


@given(messages(), st.lists(st.tuples(_MOSTLY, dirty_json() | json_objects()), min_size=1, max_size=3), st.booleans())
def test_what_is_damaged_is_left_to_validation(message: Message, wrong: list[tuple[str, Any]], within: bool) -> None:
    """Fields that are not as they were written give what validation gives, or nothing: never a value that it would refuse."""
    fields = json.loads(encode(message)[0])
    place = fields["contents"][0] if within and fields.get("contents") else fields
    place |= dict(wrong)
    try:
        body = json.dumps(fields, allow_nan=False).encode()
    except (TypeError, ValueError):
        return
    fields = json.loads(body)
    found = read_stored(fields) if is_plain(body) else None
    if found is not None:
        assert _state(found) == _state(Message(**fields))


@pytest.mark.parametrize("spelt", ["\\u0000", "\\ud800", "\\uDFFF"])
def test_what_has_to_be_replaced_is_seen_in_the_bytes(spelt: str) -> None:
    """A NUL or a surrogate, however its escape is spelt, is replaced and recorded when it is read."""
    body = f'{{"role":"user","contents":[{{"type":"text","content":"a{spelt}"}}],"id":"m","timestamp":1.0}}'.encode()

    assert not is_plain(body)
    try:
        message = decode(body)
    except PalaverError:
        return  # no JSON for the reader of messages, which is stricter than that of entries
    assert message.text_content() == "a\ufffd"
    assert message.normalized
