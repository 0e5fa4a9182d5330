"""palaver search: find what was said, asked of tools and returned by them."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, BadParameter

from palaver.cli.options import JsonOption, LimitOption, OneOption, StoreOption, locate, opened
from palaver.cli.terminal import complain, emit, paged, say, when
from palaver.errors import StoreError
from palaver.ids import SessionId
from palaver.plurals import counted
from palaver.session import searchable
from palaver.store import Store
from palaver.store.text import words

_MANY = 5_000
"""Entries that are indexed in about a second."""


def run(
    query: Annotated[str, Argument(metavar="QUERY", help="Words that must all be there; no character is special.")],
    session: OneOption = None,
    limit: LimitOption = 20,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Search messages, tool arguments and tool results. `palaver show HANDLE` prints the whole entry of a hit."""
    if not words(query):
        raise BadParameter("it has no letter, digit or pictograph to search for.", param_hint="QUERY")
    with opened(store) as source:
        within = None if session is None else locate(source, session).session.session_id
        _index(source, within)
        hits = source.search(query, session_id=within, limit=limit)
        with paged(data=json):
            for hit in hits:
                snippet = hit.snippet.replace("\x02", "").replace("\x03", "")
                row = {"handle": str(hit.handle), "session": hit.session_id, "kind": hit.kind, "role": hit.role}
                at = when(source.header(hit.handle.dialog, hit.handle.seq).at)
                where = f"{hit.handle}  {hit.role or hit.kind}, {at}, in {source.session(hit.session_id).name}"
                emit(json, {**row, "snippet": snippet}, where, f"    {' '.join(snippet.split())}")
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
