"""palaver sessions: the sessions of the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Annotated

from typer import Option

from palaver.browsing.sessions import StoredSessionRow, sessions
from palaver.cli.options import JsonOption, LimitOption, StoreOption, SubjectOption, opened
from palaver.cli.terminal import money, paged, print_rows, say, short, when

_COLUMNS: Mapping[str, Callable[[StoredSessionRow], str]] = {
    "session": lambda row: row["session"][:12],
    "active": lambda row: when(row["updated_at"]),
    "msgs": lambda row: short(row["messages"]),
    "tokens": lambda row: short(row["tokens"] or 0),
    "cost": lambda row: money(row["dollars"], estimated=row["estimated"]),
    "title": lambda row: row["title"],
    "folder": lambda row: PurePath(row["workdir"]).name,
}


def run(
    limit: LimitOption = 50,
    subject: SubjectOption = None,
    trash: Annotated[bool, Option("--trash", help="List the trash instead.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List sessions, the newest activity first."""
    with opened(store) as source:
        rows = list(sessions(source, subject=subject, trashed=trash, limit=limit + 1))
    with paged(data=json):
        if rows:
            print_rows(
                json,
                rows[:limit],
                _COLUMNS,
                cut={"folder": 8, "title": 18},
                drop=("tokens", "folder", "cost", "msgs", "active"),
            )
        elif not json:
            say("No sessions. `palaver import` imports what other agents left.")
        if len(rows) > limit and not json:
            say("There are more: --limit N lists them.")
