"""Play the scenarios against the APIs of the vendors, with the keys of the environment.

./run live [--list] [--calls N] [--dollars X] [--only TEXT]

Without a key, the models of an API are skipped, and the table says so. Both bounds count what a call could cost at most. The exit status is 1 where
a request was refused, or something was dropped that palaver sent.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

import anyio
from rich.console import Console
from rich.table import Table

from tests.live.matrix import APIS, LiveApi, cells
from tests.live.scenarios import SCENARIOS, Bounds


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the arguments (by default those of the command), play, print the matrix, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="./run live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print the matrix, and send nothing")
    parser.add_argument("--calls", type=int, default=400, help="the most calls (default: %(default)s)")
    parser.add_argument("--dollars", type=float, default=20.0, help="the most dollars (default: %(default)s)")
    parser.add_argument("--only", default="", help="only the models with this in their names")
    words = parser.parse_args(arguments)
    bounds, failed = Bounds(words.calls, words.dollars), False
    console = Console(width=150, highlight=False)
    for api in APIS:
        key = next((os.environ[name] for name in api.keys if os.environ.get(name)), "")
        chosen = LiveApi(**{**vars(api), "models": tuple(name for name in api.models if words.only in name)})
        rows = {(model, scenario.name): "" for model in chosen.models for scenario in SCENARIOS}
        if key and not words.list and rows:

            async def played(api: LiveApi = chosen, key: str = key, rows: dict[tuple[str, str], str] = rows) -> bool:
                async for model, scenario, outcome in cells(api, {"api_key": key, **api.options}, bounds):
                    rows[model, scenario.name] = outcome
                return any(map(_bad, rows.values()))

            failed |= anyio.run(played)
        why = "" if key else f" (skipped: {' or '.join(api.keys)} is not set)"
        if rows:
            console.print(f"{api.prefix}{why}", _matrix(chosen.models, rows), sep="\n")
    spent = words.dollars - bounds.dollars
    console.print(f"{words.calls - bounds.calls} calls, at most {spent:.2f} dollars.")
    return failed


def _bad(outcome: str) -> bool:
    return outcome.startswith(("refused", "not sent")) or outcome.endswith("dropped by the API")


def _matrix(models: Sequence[str], outcomes: Mapping[tuple[str, str], str]) -> Table:
    """Return the outcomes of an API: a row a scenario, a column a model."""
    table = Table("scenario", "most calls", *models, box=None)
    for scenario in SCENARIOS:
        table.add_row(scenario.name, str(scenario.calls), *(outcomes[model, scenario.name] or "-" for model in models))
    return table


if __name__ == "__main__":
    sys.exit(main())
