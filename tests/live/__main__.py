"""Play the scenarios against the APIs of the vendors, with the keys of the environment.

./run live [--list] [--calls N] [--dollars X] [--only TEXT]

Without a key, the models of an API are skipped, and the table says so. Both bounds count what a call could cost at most. The exit status is 1 where
a request was refused, or something was dropped that palaver sent.
"""

from __future__ import annotations

import argparse
import os
import sys

import anyio
from rich.console import Console
from rich.table import Table

from tests.live.matrix import APIS, LiveApi, cells
from tests.live.scenarios import SCENARIOS, Bounds


def main() -> int:
    """Read the arguments, play, print the matrix, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="./run live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print the matrix, and send nothing")
    parser.add_argument("--calls", type=int, default=400, help="the most calls (default: %(default)s)")
    parser.add_argument("--dollars", type=float, default=20.0, help="the most dollars (default: %(default)s)")
    parser.add_argument("--only", default="", help="only the models with this in their names")
    words = parser.parse_args()
    bounds, failed = Bounds(words.calls, words.dollars), False
    table = Table("API", "model", "scenario", "most calls", "outcome", box=None)
    for api in APIS:
        key = next((os.environ[name] for name in api.keys if os.environ.get(name)), "")
        chosen = LiveApi(**{**vars(api), "models": tuple(name for name in api.models if words.only in name)})
        if words.list or not key:
            why = f"skipped: {' or '.join(api.keys)} is not set" if not key else "would be played"
            for model in chosen.models:
                for scenario in SCENARIOS:
                    table.add_row(api.prefix, model, scenario.name, str(scenario.calls), why)
            continue

        async def played(api: LiveApi = chosen, key: str = key) -> bool:
            bad = False
            async for model, scenario, outcome in cells(api, {"api_key": key, **api.options}, bounds):
                table.add_row(api.prefix, model, scenario.name, str(scenario.calls), outcome)
                bad |= outcome.startswith(("refused", "not sent")) or outcome.endswith("dropped by the API")
            return bad

        failed |= anyio.run(played)
    console = Console(width=150, highlight=False)
    console.print(table)
    spent = words.dollars - bounds.dollars
    console.print(f"{words.calls - bounds.calls} calls, at most {spent:.2f} dollars.")
    return failed


if __name__ == "__main__":
    sys.exit(main())
