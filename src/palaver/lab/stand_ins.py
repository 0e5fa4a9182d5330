"""Stand-ins: what takes the place of a model's summary in a replay, where no model is asked.

Declared, because they decide what a policy that summarises is credited with:

- `fold`: the record that code makes, which is also what the policies put there themselves (ADR 0034).
- `recorded`: the summary that was recorded in the session, the newest one before the call; where there is none yet, the record.
- `empty`: nothing but the line that says what is missing. The lower bracket: no summary is worth less.
- `oracle`: of what is left out, the identifiers that later calls refer to, the soonest first, as many as fit where the record stood. The
  upper bracket for future references: no summary of that size can hold more of them.

`recorded` and `oracle` are charged as the model call that would have written them: the view read from the cache, and their tokens written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from palaver.context import Ledger
from palaver.context.compose import Planner
from palaver.lab.recorded import Trace
from palaver.lab.things import Things, words
from palaver.tokens import Budget, Rates
from palaver.view import Insert, Plan, View

__all__ = ["ORACLE", "STAND_INS", "StandIn"]

ORACLE = "oracle"
"""The one that knows the future: nobody can have it."""

STAND_INS = ("fold", "recorded", "empty", ORACLE)
_CHARGED = frozenset({"recorded", ORACLE})
_RECORD = "record"


class StandIn:
    """A policy with another text where it puts a record.

    Attributes:
        name: The policy's name.
        complete: As the policy has it.
        literal: As the policy has it.
        written: Tokens of the summaries that a model would have written for the last plan.
    """

    def __init__(self, planner: Planner, kind: str, trace: Trace, things: Things) -> None:
        """Take a policy, and what stands in the place of its records."""
        self.name = planner.name
        self.complete = planner.complete
        self.literal = planner.literal
        self.written = 0
        self._call = 0
        self._planner = planner
        self._kind = kind
        self._trace = trace
        self._things = things

    def begin(self, call: int) -> None:
        """Take which call is planned for, by its index."""
        self._call, self.written = call, 0

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Say what the policy would change, with the stand-in for what a model would say."""
        plan = self._planner.plan(view, ledger, budget, prices)
        if self._kind == "fold" or not any(insert.label == _RECORD for insert in plan.inserts):
            return plan
        inserts = tuple(
            self._stood_in(insert, plan, view, ledger) if insert.label == _RECORD else insert for insert in plan.inserts
        )
        if self._kind in _CHARGED:
            self.written = sum(ledger.meter.text(insert.text) for insert in inserts if insert.label == "summary")
        return replace(plan, inserts=inserts)

    def _stood_in(self, insert: Insert, plan: Plan, view: View, ledger: Ledger) -> Insert:
        head = insert.text.partition("\n")[0]
        if self._kind == "empty":
            return replace(insert, text=head, label="notice")
        if self._kind == "recorded":
            seq = self._trace.calls[self._call].seq
            told = [one.text for one in self._trace.summaries if one.seq <= seq]
            return replace(insert, text=f"{head}\n{told[-1]}", label="summary") if told else insert
        return replace(insert, text=self._foretold(head, insert, plan, view, ledger), label="summary")

    def _foretold(self, head: str, insert: Insert, plan: Plan, view: View, ledger: Ledger) -> str:
        """Give the identifiers in what leaves that later calls refer to, in no more room than the record had."""
        gone = "\n".join(words(block.content) for drop in plan.drops for block in view.exchanges[drop.index].blocks())
        held = self._things.names.found(gone)
        later = (need.name for needs in self._things.needs[self._call :] for need in needs)
        names = [name for name in dict.fromkeys(later) if name in held]
        return _fitting(head, names, ledger, ledger.meter.text(insert.text))


def _fitting(head: str, names: Sequence[str], ledger: Ledger, room: int) -> str:
    """Give as many of the names as have room, found by halving."""
    low, high = 0, len(names)
    while low < high:
        middle = (low + high + 1) // 2
        if ledger.meter.counter.text(f"{head}\n{' '.join(names[:middle])}") <= room:
            low = middle
        else:
            high = middle - 1
    return f"{head}\n{' '.join(names[:low])}"
