"""The figures of a policy over all sessions, with their intervals, and which policies are on the front of bill and recall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from palaver.lab.metrics import Worth, front, ratio_interval
from palaver.lab.results import PolicyRow, Problem, ReplayRow, Run, Score, Table
from palaver.lab.stand_ins import ORACLE

__all__ = ["FRONT", "SCORES", "table"]

Pair: TypeAlias = tuple[float, float]

FRONT = "no other policy has a bill (recalls charged) as low and an FRR as high, and one of them better"
"""What it is to be on the front (`palaver.lab.metrics.beats`)."""

SCORES: Mapping[str, tuple[str, Callable[[ReplayRow], Pair]]] = MappingProxyType(
    {
        "bill": ("what a session costs: calls, recalls and summaries", lambda row: (row.total, 1)),
        "calls": ("what the calls of a session cost", lambda row: (row.cost, 1)),
        "recalls": ("what recalls of a session cost", lambda row: (row.recall_cost, 1)),
        "summaries": ("what a model's summaries of a session would cost", lambda row: (row.summary_cost, 1)),
        "regret": ("the bill of the calls over the least possible one", lambda row: (row.cost, row.optimum or 0.0)),
        "hits": ("the share of the input read from the cache", lambda row: (row.read, row.read + row.written)),
        "writes": ("the share of the input read anew", lambda row: (row.written, row.read + row.written)),
        "stability": ("the share of a request with which the next begins", lambda row: (row.stable, row.stable_of)),
        "tokens": ("the tokens of a request", lambda row: (row.tokens, row.calls)),
        "frr": ("future-reference recall: of what calls refer to, in view", lambda row: (row.in_view, row.references)),
        "frr_recall": ("the same, or brought back by a lookup", lambda row: (row.reached, row.references)),
        "complete": (
            "of calls that refer to something, with all of it in view",
            lambda row: (row.complete, row.referring),
        ),
        "lookups": ("lookups for each call", lambda row: (row.recalls, row.calls)),
        "artifacts": (
            "F1 of the files that views say were touched",
            lambda row: (2 * row.files_right, row.files + row.files_named),
        ),
        "constraints": ("of what the user demanded, in view", lambda row: (row.constraints_kept, row.constraints)),
        "failures": ("of what failed, in view with its error", lambda row: (row.failures_kept, row.failures)),
        "planning": ("seconds that a plan takes", lambda row: (row.planning, row.calls)),
        "broken": ("laws broken, for each call", lambda row: (row.broken, row.calls)),
    }
)
"""Each figure: what it is, and for a session what goes above and below; over sessions both are summed. A ratio of sums, so that every
reference and every token counts the same, whatever session it is in."""


def table(
    run: Run,
    replays: Iterable[ReplayRow],
    *,
    keys: Sequence[str],
    problems: Sequence[Problem] = (),
    invalid: Mapping[str, Sequence[str]] | None = None,
) -> Table:
    """Put the replays of a run together.

    Args:
        run: What was asked.
        replays: The replays of all sessions.
        keys: The keys of the sessions.
        problems: What a reader must know.
        invalid: The policies that broke a law before they were replayed, with what they broke.
    """
    by_policy: dict[tuple[str, str], list[ReplayRow]] = {
        (policy, stand_in): [] for policy in run.policies for stand_in in run.stand_ins
    }
    for row in replays:
        by_policy.setdefault((row.policy, row.stand_in), []).append(row)
    refused = invalid or {}
    rows = [_row(run, *name, found, refused.get(name[0], ())) for name, found in by_policy.items()]
    front = _front(rows)
    marked = [replace(row, best=(row.policy, row.stand_in) in front) for row in rows]
    rows = sorted(marked, key=_order)
    return Table(run=run, sessions=len(keys), rows=tuple(rows), problems=tuple(problems), keys=tuple(keys))


def _row(run: Run, policy: str, stand_in: str, found: Sequence[ReplayRow], broken: Sequence[str]) -> PolicyRow:
    whole = sorted((row for row in found if row.status == "ok" and row.calls), key=lambda row: row.session)
    failed = sum(row.status != "ok" for row in found)
    scores = {name: _score(run, [pair(row) for row in whole]) for name, (_, pair) in SCORES.items()}
    return PolicyRow(
        policy=policy,
        stand_in=stand_in,
        status="invalid" if broken else "failed" if failed else "ok",
        sessions=len(whole),
        failed=failed,
        calls=sum(row.calls for row in whole),
        infeasible=sum(row.infeasible for row in whole),
        cuts=sum(row.cuts for row in whole),
        scores=scores,
        broken=len(broken) + sum(row.broken for row in found),
    )


def _score(run: Run, pairs: Sequence[Pair]) -> Score:
    found = ratio_interval(pairs, resamples=run.resamples, seed=run.seed)
    if found is None:
        return Score(value=None)
    if len(pairs) < _SOME or not run.resamples:  # resampled, one session is itself: that says nothing of others
        return Score(value=found.value)
    return Score(value=found.value, low=found.low, high=found.high)


_SOME = 2
"""Sessions without which there is no interval."""


def _front(rows: Sequence[PolicyRow]) -> frozenset[tuple[str, str]]:
    """Give the policies that no other one beats (`FRONT`).

    Only those count that were replayed on every session, could send every call, broke no law, and do not know the future: the oracle is a bracket.
    """
    sound = [row for row in rows if row.status == "ok" and row.sessions and not row.infeasible and not row.broken]
    able = [row for row in sound if row.stand_in != ORACLE]
    most = max((row.sessions for row in able), default=0)
    return front(
        {
            (row.policy, row.stand_in): Worth(row.scores["bill"].value or 0.0, row.scores["frr"].value or 0.0)
            for row in able
            if row.sessions == most
        }
    )


def _order(row: PolicyRow) -> tuple[bool, bool, float, str]:
    bill = row.scores["bill"].value
    return row.status == "invalid", not row.best, float("inf") if bill is None else bill, row.policy
