"""What differs between two model calls: what entered, what left and why, what is shown otherwise, and where the cached prefix broke."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from palaver.log import Handle
from palaver.messages import Content
from palaver.session.calls.invocations import ModelCall
from palaver.view import Block, Omission, View
from palaver.wire import Request, broken_at, units

__all__ = ["CallDifference", "Difference", "compare"]

Key: TypeAlias = Handle | tuple[str, Content, int]
"""What names a block in both views: its place in the log; or what it is and says, and the how manyeth of that it is, where no entry holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One block that differs.

    Attributes:
        place: The block of the log; None for what no entry holds.
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
    """What differs between two calls.

    Attributes:
        entered: What only the second one sees.
        left: What only the first one saw.
        changed: What both see, in different forms.
        tools: The names of the tools whose declarations differ, each after a sign: `+` came, `-` went, `~` changed.
        kept: How many units of the first request the second begins with; a unit is its head (tools and instructions), then each block.
        broken: The first unit of the first request that does not stand in its place in the second; None where the second goes on from
            the first, or where they are for different providers.
        unit: What the provider finds in the broken unit's place instead: its canonical bytes, or empty.
    """

    entered: tuple[Difference, ...]
    left: tuple[Difference, ...]
    changed: tuple[Difference, ...]
    tools: tuple[str, ...]
    kept: int
    broken: bytes | None
    unit: bytes

    def __bool__(self) -> bool:
        """Tell whether anything differs."""
        return bool(self.entered or self.left or self.changed or self.tools or self.broken)


def compare(first: ModelCall, second: ModelCall) -> CallDifference:
    """Compare what two calls saw, and their requests.

    Raises:
        NotReproducible: One of them cannot be given back.
    """
    one, other = first.view(), second.view()
    before, after = _blocks(one), _blocks(other)
    kept, broken, unit = _prefix(first.request(), second.request())
    return CallDifference(
        entered=tuple(
            _difference(key, None, block, _entered(key, block, one))
            for key, block in after.items()
            if key not in before
        ),
        left=tuple(
            _difference(key, block, None, _left(key, block, other)) for key, block in before.items() if key not in after
        ),
        changed=tuple(
            _difference(key, block, after[key], _changed(after[key]))
            for key, block in before.items()
            if key in after and after[key].content != block.content
        ),
        tools=tuple(_tools(one, other)),
        kept=kept,
        broken=broken,
        unit=unit,
    )


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
        return f"{block.derived or 'words of the loop'}, made for this call"
    gone = _omission(key, earlier)
    return "said since" if gone is None else f"it is back: {_reason(gone)} before"


def _left(key: Key, block: Block, later: View) -> str:
    if not isinstance(key, Handle):
        return f"{block.derived or 'words of the loop'}, made for the earlier call"
    gone = _omission(key, later)
    return "it stands on another branch, or something newer is in force" if gone is None else _reason(gone)


def _changed(block: Block) -> str:
    return "it is whole again" if block.reason is None else block.reason.value.replace("_", " ")


def _omission(place: Handle, view: View) -> Omission | None:
    return next(
        (
            gone
            for gone in view.omissions
            if gone.handle in {place, Handle(place.dialog, place.seq)} or (gone.span is not None and place in gone.span)
        ),
        None,
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
