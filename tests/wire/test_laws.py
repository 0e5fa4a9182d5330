"""Laws of compiling, for any view and every provider."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from palaver import wire
from palaver.errors import InvalidRequest
from palaver.messages import (
    AssistantMessage,
    AudioContent,
    Content,
    ImageContent,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    decode,
    encode,
    thaw,
)
from palaver.providers import APIS, profile
from palaver.view import Block, Exchange, Turn, View
from palaver.wire import Call, How, Memo, Request, broken_at, units, validate
from tests.wire.any_views import PAYLOADS, SECRET, calls, closed_views, load, views
from tests.wire.scenes import BASH, MODELS, Scene, call
from tests.wire.vendor_types import hold_to_types

NAMES = tuple(APIS)
EVERY = pytest.mark.parametrize(
    "names", [pytest.param((name,), id=name) for name in NAMES] if settings().max_examples > 500 else [NAMES]
)
"""At every change a law draws the profile; in the soak each profile has all its examples."""
FEW = settings(max_examples=settings().max_examples * 6 // 10)
"""Views are large: fewer of them at every change, and all the more in the soak."""


def compiled(view: View, name: str, call: Call) -> Request:
    """Compile for the profile that fits the call's model."""
    return wire.compile(view, profile(name, call.model), call, load)


