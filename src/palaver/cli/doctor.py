"""palaver doctor: what is wrong with a transcript or a session, and what each provider would refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.options import DialogOption, JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import output
from palaver.cli.sweep import found_strays, row_of, size_of, tell_strays
from palaver.errors import StoreDamaged, UnknownSession
from palaver.ids import DialogId, SessionId
from palaver.log import Handle
from palaver.plurals import counted
from palaver.session import Session
from palaver.store import Store
from palaver.transcripts import (
    DAMAGED_STORE,
    REMEDIES,
    Diagnosis,
    Finding,
    Importer,
    examine,
    examine_file,
    import_bundle_file,
    is_bundle,
    repair,
    scan_file,
    to_quarantine,
    unreadable,
)

_SHOWN = 12
_LONG = 16_000_000
"""From how many bytes on a file is read record by record: importing one into memory takes about ten times its length."""
_BEYOND = frozenset({"over_window", "damaged_source", "dangling_parent"})
"""Faults that no branch can be without: the way out is a budget, or importing anew."""
_STYLES = {"fault": "red", "warning": "yellow", "note": "dim"}


def run(  # noqa: PLR0917 - the words of a command
    target: Annotated[
        str | None, typer.Argument(metavar="[PATH|SESSION]", help="A transcript, or a session. Default: every session.")
    ] = None,
    dialog: DialogOption = None,
    mend: Annotated[
        bool, typer.Option("--repair", help="Write branches without the faults. The source is never changed.")
    ] = False,
    aside: Annotated[
        bool,
        typer.Option("--quarantine", help="Say which blocks of the session would be set aside; with --yes do it."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --quarantine: do it.")] = False,
    quick: Annotated[
        bool | None,
        typer.Option(
            "--quick/--deep",
            help="Read a transcript record by record, in the same memory whatever its length; or import it into memory, which tells more. "
            "Default: --quick from 16 MB on.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List every finding, notes too.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Examine a transcript or session: pairing, ids, damaged text, missing parents, media, and what each provider would refuse.

    With --repair a transcript is imported first, and the branches are written in the store: one for each dialog with faults, or for the one
    that --dialog names. With --quarantine the blocks that no provider takes are shown, or with --yes set aside. Ends with 1 when a fault was
    found.
    """
    tell = partial(_tell, json=json, every=every)
    if target is not None and Path(target).exists():
        if dialog is not None or aside:
            name = "--quarantine" if aside else "--dialog"
            raise typer.BadParameter("a file is examined as a whole: import it first.", param_hint=name)
        verdicts = [tell(diagnosis) for diagnosis in _of_file(Path(target), quick=quick)]
        if mend and not all(verdicts):
            _mend_file(target, store, json=json)
        return Exit.OK if all(verdicts) else Exit.FOUND
    if target is None and (mend or aside or dialog is not None):
        name = "--repair" if mend else "--quarantine" if aside else "--dialog"
        raise typer.BadParameter("name a transcript or a session.", param_hint=name)
    with opened(store, writes=mend or yes) as source:
        verdicts = []
        for session_id in _chosen(source, target):
            only = None if dialog is None else Session.open(session_id, source).dialog(dialog).dialog_id
            diagnosis = _examined(source, session_id, only)
            verdicts.append(tell(diagnosis))
            if aside:
                _set_aside(source, session_id, diagnosis, yes=yes, json=json)
            elif mend and not diagnosis.healthy:
                _mend(source, session_id, only, json=json)
        _tell_strays(source, target, json=json)
    return Exit.OK if all(verdicts) else Exit.FOUND


def _tell_strays(store: Store, target: str | None, *, json: bool) -> None:
    """Say which payloads of the store nothing names, where all of it is examined: no session shows them, and nothing is wrong."""
    strays = found_strays(store) if target is None else ()
    if not json:
        tell_strays(strays)
    elif strays:
        print_json({"strays": list(map(row_of, strays)), "bytes": size_of(strays)})


def _examined(store: Store, session_id: SessionId, only: DialogId | None) -> Diagnosis:
    """Examine a session; of one that the store cannot read, say that, for others lie elsewhere in its file."""
    try:
        return examine(store, session_id, only)
    except StoreDamaged as error:
        return unreadable(store, session_id, error)


def _of_file(path: Path, *, quick: bool | None) -> Iterator[Diagnosis]:
    """Examine a file: in memory, or record by record when it is long. A bundle is always read whole: it says itself what is in it."""
    long = path.stat().st_size >= _LONG if quick is None else quick
    yield from scan_file(path) if long and not is_bundle(path) else examine_file(path)


def _set_aside(store: Store, session_id: SessionId, diagnosis: Diagnosis, *, yes: bool, json: bool) -> None:
    """Set the blocks aside that no provider takes, or say which they are."""
    session = Session.open(session_id, store)
    places = [session.place(place) for place in to_quarantine(diagnosis)]
    new = [place for place in places if any(_shows(session, one.dialog_id, place) for one in store.nodes(session_id))]
    if yes:
        with store.together():
            for place in new:
                session.quarantine(place, "found by the doctor")
    if json:
        print_json({"quarantine": {"session": session_id, "handles": [str(place) for place in new], "done": yes}})
        return
    console = output()
    for place in new:
        console.print(f"  {place}: {'set aside' if yes else 'would be set aside'}")
    if not new:
        console.print("  there is no block to be set aside.")
    elif not yes:
        console.print("  Nothing was written: --yes does it; `palaver quarantine --undo HANDLE` takes it back.")


