"""A request that is held against the one before it is judged as by the validator that goes through all of it."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.messages import FrozenDict, canonical_json, freeze, thaw
from palaver.wire.check import validate
from palaver.wire.check.conversation import CONVERSATIONS
from palaver.wire.held import Held, field_of
from palaver.wire.profiles import PROFILES, Profile
from tests.wire.check.samples import SAMPLES
from tests.wire.check.spoiling import Case
from tests.wire.check.test_refused import CASES

PADS = 12
"""Rounds of small talk put before a sample, so that its end is a small part of it."""

_ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": {"role": "assistant", "content": "Yes."},
    "openai-responses": {"type": "message", "role": "assistant", "content": "Yes."},
    "anthropic": {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
    "gemini": {"role": "model", "parts": [{"text": "Yes."}]},
}


def padded(body: dict[str, Any], profile: Profile) -> dict[str, Any]:
    """Give a request with small talk at its beginning."""
    field = field_of(profile)
    talk = [thaw(CONVERSATIONS[profile.name].anything), _ANSWERS[profile.name]] * PADS
    return body | {field: [*deepcopy(talk), *body[field]]} if isinstance(body.get(field), list) else body


def frozen(body: dict[str, Any]) -> FrozenDict:
    """Give a body as compiling gives it."""
    made: FrozenDict = freeze(body, "body", [])
    return made


def judged(held: Held, body: FrozenDict, profile: Profile, *, as_history: bool) -> list[str]:
    """Hold a body to the rules."""
    found = held.violations(body, profile, len(canonical_json(body)), lambda _: False, as_history=as_history)
    return list(map(str, found))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.sample}: {case.name}")
def test_every_rejection_is_found_behind_a_long_conversation_that_was_fine(case: Case) -> None:
    """Each fault of the negative corpus is found in the request after one without it, in the validator's words."""
    profile, as_history = case.profile(), case.history()
    held = Held()
    judged(held, frozen(padded(SAMPLES[case.sample].request(), profile)), profile, as_history=as_history)
    spoiled = frozen(padded(case.request(), profile))
    expected = list(map(str, validate(spoiled, profile, as_history=as_history)))
    assert judged(held, spoiled, profile, as_history=as_history) == expected


# --- any change ----------------------------------------------------------------------------------------------------------------

_JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, True, "", " ", "x", "user", "assistant", "tool", "call_1", [], {}, ["x"], 1e9, "a" * 70]
)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Give every place inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [each for key, one in inner for each in [(*path, key), *places(one, (*path, key))]]


def inside(value: Any, path: tuple[str | int, ...]) -> Any:  # noqa: ANN401 - any JSON value
    """Give what stands at a place."""
    for step in path:
        value = value[step]
    return value


