"""palaver store: what concerns a store as a whole."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from palaver.browsing.places import locate
from palaver.cli.app import group
from palaver.cli.options import (
    AgeOption,
    JsonOption,
    OutputOption,
    SessionArgument,
    StoreOption,
    SubjectOption,
    YesOption,
    opened,
)
from palaver.cli.outcome import Exit
from palaver.cli.terminal import complain, emit, listed
from palaver.erasure.receipts import Receipt, erasing_store, verify_receipt
from palaver.errors import InvalidInput
from palaver.plurals import counted
from palaver.session import searchable
from palaver.session.retention import age_of, retain, retention
from palaver.store import SessionRecord, sweep, sweepable, verify_store
from palaver.store.connect import open_for_user
from palaver.transfer.copies import copy_store

app = group("store", "A store as a whole: verify, copy and sweep it; retention, and receipts of erasures.")

_SHOWN = 10


@app.command()
def verify(
    session: Annotated[str | None, Argument(metavar="SESSION", help="Default: the whole store.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Check that everything in a store is as it was written. Ends with 1 when something is wrong.

    Headers, counts, payloads, forks and the search index are derived again; the store is only read. With --json each fault is a line, and the last line has the figures.
    """
    with opened(store) as source:
        only = None if session is None else locate(source, session).session.session_id
        done = verify_store(source, only, extract=searchable)
        for fault in done:
            row: dict[str, Any] = {"place": fault.place, "code": fault.code, "what": fault.what}
            emit(json, row, f"{fault.place}: {fault.what} ({fault.code})")
    counts = {"session": done.sessions, "dialog": done.dialogs, "entry": done.entries, "payload": done.blobs}
    read = ", ".join(counted(number, what) for what, number in counts.items())
    row = {"sessions": done.sessions, "dialogs": done.dialogs, "entries": done.entries, "payloads": done.blobs}
    figures = {**row, "bytes": done.size, "faults": done.faults, "sound": not done.faults}
    emit(json, figures, f"{read}: {counted(done.faults, 'fault') if done.faults else 'all as written'}.")
    return Exit.FOUND if done.faults else Exit.OK


