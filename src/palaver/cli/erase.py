"""palaver erase and verify-receipt: what was written leaves the store for good, and the proof of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from os import fsync
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from palaver.cli.options import JsonOption
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, output
from palaver.errors import InvalidInput
from palaver.session import Session
from palaver.session.erasure import (
    ErasurePreview,
    Receipt,
    Verdict,
    erase,
    finish_erasures,
    preview_erasure,
    verify_receipt,
)
from palaver.store import Store, open_store

_SHOWN = 10


def run(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="The store: a file or postgresql://…. It is never a default.")
    ],
    *,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="S", help="A session: its id, the first 6 or more digits, or its name."),
    ] = None,
    dialog: Annotated[
        str | None, typer.Option("--dialog", metavar="D", help="A dialog: its id, or the first 6 or more digits.")
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option("--subject", metavar="WHO", help="All sessions of exactly this subject, the trash too."),
    ] = None,
    entry: Annotated[
        list[str] | None, typer.Option("--entry", metavar="HANDLE", help="An entry, by its handle; may be given again.")
    ] = None,
    children: Annotated[bool, typer.Option("--children", help="With --dialog: what grew from it goes, too.")] = False,
    tombstones: Annotated[
        bool, typer.Option("--tombstones", help="With --dialog: leave tombstones for what grew from it.")
    ] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what would go. This is the default.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it.")] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="Do what is pending of earlier erasures, and nothing else.")
    ] = False,
    vacuum: Annotated[
        bool,
        typer.Option(
            "--vacuum/--no-vacuum", help="Write the storage anew; without it some of the work may stay pending."
        ),
    ] = True,
    receipt: Annotated[
        Path | None,
        typer.Option("--receipt", metavar="FILE", help="Where to write the receipt, JSON; it must not exist yet."),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Erase a session, a dialog, all sessions of a subject, or single entries, for good. Nothing is erased without --yes.

    It reaches the entries and what was made of them (summaries, records, shortened forms, labels, recorded calls), payloads that nothing else
    names, kept source files, the search index, and the files that palaver exported the session to. Where other entries stand on erased ones,
    tombstones stay: kind, role and call ids. The receipt says what was done; work that is still pending ends the command with 1, and --finish
    takes it up.
    """
    if preview and yes:
        raise typer.BadParameter("either look, or do it.", param_hint="--preview")
    if receipt is not None and receipt.exists():
        raise InvalidInput(f"{receipt} exists already.", hint="Name another file for the receipt.")
    with closing(_opened(store, writes=yes or finish)) as source:
        if finish:
            return _told(finish_erasures(source, thorough=vacuum), json=json)
        named = Session.open(session, source).session_id if session else None
        scope: dict[str, Any] = {
            "session": named,
            "dialog": dialog,
            "subject": subject,
            "entries": entry or (),
            "children": children,
            "tombstones": tombstones,
        }
        if not yes:
            _show(preview_erasure(source, **scope), json=json)
            return Exit.OK
        with _made(receipt) as file:  # one that cannot be made is found before anything is erased
            done = erase(source, **scope, thorough=vacuum)
            unwritten = None if file is None else _unwritten(file, done)
    code = _told((done,), json=json)
    if unwritten is not None and receipt is not None:
        receipt.unlink(missing_ok=True)
        why = f"{receipt}: {unwritten.strerror}; it was erased, and the store keeps the receipt {done.id} (`palaver verify-receipt`)"
        raise OSError(unwritten.errno, why) from unwritten
    return code


@contextmanager
def _made(path: Path | None) -> Iterator[TextIO | None]:
    """Make the file of the receipt; where there is none to be written in it, it is taken away again."""
    if path is None:
        yield None
        return
    try:
        file = path.open("x", encoding="utf-8")
    except OSError as error:  # it is our output, no input that was named
        raise OSError(error.errno, f"{path}: {error.strerror}; nothing was erased") from error
    try:
        yield file
    except BaseException:  # an interrupt, too, leaves no half receipt behind
        path.unlink()
        raise
    finally:
        with suppress(OSError):  # what could not be written was told already
            file.close()


