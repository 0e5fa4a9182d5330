"""Entries: the rows of a dialog, from headers or whole; the originals that handles name; what is labelled and pinned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, TypedDict

from palaver.errors import Erased, InvalidInput, NotFound
from palaver.ids import DialogId
from palaver.log import Entry, Handle, Inbox, LateResult, MessageEntry, Span, decode_entry, every_header, places
from palaver.messages import Content, words_of
from palaver.plurals import counted
from palaver.session import Dialog, Session
from palaver.store import Store
from palaver.tokens.families import BYTES_PER_TOKEN
from palaver.view import held

_BLOCKS = {"t": "text", "h": "thinking", "c": "call", "r": "result", "m": "medium"}
"""What the letters of a shape mean (`palaver.log.headers.shape`)."""


_GIST = 72
"""Characters of an entry in a list."""


class EntryRow(TypedDict):
    """An entry as its header describes it.

    `index` is its number among all entries of the dialog, its ancestors' included, `label` says which blocks it has, `tokens` is estimated from `size`, the bytes of its
    recorded form, and `calls` are the ids of the tool calls that it makes or answers.
    """

    index: int
    handle: str
    kind: str
    role: str
    speaker: str
    at: float
    size: int
    tokens: int
    calls: list[str]
    label: str


def length(dialog: Dialog) -> int:
    """Return how many entries a dialog has, its ancestors' included."""
    return sum(map(len, held(dialog.store, dialog.dialog_id, None)))


def entries(dialog: Dialog, start: int = 0, stop: int | None = None) -> Iterator[EntryRow]:
    """Yield the entries of a dialog, its ancestors' first, from `start` to `stop` (exclusive). Reads headers only."""
    index = count(start)
    for span in spans(dialog, start, stop):
        for header in every_header(dialog.store, span):
            shape = Counter(_BLOCKS[letter] for letter in header.blocks if letter in _BLOCKS)
            yield {
                "index": next(index),
                "handle": str(Handle(span.dialog, header.seq)),
                "kind": header.kind,
                "role": header.role,
                "speaker": header.speaker,
                "at": header.at,
                "size": header.size,
                "tokens": round(header.size / BYTES_PER_TOKEN),
                "calls": list(header.calls),
                "label": ", ".join(counted(number, what) for what, number in shape.items()),
            }


def spans(dialog: Dialog, start: int = 0, stop: int | None = None) -> Iterator[Span]:
    """Yield the spans of a dialog, its ancestors' first, from the entry number `start` to `stop` (exclusive)."""
    for span in held(dialog.store, dialog.dialog_id, None):
        end = len(span) if stop is None else min(stop, len(span))
        if start < end:
            yield Span(span.dialog, span.start + start, span.start + end)
        start, stop = max(start - len(span), 0), None if stop is None else max(stop - len(span), 0)


def recorded(dialog: Dialog, start: int = 0, stop: int | None = None) -> Iterator[tuple[Handle, Entry]]:
    """Yield the entries of a dialog, its ancestors' first, as they were recorded, from `start` to `stop` (exclusive)."""
    for span in spans(dialog, start, stop):
        for seq, body in dialog.store.bodies(span.dialog, span.start, span.stop):
            yield Handle(span.dialog, seq), decode_entry(body)


def entry_row(place: Handle, entry: Entry) -> dict[str, Any]:
    """Return the fields of an entry as JSON values, its handle among them."""
    return {"handle": str(place), **entry.model_dump(mode="json")}


# --- handles --------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Original:
    """What a handle names, read when it is asked for.

    Attributes:
        session: The session.
        handle: The entry or block.
    """

    session: Session
    handle: Handle

    def found(self) -> Entry | Content:
        """Return the entry or the block as it was recorded.

        Raises:
            NotFound: There is no such entry or block.
            Erased: It was there and was erased.
        """
        return self.session.recall(self.handle)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        found = self.found().model_dump(mode="json")
        return {"handle": str(self.handle), "session": self.session.session_id, "found": found}


def is_handle(text: str) -> bool:
    """Return whether a text names entries or blocks, as views print them."""
    try:
        return bool(places(text))
    except InvalidInput:
        return False


def originals(store: Store, text: str) -> tuple[Original, ...]:
    """Return the entries or blocks that a handle, or a run of entries, names.

    Raises:
        InvalidInput: It is not a handle.
        NotFound: There is no such dialog, or its newest entry is older.
    """
    named = places(text)
    session = Session.open(store, store.node(store.resolve(named[0].dialog)).session_id)
    handles: list[Handle] = []
    for place in named:
        dialog_id = store.resolve(place.dialog, session.session_id)
        if isinstance(place, Handle):
            handles.append(place._replace(dialog=dialog_id))
        elif place.stop - 1 > (newest := store.last(dialog_id).seq):
            raise NotFound(text, what="entry", hint=f"The newest entry of this dialog is {newest}.")
        else:
            handles += (Handle(dialog_id, seq) for seq in range(place.start, place.stop))
    return tuple(Original(session, place) for place in handles)


def who_of(original: Entry | Content) -> str:
    """Return who said an entry, or what a block is."""
    if isinstance(original, MessageEntry):
        return f"{original.message.role.value}:"
    return f"{getattr(original, 'kind', 'block')}:"


def text_of(original: Entry | Content) -> str:
    """Return the words of an entry or a block; of what has none, all of it as JSON."""
    if isinstance(original, MessageEntry | Inbox | LateResult):
        return "\n\n".join(text_of(block) for block in original.message.contents)
    said = "" if isinstance(original, Entry) else words_of(original)
    return said or original.model_dump_json(indent=2)


# --- marks ----------------------------------------------------------------------------------------------------------------------------


class LabelRow(TypedDict):
    """A label of an entry."""

    handle: str
    label: str


class PinRow(TypedDict):
    """An entry that every view keeps: who said what, and whether the view shows it now."""

    handle: str
    dialog: DialogId
    shown: bool
    text: str


def labels(session: Session) -> Iterator[LabelRow]:
    """Yield the labels of a session."""
    for place, label in session.labels.items():
        yield {"handle": str(place), "label": label}


def pins(dialog: Dialog) -> Iterator[PinRow]:
    """Yield what is pinned in a dialog, in the order of pinning."""
    runs = [span for exchange in dialog.view().exchanges for span in exchange.runs]
    for place in dialog.marks.pins:
        shown, text = any(place in span for span in runs), _gist(dialog.session, place)
        yield {"handle": str(place), "dialog": dialog.dialog_id, "shown": shown, "text": text}


def _gist(session: Session, place: Handle) -> str:
    """Return an entry in one line: who said what."""
    try:
        entry = session.recall(place)
    except (NotFound, Erased) as error:
        return f"({'erased' if isinstance(error, Erased) else 'missing'})"
    said = " ".join(text_of(entry).split())
    return f"{who_of(entry)} {said if len(said) <= _GIST else f'{said[: _GIST - 1]}…'}"
