"""palaver search: find what was said, asked of tools and returned by them."""

from __future__ import annotations

import sys
from textwrap import shorten
from typing import Annotated

from typer import Argument, BadParameter, Option

from palaver.browsing.places import locate
from palaver.browsing.search import HitFilters, HitRow, hits, index
from palaver.browsing.sessions import Filters, archived_count
from palaver.cli.options import (
    FolderOption,
    JsonOption,
    LimitOption,
    ModelFilterOption,
    OneOption,
    SinceOption,
    StoreOption,
    ToolOption,
    UntilOption,
    filters_given,
    opened,
)
from palaver.cli.terminal import complain, note_archived, paged, print_json, say, styled, when
from palaver.plurals import counted
from palaver.store.text import words

_QUERY = 'Words or their beginnings, any of which count, and "phrases" in quotes; no other character is special.'

_ROLE = "Only this role: user, assistant or tool; or this kind of entry, such as compaction."

_TITLE = 60

_MANY = 5_000
"""Entries that are indexed in about a second."""


def run(
    query: Annotated[str, Argument(metavar="QUERY", help=_QUERY)],
    session: OneOption = None,
    limit: LimitOption = 20,
    since: SinceOption = "",
    until: UntilOption = "",
    role: Annotated[str, Option("--role", metavar="ROLE", help=_ROLE)] = "",
    tool: ToolOption = "",
    agent: Annotated[str, Option("--agent", metavar="NAME", help="Only agents with this in their name.")] = "",
    folder: FolderOption = "",
    model: ModelFilterOption = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Search messages, tool arguments and tool results, the best hit first. Pass the handle of a hit to `show` or `view`."""
    if not words(query):
        raise BadParameter("it has no letter, digit or pictograph to search for.", param_hint="QUERY")
    filters = HitFilters(Filters(since, until, tool, model, folder), role, agent)
    with opened(store) as source:
        within = None if session is None else locate(source, session).session.session_id
        if (lag := source.index_lag()) > _MANY:
            complain(f"Indexing {counted(lag, 'new entry')} first …")
        if left := index(source, within):
            missing = counted(left, "newest entry is", "newest entries are")
            complain(f"The store may only be read: its {missing} not searched.", "yellow")
        rows = list(hits(source, query, within, limit, filters))
        nothing = "" if rows else _nothing(filters, elsewhere=any(hits(source, query, within, 1)))
        archived = archived_count(source) if within is None else 0
    with paged(data=json):
        for row in rows:
            title = shorten(row["title"], _TITLE, placeholder=" …")
            about = (row["role"] or row["kind"], when(row["at"]), f"in {title}")
            where = f"{row['handle']}  {', '.join(filter(None, about))}"
            if json:
                print_json(row)
            else:
                say(where)
                sys.stdout.write(f"    {_highlighted(row)}\n")
        if nothing and not json:
            say(nothing)
        note_archived(json, archived, "searched")


def _nothing(filters: HitFilters, *, elsewhere: bool) -> str:
    """Return that nothing was found, and whether the filters are why."""
    if not (given := filters_given(filters.where, filters)):
        return "Nothing found."
    return f"Nothing found with {given}; {'there are hits' if elsewhere else 'nor is there anything'} without."


def _highlighted(row: HitRow) -> str:
    """Return the snippet on one line, the words of the query in colour."""
    pieces, done = [], 0
    for start, stop in row["marks"]:
        pieces += [
            styled(sys.stdout, row["snippet"][done:start]),
            styled(sys.stdout, row["snippet"][start:stop], "cyan"),
        ]
        done = stop
    return " ".join("".join([*pieces, styled(sys.stdout, row["snippet"][done:])]).split())
