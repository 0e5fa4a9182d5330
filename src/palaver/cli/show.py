"""palaver show: what was said."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer

from palaver.cli.dialogs import dialog_of
from palaver.cli.options import DialogOption, JsonOption, SessionArgument, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import output, write
from palaver.ids import DialogId
from palaver.log import MessageEntry, decode_entry
from palaver.messages import ToolCallContent
from palaver.session import Session
from palaver.store import Store
from palaver.transcripts.markdown import markdown
from palaver.view import fold, held


def run(
    session: SessionArgument,
    dialog: DialogOption = None,
    entries: Annotated[
        bool, typer.Option("--entries", help="List the entries of the log instead, a line each.")
    ] = False,
    last: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the last N exchanges, or entries.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Show everything that was said in a dialog, as Markdown; or its entries. With --json: the entries, one object a line."""
    with opened(store) as source:
        found = Session.open(session, source)
        dialog_id = dialog_of(found, dialog)
        if json or entries:
            for owner, seq, body in deque(_rows(source, dialog_id), last) if last else _rows(source, dialog_id):
                entry = decode_entry(body)
                if json:
                    print_json({"handle": f"{owner[:12]}:{seq}", **entry.model_dump(mode="json")})
                else:
                    output().print(f"{owner[:12]}:{seq:<6} {entry.kind:<14} {_line(entry)}".rstrip())
            return Exit.OK
        view = fold(source, dialog_id, whole=True)
        if last:
            view = replace(view, exchanges=view.exchanges[-last:])
        for text in markdown(found.record, view):
            write(text)
    return Exit.OK


def _rows(store: Store, dialog_id: DialogId) -> Iterator[tuple[DialogId, int, bytes]]:
    """Give owner, number and body of the entries that a dialog holds, its ancestors' first."""
    for span in held(store, dialog_id, None):
        for seq, body in store.bodies(span.dialog, span.start, span.stop):
            yield span.dialog, seq, body


def _line(entry: object) -> str:
    if not isinstance(entry, MessageEntry):
        return ""
    text = " ".join(entry.message.text_content().split())
    calls = " ".join(f"[call {block.name}]" for block in entry.message.contents if isinstance(block, ToolCallContent))
    return f"{entry.message.role.value}: {text[:100]}{'…' if len(text) > 100 else ''} {calls}".rstrip()  # noqa: PLR2004 - a line
