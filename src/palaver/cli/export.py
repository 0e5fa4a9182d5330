"""palaver export: a session in the form another tool reads."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.options import DialogOption, JsonOption, SessionArgument, StoreOption, dialog_of, opened
from palaver.cli.outcome import Exit, print_json
from palaver.cli.surroundings import errors
from palaver.session import Session
from palaver.transcripts import EXPORTS
from palaver.transcripts import export as export_session


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(run)


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
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Export a session. What the form cannot hold is reported. A file appears whole or not at all; --json describes it."""
    with opened(store) as source:
        found = Session.open(session, source)
        done = export_session(source, found.session_id, to, dialog_id=dialog_of(found, dialog), whole=not view)
        if target is None:
            for piece in done.pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            size = None
        else:
            size = _write(target, done.pieces)
        report = [str(change) for change in done.report]
        if json and target is not None:
            print_json({"file": str(target), "form": to, "bytes": size, "session": found.session_id, "report": report})
        elif report:
            errors().print(f"{len(report)} things are held otherwise than recorded; the first: {report[0]}")
    return Exit.OK


def _write(target: Path, pieces: Iterable[bytes]) -> int:
    """Write a file beside the target and put it in its place when it is whole."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    size = 0
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                size += file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    return size