def _unwritten(file: TextIO, receipt: Receipt) -> OSError | None:
    """Write the receipt, as durable as what it tells of; give what went wrong."""
    try:
        file.write(receipt.to_json() + "\n")
        file.flush()
        fsync(file.fileno())
    except OSError as error:
        return error
    return None


def verify(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="The store that gave it, or a copy: a file or postgresql://….")
    ],
    receipt: Annotated[
        str, typer.Argument(metavar="RECEIPT", help="The receipt's file, its id, or - for standard input.")
    ],
    *,
    json: JsonOption = False,
) -> int:
    """Check a receipt of an erasure: nothing that it names is there, and its tombstones are. Ends with 1 when it does not hold."""
    text = _text(receipt)
    with closing(_opened(store, writes=False)) as source:
        verdict = verify_receipt(source, text)
    if json:
        row = {"holds": verdict.holds, "problems": list(verdict.problems), "notes": list(verdict.notes)}
        print_json(row | {"pending": list(verdict.pending), "receipt": verdict.receipt.id})
    else:
        _say(verdict)
    return Exit.OK if verdict.holds else Exit.FOUND


def _opened(store: str, *, writes: bool) -> Store:
    if store in {"memory:", ":memory:"}:
        raise InvalidInput("A store in memory ends with this command.", hint="Name a file or a database.")
    return open_store(store, create=False, read_only=not writes)


def _text(receipt: str) -> str:
    if receipt == "-":
        return typer.get_text_stream("stdin").read()
    path = Path(receipt)
    return path.read_text("utf-8") if path.is_file() else receipt


def _show(found: ErasurePreview, *, json: bool) -> None:
    if json:
        print_json(
            {
                "preview": True,
                "sessions": list(found.sessions),
                "dialogs": list(found.dialogs),
                "entries": found.entries,
                "messages": found.messages,
                "tombstones": [f"{one.dialog}:{one.seq}" for one in found.tombstones],
                "touched": [f"{one.dialog}:{one.seq}" for one in found.touched],
                "payloads": found.blobs,
                "sources": found.sources,
                "files": list(found.files),
                "quoted": [f"{one.dialog}:{one.seq}" for one in found.quoted],
            }
        )
        return
    console = output()
    console.print(
        f"Would erase {found.entries:,} entries ({found.messages:,} messages) of {len(found.sessions)} sessions and {len(found.dialogs)} dialogs "
        "as a whole; nothing was written."
    )
    _list("leaving a tombstone", map(str, found.tombstones))
    _list("losing what was made of erased entries", map(str, found.touched))
    console.print(
        f"  payloads named by them: {found.blobs:,} (those that something else names stay); sources: {found.sources:,}"
    )
    _list("files that would be deleted", found.files)
    _list("staying, and repeating erased lines word for word", map(str, found.quoted))
    console.print("Give --yes to do it.")


def _list(title: str, names: Iterable[str]) -> None:
    listed = list(names)
    if listed:
        more = f", … {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        output().print(f"  {title}: {', '.join(listed[:_SHOWN])}{more}")


def _told(receipts: tuple[Receipt, ...], *, json: bool) -> int:
    for one in receipts:
        if json:
            print_json(one.to_dict())
            continue
        output().print(
            f"Erased {one.entries:,} entries of {len(one.sessions)} sessions and {len(one.dialogs)} dialogs as a whole; {len(one.tombstones):,} "
            f"tombstones, {len(one.blobs):,} payloads, {len(one.sources):,} sources, {one.files:,} files. Receipt {one.id}."
        )
        for words in one.beyond:
            output().print(f"  out of reach: {words}")
        for words in one.pending:
            errors().print(f"  pending: {words}")
    if not receipts and not json:
        output().print("Nothing is pending.")
    return Exit.OK if all(one.complete for one in receipts) else Exit.FOUND


def _say(verdict: Verdict) -> None:
    console = output()
    console.print(f"Receipt {verdict.receipt.id} {'holds' if verdict.holds else 'does NOT hold'}.")
    for title, lines in (("problem", verdict.problems), ("note", verdict.notes), ("pending", verdict.pending)):
        for line in lines:
            console.print(f"  {title}: {line}")
