"""Branches: the entries that a fork shares, rewinds, and merges. The log keeps every entry of all branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from palaver import context, tokens
from palaver.errors import Conflict, InvalidInput
from palaver.ids import DialogId, now
from palaver.log import (
    HOLDING,
    NOTHING,
    BranchSummary,
    Custom,
    Handle,
    Node,
    Place,
    Reader,
    Run,
    Span,
    Stretch,
    ToolSpec,
    apart,
    child_of,
    clip,
    common,
    entry_at,
    joined,
    last_of,
    messages_in,
    rule,
    upto,
)
from palaver.messages import Message, ToolCallContent, Trust, thaw
from palaver.plurals import counted
from palaver.session.messages import Messages, place_of_message, placed_line
from palaver.session.opened import OpenDialog, OpenSession, annotate
from palaver.session.recall import whole
from palaver.session.waiting import undelivered
from palaver.store.protocol import Store
from palaver.view import Exchange, Fold, Reason, View

REWIND = "rewind"
"""The relation of a dialog that a rewind created to the original dialog."""

_FROM = "rewound"
"""The key in such a dialog's metadata that names the original dialog."""

_UNDONE = "palaver.rewind_undone"
_WIDTH = 96
_ROOM = 4_000
"""The window in tokens for which a branch's record is made. The record gets a fraction of it, and everything in it can be recalled."""

D = TypeVar("D")


# --- forks ------------------------------------------------------------------------------------------------------------------------------


def window(dialog: OpenDialog, last_n: int, first_k: int) -> tuple[tuple[Span, ...], int]:
    """Return the spans and the number of the first `first_k` and the last `last_n` messages, or of all where `last_n` is 0.

    An entry that is not a message belongs to the message before it, a fragment to the first fragment of its response. Of the omitted part,
    entries with a lasting effect stay (instructions, pins, …), so that the same settings are in force. The cost does not depend on the length
    of the log.
    """
    if last_n == 0 or first_k + last_n >= dialog.count:
        return dialog.spans(), dialog.count
    store, stretches = dialog.store, dialog.stretches()
    spans = [stretch.span for stretch in stretches]
    front, after, strays = _cut(store, stretches, first_k) if first_k else ([], spans, [])
    before, back, late = _cut(store, stretches, dialog.count - last_n)
    order = {span.dialog: index for index, span in enumerate(spans)}
    between = [*strays, *_holding(store, list(clip(before, after)))]
    between.sort(key=lambda span: (order[span.dialog], span.start))
    return joined([*front, *between, *apart(back, late)]), last_n + first_k


def _holding(store: Store, left_out: Sequence[Span]) -> Iterator[Span]:
    """Yield the omitted entries that have a lasting effect."""
    newest: set[str] = set()
    for span in reversed(left_out):
        for header in store.latest_of_kind(span.dialog, HOLDING, span.start, span.stop):
            if header.kind not in newest:
                yield Span(span.dialog, header.seq, header.seq + 1)
            if rule(header.kind).holds == "newest":
                newest.add(header.kind)


def _cut(reader: Reader, stretches: Sequence[Stretch], index: int) -> tuple[list[Span], list[Span], list[Span]]:
    """Split the spans where message `index` begins.

    Returns:
        The part before, the part from there on, and the entries of the latter that continue a message of the former.
    """
    at, seq = place_of_message(reader, stretches, index)
    cut = stretches[at].span
    front = [*(stretch.span for stretch in stretches[:at]), Span(cut.dialog, cut.start, seq)]
    back = [Span(cut.dialog, seq, cut.stop), *(stretch.span for stretch in stretches[at + 1 :])]
    return front, back, list(_strays(reader, joined(front), back))


def _strays(reader: Reader, front: Sequence[Span], back: Sequence[Span]) -> Iterator[Span]:
    """Yield the entries after a cut that continue the response before it. The response ends where the next one begins."""
    if not front:
        return
    place = front[-1]
    last = reader.header(place.dialog, place.stop - 1)
    after = [span for span in back if span.dialog == place.dialog and len(span)]
    if not last.response or not after:
        return
    stop = max(span.stop for span in after)
    if reader.header(place.dialog, stop - 1).number - last.number == stop - 1 - last.seq:
        return  # each entry begins a message, so none continues one
    for seq in range(last.seq + 1, stop):  # one by one, because the next response is near
        header = reader.header(place.dialog, seq)
        if header.response != last.response:
            return
        if header.continues == "message":
            yield from (Span(place.dialog, seq, seq + 1) for span in after if span.start <= seq < span.stop)


