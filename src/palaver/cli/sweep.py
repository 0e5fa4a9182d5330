"""palaver sweep: payloads that nothing names leave the store, when somebody says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Annotated

import typer

from palaver.cli.options import JsonOption
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, output
from palaver.errors import InvalidInput, StoreDamaged
from palaver.plurals import counted
from palaver.session.erasure.retention import age_of
from palaver.store import Store, open_store
from palaver.store.erasing import Stray
from palaver.store.sweeping import SweepPlan, Swept, stray_payloads, sweep, sweepable

_SHOWN = 10


def run(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="The store: a file or postgresql://…. It is never a default.")
    ],
    *,
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="AGE", help="Since somebody put it last, 1h at least; s, m, h, d, w, y."),
    ] = "1d",
    preview: Annotated[bool, typer.Option("--preview", help="Only show what would go. This is the default.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it.")] = False,
    vacuum: Annotated[
        bool,
        typer.Option(
            "--vacuum/--no-vacuum", help="Write the storage anew, which gives the room back and keeps others out."
        ),
    ] = False,
    json: JsonOption = False,
) -> int:
    """Remove payloads (pictures, kept files) that nothing names. Nothing happens without --yes.

    A writer that dies between putting a payload and the entry that names it leaves one; no reader sees it. What was put within the age stays,
    for its writer may be alive. The store is read while others write; what they wrote meanwhile is read again while payloads are removed, with every
    other writer kept out: a moment. It can be stopped anywhere and done again.
    """
    if preview and yes:
        raise typer.BadParameter("either look, or do it.", param_hint="--preview")
    if store in {"memory:", ":memory:"}:
        raise InvalidInput("A store in memory ends with this command.", hint="Name a file or a database.")
    with closing(open_store(store, create=False, read_only=not yes)) as source:
        plan = sweepable(source, older_than=age_of(older_than))
        if not yes:
            _show(plan, json=json)
            return Exit.OK
        return _told(sweep(source, plan, thorough=vacuum), json=json)


def row_of(stray: Stray) -> dict[str, object]:
    """Give a payload as JSON values."""
    return {"payload": stray.blob_id, "bytes": stray.size, "age": stray.age}


def list_strays(title: str, strays: Sequence[Stray]) -> None:
    """Print the first of some payloads, and how many more there are."""
    for stray in strays[:_SHOWN]:
        output().print(f"  {title}: {stray.blob_id} ({counted(stray.size, 'byte')})", soft_wrap=True)
    if len(strays) > _SHOWN:
        output().print(f"  {title}: … {len(strays) - _SHOWN:,} more (--json lists them)")


def found_strays(store: Store) -> tuple[Stray, ...]:
    """Give the payloads of a store that nothing names; none where it is damaged, for then nobody can tell: that is told by itself."""
    try:
        return tuple(stray_payloads(store))
    except StoreDamaged:
        return ()


def tell_strays(strays: Sequence[Stray]) -> None:
    """Print which payloads nothing names; nothing where there are none."""
    if strays:
        size = f"({counted(size_of(strays), 'byte')})"
        output().print(
            f"{counted(len(strays), f'payload {size} is', f'payloads {size} are')} named by nothing; `palaver sweep STORE` removes what no writer can need.",
            soft_wrap=True,
        )
        list_strays("named by nothing", strays)


def size_of(strays: Iterable[Stray]) -> int:
    """Give their length together, in bytes."""
    return sum(one.size for one in strays)


def _show(plan: SweepPlan, *, json: bool) -> None:
    if json:
        due, younger = list(map(row_of, plan.strays)), list(map(row_of, plan.younger))
        print_json(
            {"preview": True, "older_than": plan.older_than, "bytes": plan.size, "to_remove": due, "younger": younger}
        )
        return
    console = output()
    console.print(
        f"Would remove {counted(len(plan.strays), 'payload')} ({counted(plan.size, 'byte')}) that nothing names; nothing was written."
    )
    list_strays("to remove", plan.strays)
    list_strays("stays, may be being written", plan.younger)
    if plan.strays:
        console.print("Give --yes to do it.")


def _told(done: Swept, *, json: bool) -> int:
    size = size_of(done.removed)
    if json:
        removed = list(map(row_of, done.removed))
        stay = {"kept": list(done.kept), "left": list(done.left)}
        print_json({"removed": removed, "bytes": size, **stay, "pending": list(done.pending)})
    else:
        output().print(f"Removed {counted(len(done.removed), 'payload')} ({counted(size, 'byte')}).")
        if done.kept:
            output().print(
                f"  {counted(len(done.kept), 'stays: something names it now, or it was', 'stay: something names them now, or they were')} put again."
            )
        for words in done.pending:
            errors().print(f"  pending: {words}")
    return Exit.FOUND if done.pending else Exit.OK
