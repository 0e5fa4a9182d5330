"""What stands for exchanges that were dropped and not folded: a notice, with what the user wants and what he said must or must not be.

A notice says where to look. A constraint must not have to be looked for: it is told in the user's own words, whichever policy drops the
message that it was said in; and so is the goal, where there is room for both. All else that is known goes with the notice unseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from palaver.context.ground import Ground, Layout
from palaver.context.notice import NOTICE
from palaver.context.record.carried import begun, sources_of
from palaver.context.record.constraints import Constraints
from palaver.context.record.facts import Facts
from palaver.context.record.recorder import Recorder, Sources
from palaver.context.record.telling import told
from palaver.context.texts import notice
from palaver.messages import Role
from palaver.view import Insert, Reason, View

__all__ = ["MOST", "SHARE", "NoticeOf"]

SHARE = 4
"""At most a quarter of the room is for what stands for exchanges that were left out."""

MOST = 4_000
"""Tokens that a record has at most: its facts are carried beside its text, and all of them can be recalled. Constraints may need more, and have it:
each of them is told while they fit in their share of the room."""

_ANY = 2**53
"""Room for whatever there is."""


@dataclass(eq=False)
class NoticeOf:
    """A notice, and behind it the goal and the constraints that were said in what was left out; no longer than a notice where there are none.

    Attributes:
        sources: Gives blocks as they were recorded, or None.
        constraints: What the user changed by hand in the list of his constraints.
    """

    sources: Sources | None = None
    constraints: Constraints = field(default_factory=Constraints)
    _known: tuple[View, Sequence[tuple[int, int]]] | None = field(default=None, repr=False)

    @property
    def reason(self) -> Reason:
        """Why they are left out."""
        return NOTICE.reason

    def room(self, ground: Ground, upto: int) -> int:
        """Give the size of the longest one that could be needed so far: no later exchange changes it."""
        return NOTICE.room(ground, upto) + min(sum(self._needed(ground, upto)), self._room(ground))

    def inserts(self, ground: Ground, layout: Layout) -> tuple[Insert, ...]:
        """Make it."""
        missing = tuple(ground.missing(layout))
        gone = [*ground.view.carried, *(ground.view.exchanges[index] for index in missing)]
        facts = Recorder(sources=self.sources, begun=begun(ground.view, missing)).take(gone).facts()
        facts = self.constraints.applied(facts)
        if not missing or not (facts.rules or facts.goal):
            return NOTICE.inserts(ground, layout)
        head = notice(ground.dropped(layout), ground.view.shared)
        most = self._room(ground)
        shown = _wanted(facts) if (both := sum(self._needed(ground, max(missing)))) <= most else _only_rules(facts)
        line = Insert(
            before=ground.gap(layout),
            text=told(shown, head, ground.meter.text(head) + min(both, most), ground.meter.text),
            label="notice",
            sources=sources_of(gone),
            facts=facts.to_json(),
            trust=min(block.trust for exchange in gone for block in exchange.blocks()),
        )
        return (line,)

    def rules(self, ground: Ground, upto: int) -> int:
        """Give the size of telling all constraints that were said up to an exchange."""
        return self._needed(ground, upto)[0]

    def _needed(self, ground: Ground, upto: int) -> tuple[int, int]:
        """Give the sizes of telling all constraints, and the goal, that were said up to an exchange."""
        if not ground.view.exchanges:
            return 0, 0
        if self._known is None or self._known[0] is not ground.view:
            self._known = (ground.view, tuple(self._summed(ground)))
        return self._known[1][upto]

    def _room(self, ground: Ground) -> int:
        return max(ground.room.high // SHARE, 0)

    def _summed(self, ground: Ground) -> Iterator[tuple[int, int]]:
        before = self.constraints.applied(Recorder().take(ground.view.carried).facts())
        rules, goal = _size(_only_rules(before), ground), _size(_only_goal(before), ground)
        for exchange in ground.view.exchanges:
            if exchange.derived or exchange.role is Role.USER:
                facts = Recorder(sources=self.sources).take([exchange]).facts()
                rules += _size(_only_rules(facts), ground)
                goal = goal or _size(_only_goal(facts), ground)
            yield rules, goal


def _size(facts: Facts, ground: Ground) -> int:
    """Give the size of telling facts; a little more, because pieces can count less than their whole."""
    if not facts.rules and facts.goal is None:
        return 0
    count = ground.meter.text
    return count(told(facts, "", _ANY, count)) + count(" (+ 000 more)") + len(facts.rules) + (facts.goal is not None)


def _wanted(facts: Facts) -> Facts:
    return replace(_only_rules(facts), goal=facts.goal)


def _only_rules(facts: Facts) -> Facts:
    return Facts(rules=facts.rules, more={name: count for name, count in facts.more.items() if name == "rules"})


def _only_goal(facts: Facts) -> Facts:
    return Facts(goal=facts.goal)
