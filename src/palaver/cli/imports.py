"""palaver import: sessions of other agents, and bundles, into the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from palaver.cli.options import JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit, tell
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, output, visible
from palaver.errors import Erased, InvalidInput, MissingStore, PalaverError, UnsupportedTranscript
from palaver.formats.events import Loss
from palaver.log.redaction import PatternRedactor
from palaver.plurals import counted
from palaver.store import Store
from palaver.store.redacting import redacting
from palaver.transcripts import Imported, Importer, import_bundle_file, in_order, is_bundle, losses_by_code
from palaver.transcripts.bundle_files import check_bundle_file
from palaver.transcripts.importing import require_something

_SHOWN = 5


def run(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Transcripts, as they are or as .zst, .gz, .tar; bundles.")
    ],
    *,
    store: StoreOption = None,
    source: Annotated[bool, typer.Option("--source/--no-source", help="Keep the file itself in the store.")] = True,
    subject: Annotated[str, typer.Option(metavar="WHO", help="Whose data new sessions are.")] = "",
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Take keys and tokens out before anything is written; the file is not kept then."
        ),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Import what was erased here again, as new sessions.")] = False,
    losses: Annotated[bool, typer.Option("--losses", help="List every loss, not the first few.")] = False,
    json: JsonOption = False,
) -> int:
    """Import transcripts of other agents, or bundles. Importing again adds only what is new; nothing that was imported is ever changed.

    A file that cannot be imported stops none of the others; with several files it is told in the end by exit code 1.
    """
    ordered = in_order(paths)
    failures = [tell(error, json=json) for error in _in_vain(store, ordered)]
    if failures:
        return _code(failures, ordered)
    redactor = PatternRedactor() if redact else None
    with opened(store, create=True) as target:
        for path in ordered:
            with _progress(hidden=json) as progress:
                task = progress.add_task(visible(path.name), total=None, records="")

                def shown(count: int, progress: Progress = progress, task: TaskID = task) -> None:
                    progress.update(task, records=counted(count, "record"))

                importer = Importer(
                    target, keep_source=source, subject=subject, progress=shown, redactor=redactor, again=again
                )
                error = _import(importer, path, partial(_say, progress, json=json, all_losses=losses))
            if error is not None:
                failures.append(tell(error, json=json))
    return _code(failures, ordered)


def _code(failures: Sequence[Exit], paths: Sequence[Path]) -> int:
    return Exit.OK if not failures else failures[0] if len(paths) == 1 else Exit.FOUND


def _in_vain(store: str | None, paths: Sequence[Path]) -> list[PalaverError]:
    """Give why nothing can be imported, for each of the files; nothing where there is something, or a store already: none is made in vain."""
    with suppress(MissingStore), opened(store):
        return []
    refused: list[PalaverError] = []
    for path in paths:
        try:
            _require_something(path)
        except InvalidInput as error:
            refused.append(error)
        else:
            return []
    return refused


def _require_something(path: Path) -> None:
    """Read a file as far as it takes to know that there is something to import.

    Raises:
        InvalidInput: There is not.
    """
    try:
        if is_bundle(path):
            check_bundle_file(path)
        else:
            require_something(path)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> UnsupportedTranscript:
    return UnsupportedTranscript(path, f"it cannot be read ({error.strerror or error})")


def _import(importer: Importer, path: Path, say: Callable[[dict[str, object]], None]) -> PalaverError | None:
    """Import one file, and give what was wrong with it; what is wrong with the store is raised."""
    try:
        for row in _read(_imported(importer, importer.store, path), path):
            say(row)
    except (InvalidInput, Erased) as error:
        return error
    return None


def _read(rows: Iterator[dict[str, object]], path: Path) -> Iterator[dict[str, object]]:
    """Give rows; what the system says while one is made is about the file, and what it says while one is printed is not.

    Raises:
        UnsupportedTranscript: The file cannot be read.
    """
    while True:
        try:
            row = next(rows, None)
        except OSError as error:
            raise _unreadable(path, error) from error
        if row is None:
            return
        yield row


def _imported(importer: Importer, store: Store, path: Path) -> Iterator[dict[str, object]]:
    if is_bundle(path):
        into = store if importer.redactor is None else redacting(store, importer.redactor)
        taken = import_bundle_file(into, path)
        record = store.session(taken.session_id)
        nodes = store.nodes(taken.session_id)
        total = sum(store.last(node.dialog_id).seq + 1 for node in nodes)
        yield {
            "file": str(path),
            "format": "palaver-bundle",
            "session": taken.session_id,
            "name": record.name,
            "outcome": "unchanged" if not taken.entries else "new" if taken.entries == total else "grown",
            "dialogs": taken.dialogs,
            "entries": taken.entries,
            "records": total,
            "messages": sum(store.last(node.dialog_id).number for node in nodes),
            "lost": [],
        }
        return
    for one in importer.import_path(path):
        yield _row(one)


def _row(one: Imported) -> dict[str, object]:
    return {
        "file": str(one.path),
        "format": one.format,
        "session": one.session_id,
        "name": one.name,
        "outcome": one.outcome,
        "dialogs": one.dialogs,
        "entries": one.entries,
        "records": one.records,
        "messages": one.messages,
        "lost": [_loss(loss) for loss in one.losses],
    }


def _loss(loss: Loss) -> dict[str, str]:
    return {"place": loss.place, "reason": loss.reason, "code": loss.code, "severity": loss.severity}


def _progress(*, hidden: bool) -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.fields[records]}"),
    )
    console = errors()
    hidden = hidden or not console.is_terminal
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=hidden)


def _say(progress: Progress, row: Mapping[str, Any], *, json: bool, all_losses: bool) -> None:
    if json:
        print_json(row)
        return
    console = progress.console if progress.console.is_terminal else output()
    console.print(
        f"{row['outcome']:<9} {str(row['session'])[:12]}  {row['name']}  ({row['format']}: {counted(row['records'], 'record')}, "
        f"{counted(row['messages'], 'message')}, {counted(row['dialogs'], 'dialog')}; {counted(row['entries'], 'entry')} written)"
    )
    lost = row["lost"]
    if not isinstance(lost, list) or not lost:
        return
    kinds = losses_by_code(tuple(Loss(**loss) for loss in lost))
    console.print(f"          reported: {', '.join(f'{count} {code}' for code, count in kinds.items())}")
    shown = lost if all_losses else [loss for loss in lost if loss["severity"] != "note"][:_SHOWN]
    for loss in shown:
        console.print(f"          {loss['severity']}: {loss['place']}: {loss['reason']}")
    if len(shown) < len(lost):
        console.print(f"          … {len(lost) - len(shown)} more: --losses lists them all")
