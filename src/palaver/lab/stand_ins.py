"""Stand-ins: replacements for a model's summary in a replay, because no model is asked.

They determine the credit of a policy that summarises:

- `fold`: the record that code writes, as the presets insert it.
- `recorded`: the newest summary that was recorded before the call, or else the record.
- `empty`: only the first line of the record, which counts the omissions. This is the lower bound: no summary is worth less.
- `oracle`: the omitted identifiers that later calls refer to, the soonest first, within the size of the record. This is the upper bound of
  future-reference recall: no summary of that size contains more of them.

`recorded` and `oracle` are charged as the model call that would have written them: the view read from the cache, and their tokens as output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from palaver.context import Meter, Policy
from palaver.lab.recorded import RecordedDialog
from palaver.lab.things import Things, words
from palaver.tokens import Budget
from palaver.view import Insert, Plan, View

ORACLE = "oracle"
"""The stand-in made from later calls, which no model can know."""

STAND_INS = ("fold", "recorded", "empty", ORACLE)
_CHARGED = frozenset({"recorded", ORACLE})
_RECORD = "record"


class StandIn(Policy):
    """A policy whose record is replaced by another text.

    Attributes:
        written: Tokens of the summaries that a model would have written for the last plan.
    """

    def __init__(self, policy: Policy, kind: str, trace: RecordedDialog, things: Things) -> None:
        """Wrap a policy."""
        super().__init__()
        self.name = policy.name  # type: ignore[misc]  # the name of the wrapped policy
        self.complete = policy.complete  # type: ignore[misc]
        self.written = 0
        self._call = 0
        self._policy = policy
        self._kind = kind
        self._trace = trace
        self._things = things

    def begin(self, call: int) -> None:
        """Set which call is planned next, by its index."""
        self._call, self.written = call, 0

    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Return the policy's plan, with the stand-in for a model's summary."""
        return self._with_stand_in(self._policy.plan(view, budget, meter), view, meter)

    def compact(self, view: View, budget: Budget, meter: Meter, *, asked: bool = False) -> Plan:
        """Return the policy's plan for good, with the stand-in for a model's summary."""
        return self._with_stand_in(self._policy.compact(view, budget, meter, asked=asked), view, meter)

    def _with_stand_in(self, plan: Plan, view: View, meter: Meter) -> Plan:
        if self._kind == "fold" or not any(insert.label == _RECORD for insert in plan.inserts):
            return plan
        inserts = tuple(
            self._stand_in(insert, plan, view, meter) if insert.label == _RECORD else insert for insert in plan.inserts
        )
        if self._kind in _CHARGED:
            self.written = sum(meter.text(insert.text) for insert in inserts if insert.label == "summary")
        return replace(plan, inserts=inserts)

    def _stand_in(self, insert: Insert, plan: Plan, view: View, meter: Meter) -> Insert:
        head = insert.text.partition("\n")[0]
        if self._kind == "empty":
            return replace(insert, text=head, label="notice")
        if self._kind == "recorded":
            seq = self._trace.calls[self._call].seq
            known = [one.text for one in self._trace.summaries if one.seq <= seq]
            return replace(insert, text=f"{head}\n{known[-1]}", label="summary") if known else insert
        return replace(insert, text=self._foretold(head, insert, plan, view, meter), label="summary")

    def _foretold(self, head: str, insert: Insert, plan: Plan, view: View, meter: Meter) -> str:
        """Return the omitted identifiers that later calls refer to, within the size of the record."""
        dropped = (view.exchanges[index] for drop in plan.drops for index in drop.indexes)
        gone = "\n".join(words(block.content) for exchange in dropped for block in exchange.blocks())
        held = self._things.names.found(gone)
        later = (need.name for needs in self._things.needs[self._call :] for need in needs)
        names = [name for name in dict.fromkeys(later) if name in held]
        return _fitting(head, names, meter, meter.text(insert.text))


def _fitting(head: str, names: Sequence[str], meter: Meter, room: int) -> str:
    """Return as many names as fit."""
    low, high = 0, len(names)
    while low < high:
        middle = (low + high + 1) // 2
        if meter.text(f"{head}\n{' '.join(names[:middle])}") <= room:
            low = middle
        else:
            high = middle - 1
    return f"{head}\n{' '.join(names[:low])}"
