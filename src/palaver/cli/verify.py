"""palaver verify: derive again whatever a store can be wrong about."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Annotated

import typer

from palaver.cli.options import JsonOption
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import output, store_url
from palaver.cli.sweep import found_strays, row_of, size_of, tell_strays
from palaver.plurals import counted
from palaver.session import Session, searchable
from palaver.store import open_store
from palaver.store.erasing import Stray
from palaver.store.verifying import Fault, Verification, verify_store


def run(
    store: Annotated[
        str | None,
        typer.Argument(metavar="[STORE]", help="The store, as --store takes it elsewhere. Default: the default store."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="S", help="One session alone: its entries, its place and its payloads."),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Read a store back and derive everything again: entries, headers, counts, payloads, forks, rows and the full-text index.

    What does not follow is named with its place. The store is only read, in the same memory however large it is. Ends with 1 when something
    is wrong. Payloads that nothing names are no fault and are named, too: `palaver sweep` removes them. With --json each fault and each such
    payload is a line, and the last line has the figures.
    """
    with closing(open_store(store_url(store), create=False, read_only=True)) as source:
        only = None if session is None else Session.open(session, source).session_id
        run = verify_store(source, only, extract=searchable)
        for fault in run:
            _tell(fault, json=json)
        strays = () if only is not None else found_strays(source)
        _sum_up(run, strays, json=json)
    return Exit.FOUND if run.faults else Exit.OK


def _tell(fault: Fault, *, json: bool) -> None:
    if json:
        print_json({"place": fault.place, "code": fault.code, "what": fault.what})
    else:
        output().print(f"{fault.place}: {fault.what} ({fault.code})", soft_wrap=True, style="red")


def _sum_up(run: Verification, strays: Sequence[Stray], *, json: bool) -> None:
    counts = {"sessions": run.sessions, "dialogs": run.dialogs, "entries": run.entries, "payloads": run.blobs}
    if json:
        for stray in strays:
            print_json({"stray": True, **row_of(stray)})
        loose = {"strays": len(strays), "stray_bytes": size_of(strays)}
        print_json({**counts, "bytes": run.size, **loose, "faults": run.faults, "sound": not run.faults})
        return
    told = ", ".join(map(counted, counts.values(), ("session", "dialog", "entry", "payload")))
    verdict = "everything follows" if not run.faults else counted(run.faults, "fault")
    output().print(f"{told}: {verdict}.", soft_wrap=True)
    tell_strays(strays)
