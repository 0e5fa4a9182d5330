"""palaver quarantine: set blocks aside that a provider refuses, or show them again."""

from __future__ import annotations

from typing import Annotated

import typer

from palaver.cli.options import DialogOption, JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import output
from palaver.log import Handle
from palaver.plurals import counted
from palaver.session import Session
from palaver.store import Store


def run(
    handles: Annotated[
        list[str],
        typer.Argument(metavar="HANDLE...", help="Blocks, as dialog:entry:block, or whole entries, as dialog:entry."),
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="WHY", help="Why, for people; no model sees it.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Show them again.")] = False,
    dialog: DialogOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Set blocks aside: views show a placeholder with the handle, and the session goes on. The log keeps the original; recall gives it.

    It is done in every dialog of the session that holds the block, or in the one that --dialog names. What is set aside already stays so.
    """
    with opened(store, writes=True) as source, source.together():
        told = [_set(source, handle, reason, dialog, undo=undo) for handle in handles]
    for place, session_id, made in told:
        if json:
            about = {"handle": str(place), "session": session_id, "entries": [str(one) for one in made]}
            print_json(about | {"quarantined": not undo})
        else:
            output().print(f"{place}: {_words(len(made), undo=undo)}")
    return Exit.OK


def _set(
    store: Store, text: str, reason: str, dialog: str | None, *, undo: bool
) -> tuple[Handle, str, tuple[Handle, ...]]:
    named = Handle.parse(text)
    place = named._replace(dialog=store.resolve(named.dialog))
    session = Session.open(store.node(place.dialog).session_id, store)
    if dialog is None:
        made = session.lift_quarantine(place, reason) if undo else session.quarantine(place, reason)
        return place, session.session_id, made
    one = session.dialog(dialog)
    if undo:
        return place, session.session_id, (one.lift_quarantine(place, reason),)
    return place, session.session_id, () if place in one.quarantined else (one.quarantine(place, reason),)


def _words(dialogs: int, *, undo: bool) -> str:
    where = f"in {counted(dialogs, 'dialog')}"
    if undo:
        return f"shown again {where}."
    return f"set aside {where}; --undo shows it again." if dialogs else "set aside already."
