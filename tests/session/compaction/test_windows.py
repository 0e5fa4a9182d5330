"""A fork that keeps a window of the messages is a dialog like any other: it is made smaller, and its views name nothing that it does not hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palaver import AssistantMessage, Dialog, Session, ToolCallContent, ToolMessage, ToolResultContent
from palaver.context import POLICIES, Meter
from palaver.context.ground import Ground, Layout, Room
from palaver.context.notice import NOTICE
from palaver.errors import InfeasibleBudget, InvalidInput
from palaver.log import Handle, Span, gaps, part_of
from palaver.messages import TextContent
from palaver.session.calls.composing import tokens_of
from palaver.store import MemoryStore
from palaver.tokens import counter
from palaver.view import Omission, Reason, View, fold, held, manifest, merged, restored

MODEL = "gpt-4o"
NAMED = re.compile(r"\b([0-9a-f]{12}:\d+)(?::\d+)?(?: to ([0-9a-f]{12}:\d+))?")


def grow(dialog: Dialog, acts: Sequence[str], tag: str) -> None:
    """Let some things happen."""
    for number, act in enumerate(acts):
        name, long = f"{tag}{number}", "word " * 90
        if act == "ask":
            dialog.put_text(f"Ask {name}: you must keep {name}.py. {long}")
        elif act == "work":
            call = ToolCallContent(id=name, name="bash", args={"command": f"cat {name}.py"})
            output = ToolResultContent(id=name, name="bash", content=long, is_error=number % 3 == 0)
            dialog.append([AssistantMessage(contents=(call,), response_id=name), ToolMessage.from_result(output)])
        elif act == "parts":
            dialog.append(AssistantMessage(content=long, response_id=name))
            dialog.append(AssistantMessage(content=f"and {name}", response_id=name))
        elif act == "pin" and len(dialog.messages):
            dialog.pin(dialog.messages.handle(number % len(dialog.messages)))


def named(view: View) -> Iterator[Handle]:
    """Give every entry that a view says it left out, was made of, or tells the model to recall: of ranges all of them."""
    for omission in view.omissions:
        yield from omission.handles()
    for block in (block for exchange in view.exchanges if exchange.derived for block in exchange.blocks()):
        yield from (Handle(run.dialog, seq) for run in block.sources for seq in range(run.start, run.stop))
        text = block.content.content if isinstance(block.content, TextContent) else ""
        for found in NAMED.finditer(text):
            first, last = Handle.parse(found[1]), Handle.parse(found[2] or found[1])
            yield from (Handle(first.dialog, seq) for seq in range(first.seq, last.seq + 1))


def strangers(dialog: Dialog) -> set[Handle]:
    """Give what the view names and the dialog does not hold."""
    spans = held(dialog.store, dialog.dialog_id, None)
    holds = {(span.dialog[:12], seq) for span in spans for seq in range(span.start, span.stop)}
    return {place for place in named(dialog.view()) if (place.dialog[:12], place.seq) not in holds}


ACTS = st.lists(st.sampled_from(["ask", "ask", "work", "work", "parts", "pin"]), min_size=2, max_size=9)
WINDOWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=3)


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(
    policy=st.sampled_from(sorted(POLICIES)),
    past=ACTS,
    windows=WINDOWS,
    since=ACTS,
    share=st.floats(0.2, 0.8),
    compacted=st.booleans(),
)
@example(
    policy="palaver",
    past=["ask", "parts"] * 6,
    windows=[(4, 1)],
    since=["ask", "parts"] * 8,
    share=0.3,
    compacted=False,
)
@example(
    policy="fold", past=["ask"] * 9, windows=[(3, 2), (5, 1)], since=["ask", "work"] * 4, share=0.3, compacted=True
)
def test_a_window_of_any_dialog_is_compacted_under_any_policy(
    policy: str, past: list[str], windows: list[tuple[int, int]], since: list[str], share: float, *, compacted: bool
) -> None:
    """What a preview promises is written down, reads back in a fresh process, names nothing foreign, and is undone; a call before stays what it was."""
    dialog = Session.create(MemoryStore(), "whole").root
    grow(dialog, past, "p")
    if compacted:
        small(dialog, "default", 0.5)
    for level, (last_n, first_k) in enumerate(windows):
        dialog = dialog.fork(last_n=last_n, first_k=first_k)
        grow(dialog, since[: level * 2], f"w{level}")
    grow(dialog, since, "s")
    with suppress(InfeasibleBudget):
        dialog.record_call(dialog.request("openai-chat", MODEL, policy=policy, budget=wanted(dialog, share)))
    whole, calls = dialog.view(), [call.request().data for call in dialog.invocations]
    if small(dialog, policy, share):
        assert strangers(dialog) == set()
        assert fold(dialog.store, dialog.dialog_id) == dialog.view()
        assert [call.request().data for call in dialog.invocations] == calls
        dialog.undo()
        assert dialog.view().exchanges == whole.exchanges


def wanted(dialog: Dialog, share: float) -> int:
    """Give a budget of a share of the view."""
    return max(int(tokens_of(dialog.view(), MODEL) * share), 60)


def small(dialog: Dialog, policy: str, share: float) -> bool:
    """Compact where that is feasible and worthwhile."""
    try:
        preview = dialog.compact(policy=policy, budget=wanted(dialog, share), model=MODEL)
    except InfeasibleBudget:
        return False
    if preview.worthwhile:
        preview.approve()
    return preview.worthwhile


@pytest.mark.parametrize("policy", sorted(POLICIES.keys() - {"full"}))
def test_no_policy_fails_at_a_window(policy: str) -> None:
    """A long conversation of which a window was kept is made smaller by every policy; what was left out of it is not what was never in it."""
    dialog = Session.create(MemoryStore(), "whole").root
    grow(dialog, ["ask", "work", "parts"] * 6, "p")
    dialog = dialog.fork(last_n=4, first_k=1)
    grow(dialog, ["ask", "work", "work", "parts"] * 6, "s")
    assert small(dialog, policy, 0.3)
    assert strangers(dialog) == set()


def test_a_call_that_was_recorded_with_a_hole_within_an_omission_is_given_back_so() -> None:
    """Earlier versions recorded one omission across what the fork does not hold: a past call says what it said."""
    dialog = Session.create(MemoryStore(), "whole").root
    grow(dialog, ["ask"] * 8, "p")
    dialog = dialog.fork(last_n=2, first_k=1)
    folded = dialog.view()
    (front, back) = folded.shared
    across = Omission(reason=Reason.OVER_BUDGET, span=Span(front.dialog, front.start, back.stop), messages=3)
    said = replace(folded, exchanges=folded.exchanges[-1:], omissions=(across,))
    assert restored(json.loads(json.dumps(manifest(said, folded))), folded) == said


SPANS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(1, 5)), max_size=8)


def spans_of(found: Sequence[tuple[str, int, int]]) -> list[Span]:
    """Give spans that do not overlap."""
    spans: list[Span] = []
    for dialog, start, length in sorted(found):
        if not spans or spans[-1].dialog != dialog or spans[-1].stop <= start:
            spans.append(Span(dialog, start, start + length))  # type: ignore[arg-type] # a dialog id is a string
    return spans


@given(SPANS)
def test_parts_are_what_gaps_part(found: list[tuple[str, int, int]]) -> None:
    """Two places are of one part just when everything between them is held; nothing that is held lies in a gap."""
    spans = spans_of(found)
    places = [Handle(span.dialog, seq) for span in spans for seq in range(span.start, span.stop)]
    between = gaps(reversed(spans))
    assert not any(place in gap for place in places for gap in between)
    for one, other in pairwise(places):
        together = one.dialog == other.dialog and one.seq + 1 == other.seq
        assert (part_of(one, between) == part_of(other, between)) is together


@given(SPANS)
def test_only_neighbours_in_what_is_held_are_joined(found: list[tuple[str, int, int]]) -> None:
    """Everything that a dialog shares is left out: what is said of it is all of that, and no more, in as few spans as it has parts."""
    shared = spans_of(found)
    gone = [
        Omission(reason=Reason.FOLDED, span=Span(span.dialog, seq, seq + 1))
        for span in shared
        for seq in range(span.start, span.stop)
    ]
    made = merged(gone, frozenset(), shared)
    assert [place for each in made for place in each.handles()] == [place for each in gone for place in each.handles()]
    assert len(made) == len({part_of(Handle(span.dialog, span.start), gaps(shared)) for span in shared})


def test_a_range_of_a_notice_ends_where_nothing_is_held() -> None:
    """What a notice tells to recall are two ranges where a window was cut, and one where all is held."""
    dialog = Session.create(MemoryStore(), "whole").root
    grow(dialog, ["ask"] * 8, "p")
    for fork, count in ((dialog.fork(), 1), (dialog.fork(last_n=4, first_k=2), 2)):
        grow(fork, ["ask"] * 3, "s")
        with pytest.raises(InvalidInput, match="not smaller"):
            fork.compact(policy="default", budget=10**6, model=MODEL).approve()
        fork.compact(policy="default", budget=wanted(fork, 0.3), model=MODEL).approve()
        told = next(block for x in fork.view().exchanges if x.derived for block in x.blocks())
        assert isinstance(told.content, TextContent)
        ranges = [found[0] for found in NAMED.finditer(told.content.content) if found[2]]
        assert len([each for each in ranges if each.startswith(dialog.dialog_id[:12])]) == count


def test_the_room_of_a_notice_holds_every_part_that_it_may_name() -> None:
    """Windows of windows: each part of a dialog is a range of its own, and the notice has never more than it was given room for."""
    dialog = Session.create(MemoryStore(), "whole").root
    grow(dialog, ["ask"] * 12, "p")
    rooms = []
    for last_n, first_k in ((0, 0), (9, 1), (7, 2), (5, 3)):
        dialog = dialog.fork(last_n=last_n, first_k=first_k)
        grow(dialog, ["ask"], f"w{last_n}")
        view = dialog.view()
        ground = Ground(view, Meter(counter(MODEL)), Room(high=10**6, low=10), NOTICE)
        for cut in range(1, len(view.exchanges)):
            (line,) = NOTICE.inserts(ground, Layout(cut=cut))
            assert ground.inserted(line.text, line.label) <= NOTICE.room(ground, cut)
        rooms.append(NOTICE.room(ground, len(view.exchanges) - 1))
    assert rooms == sorted(set(rooms))
