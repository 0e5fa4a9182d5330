"""Branches: rewind to an entry, and merge one branch into another. The log keeps every entry of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from palaver.errors import Conflict, InvalidInput
from palaver.ids import DialogId
from palaver.log import (
    NOTHING,
    BranchSummary,
    Custom,
    Handle,
    Node,
    Place,
    Reader,
    Run,
    Span,
    child_of,
    entry_at,
    stretches,
)
from palaver.messages import ToolCallContent, Trust, thaw
from palaver.plurals import counted
from palaver.session.messages import Messages, message_line
from palaver.session.recall import whole
from palaver.session.tree import apart, common, newest, runs_of, upto
from palaver.tokens import Budget, counter
from palaver.view import Exchange, Fold, Reason, View

if TYPE_CHECKING:
    from palaver.session.dialog import Dialog
    from palaver.session.session import Session

__all__ = ["REWIND", "Rewind", "account", "lowest_trust", "merge", "record_of", "rewind", "undo_rewind", "view_of"]

REWIND = "rewind"
"""The relation of a dialog that a rewind created to the original dialog."""

_FROM = "rewound"
"""The key in such a dialog's metadata that names the original dialog."""

_UNDONE = "palaver.rewind_undone"
_WIDTH = 96
_ROOM = 4_000
"""The window in tokens for which a branch's record is made. The record gets a fraction of it, and everything in it can be recalled."""


@dataclass(frozen=True, kw_only=True)
class Rewind:
    """A previewed rewind; `apply` performs it.

    Attributes:
        dialog_id: The dialog.
        to: The last entry that stays, or None.
        kept: The number of messages that stay.
        leaving: The messages that leave.
        entries: The number of entries that leave.
        files: Files that calls among them touched, by the calls' arguments. A rewind changes no file.
    """

    dialog_id: DialogId
    to: Handle | None
    kept: int
    leaving: Messages
    entries: int
    files: tuple[str, ...]
    _spans: tuple[Span, ...] = field(repr=False)
    _session: Session = field(repr=False, compare=False)
    _turn_head: int = field(repr=False)

    def apply(self) -> Dialog:
        """Rewind, and return the dialog that continues from there. The original dialog stays unchanged; `Session.undo_rewind` returns to it.

        Raises:
            Conflict: The dialog grew after the preview.
        """
        store, left = self._session.store, self._session.store.node(self.dialog_id)
        root = store.session(left.session_id).root == left.dialog_id
        about = {_FROM: {"dialog": left.dialog_id, "root": root}}
        node = child_of(left, self._spans, self.kept, relation=REWIND, metadata=about)
        with store.transaction():
            actual = store.last(left.dialog_id).turn_head
            if actual != self._turn_head:
                raise Conflict(left.dialog_id, self._turn_head, actual, hint="Reload the dialog, and preview again.")
            made = self._session._new_node(node)
            if root:
                store.update_session(left.session_id, root=made.dialog_id)
        return self._session.dialog(made.dialog_id)

    def lines(self, width: int = _WIDTH) -> Iterator[str]:
        """Yield lines for people, with texts cut after `width` characters."""
        stay = counted(self.kept, "message stays", "messages stay")
        leave = counted(len(self.leaving), "leaves", "leave")
        yield f"Back to {self.to or 'the beginning'}: {stay}, {leave} ({counted(self.entries, 'entry')})."
        for index, message in enumerate(self.leaving.bare(), self.kept):
            yield f"- {message_line(index, message, width)}"
        if self.files:
            yield f"Files stay as they are: {', '.join(self.files)}."

    def __str__(self) -> str:
        return "\n".join(self.lines())


def rewind(session: Session, dialog: Dialog, to: Handle | str | None) -> Rewind:
    """Preview going back to an entry; see `Session.rewind`."""
    store = session.store
    dialog.reload()
    held = dialog._spans()
    place = None if to is None else whole(store, dialog.session_id, to)._replace(block=None)
    kept = () if place is None else upto(held, place)
    gone = apart(held, kept)
    if not gone:
        raise InvalidInput(f"Nothing would leave: {place or 'nothing'} is the end of the dialog.")
    leaving = Messages(store, *stretches(store, gone))
    return Rewind(
        dialog_id=dialog.dialog_id,
        to=place,
        kept=stretches(store, kept)[1],
        leaving=leaving,
        entries=sum(map(len, gone)),
        files=tuple(dict.fromkeys(_files(leaving))),
        _spans=kept,
        _session=session,
        _turn_head=store.last(dialog.dialog_id).turn_head,
    )


