"""palaver search: find what was said, asked of tools and given back by them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from palaver.cli.options import JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, output, visible
from palaver.errors import StoreReadOnly
from palaver.ids import SessionId
from palaver.plurals import counted
from palaver.session import Session, searchable
from palaver.store import Store
from palaver.store.text import words


def run(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="Words that must all be there. No character has a special meaning.")
    ],
    session: Annotated[str | None, typer.Option(metavar="SESSION", help="Only in this session.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, best first.")] = 20,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Search messages, tool arguments and tool results. Each hit has the handle that `recall` takes."""
    if not words(query):
        raise typer.BadParameter(
            "it has no letter, digit or pictograph: nothing else is searched for.", param_hint="QUERY"
        )
    with opened(store) as source:
        within = None if session is None else Session.open(session, source).session_id
        _index(source, within)
        hits = source.search(query, session_id=within, limit=limit)
        for hit in hits:
            if json:
                snippet = hit.snippet.replace("\x02", "").replace("\x03", "")
                row = {"handle": str(hit.handle), "session": hit.session_id, "kind": hit.kind, "role": hit.role}
                print_json({**row, "snippet": snippet, "score": hit.score})
            else:
                output().print(Text(f"{hit.handle}  {hit.role or hit.kind:<10} "), _marked(hit.snippet), sep="")
        if not hits and not json:
            output().print("Nothing found.")
    return Exit.OK


def _index(store: Store, within: SessionId | None) -> None:
    """Bring the index up to date, with one session or with all, where this user may write."""
    try:
        store.index(searchable, session_id=within)
    except StoreReadOnly:
        if lag := store.index_lag():
            errors().print(
                f"The store may only be read: its {counted(lag, 'newest entry is', 'newest entries are')} not searched.",
                style="yellow",
            )


def _marked(snippet: str) -> Text:
    text = Text()
    for number, part in enumerate(" ".join(snippet.split()).replace("\x03", "\x02").split("\x02")):
        text.append(visible(part), style="bold" if number % 2 else "")
    return text
