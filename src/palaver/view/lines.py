"""Reading the entries that a view is folded from: the newest checkpoint's pieces and what came after, or the whole log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from palaver.ids import DialogId
from palaver.log import (
    NOTHING,
    RULES,
    Compaction,
    Derived,
    Entry,
    Handle,
    Header,
    Node,
    Reader,
    Run,
    Span,
    clip,
    decoded,
    entry_at,
    every_body,
    lineage,
)


class Line(NamedTuple):
    """An entry as it is read for a view.

    Attributes:
        handle: Where it stands.
        entry: What it says.
        size: The length of its body in bytes.
        inherited: True when an ancestor owns it.
    """

    handle: Handle
    entry: Entry
    size: int
    inherited: bool


@dataclass(frozen=True, slots=True)
class Material:
    """What a view is folded from.

    Attributes:
        checkpoint: The newest compaction that holds, or None when the whole log is read.
        place: Where the checkpoint stands, or None.
        kept: What the checkpoint holds: runs of entries to read, and derived texts between them, in order.
        tail: The entries after it.
    """

    checkpoint: Compaction | None
    place: Handle | None
    kept: tuple[Span | Derived, ...]
    tail: tuple[Span, ...]


def held(reader: Reader, dialog_id: DialogId, at: int | None) -> tuple[Span, ...]:
    """Give the spans that a dialog holds up to its own entry `at` (inclusive; None: the newest; -1: none of its own)."""
    length = reader.last(dialog_id).seq + 1 if at is None else at + 1
    return lineage(reader.node(dialog_id), length)


def header_at(reader: Reader, dialog_id: DialogId, at: int | None) -> Header:
    """Give the header of a dialog's own entry `at`, or of the newest where there is none of that number or none is given.

    Raises:
        UnknownDialog: No such dialog.
    """
    newest = reader.last(dialog_id)
    if at is None or at >= newest.seq:
        return newest
    return reader.header(dialog_id, at) if at >= 0 else NOTHING


def material(reader: Reader, node: Node, upto: Header, *, whole: bool) -> Material:
    """Find the newest checkpoint that holds for a dialog up to an own entry, and give what must be read.

    A checkpoint that an ancestor made holds for a fork only when the fork kept all that the checkpoint was computed from; a fork
    that kept a window (`last_n`) asked for exactly those messages, and gets them.
    """
    spans = lineage(node, upto.seq + 1)
    if not whole:
        for index in range(len(spans) - 1, -1, -1):
            span = spans[index]
            own = span.dialog == node.dialog_id
            seq = (upto if own else reader.header(span.dialog, span.stop - 1)).view_base
            if seq < span.start:
                continue
            entry = entry_at(reader, Handle(span.dialog, seq))
            if isinstance(entry, Compaction) and _complete(entry, spans[: index + 1]):
                beside = Span(span.dialog, max(entry.base + 1, span.start), seq)  # what came while it was made
                after = Span(span.dialog, seq + 1, span.stop)
                kept = tuple(_span(piece) if isinstance(piece, Run) else piece for piece in entry.pieces)
                rest = tuple(part for part in (beside, after, *spans[index + 1 :]) if len(part))
                return Material(entry, Handle(span.dialog, seq), kept, rest)
    return Material(None, None, (), spans)


def _span(run: Run) -> Span:
    return Span(run.dialog, run.start, run.stop)


def _complete(entry: Compaction, spans: Sequence[Span]) -> bool:
    runs = [_span(piece) for piece in entry.pieces if isinstance(piece, Run)]
    runs += [_span(gone.run) for gone in entry.omitted if gone.run is not None]
    return sum(len(run) for run in runs) == sum(len(part) for part in clip(runs, spans))


def read(reader: Reader, dialog_id: DialogId, pieces: Sequence[Span | Derived]) -> Iterator[Line | Derived]:
    """Read the pieces in order; entries of kinds that are neither shown nor change a view are passed over."""
    for piece in pieces:
        if isinstance(piece, Derived):
            yield piece
            continue
        dialog, inherited = piece.dialog, piece.dialog != dialog_id
        for seq, body in every_body(reader, piece):
            handle = Handle(dialog, seq)
            entry = decoded(reader, handle, body)
            if entry.kind in _READ:
                yield Line(handle, entry, len(body), inherited)


_READ = frozenset(kind for kind, law in RULES.items() if law.shown or law.holds)
