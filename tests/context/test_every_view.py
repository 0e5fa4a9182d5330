"""Every policy over the recorded sessions, at every budget, for every profile: a sample at every change, all of it in the soak."""

from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from _pytest.mark import ParameterSet

from palaver.context import POLICIES
from palaver.errors import UnsupportedTranscript
from tests.context.every_view import PARTS, PERCENTS, WITHIN, Found, budgets, grows, hold_part
from tests.recorded import RECORDINGS, Recording, recordings

SHORT = ("claude_code", "codex", "tau_bench", "tau2_bench", "mini_swe_agent", "openhands_llm_calls")
"""Kinds whose sessions a run on every change can afford; the one of pi has five hundred exchanges."""

TITLE = "every view of recorded sessions"

Count = Callable[[str, Mapping[str, int]], None]


def _largest_first() -> list[ParameterSet]:
    """Give all recordings; the large ones first, so that several processes end at about the same time."""
    rows = sorted(RECORDINGS, key=lambda each: (-(each.count("raw_bytes") or 0), each.name))
    return [pytest.param(each, id=each.name) for each in rows] or recordings()


def _hold(recording: Recording, sessions: slice, part: int, policies: tuple[str, ...], count: Count) -> Found:
    """Hold what there is of a part to the promise, and have the counts printed: those of each policy, and of all."""
    found, wrong = hold_part(recording, sessions, part, policies)
    total: Found = Counter()
    for name, each in found.items():
        count(f"{TITLE}, {name}", each)
        total.update(each)
    count(TITLE, total)
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(wrong)
    return total


def _sample() -> list[ParameterSet]:
    """Give a recording of each kind, each with policies of its own; all of them have them all."""
    strata = recordings(*SHORT, each=1)
    names = tuple(POLICIES)
    return [
        pytest.param(each.values[0], names[place :: len(strata)], id=str(each.id), marks=each.marks)
        for place, each in enumerate(strata)
    ]


@pytest.mark.parametrize(("recording", "policies"), _sample())
def test_every_policy_over_a_session_of_some_kind(
    recording: Recording, policies: tuple[str, ...], count: Count
) -> None:
    """Every policy at four budgets, in the tokens of every model: within its budget, valid for every profile and in reach of a handle, or truly infeasible."""
    assert _hold(recording, slice(1), 0, policies, count)[WITHIN]


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("recording", _largest_first())
@pytest.mark.parametrize("part", range(PARTS), ids=[f"{number}of{PARTS}" for number in range(1, PARTS + 1)])
def test_every_policy_over_every_session(recording: Recording, part: int, count: Count) -> None:
    """The same for every session, and between two edits requests go on from each other; all parts together have every twentieth of the budget."""
    try:
        _hold(recording, slice(None), part, tuple(POLICIES), count)
    except UnsupportedTranscript:
        pytest.skip("palaver does not read this format yet")


def test_all_parts_together_have_every_case_once() -> None:
    """Each part has four budgets of a case, evenly spaced; all parts have all of them, and one of them has it as it grew, at one of its own."""
    for number in range(100):
        name = f"recording:{number}:policy"
        parts = [budgets(name, part) for part in range(PARTS)]
        assert sorted(percent for each in parts for percent in each) == list(PERCENTS)
        assert {len(each) for each in parts} == {len(PERCENTS) // PARTS}
        grown = [(part, percent) for part in range(PARTS) if (percent := grows(name, part)) is not None]
        assert [percent in parts[part] for part, percent in grown] == [True]
