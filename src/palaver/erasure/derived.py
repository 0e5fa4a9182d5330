"""What goes with an erased entry: every entry of its session that was derived from it, whole.

Each derived entry is read once. Which of them go is then decided in memory, again and again until nothing changes, because one may be derived from another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from palaver.errors import Erased, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import (
    ATTEMPT,
    COPY_OF,
    VERSION_OF,
    Approval,
    BlockEdit,
    BranchSummary,
    Compaction,
    ContextEdit,
    Custom,
    Derived,
    Entry,
    Handle,
    Header,
    Label,
    MessageEntry,
    Node,
    Quarantine,
    Run,
    Span,
    Tombstone,
    decode_entry,
    from_header,
    is_note,
    originals,
)
from palaver.store.erasing import Erasing

_SUMMARIES = frozenset({"branch_summary", "compaction_summary"})
_KINDS = frozenset({"approval", "compaction", "context_edit", "branch_summary", "label", "quarantine", "custom"})
_NAMES_ORIGINAL = f'"{COPY_OF}"'.encode()


@dataclass(frozen=True, slots=True)
class _Part:
    """An entry that may go with others.

    Attributes:
        place: Its place.
        names: The entries that it was derived from.
        after: Whether it was derived from everything before it in its dialog.
    """

    place: Handle
    names: tuple[Span, ...] = ()
    after: bool = False


class _Going:
    """The entries that go, by dialog."""

    def __init__(self, dialogs: Collection[DialogId], places: Iterable[Handle]) -> None:
        self._dialogs = dialogs
        self._numbers: dict[DialogId, list[int]] = defaultdict(list)
        for place in sorted(places):
            self._numbers[place.dialog].append(place.seq)

    def meets(self, span: Span) -> bool:
        if span.dialog in self._dialogs:
            return len(span) > 0
        numbers = self._numbers.get(span.dialog, [])
        at = bisect_left(numbers, span.start)
        return at < len(numbers) and numbers[at] < span.stop

    def first(self, node: Node) -> float:
        """Return the number of the first entry of a dialog that goes; -1 if it shares one that goes."""
        if any(map(self.meets, node.ranges)):
            return -1
        return next(iter(self._numbers.get(node.dialog_id, ())), float("inf"))


def derived_from(
    store: Erasing, session_id: SessionId, dialogs: Collection[DialogId], places: Collection[Handle]
) -> set[Handle]:
    """Return the entries of a session that go with some, and these.

    Args:
        store: The store.
        session_id: The session.
        dialogs: Dialogs that are removed.
        places: Entries that are erased.
    """
    nodes = store.nodes(session_id)
    makers = _makers(store, nodes)
    staying = [node for node in nodes if node.dialog_id not in dialogs]
    parts = [part for node in staying for part in _parts(store, node, makers)]
    parts += [part for node in staying for part in _versions(store, node) if part.place.dialog not in dialogs]
    going, known = set(places), -1
    while known != (known := len(going)):
        gone = _Going(dialogs, going)
        first = {node.dialog_id: gone.first(node) for node in staying}
        going |= {
            part.place
            for part in parts
            if (part.after and part.place.seq > first[part.place.dialog]) or any(map(gone.meets, part.names))
        }
    return going


def _makers(store: Erasing, nodes: Iterable[Node]) -> Mapping[str, list[Span]]:
    """Return the entries that made or started calls, by the call."""
    makers: dict[str, list[Span]] = defaultdict(list)
    for node in nodes:
        for header in store.headers(node.dialog_id):
            for call in header.calls if header.role != "tool" else ():
                makers[call].append(Span(node.dialog_id, header.seq, header.seq + 1))
    return makers


def _parts(store: Erasing, node: Node, makers: Mapping[str, list[Span]]) -> Iterator[_Part]:
    for header in store.headers(node.dialog_id):
        place = Handle(node.dialog_id, header.seq)
        if header.kind == "invocation" or (header.kind == "message" and header.role in _SUMMARIES):
            yield _Part(place, after=True)
        elif header.kind in _KINDS:
            entry = readable(store, place)
            if entry.erased is None:  # else no words are left in it
                yield _part(place, entry, makers)
    yield from _copies(store, node)


def _part(place: Handle, entry: Entry, makers: Mapping[str, list[Span]]) -> _Part:
    names: tuple[Span, ...] = ()
    after = False
    match entry:
        case Approval(call_id=call):
            names = tuple(makers.get(call, ()))
        case Label(target=target) | Quarantine(target=target):
            names = (_span(target.handle),)
        case BranchSummary(sources=sources):
            names, after = _spans(sources), not sources
        case ContextEdit(edits=edits) if not is_note(entry):
            names = tuple(_edited(edits))
        case Compaction(pieces=pieces, edits=edits, attempt=attempt):
            texts = [piece for piece in pieces if isinstance(piece, Derived)]
            names = (*_edited(edits), *(span for text in texts for span in _spans(text.sources)))
            after = _quotes(attempt) or any(not text.sources for text in texts)
        case Custom(custom_type=custom_type, data=data):
            after = custom_type == ATTEMPT and _quotes(data)
        case Tombstone():  # it cannot be read: it may be derived from all before it
            after = True
    return _Part(place, names, after=after)


def _versions(store: Erasing, node: Node) -> Iterator[_Part]:
    """Yield the entries that another machine's version of a dialog repeats, and those that it repeats."""
    try:
        other = store.node(DialogId(str(node.metadata[VERSION_OF]))).dialog_id
    except (KeyError, NotFound, Erased):
        return
    for mine, theirs in zip(store.headers(node.dialog_id), store.headers(other), strict=False):
        if (mine.seq, mine.at, mine.role, mine.calls) != (theirs.seq, theirs.at, theirs.role, theirs.calls):
            return
        places = Handle(node.dialog_id, mine.seq), Handle(other, mine.seq)
        yield from (_Part(place, (_span(same),)) for place, same in (places, reversed(places)))


