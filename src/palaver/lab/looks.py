"""Measure exchanges once, and views incrementally from call to call.

From one call to the next, little of a view changes. So an exchange is measured once for all views and policies. A view's sums are those of the
previous view, minus the exchanges that left, plus those that entered: measuring all views of a session costs only the changes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar

from palaver.context import Meter
from palaver.lab.results import PARTS
from palaver.lab.things import Things, words
from palaver.log import Span, places
from palaver.messages import Role, canonical_json
from palaver.view import Block, Exchange, Reason, View

_PLACE = {name: index for index, name in enumerate(PARTS)}
_OF_ROLE = {Role.USER: "user", Role.SYSTEM: "user", Role.ASSISTANT: "assistant", Role.TOOL: "results"}
_NOTICE = "notice"
_Thing = TypeVar("_Thing")
_HANDLES = re.compile(r"\b[0-9a-f]{12}:\d{1,12}(?:[,-]\d{1,12})*\b")
"""Handles as a record prints them: one entry, or several entries and spans of one dialog."""


@dataclass(frozen=True, slots=True)
class Look:
    """The measurements of an exchange.

    Attributes:
        tokens: Its size.
        parts: The size by purpose, in the order of `PARTS`.
        units: The digest and tokens of each block, as the provider's cache reads them.
        names: The identifiers in it.
        evidence: The identifiers that it shows as content: in a block as recorded, or in a passage of the log.
        places: The entries whose handles its derived texts name: the first 12 digits of the dialog, and the number.
        digest: The digest of its blocks.
    """

    tokens: int
    parts: tuple[int, ...]
    units: tuple[tuple[bytes, int], ...]
    names: frozenset[str]
    evidence: frozenset[str]
    places: frozenset[tuple[str, int]]
    digest: bytes


class Looks:
    """Measures the exchanges of one dialog, each once."""

    def __init__(self, things: Things, meter: Meter) -> None:
        """Set the references to find and the meter."""
        self.things = things
        self.meter = meter
        self._known: dict[int, tuple[Exchange, Look]] = {}
        self._contents: dict[int, tuple[object, bytes, frozenset[str]]] = {}
        self._odd = frozenset((block.origin, self._content(block)[0]) for block in things.odd)

    def of(self, exchange: Exchange) -> Look:
        """Measure an exchange."""
        found = self._known.get(id(exchange))
        if found is None:
            # the exchange is kept alive, so that its id is not reused
            found = self._known[id(exchange)] = (exchange, self._look(exchange))
        return found[1]

    def system(self, view: View) -> Look:
        """Measure the instructions of a view, as if they were an exchange."""
        size = self.meter.view(replace(view, exchanges=()))
        parts = [0] * len(PARTS)
        parts[_PLACE["system"]] = size.request + size.instructions
        parts[_PLACE["tools"]] = size.tools
        blocks = view.system
        digest = sha256(b"".join(self._content(block)[0] for block in blocks)).digest()
        declared = sha256(canonical_json([[tool.name, tool.description] for tool in view.tools])).digest()
        return Look(
            tokens=size.total,
            parts=tuple(parts),
            units=((declared + digest, size.total),),
            names=frozenset(name for block in blocks for name in self._content(block)[1]),
            evidence=frozenset(name for block in blocks for name in self._evidence(block)),
            places=frozenset(),
            digest=declared + digest,
        )

    def holding(self, blocks: Iterable[Block], names: Collection[str]) -> tuple[int, frozenset[str]]:
        """Return the result of recalling identifiers: the tokens of the blocks that contain any of them, and all identifiers in those blocks."""
        wanted = frozenset(names)
        held = [block for block in blocks if not wanted.isdisjoint(self._content(block)[1])]
        return (
            sum(self.meter.block(block.content) for block in held),
            frozenset[str]().union(*(self._content(block)[1] for block in held)),
        )

    def _content(self, block: Block) -> tuple[bytes, frozenset[str]]:
        """Return the digest of a block's content, and the identifiers in it."""
        found = self._contents.get(id(block.content))
        if found is None:
            said = canonical_json(block.content)
            names = self.things.names.found(words(block.content))
            found = self._contents[id(block.content)] = (block.content, sha256(said).digest(), names)
        return found[1], found[2]

    def _evidence(self, block: Block) -> frozenset[str]:
        """Return the identifiers that a block shows as content (`palaver.lab.metrics.passages`)."""
        digest, named = self._content(block)
        as_said = block.origin is not None and block.reason is None and not block.derived
        if not named or as_said or (block.origin, digest) in self._odd:
            return named
        return named & self.things.quoted.names(words(block.content))

    def _look(self, exchange: Exchange) -> Look:
        tokens = self.meter.exchange(exchange)
        parts = [0] * len(PARTS)
        units, names, evidence = [], set[str](), set[str]()
        for turn in exchange.turns:
            for block in turn.blocks:
                size = self.meter.block(block.content)
                parts[_PLACE[part_of(exchange, turn.role, block)]] += size
                digest, named = self._content(block)
                units.append((turn.role.value.encode() + digest, size))
                names |= named
                evidence |= self._evidence(block)
        around = tokens - sum(parts)  # overhead around messages counts for the first part of the exchange
        if units:
            first = exchange.turns[0]
            parts[_PLACE[part_of(exchange, first.role, first.blocks[0])]] += around
            units[0] = (units[0][0], units[0][1] + around)
        return Look(
            tokens=tokens,
            parts=tuple(parts),
            units=tuple(units),
            names=frozenset(names),
            evidence=frozenset(evidence),
            places=frozenset(_named_places(exchange)) if exchange.derived else frozenset(),
            digest=sha256(b"".join(unit for unit, _ in units)).digest(),
        )


