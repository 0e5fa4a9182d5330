"""palaver sessions: what the store holds."""

from __future__ import annotations

import json as codec
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import PurePath
from typing import Annotated, Any

from typer import Option

from palaver.cli.options import JsonOption, LimitOption, StoreOption, SubjectOption, opened
from palaver.cli.terminal import paged, print_rows, say, when
from palaver.ids import DialogId
from palaver.log import lineage
from palaver.store import SessionRecord, Store
from palaver.store.protocol import USAGE

_LOOKED_AT = 64
"""Entries in which the first words of a person are looked for."""

_TITLE = 200

_COLUMNS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "session": lambda row: row["session"][:12],
    "active": lambda row: when(row["updated_at"]),
    "messages": lambda row: f"{row['messages']:,}",
    "tokens": lambda row: f"{row['tokens']:,}" if row["tokens"] else "",
    "cost": lambda row: f"{'~' if row['estimated'] else ''}${row['dollars']:.2f}" if row["dollars"] else "",
    "title": lambda row: row["title"],
    "folder": lambda row: "/".join(PurePath(row["workdir"]).parts[-2:]),
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
        records = source.sessions(subject=subject, trashed=trash, limit=limit + 1)
        rows = [_row(source, record) for record in islice(records, limit)]
        more = next(records, None) is not None
    with paged(data=json):
        if rows:
            print_rows(json, rows, _COLUMNS, cut=("title", "folder"))
        elif not json:
            say("No sessions. `palaver import` imports what other agents left.")
        if more and not json:
            say("There are more: --limit N lists them.")


def _row(store: Store, record: SessionRecord) -> dict[str, Any]:
    nodes, used = store.nodes(record.session_id), record.metadata.get(USAGE)
    used = used if isinstance(used, Mapping) else {}
    return {
        "session": record.session_id,
        "name": record.name,
        "title": title_of(store, record),
        "subject": record.subject,
        "workdir": record.workdir,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "trashed_at": record.trashed_at,
        "dialogs": len(nodes),
        "messages": sum(store.last(node.dialog_id).number for node in nodes),
        "tokens": used.get("tokens") or None,
        "dollars": used.get("cost") or None,
        "estimated": bool(used.get("estimated")),
    }


def title_of(store: Store, record: SessionRecord) -> str:
    """Return a session's own name; of one that is named after its file, what a person said first."""
    files = {PurePath(source.path).name.partition(".")[0] for source in store.sources(record.session_id)}
    if record.root is None or record.name not in files:
        return record.name
    return next(_said(store, record.root), record.name)


def _said(store: Store, dialog_id: DialogId) -> Iterator[str]:
    """Yield what people said first in a dialog."""
    first = lineage(store.node(dialog_id), store.last(dialog_id).seq + 1)[0]
    for header in store.headers(first.dialog, first.start, min(first.stop, first.start + _LOOKED_AT)):
        if header.role == "user" and header.speaker in {"", "human"}:
            said = (
                codec.loads(store.body(first.dialog, header.seq)).get("message") or {}
            )  # decoding takes 40 ms to begin
            blocks = (one["content"] for one in said.get("contents", ()) if one.get("type") == "text")
            if text := " ".join(" ".join(blocks).split()):
                yield text[:_TITLE]
