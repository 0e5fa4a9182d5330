"""Requests held to their provider's rules, each against the one before it that was found fine.

A request is checked whole. But what was found fine before need not be looked at again where its neighbours are the same: of the conversation only
what is new is, with the rounds around it, as a request of its own under the same head; what counts over all of it (ids, images, cache marks,
bytes) is counted from what is known of each message. Whenever that does not settle it (another head, half of the conversation new, anything
wrong anywhere), the validator goes through the whole request: so every violation is the validator's, and a request is let through only if the
validator would let it through.

(To back off behind the seam, and to do all of it where something does not fit, is how caches of tokenized prefixes stay exact:
NVIDIA/TensorRT-LLM#18389.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from palaver.messages import FrozenDict
from palaver.messages.frozen import frozen_dict, frozen_list
from palaver.wire.check import validate
from palaver.wire.check.anthropic import cache_marks
from palaver.wire.check.conversation import CONVERSATIONS, Item
from palaver.wire.check.examine import Subject
from palaver.wire.profiles import Profile
from palaver.wire.violations import Place, Violation

__all__ = ["Held", "Pardon", "field_of"]

Pardon: TypeAlias = Callable[[Violation], bool]
"""Tells of a violation whether it is let through."""

_MOST = 100_000
"""Messages that a request may have for any provider (Anthropic's API reference, messages)."""

_SMALL = 16
"""Items of a conversation that is not worth taking apart."""


def field_of(profile: Profile) -> str:
    """Name the field of a body that holds the conversation."""
    return CONVERSATIONS[profile.name].field


class Held:
    """Holds the requests of one conversation to the rules.

    Attributes:
        looked_at: How many items were looked at in all, by one or the other way.
    """

    def __init__(self) -> None:
        """Begin with no request that was found fine."""
        self._fine: _Fine | None = None
        self.looked_at = 0

    def violations(
        self, body: Mapping[str, Any], profile: Profile, size: int, pardoned: Pardon, *, as_history: bool
    ) -> list[Violation]:
        """Give everything in a request that its provider would refuse, but what is pardoned.

        Args:
            body: The body, read-only.
            profile: What the provider accepts.
            size: The length of its canonical JSON in bytes, which is as compact as that of the clients.
            pardoned: Which violations are let through.
            as_history: As for `validate`.
        """
        if type(body) is not FrozenDict or not isinstance(body.get(field_of(profile)), list):
            return [each for each in validate(body, profile, as_history=as_history) if not pardoned(each)]
        look = _Look(body, profile, pardoned, as_history=as_history)
        fine, self._fine = self._fine, None
        facts = None if fine is None or size > profile.request_bytes else look.against(fine)
        found: list[Violation] = []
        if facts is None:
            found = look.violations(look.items, as_history=as_history)
            facts = _Facts.of(look.items, profile)
        self.looked_at += look.looked_at
        if not found:
            self._fine = _Fine(profile, look.head, look.items, facts)
        return found


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is counted over all of a conversation, for each of its items.

    Attributes:
        ids: Ids that no other item may have.
        images: How many images it has.
        marked: Whether it carries a cache mark.
        asks: Whether it is the user's words.
    """

    ids: Sequence[tuple[str, ...]]
    images: Sequence[int]
    marked: Sequence[bool]
    asks: Sequence[bool]

    @classmethod
    def of(cls, items: Sequence[Item], profile: Profile) -> _Facts:
        """Look at items."""
        kind = CONVERSATIONS[profile.name]
        return cls(
            [kind.ids(item, profile.calls) for item in items],
            [kind.images(item) for item in items],
            [kind.marked(item, profile.cache.field) for item in items],
            [kind.asks(item) for item in items],
        )

    def around(self, before: int, behind: int, middle: _Facts) -> _Facts:
        """Give what holds where all but the first and the last so many items are others."""
        rest = len(self.ids) - behind
        return _Facts(
            [*self.ids[:before], *middle.ids, *self.ids[rest:]],
            [*self.images[:before], *middle.images, *self.images[rest:]],
            [*self.marked[:before], *middle.marked, *self.marked[rest:]],
            [*self.asks[:before], *middle.asks, *self.asks[rest:]],
        )

    def asked(self) -> int:
        """Give the place of the user's newest words, or -1."""
        return next((place for place in range(len(self.asks) - 1, -1, -1) if self.asks[place]), -1)

    def within(self, profile: Profile) -> bool:
        """Tell whether what is counted keeps to its limits, and to those from which on other rules hold."""
        images, limits = sum(self.images), profile.media
        few = images <= limits.count and (limits.crowd is None or images <= limits.crowd)
        ids = list(chain.from_iterable(self.ids))
        return few and len(self.ids) <= _MOST and len(set(ids)) == len(ids)


@dataclass(frozen=True, slots=True)
class _Fine:
    """A request that was found fine: its head, its conversation, and what is known of that."""

    profile: Profile
    head: Mapping[str, Any]
    items: Sequence[Item]
    facts: _Facts


class _Look:
    """A request that is looked at."""

    def __init__(self, body: Mapping[str, Any], profile: Profile, pardoned: Pardon, *, as_history: bool) -> None:
        self._body = body
        self._profile = profile
        self._pardoned = pardoned
        self._as_history = as_history
        self._kind = CONVERSATIONS[profile.name]
        self.items: Sequence[Item] = body[self._kind.field]
        self.head = {name: value for name, value in body.items() if name != self._kind.field}
        self.looked_at = 0

    def violations(self, items: Sequence[Item], *, as_history: bool) -> list[Violation]:
        """Give what is wrong with a conversation under this head."""
        self.looked_at += len(items)
        body = self._with(items)
        return [each for each in validate(body, self._profile, as_history=as_history) if not self._pardoned(each)]

    def _with(self, items: Sequence[Item]) -> FrozenDict:
        if items is self.items:
            return self._body  # type: ignore[return-value] # it is a read-only one
        return frozen_dict({**self._body, self._kind.field: frozen_list(list(items))})

    def against(self, fine: _Fine) -> _Facts | None:
        """Give the facts of a conversation with which nothing is wrong, as far as the one before tells; None where it does not."""
        items, old = self.items, fine.items
        if len(items) < _SMALL or fine.profile != self._profile or not _same(fine.head, self.head):
            return None
        shorter = min(len(items), len(old))
        before = _alike(items, old, shorter)
        behind = _alike(items[::-1], old[::-1], shorter - before)
        stop = len(items) - behind
        facts = fine.facts.around(before, behind, _Facts.of(items[before:stop], self._profile))
        start, end, tail = self._back(before), self._on(stop), self._back(len(items))
        asked = facts.asked()
        same_turn = asked >= start or asked == fine.facts.asked()
        if not (same_turn and facts.within(self._profile) and self._marks(facts)):
            return None
        pieces = [range(start, len(items))] if end >= tail else [range(start, end), range(tail, len(items))]
        if 2 * sum(map(len, pieces)) > len(items) or self._tied(
            pieces, [*items[before:stop], *old[before : len(old) - behind]]
        ):
            return None
        wrong = any(self._wrong(piece, asked) for piece in pieces)
        return None if wrong else facts

    def _tied(self, pieces: Sequence[range], changed: Sequence[Item]) -> bool:
        """Tell whether what came or went belongs to something that stands outside the pieces, so that they do not tell."""
        ids = set(chain.from_iterable(map(self._kind.tied, changed)))
        inside = set(chain.from_iterable(pieces))
        return bool(ids) and any(
            not ids.isdisjoint(self._kind.tied(item)) for place, item in enumerate(self.items) if place not in inside
        )

    def _wrong(self, piece: range, asked: int) -> bool:
        """Tell whether anything is wrong with a piece of the conversation; the last one comes with the beginning of its turn."""
        closing = piece.stop == len(self.items)
        shown = list(self.items[piece.start : piece.stop])
        if closing and asked + 1 < piece.start:
            shown = [*self._opening(asked + 1, piece.start), *shown]
        if piece.start:
            shown.insert(0, self._kind.anything)
        return bool(self.violations(shown, as_history=self._as_history if closing else True))

    def _opening(self, first: int, stop: int) -> Sequence[Item]:
        """Give the first round behind a place, as far as it stands before another one: some rules ask how a turn began."""
        spoken = next((place for place in range(first, stop) if self._kind.spoken(self.items[place])), stop)
        end = next((place for place in range(spoken + 1, stop) if self._begins(place)), stop)
        return self.items[spoken:end]

    def _marks(self, facts: _Facts) -> bool:
        """Tell whether the cache marks of all of it are as they must be."""
        marked = [item for item, mark in zip(self.items, facts.marked, strict=True) if mark]
        if not marked:
            return True
        return not any(cache_marks(Subject(Place(self._with(marked)), self._profile, self._as_history)))

    # --- rounds -------------------------------------------------------------------------------------------------------------

    def _begins(self, place: int) -> bool:
        """Tell whether a round begins at a place: the model's words behind somebody else's."""
        return place > 0 and self._kind.spoken(self.items[place]) and not self._kind.spoken(self.items[place - 1])

    def _back(self, place: int) -> int:
        """Give where the round before the one at a place begins; 0 where there is none."""
        for _ in range(2):
            place = next((each for each in range(place - 1, 0, -1) if self._begins(each)), 0)
        return place

    def _on(self, place: int) -> int:
        """Give where the round behind the one at a place ends."""
        most = len(self.items)
        first = next((each for each in range(place, most) if self._begins(each)), most)
        return next((each for each in range(first + 1, most) if self._begins(each)), most)


def _alike(items: Sequence[Item], others: Sequence[Item], most: int) -> int:
    """Count the items at the beginning that are the same in both."""
    count = 0
    while count < most and _same(items[count], others[count]):
        count += 1
    return count


def _same(one: object, other: object) -> bool:
    """Tell whether two values are the same JSON; for Python 0, 0.0 and False are equal."""
    if one is other:
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other
