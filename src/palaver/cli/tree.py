"""palaver tree: a session's dialogs."""

from __future__ import annotations

import typer

from palaver.cli.options import JsonOption, SessionArgument, StoreOption, opened
from palaver.cli.outcome import Exit, print_json
from palaver.cli.surroundings import output
from palaver.session import Session


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tree")(run)


def run(session: SessionArgument, store: StoreOption = None, json: JsonOption = False) -> int:
    """Draw the tree of a session's dialogs: forks, rewinds, sub-agents."""
    with opened(store) as source:
        found = Session.open(session, source)
        if not json:
            console = output()
            console.print(f"{found.name}  ({found.opened})")
            console.print(found.tree_overview())
            return Exit.OK
        for node in source.nodes(found.session_id):
            last = source.last(node.dialog_id)
            print_json(
                {
                    "dialog": node.dialog_id,
                    "owner": node.owner,
                    "parent": node.parent_id,
                    "relation": node.relation,
                    "entries": last.seq + 1,
                    "messages": node.inherited + last.number,
                    "ranges": [[span.dialog, span.start, span.stop] for span in node.ranges],
                }
            )
    return Exit.OK