def _shows(session: Session, dialog_id: DialogId, place: Handle) -> bool:
    """Tell whether a dialog holds a block and shows it."""
    dialog = session.dialog(dialog_id)
    held = any(place in span for span in dialog.spans)
    return held and place not in dialog.quarantined and place._replace(block=None) not in dialog.quarantined


def _chosen(store: Store, target: str | None) -> Iterator[SessionId]:
    """Give the sessions to examine: the one named, or all."""
    if target is None:
        yield from (record.session_id for record in store.sessions())
        return
    try:
        yield Session.open(target, store).session_id
    except UnknownSession as error:
        raise UnknownSession(target, close=error.close, hint="There is no such file either.") from error


def _mend_file(target: str, url: str | None, *, json: bool) -> None:
    with opened(url, create=True) as store:
        if is_bundle(target):
            _mend(store, import_bundle_file(store, target).session_id, None, json=json)
            return
        for one in Importer(store).import_path(target):
            _mend(store, one.session_id, None, json=json)


def _mend(store: Store, session_id: SessionId, dialog_id: DialogId | None, *, json: bool) -> None:
    """Write a branch without the faults for every dialog that has some, or for the one that was named."""
    damage: StoreDamaged | None = None
    for node in store.nodes(session_id):
        if dialog_id not in {None, node.dialog_id} or not _mendable(examine(store, session_id, node.dialog_id)):
            continue
        try:
            branch = repair(store, node.dialog_id)
        except StoreDamaged as error:
            damage = damage or error  # what stands on sound entries is mended first
            continue
        _tell_branch(session_id, node.dialog_id, branch.dialog_id, json=json)
    if damage is not None:
        raise damage


def _mendable(diagnosis: Diagnosis) -> bool:
    """Tell whether a dialog has a fault that a branch can be without."""
    return any(one.severity == "fault" and one.code not in _BEYOND for one in diagnosis.findings)


def _tell_branch(session_id: str, dialog_id: str, branch_id: str, *, json: bool) -> None:
    if json:
        print_json({"repaired": {"session": session_id, "of": dialog_id, "dialog": branch_id}})
    else:
        place = f"palaver show {session_id[:12]} --dialog {branch_id[:12]}"
        output().print(f"Dialog {dialog_id[:12]} has a branch without its faults: {place}")


def _tell(diagnosis: Diagnosis, *, json: bool, every: bool) -> bool:
    """Print a diagnosis, and give whether there is no fault."""
    if json:
        print_json(_row(diagnosis))
    else:
        _print(diagnosis, every=every)
    return diagnosis.healthy


def _print(diagnosis: Diagnosis, *, every: bool) -> None:
    console = output()
    verdict = "healthy" if diagnosis.healthy else "faults found"
    console.print(f"{diagnosis.name}: {verdict}. {_extent(diagnosis)}", soft_wrap=True)
    kinds = Counter((finding.severity, finding.code) for finding in diagnosis.findings)
    for (severity, code), count in sorted(kinds.items(), key=lambda item: (list(_STYLES).index(item[0][0]), -item[1])):
        number = f"{count + diagnosis.more.get(code, 0):>5,} {severity:<8} {code}"
        remedy = REMEDIES.get(code, "") if severity != "note" else ""
        console.print(f"  {number}{f': {remedy}' if remedy else ''}", style=_STYLES[severity], soft_wrap=True)
    shown = [finding for finding in diagnosis.findings if every or finding.severity == "fault"]
    for finding in shown if every else shown[:_SHOWN]:
        console.print(f"    {finding.place}: {finding.what}{_whom(finding)}", soft_wrap=True)
    if not every and len(shown) > _SHOWN:
        console.print(f"    … {counted(len(shown) - _SHOWN, 'more fault')}: --all lists everything")
    if diagnosis.valid:
        valid = ", ".join(f"{name} {'valid' if fine else 'INVALID'}" for name, fine in diagnosis.valid.items())
        console.print(f"  the next request, as palaver sends it, in form: {valid}", soft_wrap=True)
    else:
        console.print("  read record by record; --deep imports it into memory and compiles its next request, too")


def _extent(diagnosis: Diagnosis) -> str:
    if any(one.code == DAMAGED_STORE for one in diagnosis.findings):
        return "It cannot be read as a whole."
    if not diagnosis.valid:
        lost = f", {diagnosis.unreachable:,} of them cannot be read" if diagnosis.unreachable else ""
        return f"{counted(diagnosis.total, 'record')}{lost}."
    lost = f", {diagnosis.unreachable:,} of them unreachable" if diagnosis.unreachable else ", all reachable"
    return f"{counted(diagnosis.total, 'entry')} in {counted(diagnosis.dialogs, 'dialog')}{lost}."


def _whom(finding: Finding) -> str:
    return f" ({', '.join(finding.providers)})" if finding.providers else ""


def _row(diagnosis: Diagnosis) -> dict[str, object]:
    return {
        "name": diagnosis.name,
        "session": diagnosis.session_id,
        "healthy": diagnosis.healthy,
        "dialogs": diagnosis.dialogs,
        "entries": {"total": diagnosis.total, "reachable": diagnosis.reachable, "unreachable": diagnosis.unreachable},
        "findings": [
            {
                "place": one.place,
                "code": one.code,
                "what": one.what,
                "severity": one.severity,
                "providers": list(one.providers),
                "refused": dict(one.refused),
                "remedy": one.remedy,
            }
            for one in diagnosis.findings
        ],
        "valid": diagnosis.valid,
        "more": dict(diagnosis.more),
    }
