"""How a session was found, and how much of it is there: counted when someone asks, proven on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from palaver.ids import DialogId, SessionId
from palaver.log import Handle, Node
from palaver.plurals import counted
from palaver.store.protocol import Store

__all__ = ["Extent", "Opened", "extent_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How many entries a session has, and how many of them can be reached.

    Attributes:
        dialogs: The number of its dialogs.
        total: The number of its entries.
        reachable: Entries of dialogs whose ancestors are all there, without those in `damaged`.
        damaged: Entries whose bytes are missing or not what was written; looked for only when `verified`.
        verified: Whether every entry's bytes were read and compared with their digest.
    """

    dialogs: int
    total: int
    reachable: int
    damaged: tuple[Handle, ...] = ()
    verified: bool = False

    @property
    def unreachable(self) -> int:
        """The number of entries that cannot be reached."""
        return self.total - self.reachable


@dataclass(frozen=True, kw_only=True)
class Opened:
    """How a session was found, and how much of it is there.

    Attributes:
        by: `id`, `name` or `prefix`.
        others: How many other sessions have the same name; the one opened is the latest.
        count: Counts the session's entries.
    """

    by: str
    others: int = 0
    count: Callable[[], Extent] = field(repr=False, compare=False)

    @cached_property
    def extent(self) -> Extent:
        """How many entries it has and how many can be reached, as of when this was first asked for: opening need not wait for it."""
        return self.count()

    def __str__(self) -> str:
        """Say it in a sentence."""
        which = f", the latest of {self.others + 1}" if self.others else ""
        lost = f", {self.extent.unreachable} of them unreachable" if self.extent.unreachable else ""
        return f"Opened by {self.by}{which}: {counted(self.extent.total, 'entry')} in {counted(self.extent.dialogs, 'dialog')}{lost}."


def extent_of(store: Store, session_id: SessionId, *, verify: bool) -> Extent:
    """Count a session's entries: one header a dialog, or every byte when `verify` is true; in constant memory for each dialog."""
    nodes = store.nodes(session_id)
    lengths = {node.dialog_id: store.last(node.dialog_id).seq + 1 for node in nodes}
    known = {node.dialog_id: node for node in nodes}
    damaged = [Handle(one, seq) for one in lengths for seq in store.verify(one)] if verify else []
    cut_off = {node.dialog_id for node in nodes if not _stands(node, known, lengths)}
    lost = sum(lengths[one] for one in cut_off) + sum(handle.dialog not in cut_off for handle in damaged)
    total = sum(lengths.values())
    return Extent(dialogs=len(nodes), total=total, reachable=total - lost, damaged=tuple(damaged), verified=verify)


def _stands(node: Node, known: Mapping[DialogId, Node], lengths: Mapping[DialogId, int]) -> bool:
    """Tell whether all that a dialog shares with its ancestors is there."""
    parent = node.parent_id is None or node.parent_id in known
    return parent and all(span.stop <= lengths.get(span.dialog, 0) for span in node.ranges)
