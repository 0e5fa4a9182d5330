"""palaver search: find what was said, asked of tools and returned by them."""

from __future__ import annotations

from textwrap import shorten
from typing import Annotated

from typer import Argument, BadParameter

from palaver.cli.options import JsonOption, LimitOption, OneOption, StoreOption, locate, opened
from palaver.cli.sessions import title_of
from palaver.cli.terminal import complain, emit, paged, say, when
from palaver.errors import StoreError
from palaver.ids import SessionId
from palaver.plurals import counted
from palaver.session import searchable
from palaver.store import Store
from palaver.store.text import words

_QUERY = 'Words or their beginnings, any of which count, and "phrases" in quotes; no other character is special.'

_TITLE = 60

_MANY = 5_000
"""Entries that are indexed in about a second."""


def run(
    query: Annotated[str, Argument(metavar="QUERY", help=_QUERY)],
    session: OneOption = None,
    limit: LimitOption = 20,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Search messages, tool arguments and tool results, the best hit first. `show` and `view` take the handle of a hit."""
    if not words(query):
        raise BadParameter("it has no letter, digit or pictograph to search for.", param_hint="QUERY")
    with opened(store) as source:
        within = None if session is None else locate(source, session).session.session_id
        _index(source, within)
        hits = source.search(query, session_id=within, limit=limit, ranked=True)
        titles = {each: title_of(source, source.session(each)) for each in {hit.session_id for hit in hits}}
        with paged(data=json):
            for hit in hits:
                snippet = hit.snippet.replace("\x02", "").replace("\x03", "")
                row = {"handle": str(hit.handle), "session": hit.session_id, "kind": hit.kind, "role": hit.role}
                at, title = source.header(hit.handle.dialog, hit.handle.seq).at, titles[hit.session_id]
                where = (
                    f"{hit.handle}  {hit.role or hit.kind}, {when(at)}, in {shorten(title, _TITLE, placeholder=' …')}"
                )
                emit(
                    json,
                    {**row, "at": at, "title": title, "snippet": snippet},
                    where,
                    f"    {' '.join(snippet.split())}",
                )
    if not hits and not json:
        say("Nothing found.")


def _index(store: Store, within: SessionId | None) -> None:
    """Bring the index up to date where this user may write."""
    lag = store.index_lag()
    if lag > _MANY:
        complain(f"Indexing {counted(lag, 'new entry')} first …")
    try:
        store.index(searchable, session_id=within)
    except StoreError as error:
        if error.reason != "read_only":
            raise
        if lag:
            missing = counted(lag, "newest entry is", "newest entries are")
            complain(f"The store may only be read: its {missing} not searched.", "yellow")
