"""The baselines of offline retention, made again: future-reference recall of masks and tails on recorded tau-bench sessions.

    python -m bench.baselines PATH       PATH: the recorded airline runs of gpt-4o (tau-bench, historical_trajectories)

The figures to compare with are those of the project's reference on compaction (section 6), computed by a script of its own, which is not kept:
masks that keep the results of the last 1, 2 and 5 calls, tails of 4 and 8 messages. There identifiers were found by another pattern, masked text had
one word, and a tail parted calls from results; here every law holds.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import ClassVar

from rich.console import Console
from rich.table import Table

from palaver.context import Meter, Policy
from palaver.context.layout import Layout
from palaver.context.operators import clear
from palaver.context.presets import newest_outputs
from palaver.lab import Settings, run_lab
from palaver.lab.scores import SCORES
from palaver.log import Handle
from palaver.tokens import Budget
from palaver.view import Plan, Reason, View

KNOWN = {
    "Mask1": (0.825, 0.77),
    "Mask2": (0.866, 0.81),
    "Mask5": (0.950, 0.90),
    "Tail4": (0.613, None),
    "Tail8": (0.799, None),
}
"""Recall, and the share of the whole view that is left, as the reference has them."""

_MODEL = "gpt-4o"


def _masked(handle: Handle, text: str) -> str:  # noqa: ARG001 - one word, whatever it stands for
    return "<MASKED>"


class _Masks(Policy):
    """Shows the results of the last calls, and one word in place of older ones, at every step."""

    results: ClassVar[int]

    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Mask."""
        layout = Layout.of(view, budget, meter)
        return clear(layout, newest_outputs(layout, self.results), least=0, words=_masked).plan(self.name)


class _Tail(Policy):
    """Shows the last messages, and what every view must hold."""

    messages: ClassVar[int]

    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Drop what is older, but not the notes that stand for what was dropped before."""
        layout = Layout.of(view, budget, meter)
        stays = view.protected() | {index for index, each in enumerate(view.exchanges) if each.derived}
        older = layout.newest_messages(self.messages)
        return layout.without(0, older, Reason.OVER_BUDGET, keep=stays).plan(self.name)


class Mask1(_Masks):
    """The last result."""

    name, results = "mask-1", 1


class Mask2(_Masks):
    """The last two results."""

    name, results = "mask-2", 2


class Mask5(_Masks):
    """The last five results."""

    name, results = "mask-5", 5


class Tail4(_Tail):
    """The last four messages."""

    name, messages = "tail-4", 4


class Tail8(_Tail):
    """The last eight messages."""

    name, messages = "tail-8", 8


def main() -> None:
    """Replay, and print what came of it beside what is known."""
    parser = argparse.ArgumentParser(
        prog="bench.baselines", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    path = parser.parse_args().path
    here = Path(__file__).resolve()
    settings = Settings(
        paths=(path,), policies=("full", *(f"{here}:{name}" for name in KNOWN)), model=_MODEL, resamples=200
    )
    with tempfile.TemporaryDirectory(prefix="palaver-baselines-") as folder:
        found = run_lab(settings, Path(folder))
    whole = next(row for row in found.rows if row.policy == "full").scores["tokens"].value or 1.0
    grid = Table("policy", "references", "FRR", "known", "view", "known", "broken", box=None)
    for row in found.rows:
        name = row.policy.rpartition(":")[2]
        recall, share = KNOWN.get(name, (1.0, 1.0))
        size = (row.scores["tokens"].value or 0.0) / whole
        grid.add_row(
            name,
            row.status,
            f"{row.scores['frr'].value or 0:.3f}",
            f"{recall:.3f}",
            f"{size:.2f}",
            "" if share is None else f"{share:.2f}",
            f"{row.broken}",
        )
    console = Console(highlight=False, width=120)
    console.print(grid)
    console.print(f"FRR: {SCORES['frr'][0]}.")
    for problem in found.problems:
        if problem.kind in {"invalid policy", "violation", "policy failed"}:
            console.print(f"{problem.kind}: {problem.policy.rpartition(':')[2]}: {problem.text}", markup=False)


if __name__ == "__main__":
    main()
