"""The answers to each question of the page, in JSON values, from the same rows as `--json` of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import islice
from typing import Any

from palaver.browsing.calls import ModelCallRow, before, call_at, call_row, calls, is_recorded, saw
from palaver.browsing.composition import marks, windows
from palaver.browsing.differences import BlockRow, CallsRow, calls_row, dialogs_row, proposed_row, rebuilt
from palaver.browsing.entries import entries, length, originals
from palaver.browsing.outline import ItemRow, WordsRow, first_words, outline
from palaver.browsing.search import HitFilters, hits
from palaver.browsing.sessions import Filters, dialogs, priced, session_row, sessions
from palaver.browsing.why import in_view, why
from palaver.context import POLICIES, Meter
from palaver.errors import DISTRIBUTION, InvalidInput
from palaver.explorer.api import Answer, Endpoint, Explored, Raw, number
from palaver.ids import BlobId, SessionId
from palaver.log import Entry, Handle, Header, Span, entry_at, every_header
from palaver.messages import Role, Usage
from palaver.messages.media import sniff
from palaver.session import Dialog, Session
from palaver.session.waiting import UNDECIDED, what_for
from palaver.store.connect import find_session
from palaver.store.text import words
from palaver.store.titles import title
from palaver.tokens import counter
from palaver.tokens.pricing import cost_of
from palaver.view import View
from palaver.wire.rules import SNIFFED

_PAGE = 200
"""Sessions and labels that are asked for together, at most."""

LABELS = 100
"""Labels that the page asks for together (`labels.js`)."""

_WORDS = 400
"""Characters of a block that differs."""

_READ = 20_000
"""Characters of a text that is read; the page asks for the rest."""

_ROWS = 2_000
"""Entries in a line of an answer."""


def dialog_of(source: Explored, dialog: str) -> Dialog:
    """Return the dialog that the page names."""
    dialog_id = source.store.resolve(dialog)
    return Session.open(source.store, source.store.node(dialog_id).session_id).dialog(dialog_id)


def _session(source: Explored, reference: str) -> SessionId:
    """Return the session that an address names, as commands do: by its id, its first digits, or its name."""
    return find_session(source.store, reference).record.session_id


def _page(start: str, stop: str) -> range:
    first = number(start, "start", 0)
    last = number(stop, "stop", first + _PAGE)
    if last - first > _PAGE:
        raise InvalidInput(f"At most {_PAGE} rows are answered together.")
    return range(first, last)


# --- sessions -------------------------------------------------------------------------------------------------------------------------


def about(source: Explored) -> Answer:
    """Return which palaver this is, what a command needs to find the store, the policies, and whether the page may write."""
    return {
        "version": version(DISTRIBUTION),
        "option": source.option,
        "policies": list(POLICIES),
        "writes": source.writer is not None,
    }


def session_list(source: Explored, limit: str = "", after: str = "") -> Answer:
    """Return a page of sessions, the newest activity first."""
    most = min(number(limit, "limit", _PAGE), _PAGE)
    listed = sessions(source.store, limit=most + 1, after=SessionId(after) if after else None)
    rows = [row | _more(source, row["session"]) for row in islice(listed, most)]
    return {"rows": rows, "more": next(listed, None) is not None}


def _more(source: Explored, session: SessionId) -> dict[str, Any]:
    """Return what the list adds to the row of `palaver sessions`."""
    store = source.store
    agents = {origin.format for origin in store.sources(session) if not origin.is_export}
    compacted = sum(1 for node in store.nodes(session) for _ in store.latest_of_kind(node.dialog_id, "compaction"))
    branches = sum(node.relation != "subagent" for node in store.nodes(session))
    row = {"agent": ", ".join(sorted(agents)), "compactions": compacted, "branches": branches}
    return {**row, "seen": source.marks.get(session)}


def session_of(source: Explored, session: str) -> Answer:
    """Return a session and the tree of its dialogs."""
    record = find_session(source.store, session).record
    tree = [
        {**row, "at": row["ranges"][-1][2] - 1 if row["ranges"] else None}
        for row in dialogs(source.store, record.session_id)
    ]
    (row,) = priced(source.store, [session_row(source.store, record)])
    return {"row": row | _more(source, record.session_id), "dialogs": tree}


def waiting(source: Explored) -> Answer:
    """Return the dialogs of the newest sessions with calls that a person has to decide about."""
    store, rows = source.store, list[dict[str, Any]]()
    for record in store.sessions(limit=_PAGE):
        for node in store.nodes(record.session_id):
            last = store.last(node.dialog_id)
            calls = [call for call in last.open_calls if what_for(store, node.dialog_id, call) == UNDECIDED]
            if calls:
                place = {"session": record.session_id, "dialog": node.dialog_id, "entry": last.seq}
                rows.append({**place, "title": title(store, record), "at": record.updated_at, "calls": calls})
    return {"rows": rows}


def updated(source: Explored, session: str) -> Answer:
    """Return when a session last changed."""
    return {"updated_at": find_session(source.store, session).record.updated_at}


def whole(source: Explored, session: str) -> Answer:
    """Return the entries of a session that are missing or damaged. Reads all of it."""
    store = source.store
    nodes = store.nodes(_session(source, session))
    damaged = [str(Handle(node.dialog_id, span.start)) for node in nodes for span in store.verify(node.dialog_id)]
    return {"damaged": damaged}


def branches(source: Explored, session: str, one: str, other: str) -> Answer:
    """Return what only one of two branches has."""
    opened, store = Session.open(source.store, _session(source, session)), source.store
    row: dict[str, Any] = {
        **dialogs_row(
            opened.diff(
                opened.dialog(store.resolve(one, opened.session_id)),
                opened.dialog(store.resolve(other, opened.session_id)),
            )
        )
    }
    for name in ("one", "other"):
        said = row[name]["messages"][:_PAGE]
        row[name]["said"] = [
            {"handle": place, **label, "role": store.header(*opened.place(place)[:2]).role}
            for place, label in zip(said, first_words(opened, said), strict=True)
        ]
    return row


# --- entries --------------------------------------------------------------------------------------------------------------------------


def entry_list(source: Explored, dialog: str) -> Answer:
    """Yield how many entries there are, then the rows, many in a line."""
    opened = dialog_of(source, dialog)

    def lines() -> Iterator[Any]:
        yield {"total": length(opened)}
        rows = entries(opened)
        while part := list(islice(rows, _ROWS)):
            yield part

    return lines()


def entry_labels(source: Explored, dialog: str, start: str = "", stop: str = "") -> Answer:
    """Return the first words of entries."""
    page = _page(start, stop)
    found = dialog_of(source, dialog)
    return list(first_words(found.session, [row["handle"] for row in entries(found, page.start, page.stop)]))


def entry_read(source: Explored, dialog: str, start: str = "", stop: str = "") -> Answer:
    """Return entries as they were recorded, for the rows from `start` to `stop` (exclusive); `cut` says that a long text is only begun."""
    opened, page = dialog_of(source, dialog), _page(start, stop)
    handles = [row["handle"] for row in entries(opened, page.start, page.stop)]
    return [_begun_entry(handle, entry_at(source.store, opened.session.place(handle))) for handle in handles]


def _begun_entry(handle: str, entry: Entry) -> dict[str, Any]:
    """Return an entry as it is read: of results, which are folded, the first words."""
    folded = _folded(entry.model_dump(mode="json"))
    found = _begun_texts(folded)
    return {"handle": handle, "found": found, "cut": found != folded}


def _folded(value: Any) -> Any:  # noqa: ANN401 - JSON values
    if isinstance(value, dict):
        if value.get("type") == "tool_result" and isinstance(value["content"], str):
            return {**value, "content": value["content"][:_WORDS]}
        return {name: _folded(part) for name, part in value.items()}
    return [_folded(part) for part in value] if isinstance(value, list) else value


def _begun_texts(value: Any) -> Any:  # noqa: ANN401 - JSON values
    if isinstance(value, dict):
        return {name: _begun_texts(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_begun_texts(part) for part in value]
    return value[:_READ] if isinstance(value, str) else value


def entry_marks(source: Explored, dialog: str) -> Answer:
    """Return where to jump to, and what people marked."""
    opened = dialog_of(source, dialog)
    labels = {str(place): label for place, label in opened.session.labels.items()}
    return {**marks(opened), "labels": labels, "pins": [str(place) for place in opened.marks.pins]}


def entry(source: Explored, handle: str) -> Answer:
    """Return the original that a handle names."""
    return originals(source.store, handle)[0].to_dict()


def run_of(source: Explored, handle: str, length: str) -> Answer:
    """Return the first entries of a run and their first words, what people said before the others."""
    store, (first, *_) = source.store, originals(source.store, handle)
    dialog, start = first.handle.dialog, first.handle.seq
    headers = list(every_header(store, Span(dialog, start, start + number(length, "length"))))
    headers.sort(key=_prompts_first)
    shown = headers[:_PAGE]
    labels = first_words(first.session, [str(Handle(dialog, header.seq)) for header in shown])
    rows = [
        {
            "handle": f"{dialog}:{header.seq}",
            "kind": header.kind,
            "role": header.role,
            "speaker": header.speaker,
            **label,
        }
        for header, label in zip(shown, labels, strict=True)
    ]
    return {"total": len(headers), "rows": rows}


def _prompts_first(header: Header) -> int:
    """Return what orders the entries of a run: what people said, other messages, all else."""
    asked = header.role == Role.USER and header.speaker in {"", "human"}
    return 0 if asked else 1 if header.kind == "message" else 2


def media(source: Explored, handle: str, digest: str) -> Answer:
    """Return an image of the session that a handle is of."""
    session = originals(source.store, handle)[0].session
    data = source.store.blob(session.session_id, BlobId(digest))
    kind = sniff(data, "image")
    if kind not in SNIFFED:
        raise InvalidInput("Only images are shown.")
    return Raw(data, kind)


# --- calls ----------------------------------------------------------------------------------------------------------------------------


def call_list(source: Explored, dialog: str) -> Answer:
    """Return the calls of a dialog, in dollars only what the provider reported."""
    return [dict(call_row(call, priced=False)) for call in source.calls(dialog_of(source, dialog))]


def call(source: Explored, dialog: str, call: str) -> Answer:
    """Return what a model saw at a call, message by message, with the first words of the first rows."""
    found = dialog_of(source, dialog)
    seen = seen_at(source, found, number(call, "call"))
    return {**seen, "labels": labelled(found, seen["items"][:LABELS])}


def seen_at(source: Explored, dialog: Dialog, call: int) -> dict[str, Any]:
    """Return what a model saw at a call, message by message."""
    known = source.calls(dialog)
    seen = call_at(known, call)
    made = rebuilt(dialog, seen) if is_recorded(seen) else None
    view = before(dialog, seen) if made is None or made.request.view is None else made.request.view
    return {
        **shown(view, call_row(seen)),
        "of": len(known),
        "recorded": made is not None,
        "proved": made and made.proved,
        "report": [] if made is None else [str(change) for change in made.request.report],
    }


def shown(view: View, row: ModelCallRow) -> dict[str, Any]:
    """Return what a view shows at a call, message by message."""
    meter = Meter(counter(row["model"]))
    size = meter.estimate(view)
    return {
        "row": row,
        "tokens": size.total,
        "exact": size.exact,
        "tools": [{"name": tool.name, "tokens": meter.tools([tool])} for tool in view.tools],
        "items": list(outline(view)),
    }


def call_labels(source: Explored, dialog: str, call: str, start: str = "", stop: str = "") -> Answer:
    """Return the first words of what a call saw, for the rows from `start` to `stop` (exclusive)."""
    found = dialog_of(source, dialog)
    one, page = call_at(source.calls(found), number(call, "call")), _page(start, stop)
    return labelled(found, islice(outline(saw(found, one)), page.start, page.stop))


def labelled(dialog: Dialog, rows: Iterable[ItemRow]) -> list[WordsRow]:
    """Return the first words of what a call saw."""
    return [
        {"label": row.get("text", "")[:_PAGE], "tools": [], "error": False}
        if "text" in row or row["what"] == "omission"
        else next(first_words(dialog.session, [str(row["handle"])]))
        for row in rows
    ]


def wire(source: Explored, dialog: str, call: str) -> Answer:
    """Return the request of a call: the bytes that were sent, or as it is compiled today; where it was not recorded, for OpenAI Chat."""
    found = dialog_of(source, dialog)
    made = rebuilt(found, call_at(source.calls(found), number(call, "call")))
    return Raw(made.request.data, "application/json")


def comparison(source: Explored, dialog: str, a: str, b: str) -> Answer:
    """Return what the second of two calls saw differently, what its provider reported, and what reading anew cost more."""
    opened = dialog_of(source, dialog)
    known = source.calls(opened)
    first, second = (call_at(known, number(word, name)) for word, name in ((a, "a"), (b, "b")))
    return {**_shortened(opened, calls_row(opened, first, second)), "price": _anew(call_row(second))}


def _shortened(dialog: Dialog, row: CallsRow) -> dict[str, Any]:
    """Return a difference with who spoke, and the first words of what was recorded, whose place leads to the whole; two views may differ in a hundred megabytes."""

    def block(difference: BlockRow, *, whole: bool = False) -> dict[str, Any]:
        place = difference["place"] and dialog.session.place(difference["place"])
        said = dialog.store.header(place.dialog, place.seq) if place else None
        who = {"role": said.role if said else "", "speaker": said.speaker if said else ""}
        before, after = difference["before"], difference["after"]
        if difference["place"] is not None:
            before, after = _begun(before), after if whole else _begun(after)
        return {**difference, **who, "before": before, "after": after}

    broken, instead = row["prefix"]["broken"], row["prefix"]["instead"]
    prefix = {**row["prefix"], "broken": _begun(broken), "instead": _begun(instead)}
    blocks = {
        "entered": [block(difference) for difference in row["entered"]],
        "left": [block(difference) for difference in row["left"]],
    }
    return {
        **row,
        **blocks,
        "changed": [block(difference, whole=True) for difference in row["changed"]],
        "prefix": prefix,
    }


def _begun(text: str | None) -> str | None:
    return text if text is None or len(text) <= _WORDS else f"{text[:_WORDS]}…"


def _anew(row: ModelCallRow) -> dict[str, Any]:
    """Return how many tokens a call read, how many of them from the provider's cache, and what the others cost more."""
    anew = max(row["read"] - row["cached"], 0)
    usage = (Usage(input_tokens=anew), Usage(input_tokens=anew, cache_read_tokens=anew))
    dear, cheap = (cost_of(used, row["model"], row["at"]).cost or 0.0 for used in usage)
    return {"read": row["read"], "cached": row["cached"], "dollars": max(dear - cheap, 0.0)}


