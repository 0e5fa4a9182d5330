"""Tools by which a model finds and reads what left its view.

Without a dialog they work on the one in which they are called, so that an agent's forks each have their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from palaver.ids import SessionId
from palaver.log import Entry, Handle, MessageEntry, Span, decode_entry, lineage
from palaver.messages.said import words_of
from palaver.session.calls.invocations import newest_view
from palaver.session.compaction.preview import place_of
from palaver.session.memory.notes import Held
from palaver.session.memory.offering import FEW, MOST, PAGE, QUOTED, dialog_of, further, told, tool
from palaver.session.memory.quoting import LONGEST_PAGE, Seen, page, quotes, spelt
from palaver.session.reading.marks import quarantined_in
from palaver.session.reading.searching import searchable
from palaver.store.protocol import Hit
from palaver.store.text import CLOSE, OPEN
from palaver.tools import CallContext, Function
from palaver.view import Hearing, Omission, View

__all__ = ["history_tools", "recall_tools"]

_GIST = 100


def recall_tools(dialog: Held | None = None) -> tuple[Function, ...]:
    """Give the tools by which a model reads what left its view: `recall`, `search_history` and `list_omitted`.

    Args:
        dialog: The dialog; the one in which a tool is called when not given.
    """

    def recall(handle: str, context: CallContext, offset: int = 0, limit: int = PAGE) -> Any:  # noqa: ANN401 - a text, or what went wrong
        return told(lambda: _recalled(dialog_of(context, dialog), handle, offset, limit))

    def search_history(query: str, context: CallContext, offset: int = 0, limit: int = FEW) -> Any:  # noqa: ANN401 - the same
        return told(lambda: _searched(dialog_of(context, dialog), query, offset, limit))

    def list_omitted(context: CallContext, offset: int = 0, limit: int = FEW * 3) -> Any:  # noqa: ANN401 - the same
        return told(lambda: _listed(dialog_of(context, dialog), offset, limit))

    paging = {"offset": "How much to pass over, for the next page.", "limit": "How much to give back at most."}
    return (
        tool(
            recall,
            f"Bring back in full what was left out or shortened: a message, a tool's output, or a run of messages, with its images and sounds. {QUOTED}",
            {
                "handle": "The handle in the placeholder, such as 3f2a91c07b5e:12 or 3f2a91c07b5e:12:0, or a run, 3f2a91c07b5e:12-40.",
                "offset": "How many characters to pass over, for the next page.",
                "limit": f"How many characters to give back, at most {LONGEST_PAGE:,}.",
            },
        ),
        tool(
            search_history,
            f"Search the whole conversation, other branches and what is no longer shown included, for messages that hold all words. {QUOTED}",
            {"query": "The words.", **paging},
        ),
        tool(
            list_omitted, "List what is not shown to you or only in part, with the handles that recall takes.", paging
        ),
    )


def history_tools(dialog: Held | None = None) -> tuple[Function, ...]:
    """Give Letta's tool for recall memory, `conversation_search`: `search_history` by its name there."""
    search = next(tool for tool in recall_tools(dialog) if tool.name == "search_history")
    return (search.extend(name="conversation_search"),)


def _recalled(dialog: Held, handle: str, offset: int, limit: int) -> str | tuple[str | Seen, ...]:
    store = dialog.store
    session_id = store.node(dialog.dialog_id).session_id
    first, last = spelt(store, session_id, handle)
    aside = quarantined_in(store, _spans(dialog))
    shown = page(quotes(store, session_id, first, last, aside), offset, limit)
    return shown[0] if len(shown) == 1 and isinstance(shown[0], str) else shown


def _searched(dialog: Held, query: str, offset: int, limit: int) -> str:
    store, begin, count = dialog.store, max(offset, 0), min(max(limit, 1), MOST)
    session_id = store.node(dialog.dialog_id).session_id
    store.index(searchable)
    hits = store.search(query, session_id=session_id, limit=(begin + count + 1) * 2)
    found = [hit for hit in hits if not _is_recalled(_entry(dialog, hit.handle))]
    if not found[begin:]:
        asked = query if len(query) <= _GIST else f"{query[:_GIST]}…"
        by_word = "" if found else _by_word(dialog, query, session_id)
        return f"Nothing {'more ' if found else ''}holds all words of {asked!r}. {by_word}Try fewer words, or others."
    spans = _spans(dialog)
    hearing = Hearing(store)
    lines = [
        _hit_line(hit, _role(dialog, hit, hearing), here=any(hit.handle in span for span in spans))
        for hit in found[begin : begin + count]
    ]
    return "\n".join([*lines, *further(len(found) > begin + count, begin + count)])


