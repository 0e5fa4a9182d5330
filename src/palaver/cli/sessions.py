"""palaver sessions: what the store holds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table

from palaver.cli.options import JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit, print_json
from palaver.cli.surroundings import output
from palaver.store import SessionRecord, Store


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sessions")(run)


def run(
    store: StoreOption = None,
    name: Annotated[str | None, typer.Option(help="Only those of exactly this name.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only those of exactly this subject.")] = None,
    trash: Annotated[bool, typer.Option("--trash", help="What is in the trash instead.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, newest first.")] = 50,
    json: JsonOption = False,
) -> int:
    """List sessions, newest activity first."""
    with opened(store) as source:
        table = Table(box=None, pad_edge=False)
        table.add_column("session", no_wrap=True, min_width=12)
        table.add_column("name", overflow="ellipsis", no_wrap=True, ratio=1)
        table.add_column("newest (UTC)", no_wrap=True, min_width=16)
        table.add_column("dialogs", justify="right", min_width=7)
        table.add_column("messages", justify="right", min_width=8)
        table.add_column("folder", overflow="ellipsis", no_wrap=True)
        count = 0
        for record in source.sessions(name=name, subject=subject, trashed=trash, limit=limit):
            row = _row(source, record)
            count += 1
            if json:
                print_json(row)
            else:
                table.add_row(
                    str(row["session"])[:12],
                    record.name,
                    _when(record.updated_at),
                    f"{row['dialogs']:,}",
                    f"{row['messages']:,}",
                    record.workdir,
                )
    if not json:
        output().print(table if count else "No sessions. `palaver import PATH` brings some in.")
    return Exit.OK


def _row(store: Store, record: SessionRecord) -> dict[str, object]:
    nodes = store.nodes(record.session_id)
    return {
        "session": record.session_id,
        "name": record.name,
        "subject": record.subject,
        "workdir": record.workdir,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "trashed_at": record.trashed_at,
        "dialogs": len(nodes),
        "messages": sum(store.last(node.dialog_id).number for node in nodes),
    }


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M") if seconds else ""
