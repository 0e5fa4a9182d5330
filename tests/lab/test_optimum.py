"""The optimum is the least there is."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.lab.optimum import Load, optimum
from tests.lab.prices import SHEET


def _cost(load: Load, cuts: tuple[int, ...]) -> float:
    """Give the bill of cuts before some calls, call by call; infinite where a call does not fit that no cut could help."""
    total, held = 0.0, load.prefix
    for call, new in enumerate(load.new):
        before = sum(load.new[: call + 1])
        if call in cuts:
            left = min(load.after, before)
            total += load.prefix * (0.1 if load.warm[call] else 1.25) + left * 1.25
            held = load.prefix + left
            continue
        if held + new > load.room:
            return float("inf")
        total += held * (0.1 if load.warm[call] else 1.25) + new * 1.25
        held += new
    return total + load.output * 5.0


@given(
    new=st.lists(st.integers(1, 60), min_size=1, max_size=7),
    cold=st.sets(st.integers(0, 6)),
    prefix=st.integers(0, 30),
    after=st.integers(1, 40),
    room=st.integers(40, 300),
)
@settings(deadline=None, max_examples=60)
def test_no_choice_of_cuts_is_cheaper(new: list[int], cold: set[int], prefix: int, after: int, room: int) -> None:
    """Dynamic programming finds what trying every set of cuts finds."""
    load = Load(
        new=tuple(new),
        warm=tuple(index not in cold for index in range(len(new))),
        prefix=prefix,
        output=3,
        after=after,
        room=room,
    )
    every = [cuts for count in range(len(new) + 1) for cuts in combinations(range(len(new)), count)]
    best = min(_cost(load, cuts) for cuts in every)
    assert optimum(load, SHEET) == pytest.approx(best)
