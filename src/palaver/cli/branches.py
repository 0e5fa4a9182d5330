"""palaver diff, merge, rewind and label: what is done with the branches of a session and the places in them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from palaver.cli.dialogs import dialog_of
from palaver.cli.options import DialogOption, JsonOption, SessionArgument, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import output
from palaver.errors import InvalidInput
from palaver.log import BranchSummary
from palaver.plurals import counted
from palaver.session import Dialog, Rewind, Session, Side


def diff(
    session: SessionArgument,
    first: Annotated[str, typer.Argument(metavar="A", help="A dialog's id or its first 6 or more digits.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another dialog.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Say where two branches went apart, and what each of them holds alone."""
    with opened(store) as source:
        found = Session.open(session, source)
        difference = found.dialog(first).diff(found.dialog(second))
        if json:
            ancestor = None if difference.ancestor is None else str(difference.ancestor)
            sides = {"one": _side(difference.one), "other": _side(difference.other)}
            print_json({"ancestor": ancestor, "common": difference.common, **sides})
            return Exit.OK
        for line in difference.lines():
            output().print(line, soft_wrap=True)
    return Exit.OK


def _side(side: Side) -> dict[str, Any]:
    places = [str(side.messages.handle(index)) for index in range(len(side.messages))]
    return {"dialog": side.dialog_id, "entries": side.entries, "messages": places}


def merge(
    session: SessionArgument,
    branch: Annotated[str, typer.Argument(metavar="BRANCH", help="The dialog that is told of.")],
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="D", help="The dialog that is told. Default: the dialog to go on with."),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="What happened there, in your words; told by code when not given.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Tell a dialog what happened on another branch: one entry that names the branch and what it was made of."""
    with opened(store, writes=True) as source:
        found = Session.open(session, source)
        dialog = _dialog(found, into)
        place = dialog.merge(found.dialog(branch), text)
        entry = dialog.recall(place)
        told = entry.summary if isinstance(entry, BranchSummary) else ""
        if json:
            print_json({"entry": str(place), "dialog": dialog.dialog_id, "text": told})
        else:
            output().print(f"{place}\n{told}", soft_wrap=True)
    return Exit.OK


def rewind(  # noqa: PLR0917 - the words of a command
    session: SessionArgument,
    to: Annotated[
        str | None, typer.Option("--to", metavar="HANDLE", help="The last entry that stays: dialog:entry.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Go back to the dialog that a rewind left.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it is only looked at.")] = False,
    dialog: DialogOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Go back to an entry: say what would leave the view and what was done since; with --yes do it, as a branch. Nothing is lost."""
    if undo == (to is not None):
        raise InvalidInput(
            "Say where to go back to with --to HANDLE, or --undo.", hint="`palaver show --entries` has handles."
        )
    with opened(store, writes=yes) as source:
        found = Session.open(session, source)
        here = _dialog(found, dialog)
        if to is None:
            _undo(here, yes=yes, json=json)
        else:
            _rewind(here, to, yes=yes, json=json)
    return Exit.OK


def _rewind(dialog: Dialog, to: str, *, yes: bool, json: bool) -> None:
    preview = dialog.rewind(to)
    made = preview.apply() if yes else None
    if json:
        print_json(_data(preview) | {"dialog": None if made is None else made.dialog_id})
        return
    console = output()
    for line in preview.lines():
        console.print(line, soft_wrap=True)
    if made is None:
        console.print("Nothing was written: --yes does it.")
    else:
        console.print(f"Done: dialog {made.dialog_id[:12]} goes on; --undo goes back.")


def _undo(dialog: Dialog, *, yes: bool, json: bool) -> None:
    left = dialog.parent
    if not yes and left is not None and dialog.rewound:
        said = len(dialog.messages) - (dialog.tree_node.split_point or 0)
        if json:
            print_json({"dialog": None, "from": dialog.dialog_id, "to": left.dialog_id, "staying": said})
            return
        output().print(
            f"Back to dialog {left.dialog_id[:12]}; {counted(said, 'message said since stays', 'messages said since stay')} in {dialog.dialog_id[:12]}."
        )
        output().print("Nothing was written: --yes does it.")
        return
    back = dialog.undo_rewind()
    if json:
        print_json({"dialog": back.dialog_id, "from": dialog.dialog_id})
    else:
        output().print(f"Done: dialog {back.dialog_id[:12]} goes on.")


def _data(preview: Rewind[Dialog]) -> dict[str, Any]:
    return {
        "to": str(preview.to),
        "kept": preview.kept,
        "leaving": [str(preview.leaving.handle(index)) for index in range(len(preview.leaving))],
        "entries": preview.entries,
        "tokens": {"before": preview.tokens_before, "after": preview.tokens_after},
        "returning": preview.returning,
        "interrupted": list(preview.interrupted),
        "commands": list(preview.commands),
        "files": [
            {"path": one.path, "wrote": one.wrote, "calls": [str(place) for place in one.calls]}
            for one in preview.files
        ],
    }


def label(
    session: SessionArgument,
    handle: Annotated[
        str | None, typer.Argument(metavar="HANDLE", help="The entry: dialog:entry. Default: list the labels.")
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Its label; without one, its label is taken away.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Name an entry for people, take its name away, or list what is named. No model sees a label."""
    with opened(store, writes=handle is not None) as source:
        found = Session.open(session, source)
        if handle is not None:
            place = found.place(handle)
            found.dialog(place.dialog).label(place, name)
        for place, said in found.labels.items():
            if json:
                print_json({"handle": str(place), "label": said})
            else:
                output().print(f"{place}  {said}")
    return Exit.OK


def _dialog(session: Session, reference: str | None) -> Dialog:
    return session.dialog(dialog_of(session, reference)).reload()