def proposal(dialog: Dialog, call: int | None, policy: str, budget: int | None) -> dict[str, Any]:
    """Return what a policy would have made of a call, or would make of the next one, and what differs."""
    past = None if call is None else call_at(calls(dialog), call)
    made, row = proposed_row(dialog, past, policy, budget)
    return {
        "tokens": made.after.total,
        "before": made.before.total,
        "notes": list(made.plan.notes),
        "difference": _shortened(dialog, row),
    }


def composition(source: Explored, dialog: str) -> Answer:
    """Return what filled the window at each call, and the calls before which something was compacted."""
    opened = dialog_of(source, dialog)
    listed = [call_row(call) for call in source.calls(opened)]
    rows = list(windows(opened, listed))
    compactions = [row["call"] for row in rows if row["compacted"]]
    return {"calls": rows, "compactions": compactions, "recorded": all(row["recorded"] for row in listed)}


# --- search ---------------------------------------------------------------------------------------------------------------------------


def search(  # noqa: PLR0913, PLR0917 - the words of the address
    source: Explored,
    q: str,
    in_: str = "",
    limit: str = "",
    since: str = "",
    until: str = "",
    role: str = "",
    tool: str = "",
    agent: str = "",
    folder: str = "",
    model: str = "",
) -> Answer:
    """Return the best hits, and how many entries are not indexed yet."""
    filters = HitFilters(Filters(since, until, tool, model, folder), role, agent)
    if not words(q):
        raise InvalidInput("It has no letter, digit or pictograph to search for.")
    within = _session(source, in_) if in_ else None
    rows = [
        {**row, "dialog": source.store.resolve(Handle.parse(row["handle"]).dialog)}
        for row in hits(source.store, q, within, min(number(limit, "limit", 50), _PAGE), filters)
    ]
    return {"hits": rows, "lag": source.store.index_lag()}


