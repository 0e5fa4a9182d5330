"""palaver erase and verify-receipt: what was written leaves the store for good, and the proof of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from os import fdopen, fsync, link
from os.path import lexists
from pathlib import Path
from tempfile import mkstemp
from typing import Annotated, Any, NamedTuple, TextIO

import typer

from palaver.cli.options import JsonOption
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, output
from palaver.errors import InvalidInput
from palaver.plurals import counted
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
from palaver.session.erasure.doing import erasing_store
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
    if receipt is not None and lexists(receipt):
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
        with _beside(receipt) as place:  # one that cannot be made is found before anything is erased
            done = erase(source, **scope, thorough=vacuum)
            unwritten = None if place is None else _unwritten(place, done)
    code = _told((done,), json=json)
    if unwritten is not None:
        why = (
            f"{receipt}: {unwritten.strerror}; it was erased, and the store keeps the receipt "
            f"(`palaver verify-receipt STORE {done.id} --output FILE`)"
        )
        raise OSError(unwritten.errno, why) from unwritten
    return code


class _Place(NamedTuple):
    """Where a receipt is to be, and the file beside it that it is written to first: under its name it is whole or not there."""

    path: Path
    draft: Path
    file: TextIO


@contextmanager
def _beside(path: Path | None, otherwise: str = "nothing was erased") -> Iterator[_Place | None]:
    """Make the file that the receipt is written to; behind the block it is gone, or has the receipt's name."""
    if path is None:
        yield None
        return
    try:
        number, draft = mkstemp(dir=path.parent, prefix=".palaver-")
    except OSError as error:  # it is our output, no input that was named
        raise OSError(error.errno, f"{path}: {error.strerror}; {otherwise}") from error
    file = fdopen(number, "w", encoding="utf-8")
    try:
        yield _Place(path, Path(draft), file)
    finally:
        with suppress(OSError):  # what could not be written was told already
            file.close()
        Path(draft).unlink(missing_ok=True)


def _unwritten(place: _Place, receipt: Receipt) -> OSError | None:
    """Write the receipt, as durable as what it tells of, and give it its name; give what went wrong."""
    try:
        place.file.write(receipt.to_json() + "\n")
        place.file.flush()
        fsync(place.file.fileno())
        _named(place)
    except OSError as error:
        return error
    return None


def _named(place: _Place) -> None:
    """Give the written file its name, which nobody else has taken meanwhile; a disk without second names moves it."""
    try:
        link(place.draft, place.path)
    except FileExistsError:
        raise
    except OSError:
        if lexists(place.path):
            raise
        place.draft.rename(place.path)


def verify(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="The store that gave it, or a copy: a file or postgresql://….")
    ],
    receipt: Annotated[
        str | None,
        typer.Argument(
            metavar="[RECEIPT]",
            help="The receipt's file, its id, or - for standard input; all that the store keeps when not given.",
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write the receipt, JSON; it must not exist yet."),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Check a receipt of an erasure: nothing that it names is there, and its tombstones are. Ends with 1 when it does not hold.

    A store keeps the receipts that it gave: without RECEIPT all of them are checked, the oldest first, and --output writes one that got lost.
    """
    if out is not None and receipt is None:
        raise typer.BadParameter("name the receipt that is to be written.", param_hint="--output")
    if out is not None and lexists(out):
        raise InvalidInput(f"{out} exists already.", hint="Name another file for the receipt.")
    text = None if receipt is None else _text(receipt)
    with closing(_opened(store, writes=False)) as source:
        known = [one.receipt_id for one in erasing_store(source).receipts()] if text is None else [text]
        verdicts = [verify_receipt(source, one) for one in known]
    for verdict in verdicts:
        if json:
            _print_row(verdict)
        else:
            _say(verdict, listed=text is None)
    if not verdicts and not json:
        output().print("This store has given no receipt: nothing was erased in it.")
    if out is not None:
        with _beside(out, "it was not written") as place:
            unwritten = None if place is None else _unwritten(place, verdicts[0].receipt)
        if unwritten is not None:
            raise OSError(unwritten.errno, f"{out}: {unwritten.strerror}; it was not written") from unwritten
    return Exit.OK if all(verdict.holds for verdict in verdicts) else Exit.FOUND


def _print_row(verdict: Verdict) -> None:
    row = {"holds": verdict.holds, "problems": list(verdict.problems), "notes": list(verdict.notes)}
    print_json(row | {"pending": list(verdict.pending), "receipt": verdict.receipt.id, "at": verdict.receipt.at})


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
        f"Would erase {counted(found.entries, 'entry')} ({counted(found.messages, 'message')}) of {counted(len(found.sessions), 'session')} "
        f"and {counted(len(found.dialogs), 'dialog')} as a whole; nothing was written."
    )
    _list("leaving a tombstone", map(str, found.tombstones))
    _list("losing what was made of erased entries", map(str, found.touched))
    console.print(
        f"  payloads named by them: {found.blobs:,} (those that something else names stay); sources: {found.sources:,}"
    )
    _list("files that would be deleted", found.files)
    _list("staying, and repeating a line of what is erased, or a word with digits in it", map(str, found.quoted))
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
            f"Erased {counted(one.entries, 'entry')} of {counted(len(one.sessions), 'session')} and {counted(len(one.dialogs), 'dialog')} "
            f"as a whole; {counted(len(one.tombstones), 'tombstone')}, {counted(len(one.blobs), 'payload')}, "
            f"{counted(len(one.sources), 'source')}, {counted(one.files, 'file')}. Receipt {one.id}."
        )
        _list("summaries and records that went with it", one.summaries)
        _list("of these, told anew by code from the entries that stand", one.retold)
        for words in one.beyond:
            output().print(f"  out of reach: {words}")
        for words in one.pending:
            errors().print(f"  pending: {words}")
    if not receipts and not json:
        output().print("Nothing is pending.")
    return Exit.OK if all(one.complete for one in receipts) else Exit.FOUND


def _say(verdict: Verdict, *, listed: bool) -> None:
    console = output()
    given = datetime.fromtimestamp(verdict.receipt.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    told = f" ({given}, {counted(verdict.receipt.entries, 'entry')})" if listed else ""
    console.print(f"Receipt {verdict.receipt.id} {'holds' if verdict.holds else 'does NOT hold'}{told}.")
    for title, lines in (("problem", verdict.problems), ("note", verdict.notes), ("pending", verdict.pending)):
        for line in lines:
            console.print(f"  {title}: {line}")
