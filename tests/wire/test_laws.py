"""Laws of compiling, for any view and every provider."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from palaver import wire
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
from palaver.view import Block, Exchange, Turn, View
from palaver.wire import PROFILES, Call, How, Request, broken_at, profile, units, validate
from tests.wire.any_views import PAYLOADS, SECRET, calls, closed_views, load, views
from tests.wire.vendor_types import hold_to_types

NAMES = tuple(PROFILES)
FEW = settings(max_examples=settings().max_examples * 3 // 10)
"""Views are large: fewer of them at every change, and all the more in the soak."""


def asked(name: str, **fixed: object) -> st.SearchStrategy[Call]:
    """Any call of a profile's models."""
    return calls(name, **fixed)


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


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=views())
def test_law_1_every_view_compiles_to_a_valid_request(name: str, data: st.DataObject, view: View) -> None:
    """Whatever a view holds, the request is taken by its provider; as a history where it ends on the assistant's words."""
    request = compiled(view, name, data.draw(asked(name)))
    assert validate(request.body, request.profile, as_history=request.history) == ()
    request.check()


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=views())
def test_law_1_every_view_with_next_words_is_a_request(name: str, data: st.DataObject, view: View) -> None:
    """A view that ends on the assistant's words becomes a request with `then`; nothing is a history any more."""
    request = compiled(view, name, data.draw(asked(name, then="go on")))
    assert not request.history
    assert validate(request.body, request.profile) == ()
    assert "go on" in request.data.decode()


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=views())
def test_law_1_requests_pass_the_providers_own_types(name: str, data: st.DataObject, view: View) -> None:
    """The request types of the real packages take the body, foreign fields forbidden."""
    request = compiled(view, name, data.draw(asked(name, stream=False)))
    hold_to_types(name, thaw(request.body))


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=views())
def test_same_view_gives_the_same_bytes(name: str, data: st.DataObject, view: View) -> None:
    """Compiling is a function: the order of keys, the digest and the report are the same every time."""
    call = data.draw(asked(name))
    one, other = compiled(view, name, call), compiled(view, name, call)
    assert json.dumps(one.body) == json.dumps(other.body)
    assert (one.digest, one.report, one.tool_names) == (other.digest, other.report, other.tool_names)


def stored(block: Block) -> Block:
    """Return a block as it comes back from a store: its content encoded, decoded, and its payloads elsewhere."""
    body, _ = encode(AssistantMessage(contents=(block.content,)))
    return replace(block, content=decode(body).contents[0])


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=views())
def test_same_bytes_from_memory_and_from_a_store(name: str, data: st.DataObject, view: View) -> None:
    """Whether a payload is in memory, and in what order a program wrote the keys of arguments, changes nothing."""
    exchanges = tuple(
        Exchange.of(
            [replace(turn, blocks=tuple(map(stored, turn.blocks))) for turn in each.turns],
            runs=each.runs,
            derived=each.derived,
        )
        for each in view.exchanges
    )
    call = data.draw(asked(name))
    one, other = compiled(view, name, call), compiled(replace(view, exchanges=exchanges), name, call)
    assert json.dumps(one.body) == json.dumps(other.body)


