"""Why: when a model saw an entry, when it left the view and by what, what still says it, and what the model did after."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, TypedDict

from palaver.browsing.calls import Calls, saw
from palaver.browsing.composition import headers_of
from palaver.browsing.entries import text_of
from palaver.errors import NotFound
from palaver.log import Handle, Header, MessageEntry, entry_at
from palaver.log.headers import SAID
from palaver.messages import ToolCallContent, words_of
from palaver.session import Dialog
from palaver.view import View, fold

_CHANGES = frozenset({"compaction", "context_edit", "instructions", "quarantine"})
"""Kinds of entries that change what is shown of earlier ones."""

_SHOWN: tuple[Literal["shown", "reason", "by", "still"], ...] = ("shown", "reason", "by", "still")

_NEXT = 3
"""Responses that are listed."""


class StillRow(TypedDict):
    """A record or summary in the view that was made from an entry; `how` it says it: `word for word`, `by handle`, or `made from it`."""

    what: str
    how: str


class ShownRow(TypedDict):
    """What a view shows of an entry: `whole`, `in another form`, `in part` or `no`; why not whole, and the policy that decided; what else says it."""

    shown: str
    reason: str
    by: str
    still: list[StillRow]


class StepRow(ShownRow):
    """What views showed of an entry from one change to the next.

    Attributes:
        since: The entry that changed it; that itself at first.
        kind: The kind of that entry.
        at: When, in seconds since 1970-01-01 UTC.
        calls: The first and the last call that saw it so; None where there was none.
    """

    since: str
    kind: str
    at: float
    calls: tuple[int, int] | None


class ActionRow(TypedDict):
    """A response: the entry, when, and the tools that it calls."""

    handle: str
    at: float
    calls: list[str]


class WhyRow(TypedDict):
    """The life of an entry or block in the views of a dialog.

    Attributes:
        handle: The entry or block.
        kind: The entry's kind.
        role: The role of its message, or empty.
        at: When it was recorded.
        steps: What views showed of it, from change to change; the last is how it is now.
        left: The entry with which it was not shown whole any more; empty if it is.
        after: The first responses after that, or after the entry itself.
        named: Later entries that name its handle, such as a call that recalls it.
    """

    handle: str
    kind: str
    role: str
    at: float
    steps: list[StepRow]
    left: str
    after: list[ActionRow]
    named: list[str]


def why(dialog: Dialog, handle: Handle, known: Calls) -> WhyRow:
    """Return when a model saw an entry or block, when it left, by what, what still says it, and what the model did after.

    It reads the log, views and omissions; what a record says is compared byte by byte. What a view shows of an earlier entry changes only at
    compactions, edits, new instructions and quarantines, so one view between two of them is enough.

    Raises:
        NotFound: The entry is not in this dialog.
    """
    places = list(headers_of(dialog))
    order = {place: index for index, (place, _) in enumerate(places)}
    if (own := order.get(handle._replace(block=None))) is None:
        raise NotFound(str(handle), what="entry", hint="It is on another branch; name that dialog's session or handle.")
    starts = [index for index, (_, header) in enumerate(places) if header.kind == "invocation"]
    starts = starts or [order[call.handle] for call in known]
    changes = [own, *(index for index in range(own + 1, len(places)) if places[index][1].kind in _CHANGES)]
    steps: list[StepRow] = []
    for begin, end in zip(changes, [*changes[1:], len(places)], strict=True):
        first, stop = bisect_left(starts, begin + 1), bisect_left(starts, end)
        place, header = places[begin]
        last = places[end - 1][0]
        view = saw(dialog, known[first]) if first < stop else fold(dialog.store, last.dialog, last.seq)
        shown = _shown(view, handle, dialog)
        seen = (first + 1, stop) if first < stop else None
        before = steps[-1] if steps else None
        if before is None or any(before[name] != shown[name] for name in _SHOWN):
            steps.append({**shown, "since": str(place), "kind": header.kind, "at": header.at, "calls": seen})
        elif seen is not None:
            before["calls"] = (seen if before["calls"] is None else before["calls"])[0], stop
    gone = next((step["since"] for step in steps[1:] if step["shown"] != "whole"), "")
    left = own if not gone else next(index for index in changes if str(places[index][0]) == gone)
    header = places[own][1]
    return {
        "handle": str(handle),
        "kind": header.kind,
        "role": header.role,
        "at": header.at,
        "steps": steps,
        "left": gone,
        "after": list(_actions(dialog, places[left + 1 :])),
        "named": list(_named(dialog, handle, places[own + 1 :])),
    }


def in_view(row: WhyRow) -> list[tuple[int, int]]:
    """Return the calls in whose view an entry was, in any form, as runs of numbers, both ends included."""
    runs: list[tuple[int, int]] = []
    for calls in (step["calls"] for step in row["steps"] if step["shown"] != "no"):
        if calls and runs and runs[-1][1] + 1 == calls[0]:
            runs[-1] = (runs[-1][0], calls[1])
        elif calls:
            runs.append(calls)
    return runs


def _shown(view: View, handle: Handle, dialog: Dialog) -> ShownRow:
    entry = handle._replace(block=None)
    exchanges = (view.exchanges[index] for index in view.showing(handle))
    shown = (*view.system, *(block for exchange in exchanges for block in exchange.blocks()))
    blocks = [block for block in shown if block.origin is not None and _part(block.origin, handle)]
    changed = next((block.reason for block in blocks if block.reason is not None), None)
    parts = (out for out in view.omissions if out.handle is not None and _part(out.handle, handle))
    gone = view.omission(handle) or next(parts, None)
    derived = (block for exchange in view.exchanges if exchange.derived for block in exchange.blocks())
    still: list[StillRow] = [
        {"what": block.derived, "how": _how(dialog, entry, words_of(block.content))}
        for block in derived
        if any(entry in run.span for run in block.sources)
    ]
    if blocks and changed is not None:
        return {
            "shown": "in another form",
            "reason": changed.value,
            "by": ", ".join(view.policies) or "palaver",
            "still": still,
        }
    how = "no" if not blocks else "whole" if gone is None else "in part"
    reason, by = ("", "") if gone is None else (gone.reason.value, gone.by)
    return {"shown": how, "reason": reason, "by": by, "still": still}


def _part(place: Handle, handle: Handle) -> bool:
    """Return whether a place is an entry or block, or part of it."""
    return place[:2] == handle[:2] and handle.block in {None, place.block}


def _how(dialog: Dialog, handle: Handle, text: str) -> str:
    entry = entry_at(dialog.store, handle)
    words = text_of(entry) if isinstance(entry, MessageEntry) else ""
    if words.strip() and words in text:
        return "word for word"
    return "by handle" if _name(handle).search(text.encode(errors="replace")) else "made from it"


def _name(entry: Handle) -> re.Pattern[bytes]:
    """Return what matches the handle of an entry, and not that of one whose number begins with the same digits."""
    return re.compile(re.escape(str(entry)).encode() + rb"(?!\d)")


def _actions(dialog: Dialog, places: Sequence[tuple[Handle, Header]]) -> Iterator[ActionRow]:
    """Yield the first responses; later entries of one join it."""
    row: ActionRow | None = None
    count = 0
    for place, header in places:
        if header.kind != "message" or header.role not in SAID:
            continue
        if header.begins:
            if row is not None:
                yield row
            if (count := count + 1) > _NEXT:
                return
            row = {"handle": str(place), "at": header.at, "calls": []}
        entry = entry_at(dialog.store, place) if "c" in header.blocks else None
        if row is not None and isinstance(entry, MessageEntry):
            row["calls"] += [block.name for block in entry.message.contents if isinstance(block, ToolCallContent)]
    if row is not None:
        yield row


def _named(dialog: Dialog, handle: Handle, places: Sequence[tuple[Handle, Header]]) -> Iterator[str]:
    """Yield the entries of the conversation that have the handle in their bytes."""
    name = _name(handle._replace(block=None))
    for place, header in places:
        if header.kind == "message" and name.search(dialog.store.body(place.dialog, place.seq)):
            yield str(place)
