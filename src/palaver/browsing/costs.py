"""Costs: what sessions used and cost, added up by day, model, tool, folder or session; what broke the cache, and what compactions saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias, TypedDict

from palaver.browsing.sessions import NO_FILTERS, Filters, tool_of
from palaver.browsing.spent import FIGURES, Break, Costs, Line, Saving
from palaver.errors import StoreDamaged, StoreError
from palaver.ids import DialogId, SessionId
from palaver.log import Handle
from palaver.store import SessionRecord, Store
from palaver.store.protocol import ARCHIVE
from palaver.store.titles import title

By: TypeAlias = Literal["day", "model", "tool", "folder", "session"]
"""What costs are added up by. A tool is the program that recorded the session; days are those of UTC."""


class BreaksRow(TypedDict):
    """The calls that broke the cache for one cause: the tokens that they read anew, and what those cost more than read from the cache."""

    cause: str
    calls: int
    tokens: int
    dollars: float


class CompactionsRow(TypedDict):
    """Compactions: what their summaries cost, and what the calls after them did not read again. The call after one is in `breaks`."""

    count: int
    dollars: float
    tokens: int
    calls: int
    saved: float


class CostRow(TypedDict):
    """What the calls of a day, model, tool, folder or session used: tokens read, and of these read from the cache and stored in it; tokens written."""

    key: str
    title: str
    sessions: int
    calls: int
    read: int
    cached: int
    stored: int
    written: int
    dollars: float | None
    estimated: float
    breaks: list[BreaksRow]
    compactions: CompactionsRow


class BreakRow(TypedDict):
    """A call that broke the cache (`Break`)."""

    session: str
    entry: str
    at: float
    model: str
    cause: str
    place: str
    kept: int
    tokens: int
    dollars: float


class CostReport(NamedTuple):
    """What sessions cost.

    Attributes:
        rows: What is added up by, days in order and the dearest first otherwise.
        total: All of them.
        breaks: The calls that broke the cache, the dearest first.
        unread: The number of sessions that cannot be read, as their key is missing or an entry is damaged.
        archived: The number of sessions that count for nothing, whatever the filters, as they are in an archive.
    """

    rows: list[CostRow]
    total: CostRow
    breaks: list[BreakRow]
    unread: int
    archived: int


def report(costs: Costs, records: Iterable[SessionRecord], by: By, filters: Filters = NO_FILTERS) -> CostReport:
    """Return what sessions cost.

    Args:
        costs: What the dialogs of their store cost.
        records: The sessions.
        by: What is added up by.
        filters: Which of them, and of their calls, count.
    """
    store = costs.store
    groups, total, unread, archived = dict[str, _Group](), _Group(), 0, 0
    breaks: list[BreakRow] = []
    for record in records:
        if ARCHIVE in record.metadata:
            archived += 1
            continue
        tool = tool_of(store, record)
        if not filters.fits(record, tool):
            continue
        made = _spent_in(store, record, costs)
        unread += made is None
        for dialog_id, (at, model, what) in made or ():
            if filters.has(at, model):
                keys = {"day": at, "model": model, "tool": tool, "folder": record.workdir}
                for group in (groups.setdefault(keys.get(by, record.session_id), _Group()), total):
                    group.add(record, what)
                if isinstance(what, Break):
                    breaks.append(_break(record.session_id, dialog_id, what))
    rows = [group.row(key, store if by == "session" else None) for key, group in groups.items()]
    rows.sort(key=(lambda row: row["key"]) if by == "day" else _dearest)
    breaks.sort(key=lambda row: (-row["dollars"], -row["tokens"]))
    return CostReport(rows, total.row(), breaks, unread, archived)


def _spent_in(store: Store, record: SessionRecord, costs: Costs) -> list[tuple[DialogId, Line]] | None:
    """Return what the dialogs of a session cost; None where one cannot be read."""
    try:
        return [(node.dialog_id, line) for node in store.nodes(record.session_id) for line in costs.of(node).lines()]
    except StoreError as error:
        if not (isinstance(error, StoreDamaged) or error.reason == "no_key"):
            raise
        return None


def _break(session_id: SessionId, dialog_id: DialogId, broken: Break) -> BreakRow:
    return {
        "session": session_id,
        "entry": str(Handle(dialog_id, broken.seq)),
        "at": broken.at,
        "model": broken.model,
        "cause": broken.cause,
        "place": broken.place,
        "kept": broken.kept,
        "tokens": broken.tokens,
        "dollars": broken.dollars,
    }


def _dearest(row: CostRow) -> tuple[float, int]:
    return -(row["dollars"] or 0), -row["read"]


class _Group:
    """What is added up for one row."""

    def __init__(self) -> None:
        self._sessions: dict[SessionId, SessionRecord] = {}
        self._figures = dict.fromkeys(FIGURES, 0.0)
        self._breaks: dict[str, BreaksRow] = {}
        self._compactions: CompactionsRow = {"count": 0, "dollars": 0.0, "tokens": 0, "calls": 0, "saved": 0.0}

    def add(self, record: SessionRecord, what: Mapping[str, float] | Break | Saving) -> None:
        self._sessions[record.session_id] = record
        if isinstance(what, Break):
            row = self._breaks.setdefault(what.cause, {"cause": what.cause, "calls": 0, "tokens": 0, "dollars": 0.0})
            row["calls"] += 1
            row["tokens"] += what.tokens
            row["dollars"] += what.dollars
        elif isinstance(what, Saving):
            self._compactions["count"] += 1
            self._compactions["tokens"] += what.tokens
            self._compactions["calls"] += what.calls
            self._compactions["saved"] += what.saved
        else:
            for name, figure in what.items():
                self._figures[name] += figure
            self._compactions["dollars"] += what["summaries"]

    def row(self, key: str = "", titled: Store | None = None) -> CostRow:
        figures = self._figures
        record = next(iter(self._sessions.values()), None)
        return {
            "key": key,
            "title": title(titled, record) if titled is not None and record is not None else "",
            "sessions": len(self._sessions),
            "calls": int(figures["calls"]),
            "read": int(figures["read"]),
            "cached": int(figures["cached"]),
            "stored": int(figures["stored"]),
            "written": int(figures["written"]),
            "dollars": figures["dollars"] or None,
            "estimated": figures["estimated"],
            "breaks": sorted(self._breaks.values(), key=lambda row: -row["tokens"]),
            "compactions": self._compactions,
        }