def _files(messages: Messages) -> Iterator[str]:
    from palaver.context.tool_effects import effect  # noqa: PLC0415 - as in `record_of`

    for message in messages.bare():
        for block in message.contents:
            if isinstance(block, ToolCallContent):
                done = effect(block.name, thaw(block.args))
                yield from (*done.reads, *done.writes)


def undo_rewind(session: Session, dialog: Dialog) -> Dialog:
    """Return to the dialog before a rewind; see `Session.undo_rewind`."""
    store, node = session.store, session.store.node(dialog.dialog_id)
    if node.relation != REWIND or node.parent_id is None:
        raise InvalidInput(f"Dialog {node.dialog_id[:12]} was not made by a rewind.")
    left: Any = node.metadata.get(_FROM)
    back = Custom(custom_type=_UNDONE, data={"dialog": node.dialog_id})
    with store.transaction():
        parent = session.dialog(node.parent_id)
        parent.record(back, beside=True)  # now it has the newest entry again
        if left and left["root"] and store.session(node.session_id).root == node.dialog_id:
            store.update_session(node.session_id, root=node.parent_id)
    return parent.reload()


# --- merging ------------------------------------------------------------------------------------------------------------------------------


def merge(branch: Dialog, into: Dialog, summary: str | None = None) -> Handle:
    """Write into a dialog what happened on another branch; see `Session.merge`."""
    if (branch.store, branch.session_id) != (into.store, into.session_id):
        raise InvalidInput(f"Dialog {branch.dialog_id[:12]} is not part of session {into.session_id[:12]}.")
    store, spans, others = branch.store, branch._spans(), into._spans()
    new = apart(apart(spans, others), _told_before(store, others))
    view = view_of(store, branch.dialog_id, new)
    if not view.exchanges:
        raise InvalidInput(
            f"Branch {branch.dialog_id[:12]} has no entries that this dialog lacks and that were not merged before."
        )
    runs = ", ".join(f"{Handle(span.dialog, span.start)} to {Handle(span.dialog, span.stop - 1)}" for span in new)
    count = counted(len(view.exchanges), "exchange")
    head = f"[What happened on branch {branch.dialog_id[:12]}, {count}; recall {runs} for the originals]"
    text = f"{head}\n{record_of(view) if summary is None else summary}"
    entry = account(branch.dialog_id, newest(common(spans, others)), text, new, lowest_trust(view.exchanges))
    return into.record(entry, beside=True)[0]


def record_of(view: View) -> str:
    """Return the record of a whole view: the human's messages, files, commands and the plan."""
    from palaver.context.layout import Layout  # noqa: PLC0415 - a rewind needs no context manager
    from palaver.context.meter import Meter  # noqa: PLC0415 - as above
    from palaver.context.record import record  # noqa: PLC0415 - as above

    layout = Layout.of(view, Budget.of_input(_ROOM), Meter(counter(view.model)))
    told = record(layout.without(0, layout.end, Reason.FOLDED, keep=frozenset()))
    return told.text.partition("\n")[2]  # without its first line, which counts the omissions of a view


def account(
    branch: DialogId, parted: Handle | None, text: str, sources: tuple[Span, ...], trust: Trust
) -> BranchSummary:
    """Return the entry of a text about a branch, with the fork point and the sources of the text."""
    return BranchSummary(
        summary=text,
        dialog=branch,
        left=None if parted is None else Place(dialog=parted.dialog, seq=parted.seq),
        sources=runs_of(sources),
        trust=trust.name.lower(),
    )


def view_of(reader: Reader, dialog_id: DialogId, spans: tuple[Span, ...]) -> View:
    """Return the view of only some entries of a dialog, without a policy."""
    alone = Node(dialog_id=DialogId("0" * 32), session_id=reader.node(dialog_id).session_id, ranges=spans)
    return Fold(reader, alone, whole=True).view(NOTHING)


def lowest_trust(exchanges: tuple[Exchange, ...]) -> Trust:
    """Return the lowest trust of the exchanges; without exchanges, the lowest trust of all."""
    return min((block.trust for exchange in exchanges for block in exchange.blocks()), default=Trust.OUTSIDE)


def _told_before(reader: Reader, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return the entries that branch summaries already cover."""
    found: list[Run] = []
    for span in spans:
        for header in reader.headers(span.dialog, span.start, span.stop):
            if header.kind == "branch_summary":
                entry = entry_at(reader, Handle(span.dialog, header.seq))
                found += (entry.sources or ()) if isinstance(entry, BranchSummary) else ()
    return tuple(Span(run.dialog, run.start, run.stop) for run in found)
