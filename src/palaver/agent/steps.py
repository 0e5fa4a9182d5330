"""The next step of a turn: one pure function of its state, which is the published table of outcomes.

A process may be killed anywhere. The log then decides what the next `respond()` does, and nothing else:

| newest durable step | what the next process does |
| --- | --- |
| the user's message | begins the turn |
| turn started, tools declared, inbox delivered | asks the model |
| invocation recorded, no answer | asks the model again: the outcome of the first call is unknown |
| an answer that was refused | asks for the repair; the refused answer is not asked for again |
| an answer with calls | runs them |
| a call started, no result | runs it again if its function is idempotent; else its result is `unknown`, an error the model sees |
| a call that needs a decision | waits, or asks the approver at hand; with the decision recorded, runs or refuses it |
| a result | keeps it: the call never runs again; continues with the calls that have none |
| all results | asks the model; if all of them say `terminate`, ends the turn |
| an answer that its provider paused | asks the model to continue it |
| a final answer | ends the turn and delivers it; the model is not asked |
| turn ended: `final` | delivers the answer again; begins a new turn when something was said since |
| turn ended: `waiting`, `interrupted` or `failed` | continues as above; after a failure repairs and rounds count from nothing |
| … and the user has said something since | runs what was decided, gives up the other calls, asks the model |

A result that was computed and not recorded is lost with its process: that is what `unknown` says. A store that refuses a result is
another matter: the process keeps it and records it first of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from palaver.agent.turn import TurnState, paused
from palaver.messages import ToolCallContent

__all__ = ["Ask", "Fate", "Finish", "Settle", "Step", "TurnRules", "Wait", "next_step"]


class Fate(StrEnum):
    """What becomes of a call that has no result."""

    RUN = "run"
    """It runs."""
    UNKNOWN = "unknown"
    """It was begun, and its effect is unknown. The model reads that."""
    DENIED = "denied"
    """A person said no."""
    GIVEN_UP = "given_up"
    """The user went on without it."""
    DECIDE = "decide"
    """It waits for a decision."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model; `final` when no more tools are allowed."""

    final: bool = False


@dataclass(frozen=True, slots=True)
class Settle:
    """Bring calls to their results, each in its way."""

    calls: tuple[tuple[ToolCallContent, Fate], ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until somebody decides."""

    calls: tuple[ToolCallContent, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """End the turn: it is answered."""


Step: TypeAlias = Ask | Settle | Wait | Finish
"""Everything that can come next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """The inputs of the table besides the log.

    Attributes:
        rounds: How many rounds of tools a turn may have.
        needs_approval: Whether a call may not run before somebody decides.
        rerun: Whether the function of a call that was begun may run again.
        approver: Whether somebody is at hand who decides at once.
        suspended: Calls that this process began and that wait for a decision further down: those of sub-agents.
    """

    rounds: int
    needs_approval: Callable[[ToolCallContent], bool]
    rerun: Callable[[ToolCallContent], bool]
    approver: bool = False
    suspended: frozenset[str] = frozenset()


def next_step(turn: TurnState, rules: TurnRules) -> Step:
    """Return what comes next."""
    pending = turn.pending
    if pending:
        fates = tuple((call, _fate(turn, call, rules)) for call in pending)
        waiting = tuple(call for call, what in fates if what is Fate.DECIDE)
        if len(waiting) == len(pending) and not rules.approver:
            return Wait(waiting)
        return Settle(fates)
    if turn.response is not None and not turn.said and _answered(turn):
        return Finish()
    return Ask(final=turn.rounds >= rules.rounds)


def _answered(turn: TurnState) -> bool:
    """Return whether the newest answer is whole and calls nothing, or every result says that the model need not be asked again."""
    if turn.response is not None and not turn.calls:
        return not paused(turn.response)
    return all(turn.answers[call.id].terminate for call in turn.calls)


def _fate(turn: TurnState, call: ToolCallContent, rules: TurnRules) -> Fate:
    if call.id in rules.suspended:
        return Fate.DECIDE
    if call.id in turn.started:
        return Fate.RUN if turn.started[call.id] and rules.rerun(call) else Fate.UNKNOWN
    decision = turn.decisions.get(call.id)
    if decision is not None:
        return Fate.DENIED if decision.decision == "deny" else Fate.RUN
    if turn.overtaken:
        return Fate.GIVEN_UP
    return Fate.DECIDE if rules.needs_approval(call) else Fate.RUN
