"""Sessions: the rows of a list, and the tree of the dialogs of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypedDict

from palaver.ids import DialogId, SessionId
from palaver.log import Node, count_messages
from palaver.store import SessionRecord, Store
from palaver.store.protocol import USAGE
from palaver.store.titles import title


class StoredSessionRow(TypedDict):
    """A session: its record, how large it is, and what was imported of its tokens and dollars. Times are seconds since 1970-01-01 UTC."""

    session: SessionId
    name: str
    title: str
    subject: str
    workdir: str
    created_at: float
    updated_at: float
    trashed_at: float | None
    dialogs: int
    messages: int
    tokens: int | None
    dollars: float | None
    estimated: bool


def sessions(
    store: Store,
    *,
    subject: str | None = None,
    trashed: bool = False,
    limit: int | None = None,
    after: SessionId | None = None,
) -> Iterator[StoredSessionRow]:
    """Yield the sessions of a store, the newest activity first.

    Args:
        store: The store.
        subject: Only sessions about exactly this subject.
        trashed: Whether to list the trash instead.
        limit: At most so many.
        after: The last session of the page before.
    """
    last = None if after is None else store.session(after)
    for record in store.sessions(subject=subject, trashed=trashed, limit=limit, after=last):
        yield session_row(store, record)


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
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "trashed_at": record.trashed_at,
        "dialogs": len(nodes),
        "messages": count_messages(store, nodes),
        "tokens": used.get("tokens") or None,
        "dollars": used.get("cost") or None,
        "estimated": bool(used.get("estimated")),
    }


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