def _quotes(attempt: object) -> bool:
    """Return whether the record of an attempt has words of a policy, a user or a provider, which may quote what they were given."""
    if not isinstance(attempt, Mapping):
        return False
    summary = attempt.get("summary")
    failed = isinstance(summary, Mapping) and summary.get("failed")
    return bool(attempt.get("focus") or attempt.get("rejected") or attempt.get("why") or failed)


def _edited(edits: Iterable[BlockEdit]) -> Iterator[Span]:
    for edit in edits:
        yield _span(edit.target.handle)
        yield from _spans(edit.sources)


def _spans(runs: Iterable[Run] | None) -> tuple[Span, ...]:
    return tuple(run.span for run in runs or ())


def _span(place: Handle) -> Span:
    return Span(place.dialog, place.seq, place.seq + 1)


def _copies(store: Erasing, node: Node) -> Iterator[_Part]:
    """Yield the entries that repeat others. What waited in the inbox goes with its delivery, too."""
    for seq, body in store.bodies(node.dialog_id):
        place = Handle(node.dialog_id, seq)
        entry = readable(store, place) if _NAMES_ORIGINAL in body else None  # few do, and need to be decoded
        if not isinstance(entry, MessageEntry):
            continue
        about = (entry.message.metadata, *(result.metadata for result in entry.message.tool_results()))
        named = list(chain.from_iterable(map(originals, about)))
        yield _Part(place, tuple(map(_span, named)))
        for original in named:
            here = original.dialog == place.dialog and original.seq < seq
            if here and store.header(place.dialog, original.seq).kind == "inbox":
                yield _Part(original._replace(block=None), (_span(place),))


def readable(store: Erasing, place: Handle) -> Entry:
    """Read an entry. For a lost or damaged one, return an entry made from its header."""
    header: Header = store.header(place.dialog, place.seq)
    body = b"".join(stored for _, stored in store.bodies(place.dialog, place.seq, place.seq + 1))
    try:
        entry = decode_entry(body)
    except ValueError:
        return from_header(header)
    return entry if entry.kind in (header.kind, "tombstone") else from_header(header)
