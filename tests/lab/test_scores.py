"""Policies put together: who is on a front, and how each differs from the default, session for session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from palaver.lab.metrics import paired_share
from palaver.lab.results import PolicyRow, ReplayRow, Run
from palaver.lab.scores import COMPARED, able, table

RUN = Run(
    key="k",
    sources=(),
    policies=("palaver", "lllm", "cat"),
    stand_ins=("fold",),
    model="m",
    window=1,
    budget=None,
    prices={},
    currency="USD",
    assumptions=(),
    resamples=200,
)


def row(policy: str, session: int, **fields: object) -> ReplayRow:
    """Give a replay of ten references."""
    values: dict[str, object] = {"calls": 1, "references": 10, "in_view": 5, "evidence": 5, "evidence_cost": 0.0}
    return ReplayRow(session=str(session), policy=policy, stand_in="fold", **{**values, **fields})  # type: ignore[arg-type]


def rows(policy: str, sessions: int = 8, **fields: object) -> list[ReplayRow]:
    """Give the replays of a policy, the later sessions the dearer ones."""
    return [row(policy, number, **{"cost": 1.0 + number, **fields}) for number in range(sessions)]


def made(*found: list[ReplayRow], run: Run = RUN) -> dict[str, PolicyRow]:
    """Put them together."""
    replays = [each for some in found for each in some]
    return {each.policy: each for each in table(run, replays, keys=[str(number) for number in range(8)]).rows}


def test_a_call_that_nobody_can_send_takes_nobody_off_the_front() -> None:
    """Those with the fewest infeasible calls are compared, and no others: not the cheaper one that could not send one more."""
    found = made(
        rows("palaver", infeasible=1), rows("lllm", infeasible=2, cost=0.1), rows("cat", infeasible=1, cost=90.0)
    )
    assert {name for name, each in found.items() if each.best} == {"palaver"}
    assert {name for name, each in found.items() if each.best_evidence} == {"palaver"}
    assert {each.policy for each in able(found.values())} == {"palaver", "cat"}
    none = made(rows("palaver"), rows("lllm", infeasible=2, cost=0.1), rows("cat", cost=90.0))
    assert {name for name, each in none.items() if each.best} == {"palaver"}


def test_who_did_not_come_to_every_end_is_not_compared_with() -> None:
    """A policy that failed somewhere or broke a law has the fewest infeasible calls of nothing: it does not set the measure."""
    failed = [*rows("lllm", 7), row("lllm", 7, status="failed")]
    found = made(rows("palaver", infeasible=1), failed, rows("cat", infeasible=1, broken=1, cost=0.1))
    assert {name for name, each in found.items() if each.best} == {"palaver"}
    assert able([]) == ()


def test_a_word_list_is_on_one_front_and_not_on_the_other() -> None:
    """More words for less are the front of words; what they cost as content, and what there is of it, is the other."""
    found = made(rows("palaver", cost=1.0), rows("lllm", cost=0.9, in_view=9, evidence=2, evidence_cost=0.5))
    assert (found["lllm"].best, found["lllm"].best_evidence) == (True, False)
    assert (found["palaver"].best, found["palaver"].best_evidence) == (False, True)
    assert (found["lllm"].beats, found["lllm"].beats_evidence) == (1.0, 0.0)


def test_differences_are_paired() -> None:
    """However different the sessions are, a policy that is dearer by the same on each differs by that, and by no less and no more."""
    found = made(rows("palaver"), [replace(each, policy="lllm", cost=each.cost + 0.5) for each in rows("lllm")])
    paired = found["lllm"].differences
    assert set(paired) == set(COMPARED)
    bill, frr = paired["bill"], paired["frr"]
    assert (bill.value, bill.low, bill.high) == pytest.approx((0.5, 0.5, 0.5))
    assert (frr.value, frr.low, frr.high) == (0.0, 0.0, 0.0)
    single = found["lllm"].scores["bill"]
    assert single.low is not None
    assert single.high is not None
    assert single.high - single.low > 1.0
    assert not found["palaver"].differences
    assert found["palaver"].beats is None


def test_only_sessions_that_both_came_to_the_end_of_are_compared() -> None:
    """A session that one failed on is in no difference; where there is none in common, or no default policy, there is no difference."""
    failed = [replace(each, status="failed") if each.session == "7" else each for each in rows("lllm")]
    found = made(rows("palaver"), failed)
    assert found["lllm"].differences["bill"].value == 0.0
    assert found["lllm"].scores["bill"].value != found["palaver"].scores["bill"].value
    apart = made(rows("palaver")[:2], rows("lllm")[2:])
    assert (dict(apart["lllm"].differences), apart["lllm"].beats) == ({}, None)
    alone = made(rows("lllm"), run=replace(RUN, policies=("lllm", "cat")))
    assert (dict(alone["lllm"].differences), alone["lllm"].beats) == ({}, None)
    one = made(rows("palaver", 1), rows("lllm", 1))["lllm"].differences["bill"]
    assert (one.value, one.low, one.high) == (0.0, None, None)


def test_the_same_seed_gives_the_same_share() -> None:
    """How often one wins is counted over the same resamplings as intervals; of nothing, and without resampling, there is no share."""
    ours, theirs = [(float(number % 3),) for number in range(30)], [(1.0,) for _ in range(30)]

    def wins(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        return one[0] > other[0]

    share = paired_share(ours, theirs, wins, resamples=300, seed=3)
    assert share is not None
    assert 0.2 < share < 0.6
    assert share == paired_share(ours, theirs, wins, resamples=300, seed=3)
    assert paired_share(ours, theirs, wins, resamples=0) is None
    assert paired_share([], [], wins) is None
