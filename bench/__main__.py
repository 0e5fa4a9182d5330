"""./run bench: what palaver costs, as ratios against the physical limit and the peers, in one run on one machine.

    python -m bench [--quick] [NAME...]
    names: append, fork, open, take-up, rounds, loop, context, request, import, start, commands, long, explorer, postgres, partitions, servers, fleets, lab,
           map, presets, peers, six, search, searches, hazards, proxy

Each ratio is of medians of interleaved runs: ours, the limit, ours, the limit … so that a machine whose speed drifts drifts for both. The
limit of a durable append is one row inserted by apsw into a plain table, in a transaction of its own, with WAL and synchronous FULL.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

import apsw
from rich.console import Console
from rich.table import Table

from bench.measure import Row


class Suite(Protocol):
    """One group of measurements."""

    def __call__(self, folder: Path, /, *, quick: bool) -> list[Row]:
        """Measure in a folder of its own."""
        ...


SUITES: Mapping[str, str] = {
    "append": "appends:run",
    "fork": "openings:run_fork",
    "open": "openings:run_open",
    "take-up": "openings:run_take_up",
    "rounds": "rounds:run",
    "loop": "loop:run",
    "context": "contexts:run",
    "request": "requests:run",
    "import": "imports:run",
    "start": "imports:run_start",
    "commands": "commands:run",
    "long": "long_session:run",
    "explorer": "explorer:run",
    "postgres": "postgres:run",
    "partitions": "partitions:run",
    "servers": "servers:run",
    "fleets": "fleets:run",
    "lab": "replays:run",
    "map": "repo_maps:run",
    "presets": "presets:run",
    "peers": "peers:run",
    "six": "six_tasks.compare:run",
    "search": "search:run",
    "searches": "searches:run",
    "hazards": "hazards.table:run",
    "proxy": "proxies:run",
}
"""Where each suite is; a module is loaded when its suite runs."""


def suite_at(place: str) -> Suite:
    """Load a suite."""
    module, _, function = place.partition(":")
    found: Suite = getattr(import_module(f"bench.{module}"), function)
    return found


def main() -> None:
    """Run the suites that were named, or all, and print the table."""
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(SUITES)}; default all")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes, to see that everything runs")
    words = parser.parse_args()
    unknown = [name for name in words.names if name not in SUITES]
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}; suites: {', '.join(SUITES)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users' commands are not compiled anew each time, either
    console = Console(highlight=False, width=150)
    console.print(
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {os.cpu_count()} CPUs, {platform.system()}"
        f"{'; quick: sizes are a tenth' if words.quick else ''}"
    )
    table = Table("suite", "what", "ours", "the limit", "ratio", "aim", box=None)
    for name in words.names or SUITES:
        with tempfile.TemporaryDirectory(prefix="palaver-bench-") as folder:
            suite = suite_at(SUITES[name])
            for row in suite(Path(folder), quick=words.quick):
                table.add_row(name, row.what, row.ours, row.limit, row.ratio, row.aim)
        console.print(f"{name} done", style="dim")
    if table.row_count:
        console.print(table)


if __name__ == "__main__":
    main()
