"""The cut: between target and limit, in steps, from the log alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from palaver.context.cut import Stage, find_cut, roundest, run_stages
from palaver.context.fit import LIST
from palaver.context.layout import Layout
from palaver.context.meter import Meter
from palaver.context.operators import clear, drop, drop_with_note
from palaver.messages import AssistantMessage, Message, UserMessage
from palaver.tokens import Budget
from palaver.view import Reason, fold_messages
from tests.context.pencil import Characters, talk, work

LIMIT = 10_000


def laid_out(messages: Sequence[Message], limit: int = LIMIT, target: int | None = None) -> Layout:
    """Lay out a list of messages in which a token is a character."""
    budget = Budget(max_tokens=limit, safety_buffer=0, target_tokens=target)
    return Layout.of(fold_messages(messages, LIST), budget, Meter(Characters()))


def bare(layout: Layout, cut: int) -> Layout:
    """Drop what is old, and say nothing of it: the plainest stage."""
    return layout.without(0, cut, Reason.OVER_BUDGET)


def dropped(layout: Layout) -> int:
    """Return the size of what is left out."""
    return sum(layout.recorded(index) for gone, _ in layout.dropped for index in gone)


# --- the formula ------------------------------------------------------------------------------------------------------------


def test_pencil_the_dropped_prefix_is_a_multiple_of_the_step() -> None:
    """With even sizes, ceil((T - L) / (L - G)) * (L - G) tokens go, rounded up to a message, and nothing while the view fits."""
    for target in [None, 2_000, 8_000]:
        for total in range(9, 60):
            layout = laid_out(talk(total), target=target)
            step = LIMIT - layout.target
            steps = math.ceil((total * 1_000 - LIMIT) / step) if total * 1_000 > LIMIT else 0
            assert dropped(run_stages(layout, bare)) == math.ceil(steps * step / 1_000) * 1_000, target


def test_instructions_that_leave_little_room_raise_the_target() -> None:
    """A cut leaves the conversation at least a quarter of the room that instructions and tools leave it."""
    layout = laid_out([Message(role="system", content="i" * 6_000), *talk(20)])
    assert (layout.fixed, layout.target) == (6_001, 6_001 + (LIMIT - 6_001) // 4)
    assert layout.target < run_stages(layout, bare).total() <= LIMIT


# --- laws -------------------------------------------------------------------------------------------------------------------

SIZES = st.lists(st.integers(1, 4_000), min_size=5, max_size=60)


def chat(sizes: Sequence[int]) -> list[Message]:
    """Return messages of these sizes, of model and user in turn, the last one the user's."""
    kinds = (UserMessage, AssistantMessage)
    return [kinds[(len(sizes) - at + 1) % 2](content="x" * size) for at, size in enumerate(sizes)]


@given(SIZES, st.sampled_from([bare, drop, drop_with_note, clear]), st.sampled_from([None, 1_000, 9_000]))
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


@given(st.lists(st.integers(1, 1_200), min_size=20, max_size=70))
def test_a_cut_never_moves_back(sizes: list[int]) -> None:
    """As the log grows the cut stays, or goes on by about a step: at most two moves, and one for each half step of growth."""
    messages = chat(sizes)
    cuts = []
    for length in range(1, len(sizes) + 1):
        found = run_stages(laid_out(messages[:length]), bare)
        cuts.append(found.dropped[-1][0].stop if found.dropped else 0)
    moves = [cut for before, cut in pairwise(cuts) if cut != before]
    assert cuts == sorted(cuts)
    assert len(moves) <= 2 + max(sum(sizes) - LIMIT, 0) // ((LIMIT // 2) // 2 - 1_200 // 2)


def test_a_stage_that_suffices_is_the_last_one() -> None:
    """Where clearing reaches the limit nothing is folded; where it cannot, the next stage starts from the view as it is."""
    cleared = run_stages(laid_out(work(14)), clear, drop)
    folded = run_stages(laid_out(work(300, size=60)), clear, drop)
    assert (bool(cleared.forms), cleared.dropped) == (True, ())
    assert folded.dropped
    assert not folded.forms


def test_the_newest_exchange_is_never_old() -> None:
    """Where the newest exchange alone is over the limit, no cut is found."""
    layout = laid_out([*talk(3), UserMessage(content="x" * 20_000)])
    assert find_cut(layout, bare) is None


def test_a_cut_stops_at_what_is_to_be_left_alone() -> None:
    """`stop` is the newest cut; where that does not suffice there is none."""
    layout = laid_out(talk(20))
    found = find_cut(layout, bare, stop=10)
    assert found is not None
    assert found.dropped[-1][0].stop == 10
    assert find_cut(layout, bare, stop=9) is None


def test_t3_a_window_of_a_few_tokens_has_a_cut() -> None:
    """No constant of ours is larger than a small window."""
    for limit in range(2, 40):
        layout = laid_out([UserMessage(content="x") for _ in range(50)], limit=limit)
        assert 0 < run_stages(layout, bare).total() <= limit


# --- roundness --------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 500), min_size=2, max_size=60), st.integers(1, 700), st.data())
def test_the_roundest_boundary_reaches_the_roundest_multiple(sizes: list[int], step: int, data: st.DataObject) -> None:
    """Of the multiples of a power of two times the step, the highest power that some boundary reaches."""
    positions = [0]
    for size in sizes:
        positions.append(positions[-1] + size)
    first = data.draw(st.integers(1, len(sizes)))
    last = data.draw(st.integers(first, len(sizes)))
    chosen = roundest(positions, first, last, step)
    assert first <= chosen <= last
    power = next(
        (
            power
            for power in range(30, -1, -1)
            if positions[last] // (step << power) > positions[first - 1] // (step << power)
        ),
        None,
    )
    if power is not None:
        unit = step << power
        reached = positions[last] // unit * unit
        assert positions[chosen] >= reached
        assert chosen == first or positions[chosen - 1] < reached
