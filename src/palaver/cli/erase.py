"""palaver erase: what was written leaves the store for good, with a receipt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from palaver.browsing.places import locate
from palaver.cli.options import JsonOption, StoreOption, YesOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.terminal import complain, emit, listed
from palaver.erasure.erase import erase, finish_erasures
from palaver.erasure.plan import ErasurePreview, preview_erasure
from palaver.erasure.receipts import Receipt
from palaver.errors import NotFound
from palaver.plurals import counted
from palaver.store import Store
from palaver.store.routed import RoutedStore

_SHOWN = 10


def run(
    targets: Annotated[list[str] | None, Argument(metavar="SESSION|DIALOG|HANDLE", help="What to erase.")] = None,
    *,
    subject: Annotated[
        str | None, Option("--subject", metavar="WHO", help="All sessions of exactly this subject.")
    ] = None,
    children: Annotated[bool, Option("--children", help="With a dialog: also what grew from it.")] = False,
    tombstones: Annotated[
        bool, Option("--tombstones", help="With a dialog: leave tombstones for what grew from it.")
    ] = False,
    files: Annotated[bool, Option("--files", help="Also delete the exported files that the preview lists.")] = False,
    finish: Annotated[bool, Option("--finish", help="Only complete earlier erasures.")] = False,
    yes: YesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Erase a session, a dialog, single entries, or all sessions of a subject, for good. Without --yes, only preview it.

    It reaches the entries and what was derived from them (summaries, records, labels, recorded calls), payloads that nothing else names,
    kept source files and the search index. Where other entries depend on erased ones, tombstones stay. The store keeps the receipt
    (`palaver store receipts`). Work that is still pending ends the command with 1; --finish does it.
    """
    with opened(store, writes=yes or finish) as source:
        if finish:
            return _report(finish_erasures(source), json=json)
        scope = _scope(source, targets or [], subject) | {"children": children, "tombstones": tombstones}
        preview = preview_erasure(source, **scope)
        if not yes:
            emit(json, _row(preview), *_lines(preview))
            return Exit.OK
        return _report(tuple(_erased(source, scope, files=files)), json=json)


def _erased(store: Store, scope: dict[str, Any], *, files: bool) -> Iterator[Receipt]:
    """Erase, in each database that has sessions of a subject by itself: an erasure is one transaction, and its receipt lies with what it erased."""
    for part in store.stores if scope["subject"] and isinstance(store, RoutedStore) else (store,):
        with suppress(
            NotFound
        ):  # in a database without sessions of the subject; another has some, as the preview has found
            noted = preview_erasure(part, **scope).files if files else ()
            yield erase(part, **scope, files=noted)


def _scope(store: Store, targets: list[str], subject: str | None) -> dict[str, Any]:
    """Return the arguments of `preview_erasure`."""
    named = [locate(store, target, only=True, entries=True) for target in targets]
    entries = [there.handle for there in named if there.handle is not None]
    others = [there for there in named if there.handle is None]
    if len(others) + bool(entries) + bool(subject) != 1:
        raise BadParameter("name one session, one dialog, one subject, or entries.", param_hint="SESSION")
    sessions = [there.session.session_id for there in others if there.whole]
    dialogs = [there.dialog.dialog_id for there in others if not there.whole]
    return {
        "session": next(iter(sessions), None),
        "dialog": next(iter(dialogs), None),
        "subject": subject,
        "entries": entries,
    }


def _sources(preview: ErasurePreview) -> int:
    return len(preview.forgotten) + len(preview.reduced)


def _row(preview: ErasurePreview) -> dict[str, Any]:
    row: dict[str, Any] = {name: list(getattr(preview, name)) for name in ("sessions", "dialogs")}
    row |= {"entries": preview.entries, "messages": preview.messages, "sources": _sources(preview)}
    row |= {"tombstones": [f"{place.dialog}:{place.seq}" for place in preview.tombstones]}
    return row | {
        "preview": True,
        "payloads": len(preview.payloads),
        "files": list(preview.files),
        "logs": list(preview.logs),
    }


def _lines(preview: ErasurePreview) -> Iterator[str]:
    yield f"Would erase {counted(preview.entries, 'entry')} ({counted(preview.messages, 'message')}); nothing was written."
    yield from _names("session", preview.sessions)
    yield from _names("dialog", preview.dialogs)
    yield from _names("leaves a tombstone", map(str, preview.tombstones))
    yield f"  payloads: {len(preview.payloads):,}, except those that something else names; source files: {_sources(preview):,}"
    yield from _names("exported file, deleted with --files", preview.files)
    yield from _names("replay log, rewritten", preview.logs)
    yield "--yes does it."


def _names(title: str, names: Iterable[str]) -> Iterator[str]:
    return listed([f"  {title}: {name}" for name in names], _SHOWN)


def _report(receipts: tuple[Receipt, ...], *, json: bool) -> int:
    for receipt in receipts:
        gone = f"{counted(len(receipt.sessions), 'session')} and {counted(len(receipt.dialogs), 'dialog')} as a whole"
        left = f"{counted(len(receipt.tombstones), 'tombstone')}, {counted(len(receipt.blobs), 'payload')}"
        lines = [f"Erased {counted(receipt.entries, 'entry')}: {gone}, {left}. Receipt {receipt.id}."]
        lines += _names("out of reach", receipt.beyond)
        lines += ["  Its key is destroyed: no copy can be read."] if receipt.shredded and receipt.complete else []
        emit(json, receipt.to_dict(), *lines)
        for words in () if json else receipt.pending:
            complain(f"  pending: {words}", "yellow")
    if not receipts:
        emit(json, {"pending": []}, "Nothing is pending.")
    return Exit.OK if all(receipt.complete for receipt in receipts) else Exit.FOUND
