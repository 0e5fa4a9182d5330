"""palaver sessions: what the store holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

import typer
from rich.table import Table

from palaver.cli.options import JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import output, visible
from palaver.store import SessionRecord, Store
from palaver.store.finding import find_session


def run(  # noqa: PLR0917 - the words of a command
    store: StoreOption = None,
    name: Annotated[str | None, typer.Option(help="Only those of exactly this name.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only those of exactly this subject.")] = None,
    trash: Annotated[bool, typer.Option("--trash", help="What is in the trash instead.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, newest first.")] = 50,
    after: Annotated[
        str | None, typer.Option(metavar="SESSION", help="The next page: what stands behind this session in the list.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """List sessions, newest activity first."""
    with opened(store) as source:
        behind = None if after is None else find_session(source, after).record
        records = source.sessions(name=name, subject=subject, trashed=trash, limit=limit + 1, after=behind)
        page = list(islice(records, limit))
        rows = (_row(source, record) for record in page)
        if json:
            for row in rows:
                print_json(row)
            return Exit.OK
        table = _table(rows)
        more = next(records, None) is not None
    console = output()
    table.expand = console.measure(table).maximum >= console.width  # only then do the ratios of its columns count
    empty = "No sessions. `palaver import PATH` brings some in." if after is None else "No further sessions."
    console.print(table if table.row_count else empty)
    if more:
        console.print(f"There are more: --after {page[-1].session_id[:12]} lists them.")
    return Exit.OK


def _table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Make a table whose numbers are always there; names and folders are cut where a terminal's line is too short, and only there."""
    table = Table(box=None, pad_edge=False)
    for title, width in (("session", 12), ("newest (UTC)", 16)):
        table.add_column(title, no_wrap=True, min_width=width)
    for title in ("dialogs", "messages"):
        table.add_column(title, justify="right", no_wrap=True, min_width=len(title))
    for title in ("name", "folder"):
        table.add_column(title, overflow="ellipsis", no_wrap=True, ratio=1)
    for row in rows:
        table.add_row(
            str(row["session"])[:12],
            _when(row["updated_at"]),
            f"{row['dialogs']:,}",
            f"{row['messages']:,}",
            visible(row["name"]),
            visible(row["workdir"]),
        )
    return table


def _row(store: Store, record: SessionRecord) -> dict[str, Any]:
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
