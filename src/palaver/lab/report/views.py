"""The exact views of a session's calls, made again and written small: each block once, each view by what differs from the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from palaver.lab.entrants import Entrant
from palaver.lab.looks import part_of
from palaver.lab.prices import Sheet
from palaver.lab.sessions import Session, measured
from palaver.messages.said import words_of
from palaver.view import Block, View

__all__ = ["Views", "views_of"]


@dataclass(slots=True)
class Views:
    """The views of one session under several policies.

    Attributes:
        units: The blocks: what part of a view each is, who speaks, its handle, why it is shown in another form, and its words.
        views: By policy, for each call: with how many blocks of the view before it begins, and the numbers of those that follow.
        digests: By policy, the digest of each view, by which its row in the results is known.
        size: The characters of the blocks.
        cut: The policies of which views were left out because all together would have been too large.
    """

    units: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    views: dict[str, list[tuple[int, list[int]]]] = field(default_factory=dict)
    digests: dict[str, list[str]] = field(default_factory=dict)
    size: int = 0
    cut: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the attributes as JSON values."""
        return {"units": self.units, "views": self.views, "digests": self.digests}


def views_of(session: Session, entrants: Sequence[Entrant], stand_in: str, prices: Sheet, most: int) -> Views:
    """Replay a session under each policy, and keep what each call saw.

    Args:
        session: The session.
        entrants: The policies.
        stand_in: What stands for a model's summaries.
        prices: The prices.
        most: Characters of blocks that are kept at most; what would bring more is left to the command that shows it.
    """
    kept = _Kept(most)
    found = kept.found
    for number, entrant in enumerate(entrants):
        kept.begin(entrant.name)
        for dialog in measured(session, entrant, stand_in, prices):
            for step, row in dialog.each(session.row.session):
                if not kept.take(entrant.name, step.view, row.digest):
                    found.cut = tuple(each.name for each in entrants[number:])
                    return found
    return found


class _Kept:
    """Keeps views, one after the other, while they are small enough."""

    def __init__(self, most: int) -> None:
        self.found = Views()
        self._most = most
        self._known: dict[tuple[str, str, str, str, str], int] = {}
        self._last: list[int] = []

    def begin(self, policy: str) -> None:
        self.found.views[policy], self.found.digests[policy], self._last = [], [], []

    def take(self, policy: str, view: View, digest: str) -> bool:
        """Keep a view; tell whether there was room for it."""
        found, known, last = self.found, self._known, self._last
        numbers = []
        for unit in _units(view):
            if unit not in known:
                if found.size + len(unit[4]) > self._most:
                    return False
                found.size += len(unit[4])
                known[unit] = len(found.units)
                found.units.append(unit)
            numbers.append(known[unit])
        same = next((at for at, (one, two) in enumerate(zip(last, numbers, strict=False)) if one != two), None)
        same = min(len(last), len(numbers)) if same is None else same
        found.views[policy].append((same, numbers[same:]))
        found.digests[policy].append(digest)
        self._last = numbers
        return True


def _units(view: View) -> Iterator[tuple[str, str, str, str, str]]:
    for block in view.system:
        yield _unit("system", "instructions", block)
    if view.tools:
        yield "tools", "tools", "", "", "\n".join(f"{tool.name}: {tool.description}" for tool in view.tools)
    for exchange in view.exchanges:
        for turn in exchange.turns:
            for block in turn.blocks:
                said = f"{turn.role.value} · {block.derived}" if block.derived else turn.role.value
                yield _unit(part_of(exchange, turn.role, block), said, block)


def _unit(part: str, who: str, block: Block) -> tuple[str, str, str, str, str]:
    content = block.content
    words = words_of(content) or content.model_dump_json(exclude_defaults=True)
    place = "" if block.origin is None else str(block.origin)
    return part, f"{who} · {content.type}", place, "" if block.reason is None else block.reason.value, words