def _drop(items: list[Any], draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    del items[draw(st.integers(0, len(items) - 1))]


def _twice(items: list[Any], draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    one = deepcopy(items[draw(st.integers(0, len(items) - 1))])
    items.insert(draw(st.integers(0, len(items))), one)


def _swap(items: list[Any], draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    place = draw(st.integers(0, len(items) - 1))
    items.insert(draw(st.integers(0, len(items) - 1)), items.pop(place))


def _junk(items: list[Any], draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    path = draw(st.sampled_from(places(items)))
    inside(items, path[:-1])[path[-1]] = deepcopy(draw(_JUNK))


def _less(items: list[Any], draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    path = draw(st.sampled_from(places(items)))
    del inside(items, path[:-1])[path[-1]]


def _marked(items: list[Any], draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    blocks = [inside(items, path) for path in places(items)]
    found = [each for each in blocks if isinstance(each, dict) and "type" in each]
    if found:
        ttl = draw(st.sampled_from([{}, {"ttl": "1h"}]))
        draw(st.sampled_from(found))["cache_control"] = {"type": "ephemeral", **ttl}


_CHANGES = (_drop, _drop, _twice, _twice, _swap, _junk, _less, _marked, _marked)


@pytest.mark.parametrize("sample", SAMPLES)
@settings(max_examples=settings().max_examples // 3, deadline=None)
@given(data=st.data())
def test_law_whatever_changes_the_violations_are_those_of_the_whole(sample: str, data: st.DataObject) -> None:
    """Messages that go, come twice or elsewhere, fields that go or hold nonsense, marks: the same violations, at the same places, in the same order."""
    chosen = SAMPLES[sample]
    profile, body = chosen.profile, padded(chosen.request(), chosen.profile)
    held = Held()
    judged(held, frozen(body), profile, as_history=chosen.as_history)
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(1, 2))):
            items = body[field_of(profile)]
            if items:
                data.draw(st.sampled_from(_CHANGES))(items, data.draw)
        as_history = data.draw(st.sampled_from([chosen.as_history, True, False]))
        changed = frozen(deepcopy(body))
        expected = list(map(str, validate(changed, profile, as_history=as_history)))
        assert judged(held, changed, profile, as_history=as_history) == expected


@pytest.mark.parametrize("gone", [0, 1])
def test_a_call_and_its_output_far_behind_it_are_held_together(gone: int) -> None:
    """In a conversation of items an output may stand anywhere behind its call: dropping either one is found, though all around it is fine."""
    profile = PROFILES["openai-responses"]
    call = {"type": "function_call", "call_id": "call_far", "name": "read", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_far", "output": "x"}
    talk = [thaw(CONVERSATIONS[profile.name].anything), _ANSWERS[profile.name]]
    near, far = [*talk * 3], [*talk * 20, thaw(CONVERSATIONS[profile.name].anything)]
    whole = {"model": "gpt-5", "input": [*near, call, *far, output, *far]}
    cut = whole | {"input": [item for item in whole["input"] if item is not (call, output)[gone]]}
    held = Held()
    judged(held, frozen(whole), profile, as_history=False)
    expected = list(map(str, validate(frozen(cut), profile, as_history=False)))
    assert expected
    assert judged(held, frozen(cut), profile, as_history=False) == expected


def test_a_field_of_another_type_is_another_field() -> None:
    """For Python 0 and false are equal; for a provider they are not."""
    profile = PROFILES["anthropic"]
    talk = [thaw(CONVERSATIONS[profile.name].anything), _ANSWERS[profile.name]] * PADS
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]}
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x", "is_error": False}
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    ends = thaw(CONVERSATIONS[profile.name].anything)
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": tools}
    body["messages"] = [ends, use, {"role": "user", "content": [result]}, _ANSWERS[profile.name], *talk, ends]
    held = Held()
    assert judged(held, frozen(body), profile, as_history=False) == []
    result["is_error"] = 0
    expected = list(map(str, validate(frozen(body), profile, as_history=False)))
    assert expected
    assert judged(held, frozen(body), profile, as_history=False) == expected


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_is_the_same_is_not_looked_at_again(sample: str) -> None:
    """The check of a request that differs in nothing looks at its end, and at no more than half of it."""
    chosen = SAMPLES[sample]
    body = frozen(padded(chosen.request(), chosen.profile))
    held = Held()
    assert judged(held, body, chosen.profile, as_history=chosen.as_history) == []
    whole = held.looked_at
    assert judged(held, body, chosen.profile, as_history=chosen.as_history) == []
    assert held.looked_at - whole <= whole // 2 + 2


_STRINGS = st.text(st.characters(exclude_categories=["Cs"]))
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _STRINGS


@settings(max_examples=settings().max_examples // 3)
@given(body=st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(_STRINGS, inner)))
def test_canonical_json_is_as_long_as_what_clients_send(body: object) -> None:
    """The bytes that a body is allowed are counted on its canonical form, which is no longer and no shorter than compact JSON."""
    compact = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    assert len(canonical_json(body)) == len(compact.encode())
