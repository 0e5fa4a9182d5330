"""palaver doctor: what is wrong with a transcript or a session, and what each provider would refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten
from typing import Annotated

from typer import Argument, BadParameter, Option

from palaver.browsing.sessions import tool_of
from palaver.cli.location import located
from palaver.cli.options import JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.terminal import emit, listed, paged, print_json, say
from palaver.errors import StoreDamaged
from palaver.ids import DialogId, SessionId
from palaver.plurals import counted
from palaver.store import Store
from palaver.transcripts import (
    DAMAGED_STORE,
    Diagnosis,
    Importer,
    examine,
    examine_file,
    repair,
    unreadable,
)
from palaver.transcripts.exporting import TOOLS

_SHOWN = 12
_TITLE = 100
_BEYOND_REPAIR = frozenset({"over_window", "damaged_source", "dangling_parent"})
"""Faults that no branch can be without: the remedy is a budget, or importing again."""

_SECTIONS = {"fault": ("Faults", "red"), "warning": ("Warnings", "yellow"), "note": ("Notes", "dim")}
_TARGET = "A session, one of its dialogs, or a transcript. Default: every session."


def run(
    target: Annotated[str | None, Argument(metavar="SESSION|FILE", help=_TARGET)] = None,
    mend: Annotated[
        bool, Option("--repair", help="Write branches without the faults; the source never changes.")
    ] = False,
    every: Annotated[bool, Option("--all", "-a", help="List every finding, notes too.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Examine a session or transcript: calls and results, ids, damaged text, media, and what each provider would refuse.

    With --repair a transcript is imported first. Ends with 1 when a fault was found, unless --repair left a branch without it.
    """
    if target is None and mend:
        raise BadParameter("name a session or a transcript.", param_hint="--repair")
    if target is not None and Path(target).exists() and not Path(target).is_dir():
        healthy = _reported(examine_file(target), every=every, json=json)
        if mend and not healthy:
            with opened(store, create=True) as source:
                imported = [made.session_id for made in Importer(source).import_path(target)]
                mended = [_mend(source, session_id, None, json=json) for session_id in imported]
            healthy = all(mended)
        return Exit.OK if healthy else Exit.FOUND
    return _stored(target, store, mend=mend, every=every, json=json)


def _stored(target: str | None, url: str | None, *, mend: bool, every: bool, json: bool) -> int:
    """Examine one session of the store, or all."""
    if target is None:
        with opened(url) as source:
            diagnoses = (_examined(source, record.session_id, None) for record in source.sessions())
            return Exit.OK if _reported(diagnoses, every=every, json=json) else Exit.FOUND
    with located(target, url, writes=mend) as (session, dialog, _, whole):
        only = None if whole else dialog.dialog_id
        healthy = _reported([_examined(session.store, session.session_id, only)], every=every, json=json)
        if mend and not healthy:
            healthy = _mend(session.store, session.session_id, only, json=json)
    return Exit.OK if healthy else Exit.FOUND


def _examined(store: Store, session_id: SessionId, only: DialogId | None) -> Diagnosis:
    """Examine a session; one that the store cannot read does not keep the others from being examined."""
    try:
        return examine(store, session_id, only)
    except StoreDamaged as error:
        return unreadable(store, session_id, error)


# --- repairing ------------------------------------------------------------------------------------------------------------------------


def _mend(store: Store, session_id: SessionId, only: DialogId | None, *, json: bool) -> bool:
    """Write a branch without the faults for every dialog that has some, or for the one that was named; return whether all branches are clean."""
    damage: StoreDamaged | None = None
    clean = True
    for node in store.nodes(session_id):
        if only not in {None, node.dialog_id} or (diagnosis := examine(store, session_id, node.dialog_id)).healthy:
            continue
        if not _mendable(diagnosis):
            clean = False
            continue
        try:
            branch = repair(store, node.dialog_id).dialog_id
        except StoreDamaged as error:
            damage = damage or error  # what depends on sound entries is repaired first
            continue
        clean = examine(store, session_id, branch).healthy and clean
        row = {"repaired": {"session": session_id, "of": node.dialog_id, "dialog": branch}}
        emit(
            json,
            row,
            f"Dialog {node.dialog_id[:12]} has a branch without its faults. Next: {_next(store, session_id, branch)}",
        )
    if damage is not None:
        raise damage
    return clean


