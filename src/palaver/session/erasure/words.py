"""The words of what is erased: what stays is looked through for them, before an erasure and behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from palaver.ids import DialogId
from palaver.log import Entry, Erasure, Handle, Span, decode_entry, draft, from_header, stand_in
from palaver.session.erasure.planning import Plan, Search, spans_of, strings_in
from palaver.store.erasing import Erasing

__all__ = ["entry_at", "erased_words", "quoted", "tells_one", "words_in"]

_WORD = re.compile(r"\w{5,200}")
_TELLING = 6
_DIGITS = 6
_BLANK = Erasure(at=0.0, receipt="")


def words_in(texts: Iterable[str]) -> set[str]:
    """Give the words of texts that are long enough to say something."""
    return {word.casefold() for text in texts for word in _WORD.findall(text)}


def tells_one(word: str) -> bool:
    """Tell whether a word stands for one thing alone, as a password, a number or an id does: one with digits in it."""
    digits = sum(map(str.isdigit, word))
    return len(word) >= _TELLING and (digits >= _DIGITS or (digits > 0 and any(map(str.isalpha, word))))


def erased_words(store: Erasing, plan: Plan) -> set[str]:
    """Give the words of what is erased, without those that stay: ids, names of tools."""
    found: set[str] = set()
    for dialog in plan.dialogs:
        for _, body in store.bodies(dialog):
            found |= words_in(strings_in(body))
    for span in spans_of(plan.tombstones):
        body = b"".join(one for _, one in store.bodies(span.dialog, span.start, span.stop))
        stays = draft(stand_in(entry_at(store, span.dialog, span.start), _BLANK))[0].body
        found |= words_in(strings_in(body)) - words_in(strings_in(stays))
    return found


def entry_at(store: Erasing, dialog: DialogId, seq: int) -> Entry:
    """Read an entry; what is lost or cannot be read is known by its header alone."""
    header = store.header(dialog, seq)
    body = b"".join(one for _, one in store.bodies(dialog, seq, seq + 1))
    try:
        entry = decode_entry(body)
    except ValueError:
        return from_header(header)
    return entry if entry.kind in (header.kind, "tombstone") else from_header(header)


def quoted(store: Erasing, plan: Plan) -> Iterator[Handle]:
    """Give the entries that stay, in the sessions that are touched, and repeat what is erased: a line, or a word that stands for one thing alone.

    Nobody erases them unasked.
    """
    spans = [*(Span(one, 0, store.last(one).seq + 1) for one in plan.dialogs), *spans_of(plan.tombstones)]
    if plan.sessions or not spans:
        return
    search, telling = Search(store, spans), set(filter(tells_one, erased_words(store, plan)))
    for session in sorted({store.node(span.dialog).session_id for span in spans}):
        for node in store.nodes(session):
            if node.dialog_id in plan.dialogs:
                continue
            known = plan.tombstones.get(node.dialog_id, set()) | plan.parts.get(node.dialog_id, set())
            for seq, body in store.bodies(node.dialog_id):
                if seq in known:
                    continue
                if search.repeats(body) or (telling and not telling.isdisjoint(words_in(strings_in(body)))):
                    yield Handle(node.dialog_id, seq)
