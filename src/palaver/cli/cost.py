"""palaver cost: what sessions cost, what broke the provider's cache, and what compactions saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from typer import Argument, Option

from palaver.browsing.costs import By, CostReport, report
from palaver.browsing.places import locate
from palaver.browsing.sessions import Filters
from palaver.browsing.spent import CAUSES, Costs
from palaver.cli.options import (
    FolderOption,
    JsonOption,
    LimitOption,
    ModelFilterOption,
    SinceOption,
    StoreOption,
    ToolOption,
    UntilOption,
    filters_given,
    opened,
)
from palaver.cli.terminal import complain, money, note_archived, paged, print_rows, progress, say, short
from palaver.folders import short_folder
from palaver.plurals import counted

_Cell = Callable[[Any], str]


def run(
    session: Annotated[str | None, Argument(metavar="SESSION", help="Only this session.")] = None,
    by: Annotated[By, Option("--by", help="Add up by this. A tool is the program that recorded a session.")] = "day",
    since: SinceOption = "",
    until: UntilOption = "",
    tool: ToolOption = "",
    model: ModelFilterOption = "",
    folder: FolderOption = "",
    breaks: Annotated[bool, Option("--breaks", help="List the calls that broke the cache, the dearest first.")] = False,
    limit: LimitOption = 50,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show what sessions cost: tokens, the share read from the cache, dollars; what broke the cache, and what compactions saved.

    `~` marks dollars that are estimated from list prices. Days are those of UTC.
    """
    filters = Filters(since, until, tool, model, folder)
    with opened(store, read_only=True) as source:
        records = (
            list(source.sessions()) if session is None else [source.session(locate(source, session).session.session_id)]
        )
        costs = Costs(source)
        with progress(hidden=json) as advance:
            counting = _counting(records, advance)
            made = report(costs, counting, by, filters)
        costs.save(whole=session is None and filters == Filters())
    if made.unread:
        complain(f"{counted(made.unread, 'session')} cannot be read and counts for nothing.", "yellow")
    with paged(data=json):
        if breaks:
            print_rows(json, made.breaks[:limit], _BREAKS, drop=("block", "kept", "model"))
        else:
            rows = made.rows[-limit:] if by == "day" else made.rows[:limit]
            print_rows(
                json,
                rows,
                _columns(by),
                cut={"title" if by == "session" else by: 20},
                drop=("stored", "written", "calls"),
            )
        if not json:
            for line in _lines(made, filters_given(filters), shown=limit, breaks=breaks):
                say(line)
        note_archived(json, made.archived, "counted")


def _counting(records: list[Any], advance: Callable[[str, float, float | None], None]) -> Iterator[Any]:
    for number, record in enumerate(records):
        advance(f"{number:,} of {counted(len(records), 'session')}", number, len(records))
        yield record


def _columns(by: By) -> Mapping[str, _Cell]:
    if by == "session":
        own: Mapping[str, _Cell] = {by: lambda row: row["key"][:12], "title": lambda row: row["title"]}
        return {**own, **{name: cell for name, cell in _COLUMNS.items() if name != "sessions"}}
    if by == "folder":
        return {by: lambda row: short_folder(row["key"]) or "(none)", **_COLUMNS}
    return {by: lambda row: row["key"] or "(unknown)", **_COLUMNS}


def _share(part: int, whole: int) -> str:
    return f"{part * 100 // whole}%" if part else ""


_COLUMNS: Mapping[str, _Cell] = {
    "sessions": lambda row: short(row["sessions"]),
    "calls": lambda row: short(row["calls"]),
    "read": lambda row: short(row["read"]),
    "cached": lambda row: _share(row["cached"], row["read"]),
    "stored": lambda row: short(row["stored"]),
    "written": lambda row: short(row["written"]),
    "cost": lambda row: money(row["dollars"], estimated=row["estimated"] > 0),
    "breaks": lambda row: short(sum(broken["calls"] for broken in row["breaks"])),
    "lost": lambda row: money(sum(broken["dollars"] for broken in row["breaks"]), estimated=True),
}
_BREAKS: Mapping[str, _Cell] = {
    "when (UTC)": lambda row: datetime.fromtimestamp(row["at"], UTC).strftime("%Y-%m-%d %H:%M"),
    "entry": lambda row: row["entry"],
    "model": lambda row: row["model"],
    "cause": lambda row: row["cause"],
    "block": lambda row: row["place"],
    "kept": lambda row: short(row["kept"]),
    "read anew": lambda row: short(row["tokens"]),
    "lost": lambda row: money(row["dollars"], estimated=True),
}


def _lines(made: CostReport, given: str, *, shown: int, breaks: bool) -> Iterator[str]:
    """Yield the totals, what broke the cache, and what compactions saved."""
    total, listed = made.total, len(made.breaks if breaks else made.rows)
    if listed > shown:
        yield f"{listed - shown:,} more: --limit N lists them."
    if not total["calls"]:
        yield f"No calls match {given}." if given else "No calls."
        return
    cached = _share(total["cached"], total["read"]) or "none"
    cost = money(total["dollars"], estimated=total["estimated"] > 0) or "no price known"
    yield f"{counted(total['calls'], 'call')} in {counted(total['sessions'], 'session')}: {cost}; {short(total['read'])} tokens read, {cached} from the cache."
    if total["breaks"]:
        broken = sum(cause["calls"] for cause in total["breaks"])
        lost = money(sum(cause["dollars"] for cause in total["breaks"]), estimated=True) or "no price known"
        yield f"{counted(broken, 'call')} broke the cache and lost {lost}:"
        for cause in total["breaks"]:
            lost = money(cause["dollars"], estimated=True)
            yield f"  {cause['calls']:>5,}  {short(cause['tokens']):>6}  {lost:>9}  {CAUSES[cause['cause']]}"
    compactions = total["compactions"]
    if compactions["count"]:
        saved = money(compactions["saved"], estimated=True) or "nothing"
        paid = money(compactions["dollars"], estimated=total["estimated"] > 0) or "nothing that was recorded"
        yield f"{counted(compactions['count'], 'compaction')}: their summaries cost {paid}; the {counted(compactions['calls'], 'call')} after them saved {saved}."
