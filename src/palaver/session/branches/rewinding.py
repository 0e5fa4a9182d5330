"""Rewinding: going back to an entry, looked at before it is done, done as a fork, and undone by going back to where one was.

The log keeps everything: the branch that is left stays as it is, and what was said on either branch can be recalled from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from palaver.context.work import Deed, deed
from palaver.errors import Conflict, InvalidInput
from palaver.ids import DialogId
from palaver.log import NOTHING, Custom, Handle, Node, Span, child_of, draft
from palaver.messages import ToolCallContent
from palaver.plurals import counted
from palaver.session.branches.merging import exchanges_of
from palaver.session.branches.overview import message_line
from palaver.session.branches.paths import apart, node_of, upto
from palaver.session.calls.composing import tokens_of
from palaver.session.reading.recalling import whole
from palaver.session.reading.transcript import Messages, stretches
from palaver.store.protocol import Store
from palaver.view import Exchange, Folding, View

__all__ = ["REWIND", "Rewind", "Touched", "rewind", "undo_rewind"]

REWIND = "rewind"
"""The relation of a dialog that a rewind made to the one that was left."""

_FROM = "rewound"
"""Where such a dialog's node keeps what was left, so that it can be gone back to."""

_UNDONE = "palaver.rewind_undone"
"""The record on a dialog that was left and is gone on with again."""

_WIDTH = 96

