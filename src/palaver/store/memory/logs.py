"""One dialog in memory: its node, its own entries, and what of them is indexed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from palaver.log import HOLDING, NOTHING, SOUGHT, Handle, Header, Node
from palaver.store import text
from palaver.store.protocol import Hit

__all__ = ["Log"]


@dataclass(slots=True)
class Log:
    """One dialog: its node and its own entries; `texts` holds what is indexed, in order."""

    node: Node
    headers: list[Header] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    holding: list[int] = field(init=False)
    sought: dict[str, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.holding = [header.seq for header in self.headers if header.kind in HOLDING]
        self.sought = {kind: [header.seq for header in self.headers if header.kind == kind] for kind in SOUGHT}

    def last(self) -> Header:
        """Give the newest header, `NOTHING` where there is none."""
        return self.headers[-1] if self.headers else NOTHING

    def cut(self, headers: int, texts: int) -> Log:
        """Forget what was added after there were so many."""
        del self.headers[headers:], self.bodies[headers:], self.texts[texts:]
        for places in (self.holding, *self.sought.values()):
            del places[bisect_left(places, headers) :]
        return self

    def among(self, places: Sequence[int], start: int, stop: int | None) -> Iterator[Header]:
        """Give the headers at some places within a range, the newest first."""
        found = places[bisect_left(places, start) : None if stop is None else bisect_left(places, stop)]
        return iter([self.headers[seq] for seq in reversed(found)])

    def add(self, header: Header, body: bytes) -> None:
        """Add an entry."""
        self.bodies.append(body)
        self.headers.append(header)
        if header.kind in HOLDING:
            self.holding.append(header.seq)
        if header.kind in SOUGHT:
            self.sought[header.kind].append(header.seq)

    def hits(self, wanted: Sequence[str]) -> Iterator[Hit]:
        """Give the entries whose indexed text holds all of some words."""
        for header, said in zip(self.headers, self.texts, strict=False):
            folded = said.casefold()
            if text.holds(folded, wanted):
                score = text.weight(folded, wanted)
                handle = Handle(self.node.dialog_id, header.seq)
                yield Hit(
                    handle=handle,
                    session_id=self.node.session_id,
                    kind=header.kind,
                    role=header.role,
                    snippet=text.snippet(said, wanted),
                    score=score,
                )
