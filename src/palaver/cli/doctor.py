"""palaver doctor: what is wrong with a transcript or a session, and what each provider would refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.options import DialogOption, JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit, print_json
from palaver.cli.surroundings import output
from palaver.errors import StoreDamaged, UnknownSession
from palaver.ids import DialogId, SessionId
from palaver.session import Session
from palaver.store import Store
from palaver.transcripts import (
    Diagnosis,
    Finding,
    Importer,
    examine,
    examine_file,
    import_bundle_file,
    is_bundle,
    repair,
)

_SHOWN = 12
_BEYOND = frozenset({"over_window", "damaged_source", "dangling_parent"})
"""Faults that no branch can be without: the way out is a budget, or importing anew."""
_STYLES = {"fault": "red", "warning": "yellow", "note": "dim"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(run)


def run(
    target: Annotated[
        str | None, typer.Argument(metavar="[PATH|SESSION]", help="A transcript, or a session. Default: every session.")
    ] = None,
    dialog: DialogOption = None,
    mend: Annotated[
        bool, typer.Option("--repair", help="Write branches without the faults. The source is never changed.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="List every finding, notes too.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Examine a transcript or session: pairing, ids, damaged text, missing parents, media, and what each provider would refuse.

    With --repair a transcript is imported first, and the branches are written in the store: one for each dialog with faults, or for the one
    that --dialog names. Ends with 1 when a fault was found.
    """
    tell = partial(_tell, json=json, every=every)
    if target is not None and Path(target).exists():
        if dialog is not None:
            raise typer.BadParameter("a file is examined as a whole.", param_hint="--dialog")
        healthy = True
        for diagnosis in examine_file(target):
            healthy &= tell(diagnosis)
        if mend and not healthy:
            _mend_file(target, store, json=json)
        return Exit.OK if healthy else Exit.FOUND
    if target is None and (mend or dialog is not None):
        raise typer.BadParameter("name a transcript or a session.", param_hint="--repair" if mend else "--dialog")
    with opened(store, writes=mend) as source:
        healthy = True
        for session_id in _chosen(source, target):
            only = None if dialog is None else Session.open(session_id, source).dialog(dialog).dialog_id
            sound = tell(examine(source, session_id, only))
            healthy &= sound
            if mend and not sound:
                _mend(source, session_id, only, json=json)
    return Exit.OK if healthy else Exit.FOUND


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
    lost = f", {diagnosis.unreachable:,} of them unreachable" if diagnosis.unreachable else ", all reachable"
    console.print(f"{diagnosis.name}: {verdict}. {diagnosis.total:,} entries in {diagnosis.dialogs} dialogs{lost}.")
    kinds = Counter((finding.severity, finding.code) for finding in diagnosis.findings)
    for (severity, code), count in sorted(kinds.items(), key=lambda item: (list(_STYLES).index(item[0][0]), -item[1])):
        console.print(f"  {count:>5} {severity:<8} {code}", style=_STYLES[severity])
    shown = [finding for finding in diagnosis.findings if every or finding.severity == "fault"]
    for finding in shown if every else shown[:_SHOWN]:
        console.print(f"    {finding.place}: {finding.what}{_whom(finding)}")
    if not every and len(shown) > _SHOWN:
        console.print(f"    … {len(shown) - _SHOWN} more faults: --all lists everything")
    valid = ", ".join(f"{name} {'valid' if fine else 'INVALID'}" for name, fine in diagnosis.valid.items())
    console.print(f"  the next request, as palaver sends it, in form: {valid}")


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
            }
            for one in diagnosis.findings
        ],
        "valid": diagnosis.valid,
    }
