"""palaver pin: entries that stay in every view, whatever leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from palaver.cli.dialogs import dialog_of
from palaver.cli.options import DialogOption, JsonOption, SessionArgument, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.recall import text_of, who_of
from palaver.cli.surroundings import output
from palaver.errors import InvalidInput, UnknownHandle
from palaver.log import BranchSummary, Entry, Handle, MessageEntry, decode_entry
from palaver.session import Dialog, Session
from palaver.session.reading.recalling import whole
from palaver.view import held

__all__ = ["Pinned", "gist", "pin_in", "pinned_in", "run"]

_GIST = 72
"""Characters of an entry in a list."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """A pinned entry, as it is listed.

    Attributes:
        place: Where it stands.
        shown: Whether the view has it; a pin keeps what is there, and does not bring back what left before.
        text: Who said what, in one line.
    """

    place: Handle
    shown: bool
    text: str

    @property
    def line(self) -> str:
        """The entry in one line, for people."""
        return f"{self.place}  {self.text}{'' if self.shown else _GONE}"


_GONE = "  (it is not in the view: undo the compaction by which it left, or recall it)"


def run(
    session: SessionArgument,
    handle: Annotated[
        str | None,
        typer.Argument(metavar="HANDLE", help="The entry: dialog:entry. Default: list what is pinned."),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Pin it no longer.")] = False,
    dialog: DialogOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Keep an entry in every view, or no longer, and list what is pinned.

    Whatever a policy leaves out, in this dialog and in forks made later, a pinned entry stays, with the calls and results that belong to it. The
    pin is made in the dialog that --dialog names, else in the one to go on with, or in the entry's own where that does not hold it.
    """
    if undo and handle is None:
        raise typer.BadParameter("--undo needs the HANDLE of what is pinned.")
    with opened(store, writes=handle is not None) as source:
        found = Session.open(session, source)
        chosen = found.dialog(dialog_of(found, dialog))
        if handle is not None:
            place = found.place(handle)
            if dialog is None and not _holds(chosen, place):
                chosen = found.dialog(place.dialog)
            pin_in(chosen.reload(), place, undo=undo)
        for one in pinned_in(chosen):
            if json:
                print_json(_row(chosen, one))
            else:
                output().print(one.line, soft_wrap=True)
    return Exit.OK


def _row(dialog: Dialog, one: Pinned) -> dict[str, Any]:
    return {"handle": str(one.place), "dialog": dialog.dialog_id, "shown": one.shown, "text": one.text}


def pin_in(dialog: Dialog, handle: Handle | str, *, undo: bool = False) -> Handle:
    """Pin an entry in a dialog, or no longer, and give its place. What is pinned already stays so, without another entry of the log.

    Raises:
        InvalidHandle: It is no handle, or not spelt like one.
        InvalidInput: The dialog does not hold it, no view shows it, or it is not pinned.
        UnknownHandle: The session has no such entry.
    """
    place = whole(dialog.store, dialog.session_id, handle)._replace(
        block=None
    )  # entries are pinned, with all that belongs to them
    pinned = place in dialog.pins
    if undo and not pinned:
        raise InvalidInput(
            f"{place} is not pinned in dialog {dialog.dialog_id[:12]}.", hint="Without HANDLE, pins are listed."
        )
    if not undo:
        _require_held(dialog, place)
    if undo or not pinned:
        dialog.pin(place, pinned=not undo)
    return place


def _require_held(dialog: Dialog, place: Handle) -> None:
    if not _holds(dialog, place):
        raise InvalidInput(f"Dialog {dialog.dialog_id[:12]} does not hold {place}.", hint="Pin it where it was said.")
    entry = _entry(dialog, place)
    if not isinstance(entry, MessageEntry | BranchSummary):
        raise InvalidInput(
            f"{place} is no message (but {entry.kind}).",
            hint="`palaver show SESSION --entries` lists the entries with their handles.",
        )


def _holds(dialog: Dialog, place: Handle) -> bool:
    return any(place._replace(block=None) in span for span in held(dialog.store, dialog.dialog_id, None))


def pinned_in(dialog: Dialog) -> Iterator[Pinned]:
    """Give what is pinned in a dialog, in the order of pinning."""
    runs = [run for exchange in dialog.view().exchanges for run in exchange.runs]
    for place in dialog.pins:
        yield Pinned(place, any(place in one for one in runs), gist(dialog, place))


def gist(dialog: Dialog, place: Handle) -> str:
    """Give an entry in one line: who said what. Pictures are not read for that."""
    try:
        entry = _entry(dialog, place)
    except UnknownHandle:
        return "(not there any more)"
    if entry.erased is not None and not entry.erased.part:
        return "(erased)"
    said = " ".join(text_of(entry).split())
    return f"{who_of(entry)} {said if len(said) <= _GIST else f'{said[: _GIST - 1]}…'}"


def _entry(dialog: Dialog, place: Handle) -> Entry:
    return decode_entry(dialog.store.body(place.dialog, place.seq))
