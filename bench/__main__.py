"""./run bench: what palaver costs, as ratios against the physical limit and the peers, in one run on one machine.

    python -m bench [--quick | --full] [NAME...]
    names: append, async, fork, open, take-up, rounds, loop, context, schedule, import, start, doctor, postgres, scale, scale-postgres, lab, map, sweep, peers

Each ratio is of medians of interleaved runs: ours, the limit, ours, the limit … so that a machine whose speed drifts drifts for both. The
limit of a durable append is one row inserted by apsw into a plain table, in a transaction of its own, with WAL and synchronous FULL.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import apsw
from rich.console import Console
from rich.table import Table

from bench import (
    appends,
    contexts,
    doctors,
    imports,
    loop,
    openings,
    peers,
    postgres,
    replays,
    repo_maps,
    rounds,
    scale,
    schedule,
    sweeps,
)
from bench.measure import Row


class Suite(Protocol):
    """One group of measurements."""

    def __call__(self, folder: Path, /, *, quick: bool) -> list[Row]:
        """Measure in a folder of its own."""
        ...


SUITES: Mapping[str, Suite] = {
    "append": appends.run,
    "async": appends.run_async,
    "fork": openings.run_fork,
    "open": openings.run_open,
    "take-up": openings.run_take_up,
    "rounds": rounds.run,
    "loop": loop.run,
    "context": contexts.run,
    "schedule": schedule.run,
    "import": imports.run,
    "start": imports.run_start,
    "doctor": doctors.run,
    "postgres": postgres.run,
    "scale": scale.run,
    "scale-postgres": scale.run_postgres,
    "lab": replays.run,
    "map": repo_maps.run,
    "sweep": sweeps.run,
    "peers": peers.run,
}

FULL: Mapping[str, Suite] = {"scale": scale.run_full, "scale-postgres": scale.run_postgres_full}
"""What `--full` puts in the place of a suite: sizes that take many minutes and much disk."""


def main() -> None:
    """Run the suites that were named, or all, and print the table."""
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(SUITES)}; default all")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes, to see that everything runs")
    parser.add_argument(
        "--full",
        action="store_true",
        help="a million sessions for `scale` and `scale-postgres`: half an hour, 8 GB of disk",
    )
    words = parser.parse_args()
    unknown = [name for name in words.names if name not in SUITES]
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}; suites: {', '.join(SUITES)}")
    console = Console(highlight=False, width=150)
    console.print(
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {os.cpu_count()} CPUs, {platform.system()}"
        f"{'; quick: sizes are a tenth' if words.quick else ''}"
    )
    table = Table("suite", "what", "ours", "the limit", "ratio", "aim", box=None)
    for name in words.names or SUITES:
        with tempfile.TemporaryDirectory(prefix="palaver-bench-") as folder:
            suite = FULL.get(name, SUITES[name]) if words.full else SUITES[name]
            for row in suite(Path(folder), quick=words.quick):
                table.add_row(name, row.what, row.ours, row.limit, row.ratio, row.aim)
        console.print(f"{name} done", style="dim")
    console.print(table)


if __name__ == "__main__":
    main()
