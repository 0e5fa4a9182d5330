"""Policies put together: who is on a front, and how each differs from the default, session for session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from palaver.lab.results import LabRun, PolicyRow, ReplayRow
from palaver.lab.scores import COMPARED, able, table

RUN = LabRun(
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


def made(*found: list[ReplayRow], run: LabRun = RUN) -> dict[str, PolicyRow]:
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


def test_a_word_list_is_on_one_front_and_not_on_the_other() -> None:
    """More words for less are the front of words; what they cost as content, and what there is of it, is the other."""
    found = made(rows("palaver", cost=1.0), rows("lllm", cost=0.9, in_view=9, evidence=2, evidence_cost=0.5))
    assert (found["lllm"].best, found["lllm"].best_evidence) == (True, False)
    assert (found["palaver"].best, found["palaver"].best_evidence) == (False, True)


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
