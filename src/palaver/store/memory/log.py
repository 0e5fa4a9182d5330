"""One dialog in memory: its node, its own entries, and what of them is indexed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field

from palaver.log import NOTHING, Header, Node
from palaver.store.records import UNLISTED

__all__ = ["Log"]


@dataclass(slots=True)
class Log:
    """One dialog: its node, its own entries, the numbers of its entries by kind, and its indexed texts in order."""

    node: Node
    headers: list[Header] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    kinds: dict[str, list[int]] = field(default_factory=dict)
    texts: list[tuple[int, str]] = field(default_factory=list)

    @property
    def last(self) -> Header:
        """The newest header, `NOTHING` when there is none."""
        return self.headers[-1] if self.headers else NOTHING

    def add(self, header: Header, body: bytes) -> None:
        """Add an entry."""
        self.bodies.append(body)
        self.headers.append(header)
        if header.kind not in UNLISTED:
            self.kinds.setdefault(header.kind, []).append(header.seq)

    def cut(self, length: int) -> None:
        """Remove the entries from a number on."""
        del self.headers[length:], self.bodies[length:]
        for numbers in self.kinds.values():
            del numbers[bisect_left(numbers, length) :]

    def of_kinds(self, kinds: Collection[str], start: int, stop: int | None) -> list[Header]:
        """Return headers of some kinds, newest first."""
        found = sorted((seq for kind in kinds for seq in self.kinds.get(kind, ())), reverse=True)
        return [self.headers[seq] for seq in found if start <= seq and (stop is None or seq < stop)]
