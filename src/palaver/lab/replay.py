"""The replay: each recorded call's view rebuilt under a policy, as if the policy had been live.

What the policy did at earlier calls stays done: where it makes a view smaller by as much as a session demands of a commit, the view is
written down, and the next one begins from it (`palaver.lab.carried`). Nothing is asked of a model, and the agent's steps are the recorded
ones: what it would have done otherwise with another view nobody can know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter

from palaver.context import Composed, Ledger, Meter, compose, planner
from palaver.context.schedule import Called, Calls
from palaver.context.schedule.calls import Made
from palaver.errors import InfeasibleBudget
from palaver.lab.carried import Carried
from palaver.lab.entrants import Entrant
from palaver.lab.recorded import Call, Trace
from palaver.lab.stand_ins import StandIn
from palaver.lab.things import Things
from palaver.log import Handle
from palaver.messages import Content
from palaver.session.compaction.committing import MARGIN
from palaver.tokens import Rates
from palaver.view import View

__all__ = ["Replay", "Step", "worth"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A recorded call under a policy.

    Attributes:
        call: The call.
        log: The view of everything said before it.
        given: What the policy had to begin with: the view that it had written down, and what came since.
        view: What it would have sent.
        composed: How that came about; None where what must be sent is more than the budget.
        cut: Whether the view was written down.
        summary: Tokens of the summaries that a model would have written for it.
        planning: Seconds that the policy took.
    """

    call: Call
    log: View
    given: View
    view: View
    composed: Composed | None
    cut: bool
    summary: int
    planning: float


class Replay:
    """A dialog under one policy.

    Attributes:
        error: What the policy failed with in the middle, or empty: then the steps end with the call before.
    """

    def __init__(
        self, trace: Trace, things: Things, entrant: Entrant, *, stand_in: str, meter: Meter, rates: Rates | None
    ) -> None:
        """Take a dialog and a policy.

        Args:
            trace: The dialog's calls.
            things: What its views are asked for.
            entrant: The policy.
            stand_in: What stands for a model's summaries.
            meter: What measures.
            rates: What a token costs, where that is known.
        """
        self.error = ""
        self._trace = trace
        self._entrant = entrant
        self._rates = rates
        self._ledger = Ledger(meter=meter, sources=_recorded(trace).get)
        self._made = Made()
        self._planner = StandIn(planner(entrant.manager), stand_in, trace, things)

    def steps(self) -> Iterator[Step]:
        """Give each call as it would have been."""
        carried = Carried()
        for call, log in self._trace.views():
            self._planner.begin(call.number - 1)
            given = carried.view(log)
            began = perf_counter()
            try:
                composed = self._composed(call, given)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a policy is anybody's code: that it failed is a result
                self.error = f"{type(error).__name__}: {error}"
                return
            planning = perf_counter() - began
            cut = composed is not None and worth(composed, given)
            yield Step(
                call=call,
                log=log,
                given=given,
                view=given if composed is None else composed.view,
                composed=composed,
                cut=cut,
                summary=self._planner.written,
                planning=planning,
            )
            if composed is not None and cut:
                carried.commit(composed.view, log)
            if call.at is not None:
                place = Handle(self._trace.dialog, call.seq)
                self._made = self._made.then(Called(place=place, at=call.at, model=self._entrant.model))

    def _composed(self, call: Call, view: View) -> Composed | None:
        """Compose a view, with the books as they stood then."""
        books, entrant = replace(self._ledger, calls=Calls(self._made, call.at, self._entrant.model)), self._entrant
        try:
            return compose(view, self._planner, entrant.budget, books.meter.counter, prices=self._rates, ledger=books)
        except InfeasibleBudget:
            return None


def _recorded(trace: Trace) -> Mapping[Handle, Content]:
    """Give every block as it was recorded: a record is made of originals."""
    exchanges = trace.whole.exchanges
    return {block.origin: block.content for each in exchanges for block in each.blocks() if block.origin is not None}


def worth(composed: Composed, given: View) -> bool:
    """Tell whether a session would write a view down: it is smaller than the one before by the margin of a commit."""
    return composed.view is not given and composed.tokens_after <= composed.tokens_before * (1 - MARGIN)
