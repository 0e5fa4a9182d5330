"""What policies keep of planted needles over repeated compactions. What they keep of the evidence in long histories: palaver lab --evidence.

python -m bench.retention [--policies A,B] [--model M] [--budget N]
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from palaver.lab import Entrant, entrant
from palaver.lab.needles import needles
from palaver.tokens import ModelCounter, counter

_CUTS = (0, 1, 2, 4, 8)

console = Console(highlight=False, width=120)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="bench.retention", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policies", default="palaver,openhands,pi,letta,swe-agent,lllm")
    parser.add_argument("--model", default="gpt-4o")
    parser.add_argument("--budget", type=int, default=8_000)
    given = parser.parse_args()
    made = [entrant(name, given.model, budget=given.budget) for name in given.policies.split(",")]
    _needles(made, counter(given.model))


def _needles(entrants: list[Entrant], counting: ModelCounter) -> None:
    grid = Table("needles in view (in reach) after", *(f"{cuts} cuts" for cuts in _CUTS), box=None)
    for each in entrants:
        depths = {depth.cuts: depth for depth in needles(each, counting)}
        cells = [
            "-"
            if (depth := depths.get(cuts)) is None
            else f"{depth.in_view / depth.all:.2f} ({depth.in_reach / depth.all:.2f})"
            for cuts in _CUTS
        ]
        grid.add_row(each.name, *cells)
    console.print(grid)


if __name__ == "__main__":
    main()
