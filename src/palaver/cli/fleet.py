"""palaver work and palaver queue: a worker of a fleet, and a look at its queue."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, TypeAlias

from typer import Argument, Option

from palaver.cli.interrupts import interruptible
from palaver.cli.options import JsonOption
from palaver.cli.terminal import emit, paged, print_rows, say, when
from palaver.errors import InvalidInput, reported

if TYPE_CHECKING:
    from palaver.integrations.fleet import Fleet
    from palaver.integrations.fleet_sessions import QueuedRow

FleetArgument: TypeAlias = Annotated[
    str, Argument(metavar="MODULE:NAME", help="Where the fleet is, such as `shop.fleet:fleet`: a `Fleet` in a module.")
]

_COLUMNS: Mapping[str, Callable[[QueuedRow], str]] = {
    "session": lambda row: row["session"][:12],
    "state": lambda row: row["state"],
    "since": lambda row: when(row["since"]),
    "failed": lambda row: str(row["attempts"] or ""),
    "name": lambda row: row["name"],
}


def _fleet(place: str) -> Fleet:
    """Return the fleet that a text names."""
    from palaver.integrations.fleet import Fleet  # noqa: PLC0415 - it needs the extra

    module, _, name = place.partition(":")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as `python -m` does
    hint = "Write MODULE:NAME, such as shop.fleet:fleet, or correct the module."
    with reported(f"There is no fleet at {place!r}", hint):
        found = getattr(import_module(module), name or "fleet")
    if not isinstance(found, Fleet):
        raise InvalidInput(f"{place!r} is a {type(found).__name__}.", hint="Name a palaver.integrations.fleet.Fleet.")
    return found


def work(
    fleet: FleetArgument,
    concurrency: Annotated[int, Option("--concurrency", "-c", min=1, help="How many sessions at once.")] = 16,
    grace: Annotated[float, Option("--grace", min=0.0, help="Seconds that running turns have to end.")] = 10.0,
    json: JsonOption = False,
) -> None:
    """Answer the sessions of a fleet until Ctrl-C or SIGTERM, then finish or interrupt running turns. Needs the extra `fleet`.

    Start it on every machine, and as often as there are cores. Another worker takes up what one that dies leaves.
    """
    chosen = _fleet(fleet)
    with interruptible(), suppress(KeyboardInterrupt):
        row = {"queue": chosen.queue, "store": chosen.store.place}
        emit(json, row, f"Working on the queue {chosen.queue} of {chosen.store.place}. Ctrl-C ends it.")
        sys.stdout.flush()
        asyncio.run(chosen.work(concurrency, grace=grace))


def queue(fleet: FleetArgument, json: JsonOption = False) -> None:
    """Show which sessions of a fleet wait, run, are stalled, failed, or wait for a person. Needs the extra `fleet`."""
    rows = asyncio.run(_fleet(fleet).jobs())
    with paged(data=json):
        if rows:
            print_rows(json, rows, _COLUMNS, cut={"name": 18}, drop=("failed", "since"))
        elif not json:
            say("Nothing waits, and nothing runs.")
