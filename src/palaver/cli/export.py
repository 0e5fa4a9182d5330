"""palaver export: a session in the form another tool reads."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Annotated

import typer

from palaver.cli.dialogs import dialog_of
from palaver.cli.options import DialogOption, JsonOption, SessionArgument, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors
from palaver.errors import StoreReadOnly
from palaver.ids import SessionId
from palaver.plurals import counted
from palaver.session import Session
from palaver.store import Store
from palaver.store.erasing import Erasing
from palaver.transcripts import EXPORTS
from palaver.transcripts import export as export_session


def run(
    session: SessionArgument,
    *,
    to: Annotated[str, typer.Option("--to", metavar="FORM", help=f"One of: {', '.join(EXPORTS)}.")],
    dialog: DialogOption = None,
    view: Annotated[
        bool, typer.Option("--view", help="What the model would see now, instead of everything that was said.")
    ] = False,
    target: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to; default: standard output.")
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Take keys and tokens out of what is written; the store keeps them.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Export a session. What the form cannot hold is reported. A file appears whole or not at all.

    With --json, an object that describes what was written: on standard output, or, where that takes the export itself, on standard error.
    """
    if to == "bundle" and (dialog is not None or view):
        raise typer.BadParameter("a bundle holds the whole session.", param_hint="--dialog" if dialog else "--view")
    with opened(store) as source:
        found = Session.open(session, source)
        done = export_session(
            source, found.session_id, to, dialog_id=dialog_of(found, dialog), whole=not view, redact=redact
        )
        size = _pour(sys.stdout.buffer, done.pieces) if target is None else _write(target, done.pieces)
        if target is not None:
            _note(source, found.session_id, target)
        report = [str(change) for change in done.report]
        if json:
            row = {"file": None if target is None else str(target), "form": to, "bytes": size}
            print_json(row | {"session": found.session_id, "report": report}, aside=target is None)
        elif report:
            errors().print(
                f"{counted(len(report), 'thing is', 'things are')} held otherwise than recorded; the first: {report[0]}"
            )
    return Exit.OK


def _note(store: Store, session_id: SessionId, target: Path) -> None:
    """Let the store remember the file, so that an erasure of the session reaches it; a store that may only be read cannot."""
    if isinstance(store, Erasing) and target.resolve().is_file():
        with suppress(StoreReadOnly):
            store.note_file(session_id, str(target.resolve()))


def _pour(file: IO[bytes], pieces: Iterable[bytes]) -> int:
    size = 0
    for piece in pieces:
        size += file.write(piece)
    file.flush()
    return size


def _write(target: Path, pieces: Iterable[bytes]) -> int:
    """Write a file beside the target and put it in its place when it is whole; what is no file, such as a pipe, is written to as it is."""
    place = target.resolve()
    if place.exists() and not place.is_file():
        with place.open("wb") as file:
            return _pour(file, pieces)
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".palaver-")
    except OSError as error:  # it would name a file that nobody asked for
        raise OSError(error.errno, f"{place.parent}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            size = _pour(file, pieces)
            os.fsync(file.fileno())
        Path(name).replace(place)
    except BaseException:  # an interrupt, too, leaves no half file behind
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    return size