def trimmed(request: Request) -> tuple[bytes, ...]:
    """Return a request's units without its head where the tools of the head depend on the conversation."""
    return units(request)[1:]


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=closed_views(most=7), size=st.integers(1, 7))
def test_law_7_d23_request_begins_like_the_one_before(name: str, data: st.DataObject, view: View, size: int) -> None:
    """When exchanges are appended, the units of the longer request begin with those of the shorter one.

    (What happens when media grow past a limit has a test of its own: these views are far below every one.)
    """
    call = data.draw(asked(name, then=None))
    shorter = compiled(replace(view, exchanges=view.exchanges[:size]), name, call)
    longer = compiled(view, name, call)
    assume(
        not any(
            change.what == "text" and change.how is How.ADDED and change.why.startswith("the view")
            for change in shorter.report
        )
    )
    assert trimmed(longer)[: len(trimmed(shorter))] == trimmed(shorter)
    if view.tools:
        assert broken_at(shorter, longer) is None


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=closed_views())
def test_next_words_compile_like_logged_ones(name: str, data: st.DataObject, view: View) -> None:
    """A request with `then` is the request of the view that holds these words."""
    words = Turn(role=Role.USER, blocks=(Block(content=TextContent("go on")),))
    call = data.draw(asked(name, then="go on"))
    after = compiled(replace(view, exchanges=(*view.exchanges, Exchange.of([words]))), name, replace(call, then=None))
    assert compiled(view, name, call).data == after.data


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=views())
def test_law_12_nothing_private_is_on_the_wire(name: str, data: st.DataObject, view: View) -> None:
    """R203, R204, R244: metadata, `terminate` and fields that no block has stay here; there is no lone surrogate and no NUL in what is sent."""
    request = compiled(view, name, data.draw(asked(name)))
    assert SECRET not in request.data.decode()
    assert "terminate" not in set(strings(request.body))
    assert json.loads(request.data.decode("utf-8")) == request.body


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


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=views())
def test_law_9_every_loss_is_in_the_report(name: str, data: st.DataObject, view: View) -> None:
    """Of every block, what it says is found in the request, or the report has a change of the block."""
    request = compiled(view, name, data.draw(asked(name)))
    found = "\n".join(strings(request.body))
    for turn in (turn for exchange in view.exchanges for turn in exchange.turns):
        for block in turn.blocks:
            if block.origin is None or request.report.about(block.origin):
                continue
            for mark in marks_of(block.content):
                if "from-harness" not in mark:
                    assert mark.strip() == "" or mark in found or mark == "base64"


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=views())
def test_every_call_is_sent_and_answered(name: str, data: st.DataObject, view: View) -> None:
    """As many calls are sent as the assistant made, and every medium is sent or reported."""
    request = compiled(view, name, data.draw(asked(name)))
    made = [
        block.content
        for exchange in view.exchanges
        for turn in exchange.turns
        if turn.role in {Role.ASSISTANT, Role.TOOL_CALL}
        for block in turn.blocks
        if isinstance(block.content, ToolCallContent)
    ]
    keys = {"openai-chat": '"tool_call_id"', "openai-responses": '"function_call_output"', "anthropic": '"tool_result"'}
    key = keys.get(name, '"functionResponse"')
    assert request.data.decode().count(key) == len(made)


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), view=views())
def test_r311_cache_marks_are_few_and_optional(name: str, data: st.DataObject, view: View) -> None:
    """Marks change nothing but themselves, there are no more than the provider takes, and without `cache` there are none."""
    call = data.draw(asked(name))
    marked, plain = (compiled(view, name, replace(call, cache=cache)) for cache in (True, False))
    field = marked.profile.cache.field or "cache_control"
    assert f'"{field}"' not in plain.data.decode()
    assert marked.data.decode().count(f'"{field}"') <= marked.profile.cache.marks
    assert units(marked) == units(plain)
    if name == "anthropic":
        assert f'"{field}"' in marked.data.decode()


@FEW
@given(view=views(), data=st.data())
def test_tool_names_go_both_ways(view: View, data: st.DataObject) -> None:
    """Every name on the wire is that of one tool we know, and no two tools share one."""
    for name in NAMES:
        request = compiled(view, name, data.draw(asked(name)))
        ours = list(request.tool_names.values())
        assert len(ours) == len(set(ours))
        declared = {tool.name for tool in view.tools}
        assert declared <= set(ours)


@FEW
@given(view=views(), data=st.data())
def test_request_cannot_be_changed(view: View, data: st.DataObject) -> None:
    """The body is read-only all the way down, so that its digest stays true."""
    for name in NAMES:
        body = compiled(view, name, data.draw(asked(name))).body
        said = body.get("messages") or body.get("input") or body["contents"]
        for value in (body, said, said[0]):
            with pytest.raises(TypeError):
                value.clear()  # type: ignore[union-attr] # mappings have none; this one refuses
