"""The loop, and the next step of a turn: one pure function of its state, which implements this table.

A process may be killed anywhere. Only the log then decides what the next `respond()` does:

| newest durable step | what the next process does |
| --- | --- |
| the user's message | begins the turn |
| turn started, tools declared, inbox delivered | asks the model |
| invocation recorded, no answer | asks the model again: the outcome of the first call is unknown |
| an answer that was refused | asks for a repair; the refused answer is not requested again |
| an answer with calls | runs them |
| a call started, no result | runs it again if its function is idempotent; otherwise its result is `unknown`, an error that the model reads |
| a call that needs a decision | waits, or asks the approver; once the decision is recorded, runs, refuses or abandons it |
| a call that waits, and its tool is missing here | waits, decided or not, unless it is refused or abandoned |
| a result | keeps it: the call never runs again; continues with the calls that have no result |
| all results | asks the model; if all of them set `terminate`, ends the turn |
| an answer that its provider paused, compacted or cut to go on | asks the model to continue it; messages wait |
| a final answer | ends the turn and delivers it; the model is not asked |
| turn ended: `final` | delivers the answer again; begins a new turn if a message followed |
| turn ended: `waiting`, `interrupted` or `failed` | continues as above; after a failure, repairs and rounds count from 0 again |
| … and a user message followed a call without a result | keeps the message in the inbox, gives up the calls that need no decision and had not begun, waits for the others |
| … and a user message followed otherwise | asks the model |

A result that was computed but not recorded is lost with its process: that is why the result is `unknown`. If only the store refuses a
result, the process keeps it and records it first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from anyio import CancelScope, get_cancelled_exc_class

from palaver.agent.approvals import open_calls
from palaver.agent.asking import ask
from palaver.agent.calls import settle
from palaver.agent.checkpoints import record_of
from palaver.agent.events import DecisionAwaited, TurnFinished, TurnStarting
from palaver.agent.run import AgentRun
from palaver.agent.turn import ABANDON, Fate, TurnState, unfinished
from palaver.errors import Busy, Conflict, StoreError
from palaver.messages import Message, ToolCallContent
from palaver.tools import run_in_worker


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model; `final` when no more tools are allowed."""

    final: bool = False


