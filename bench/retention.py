"""What policies keep of a long history: needles over repeated compactions, and the evidence of LongMemEval-shaped files.

python -m bench.retention [PATH...] [--policies A,B] [--model M] [--budget N]      PATH: LongMemEval-shaped JSON
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from palaver.lab import Entrant, entrant
from palaver.lab.evidence import DEPTHS, Haystack, evidence, haystacks, searched, share
from palaver.lab.needles import needles
from palaver.tokens import ModelCounter, counter

_CUTS = (0, 1, 2, 4, 8)

console = Console(highlight=False, width=120)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="bench.retention", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--policies", default="palaver,openhands,pi,letta,swe-agent,lllm")
    parser.add_argument("--model", default="gpt-4o")
    parser.add_argument("--budget", type=int, default=32_000)
    words = parser.parse_args()
    counting = counter(words.model)
    entrants = [entrant(name, words.model, budget=words.budget) for name in words.policies.split(",")]
    _needles([entrant(name, words.model, budget=8_000) for name in words.policies.split(",")], counting)
    for path in words.paths:
        _evidence(path, list(haystacks(path)), entrants, counting)


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


def _evidence(path: Path, found: list[Haystack], entrants: list[Entrant], counting: ModelCounter) -> None:
    asked = sum(len(each.questions) for each in found)
    console.print(f"\n{path.name}: {len(found)} histories, {asked} questions")
    grid = Table("evidence in view at the end", "turns", "answers", box=None)
    for each in entrants:
        kept, answered = share([one for haystack in found for one in evidence(haystack, each, counting)])
        grid.add_row(each.name, "-" if kept is None else f"{kept:.3f}", f"{answered:.3f}")
    console.print(grid)
    hits = [one for haystack in found for one in searched(haystack)]
    grid = Table("search (BM25, sessions)", *(f"@{k}" for k in DEPTHS), box=None)
    for name in ("any", "all", "ndcg"):
        means = [sum(getattr(hit, name)[k] for hit in hits) / len(hits) for k in DEPTHS]
        grid.add_row(name if name == "ndcg" else f"recall_{name}", *(f"{mean:.3f}" for mean in means))
    console.print(grid)


if __name__ == "__main__":
    main()
