"""Differences: between two model calls, and between two branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from palaver import wire
from palaver.ids import DialogId
from palaver.log import Handle, Span, apart, common, last_of, messages_in
from palaver.messages import Content
from palaver.plurals import counted
from palaver.session.calls import ModelCall
from palaver.session.messages import Messages, placed_line
from palaver.session.opened import OpenDialog
from palaver.view import Block, Omission, View

_WIDTH = 96


# --- branches -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The part of one branch that another branch lacks.

    Attributes:
        dialog_id: The branch.
        spans: The entries, in its order.
        messages: The messages in them.
    """

    dialog_id: DialogId
    spans: tuple[Span, ...]
    messages: Messages

    @property
    def entries(self) -> int:
        """The number of entries that only this branch has."""
        return sum(map(len, self.spans))


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchDifference:
    """The differences between two branches of a session. Falsy if there are none.

    Attributes:
        ancestor: The last common entry, or None.
        common: The number of common messages.
        one: The part that only the first branch has.
        other: The part that only the second branch has.
    """

    ancestor: Handle | None
    common: int
    one: Side
    other: Side

    def __bool__(self) -> bool:
        return bool(self.one.spans or self.other.spans)

    def __str__(self) -> str:
        """Return a line for each message: `-` before those only in the first branch, `+` before those only in the second."""
        return "\n".join(self.lines())

    def lines(self, width: int = _WIDTH) -> Iterator[str]:
        """Yield lines for people, with texts cut after `width` characters."""
        shared = f"{counted(self.common, 'message')} in common, up to {self.ancestor}."
        yield shared if self.ancestor is not None else "Nothing in common."
        for sign, side in (("-", self.one), ("+", self.other)):
            messages, entries = counted(len(side.messages), "message"), counted(side.entries, "entry")
            yield f"{sign * 3} {side.dialog_id[:12]}: {messages}, {entries}"
            for place, message in side.messages.placed():
                yield f"{sign} {placed_line(place, message, width)}"


def branch_difference(first: OpenDialog, second: OpenDialog) -> BranchDifference:
    """Compare two branches. The cost depends on their forks, not their lengths."""
    spans, others = first.spans(), second.spans()
    shared = common(spans, others)
    return BranchDifference(
        ancestor=last_of(shared),
        common=messages_in(first.store, shared),
        one=_side(first, apart(spans, others)),
        other=_side(second, apart(others, spans)),
    )


def _side(dialog: OpenDialog, alone: tuple[Span, ...]) -> Side:
    return Side(dialog_id=dialog.dialog_id, spans=alone, messages=Messages.of(dialog.store, alone))


# --- calls ----------------------------------------------------------------------------------------------------------------------------

Key: TypeAlias = Handle | tuple[str, Content, int]
"""The key of a block in both views: its handle or, without an entry, its label, its content, and its number among equals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One block that differs.

    Attributes:
        place: The handle of the block; None for one without an entry.
        before: The block as the first call saw it, or None.
        after: The block as the second call sees it, or None.
        why: The reason, a clause in lower case.
    """

    place: Handle | None
    before: Content | None
    after: Content | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDifference:
    """The differences between two calls.

    Attributes:
        entered: Blocks that only the second call sees.
        left: Blocks that only the first call saw.
        changed: Blocks that both see in different forms.
        tools: The names of tools whose declarations differ, each after a sign: `+` added, `-` removed, `~` changed.
        kept: The number of leading units that the requests share. The first unit is the head (tools and instructions); each block is one.
        broken: The first unit of the first request that the second does not repeat; None if it repeats all, or the models differ.
        unit: The second request's unit there: canonical bytes, or empty.
    """

    entered: tuple[Difference, ...]
    left: tuple[Difference, ...]
    changed: tuple[Difference, ...]
    tools: tuple[str, ...]
    kept: int
    broken: bytes | None
    unit: bytes

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(self.entered or self.left or self.changed or self.tools or self.broken)


def compare(first: ModelCall | wire.Request, second: ModelCall | wire.Request) -> CallDifference:
    """Compare the views and requests of two calls. For a call that was not recorded, pass a recompiled request.

    Raises:
        NotReproducible: A call cannot be rebuilt.
    """
    sent, resent = (call if isinstance(call, wire.Request) else call.request() for call in (first, second))
    earlier, later = _view_of(sent), _view_of(resent)
    before, after = _blocks(earlier), _blocks(later)
    kept, broken, unit = _prefix(sent, resent)
    both = [key for key in before if key in after and after[key].content != before[key].content]
    return CallDifference(
        entered=tuple(
            _difference(key, None, after[key], _entered(key, after[key], earlier)) for key in after if key not in before
        ),
        left=tuple(
            _difference(key, before[key], None, _left(key, before[key], later)) for key in before if key not in after
        ),
        changed=tuple(_difference(key, before[key], after[key], _changed(after[key])) for key in both),
        tools=tuple(_tools(earlier, later)),
        kept=kept,
        broken=broken,
        unit=unit,
    )


def _view_of(request: wire.Request) -> View:
    assert request.view is not None  # noqa: S101 - a call's request is compiled from its view
    return request.view


def _blocks(view: View) -> Mapping[Key, Block]:
    blocks: dict[Key, Block] = {}
    for block in (*view.system, *(block for exchange in view.exchanges for block in exchange.blocks())):
        key: Key = block.origin or (block.derived, block.content, 0)
        while key in blocks and not isinstance(key, Handle):  # equal texts without an entry differ by number
            key = (*key[:2], key[2] + 1)
        blocks[key] = block
    return blocks


def _difference(key: Key, before: Block | None, after: Block | None, why: str) -> Difference:
    return Difference(
        place=key if isinstance(key, Handle) else None,
        before=None if before is None else before.content,
        after=None if after is None else after.content,
        why=why,
    )


def _entered(key: Key, block: Block, earlier: View) -> str:
    if not isinstance(key, Handle):
        return f"{block.derived or 'text of the loop'}, made for this call"
    gone = earlier.omission(key)
    return "new since" if gone is None else f"shown again: {_reason(gone)} before"


def _left(key: Key, block: Block, later: View) -> str:
    if not isinstance(key, Handle):
        return f"{block.derived or 'text of the loop'}, made for the earlier call"
    if (gone := later.omission(key)) is not None:
        return _reason(gone)
    after = key.dialog == later.dialog_id and key.seq > later.at
    return "said after the second call" if after else "on another branch, or replaced by something newer"


def _changed(block: Block) -> str:
    return "whole again" if block.reason is None else block.reason.value.replace("_", " ")


def _reason(gone: Omission) -> str:
    return f"{gone.reason.value.replace('_', ' ')} by {gone.by}"


def _tools(earlier: View, later: View) -> Iterator[str]:
    before, after = {tool.name: tool for tool in earlier.tools}, {tool.name: tool for tool in later.tools}
    yield from (f"-{name}" for name in before if name not in after)
    yield from (f"+{name}" for name in after if name not in before)
    yield from (f"~{name}" for name in after if name in before and before[name] != after[name])


def _prefix(first: wire.Request, second: wire.Request) -> tuple[int, bytes | None, bytes]:
    if (first.profile.name, first.model) != (second.profile.name, second.model):  # each model has a cache of its own
        return 0, None, b""
    earlier, later = wire.units(first), wire.units(second)
    place = wire.broken_at(first, second)
    if place is None:
        return len(earlier), None, b""
    return place, earlier[place], later[place] if place < len(later) else b""
