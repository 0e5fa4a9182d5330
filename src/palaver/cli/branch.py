"""palaver branch: the dialogs of a session, and the marks on their entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from palaver.agent.checkpoints import Checkpoint, GitTree, files_at, restore_files, undo_of
from palaver.browsing import actions
from palaver.browsing.differences import dialogs_row
from palaver.browsing.entries import labels, pins
from palaver.browsing.places import locate
from palaver.browsing.sessions import dialogs
from palaver.cli.app import group
from palaver.cli.location import located
from palaver.cli.options import EntryArgument, JsonOption, SessionArgument, StoreOption, YesOption, opened
from palaver.cli.terminal import emit, listed, paged, say
from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId
from palaver.log import BranchSummary, Handle
from palaver.plurals import counted
from palaver.session import Dialog, Session
from palaver.store.titles import title

app = group(
    "branch", "The dialogs of a session: draw their tree, fork, rewind, merge and compare them, and mark entries."
)

_PLACE = "An entry, as dialog:entry; or a session, to list its marks."
PlaceArgument = Annotated[str, Argument(metavar="HANDLE|SESSION", help=_PLACE)]
_SHOWN = 20
"""Files that a preview names."""
UndoOption = Annotated[bool, Option("--undo", help="Undo it.")]


def _entry(place: Handle | None, text: str) -> Handle:
    if place is None:
        raise InvalidInput(f"{text!r} is not an entry.", hint="`palaver show SESSION --entries` lists handles.")
    return place


@app.command()
def tree(session: SessionArgument, store: StoreOption = None, json: JsonOption = False) -> None:
    """Draw the tree of a session's dialogs. An arrow marks the one that commands use."""
    with located(session, store) as (there, _, _, _), paged(data=json):
        if not json:
            say(f"{there.session_id[:12]}  {title(there.store, there.record)}")
        depths: dict[DialogId | None, int] = {}
        for row in dialogs(there.store, there.session_id):
            depth = depths[row["dialog"]] = depths.get(row["parent"], -1) + 1
            inherited = there.store.node(row["dialog"]).inherited
            shared = f", {inherited:,} shared" if inherited else ""
            said = f"{row['relation']}, {row['owner']}, {counted(row['messages'], 'message')}{shared}"
            emit(json, row, f"{'→ ' if row['main'] else '  '}{'   ' * depth}{row['dialog'][:12]}  {said}")


