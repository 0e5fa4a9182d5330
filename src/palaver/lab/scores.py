"""The figures of a policy over all sessions, with their intervals, and the Pareto-optimal policies by bill and retention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from palaver.lab.metrics import Interval, Worth, front, paired_interval, ratio_interval
from palaver.lab.results import LabRun, PolicyRow, Problem, ReplayRow, Score, Table
from palaver.lab.stand_ins import ORACLE

Pair: TypeAlias = tuple[float, float]

DEFAULT = "palaver"
"""The policy that the others are compared with, session by session, if it is in the run."""

COMPARED = ("bill", "frr", "evidence_bill", "evidence")
"""The figures that are compared: those of the fronts."""

SCORES: Mapping[str, tuple[str, Callable[[ReplayRow], Pair]]] = MappingProxyType(
    {
        "bill": ("the cost of a session: calls, recalls and summaries", lambda row: (row.total, 1)),
        "calls": ("the cost of a session's calls", lambda row: (row.cost, 1)),
        "recalls": ("the cost of a session's recalls", lambda row: (row.recall_cost, 1)),
        "summaries": ("the cost of a model's summaries of a session", lambda row: (row.summary_cost, 1)),
        "regret": (
            "the bill of the calls divided by the least possible one",
            lambda row: (row.cost, row.optimum or 0.0),
        ),
        "hits": ("the share of the input read from the cache", lambda row: (row.read, row.read + row.written)),
        "writes": ("the share of the input not in the cache", lambda row: (row.written, row.read + row.written)),
        "stability": ("the share of a request with which the next begins", lambda row: (row.stable, row.stable_of)),
        "tokens": ("the tokens of a request", lambda row: (row.tokens, row.calls)),
        "frr": (
            "of the names that a call takes up again, such as files and ids, the share that its view still has",
            lambda row: (row.in_view, row.references),
        ),
        "frr_recall": ("the same, or brought back by a lookup", lambda row: (row.reached, row.references)),
        "evidence": (
            "of the same names, the share that the view has with the words around them, not only as a name",
            lambda row: (row.evidence, row.references),
        ),
        "evidence_recall": (
            "the same, or brought back by a lookup",
            lambda row: (row.evidence_reached, row.references),
        ),
        "evidence_bill": (
            "the bill, if every reference that is not in view as content had to be recalled",
            lambda row: (row.total - row.recall_cost + row.evidence_cost, 1),
        ),
        "complete": (
            "the share of calls with references that have all of them in view",
            lambda row: (row.complete, row.referring),
        ),
        "humans": (
            "the share of the human's messages in the view, quoted in a record or listed there by handle",
            lambda row: (row.humans_kept, row.humans),
        ),
        "lookups": ("lookups for each call", lambda row: (row.recalls, row.calls)),
        "planning": ("seconds that a plan takes", lambda row: (row.planning, row.calls)),
        "broken": ("laws broken, for each call", lambda row: (row.broken, row.calls)),
    }
)
"""Each figure: its definition, and the numerator and denominator for a session, which are summed over sessions. A ratio of sums weights every
reference and every token equally, in any session."""


def table(
    run: LabRun,
    replays: Iterable[ReplayRow],
    *,
    keys: Sequence[str],
    problems: Sequence[Problem] = (),
    invalid: Mapping[str, Sequence[str]] | None = None,
) -> Table:
    """Return the table of a run's replays.

    Args:
        run: The run.
        replays: The replays of all sessions.
        keys: The keys of the sessions.
        problems: The problems of the run.
        invalid: The policies that broke a law before they were replayed, with the broken laws.
    """
    by_policy: dict[tuple[str, str], list[ReplayRow]] = {
        (policy, stand_in): [] for policy in run.policies for stand_in in run.stand_ins
    }
    for row in replays:
        by_policy.setdefault((row.policy, row.stand_in), []).append(row)
    refused = invalid or {}
    rows = [_row(run, *name, found, refused.get(name[0], ())) for name, found in by_policy.items()]
    by_words, by_evidence = _front(rows, "bill", "frr"), _front(rows, "evidence_bill", "evidence")
    rows = [
        replace(
            row,
            best=(row.policy, row.stand_in) in by_words,
            best_evidence=(row.policy, row.stand_in) in by_evidence,
            differences=_compared(run, by_policy[row.policy, row.stand_in], by_policy.get((DEFAULT, row.stand_in), ()))
            if row.policy != DEFAULT
            else {},
        )
        for row in rows
    ]
    rows.sort(key=_order)
    return Table(run=run, sessions=len(keys), rows=tuple(rows), problems=tuple(problems), keys=tuple(keys))


def _row(run: LabRun, policy: str, stand_in: str, found: Sequence[ReplayRow], broken: Sequence[str]) -> PolicyRow:
    whole = _whole(found)
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


def _whole(found: Iterable[ReplayRow]) -> list[ReplayRow]:
    """Return the completed replays, in the order of the sessions."""
    return sorted((row for row in found if row.status == "ok" and row.calls), key=lambda row: row.session)


def _score(run: LabRun, pairs: Sequence[Pair]) -> Score:
    return _scored(run, len(pairs), ratio_interval(pairs, resamples=run.resamples))


def _scored(run: LabRun, sessions: int, found: Interval | None) -> Score:
    if found is None:
        return Score(value=None)
    if sessions < _SOME or not run.resamples:  # nothing can be learned from resampling a single session
        return Score(value=found.value)
    return Score(value=found.value, low=found.low, high=found.high)


def _compared(run: LabRun, found: Sequence[ReplayRow], default: Sequence[ReplayRow]) -> Mapping[str, Score]:
    """Compare a policy with the default one over the sessions that both completed, session by session."""
    theirs = {row.session: row for row in _whole(default)}
    both = [(row, theirs[row.session]) for row in _whole(found) if row.session in theirs]
    if not both:
        return {}
    differences = {}
    for name in COMPARED:
        pair = SCORES[name][1]
        one, other = zip(*((pair(row), pair(its)) for row, its in both), strict=True)
        interval = paired_interval(one, other, resamples=run.resamples)
        differences[name] = _scored(run, len(both), interval)
    return differences


_SOME = 2
"""The minimum number of sessions for an interval."""


def able(rows: Iterable[PolicyRow]) -> tuple[PolicyRow, ...]:
    """Return the comparable policies: replayed on every session, with the fewest infeasible calls, and without broken laws.

    A call may be too large for every policy; that does not count. A policy that could not send a call that another one could send has kept and
    paid nothing there, so its figures are not comparable.
    """
    sound = [row for row in rows if row.status == "ok" and row.sessions and not row.broken]
    most = max((row.sessions for row in sound), default=0)
    whole = [row for row in sound if row.sessions == most]
    fewest = min((row.infeasible for row in whole), default=0)
    return tuple(row for row in whole if row.infeasible == fewest)


def _front(rows: Sequence[PolicyRow], bill: str, kept: str) -> frozenset[tuple[str, str]]:
    """Return the Pareto-optimal policies among the comparable ones, without the oracle, which knows the future."""
    points = {
        (row.policy, row.stand_in): Worth(cost, row.scores[kept].value or 0.0)
        for row in able([row for row in rows if row.stand_in != ORACLE])
        if (cost := row.scores[bill].value) is not None
    }
    return front(points)


def _order(row: PolicyRow) -> tuple[bool, bool, float, str]:
    bill = row.scores["bill"].value
    on_a_front = row.best or row.best_evidence
    return row.status == "invalid", not on_a_front, float("inf") if bill is None else bill, row.policy
