"""Committed views without a store are those of a session that commits."""

import re
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.lab.replay import CommittedView
from palaver.log import Handle, Pin, Place
from palaver.messages import Message, Role
from palaver.testing.logs import Log
from palaver.testing.strategies import sayings
from palaver.view import Plan, Remove, Rewrite, View, apply, checkpoint, fold, held
from tests.view.plans import plans

_HANDLE = re.compile(r"[0-9a-f]{12,32}:\d+(:\d+)?")


class _Both:
    """The same conversation twice: once as the lab has it, and once in a log in which every compaction is committed."""

    def __init__(self) -> None:
        self.plain, self.live = Log(), Log()
        self.places: list[tuple[int, int]] = []
        self.committed = CommittedView()

    def put(self, message: Message) -> None:
        one, other = self.plain.put(message)[0].seq, self.live.put(message)[0].seq
        self.places.append((one, other))

    def pin(self, number: int) -> None:
        one, other = self.places[number]
        self.plain.put(Pin(target=Place(dialog=self.plain.dialog, seq=one)))
        self.live.put(Pin(target=Place(dialog=self.live.dialog, seq=other)))

    def views(self) -> tuple[View, View]:
        log = fold(self.plain.store, self.plain.dialog, whole=True)
        return self.committed.view(log), fold(self.live.store, self.live.dialog)

    def commit(self, plan: Plan) -> None:
        here, there = self.views()
        after = apply(here, plan)
        self.committed.commit(after, fold(self.plain.store, self.plain.dialog, whole=True))
        live = apply(there, _translated(plan, here, there))
        spans = held(self.live.store, self.live.dialog, live.at)
        self.live.put(checkpoint(live, spans, policy="any", tokens_before=2, tokens_after=1))


def _origins(view: View) -> list[Handle | None]:
    return [block.origin for exchange in view.exchanges for block in exchange.blocks()]


def _translated(plan: Plan, here: View, there: View) -> Plan:
    """Give the same plan for the other view: its entries have other numbers."""
    same = dict(zip(_origins(here), _origins(there), strict=True))
    rewrites = tuple(
        Rewrite(target=same[each.target] or each.target, text=each.text, reason=each.reason) for each in plan.rewrites
    )
    removes = tuple(Remove(target=same[each.target] or each.target, reason=each.reason) for each in plan.removes)
    return Plan(policy=plan.policy, drops=plan.drops, rewrites=rewrites, removes=removes, inserts=plan.inserts)


def _told(view: View) -> Sequence[object]:
    """Return what a view shows and how, with handles as one word."""
    heads = [(each.derived, each.pinned, each.open, each.messages) for each in view.exchanges]
    return heads + [
        (turn.role, block.derived, block.reason, _HANDLE.sub("handle", repr(block.content)))
        for each in view.exchanges
        for turn in each.turns
        for block in turn.blocks
    ]


def _called(said: Sequence[Message], rest: Sequence[Message]) -> bool:
    """Tell whether the next message begins a response: then a model was called here, and here only a view is written down."""
    if not rest or rest[0].role is not Role.ASSISTANT:
        return False
    newest = next((message.response_id for message in reversed(said) if message.role is Role.ASSISTANT), None)
    if rest[0].response_id:
        return rest[0].response_id != newest
    return said[-1].role is not Role.ASSISTANT


@given(messages=sayings(), data=st.data())
@settings(deadline=None, max_examples=40)
def test_a_carried_view_is_the_view_of_a_session_that_commits(messages: list[Message], data: st.DataObject) -> None:
    """Whatever is said, pinned and committed in whatever order, both show the same, and leave out as much."""
    both = _Both()
    for number, message in enumerate(messages):
        both.put(message)
        if both.places and data.draw(st.integers(0, 5)) == 0:
            both.pin(data.draw(st.integers(0, len(both.places) - 1)))
        here, there = both.views()
        assert _told(here) == _told(there)
        assert [block.content for block in here.system] == [block.content for block in there.system]
        assert sum(gone.messages for gone in here.omissions) == sum(gone.messages for gone in there.omissions)
        if _called(messages[: number + 1], messages[number + 1 :]) and data.draw(st.booleans()):
            both.commit(data.draw(plans(here)))
            here, there = both.views()
            assert _told(here) == _told(there)
