"""The table of a run of the lab on a terminal, and what a reader must know besides: assumptions, faults, gaps of the recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table as Grid

from palaver.cli.surroundings import errors, output, visible
from palaver.lab import COMPARED, DEFAULT, EVIDENCE_FRONT, FRONT, PolicyRow, Problem, Run, Score, Table, short_names
from palaver.plurals import counted

__all__ = ["FAULTS", "place_of", "say_problems", "say_table"]

_PROBLEMS = 12
"""Problems of one kind that are told; --json and the folder have all."""

_NAMED = 4
"""Files that are named whose sessions lack something; --json and the folder have all."""

FAULTS = frozenset({"unreadable", "damaged", "policy failed", "invalid policy", "violation"})
"""Kinds of problems that make a run end with 1."""


def say_table(found: Table, out: Path | None) -> None:
    """Say what was found, and where the results are kept."""
    console = output()
    run = found.run
    console.print(
        f"{counted(found.sessions, 'session')}, {run.model}, window {run.window:,}"
        + (f", budget {run.budget:,}" if run.budget else "")
        + f"; bills a session in {'dollars' if run.currency == 'USD' else run.currency}."
    )
    console.print(_grid(found, console.width))
    console.print(
        f"* on the front: {FRONT}. # on the front of evidence: {EVIDENCE_FRONT}. FRR: of what later calls refer to, in view, if only as a word; "
        "+lookup: or brought back; evidence: as content. Brackets: 95 % of resampled sessions. Infeasible: calls that must send more than the budget allows."
    )
    if any(row.differences for row in found.rows):
        console.print(_paired(found, console.width))
        console.print(
            f"Each policy less {DEFAULT}, over the sessions that both came to the end of, each with itself. "
            "Better in: of 100 resamplings of the sessions, those in which it beats it in bill and FRR, and in bill and evidence."
        )
    for text in run.assumptions:
        console.print(f"  {text}")
    say_problems(found)
    if out is not None:
        console.print(f"Results: {out}")


_WIDE = 164
"""Columns of a terminal from which on every figure and its interval have room."""


def _grid(found: Table, width: int) -> Grid:
    """Make the table: the figures that decide first, all of them where there is room."""
    wide = width >= _WIDE
    grid = Grid(box=None, pad_edge=False)
    grid.add_column("policy", overflow="fold" if wide else "ellipsis", no_wrap=not wide, min_width=12)
    for title in _TITLES if wide else _NARROW:
        grid.add_column(title, justify="right", no_wrap=True, min_width=max(len(title), 5))
    several = len(found.run.stand_ins) > 1
    names = {name: name for name in found.run.policies} if wide else short_names(found.run.policies)
    for row in found.rows:
        cells = dict(zip(_TITLES, _cells(row, found.run, interval=wide), strict=True))
        marks = f"{'*' if row.best else ' '}{'#' if row.best_evidence else ' '}"
        name = f"{marks} {visible(_name(row, names[row.policy], several=several))}"
        grid.add_row(name, *(cells[title] for title in (_TITLES if wide else _NARROW)))
    return grid


def _paired(found: Table, width: int) -> Grid:
    """Make the table of differences from the default policy: those of a front with their intervals, where there is room for them."""
    wide, several = width >= _WIDE, len(found.run.stand_ins) > 1
    grid = Grid(box=None, pad_edge=False)
    grid.add_column(f"less {DEFAULT}", overflow="fold" if wide else "ellipsis", no_wrap=not wide, min_width=12)
    for title in _COMPARED.values():
        grid.add_column(title, justify="right", no_wrap=True)
    grid.add_column("better in", justify="right", no_wrap=True)
    names = short_names(found.run.policies)
    for row in found.rows:
        if row.differences:
            money = "+.3f" if found.run.currency == "USD" else "+,.0f"
            cells = [
                _said(row.differences[name], money if "bill" in name else "+.3f", interval=wide) for name in COMPARED
            ]
            shares = [_share(one) for one in (row.beats, row.beats_evidence)]
            name = visible(_name(row, names[row.policy], several=several))
            grid.add_row(f"   {name}", *cells, ", ".join(shares))
    return grid


_COMPARED = dict(zip(COMPARED, ("bill", "FRR", "bill by evidence", "evidence"), strict=True))


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


_TITLES = (
    "bill",
    "regret",
    "hit",
    "tokens",
    "FRR",
    "+lookup",
    "evidence",
    "cuts",
    "infeasible",
    "broken",
)
_NARROW = ("bill", "tokens", "FRR", "+lookup", "evidence", "cuts", "infeasible", "broken")


def _name(row: PolicyRow, name: str, *, several: bool) -> str:
    name = f"{name} [{row.stand_in}]" if several else name
    return f"{name} ({row.remark})" if row.remark else name


def _cells(row: PolicyRow, run: Run, *, interval: bool) -> Iterator[str]:
    if not row.sessions:
        yield from ("-",) * 9
        yield f"{row.broken:,}"
        return
    yield _figure(row, "bill", ".3f" if run.currency == "USD" else ",.0f", interval=interval)
    yield _figure(row, "regret", ".2f")
    yield _figure(row, "hits", ".2f")
    yield _figure(row, "tokens", ",.0f")
    yield _figure(row, "frr", ".3f", interval=interval)
    yield _figure(row, "frr_recall", ".2f")
    yield _figure(row, "evidence", ".3f", interval=interval)
    yield f"{row.cuts:,}"
    yield f"{row.infeasible:,}"
    yield f"{row.broken:,}"


def _figure(row: PolicyRow, name: str, form: str, *, interval: bool = False) -> str:
    return _said(row.scores[name], form, interval=interval)


def _said(score: Score, form: str, *, interval: bool) -> str:
    if score.value is None:
        return "-"
    said = format(score.value, form)
    if interval and score.low is not None and score.high is not None:
        said += f" [{format(score.low, form)}, {format(score.high, form)}]"
    return said


def say_problems(found: Table) -> None:
    """Say what a reader must know: faults one by one, and what is missing in recordings as counts."""
    console = errors()
    kinds = Counter(problem.kind for problem in found.problems)
    for kind, count in sorted(kinds.items()):
        some = [problem for problem in found.problems if problem.kind == kind]
        if kind not in FAULTS and kind != "no price":
            console.print(
                f"{kind}: {count:,} of {counted(found.sessions, 'session')} ({_some(some)}). {_general(kind)}"
            )
            continue
        for problem in some[:_PROBLEMS]:
            console.print(f"{kind}: {place_of(problem)}{problem.text}", style="yellow")
        if count > _PROBLEMS:
            console.print(f"{kind}: {count - _PROBLEMS:,} more; --json lists them all.", style="yellow")


_SAID = {
    "no timestamps": "The cache is taken to be warm there.",
    "no usage": "What the model wrote is counted from its words.",
    "no model": "The run's model counts.",
    "empty": "They have no model call.",
    "twice": "They hold the same as others, and count once.",
}


def _some(problems: Sequence[Problem]) -> str:
    """Name the first few of the files that problems are of."""
    names = list(dict.fromkeys(visible(Path(problem.source).name) for problem in problems))
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _general(kind: str) -> str:
    return _SAID.get(kind, "")


def place_of(problem: Problem) -> str:
    """Say what a problem is about, to stand before its text."""
    place = [
        problem.policy,
        Path(problem.source).name if problem.source else "",
        f"session {problem.session}" if problem.session else "",
        f"call {problem.call}" if problem.call else "",
    ]
    said = ", ".join(each for each in place if each)
    return f"{said}: " if said else ""
