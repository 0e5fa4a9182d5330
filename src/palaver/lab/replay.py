"""The replay: rebuild each recorded call's view under a policy, as if the policy had been live.

As with an agent, a policy's plan that makes the view smaller is committed, and later views start from it. A policy under which the provider compacts, and
a plain context manager, see the whole dialog at every call. No model is asked, and the agent's steps are the recorded ones: its reaction to another view is unknown.

A session commits a smaller view as one entry, and later views start from it. The lab does the same in memory, without a store. One fold of the recorded
log serves every policy, and each policy's committed view replaces the beginning. A test compares these views with those of a session that commits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter

from palaver.context import Composed, ContextManager, Meter, Policy, compose
from palaver.errors import InfeasibleBudget
from palaver.lab.entrants import Entrant
from palaver.lab.recorded import RecordedCall, RecordedDialog
from palaver.lab.stand_ins import StandIn
from palaver.lab.things import Things
from palaver.view import Exchange, Plan, View


class CommittedView:
    """The committed view of a policy, and the views that follow from it."""

    def __init__(self) -> None:
        """Start without a committed view."""
        self._shown: View | None = None
        self._log: View | None = None

    def view(self, log: View) -> View:
        """Return the view that a session would have.

        Args:
            log: The whole view so far, at the place of the commit or later.
        """
        shown, then = self._shown, self._log
        if shown is None or then is None:
            return log
        both = zip(then.exchanges, log.exchanges, strict=False)
        now = {one.first: other for one, other in both if one is not other}  # grown, answered or pinned later
        exchanges = (
            shown.exchanges if not now else tuple(_updated(each, now.get(each.first)) for each in shown.exchanges)
        )
        known = frozenset(then.omissions)
        return replace(
            log,
            exchanges=(*exchanges, *log.exchanges[len(then.exchanges) :]),
            omissions=(*shown.omissions, *(gone for gone in log.omissions if gone not in known)),
            policies=shown.policies,
        )

    def commit(self, view: View, log: View) -> None:
        """Commit a view.

        Args:
            view: The view, made from the result of `view` for this log.
            log: The whole view so far.
        """
        self._shown, self._log = view, log


def _updated(committed: Exchange, now: Exchange | None) -> Exchange:
    """Return the current state of a committed exchange: it may have grown, and its blocks keep their committed form."""
    if now is None or committed.first is None:
        return committed
    return replace(now, changes={**now.changes, **committed.changes}) if committed.changes else now


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStep:
    """A recorded call under a policy.

    Attributes:
        call: The call.
        log: The whole view before it.
        given: The view that the policy started from: its committed view and later exchanges.
        view: The view that it would have sent.
        composed: The composition of that view; None if the content that must be sent is larger than the budget.
        cut: Whether the view was committed; where none is, whether its plan is another than the one before.
        summary: Tokens of the summaries that a model would have written for it.
        planning: The policy's time in seconds.
    """

    call: RecordedCall
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
        error: The policy's error, or empty. After an error the steps end with the call before.
    """

    def __init__(self, trace: RecordedDialog, things: Things, entrant: Entrant, *, stand_in: str, meter: Meter) -> None:
        """Prepare the replay.

        Args:
            trace: The dialog's calls.
            things: The references of its calls.
            entrant: The policy.
            stand_in: The replacement for a model's summaries.
            meter: Counts tokens.
        """
        self.error = ""
        self._trace = trace
        self._entrant = entrant
        self._meter = meter
        self._stand_in = (
            StandIn(entrant.manager, stand_in, trace, things) if isinstance(entrant.manager, Policy) else None
        )

    def steps(self) -> Iterator[ReplayStep]:
        """Yield each call under the policy."""
        committed = CommittedView()
        own = self._entrant.manager
        manager: ContextManager = self._stand_in or own
        commits = not (isinstance(own, Policy) and own.asks_provider)  # else each view is made from the log
        last: Plan | None = None
        for call, log in self._trace.views():
            if self._stand_in is not None:
                self._stand_in.begin(call.number - 1)
            given = committed.view(log)
            self._meter.view(given)  # otherwise its size would be an estimate that depends on earlier replays
            began = perf_counter()
            composed: Composed | None = None
            try:
                composed = compose(given, manager, self._entrant.budget, self._meter, committed=commits)
            except InfeasibleBudget:
                pass
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the code of a user's policy: its failure is a result
                self.error = f"{type(error).__name__}: {error}"
                return
            planning = perf_counter() - began
            cut = composed is not None and self._stand_in is not None and _smaller(composed, given)
            if composed is not None and not commits:
                cut, last = cut and composed.plan != last, composed.plan
            yield ReplayStep(
                call=call,
                log=log,
                given=given,
                view=given if composed is None else composed.view,
                composed=composed,
                cut=cut,
                summary=0 if self._stand_in is None else self._stand_in.written,
                planning=planning,
            )
            if composed is not None and cut and commits:
                committed.commit(composed.view, log)


def _smaller(composed: Composed, given: View) -> bool:
    """Return whether an agent would commit the view."""
    return composed.view is not given and composed.after.total < composed.before.total
