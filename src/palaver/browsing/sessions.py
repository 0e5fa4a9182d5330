"""Sessions: the rows of a list, and the tree of the dialogs of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice
from typing import TypedDict

from palaver.errors import InvalidInput, StoreError
from palaver.ids import DialogId, SessionId
from palaver.log import Node, count_messages, lineage
from palaver.store import SessionRecord, Store
from palaver.store.protocol import ARCHIVE, USAGE
from palaver.store.titles import title

_WITH_MODEL = ("model_change", "invocation")
"""Kinds of entries that say which model is asked."""


@dataclass(frozen=True)
class Filters:
    """Which sessions, calls and entries count; an empty text is no filter. Days are those of UTC, both included.

    Attributes:
        since: The first day, such as 2026-11-29.
        until: The last day.
        tool: A part of the name of the program that recorded the session.
        model: A part of the model's name.
        folder: A part of the session's folder.
    """

    since: str = ""
    until: str = ""
    tool: str = ""
    model: str = ""
    folder: str = ""

    def __post_init__(self) -> None:
        """Require days.

        Raises:
            InvalidInput: A text is no day.
        """
        for name, text in (("since", self.since), ("until", self.until)):
            try:
                known = not text or date.fromisoformat(text).isoformat() == text
            except ValueError:
                known = False
            if not known:
                raise InvalidInput(f"{name} is {text!r}, not a day such as 2026-11-29.")

    def fits(self, record: SessionRecord, tool: str) -> bool:
        """Return whether a session counts."""
        return is_part(self.folder, record.workdir) and is_part(self.tool, tool)

    def fits_row(self, row: StoredSessionRow) -> bool:
        """Return whether a session as a row counts."""
        return is_part(self.tool, row["tool"]) and self.has(day(row["updated_at"]), row["model"])

    def has(self, at: str, model: str) -> bool:
        """Return whether a call of a day counts."""
        return self.on(at) and is_part(self.model, model)

    def on(self, at: str) -> bool:
        """Return whether what happened on a day counts."""
        return self.since <= at and (not self.until or at <= self.until)


def is_part(wanted: str, text: str) -> bool:
    """Return whether a text contains what is wanted, ignoring case."""
    return wanted.casefold() in text.casefold()


NO_FILTERS = Filters()
"""Everything counts."""


OWN = "palaver"
"""The tool of a session that no other program recorded."""


def tool_of(store: Store, record: SessionRecord) -> str:
    """Return the program that recorded a session; empty for one in an archive, which alone says so."""
    if ARCHIVE in record.metadata:
        return ""
    return next((source.format for source in store.sources(record.session_id) if not source.is_export), OWN)


def day(at: float) -> str:
    """Return the day of a time, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


class StoredSessionRow(TypedDict):
    """A session: its record, how large it is, the program that recorded it, the newest model, and its tokens and dollars as imported.

    Of one in an archive the store has the record alone: it has no messages, tool or model. Times are seconds since 1970-01-01 UTC.
    """

    session: SessionId
    name: str
    title: str
    subject: str
    workdir: str
    tool: str
    model: str
    created_at: float
    updated_at: float
    trashed_at: float | None
    archived: bool
    dialogs: int
    messages: int
    tokens: int | None
    dollars: float | None
    estimated: bool


def sessions(  # noqa: PLR0913 - filters, by keyword
    store: Store,
    *,
    subject: str | None = None,
    trashed: bool = False,
    archived: bool = False,
    limit: int | None = None,
    after: SessionId | None = None,
    filters: Filters = NO_FILTERS,
) -> Iterator[StoredSessionRow]:
    """Yield the sessions of a store, the newest activity first.

    Args:
        store: The store.
        subject: Only sessions about exactly this subject.
        trashed: Whether to list the trash instead.
        archived: Whether to list archived sessions alone.
        limit: At most so many.
        after: The last session of the page before.
        filters: Which sessions; a day is that of the newest activity, and the model the newest.
    """
    last = None if after is None else store.session(after)
    page = limit if filters == NO_FILTERS else None
    records = store.sessions(subject=subject, trashed=trashed, archived=archived, limit=page, after=last)
    rows = (session_row(store, record) for record in records if is_part(filters.folder, record.workdir))
    yield from islice((row for row in rows if filters.fits_row(row)), limit)