@dataclass(frozen=True, slots=True)
class Settle:
    """Get a result for each call, according to its fate."""

    calls: tuple[tuple[ToolCallContent, Fate], ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a decision."""


@dataclass(frozen=True, slots=True)
class Finish:
    """End the turn, which has its answer."""


Step: TypeAlias = Ask | Settle | Wait | Finish
"""The possible next steps."""


def next_step(run: AgentRun) -> Step:
    """Return the next step."""
    turn, pending = run.turn, run.turn.pending
    if pending:
        fates = tuple((call, (_consent if call.consent else _fate)(run, call)) for call in pending)
        asked = any(fate is Fate.DECIDE and call.id not in run.undecided for call, fate in fates)
        return Wait() if all(fate in {Fate.DECIDE, Fate.WAIT} for _, fate in fates) and not asked else Settle(fates)
    if turn.response is not None and not turn.said and _answered(turn, turn.response):
        return Finish()
    return Ask(final=turn.rounds >= run.settings.options.rounds)


def _answered(turn: TurnState, response: Message) -> bool:
    """Return whether the newest answer is complete and calls nothing, or every result ends the turn."""
    return all(turn.answers[call.id].terminate for call in turn.calls) if turn.calls else not unfinished(response)


def _consent(run: AgentRun, call: ToolCallContent) -> Fate:
    """Return the fate of a call that the provider runs. With other arguments it would be another call, so an edit denies it."""
    decision = run.turn.decisions.get(call.id)
    if decision is None:
        return Fate.DECIDE
    return {"approve": Fate.AGREED, ABANDON: Fate.GIVEN_UP}.get(decision.decision, Fate.DENIED)


def _fate(run: AgentRun, call: ToolCallContent) -> Fate:
    turn, function, decision = run.turn, run.toolbox.get(call.name), run.turn.decisions.get(call.id)
    refused = None if decision is None else {"deny": Fate.DENIED, ABANDON: Fate.GIVEN_UP}.get(decision.decision)
    if call.id in run.suspended:
        return Fate.WAIT
    if call.id in turn.awaited and function is None:  # an agent that has the tool continues it
        return refused or Fate.WAIT
    if call.id in turn.started:
        again = turn.started[call.id] and function is not None and function.idempotent
        return Fate.RUN if again else Fate.UNKNOWN
    if decision is not None:
        return refused or Fate.RUN
    if function is not None and function.approval_needed(call):
        return Fate.DECIDE
    return Fate.GIVEN_UP if turn.overtaken else Fate.RUN


_CONTINUES = (
    "The next respond() continues the turn. A message for a running turn is queued by receive(), in any process."
)

# --- the loop -----------------------------------------------------------------------------------------------------------


async def go(run: AgentRun) -> None:
    """Run a turn to its end. `run.trace` records how it ended.

    Raises:
        AgentFailure: The turn ended without an answer; the error has the trace.
        Busy: Another process was first to begin a turn; nothing was written.
        Conflict: Another process continued the turn.
        StoreError: The store failed; the dialog has every durable step.
        InfeasibleBudget: The content that must be sent is larger than the budget.
        PolicyFailed: The context manager raised.
    """
    try:
        await run.listeners.emit(TurnStarting(run.trace, run.settings.model, run.settings.provider, run.toolbox.names))
        await _steps(run)
    except (get_cancelled_exc_class(), KeyboardInterrupt, SystemExit):
        run.trace.state = "interrupted"
        await _release(run, "interrupted")
        raise
    except Exception as error:
        run.trace.state = "failure"
        run.trace.error = error
        if isinstance(error, Conflict) and not isinstance(error, Busy):  # that one says what to do
            error.hint = _CONTINUES
        if not isinstance(error, Conflict | StoreError):  # then another process has the turn, or nothing can be written
            await _release(run, "failed")
        raise
    finally:
        await run.listeners.end(TurnFinished(run.trace))


async def _steps(run: AgentRun) -> None:
    first = next_step(run)
    if isinstance(first, Wait):  # there is no decision yet: a message waits, too
        await run.queue()
        await _wait(run)
        return
    if run.said is not None or not run.turn.over:
        await _begin(run, first)
    while run.turn.open:
        step = next_step(run)
        await _within_limits(run, step)
        match step:
            case Ask():
                await ask(run, final=step.final)
            case Settle():
                await settle(run, step.calls)
            case Wait():
                await run.end("waiting")
                await _wait(run)
                return
            case Finish():
                await run.end("final")
        run.require_listeners()
    run.deliver(_delivered(run))
    run.trace.state = "success"


async def _begin(run: AgentRun, first: Step) -> None:
    await run.begin(deliver=isinstance(first, Ask))
    if run.settings.options.checkpoint is not None:
        await run.record(await run_in_worker(partial(record_of, run.settings.options.checkpoint)))


async def _within_limits(run: AgentRun, step: Step) -> None:
    """Check the limits before a step that spends, and when a sub-agent stopped at one. A person may decide at a limit, too."""
    runs = isinstance(step, Settle) and any(fate is Fate.RUN for _, fate in step.calls)
    if runs or isinstance(step, Ask) or (isinstance(step, Wait) and run.limited):
        await run.within_limits()


async def _wait(run: AgentRun) -> None:
    run.trace.waiting = await run.awaited(partial(open_calls, run.dialog))
    run.trace.state = "waiting"
    await run.listeners.emit(DecisionAwaited(run.trace.waiting))


def _delivered(run: AgentRun) -> Message | None:
    """Return the answer. If the tools ended the turn, return the message that called them, with their results."""
    message = run.turn.response
    if message is None or not message.is_function_call:
        return message
    results = list(run.turn.answers.values())
    text = "\n".join(result.text() for result in results)
    parsed = {"raw": text, "results": {result.id: result.text() for result in results}}
    return message.model_copy(update={"parsed": parsed, "content": text})


async def _release(run: AgentRun, outcome: str) -> None:
    """End the turn in the log if the store allows it. An open turn can be resumed, too."""
    try:
        if run.turn.open:
            with CancelScope(shield=True):
                await run.end(outcome, *(() if run.answering is None else run.answering.cut_off()))
    except (Conflict, StoreError) as error:
        run.trace.error = run.trace.error or error
