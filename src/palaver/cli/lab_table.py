"""The table of a run of the lab on a terminal, and what a reader must know besides: assumptions, faults, gaps of the recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table as Grid

from palaver.cli.surroundings import errors, output, visible
from palaver.lab import FRONT, PolicyRow, Problem, Run, Table, short_names

__all__ = ["FAULTS", "place_of", "say_table"]

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
        f"{found.sessions:,} sessions, {run.model}, window {run.window:,}"
        + (f", budget {run.budget:,}" if run.budget else "")
        + f"; bills a session in {'dollars' if run.currency == 'USD' else run.currency}."
    )
    console.print(_grid(found, console.width))
    console.print(
        f"* on the front: {FRONT}. FRR: of what later calls refer to, in view; "
        "+lookup: or brought back. Brackets: 95 % of resampled sessions. Unsent: calls whose budget was infeasible."
    )
    for text in run.assumptions:
        console.print(f"  {text}")
    _problems(found)
    if out is not None:
        console.print(f"Results: {out}")


_WIDE = 132
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
        name = f"{'*' if row.best else ' '} {visible(_name(row, names[row.policy], several=several))}"
        grid.add_row(name, *(cells[title] for title in (_TITLES if wide else _NARROW)))
    return grid


_TITLES = (
    "bill",
    "regret",
    "hit",
    "tokens",
    "FRR",
    "+lookup",
    "files F1",
    "rules",
    "failures",
    "cuts",
    "unsent",
    "broken",
)
_NARROW = ("bill", "regret", "tokens", "FRR", "+lookup", "cuts", "unsent", "broken")


def _name(row: PolicyRow, name: str, *, several: bool) -> str:
    name = f"{name} [{row.stand_in}]" if several else name
    return f"{name} ({row.remark})" if row.remark else name


def _cells(row: PolicyRow, run: Run, *, interval: bool) -> Iterator[str]:
    if not row.sessions:
        yield from ("-",) * 11
        yield f"{row.broken:,}"
        return
    yield _figure(row, "bill", ".3f" if run.currency == "USD" else ",.0f", interval=interval)
    yield _figure(row, "regret", ".2f")
    yield _figure(row, "hits", ".2f")
    yield _figure(row, "tokens", ",.0f")
    yield _figure(row, "frr", ".3f", interval=interval)
    for name in ("frr_recall", "artifacts", "constraints", "failures"):
        yield _figure(row, name, ".2f")
    yield f"{row.cuts:,}"
    yield f"{row.infeasible:,}"
    yield f"{row.broken:,}"


def _figure(row: PolicyRow, name: str, form: str, *, interval: bool = False) -> str:
    score = row.scores[name]
    if score.value is None:
        return "-"
    said = format(score.value, form)
    if interval and score.low is not None and score.high is not None:
        said += f" [{format(score.low, form)}, {format(score.high, form)}]"
    return said


def _problems(found: Table) -> None:
    """Say what a reader must know: faults one by one, and what is missing in recordings as counts."""
    console = errors()
    kinds = Counter(problem.kind for problem in found.problems)
    for kind, count in sorted(kinds.items()):
        some = [problem for problem in found.problems if problem.kind == kind]
        if kind not in FAULTS and kind != "no price":
            console.print(f"{kind}: {count:,} of {found.sessions:,} sessions ({_some(some)}). {_general(kind)}")
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