def strings(value: object) -> Iterator[str]:
    """Return every string of a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)


def marks_of(content: Content) -> Iterator[str]:
    """Return what shows in a request that a block is there, each as it is found in one of its strings."""
    if isinstance(content, TextContent):
        yield content.content
    elif isinstance(content, ThinkingContent):
        yield str(content.redacted or content.artefact.get("encrypted_content") or content.signature or content.content)
    elif isinstance(content, ToolCallContent) and content.error is None:
        yield from (word for word in strings(content.args) if json.dumps(word) == f'"{word}"')
    elif isinstance(content, ToolCallContent):
        yield content.arguments
    elif isinstance(content, ToolResultContent):
        yield content.text() if isinstance(content.content, str) else ""
    elif isinstance(content, ImageContent | AudioContent):
        for media in content.images if isinstance(content, ImageContent) else content.audio:
            yield media.url or ("" if media.digest not in PAYLOADS else "base64")


RESULTS = {
    "openai-chat": '"tool_call_id"',
    "openai-responses": '"function_call_output"',
    "anthropic": '"tool_result"',
    "gemini-interactions": '"function_result"',
}


@EVERY
@given(data=st.data(), view=views())
def test_law_1_law_9_law_12_any_request(names: tuple[str, ...], data: st.DataObject, view: View) -> None:
    """A34, R203, R204, R244: whatever a view holds, its request is valid, tells every loss, keeps what is private, and cannot be changed.

    One that ends on the assistant's words is valid as a history. Compiling is a function: keys, digest and report are the same every time.
    """
    name = data.draw(st.sampled_from(names))
    call = data.draw(calls(name))
    request, other = compiled(view, name, call), compiled(view, name, call)
    assert validate(request.body, request.profile, as_history=request.history) == ()
    request.check(as_history=True)
    if not call.stream:
        hold_to_types(name, thaw(request.body))
    assert json.dumps(request.body) == json.dumps(other.body)
    assert (request.digest, request.report, request.tool_names) == (other.digest, other.report, other.tool_names)
    text = request.data.decode("utf-8")
    assert SECRET not in text
    assert "terminate" not in set(strings(request.body))
    assert json.loads(text) == request.body
    assert_losses_are_reported(view, request)
    turns = [
        turn for exchange in view.exchanges for turn in exchange.turns if turn.role in {Role.ASSISTANT, Role.TOOL_CALL}
    ]
    made = [block for turn in turns for block in turn.blocks if isinstance(block.content, ToolCallContent)]
    assert text.count(RESULTS.get(name, '"functionResponse"')) == len(made)
    ours = list(request.tool_names.values())
    assert len(ours) == len(set(ours))
    assert {tool.name for tool in view.tools} <= set(ours)
    said = request.body[request.profile.conversation]
    for value in (request.body, said, said[0]):
        with pytest.raises(TypeError):
            value.clear()  # type: ignore[union-attr] # mappings have none; this one refuses


def assert_losses_are_reported(view: View, request: Request) -> None:
    """Of every block, what it says is found in the request, or the report has a change of the block."""
    found = "\n".join(strings(request.body))
    for turn in (turn for exchange in view.exchanges for turn in exchange.turns):
        for block in turn.blocks:
            if block.origin is None or request.report.about(block.origin):
                continue
            for mark in marks_of(block.content):
                if "from-harness" not in mark:
                    assert mark.strip() == "" or mark in found or mark == "base64"


def stored(block: Block) -> Block:
    """Return a block as it comes back from a store: its content encoded, decoded, and its payloads elsewhere."""
    body, _ = encode(AssistantMessage(contents=(block.content,)))
    return replace(block, content=decode(body).contents[0])


@EVERY
@FEW
@given(data=st.data(), view=views())
def test_same_bytes_from_memory_and_from_a_store(names: tuple[str, ...], data: st.DataObject, view: View) -> None:
    """Whether a payload is in memory, and in what order a program wrote the keys of arguments, changes nothing."""
    exchanges = tuple(
        Exchange.of(
            [replace(turn, blocks=tuple(map(stored, turn.blocks))) for turn in each.turns],
            runs=each.runs,
            derived=each.derived,
        )
        for each in view.exchanges
    )
    name = data.draw(st.sampled_from(names))
    call = data.draw(calls(name))
    one, other = compiled(view, name, call), compiled(replace(view, exchanges=exchanges), name, call)
    assert json.dumps(one.body) == json.dumps(other.body)


@EVERY
@FEW
@given(data=st.data(), view=closed_views(most=7), size=st.integers(1, 7))
def test_law_7_request_begins_like_the_one_before(
    names: tuple[str, ...], data: st.DataObject, view: View, size: int
) -> None:
    """D23, R311: when exchanges are appended, the units of the longer request begin with those of the shorter one.

    (What happens when media grow past a limit has a test of its own: these views are far below every one.)
    """
    name = data.draw(st.sampled_from(names))
    call = data.draw(calls(name, then=None))
    shorter = compiled(replace(view, exchanges=view.exchanges[:size]), name, call)
    longer = compiled(view, name, call)
    assume(
        not any(
            change.what == "text" and change.how is How.ADDED and change.why.startswith("the view")
            for change in shorter.report
        )
    )
    before, after = (
        units(shorter)[1:],
        units(longer)[1:],
    )  # without the head, whose tools may depend on the conversation
    assert after[: len(before)] == before
    if view.tools:
        assert broken_at(shorter, longer) is None


@EVERY
@FEW
@given(data=st.data(), view=closed_views())
def test_law_1_next_words_compile_like_logged_ones(names: tuple[str, ...], data: st.DataObject, view: View) -> None:
    """A request with `then` is the request of the view that holds these words: never a history, and valid."""
    words = Turn(role=Role.USER, blocks=(Block(content=TextContent("go on")),))
    name = data.draw(st.sampled_from(names))
    call = data.draw(calls(name, then="go on"))
    after = compiled(replace(view, exchanges=(*view.exchanges, Exchange.of([words]))), name, replace(call, then=None))
    request = compiled(view, name, call)
    assert request.data == after.data
    assert not request.history
    assert validate(request.body, request.profile) == ()


@EVERY
@FEW
@given(data=st.data(), view=views())
def test_cache_marks_are_few_and_optional(names: tuple[str, ...], data: st.DataObject, view: View) -> None:
    """R311: marks change nothing but themselves, there are no more than the provider takes, and without `cache` there are none."""
    name = data.draw(st.sampled_from(names))
    call = data.draw(calls(name))
    marked, plain = (compiled(view, name, replace(call, cache=cache)) for cache in (True, False))
    field = marked.profile.cache.field or "cache_control"
    assert f'"{field}"' not in plain.data.decode()
    assert marked.data.decode().count(f'"{field}"') <= marked.profile.cache.marks
    assert units(marked) == units(plain)
    if name == "anthropic":
        assert f'"{field}"' in marked.data.decode()


# --- the memo of compiled exchanges: the same requests, at the cost of what is new -----------------------------------------


def checked(view: View, name: str, call: Call, memo: Memo | None = None) -> Request:
    """Compile and check."""
    request = wire.compile(view, profile(name, call.model), call, load, memo)
    request.check(as_history=True)
    return request


@EVERY
@FEW
@given(data=st.data(), view=views(most=8))
def test_request_is_the_same_with_and_without_memo(names: tuple[str, ...], data: st.DataObject, view: View) -> None:
    """Whatever exchanges came, left or changed places between two requests, and whatever was asked before: bytes and report are equal."""
    name = data.draw(st.sampled_from(names))
    memo, count = Memo(), len(view.exchanges)
    asked = data.draw(calls(name))
    for _ in range(3):
        picked = data.draw(st.lists(st.integers(0, count - 1), max_size=10)) if count else []
        shown = replace(view, exchanges=tuple(view.exchanges[index] for index in picked))
        asked = asked if data.draw(st.booleans()) else data.draw(calls(name))
        with_memo, without = checked(shown, name, asked, memo), checked(shown, name, asked)
        assert with_memo.data == without.data
        assert with_memo.report == without.report
        assert thaw(with_memo.body) == thaw(without.body)


def agent(rounds: int) -> Scene:
    """Make many tool rounds."""
    scene = Scene(system=["Be brief."], tools=[BASH]).user("go")
    for number in range(rounds):
        scene.model_says(call(f"c{number}", command=str(number)), results=[f"r{number}"])
    return scene


class Counting:
    """Counts the exchanges that are compiled, by what they show."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.memo = scene, Memo()
        self.request: Request | None = None

    def fresh(self, name: str, **fields: Any) -> int:  # noqa: ANN401 - fields of a call
        """Compile, and return how many exchanges were not known."""
        known = [] if self.request is None else [piece.compiled for piece in self.request.pieces]
        asked = Call(model=MODELS[name], **fields)
        self.request = checked(self.scene.view(), name, asked, self.memo)
        return sum(all(piece.compiled is not each for each in known) for piece in self.request.pieces)


