"""palaver doctor: what is wrong with a transcript or a session, and what each provider would refuse."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.options import DialogOption, JsonOption, StoreOption, dialog_of, opened
from palaver.cli.outcome import Exit, print_json
from palaver.cli.surroundings import output
from palaver.errors import InvalidInput
from palaver.session import Session
from palaver.transcripts import Diagnosis, Finding, Importer, examine, examine_file, repair

_SHOWN = 12
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
        bool, typer.Option("--repair", help="Write a branch without the faults. The source is never changed.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="List every finding, notes too.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Examine a transcript or session: pairing, ids, damaged text, missing parents, media, and what each provider would refuse.

    With --repair a transcript is imported first, and the branch is written in the store. Ends with 1 when a fault was found.
    """
    healthy = True
    if target is not None and _is_file(target):
        for diagnosis in examine_file(target):
            healthy &= diagnosis.healthy
            _tell(diagnosis, json=json, every=every)
        if mend:
            _mend_file(target, store, json=json)
        return Exit.OK if healthy else Exit.FOUND
    with opened(store) as source:
        if mend and target is None:
            raise InvalidInput("--repair needs to know what: name a transcript or a session.")
        ids = (
            [record.session_id for record in source.sessions()]
            if target is None
            else [Session.open(target, source).session_id]
        )
        for session_id in ids:
            diagnosis = examine(source, session_id)
            healthy &= diagnosis.healthy
            _tell(diagnosis, json=json, every=every)
            if mend:
                node = repair(source, dialog_of(Session.open(session_id, source), dialog))
                _tell_branch(session_id, node.dialog_id, json=json)
    return Exit.OK if healthy else Exit.FOUND


def _is_file(target: str) -> bool:
    return Path(target).exists() or "/" in target or "." in target


def _mend_file(target: str, url: str | None, *, json: bool) -> None:
    with opened(url, create=True) as store:
        for one in Importer(store).import_path(target):
            if one.main is not None:
                _tell_branch(one.session_id, repair(store, one.main).dialog_id, json=json)


def _tell_branch(session_id: str, dialog_id: str, *, json: bool) -> None:
    if json:
        print_json({"repaired": {"session": session_id, "dialog": dialog_id}})
    else:
        output().print(f"A branch without the faults: palaver show {session_id[:12]} --dialog {dialog_id[:12]}")


def _tell(diagnosis: Diagnosis, *, json: bool, every: bool) -> None:
    if json:
        print_json(_row(diagnosis))
        return
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
    console.print(f"  the next request, as palaver sends it: {valid}")


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
