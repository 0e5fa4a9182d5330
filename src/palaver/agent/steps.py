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

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from palaver.agent.run import AgentRun
from palaver.agent.turn import TurnState, paused
from palaver.messages import Message, ToolCallContent

__all__ = ["Ask", "Fate", "Finish", "Settle", "Step", "Wait", "next_step"]


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


def next_step(run: AgentRun) -> Step:
    """Return what comes next."""
    turn, pending = run.turn, run.turn.pending
    if pending:
        fates = tuple((call, _fate(run, call)) for call in pending)
        waiting = tuple(call for call, what in fates if what is Fate.DECIDE)
        asked = run.settings.approve is not None and any(call.id not in run.postponed for call in pending)
        return Wait(waiting) if len(waiting) == len(pending) and not asked else Settle(fates)
    if turn.response is not None and not turn.said and _answered(turn, turn.response):
        return Finish()
    return Ask(final=turn.rounds >= run.settings.rounds)


def _answered(turn: TurnState, response: Message) -> bool:
    """Return whether the newest answer is whole and calls nothing, or every result says that the model need not be asked again."""
    return all(turn.answers[call.id].terminate for call in turn.calls) if turn.calls else not paused(response)


def _fate(run: AgentRun, call: ToolCallContent) -> Fate:
    turn, function = run.turn, run.toolbox.get(call.name)
    if call.id in run.suspended:
        return Fate.DECIDE
    if call.id in turn.started:
        again = turn.started[call.id] and function is not None and function.idempotent
        return Fate.RUN if again else Fate.UNKNOWN
    decision = turn.decisions.get(call.id)
    if decision is not None:
        return Fate.DENIED if decision.decision == "deny" else Fate.RUN
    if turn.overtaken:
        return Fate.GIVEN_UP
    return Fate.DECIDE if function is not None and function.approval_needed(call) else Fate.RUN