@app.command()
def diff(
    first: Annotated[str, Argument(metavar="A", help="A dialog: its id, or the first 6 or more digits.")],
    second: Annotated[str, Argument(metavar="B", help="Another dialog of the same session.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Compare two dialogs: where they part, what each has alone."""
    with opened(store) as source, paged(data=json):
        there = locate(source, first)
        difference = there.session.diff(there.dialog, locate(source, second).dialog)
        emit(json, dialogs_row(difference), *difference.lines())


@app.command()
def fork(
    session: EntryArgument,
    last: Annotated[int, Option("--last", min=0, help="Keep only the first message and the last N; 0 keeps all.")] = 0,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Fork a dialog, at its end or after an entry. The new one shares what was said, and each continues by itself; nothing is copied."""
    with located(session, store, writes=True, entries=True) as (there, named, handle, _):
        if handle is not None and last:
            raise BadParameter("it counts from the end of a dialog; name no entry.", param_hint="--last")
        dialog = named if handle is None else actions.holding(there, handle)
        made = dialog.fork(last, at=handle)
        row = {"dialog": made.dialog_id, "parent": dialog.dialog_id}
        emit(json, row, f"Dialog {made.dialog_id[:12]} continues from here.")


_FILES = "Bring the files of this folder's work tree of git back, too, as an agent with a checkpoint kept them."


@app.command()
def rewind(
    place: Annotated[
        str, Argument(metavar="HANDLE|SESSION", help="The last entry that stays; with --undo, a session.")
    ],
    undo: UndoOption = False,
    files: Annotated[bool, Option("--files", help=_FILES)] = False,
    yes: YesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Go back to an entry. Without --yes, what would leave the view is listed; with it, a branch continues from there. Nothing is lost."""
    with opened(store, writes=yes) as source:
        session, dialog, handle, _ = locate(source, place, only=True, entries=True)
        if undo:
            _undo_rewind(session, dialog, files=files, yes=yes, json=json)
            return
        handle = _entry(handle, place)
        holder = actions.holding(session, handle)
        preview = session.rewind(handle, holder)
        back = _FilesBack.at(holder, handle) if files else None
        made = None
        if yes:
            with source.transaction():  # the conversation goes back only if the files do
                made = preview.apply()
                if back is not None:
                    back.restore(made)
        leaving = [str(preview.leaving.handle(index)) for index in range(len(preview.leaving))]
        row = {"to": str(preview.to), "kept": preview.kept, "leaving": leaving, "entries": preview.entries}
        row |= {"files": list(preview.files), "dialog": made and made.dialog_id}
        done = () if made is None else (f"Done: dialog {made.dialog_id[:12]} continues.",)
        shown = preview if back is None else replace(preview, files=())
        emit(json, row | _row_of(back), *shown.lines(), *_lines_of(back), *done, *_preview(yes))


def _undo_rewind(session: Session, dialog: Dialog, *, files: bool, yes: bool, json: bool) -> None:
    if dialog.parent is None:
        raise InvalidInput(f"Dialog {dialog.dialog_id[:12]} was not made by a rewind.")
    back = _FilesBack(GitTree.of("."), undo_of(dialog), 0) if files else None
    to = dialog.parent
    if yes:
        with dialog.store.transaction():
            to = session.undo_rewind(dialog)
            if back is not None:
                back.restore(to)
    row: dict[str, Any] = {"to": to.dialog_id, "done": yes}
    said = f"{'Back' if yes else 'Would go back'} to dialog {to.dialog_id[:12]}."
    emit(json, row | _row_of(back), said, *_lines_of(back), *_preview(yes))


class _FilesBack:
    """A state of the files that a rewind brings back, and what that changes."""

    def __init__(self, tree: GitTree, snapshot: Any, calls: int) -> None:  # noqa: ANN401 - JSON of a log
        self.tree, self.snapshot, self.calls = tree, snapshot, calls
        self.changes = tree.changes(snapshot)

    @classmethod
    def at(cls, dialog: Dialog, handle: Handle) -> _FilesBack:
        there = files_at(dialog, handle)
        if there is None:
            hint = "An agent keeps them with Agent(checkpoint=git_checkpoint()). Without --files, the conversation alone goes back."
            raise NotFound(str(handle), what="state of the files for", hint=hint)
        return cls(GitTree.of("."), there.snapshot, there.calls)

    def restore(self, dialog: Dialog) -> None:
        restore_files(dialog, Checkpoint(self.tree.snapshot, self.tree.restore), self.snapshot)


def _row_of(back: _FilesBack | None) -> dict[str, Any]:
    return {} if back is None else {"changed": back.changes, "calls": back.calls}


def _lines_of(back: _FilesBack | None) -> Iterator[str]:
    if back is None:
        return
    yield f"{counted(len(back.changes), 'file goes', 'files go')} back in {back.tree.folder}{':' if back.changes else '.'}"
    yield from listed([f"  {change}" for change in back.changes], _SHOWN)
    if back.calls:
        calls = counted(back.calls, "tool call that stays", "tool calls that stay")
        yield f"That is as they were when the turn began: what {calls} did to them is undone, too."


def _preview(yes: bool) -> tuple[str, ...]:
    return () if yes else ("Nothing was written: --yes does it.",)


@app.command()
def merge(
    branch: Annotated[str, Argument(metavar="BRANCH", help="The dialog to tell about.")],
    into: Annotated[
        str | None, Option("--into", metavar="DIALOG", help="The dialog to tell. Default: the main one.")
    ] = None,
    text: Annotated[str | None, Option("--text", help="What happened there. Default: a record made by code.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Record in a dialog what happened on another branch. One entry says it, with its sources."""
    with opened(store, writes=True) as source:
        session, told, _, _ = locate(source, branch, only=True)
        dialog = session.root if into is None else session.dialog(into)
        place = session.merge(told, dialog, text)
        entry = session.recall(place)
        summary = entry.summary if isinstance(entry, BranchSummary) else ""
        emit(json, {"entry": str(place), "dialog": dialog.dialog_id, "text": summary}, f"{place}\n{summary}")


# --- marks ----------------------------------------------------------------------------------------------------------------------------


@app.command()
def label(
    place: PlaceArgument,
    name: Annotated[str | None, Argument(metavar="NAME", help="The label; without one it is removed.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Label an entry, remove its label, or list the labels. They are for people; no model sees them."""
    with opened(store) as source:
        session, _, handle, _ = locate(source, place, only=":" in place, entries=True)
        if handle is not None or name is not None:
            handle = _entry(handle, place)
            session.dialog(handle.dialog).marks.label(handle, name)
        rows = list(labels(session))
        for row in rows:
            emit(json, row, f"{row['handle']}  {row['label']}")
    if not (rows or json):
        say("Nothing is labelled.")


@app.command()
def pin(place: PlaceArgument, undo: UndoOption = False, store: StoreOption = None, json: JsonOption = False) -> None:
    """Keep an entry in every view, or list what is pinned. No policy leaves it out, and later forks keep it, too.

    A pin keeps what is there: what left the view before comes back when the compaction is undone.
    """
    with opened(store) as source:
        session, dialog, handle, _ = locate(source, place, only=":" in place, entries=True)
        if handle is not None or undo:
            handle = _entry(handle, place)._replace(block=None)
            dialog = actions.holding(session, handle)
            actions.pin(dialog, handle, undo=undo)
        rows = list(pins(dialog))
        for row in rows:
            gone = "" if row["shown"] else "  (not in the view: undo the compaction that left it out)"
            emit(json, row, f"{row['handle']}  {row['text']}{gone}")
    if not (rows or json):
        say("Nothing is pinned.")


@app.command()
def quarantine(
    handles: Annotated[list[str], Argument(metavar="HANDLE", help="Blocks, dialog:entry:block, or whole entries.")],
    reason: Annotated[str, Option("--reason", metavar="WHY", help="Why, for people; no model sees it.")] = "",
    undo: UndoOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Set aside blocks that a provider refuses. The views of every dialog show a placeholder; the log keeps the original."""
    done = []
    with opened(store, writes=True) as source, source.transaction():
        for text in handles:
            session, _, handle, _ = locate(source, text, only=True, entries=True)
            place = _entry(handle, text)
            made = session.lift(place, reason) if undo else session.quarantine(place, reason)
            done.append((place, session.session_id, [str(entry) for entry in made]))
    for place, session_id, entries in done:
        where = f"in {counted(len(entries), 'dialog')}"
        said = f"shown again {where}" if undo else f"in quarantine {where}; --undo shows it again"
        row = {"handle": str(place), "session": session_id, "entries": entries, "quarantined": not undo}
        emit(json, row, f"{place}: {said if entries else 'in quarantine already'}.")
