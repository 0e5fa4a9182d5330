"""The figures of a policy over all sessions, with their intervals, and the Pareto-optimal policies by bill and retention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from palaver.lab.metrics import Interval, Worth, front, paired_interval, ratio_interval
from palaver.lab.results import GroupRow, LabRun, PolicyRow, Problem, ReplayRow, Score, SessionRow, Table
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
            "of the names that a call repeats, such as files and ids, the share that its view still has",
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
"""Each figure: its definition, and the numerator and denominator for a session, which are summed over sessions, times the weights of the sessions.
With the weight `session`, a ratio of sums weights every reference and every token equally, in any session."""

WEIGHTS: Mapping[str, str] = MappingProxyType(
    {
        "session": "every session counts the same",
        "file": "every file counts the same, divided among its sessions",
        "tokens": "a session counts as much as its largest whole view has tokens",
    }
)
"""How sessions count in a figure: by name, what it means."""


def table(
    run: LabRun,
    replays: Iterable[ReplayRow],
    *,
    sessions: Sequence[SessionRow],
    problems: Sequence[Problem] = (),
    invalid: Mapping[str, Sequence[str]] | None = None,
) -> Table:
    """Return the table of a run's replays.

    Args:
        run: The run.
        replays: The replays of all sessions.
        sessions: The sessions.
        problems: The problems of the run.
        invalid: The policies that broke a law before they were replayed, with the broken laws.
    """
    by_policy: dict[tuple[str, str], list[ReplayRow]] = {
        (policy, stand_in): [] for policy in run.policies for stand_in in run.stand_ins
    }
    for row in replays:
        by_policy.setdefault((row.policy, row.stand_in), []).append(row)
    refused = invalid or {}
    scale = _Scale(run, _weights(run, sessions))
    rows = [_row(scale, *name, found, refused.get(name[0], ())) for name, found in by_policy.items()]
    by_words, by_evidence = _front(rows, "bill", "frr"), _front(rows, "evidence_bill", "evidence")
    rows = [
        replace(
            row,
            best=(row.policy, row.stand_in) in by_words,
            best_evidence=(row.policy, row.stand_in) in by_evidence,
            differences=_compared(scale, by_policy, row.policy, row.stand_in),
        )
        for row in rows
    ]
    rows.sort(key=_order)
    names = [(row.policy, row.stand_in) for row in rows]
    return Table(
        run=run,
        sessions=len(sessions),
        rows=tuple(rows),
        problems=tuple(problems),
        keys=tuple(each.session for each in sessions),
        groups=tuple(_groups(scale, sessions, {name: by_policy[name] for name in names})),
    )


_ByPolicy: TypeAlias = Mapping[tuple[str, str], Sequence[ReplayRow]]


class _Scale(NamedTuple):
    """The settings of a run and the weights of its sessions, by key."""

    run: LabRun
    weights: Mapping[str, float]

    def pairs(self, name: str, rows: Iterable[ReplayRow]) -> list[Pair]:
        """Return the weighted numerators and denominators of a figure."""
        pair = SCORES[name][1]
        return [
            (above * weight, below * weight)
            for row in rows
            for (above, below), weight in ((pair(row), self.weights[row.session]),)
        ]


def _weights(run: LabRun, sessions: Sequence[SessionRow]) -> Mapping[str, float]:
    """Return how much each session counts. A whole number leaves whole figures exact."""
    files = Counter(each.source for each in sessions)
    weights: Mapping[str, Callable[[SessionRow], float]] = {
        "session": lambda _: 1,
        "file": lambda row: 1 / files[row.source],
        "tokens": lambda row: row.tokens,
    }
    return {each.session: weights[run.weight](each) for each in sessions}


def _row(scale: _Scale, policy: str, stand_in: str, found: Sequence[ReplayRow], broken: Sequence[str]) -> PolicyRow:
    whole = _whole(found)
    failed = sum(row.status != "ok" for row in found)
    return PolicyRow(
        policy=policy,
        stand_in=stand_in,
        status="invalid" if broken else "failed" if failed else "ok",
        sessions=len(whole),
        failed=failed,
        calls=sum(row.calls for row in whole),
        infeasible=sum(row.infeasible for row in whole),
        cuts=sum(row.cuts for row in whole),
        scores={name: _score(scale, name, whole) for name in SCORES},
        broken=len(broken) + sum(row.broken for row in found),
    )


_LENGTHS: Mapping[str, float] = MappingProxyType(
    {"under 8k": 8_000, "8k to 32k": 32_000, "32k to 128k": 128_000, "128k and more": float("inf")}
)
"""The groups of sessions by length: the tokens of the largest whole view, with the upper bound of each."""


def length_of(session: SessionRow) -> str:
    """Return the group of a session by length."""
    return next(name for name, bound in _LENGTHS.items() if session.tokens < bound)


def _groups(scale: _Scale, sessions: Sequence[SessionRow], by_policy: _ByPolicy) -> Iterator[GroupRow]:
    """Yield the policies over the sessions of each tool, and of each length."""
    tools = {each.session: each.format for each in sessions}
    lengths = {each.session: length_of(each) for each in sessions}
    for by, names, of in (("tool", sorted(set(tools.values())), tools), ("length", list(_LENGTHS), lengths)):
        for name in names:
            some = {key: [row for row in rows if of[row.session] == name] for key, rows in by_policy.items()}
            yield from _group(scale, by, name, some)


def _group(scale: _Scale, by: str, name: str, by_policy: _ByPolicy) -> Iterator[GroupRow]:
    for (policy, stand_in), rows in by_policy.items():
        if whole := _whole(rows):
            yield GroupRow(
                by=by,
                name=name,
                policy=policy,
                stand_in=stand_in,
                sessions=len(whole),
                scores={each: _score(scale, each, whole) for each in COMPARED},
                differences=_compared(scale, by_policy, policy, stand_in),
            )


def _whole(found: Iterable[ReplayRow]) -> list[ReplayRow]:
    """Return the completed replays, in the order of the sessions."""
    return sorted((row for row in found if row.status == "ok" and row.calls), key=lambda row: row.session)


def _score(scale: _Scale, name: str, rows: Sequence[ReplayRow]) -> Score:
    return _scored(scale.run, len(rows), ratio_interval(scale.pairs(name, rows), resamples=scale.run.resamples))


def _scored(run: LabRun, sessions: int, found: Interval | None) -> Score:
    if found is None:
        return Score(value=None)
    if sessions < _SOME or not run.resamples:  # nothing can be learned from resampling a single session
        return Score(value=found.value)
    return Score(value=found.value, low=found.low, high=found.high)


def _compared(scale: _Scale, by_policy: _ByPolicy, policy: str, stand_in: str) -> Mapping[str, Score]:
    """Compare a policy with the default one over the sessions that both completed, session by session; nothing for the default one itself."""
    theirs = {row.session: row for row in _whole(by_policy.get((DEFAULT, stand_in), ()))}
    ours = [row for row in _whole(by_policy[policy, stand_in]) if row.session in theirs]
    if policy == DEFAULT or not ours:
        return {}
    both = [theirs[row.session] for row in ours]
    resamples = scale.run.resamples
    return {
        name: _scored(
            scale.run,
            len(ours),
            paired_interval(scale.pairs(name, ours), scale.pairs(name, both), resamples=resamples),
        )
        for name in COMPARED
    }


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