def _next(store: Store, session_id: SessionId, branch: DialogId) -> str:
    """Return the command with which a branch goes back to the tool that recorded the session, or shows it."""
    tool = tool_of(store, store.session(session_id))
    return f"palaver export {branch[:12]} --to {tool} --install" if tool in TOOLS else f"palaver show {branch[:12]}"


def _mendable(diagnosis: Diagnosis) -> bool:
    return any(one.severity == "fault" and one.code not in _BEYOND_REPAIR for one in diagnosis.findings)


# --- the report -----------------------------------------------------------------------------------------------------------------------


def _reported(diagnoses: Iterable[Diagnosis], *, every: bool, json: bool) -> bool:
    """Print diagnoses, those with faults first and of several healthy ones a count, and return whether none has a fault."""
    faulty, healthy = 0, list[Diagnosis]()
    with paged(data=json):
        for diagnosis in diagnoses:
            if diagnosis.healthy:
                healthy.append(diagnosis)
            faulty += not diagnosis.healthy
            if json:
                print_json(diagnosis.to_dict())
            elif not diagnosis.healthy:
                _print(diagnosis, every=every)
        several = faulty + len(healthy) != 1
        for diagnosis in () if json or (several and not every) else healthy:
            _print(diagnosis, every=every)
        if several and not json:
            notes = sum(len(diagnosis.findings) for diagnosis in healthy)
            also = (
                f", with {counted(notes, 'note')} about what was recorded (--all lists them)"
                if notes and not every
                else ""
            )
            say(f"{counted(faulty + len(healthy), 'session')}: {faulty:,} with faults, {len(healthy):,} healthy{also}.")
    return not faulty


def _print(diagnosis: Diagnosis, *, every: bool) -> None:
    kinds = Counter(finding.severity for finding in diagnosis.findings)
    verdict = counted(kinds["fault"], "fault") if kinds["fault"] else "Healthy"
    size = f"{counted(diagnosis.total, 'entry')} in {counted(diagnosis.dialogs, 'dialog')}"
    if diagnosis.unreachable:
        size += f", {diagnosis.unreachable:,} of them unreadable"
    if any(finding.code == DAMAGED_STORE for finding in diagnosis.findings):
        size = "It cannot be read as a whole"
    others = kinds["warning"] + kinds["note"]
    also = f" {counted(others, 'note')} about what was recorded (--all lists them)." if others and not every else ""
    which = f"{diagnosis.session_id[:12]}  " if diagnosis.session_id else ""
    say(f"{which}{shorten(diagnosis.name, _TITLE, placeholder=' …')}")
    say(f"  {verdict}. {size}.{also}")
    for severity in _SECTIONS if every else ("fault",):
        _section(diagnosis, severity, every=every)
    refused = [name for name, fine in diagnosis.valid.items() if not fine]
    if refused:
        say(f"  The next request is not valid for {', '.join(refused)}.", "red")
    elif kinds["fault"]:
        say("  The next request, as palaver sends it, is valid for every provider.")


def _section(diagnosis: Diagnosis, severity: str, *, every: bool) -> None:
    """Print the findings of one severity: the kinds with their remedies, then each with its place."""
    findings = [finding for finding in diagnosis.findings if finding.severity == severity]
    title, style = _SECTIONS[severity]
    if findings:
        say(f"  {title}:", style)
    remedies = {finding.code: finding.remedy for finding in findings}
    for code, count in Counter(finding.code for finding in findings).most_common():
        say(f"    {counted(count, code.replace('_', ' '))}. {remedies[code]}".rstrip())
    whom = [f" ({', '.join(finding.providers)})" if finding.providers else "" for finding in findings]
    lines = [f"      {finding.place}: {finding.what}{names}" for finding, names in zip(findings, whom, strict=True)]
    for line in lines if every else listed(lines, _SHOWN, "--all lists everything"):
        say(line)