def test_tool_round_compiles_only_what_is_new() -> None:
    """A round adds one exchange; another model or another toolset begins anew; nothing but the last request is kept."""
    for name in NAMES:
        counting = Counting(agent(40))
        assert counting.fresh(name) == 41
        counting.scene.model_says(call("new"), results=["x"])
        assert (counting.fresh(name), counting.fresh(name, temperature=1.0 if name != "anthropic" else None)) == (1, 0)
        counting.scene.tools = ()
        assert counting.fresh(name) == 42


def test_fault_in_a_checked_conversation_is_found() -> None:
    """A wrong parameter, or a new exchange that a program spoiled, is found although everything else was checked."""
    for name in NAMES:
        counting = Counting(agent(40))
        counting.fresh(name)
        wrong = {"anthropic": "metadata", "gemini": "safetySettings", "gemini-interactions": "generation_config"}.get(
            name, "top_p"
        )
        with pytest.raises(InvalidRequest, match=wrong):
            counting.fresh(name, parameters={wrong: "many"})
        request = counting.request
        assert request is not None
        field = request.profile.conversation
        spoiled = replace(request, fields={**request.fields, field: [*request.fields[field][:-1], {"role": "nobody"}]})
        with pytest.raises(InvalidRequest):
            spoiled.check()
        with pytest.raises(InvalidRequest, match="JSON has no"):  # not compiled, and no JSON
            replace(request, fields={**request.fields, "odd": {1.5}}, written=(), pieces=()).check()