def session_row(store: Store, record: SessionRecord) -> StoredSessionRow:
    """Return one session."""
    nodes, used = store.nodes(record.session_id), record.metadata.get(USAGE)
    used = used if isinstance(used, Mapping) else {}
    return {
        "session": record.session_id,
        "name": record.name,
        "title": title(store, record),
        "subject": record.subject,
        "workdir": record.workdir,
        "tool": tool_of(store, record),
        "model": _model(store, record),
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "trashed_at": record.trashed_at,
        "archived": ARCHIVE in record.metadata,
        "dialogs": len(nodes),
        "messages": count_messages(store, nodes),
        "tokens": used.get("tokens") or None,
        "dollars": used.get("cost") or None,
        "estimated": bool(used.get("estimated")),
    }


def archived_count(store: Store, subject: str | None = None) -> int:
    """Return how many sessions are in an archive: what was said in them cannot be searched or added up until they are brought back."""
    return sum(1 for _ in store.sessions(subject=subject, archived=True))


def priced(store: Store, rows: Iterable[StoredSessionRow]) -> list[StoredSessionRow]:
    """Return sessions with the tokens and dollars of those, too, that no other program recorded; these are computed, and kept for the next time."""
    listed = list(rows)
    own = [row for row in listed if row["tool"] == OWN and row["tokens"] is None]
    if own:
        from palaver.browsing.costs import report  # noqa: PLC0415 - a tenth of a second that imported sessions do not need
        from palaver.browsing.spent import Costs  # noqa: PLC0415 - as above

        costs = Costs(store)
        for row in own:
            total = report(costs, [store.session(row["session"])], "session").total
            row["tokens"] = total["read"] + total["written"] or None
            row["dollars"], row["estimated"] = total["dollars"], total["estimated"] > 0
        costs.save()
    return listed


def _model(store: Store, record: SessionRecord) -> str:
    """Return the model of a session's newest call, as far as its main dialog says; read as JSON, as the codec takes 40 ms to load."""
    if record.root is None:
        return ""
    with suppress(StoreError, ValueError, LookupError):
        for span in reversed(lineage(store.node(record.root), store.last(record.root).seq + 1)):
            for header in store.latest_of_kind(span.dialog, _WITH_MODEL, span.start, span.stop):
                if model := json.loads(store.body(span.dialog, header.seq)).get("model"):
                    return str(model)
    return ""


# --- dialogs --------------------------------------------------------------------------------------------------------------------------


class DialogRow(TypedDict):
    """A dialog of a session. `ranges` are the entries that it shares with its ancestors, each `[dialog, start, stop]`; its own follow them."""

    dialog: DialogId
    parent: DialogId | None
    owner: str
    relation: str
    main: bool
    entries: int
    messages: int
    ranges: list[tuple[DialogId, int, int]]


def dialogs(store: Store, session_id: SessionId) -> Iterator[DialogRow]:
    """Yield the dialogs of a session, each before those forked from it, which follow it directly. Reads one header of each."""
    nodes, main = store.nodes(session_id), store.session(session_id).root
    known = {node.dialog_id for node in nodes}
    # a parent may be erased: its children begin trees of their own
    waiting = [node for node in reversed(nodes) if node.parent_id not in known]
    while waiting:
        node = waiting.pop()
        yield _dialog_row(store, node, main=node.dialog_id == main)
        waiting += [child for child in reversed(nodes) if child.parent_id == node.dialog_id]


def _dialog_row(store: Store, node: Node, *, main: bool) -> DialogRow:
    last = store.last(node.dialog_id)
    return {
        "dialog": node.dialog_id,
        "parent": node.parent_id,
        "owner": node.owner,
        "relation": node.relation,
        "main": main,
        "entries": last.seq + 1,
        "messages": node.inherited + last.number,
        "ranges": [(span.dialog, span.start, span.stop) for span in node.ranges],
    }