def _by_word(dialog: Held, query: str, session_id: SessionId) -> str:
    """Say which words of a query are found alone: whoever joins them by OR or a bar learns what there is."""
    words = list(dict.fromkeys(re.findall(r"\w+", query)))[:FEW]
    if words == [query.strip()] or not words:  # it was looked for already
        return ""
    hits = {word: dialog.store.search(word, session_id=session_id, limit=FEW) for word in words}
    held = [word for word in words if any(not _is_recalled(_entry(dialog, hit.handle)) for hit in hits[word])]
    return f"By themselves are found: {', '.join(held)}. " if held else "None of them is found by itself. "


def _role(dialog: Held, hit: Hit, hearing: Hearing) -> str:
    """Give who says what was found: the role, and where a tool said it in a user's message, the tool."""
    entry = _entry(dialog, hit.handle)
    return _who(hit.handle, entry, hearing) if isinstance(entry, MessageEntry) else hit.role or hit.kind


def _who(place: Handle, entry: MessageEntry, hearing: Hearing) -> str:
    by = hearing.speaker(place, entry.message)
    return by.value if by is not entry.message.speaker else entry.message.role.value


def _hit_line(hit: Hit, role: str, *, here: bool) -> str:
    said = " ".join(hit.snippet.replace(OPEN, "").replace(CLOSE, "").split())
    where = "" if here else ", on another branch"
    return f"{hit.handle} ({role}{where}): {json.dumps(said, ensure_ascii=False)}"


_OURS = frozenset({"recall", "search_history", "list_omitted", "conversation_search"})


def _is_recalled(entry: Entry) -> bool:
    """Tell whether an entry only repeats what was found before: the result of one of these tools, or the call of one."""
    if not isinstance(entry, MessageEntry):
        return False
    results, calls = entry.message.tool_results(), entry.message.tool_calls()
    names = [*(one.name for one in results), *(one.name for one in calls)]
    return bool(names) and all(name in _OURS for name in names)


def _listed(dialog: Held, offset: int, limit: int) -> str:
    view = newest_view(dialog.store, dialog.dialog_id)
    lines = [*_left_out(dialog, view), *_in_part(view)]
    begin, count = max(offset, 0), min(max(limit, 1), MOST)
    if not lines[begin:]:
        return "Nothing more is left out." if lines else "Nothing is left out: all of the conversation is before you."
    shown = [line() for line in lines[begin : begin + count]]
    head = f"{len(lines):,} places, {begin + 1:,} to {begin + len(shown):,}:"
    return "\n".join([head, *shown, *further(len(lines) > begin + count, begin + count)])


def _left_out(dialog: Held, view: View) -> Iterator[Callable[[], str]]:
    """Give a line for each omission that holds something that was said; made when it is shown."""
    hearing = Hearing(dialog.store)
    for gone in view.omissions:
        if gone.messages or gone.handle is not None:
            yield partial(_omission_line, dialog, gone, hearing)


def _omission_line(dialog: Held, gone: Omission, hearing: Hearing) -> str:
    count = f", {gone.messages:,} messages" if gone.messages > 1 else ""
    why = gone.reason.value.replace("_", " ")
    return f"{place_of(gone)} ({why}{count}, {gone.size:,} bytes): {_gist(dialog, next(iter(gone.handles())), hearing)}"


def _in_part(view: View) -> Iterator[Callable[[], str]]:
    for exchange in view.exchanges:
        for block in exchange.blocks():
            if block.reason is not None and block.origin is not None:
                said = f"{block.origin} ({block.reason.value.replace('_', ' ')}): shown in part"
                yield partial(str, said)


def _gist(dialog: Held, place: Handle, hearing: Hearing) -> str:
    entry = _entry(dialog, place)
    if not isinstance(entry, MessageEntry):
        return entry.kind
    text = " ".join(" ".join(words_of(block) for block in entry.message.contents).split())
    return f'{_who(place, entry, hearing)}: "{text[:_GIST]}{"…" if len(text) > _GIST else ""}"'


def _entry(dialog: Held, place: Handle) -> Entry:
    return decode_entry(dialog.store.body(place.dialog, place.seq))


def _spans(dialog: Held) -> tuple[Span, ...]:
    store = dialog.store
    return lineage(store.node(dialog.dialog_id), store.last(dialog.dialog_id).seq + 1)