def _named_places(exchange: Exchange) -> Iterator[tuple[str, int]]:
    for block in exchange.blocks():
        for found in _HANDLES.finditer(words(block.content)):
            for named in places(found[0]):
                numbers = range(named.start, named.stop) if isinstance(named, Span) else (named.seq,)
                yield from ((named.dialog, number) for number in numbers)


def part_of(exchange: Exchange, role: Role, block: Block) -> str:
    """Return the purpose of a block, one of `PARTS`."""
    if block.derived == _NOTICE or (block.reason is not None and block.reason is not Reason.UNPAIRED):
        return "placeholders"
    if exchange.derived:
        return "summaries"
    return _OF_ROLE.get(role, "user")


class ShownParts:
    """The measurements of one replay's views, from call to call.

    Attributes:
        tokens: The size of the view.
        parts: The size by purpose, in the order of `PARTS`.
        stable: The number of leading tokens that the view shares with the previous one.
        goes_on: Whether it begins with the whole previous view.
        entered: Whether there was a previous view.
    """

    def __init__(self, looks: Looks) -> None:
        """Start without a view."""
        self.looks = looks
        self.tokens = 0
        self.parts = [0] * len(PARTS)
        self.stable = 0
        self.goes_on = True
        self.before = 0
        self._head: View | None = None
        self._system: Look | None = None
        self._exchanges: tuple[Exchange, ...] = ()
        self._ends: list[int] = []
        self._names: Counter[str] = Counter()
        self._evidence: Counter[str] = Counter()

    def take(self, view: View) -> tuple[Exchange, ...]:
        """Continue with the next view, and return its exchanges. Unchanged exchanges are the same objects as before."""
        self.before = self.tokens
        same_head = self._headed(view)
        shown = self._known(view.exchanges)
        old = self._exchanges
        place = 0
        most = min(len(old), len(shown))
        while place < most and shown[place] is old[place]:
            place += 1
        self._compare(shown, place, same_head=same_head)
        for exchange in old[place:]:
            self._count(self.looks.of(exchange), -1)
        del self._ends[place:]
        for exchange in shown[place:]:
            look = self.looks.of(exchange)
            self._count(look, 1)
            self._ends.append((self._ends[-1] if self._ends else 0) + look.tokens)
        self._exchanges = shown
        return shown

    def _headed(self, view: View) -> bool:
        """Read the instructions and tools. Return whether they equal those of the previous view."""
        head = self._head
        if head is not None and head.system == view.system and head.tools == view.tools:
            return True
        if self._system is not None:
            self._count(self._system, -1)
        self._head, self._system = view, self.looks.system(view)
        self._count(self._system, 1)
        return False

    def _known(self, exchanges: tuple[Exchange, ...]) -> tuple[Exchange, ...]:
        """Return the exchanges of a view. Those that equal an exchange of the previous view are the same objects."""
        old = self._exchanges
        if not old or all(one is other for one, other in zip(old, exchanges, strict=False)):
            return exchanges
        known: dict[object, Exchange] = {_key(each): each for each in old}
        return tuple(
            found if (found := known.get(_key(each))) is not None and (found is each or found == each) else each
            for each in exchanges
        )

    def _compare(self, shown: Sequence[Exchange], place: int, *, same_head: bool) -> None:
        """Compute how much of the view repeats the previous one; from `place` on the exchanges differ."""
        old, look = self._exchanges, self.looks.of
        most = min(len(old), len(shown))
        while place < most and look(old[place]).units == look(shown[place]).units:
            place += 1  # such as an exchange that was pinned meanwhile
        self.goes_on = same_head and place == len(old)
        self.stable = 0
        if not same_head or self._system is None:
            return
        self.stable = self._system.tokens + (self._ends[place - 1] if place else 0)
        if place < most:
            for one, other in zip(look(old[place]).units, look(shown[place]).units, strict=False):
                if one != other:
                    break
                self.stable += other[1]

    def _count(self, look: Look, by: int) -> None:
        self.tokens += by * look.tokens
        for index, tokens in enumerate(look.parts):
            self.parts[index] += by * tokens
        _add(self._names, look.names, by)
        _add(self._evidence, look.evidence, by)

    def holds(self, name: str) -> bool:
        """Return whether the view contains an identifier."""
        return name in self._names

    def quotes(self, name: str) -> bool:
        """Return whether the view shows an identifier as content."""
        return name in self._evidence

    def digest(self) -> str:
        """Return the first 16 digits of the digest of the whole view."""
        system = b"" if self._system is None else self._system.digest
        return sha256(system + b"".join(self.looks.of(each).digest for each in self._exchanges)).hexdigest()[:16]


def _key(exchange: Exchange) -> object:
    return exchange.first or next((block.content for block in exchange.blocks()), None)


def _add(counts: Counter[_Thing], things: frozenset[_Thing], by: int) -> None:
    """Add to counts, and drop those that become zero."""
    for thing in things:
        left = counts[thing] + by
        if left:
            counts[thing] = left
        else:
            del counts[thing]
