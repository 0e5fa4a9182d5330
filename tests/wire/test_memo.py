"""The memo of compiled exchanges: the same requests, at the cost of what is new."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import wire
from palaver.errors import InvalidRequest
from palaver.messages import thaw
from palaver.view import View
from palaver.wire import Call, Memo, Request, profile, validate
from tests.wire.any_views import calls, load, views
from tests.wire.scenes import BASH, MODELS, Scene, call

NAMES = tuple(MODELS)
FEW = settings(max_examples=settings().max_examples * 6 // 10)


def compiled(view: View, name: str, asked: Call, memo: Memo | None = None) -> Request:
    """Compile and check."""
    request = wire.compile(view, profile(name, asked.model), asked, load, memo)
    request.check()
    return request


@FEW
@given(name=st.sampled_from(tuple(NAMES)), data=st.data(), view=views(most=8))
def test_request_is_the_same_with_and_without_memo(name: str, data: st.DataObject, view: View) -> None:
    """Whatever exchanges came, left or changed places between two requests, and whatever was asked before: bytes and report are equal."""
    memo, count = Memo(), len(view.exchanges)
    asked = data.draw(calls(name))
    for _ in range(3):
        picked = data.draw(st.lists(st.integers(0, count - 1), max_size=10)) if count else []
        shown = replace(view, exchanges=tuple(view.exchanges[index] for index in picked))
        asked = asked if data.draw(st.booleans()) else data.draw(calls(name))
        with_memo, without = compiled(shown, name, asked, memo), compiled(shown, name, asked)
        assert with_memo.data == without.data
        assert with_memo.report == without.report
        assert thaw(with_memo.body) == thaw(without.body)


def agent(rounds: int, *, words_at: int = 0, done: bool = False) -> Scene:
    """Make many tool rounds; at one the user interrupts, or speaks after the model was done."""
    scene = Scene(system=["Be brief."], tools=[BASH]).user("go")
    for number in range(rounds):
        scene.model_says(call(f"c{number}", command=str(number)), results=[f"r{number}"])
        if number == words_at:
            (scene.model_says("Done.") if done else scene).user("and?")
    return scene


class Counting:
    """Counts the exchanges that are compiled, by what they show."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.memo = scene, Memo()

    def fresh(self, name: str, **fields: Any) -> int:  # noqa: ANN401 - fields of a call
        """Compile, and return how many exchanges were not known."""
        before = set(map(id, getattr(self.memo, "_compiled").values()))  # noqa: B009 - it is private
        asked = Call(model=MODELS[name], **fields)
        self.request = compiled(self.scene.view(), name, asked, self.memo)
        return len([each for each in getattr(self.memo, "_compiled").values() if id(each) not in before])  # noqa: B009


def test_tool_round_compiles_only_what_is_new() -> None:
    """A round adds one exchange; another model or another toolset begins anew; nothing but the last request is kept."""
    for name in NAMES:
        counting = Counting(agent(40))
        assert counting.fresh(name) == 42
        counting.scene.model_says(call("new"), results=["x"])
        assert (counting.fresh(name), counting.fresh(name, temperature=1.0 if name != "anthropic" else None)) == (1, 0)
        counting.scene.tools = ()
        assert counting.fresh(name) == 43


def test_check_looks_only_at_what_is_new() -> None:
    """After a request was checked, the next one is judged by an excerpt: its beginning of the turn and what is new."""
    for name in NAMES:
        for words_at, done in product((0, 20, 39), (False, True)):
            _assert_checked_by_excerpt(name, words_at, done)


def _assert_checked_by_excerpt(name: str, words_at: int, done: bool) -> None:
    counting = Counting(agent(40, words_at=words_at, done=done))
    counting.fresh(name)
    counting.scene.model_says(call("new"), results=["x"])
    counting.fresh(name)
    request = wire.compile(
        counting.scene.view(), profile(name, MODELS[name]), Call(model=MODELS[name]), load, counting.memo
    )
    excerpt = request._excerpt()
    assert excerpt is not None
    field = request.profile.conversation
    assert len(excerpt[field]) < len(request.body[field]) / 2
    assert validate(excerpt, request.profile) == ()


def test_fault_in_a_checked_conversation_is_found() -> None:
    """A wrong parameter, or a new exchange that a program spoiled, is found although everything else was checked."""
    for name in NAMES:
        counting = Counting(agent(40))
        counting.fresh(name)
        wrong = {"openai-chat": "top_p", "openai-responses": "top_p", "anthropic": "top_k", "gemini": "safetySettings"}[
            name
        ]
        with pytest.raises(InvalidRequest, match=wrong):
            counting.fresh(name, parameters={wrong: "many"})
        request = counting.request
        field = request.profile.conversation
        spoiled = replace(request, body={**request.body, field: [*request.body[field][:-1], {"role": "nobody"}]})
        with pytest.raises(InvalidRequest):
            spoiled.check()