@app.command()
def copy(
    target: Annotated[str, Argument(metavar="TO", help="The store to copy into; created when it is missing.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Copy everything into another store, the trash too. Then both are compared; ends with 1 when they are not equal.

    An interruption leaves TO as it was; its writers wait until the end. Nothing else in TO is changed. The search index is not copied: the next search makes it.
    """
    if target in {"memory:", ":memory:"}:
        raise InvalidInput("A store in memory ends with this command.", hint="Name a file or a database.")
    with opened(store) as source, closing(open_for_user(target)) as there:
        done = copy_store(source, there)
    names = ("sessions", "dialogs", "entries", "bytes", "blobs", "written", "others")
    row = {name: getattr(done, name) for name in names} | {"equal": done.equal, "differences": list(done.differences)}
    size = f"{counted(done.sessions, 'session')}, {counted(done.entries, 'entry')}, {counted(done.blobs, 'payload')}"
    verdict = "Both are equal." if done.equal else "They are NOT equal:"
    emit(json, row, f"{size}; {done.written:,} entries written. {verdict}", *listed(done.differences, _SHOWN))
    return Exit.OK if done.equal else Exit.FOUND


@app.command(name="sweep")
def sweep_(
    older_than: AgeOption = "1d", yes: YesOption = False, store: StoreOption = None, json: JsonOption = False
) -> int:
    """Remove orphaned payloads. A writer leaves them when it crashes between storing a payload and its entry. Can be stopped and repeated."""
    with opened(store, writes=yes) as source:
        age = age_of(older_than)
        done = sweep(source, older_than=age) if yes else None
        orphans = sweepable(source, older_than=age) if done is None else done.removed
    pending, size = list(done.pending) if done else [], sum(orphan.size for orphan in orphans)
    rows = [{"payload": orphan.blob_id, "bytes": orphan.size, "age": orphan.age} for orphan in orphans]
    what = f"{counted(len(orphans), 'orphaned payload')} ({counted(size, 'byte')})"
    said = f"Removed {what}." if yes else f"Would remove {what}; nothing was written."
    lines = [
        *listed([f"  {orphan.blob_id} ({counted(orphan.size, 'byte')})" for orphan in orphans], _SHOWN),
        *_pending(pending),
    ]
    emit(json, {"preview": not yes, "payloads": rows, "bytes": size, "pending": pending}, said, *lines)
    return Exit.FOUND if pending else Exit.OK


def _pending(words: list[str]) -> list[str]:
    return [f"  pending: {each}" for each in words]


# --- retention ------------------------------------------------------------------------------------------------------------------------


@app.command(name="retain")
def retain_(
    older_than: AgeOption,
    subject: SubjectOption = None,
    empty_trash: Annotated[
        str | None, Option("--empty-trash", metavar="AGE", help="Erase what is in the trash longer.")
    ] = None,
    yes: YesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Move unused sessions to the trash, and erase old trash. Erasures leave receipts.

    A session on hold (`palaver store hold`) stays and is listed.
    """
    with opened(store, writes=yes) as source:
        emptied = None if empty_trash is None else age_of(empty_trash)
        plan = retention(source, older_than=age_of(older_than), subject=subject, empty_trash=emptied)
        done = retain(source, plan) if yes else None
    kept = [{**_record(session.record), "reason": session.reason} for session in plan.kept]
    stays = [
        f"  kept: {session.record.session_id[:12]}  {session.record.name} ({session.reason})" for session in plan.kept
    ]
    if done is not None:
        pending = list(done.receipts[-1].pending) if done.receipts else []
        row = {
            "trashed": list(done.trashed),
            "receipts": [receipt.to_dict() for receipt in done.receipts],
            "kept": kept,
        }
        said = f"{len(done.trashed):,} put into the trash, {len(done.receipts):,} erased."
        emit(json, row, said, *stays, *_pending(pending))
        return Exit.FOUND if pending else Exit.OK
    going = {"to_trash": plan.to_trash, "to_erase": plan.to_erase}
    rows = {name: [_record(record) for record in records] for name, records in going.items()}
    names = [
        f"  {name.replace('_', ' ')}: {record.session_id[:12]}  {record.name}"
        for name in going
        for record in going[name]
    ]
    said = f"Would put {len(plan.to_trash):,} into the trash and erase {len(plan.to_erase):,}; nothing was written."
    emit(json, {"preview": True, "before": plan.before, **rows, "kept": kept}, said, *listed(names, _SHOWN), *stays)
    return Exit.OK


def _record(record: SessionRecord) -> dict[str, object]:
    return {"session": record.session_id, "name": record.name, "updated_at": record.updated_at}


@app.command()
def hold(
    session: SessionArgument,
    reason: Annotated[str, Option("--reason", metavar="WHY", help="Why it is kept.")] = "",
    release: Annotated[bool, Option("--release", help="End the hold.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Keep a session from retention at any age."""
    if release == bool(reason):
        raise BadParameter("say why it is held, or end the hold with --release.", param_hint="--reason")
    with opened(store, writes=True) as source:
        there = locate(source, session, only=True).session
        there.hold(reason or None)
    said = f"{there.session_id} is {f'on hold: {reason}' if reason else 'no longer on hold'}."
    emit(json, {"session": there.session_id, "held": reason or None}, said)
    return Exit.OK


# --- receipts -------------------------------------------------------------------------------------------------------------------------


@app.command()
def receipts(
    receipt: Annotated[str | None, Argument(metavar="RECEIPT", help="Its file, its id, or -. Default: all.")] = None,
    output: OutputOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Check receipts of erasures: erased content must be gone, and its tombstones present. Ends with 1 if a receipt is not true."""
    if output is not None and receipt is None:
        raise BadParameter("name the receipt to write.", param_hint="--output")
    with opened(store) as source:
        texts = (
            [stored.receipt_id for stored in erasing_store(source).receipts()] if receipt is None else [_text(receipt)]
        )
        verdicts = [verify_receipt(source, text) for text in texts]
    for verdict in verdicts:
        told = {"problems": verdict.problems, "notes": verdict.notes, "pending": verdict.pending}
        row: dict[str, Any] = {"receipt": verdict.receipt.id, "at": verdict.receipt.at, "holds": verdict.holds}
        at = datetime.fromtimestamp(verdict.receipt.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        holds = "holds" if verdict.holds else "does NOT hold"
        said = f"Receipt {verdict.receipt.id} {holds} ({at}, {counted(verdict.receipt.entries, 'entry')})."
        lines = [f"  {title.removesuffix('s')}: {line}" for title, lines in told.items() for line in lines]
        emit(json, row | {title: list(lines) for title, lines in told.items()}, said, *lines)
    if not verdicts:
        complain("Nothing was erased in this store.")
    if output is not None:
        _write(output, verdicts[0].receipt)
    return Exit.OK if all(verdict.holds for verdict in verdicts) else Exit.FOUND


def _text(receipt: str) -> str:
    if receipt == "-":
        return sys.stdin.read()
    return Path(receipt).read_text("utf-8") if Path(receipt).is_file() else receipt


def _write(path: Path, receipt: Receipt) -> None:
    """Write a receipt to a new file that only its owner can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(receipt.to_json() + "\n")
        file.flush()
        os.fsync(file.fileno())
