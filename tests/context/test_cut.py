"""The cut: between target and limit, in steps, from the log alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from palaver.context.cut import Phase, Stage, run_stages
from palaver.context.layout import Layout
from palaver.context.meter import Meter
from palaver.context.operators import clear, drop, drop_with_note
from palaver.context.recall import LIST
from palaver.messages import AssistantMessage, Message, UserMessage
from palaver.tokens import Budget
from palaver.view import Reason, fold_messages
from tests.context.pencil import COUNTER, prose, talk

LIMIT = 2_000


def laid_out(messages: Sequence[Message], limit: int = LIMIT, target: int | None = None) -> Layout:
    """Lay out a list of messages of English text."""
    budget = Budget(max_tokens=limit, safety_buffer=0, target_tokens=target)
    return Layout.of(fold_messages(messages, LIST), budget, Meter(COUNTER))


def bare(layout: Layout, cut: int) -> Layout:
    """Drop what is old, and say nothing of it: the plainest stage."""
    return layout.without(0, cut, Reason.OVER_BUDGET)


def test_instructions_that_leave_little_room_raise_the_target() -> None:
    """A cut leaves the conversation at least a quarter of the room that instructions and tools leave it."""
    layout = laid_out([Message(role="system", content=prose(1_200)), *talk(20, 200)])
    assert (layout.fixed, layout.target) == (1_201, 1_201 + (LIMIT - 1_201) // 4)
    assert layout.target < run_stages(layout, bare).total() <= LIMIT


SIZES = st.lists(st.integers(1, 800), min_size=5, max_size=60)


def chat(sizes: Sequence[int]) -> list[Message]:
    """Return messages of these sizes, of model and user in turn, the last one the user's."""
    kinds = (UserMessage, AssistantMessage)
    return [kinds[(len(sizes) - at + 1) % 2](content=prose(size)) for at, size in enumerate(sizes)]


@given(SIZES, st.sampled_from([bare, drop, drop_with_note, clear]), st.sampled_from([None, 200, 1_800]))
def test_a_cut_lands_between_target_and_limit(sizes: list[int], stage: Stage, target: int | None) -> None:
    """Or at the first boundary at or under the target, where no multiple of the step lies between; a boundary that skips both is the first under the limit."""
    layout = laid_out(chat(sizes), target=target)
    found = run_stages(layout, stage)
    if layout.fits():
        assert found is layout
        return
    every = [stage(layout, cut).total() for cut in range(1, layout.end)]
    allowed = [size for size in every if layout.target < size <= LIMIT]
    under = [size for size in every if size <= LIMIT]
    if allowed and every == sorted(every, reverse=True):
        assert max((size for size in every if size <= layout.target), default=layout.target) <= found.total() <= LIMIT
    elif under and every == sorted(every, reverse=True):
        assert found.total() == max(under)


@given(SIZES, st.sampled_from([bare, drop, drop_with_note, clear]), st.sampled_from([None, 200, 1_800]))
def test_a_committed_cut_is_the_first_at_the_target(sizes: list[int], stage: Stage, target: int | None) -> None:
    """Where a later cut is smaller: the first at or under the target, or the newest where none is. A phase that protects a tail cuts before it."""
    layout = replace(laid_out(chat(sizes), target=target), committed=True)
    if layout.fits():
        return
    every = [stage(layout, cut).total() for cut in range(1, layout.end)]
    if every != sorted(every, reverse=True) or every[-1] > LIMIT:
        return
    assert run_stages(layout, stage).total() == next((size for size in every if size <= layout.target), every[-1])
    stop = next(cut for cut, size in enumerate(every, start=1) if size <= LIMIT)
    assert run_stages(layout, Phase(stage, target=100, stop=stop)).total() == every[stop - 1]


@given(st.lists(st.integers(1, 240), min_size=20, max_size=45))
def test_a_cut_never_moves_back(sizes: list[int]) -> None:
    """As the log grows the cut stays, or goes on by about a step: at most two moves, and one for each half step of growth."""
    messages = chat(sizes)
    cuts = []
    for length in range(1, len(sizes) + 1):
        found = run_stages(laid_out(messages[:length]), bare)
        cuts.append(found.dropped[-1][0].stop if found.dropped else 0)
    moves = [cut for before, cut in pairwise(cuts) if cut != before]
    assert cuts == sorted(cuts)
    assert len(moves) <= 2 + max(sum(sizes) - LIMIT, 0) // ((LIMIT // 2) // 2 - 240 // 2)
