"""palaver sessions: the sessions of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from typer import BadParameter, Option

from palaver.browsing.sessions import Filters, StoredSessionRow, archived_count, priced, sessions
from palaver.cli.options import (
    FolderOption,
    JsonOption,
    LimitOption,
    ModelFilterOption,
    SinceOption,
    StoreOption,
    SubjectOption,
    ToolOption,
    UntilOption,
    filters_given,
    opened,
)
from palaver.cli.terminal import money, note_archived, paged, print_rows, say, short, when
from palaver.folders import short_folder
from palaver.plurals import counted

_COLUMNS: Mapping[str, Callable[[StoredSessionRow], str]] = {
    "session": lambda row: row["session"][:12],
    "active": lambda row: when(row["updated_at"]),
    "tool": lambda row: row["tool"],
    "model": lambda row: row["model"],
    "msgs": lambda row: short(row["messages"]),
    "tokens": lambda row: short(row["tokens"] or 0),
    "cost": lambda row: money(row["dollars"], estimated=row["estimated"]),
    "title": lambda row: f"(archived) {row['title']}" if row["archived"] else row["title"],
    "folder": lambda row: short_folder(row["workdir"]),
}


def run(
    limit: LimitOption = 50,
    subject: SubjectOption = None,
    since: SinceOption = "",
    until: UntilOption = "",
    tool: ToolOption = "",
    model: ModelFilterOption = "",
    folder: FolderOption = "",
    trash: Annotated[bool, Option("--trash", help="List the trash instead.")] = False,
    archived: Annotated[bool, Option("--archived", help="List archived sessions alone.")] = False,
    wide: Annotated[bool, Option("--wide", help="Whole titles and all columns, however long a line is.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List sessions, the newest activity first, and their totals. A tool is the program that recorded the session."""
    filters = Filters(since, until, tool, model, folder)
    of_contents = bool(tool or model)
    if archived and of_contents:
        raise BadParameter("the store has neither tool nor model of an archived session.", param_hint="--archived")
    which: Any = {"subject": subject, "trashed": trash, "archived": archived, "filters": filters}
    with opened(store) as source:
        rows = priced(source, sessions(source, limit=limit + 1, **which))
        left_out = archived_count(source, subject) if of_contents else 0
    more, rows = len(rows) > limit, rows[:limit]
    with paged(data=json):
        if rows:
            print_rows(
                json,
                rows,
                _COLUMNS,
                cut={"model": 12, "folder": 8, "title": 18},
                drop=("model", "tool", "tokens", "folder", "cost", "msgs", "active"),
                wide=wide,
            )
        elif not json:
            say(_none(filters_given(filters), archived=archived))
        for line in () if json or not rows else _totals(rows, more=more):
            say(line)
        note_archived(json, left_out, "listed, as the store has neither their tool nor their model")


def _none(given: str, *, archived: bool) -> str:
    if given:
        return f"No session matches {given}."
    return "No session is archived." if archived else "No sessions. `palaver import` imports what other agents left."


def _totals(rows: Sequence[StoredSessionRow], *, more: bool) -> Iterator[str]:
    """Yield the sums of the rows, and whether there are more."""
    dollars = sum(row["dollars"] or 0 for row in rows)
    parts = [counted(len(rows), "session")]
    if archived := sum(row["archived"] for row in rows):
        parts.append(f"{archived:,} archived")
    if messages := sum(row["messages"] for row in rows):
        parts.append(f"{short(messages)} msgs")
    if tokens := sum(row["tokens"] or 0 for row in rows):
        parts.append(f"{short(tokens)} tokens")
    if dollars:
        parts.append(money(dollars, estimated=any(row["estimated"] for row in rows)))
    yield f"{', '.join(parts)}.{' There are more: --limit N lists them.' if more else ''}"
