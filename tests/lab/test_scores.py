"""Policies put together: who is on a front, and how each differs from the default, session for session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from palaver.lab.results import LabRun, PolicyRow, ReplayRow, SessionRow, Table
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
    return {each.policy: each for each in whole(*found, run=run).rows}


SESSIONS = tuple(
    SessionRow(
        session=str(number),
        run="k",
        source="one" if number < 6 else f"file {number}",
        format="pi" if number % 2 else "codex",
        tokens=20_000 * number,
    )
    for number in range(8)
)
"""Six sessions of one file, and two of a file each; of two tools, and of every length."""


def whole(*found: list[ReplayRow], run: LabRun = RUN) -> Table:
    """Put them together, with the groups."""
    return table(run, [each for some in found for each in some], sessions=SESSIONS)


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


def test_sessions_count_as_the_weight_says() -> None:
    """Each the same; each file the same, so that six short sessions of one do not outweigh two files; or as its length. The default is the first."""
    found = rows("palaver")  # bills of 1 to 8
    bills = {}
    for weight in ("session", "file", "tokens"):
        bill = made(found, run=replace(RUN, weight=weight))["palaver"].scores["bill"]
        assert bill.low is not None
        assert bill.high is not None
        assert bill.low <= (bill.value or 0.0) <= bill.high
        bills[weight] = bill.value
    assert bills["session"] == made(found)["palaver"].scores["bill"].value == 36 / 8
    assert bills["file"] == pytest.approx((3.5 + 7 + 8) / 3)
    assert bills["tokens"] == pytest.approx(sum(number * (number + 1) for number in range(8)) / 28)


def test_weights_count_in_differences_too() -> None:
    """A policy that is dearer in one of six sessions of a file is dearer by less where the file counts as one."""
    dearer = [replace(each, policy="lllm", cost=each.cost + (each.session == "0")) for each in rows("palaver")]
    for weight, more in (("session", 1 / 8), ("file", 1 / 18), ("tokens", 0.0)):
        found = made(rows("palaver"), dearer, run=replace(RUN, weight=weight))
        assert found["lllm"].differences["bill"].value == pytest.approx(more), weight


def test_groups_are_by_tool_and_by_length() -> None:
    """Every session is in one group of each kind; figures and differences are those of its sessions alone."""
    found = whole(rows("palaver"), [replace(each, policy="lllm", cost=each.cost + 1) for each in rows("lllm")]).groups
    groups = {(row.by, row.name): row for row in found if row.policy == "lllm"}
    assert {name: row.sessions for name, row in groups.items()} == {
        ("tool", "codex"): 4,
        ("tool", "pi"): 4,
        ("length", "under 8k"): 1,
        ("length", "8k to 32k"): 1,
        ("length", "32k to 128k"): 5,
        ("length", "128k and more"): 1,
    }
    pi = groups["tool", "pi"]
    assert pi.scores["bill"].value == pytest.approx((2 + 4 + 6 + 8) / 4 + 1)
    assert pi.differences["bill"].value == pytest.approx(1.0)
    assert groups["length", "under 8k"].scores["bill"].low is None
    assert {row.policy for row in found} == {"palaver", "lllm"}, "cat was not replayed"
