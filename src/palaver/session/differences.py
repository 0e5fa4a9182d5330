"""Differences: between two model calls, and between two branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from palaver.ids import DialogId
from palaver.log import Handle, Span
from palaver.messages import Content
from palaver.plurals import counted
from palaver.session.calls import ModelCall
from palaver.session.messages import Messages, message_line, stretches
from palaver.session.tree import apart, common, newest
from palaver.store.protocol import Store
from palaver.view import Block, Omission, View
from palaver.wire import Request, broken_at, units

__all__ = ["BranchDifference", "CallDifference", "Difference", "Side", "branch_difference", "compare"]

_WIDTH = 96


# --- branches -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one of two branches holds and the other does not.

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
        """Return a line for each message: `-` before what only the first branch holds, `+` before what only the second does."""
        return "\n".join(self.lines())

    def lines(self, width: int = _WIDTH) -> Iterator[str]:
        """Yield the lines for people, texts cut after `width` characters."""
        shared = f"{counted(self.common, 'message')} in common, up to {self.ancestor}."
        yield shared if self.ancestor is not None else "Nothing in common."
        for sign, side in (("-", self.one), ("+", self.other)):
            messages, entries = counted(len(side.messages), "message"), counted(side.entries, "entry")
            yield f"{sign * 3} {side.dialog_id[:12]}: {messages}, {entries}"
            for index, message in enumerate(side.messages.bare()):
                yield f"{sign} {message_line(index, message, width)}"


def branch_difference(
    store: Store, one: DialogId, spans: Sequence[Span], other: DialogId, others: Sequence[Span]
) -> BranchDifference:
    """Compare two branches, each given by what it holds. Costs their forks, not their lengths."""
    shared = common(spans, others)

    def side(dialog_id: DialogId, alone: tuple[Span, ...]) -> Side:
        return Side(dialog_id=dialog_id, spans=alone, messages=Messages(store, *stretches(store, alone)))

    return BranchDifference(
        ancestor=newest(shared),
        common=stretches(store, shared)[1],
        one=side(one, apart(spans, others)),
        other=side(other, apart(others, spans)),
    )


# --- calls ----------------------------------------------------------------------------------------------------------------------------

Key: TypeAlias = Handle | tuple[str, Content, int]
"""What identifies a block in both views: its handle; or its label, its content, and its number among equals, where no entry holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One block that differs.

    Attributes:
        place: The block of the log; None for one that no entry holds.
        before: What the first call saw of it, or None.
        after: What the second call sees of it, or None.
        why: The reason, a clause that starts with a small letter.
    """

    place: Handle | None
    before: Content | None
    after: Content | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDifference:
    """How two calls differ.

    Attributes:
        entered: What only the second one sees.
        left: What only the first one saw.
        changed: What both see, in different forms.
        tools: The names of the tools whose declarations differ, each after a sign: `+` came, `-` went, `~` changed.
        kept: How many units of the first request the second begins with; a unit is its head (tools and instructions), then each block.
        broken: The first unit of the first request that the second does not repeat; None where it repeats all, or the providers differ.
        unit: What the second request has in its place: canonical bytes, or empty.
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


def compare(first: ModelCall | Request, second: ModelCall | Request) -> CallDifference:
    """Compare what two calls saw, and their requests; a request that is compiled again stands for a call that was not recorded.

    Raises:
        NotReproducible: One of them cannot be given back.
    """
    one, other = (each if isinstance(each, Request) else each.request() for each in (first, second))
    earlier, later = _view_of(one), _view_of(other)
    before, after = _blocks(earlier), _blocks(later)
    kept, broken, unit = _prefix(one, other)
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


def _view_of(request: Request) -> View:
    assert request.view is not None  # noqa: S101 - a call's request is compiled from its view
    return request.view


def _blocks(view: View) -> Mapping[Key, Block]:
    found: dict[Key, Block] = {}
    for block in (*view.system, *(block for exchange in view.exchanges for block in exchange.blocks())):
        key: Key = block.origin or (block.derived, block.content, 0)
        while key in found and not isinstance(key, Handle):
            key = (*key[:2], key[2] + 1)
        found[key] = block
    return found


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
    gone = _omission(key, earlier)
    return "new since" if gone is None else f"shown again: {_reason(gone)} before"


def _left(key: Key, block: Block, later: View) -> str:
    if not isinstance(key, Handle):
        return f"{block.derived or 'text of the loop'}, made for the earlier call"
    gone = _omission(key, later)
    return "on another branch, or replaced by something newer" if gone is None else _reason(gone)


def _changed(block: Block) -> str:
    return "whole again" if block.reason is None else block.reason.value.replace("_", " ")


def _omission(place: Handle, view: View) -> Omission | None:
    entry = place._replace(block=None)
    named = (gone for gone in view.omissions if gone.handle in {place, entry})
    return next(named, None) or next(
        (gone for gone in view.omissions if gone.span is not None and place in gone.span), None
    )


def _reason(gone: Omission) -> str:
    return f"{gone.reason.value.replace('_', ' ')} by {gone.by}"


def _tools(one: View, other: View) -> Iterator[str]:
    before, after = {tool.name: tool for tool in one.tools}, {tool.name: tool for tool in other.tools}
    yield from (f"-{name}" for name in before if name not in after)
    yield from (f"+{name}" for name in after if name not in before)
    yield from (f"~{name}" for name in after if name in before and before[name] != after[name])


def _prefix(first: Request, second: Request) -> tuple[int, bytes | None, bytes]:
    if first.profile.name != second.profile.name:
        return 0, None, b""
    earlier, later = units(first), units(second)
    place = broken_at(first, second)
    if place is None:
        return len(earlier), None, b""
    return place, earlier[place], later[place] if place < len(later) else b""
