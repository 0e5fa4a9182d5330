"""What two branches have in common, and what each of them holds alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from palaver.ids import DialogId
from palaver.log import Handle, Span
from palaver.plurals import counted
from palaver.session.branches.overview import message_line
from palaver.session.branches.paths import apart, common, newest
from palaver.session.reading.transcript import Messages, stretches
from palaver.store.protocol import Store

__all__ = ["BranchDifference", "Side", "difference"]

_WIDTH = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one of two branches holds and the other does not.

    Attributes:
        dialog_id: The branch.
        spans: The entries, in its order.
        messages: The messages in them; a read-only sequence that reads as it goes.
    """

    dialog_id: DialogId
    spans: tuple[Span, ...]
    messages: Messages

    @property
    def entries(self) -> int:
        """How many entries it holds alone."""
        return sum(map(len, self.spans))


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchDifference:
    """How two branches of a session differ. Falsy when they hold the same.

    Attributes:
        ancestor: The last entry that both begin with, or None when they begin differently.
        common: How many messages they begin with together.
        one: What the first branch holds alone.
        other: What the second branch holds alone.
    """

    ancestor: Handle | None
    common: int
    one: Side
    other: Side

    def __bool__(self) -> bool:
        return bool(self.one.spans or self.other.spans)

    def __str__(self) -> str:
        """Say it for people, a line a message: `-` stands before what only the first branch holds, `+` before what only the second does."""
        return "\n".join(self.lines())

    def lines(self, width: int = _WIDTH) -> Iterator[str]:
        """Give the lines for people, words cut after `width` characters."""
        where = (
            "Nothing in common"
            if self.ancestor is None
            else f"{counted(self.common, 'message')} in common, up to {self.ancestor}"
        )
        yield f"{where}."
        for sign, side in (("-", self.one), ("+", self.other)):
            yield f"{sign * 3} {side.dialog_id[:12]}: {counted(len(side.messages), 'message')}, {counted(side.entries, 'entry')}"
            for index, message in enumerate(side.messages.bare()):
                yield f"{sign} {message_line(index, message, width)}"


def difference(
    store: Store, one: DialogId, spans: Sequence[Span], other: DialogId, others: Sequence[Span]
) -> BranchDifference:
    """Compare two branches, each given by what it holds; costs their forks, not their lengths."""
    shared = common(spans, others)
    return BranchDifference(
        ancestor=newest(shared),
        common=stretches(store, shared)[1],
        one=_side(store, one, apart(spans, others)),
        other=_side(store, other, apart(others, spans)),
    )


def _side(store: Store, dialog_id: DialogId, spans: tuple[Span, ...]) -> Side:
    return Side(dialog_id=dialog_id, spans=spans, messages=Messages(store, *stretches(store, spans)))