# --- rewinds ----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Rewind(Generic[D]):
    """A previewed rewind; `apply` performs it.

    Attributes:
        dialog_id: The dialog.
        to: The last entry that stays, or None.
        kept: The number of messages that stay.
        leaving: The messages that leave.
        entries: The number of entries that leave.
        queued: Messages among them that wait in the inbox and were never delivered.
        files: Files that calls among them touched, by the tools' declarations or, of well-known tools, by their arguments. A rewind changes no file.
    """

    dialog_id: DialogId
    to: Handle | None
    kept: int
    leaving: Messages
    entries: int
    queued: tuple[Message, ...]
    files: tuple[str, ...]
    _spans: tuple[Span, ...] = field(repr=False)
    _session: OpenSession[D] = field(repr=False, compare=False)
    _turn_head: int = field(repr=False)

    def apply(self) -> D:
        """Rewind, and return the dialog that continues from there. The original dialog stays unchanged; `Session.undo_rewind` returns to it.

        Raises:
            Conflict: The dialog grew after the preview.
        """
        store, left = self._session.store, self._session.store.node(self.dialog_id)
        root = store.session(left.session_id).root == left.dialog_id
        node = rewound(left, self._spans, self.kept, root=root)
        with store.transaction():
            actual = store.last(left.dialog_id).turn_head
            if actual != self._turn_head:
                raise Conflict(left.dialog_id, self._turn_head, actual, hint="Reload the dialog, and preview again.")
            made = self._session.new_dialog(node)
            if root:
                store.update_session(left.session_id, root=node.dialog_id)
        return made

    def lines(self, width: int = _WIDTH) -> Iterator[str]:
        """Yield lines for people, with texts cut after `width` characters."""
        stay = counted(self.kept, "message stays", "messages stay")
        leave = counted(len(self.leaving), "leaves", "leave")
        yield f"Back to {self.to or 'the beginning'}: {stay}, {leave} ({counted(self.entries, 'entry')})."
        for place, message in self.leaving.placed():
            yield f"- {placed_line(place, message, width)}"
        for message in self.queued:
            yield f"- queued, not delivered: {message.text_content()}"[:width]
        if self.files:
            yield f"Files stay as they are: {', '.join(self.files)}."

    def __str__(self) -> str:
        return "\n".join(self.lines())


def rewound(left: Node, spans: tuple[Span, ...], kept: int, *, root: bool) -> Node:
    """Return the dialog that a rewind creates.

    Args:
        left: The original dialog.
        spans: The entries that stay.
        kept: The number of messages in them.
        root: Whether the original is the dialog to continue with, which the new one then becomes.
    """
    about = {_FROM: {"dialog": left.dialog_id, "root": root}}
    return child_of(left, spans, kept, relation=REWIND, metadata=about)


def rewind(session: OpenSession[D], dialog: OpenDialog, to: Handle | str | None) -> Rewind[D]:
    """Preview going back to an entry; see `Session.rewind`."""
    store = session.store
    dialog.reload()
    spans = dialog.spans()
    place = None if to is None else whole(store, session.session_id, to)._replace(block=None)
    kept = () if place is None else upto(spans, place)
    gone = apart(spans, kept)
    if not gone:
        raise InvalidInput(f"Nothing would leave: {place or 'nothing'} is the end of the dialog.")
    leaving = Messages.of(store, gone)
    return Rewind(
        dialog_id=dialog.dialog_id,
        to=place,
        kept=messages_in(store, kept),
        leaving=leaving,
        entries=sum(map(len, gone)),
        queued=tuple(
            message
            for seq, message in undelivered(store, dialog.dialog_id)
            if any(Handle(dialog.dialog_id, seq) in span for span in gone)
        ),
        files=tuple(dict.fromkeys(_files(leaving, {tool.name: tool for tool in dialog.view().tools}))),
        _spans=kept,
        _session=session,
        _turn_head=dialog.last.turn_head,
    )


