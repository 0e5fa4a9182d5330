"""Operators: each changes old exchanges only, makes them smaller, and names the handle of what it hides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.context.layout import Layout
from palaver.context.meter import Meter
from palaver.context.operators import clear, drop, drop_reasoning, drop_with_note, hide_media, shorten
from palaver.context.recall import LIST
from palaver.log import Handle
from palaver.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    Speaker,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.tokens import Budget
from palaver.view import View, apply, fold_messages
from tests.context.pencil import COUNTER, METER, did, prose, work

Operator = Callable[[Layout, int], Layout]

PICTURE = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + b"\0\0\0\x40" * 2 + b"\x08\x02\0\0\0"


def laid_out(messages: Sequence[Message], limit: int = 10_000, pinned: Sequence[int] = ()) -> Layout:
    """Lay out a list of messages in which a token is a character."""
    return Layout.of(fold_messages(messages, LIST, pinned=pinned), Budget.of_input(limit), Meter(COUNTER))


def made(layout: Layout) -> View:
    """Return the view that a layout leads to."""
    return apply(layout.view, layout.plan("p")) if layout.plan("p") else layout.view


def thinking(at: int) -> list[Message]:
    """Return a response with thinking, a call, and its result."""
    contents = (ThinkingContent("why " * 50), TextContent("so"), ToolCallContent(f"t{at}", "bash", args={}))
    return [AssistantMessage(contents=contents), ToolMessage.from_result(ToolResultContent(f"t{at}", "ok"))]


def picture(at: int) -> list[Message]:
    """Return a call whose result is a text and an image."""
    content = (TextContent(f"seen {at} " + "." * 200), ImageContent(images=[PICTURE]))
    call = AssistantMessage(contents=(ToolCallContent(f"p{at}", "look", args={}),))
    return [call, ToolMessage.from_result(ToolResultContent(f"p{at}", content))]


OPERATORS: dict[str, Operator] = {
    "clear": clear,
    "drop": drop,
    "drop_with_note": drop_with_note,
    "hide_media": hide_media,
    "drop_reasoning": drop_reasoning,
    "shorten": lambda layout, _: shorten(layout, largest=300, shown=100),
}

MIXED = [
    UserMessage(content="task"),
    *work(2)[1:],
    *thinking(1),
    UserMessage(content="then"),
    *picture(1),
    *did(7, prose(2_000)),
    *thinking(2),
    UserMessage(content="now"),
    *did(8, prose(900)),
]


@pytest.mark.parametrize("name", OPERATORS)
@given(cut=st.integers(0, 9), pinned=st.sets(st.integers(0, 15), max_size=2))
def test_an_operator_changes_old_exchanges_only(name: str, cut: int, pinned: set[int]) -> None:
    """Nothing at or after the cut changes, nor what is protected; the layout's size is that of the view; nothing grows."""
    before = laid_out(MIXED, pinned=tuple(pinned))
    after = OPERATORS[name](before, cut)
    view = made(after)
    assert after.total() == METER.view(view).total or name in {"drop", "drop_with_note"}
    assert after.total() >= METER.view(view).total
    shown = {each.first: each for each in view.exchanges if each.first is not None}
    for index, exchange in enumerate(before.view.exchanges):
        if name != "shorten" and (index >= cut or index in before.protected):
            assert exchange.first is not None
            assert shown[exchange.first] == exchange
        elif exchange.first in shown:
            assert METER.exchange(shown[exchange.first]) <= METER.exchange(exchange)


@pytest.mark.parametrize("name", OPERATORS)
@given(cut=st.integers(0, 9))
def test_every_block_in_another_form_names_its_handle(name: str, cut: int) -> None:
    """R277: what stands for a block says how to recall it, and the text that stands for exchanges names the range."""
    layout = OPERATORS[name](laid_out(MIXED), cut)
    plan = layout.plan("p")
    assert all(str(rewrite.target) in rewrite.text for rewrite in plan.rewrites)
    assert all(str(Handle(LIST, 0))[:12] in insert.text and insert.sources for insert in plan.inserts)
    dropped = {
        place for gone, _ in layout.dropped for index in gone for place in layout.view.exchanges[index].entries()
    }
    spans = [range(run.start, run.stop) for insert in plan.inserts for run in insert.sources]
    assert all(any(place.seq in span for span in spans) for place in dropped)


def test_a_reference_is_never_replaced_by_a_reference() -> None:
    """A38, R282: applied again to the view that it made, an operator changes nothing."""
    for name in ["clear", "hide_media", "shorten"]:
        first = OPERATORS[name](laid_out(MIXED), 9)
        again = OPERATORS[name](Layout.of(made(first), Budget.of_input(10_000), Meter(COUNTER)), 9)
        assert first.plan("p").rewrites, name
        assert not again.plan("p").rewrites, name


def test_outputs_of_text_protocols_are_outputs() -> None:
    """R253, R283: a user's message whose speaker is a tool is an output; what the human says never is."""
    said = [
        UserMessage(content="o" * 900, speaker=Speaker.TOOL),
        AssistantMessage(content="a"),
        UserMessage(content="h" * 900),
        AssistantMessage(content="b"),
        UserMessage(content="now"),
    ]
    assert sorted(clear(laid_out(said), 4).forms) == [0]


def test_thinking_stays_with_the_open_tool_loop() -> None:
    """T12: only thinking before the newest user message goes."""
    layout = drop_reasoning(laid_out([*MIXED, *thinking(3)]), 20)
    assert [remove.target.seq for remove in layout.plan("p").removes] == [5, 12]
