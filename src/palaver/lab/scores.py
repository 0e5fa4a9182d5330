"""The figures of a policy over all sessions, with their intervals, and which policies are on the fronts of bill and of what is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from palaver.lab.metrics import Interval, Worth, beats, front, paired_interval, paired_share, ratio_interval
from palaver.lab.results import LabRun, PolicyRow, Problem, ReplayRow, Score, Table
from palaver.lab.stand_ins import ORACLE

__all__ = ["COMPARED", "DEFAULT", "EVIDENCE_FRONT", "FRONT", "SCORES", "able", "table"]

Pair: TypeAlias = tuple[float, float]

FRONT = "no other policy has a bill (recalls charged) as low and an FRR as high, and one of them better"
"""What it is to be on the front (`palaver.lab.metrics.beats`)."""

EVIDENCE_FRONT = "the same where a word is not enough: all that is not in view as content is charged, and evidence takes the place of FRR"
"""What it is to be on the other front."""

DEFAULT = "palaver"
"""The policy that the others are compared with, session for session, where it is in the run."""

COMPARED = ("bill", "frr", "evidence_bill", "evidence")
"""The figures that are compared so: those of the fronts."""

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
        "evidence": (
            "evidence retention: of what calls refer to, in view as content, and not as a mere word",
            lambda row: (row.evidence, row.references),
        ),
        "evidence_recall": (
            "the same, or brought back by a lookup",
            lambda row: (row.evidence_reached, row.references),
        ),
        "evidence_bill": (
            "the bill, if all that is not in view as content had to be got at",
            lambda row: (row.total - row.recall_cost + row.evidence_cost, 1),
        ),
        "complete": (
            "of calls that refer to something, with all of it in view",
            lambda row: (row.complete, row.referring),
        ),
        "humans": (
            "of the human's messages, in the view, quoted in a record or listed there by handle",
            lambda row: (row.humans_kept, row.humans),
        ),
        "lookups": ("lookups for each call", lambda row: (row.recalls, row.calls)),
        "planning": ("seconds that a plan takes", lambda row: (row.planning, row.calls)),
        "broken": ("laws broken, for each call", lambda row: (row.broken, row.calls)),
    }
)
"""Each figure: what it is, and for a session what goes above and below; over sessions both are summed. A ratio of sums, so that every
reference and every token counts the same, whatever session it is in."""


def table(
    run: LabRun,
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
    by_words, by_evidence = _front(rows, "bill", "frr"), _front(rows, "evidence_bill", "evidence")
    rows = [
        replace(
            row,
            best=(row.policy, row.stand_in) in by_words,
            best_evidence=(row.policy, row.stand_in) in by_evidence,
            **_compared(run, by_policy[row.policy, row.stand_in], by_policy.get((DEFAULT, row.stand_in), ()))
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
    """Return the replays that came to their end, in the order of the sessions."""
    return sorted((row for row in found if row.status == "ok" and row.calls), key=lambda row: row.session)


def _score(run: LabRun, pairs: Sequence[Pair]) -> Score:
    return _scored(run, len(pairs), ratio_interval(pairs, resamples=run.resamples, seed=run.seed))


def _scored(run: LabRun, sessions: int, found: Interval | None) -> Score:
    if found is None:
        return Score(value=None)
    if sessions < _SOME or not run.resamples:  # resampled, one session is itself: that says nothing of others
        return Score(value=found.value)
    return Score(value=found.value, low=found.low, high=found.high)


def _compared(run: LabRun, found: Sequence[ReplayRow], default: Sequence[ReplayRow]) -> dict[str, Any]:
    """Compare a policy with the default one over the sessions that both came to the end of: each with itself."""
    theirs = {row.session: row for row in _whole(default)}
    both = [(row, theirs[row.session]) for row in _whole(found) if row.session in theirs]
    if not both:
        return {}
    differences = {}
    for name in COMPARED:
        pair = SCORES[name][1]
        one, other = zip(*((pair(row), pair(its)) for row, its in both), strict=True)
        interval = paired_interval(one, other, resamples=run.resamples, seed=run.seed)
        differences[name] = _scored(run, len(both), interval)
    return {
        "differences": differences,
        "beats": _share(run, both, "bill", "frr"),
        "beats_evidence": _share(run, both, "evidence_bill", "evidence"),
    }


def _share(run: LabRun, both: Sequence[tuple[ReplayRow, ReplayRow]], bill: str, kept: str) -> float | None:
    """Return in what share of resamplings one beats the other; None where one could not send as many calls, or nothing can be said.

    Of the same sessions the references are the same, so what is kept is compared as it is counted.
    """
    infeasible = [sum(row.infeasible for row in rows) for rows in zip(*both, strict=True)]
    if infeasible[0] > infeasible[1] or len(both) < _SOME:
        return None
    one, other = (
        [(SCORES[bill][1](row)[0], SCORES[kept][1](row)[0]) for row in rows] for rows in zip(*both, strict=True)
    )

    def wins(ours: Sequence[float], theirs: Sequence[float]) -> bool:
        return beats(Worth(ours[0], ours[1]), Worth(theirs[0], theirs[1]))

    return paired_share(one, other, wins, resamples=run.resamples, seed=run.seed)


_SOME = 2
"""Sessions without which there is no interval."""


def able(rows: Iterable[PolicyRow]) -> tuple[PolicyRow, ...]:
    """Return the policies that can be compared: replayed on every session, with the fewest infeasible calls, and none that broke a law.

    A call may be too large for any policy; then none could send it, and that is nobody's fault. Who could not send what another one could has kept
    nothing there and paid for nothing: its figures are of something else.
    """
    sound = [row for row in rows if row.status == "ok" and row.sessions and not row.broken]
    most = max((row.sessions for row in sound), default=0)
    whole = [row for row in sound if row.sessions == most]
    fewest = min((row.infeasible for row in whole), default=0)
    return tuple(row for row in whole if row.infeasible == fewest)


def _front(rows: Sequence[PolicyRow], bill: str, kept: str) -> frozenset[tuple[str, str]]:
    """Return the policies that no other one beats (`FRONT`), of those that can be compared and do not know the future: the oracle is a bracket."""
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
