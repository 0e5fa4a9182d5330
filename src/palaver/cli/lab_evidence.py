"""What palaver lab --evidence says: what views keep of the evidence in long histories, and what a search finds of it."""

from __future__ import annotations

from rich.table import Table as Grid

from palaver.cli.lab_table import FAULTS, place_of
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, output, visible
from palaver.lab import Retention
from palaver.plurals import counted

__all__ = ["say_evidence"]

_NAMES = {"any": "recall_any", "all": "recall_all", "ndcg": "NDCG"}


def say_evidence(found: Retention, *, json: bool) -> int:
    """Say what was found; give the exit code."""
    if json:
        print_json(found.to_dict())
    else:
        _say(found)
    return Exit.FOUND if any(problem.kind in FAULTS for problem in found.problems) else Exit.OK


def _say(found: Retention) -> None:
    console = output()
    console.print(f"{counted(found.histories, 'history')}, {counted(found.questions, 'question')}.")
    views = _grid("in view at the end", "questions", "turns", "recall_any", "recall_all", "answers")
    for row in found.rows:
        name = row.policy if row.status == "ok" else f"{row.policy} ({row.status})"
        views.add_row(
            visible(name), f"{row.questions:,}", *map(_figure, (row.retained, row.any, row.all, row.answered))
        )
    console.print(views)
    for level, formulas in found.search.items():
        depths = next(iter(formulas.values()))
        search = _grid(f"search, {level} ({counted(found.scored[level], 'question')})", *(f"@{k}" for k in depths))
        for name, means in formulas.items():
            search.add_row(_NAMES[name], *map(_figure, means.values()))
        console.print(search)
    console.print(
        "turns: of the turns that hold the answer, those shown word for word. recall_any, recall_all: of the sessions that hold it, one of them or all "
        "with something shown. answers: the answer's words stand in the view. The search is BM25 over turns; formulas are LongMemEval's."
    )
    for problem in found.problems:
        errors().print(f"{problem.kind}: {place_of(problem)}{problem.text}", style="yellow")


def _grid(title: str, *columns: str) -> Grid:
    grid = Grid(box=None, pad_edge=False)
    grid.add_column(title, overflow="fold", min_width=24)
    for column in columns:
        grid.add_column(column, justify="right", no_wrap=True)
    return grid


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