def _files(messages: Messages, tools: Mapping[str, ToolSpec]) -> Iterator[str]:
    for message in messages.bare():
        for block in message.contents:
            if isinstance(block, ToolCallContent):
                done = context.effect(block.name, thaw(block.args), tools.get(block.name))
                yield from (*done.reads, *done.writes)


def undo_rewind(session: OpenSession[D], dialog_id: DialogId) -> D:
    """Return the dialog before a rewind; see `Session.undo_rewind`."""
    store, node = session.store, session.store.node(dialog_id)
    if node.relation != REWIND or node.parent_id is None:
        raise InvalidInput(f"Dialog {node.dialog_id[:12]} was not made by a rewind.")
    left: Any = node.metadata.get(_FROM)
    back = Custom(custom_type=_UNDONE, data={"dialog": node.dialog_id}, at=session.tick(now()))
    with store.transaction():
        annotate(store, node.parent_id, back)  # now the original dialog has the newest entry again
        if left and left["root"] and store.session(node.session_id).root == node.dialog_id:
            store.update_session(node.session_id, root=node.parent_id)
    return session.dialog(node.parent_id)


# --- merges -----------------------------------------------------------------------------------------------------------------------------


def merge(branch: OpenDialog, into: OpenDialog, summary: str | None = None) -> Handle:
    """Write into a dialog what happened on another branch; see `Session.merge`."""
    store, spans, others = branch.store, branch.spans(), into.spans()
    new = apart(apart(spans, others), _merged_before(store, others))
    view = view_of(store, branch.dialog_id, new)
    if not view.exchanges:
        raise InvalidInput(
            f"Branch {branch.dialog_id[:12]} has no entries that this dialog lacks and that were not merged before."
        )
    runs = ", ".join(f"{Handle(span.dialog, span.start)} to {Handle(span.dialog, span.stop - 1)}" for span in new)
    count = counted(len(view.exchanges), "exchange")
    head = f"[What happened on branch {branch.dialog_id[:12]}, {count}; recall {runs} for the originals]"
    text = f"{head}\n{record_of(view) if summary is None else summary}"
    entry = account(branch.dialog_id, last_of(common(spans, others)), text, new, lowest_trust(view.exchanges))
    return into.annotate(entry)


def record_of(view: View) -> str:
    """Return the record of a whole view: the human's messages, files, commands and the plan."""
    meter = context.Meter(tokens.counter(view.model))
    layout = context.Layout.of(view, tokens.Budget.of_input(_ROOM), meter)
    whole_view = context.record(layout.without(0, layout.end, Reason.FOLDED, keep=frozenset()))
    return whole_view.text.partition("\n")[2]  # without its first line, which counts the omissions of a view


def account(
    branch: DialogId, parted: Handle | None, text: str, sources: tuple[Span, ...], trust: Trust
) -> BranchSummary:
    """Return the entry of a text about a branch, with the fork point and the sources of the text."""
    return BranchSummary(
        summary=text,
        dialog=branch,
        left=None if parted is None else Place.of(parted),
        sources=tuple(map(Run.of, sources)),
        trust=trust.name.lower(),
    )


def view_of(reader: Reader, dialog_id: DialogId, spans: tuple[Span, ...]) -> View:
    """Return the view of only some entries of a dialog, without a policy."""
    alone = Node(dialog_id=DialogId("0" * 32), session_id=reader.node(dialog_id).session_id, ranges=spans)
    return Fold(reader, alone, whole=True).view(NOTHING)


def lowest_trust(exchanges: tuple[Exchange, ...]) -> Trust:
    """Return the lowest trust of the exchanges; without exchanges, the lowest trust of all."""
    return min((block.trust for exchange in exchanges for block in exchange.blocks()), default=Trust.OUTSIDE)


def _merged_before(reader: Reader, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return the entries that branch summaries already cover."""
    runs: list[Run] = []
    for span in spans:
        for header in reader.headers(span.dialog, span.start, span.stop):
            if header.kind == "branch_summary":
                entry = entry_at(reader, Handle(span.dialog, header.seq))
                runs += (entry.sources or ()) if isinstance(entry, BranchSummary) else ()
    return tuple(Span(run.dialog, run.start, run.stop) for run in runs)
