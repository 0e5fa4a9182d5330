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

_MOST = 12_000_000
"""Characters of blocks that one session may bring into a page; views that would bring more are left to the command that shows them."""


@dataclass(slots=True)
class Views:
    """The views of one session under several policies.

    Attributes:
        units: The blocks: what part of a view each is, who speaks, its handle, why it is shown in another form, and its words.
        views: By policy, for each call: with how many blocks of the view before it begins, and the numbers of those that follow.
        digests: By policy, the digest of each view, by which its row in the results is known.
        cut: Whether some views were left out because they are too large.
    """

    units: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    views: dict[str, list[tuple[int, list[int]]]] = field(default_factory=dict)
    digests: dict[str, list[str]] = field(default_factory=dict)
    cut: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Give the attributes as JSON values."""
        return {"units": self.units, "views": self.views, "digests": self.digests, "cut": self.cut}


def views_of(session: Session, entrants: Sequence[Entrant], stand_in: str, prices: Sheet) -> Views:
    """Replay a session under each policy, and keep what each call saw.

    Args:
        session: The session.
        entrants: The policies.
        stand_in: What stands for a model's summaries.
        prices: The prices.
    """
    found = Views()
    known: dict[tuple[str, str, str, str, str], int] = {}
    size = 0
    for entrant in entrants:
        views: list[tuple[int, list[int]]] = []
        digests: list[str] = []
        last: list[int] = []
        for dialog in measured(session, entrant, stand_in, prices):
            for step, row in dialog.each(session.row.session):
                numbers = []
                for unit in _units(step.view):
                    if unit not in known:
                        size += len(unit[4])
                        known[unit] = len(found.units)
                        found.units.append(unit)
                    numbers.append(known[unit])
                kept = next((at for at, (one, two) in enumerate(zip(last, numbers, strict=False)) if one != two), None)
                kept = min(len(last), len(numbers)) if kept is None else kept
                views.append((kept, numbers[kept:]))
                digests.append(row.digest)
                last = numbers
        found.views[entrant.name], found.digests[entrant.name] = views, digests
        if size > _MOST:
            found.cut = True
            break
    return found


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
