"""palaver export: a session in the form another tool reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from palaver.browsing.secrets import SecretRow, secrets
from palaver.cli.location import located
from palaver.cli.options import JsonOption, OutputOption, RedactOption, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.terminal import complain, listed, paged, print_json, write
from palaver.errors import InvalidInput, StoreError
from palaver.ids import SessionId
from palaver.log.redaction import PatternRedactor
from palaver.plurals import counted
from palaver.store import Store
from palaver.store.erasing import Erasing, NotedFile
from palaver.transcripts import Exported, export_forms, partial_path, redacted_copy, remember, write_file
from palaver.transcripts import export as export_session
from palaver.transcripts.exporting import TOOLS, no_form
from palaver.wire import Report

FORMS = (*export_forms(), "parquet", "html")
"""The forms: those of the library, tables, and the explorer's page."""

_SHOWN = 40
"""Secrets that are listed."""


def run(
    sessions: Annotated[
        list[str] | None, Argument(metavar="SESSION", help="A session, or one of its dialogs; with parquet any number.")
    ] = None,
    *,
    to: Annotated[str, Option("--to", metavar="FORM", help=f"One of: {', '.join(FORMS)}.")],
    view: Annotated[bool, Option("--view", help="What the model would see now, not everything.")] = False,
    call: Annotated[int | None, Option("--call", min=1, help="With html: only what the model saw at call N.")] = None,
    compare: Annotated[
        tuple[int, int] | None,
        Option("--compare", min=1, metavar="N M", help="With html: only how what it saw at two calls differs."),
    ] = None,
    calls: Annotated[bool, Option("--calls", help="With html: also what the model saw at each call.")] = False,
    output: OutputOption = None,
    every: Annotated[bool, Option("--all", help="With parquet: all sessions of the store.")] = False,
    install: Annotated[
        bool, Option("--install", help="Put a transcript where its tool looks for it; replaces no file.")
    ] = False,
    redact: RedactOption = False,
    keep: Annotated[bool, Option("--keep-secrets", help="With html: leave keys and tokens in.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="With html: write the file without the keys and tokens.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Export a session. What the form cannot express is reported. A file appears whole or not at all, and only its owner can read it.

    `parquet` writes tables of sessions, entries, tool calls and costs into the folder that -o names.

        `html` is the page of `palaver open` in one file, without keys and tokens. If there are any, the command lists them and ends with 1; --yes writes the file.
    With --json, an object describes the export: on standard output, or on standard error if the export itself goes to standard output.
    """
    _check(
        to,
        of_html={"--call": call, "--compare": compare, "--calls": calls, "--keep-secrets": keep, "--yes": yes},
        view=view,
        install=install and (output is not None or to not in TOOLS),
    )
    named = sessions or []
    if to == "parquet":
        return _tables(named, store, output, redact=redact, every=every, json=json)
    if every or len(named) != 1:
        raise BadParameter("this form has one session; name it.", param_hint="--all" if every else "SESSION")
    with located(named[0], store) as (_, dialog, _, whole):
        if to == "bundle" and (view or not whole):
            raise BadParameter("a bundle is always of the whole session.", param_hint="--view" if view else "SESSION")
        source, session_id = dialog.store, dialog.session_id
        hidden = list(secrets(source, session_id, PatternRedactor())) if to == "html" and not keep else []
        if hidden and not yes:
            _reviewed(hidden, json=json)
            return Exit.FOUND
        if to == "html":
            shown = redacted_copy(source, session_id, PatternRedactor()) if hidden else source
            done = _page(shown, (session_id, dialog.dialog_id, call, compare, calls))
        else:
            done = export_session(source, session_id, to, dialog_id=dialog.dialog_id, whole=not view, redact=redact)
        if install:
            output = _installed(done)
        size = _printed(done) if output is None else _written(source, session_id, output, done)
        report = [str(change) for change in done.report]
    if json:
        row = {"file": None if output is None else str(output), "form": to, "bytes": size, "session": session_id}
        said = _advice(done, installed=install)
        advice = {"advice": said} if said else {}
        print_json({**row, **advice, "report": report}, sys.stderr if output is None else None)
    else:
        _told(done, output, size, report, installed=install)
    return Exit.OK


def _page(store: Store, chosen: tuple[Any, ...]) -> Exported:
    from palaver.explorer.page import Chosen, page  # noqa: PLC0415 - the other forms need no page

    return Exported(pieces=page(store, Chosen(*chosen)), report=Report())


def _tables(named: list[str], store: str | None, output: Path | None, *, redact: bool, every: bool, json: bool) -> int:
    """Write tables of sessions into a folder, and let their stores know of them."""
    if output is None:
        raise BadParameter("tables go into a folder; name it.", param_hint="--output")
    if every == bool(named):
        raise BadParameter("name sessions, or pass --all.", param_hint="--all" if named else "SESSION")
    from palaver.transcripts.tables import TABLES, write_tables  # noqa: PLC0415 - only tables need pyarrow

    def sessions() -> Iterator[tuple[Store, SessionId]]:
        for source, session_id in _chosen(named, store):
            with source.transaction():
                for name in TABLES:
                    _note(source, session_id, output.resolve() / f"{name}.parquet", whole=False)
            yield source, session_id

    rows = write_tables(sessions(), output, redact=redact)
    if json:
        print_json({"folder": str(output), "form": "parquet", "rows": rows})
    else:
        complain(f"Wrote {output}: {', '.join(f'{name} {count:,}' for name, count in rows.items())}.")
    return Exit.OK


def _chosen(named: list[str], url: str | None) -> Iterator[tuple[Store, SessionId]]:
    """Yield the named sessions, or all, each once."""
    if not named:
        with opened(url) as source:
            yield from ((source, record.session_id) for record in source.sessions())
    known: set[SessionId] = set()
    for reference in named:
        with located(reference, url) as (_, dialog, _, _):
            if dialog.session_id not in known:
                known.add(dialog.session_id)
                yield dialog.store, dialog.session_id


def _told(done: Exported, output: Path | None, size: int, report: list[str], *, installed: bool) -> None:
    """Say what was written, what differs, and how to continue."""
    if output is not None:
        complain(f"Wrote {output}, {counted(size, 'byte')}.")
    if report:
        complain(f"{counted(len(report), 'thing')} written otherwise than recorded; the first: {report[0]}")
    if said := _advice(done, installed=installed):
        complain(said)


def _advice(done: Exported, *, installed: bool) -> str:
    """Return what to do next with a tool's transcript: what to type and, unless it is in its place, where to put it."""
    if installed and done.continuing is not None:
        there = done.continuing
        return f"To continue in {there.tool}, type in {there.folder}: {there.command}"
    return done.advice


def _check(to: str, *, of_html: Mapping[str, object], view: bool, install: bool) -> None:
    if to not in FORMS:
        raise no_form(to, FORMS)
    if to != "html" and (names := [name for name, value in of_html.items() if value]):
        raise BadParameter("only the page (--to html) has this choice.", param_hint=", ".join(names))
    if install:
        raise BadParameter(f"it goes with --to {', '.join(TOOLS)}, and without --output.", param_hint="--install")
    if to == "parquet" and view:
        raise BadParameter("tables have whole sessions.", param_hint="--view")
    if to == "html" and (view or sum(bool(of_html[name]) for name in ("--call", "--compare", "--calls")) > 1):
        raise BadParameter(
            "a page shows a session, one --call or one --compare.", param_hint="--view" if view else "--call"
        )


def _installed(done: Exported) -> Path:
    """Return where the tool looks for an export; its folder is there after.

    Raises:
        InvalidInput: There is such a file, or the session has no folder.
    """
    assert done.continuing is not None  # noqa: S101 - a tool's transcript has it
    if not done.continuing.folder:
        what = f"{done.continuing.tool} finds sessions by their folder, and this one has none."
        raise InvalidInput(what, hint="Write it to a file with -o; the command says where to put it.")
    target = Path(done.continuing.place).expanduser()
    if target.exists():
        hint = f"Continue it with `{done.continuing.command}`, or move the file away first."
        raise InvalidInput(f"{target} exists; nothing was written.", hint=hint)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return target


def _reviewed(hidden: list[SecretRow], *, json: bool) -> None:
    """List what an export would leave out."""
    if json:
        print_json({"preview": True, "secrets": hidden})
        return
    for line in listed([f"  {row['place']}  {row['kind']}  {row['beginning']}" for row in hidden], _SHOWN):
        complain(line)
    complain(
        f"{counted(len(hidden), 'secret')} would be left out. Nothing was written: --yes does it, --keep-secrets leaves them in."
    )


def _printed(done: Exported) -> int:
    """Write an export to standard output; a terminal gets it without control characters."""
    if sys.stdout.isatty():
        data = b"".join(done.pieces)
        with paged():
            write(data.decode(errors="replace"))
        return len(data)
    size = sum(sys.stdout.buffer.write(piece) for piece in done.pieces)
    sys.stdout.buffer.flush()
    return size


def _written(store: Store, session_id: SessionId, target: Path, done: Exported) -> int:
    """Write a file, and let the store know of it, so that an erasure of the session reaches it."""
    try:
        size = write_file(target, done.pieces, lambda path: _note(store, session_id, path))
        _note(store, session_id, target.resolve())
        with suppress(StoreError):  # a store that may only be read cannot
            if target.is_file():
                remember(store, session_id, done, target)
    except OSError as error:  # it is our output, not an input that was named
        raise OSError(error.errno, f"{target}: {error.strerror or error}") from error
    finally:
        if isinstance(store, Erasing):
            with suppress(StoreError):
                store.forget_file(session_id, str(partial_path(target)))
    return size


def _note(store: Store, session_id: SessionId, path: Path, *, whole: bool = True) -> None:
    noted = NotedFile(
        str(path), "", 0
    )  # while it is written, or others are in it: an erasure names it, and does not delete it
    if whole and path.is_file():
        with path.open("rb") as file:
            noted = NotedFile(str(path), file_digest(file, "sha256").hexdigest(), path.stat().st_ino)
    if isinstance(store, Erasing):
        with suppress(StoreError):  # a store that may only be read cannot
            store.note_file(session_id, noted)
