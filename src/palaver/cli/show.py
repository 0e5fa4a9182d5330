"""palaver show: what was said, and the originals that handles name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from palaver.browsing.entries import entry_row, is_handle, length, originals, recorded, text_of, who_of
from palaver.browsing.places import numbered
from palaver.cli.location import located
from palaver.cli.options import JsonOption, StoreOption, opened
from palaver.cli.terminal import paged, print_json, say, write
from palaver.log import Entry, Inbox, LateResult, MessageEntry
from palaver.messages import ToolCallContent
from palaver.session import Dialog
from palaver.session.waiting import undelivered
from palaver.store import Store
from palaver.transcripts.markdown import markdown
from palaver.view import fold

_LINE = 100


_WHAT = "A session or dialog; a handle (dialog:entry, dialog:entry:block, dialog:first-last), also with a session in place of its main dialog; a transcript."


def run(
    what: Annotated[str, Argument(metavar="SESSION|HANDLE|FILE", help=_WHAT)],
    entries: Annotated[bool, Option("--entries", "-e", help="List the entries of the log, a line each.")] = False,
    last: Annotated[int | None, Option("--last", min=1, help="Only the last N exchanges, or entries.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show everything that was said, or the original that a handle names, exactly as it was recorded.

    With --json: the entries, one object a line.
    """
    if ":" in what and not Path(what).is_file():
        with opened(store) as source, paged(data=json):
            if is_handle(named := numbered(source, what)):
                for original in originals(source, named) if json else ():
                    print_json(original.to_dict())
                for piece in () if json else recalled(source, named):
                    write(piece)
                return
    with located(what, store) as (_, dialog, _, _), paged(data=json):
        if json or entries:
            _list(dialog, last, json=json)
            return
        view = fold(dialog.store, dialog.dialog_id, whole=True)
        if last:
            view = replace(view, exchanges=view.exchanges[-last:], omissions=())
        view.load()
        waiting = (message for _, message in undelivered(dialog.store, dialog.dialog_id))
        for text in markdown(dialog.store, dialog.store.session(dialog.session_id), view, waiting):
            write(text)


# --- entries --------------------------------------------------------------------------------------------------------------------------


def _list(dialog: Dialog, last: int | None, *, json: bool) -> None:
    for place, entry in recorded(dialog, max(0, length(dialog) - last) if last else 0):
        if json:
            print_json(entry_row(place, entry))
        else:
            say(f"{place!s:<19} {entry.kind:<14} {_line(entry)}".rstrip())


def _line(entry: Entry) -> str:
    if not isinstance(entry, MessageEntry | Inbox | LateResult):
        return ""
    text = " ".join(entry.message.text_content().split())
    calls = " ".join(f"[call {block.name}]" for block in entry.message.contents if isinstance(block, ToolCallContent))
    return f"{entry.message.role.value}: {text[:_LINE]}{'…' if len(text) > _LINE else ''} {calls}".rstrip()


def recalled(store: Store, text: str) -> Iterator[str]:
    """Yield for people what a handle, or a run of entries, names; each piece ends its line.

    Raises:
        InvalidInput: It is not a handle.
        NotFound: There is no such entry or block.
        Erased: It was there and was erased.
    """
    named = originals(store, text)
    for original in named:
        entry = original.found()
        head = f"{original.handle}  {who_of(entry)}\n" if len(named) > 1 else ""
        yield f"{head}{text_of(entry)}\n{head and chr(10)}"