def in_view_at(source: Explored, dialog: str, handle: str) -> Answer:
    """Return the calls in whose view an entry was, and when and why it left."""
    found = dialog_of(source, dialog)
    row = why(found, found.session.place(handle), source.calls(found))
    return {"calls": in_view(row), "why": row}


ROUTES: tuple[Endpoint, ...] = (
    Endpoint("/api/about", about),
    Endpoint("/api/sessions", session_list),
    Endpoint("/api/sessions/{session}", session_of),
    Endpoint("/api/sessions/{session}/whole", whole),
    Endpoint("/api/sessions/{session}/updated", updated),
    Endpoint("/api/sessions/{session}/branches", branches),
    Endpoint("/api/waiting", waiting),
    Endpoint("/api/dialogs/{dialog}/entries", entry_list),
    Endpoint("/api/dialogs/{dialog}/labels", entry_labels),
    Endpoint("/api/dialogs/{dialog}/read", entry_read),
    Endpoint("/api/dialogs/{dialog}/marks", entry_marks),
    Endpoint("/api/dialogs/{dialog}/calls", call_list),
    Endpoint("/api/dialogs/{dialog}/calls/{call}", call),
    Endpoint("/api/dialogs/{dialog}/calls/{call}/labels", call_labels),
    Endpoint("/api/dialogs/{dialog}/calls/{call}/request", wire),
    Endpoint("/api/dialogs/{dialog}/compare", comparison),
    Endpoint("/api/dialogs/{dialog}/composition", composition),
    Endpoint("/api/dialogs/{dialog}/seen", in_view_at),
    Endpoint("/api/entries/{handle}", entry),
    Endpoint("/api/entries/{handle}/run/{length}", run_of),
    Endpoint("/api/entries/{handle}/media/{digest}", media),
    Endpoint("/api/search", search),
)
"""All that the page asks."""