Member = TypeVar("Member")


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A file that tools touched after the place that is gone back to. A rewind changes no file.

    Attributes:
        path: Its path, as the calls named it.
        wrote: Whether a call changed it; else it was read only.
        calls: The handles of those calls, the oldest first.
    """

    path: str
    wrote: bool
    calls: tuple[Handle, ...]


@dataclass(frozen=True, kw_only=True)
class Rewind(Generic[Member]):
    """A rewind that was looked at and is not done: `apply` does it.

    Attributes:
        dialog_id: The dialog.
        to: The last entry that stays; None where none does.
        kept: How many messages stay.
        leaving: The messages that leave.
        entries: How many entries leave.
        tokens_before: The size of the view as it is, in tokens of its model.
        tokens_after: Its size afterwards.
        returning: How many exchanges come back into the view, because the compaction that left them out leaves.
        files: The files that tools touched since, as the calls say.
        commands: The commands that were run since.
        interrupted: Ids of the calls that stay and lose their result.
    """

    dialog_id: DialogId
    to: Handle | None
    kept: int
    leaving: Messages
    entries: int
    tokens_before: int
    tokens_after: int
    returning: int
    files: tuple[Touched, ...]
    commands: tuple[str, ...]
    interrupted: tuple[str, ...]
    _do: Callable[[], Member] = field(repr=False, compare=False)

    def apply(self) -> Member:
        """Do it: the dialog that goes on from there. The one that was left stays as it is, and `undo_rewind` goes back to it.

        Raises:
            Conflict: Something was said since this was looked at.
        """
        return self._do()

    def __str__(self) -> str:
        """Say it for people."""
        return "\n".join(self.lines())

    def lines(self, width: int = _WIDTH) -> Iterator[str]:
        """Give the lines for people, words cut after `width` characters."""
        stay = counted(self.kept, "message stays", "messages stay")
        leave = counted(len(self.leaving), "leaves", "leave")
        yield f"Back to {self.to or 'the beginning'}: {stay}, {leave} ({counted(self.entries, 'entry')})."
        yield f"The view: {counted(self.tokens_before, 'token')} now, {self.tokens_after:,} then."
        for index, message in enumerate(self.leaving.bare(), self.kept):
            yield f"- {message_line(index, message, width)}"
        if self.returning:
            yield f"{counted(self.returning, 'exchange comes', 'exchanges come')} back that a compaction left out."
        if self.interrupted:
            yield f"Calls that lose their result: {', '.join(self.interrupted)}."
        for verb, chosen in (("wrote", True), ("read", False)):
            yield from (f"{verb} {one.path} [{one.calls[-1]}]" for one in self.files if one.wrote is chosen)
        yield from (f"ran {command}" for command in self.commands)
        if self.files or self.commands:
            yield "What tools did to files and elsewhere stays done."


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing(Generic[Member]):
    """A dialog as it stands before a rewind.

    Attributes:
        store: Where it lies.
        node: Its node.
        turn_head: The number of its newest turn-owned entry.
        last: The number of its newest entry.
        spans: All that it holds.
        view: Its view.
        adopt: Gives the object for the dialog that a rewind makes.
    """

    store: Store
    node: Node
    turn_head: int
    last: int
    spans: tuple[Span, ...]
    view: View
    adopt: Callable[[Node], Member]


def rewind(standing: Standing[Member], to: Handle | str | None) -> Rewind[Member]:
    """Look at what going back to an entry would do. Nothing is written.

    Args:
        standing: The dialog.
        to: The last entry that is to stay; None for none.

    Raises:
        UnknownHandle: The dialog does not hold it.
        InvalidInput: Nothing would leave.
    """
    store, node = standing.store, standing.node
    place = None if to is None else whole(store, node.session_id, to)._replace(block=None)
    kept = () if place is None else upto(standing.spans, place)
    gone = apart(standing.spans, kept)
    if not gone:
        which = "The dialog is empty" if place is None else f"{place} is the newest entry of the dialog"
        raise InvalidInput(f"{which}: nothing would leave.")
    after = Folding(store, node_of(node.session_id, kept)).view(NOTHING)
    done = tuple(_deeds(exchanges_of(store, node.session_id, _with_calls(standing.view, gone)), gone))
    inherited = stretches(store, kept)[1]
    return Rewind(
        dialog_id=node.dialog_id,
        to=place,
        kept=inherited,
        leaving=Messages(store, *stretches(store, gone)),
        entries=sum(map(len, gone)),
        tokens_before=tokens_of(standing.view, ""),
        tokens_after=tokens_of(after, ""),
        returning=len(_firsts(after) - _firsts(standing.view)),
        files=tuple(_files(done)),
        commands=tuple(dict.fromkeys(act.run for _, act in done if act.run)),
        interrupted=tuple(_interrupted(standing.view, after)),
        _do=partial(_done, standing, kept, inherited),
    )


def _firsts(view: View) -> set[Handle]:
    return {exchange.first for exchange in view.exchanges if exchange.first is not None}


def _with_calls(view: View, gone: Sequence[Span]) -> tuple[Span, ...]:
    """Give what leaves, and before it the exchanges that are parted: what a call did whose result leaves was done since, too."""
    stays = [apart(exchange.runs, gone) for exchange in view.exchanges]
    parted = (
        span for rest, exchange in zip(stays, view.exchanges, strict=True) if rest != exchange.runs for span in rest
    )
    return (*parted, *gone)


def _deeds(exchanges: Iterable[Exchange], gone: Sequence[Span]) -> Iterator[tuple[Handle, Deed]]:
    """Give what the calls did that leave, or whose result leaves, each with the handle of its call."""
    for exchange in exchanges:
        calls = [block for block in exchange.turns[0].blocks if isinstance(block.content, ToolCallContent)]
        answers = [block for turn in exchange.turns[1:] for block in turn.blocks]
        for call, answer in zip(calls, answers, strict=False):
            places = [place for place in (call.origin, answer.origin) if place is not None]
            if any(place in span for place in places for span in gone) and isinstance(call.content, ToolCallContent):
                yield Handle(places[0].dialog, places[0].seq), deed(call.content)


def _files(done: Iterable[tuple[Handle, Deed]]) -> Iterator[Touched]:
    """Give the files that were touched, in the order in which they first were."""
    found: dict[str, tuple[bool, list[Handle]]] = {}
    for place, act in done:
        for paths, wrote in ((act.read, False), (act.wrote, True)):
            for path in paths:
                before, calls = found.get(path, (False, []))
                found[path] = (before or wrote, [*calls, place])
    for path, (wrote, calls) in found.items():
        yield Touched(path=path, wrote=wrote, calls=tuple(calls))


def _interrupted(before: View, after: View) -> Iterator[str]:
    """Give the calls that have a result now and would have none."""
    answered = set(_without_result(before.exchanges))
    yield from (call for call in _without_result(after.exchanges) if call not in answered)


def _without_result(exchanges: Iterable[Exchange]) -> Iterator[str]:
    for exchange in exchanges:
        for turn in exchange.turns[1:]:
            yield from (str(getattr(block.content, "id", "")) for block in turn.blocks if block.derived)


def _done(standing: Standing[Member], kept: tuple[Span, ...], inherited: int) -> Member:
    """Make the dialog that goes on; it takes the place of the one to go on with where that is the one that is left."""
    store, left = standing.store, standing.node
    root = store.session(left.session_id).root == left.dialog_id
    about = {_FROM: {"dialog": left.dialog_id, "entry": standing.last, "root": root}}
    node = child_of(left, kept, inherited, relation=REWIND, metadata=about)
    with store.together():
        head = store.last(left.dialog_id).turn_head
        if head != standing.turn_head:
            raise Conflict(
                left.dialog_id, standing.turn_head, head, hint="Something was said since: reload, and look anew."
            )
        made = store.create_dialog(node)
        if root:
            store.update_session(left.session_id, root=made.dialog_id)
    return standing.adopt(made)


def undo_rewind(store: Store, node: Node) -> DialogId:
    """Go back to the dialog that a rewind left, and give its id. What was said since the rewind stays where it was said.

    Raises:
        InvalidInput: The dialog was not made by a rewind.
    """
    said = node.metadata.get(_FROM)
    if node.relation != REWIND or node.parent_id is None:
        raise InvalidInput(f"Dialog {node.dialog_id[:12]} was not made by a rewind: there is none to undo.")
    was_root = bool(said.get("root")) if hasattr(said, "get") else False
    ready, _ = draft(Custom(custom_type=_UNDONE, data={"dialog": node.dialog_id}))
    with store.together():
        store.annotate(node.parent_id, ready)  # it has the newest entry again, and is what a session resumes
        if was_root and store.session(node.session_id).root == node.dialog_id:
            store.update_session(node.session_id, root=node.parent_id)
    return node.parent_id
