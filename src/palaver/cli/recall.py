"""palaver recall: bring back what a view left out."""

from __future__ import annotations

from typing import Annotated

import typer

from palaver.cli.options import JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit, print_json
from palaver.cli.surroundings import write
from palaver.log import Entry, Handle, MessageEntry
from palaver.messages import Content, TextContent, ToolCallContent, ToolResultContent
from palaver.session import Session


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("recall")(run)


def run(
    handle: Annotated[
        str, typer.Argument(metavar="HANDLE", help="As it stands in a placeholder: dialog:entry or dialog:entry:block.")
    ],
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Give back what a handle stands for, whole, from whichever session and branch it is in."""
    with opened(store) as source:
        named = Handle.parse(handle)
        dialog_id = source.resolve(named.dialog)
        session = Session.open(source.node(dialog_id).session_id, source)
        found = session.recall(named._replace(dialog=dialog_id))
        if json:
            print_json(
                {
                    "handle": f"{dialog_id}{handle[len(named.dialog) :]}",
                    "session": session.session_id,
                    "found": found.model_dump(mode="json"),
                }
            )
        else:
            write(f"{_text(found)}\n")
    return Exit.OK


def _text(found: Entry | Content) -> str:
    if isinstance(found, MessageEntry):
        return "\n\n".join(_text(block) for block in found.message.contents)
    if isinstance(found, TextContent):
        return found.content
    if isinstance(found, ToolResultContent):
        return found.text()
    if isinstance(found, ToolCallContent):
        return f"{found.name} {found.arguments}"
    return found.model_dump_json(indent=2)
