"""palaver retain and hold: what was not used for long goes, when somebody says so; and what stays all the same."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from palaver.cli.options import JsonOption, SessionArgument, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, output
from palaver.errors import InvalidInput
from palaver.plurals import counted
from palaver.session import Session
from palaver.session.erasure.retention import Retained, RetentionPlan, age_of, retain, retention
from palaver.store import SessionRecord, open_store

_SHOWN = 20


def run(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="The store: a file or postgresql://…. It is never a default.")
    ],
    *,
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="AGE", help="Since the last activity in its log: 90d; s, m, h, d, w, y."),
    ],
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="WHO", help="Only sessions of exactly this subject.")
    ] = None,
    empty_trash: Annotated[
        str | None,
        typer.Option("--empty-trash", metavar="AGE", help="Erase what is in the trash for longer than this."),
    ] = None,
    straight: Annotated[
        bool, typer.Option("--erase", help="Erase what is due at once, without the trash between.")
    ] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what would go. This is the default.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it.")] = False,
    vacuum: Annotated[bool, typer.Option("--vacuum/--no-vacuum", help="Write the storage anew after erasures.")] = True,
    json: JsonOption = False,
) -> int:
    """Put sessions that were not used for long into the trash, and erase what is in the trash for long. Nothing happens without --yes.

    What counts is the last activity in a session's log, not the time of any file. A session that is held (`palaver hold`), or on which
    somebody has a lease, stays and is listed. Erasures give receipts.
    """
    if preview and yes:
        raise typer.BadParameter("either look, or do it.", param_hint="--preview")
    if store in {"memory:", ":memory:"}:
        raise InvalidInput("A store in memory ends with this command.", hint="Name a file or a database.")
    with closing(open_store(store, create=False)) as source:
        plan = retention(
            source,
            older_than=age_of(older_than),
            subject=subject,
            empty_trash=None if empty_trash is None else age_of(empty_trash),
            trash=not straight,
        )
        if not yes:
            _show(plan, json=json)
            return Exit.OK
        return _told(retain(source, plan, thorough=vacuum), json=json)


def hold(
    session: SessionArgument,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="WHY", help="Why it is kept.")] = "",
    release: Annotated[bool, typer.Option("--release", help="Hold it no longer.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Keep a session from retention, whatever its age; with --release no longer."""
    if release and reason:
        raise typer.BadParameter("a session that is released needs no reason.", param_hint="--reason")
    if not release and not reason:
        raise typer.BadParameter("say why it is held.", param_hint="--reason")
    with opened(store, writes=True) as source:
        found = Session.open(session, source)
        if release:
            found.release()
        else:
            found.hold(reason)
        row = {"session": found.session_id, "held": None if release else reason}
    if json:
        print_json(row)
    else:
        output().print(f"{row['session']} is {'held no longer' if release else f'held: {reason}'}")
    return Exit.OK


def _row(record: SessionRecord) -> dict[str, object]:
    return {"session": record.session_id, "name": record.name, "updated_at": record.updated_at}


def _show(plan: RetentionPlan, *, json: bool) -> None:
    kept = [{**_row(one.record), "reason": one.reason} for one in plan.kept]
    if json:
        to_trash, to_erase = list(map(_row, plan.to_trash)), list(map(_row, plan.to_erase))
        print_json({"preview": True, "before": plan.before, "to_trash": to_trash, "to_erase": to_erase, "kept": kept})
        return
    console = output()
    console.print(
        f"Would put {counted(len(plan.to_trash), 'session')} into the trash and erase {len(plan.to_erase):,}; nothing was written."
    )
    for title, records in (("to trash", plan.to_trash), ("to erase", plan.to_erase)):
        for record in records[:_SHOWN]:
            console.print(f"  {title}: {record.session_id[:12]}  {record.name}")
        if len(records) > _SHOWN:
            console.print(f"  {title}: … {len(records) - _SHOWN} more")
    for one in plan.kept:
        console.print(f"  stays: {one.record.session_id[:12]}  {one.record.name} ({one.reason})")
    if plan.to_trash or plan.to_erase:
        console.print("Give --yes to do it.")


def _told(done: Retained, *, json: bool) -> int:
    if json:
        receipts = [one.to_dict() for one in done.receipts]
        kept = [{**_row(one.record), "reason": one.reason} for one in done.kept]
        print_json({"trashed": list(done.trashed), "receipts": receipts, "kept": kept})
    else:
        output().print(
            f"{counted(len(done.trashed), 'session is', 'sessions are')} in the trash now; "
            f"{counted(len(done.receipts), 'was', 'were')} erased, {counted(len(done.kept), 'stays', 'stay')}."
        )
        for receipt in done.receipts:
            output().print(f"  receipt {receipt.id}")
        for words in done.receipts[-1].pending if done.receipts else ():
            errors().print(f"  pending: {words}")
    return Exit.OK if not done.receipts or done.receipts[-1].complete else Exit.FOUND
