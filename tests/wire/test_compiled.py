"""What was compiled before changes no request: whoever goes on from it gets what a fresh process gives."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import wire
from palaver.errors import InvalidRequest
from palaver.testing.view_strategies import calls, exchanges, load, tool_specs, views
from palaver.view import Exchange, View
from palaver.wire import PROFILES, Call, Compiled, Request, profile
from tests.wire.scenes import BASH, MODELS, Scene, call

NAMES = tuple(PROFILES)
FEW = settings(max_examples=settings().max_examples * 3 // 10, deadline=None)


def faults(request: Request) -> tuple[str, ...]:
    """Give what is wrong with a request, as its check says."""
    try:
        request.check()
    except InvalidRequest as error:
        return tuple(map(str, error.violations))
    return ()


def told(request: Request) -> tuple[object, ...]:
    """Give everything that a request says."""
    return (
        json.dumps(request.body),
        request.data,
        request.digest,
        request.report,
        dict(request.tool_names),
        request.history,
        faults(request),
    )


@st.composite
def edits(draw: st.DrawFn, view: View) -> View:
    """A view that some of another one's exchanges are in, the very same objects."""
    kept = list(view.exchanges)
    seq = 1 + max((run.stop for each in kept for run in each.runs), default=0)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(kept)))
        what = draw(st.sampled_from(["add", "add", "insert", "drop", "again", "stale", "pin", "move"]))
        if what in {"add", "insert"}:
            new = draw(exchanges(seq, closed=draw(st.booleans())))
            seq += 4
            kept.insert(len(kept) if what == "add" else place, new)
        elif place < len(kept):
            one = kept[place]
            others: dict[str, list[Exchange]] = {
                "drop": [],
                "again": [one, one],
                "stale": [replace(one, stale=not one.stale)],
                "pin": [replace(one, pinned=True)],
                "move": [],
            }
            kept[place : place + 1] = others[what]
            if what == "move":
                kept.insert(draw(st.integers(0, len(kept))), one)
    changed = replace(view, exchanges=tuple(kept))
    if draw(st.integers(0, 5)) == 0:
        changed = replace(changed, tools=tuple(draw(st.lists(tool_specs(), max_size=3))))
    return replace(changed, model=draw(st.sampled_from([view.model, view.model, view.model, "gpt-5.2"])))


@FEW
@given(data=st.data(), view=views(most=10))
def test_law_a_compiler_that_is_gone_on_with_gives_what_a_fresh_one_gives(data: st.DataObject, view: View) -> None:
    """Whatever is added, dropped, doubled, moved or edited, and whichever provider and model is asked: every byte, note and fault is the same."""
    compiled = Compiled()
    asked: dict[str, Call] = {}
    for _ in range(data.draw(st.integers(2, 6))):
        name = data.draw(st.sampled_from(NAMES[:2] * 2 + NAMES))
        if name not in asked or data.draw(st.integers(0, 2)) == 0:
            asked[name] = data.draw(calls(name))
        rules = profile(name, asked[name].model)
        gone_on = wire.compile(view, rules, asked[name], load, compiled=compiled)
        assert told(gone_on) == told(wire.compile(view, rules, asked[name], load))
        view = data.draw(edits(view))


def long_scene(rounds: int) -> Scene:
    """A conversation in which tools are called, and now and then somebody asks."""
    scene = Scene(system=("Be careful.",), tools=(BASH,))
    for number in range(rounds):
        if number % 7 == 0:
            scene.user(f"Question {number}.")
        scene.model_says(call(f"call_{number}", "bash", command=f"cat {number}.py"), results=[f"text {number}"])
    return scene


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rounds", [40, 400])
def test_a_round_more_costs_a_round_however_long_the_conversation(name: str, rounds: int) -> None:
    """What is compiled, and what is looked at by the check, is what is new and its neighbours: the same at ten times the length."""
    scene, compiled = long_scene(rounds), Compiled()
    rules, asked = profile(name, MODELS[name]), Call(model=MODELS[name])
    first = wire.compile(scene.view(), rules, asked, load, compiled=compiled)
    first.check()
    shelf = compiled.shelf(rules, asked.model, scene.view().model, asked=False)
    for number in range(5):
        made, looked_at = shelf.made, shelf.checked.looked_at
        scene.model_says(call(f"more_{number}", "bash", command="cat more.py"), results=["more"])
        wire.compile(scene.view(), rules, asked, load, compiled=compiled).check()
        assert shelf.made - made == 1
        assert shelf.checked.looked_at - looked_at <= 16


@pytest.mark.parametrize("name", NAMES)
def test_an_edit_in_the_middle_costs_its_neighbours(name: str) -> None:
    """One exchange that is shown otherwise has its round compiled anew, and what stands around it looked at."""
    view, compiled = long_scene(200).view(), Compiled()
    rules, asked = profile(name, MODELS[name]), Call(model=MODELS[name])
    wire.compile(view, rules, asked, load, compiled=compiled).check()
    shelf = compiled.shelf(rules, asked.model, view.model, asked=False)
    made, looked_at = shelf.made, shelf.checked.looked_at
    edited = replace(view.exchanges[100], pinned=True)
    changed = replace(view, exchanges=(*view.exchanges[:100], edited, *view.exchanges[101:]))
    wire.compile(changed, rules, asked, load, compiled=compiled).check()
    assert shelf.made - made == 1
    assert shelf.checked.looked_at - looked_at <= 32


def test_what_is_kept_is_what_the_last_request_had() -> None:
    """However often the conversation is begun anew, no more rounds are kept than one request has, for a few providers and models."""
    compiled = Compiled()
    for number in range(20):
        view = long_scene(30).view()
        for model in ("gpt-5.2", "gpt-4o", "o3", "gpt-5", "gpt-5-mini", f"other-{number}"):
            wire.compile(view, profile("openai-chat", model), Call(model=model), load, compiled=compiled)
    assert compiled.held <= 4 * 31
