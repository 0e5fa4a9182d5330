"""The loop: take the next step of a turn until it is answered, waits, fails or is interrupted."""

from __future__ import annotations

from anyio import get_cancelled_exc_class

from palaver.agent.asking import ask
from palaver.agent.calls import settle
from palaver.agent.events import DecisionAwaited, TurnFinished, TurnStarting
from palaver.agent.run import AgentRun
from palaver.agent.steps import Ask, Finish, Settle, Wait, next_step
from palaver.errors import Conflict, StoreError
from palaver.messages import Message

__all__ = ["go"]


async def go(run: AgentRun) -> None:
    """Run a turn to its end. `run.session` says how it ended.

    Raises:
        AgentFailure: There is no answer; the error has the session.
        Conflict: Another process continued the turn.
        StoreError: The store failed; the dialog is as it was after the last durable step.
        InfeasibleBudget: What must be sent is larger than the budget.
        PolicyFailed: The context manager raised.
    """
    try:
        await run.listeners.emit(TurnStarting(run.session, run.settings.model, run.settings.provider))
        await _steps(run)
    except (get_cancelled_exc_class(), KeyboardInterrupt, SystemExit):
        run.enter("interrupted")
        _release(run, "interrupted")
        raise
    except Exception as error:
        run.enter("failure")
        run.session.error = error
        if not isinstance(error, Conflict | StoreError):
            _release(run, "failed")
        raise
    finally:
        await run.listeners.end(TurnFinished(run.session))


async def _steps(run: AgentRun) -> None:
    first = next_step(run)
    if isinstance(first, Wait):  # nobody has decided yet: there is nothing to write
        await _wait(run, first)
        return
    if not run.turn.over:
        run.begin()
    while run.turn.open:
        step = next_step(run)
        match step:
            case Ask():
                await ask(run, step)
            case Settle():
                await settle(run, step)
            case Wait():
                run.end("waiting")
                await _wait(run, step)
                return
            case Finish():
                run.end("final")
        run.require_listeners()
    run.session.delivery = _delivered(run)
    run.enter("success")


async def _wait(run: AgentRun, step: Wait) -> None:
    run.session.waiting = step.calls
    run.enter("waiting")
    await run.listeners.emit(DecisionAwaited(step.calls))


def _delivered(run: AgentRun) -> Message | None:
    """Return the answer; where the tools themselves ended the turn, the message that called them, with what they said (C23)."""
    message = run.turn.response
    if message is None or not message.is_function_call:
        return message
    results = list(run.turn.answers.values())
    text = "\n".join(result.text() for result in results)
    parsed = {"raw": text, "results": {result.id: result.text() for result in results}}
    return message.model_copy(update={"parsed": parsed, "content": text})


def _release(run: AgentRun, outcome: str) -> None:
    """End the turn in the log if the store allows it; an open turn can be resumed as well."""
    try:
        if run.turn.open:
            run.end(outcome, *(() if run.answering is None else run.answering.cut_off()))
    except (Conflict, StoreError) as error:
        run.session.error = run.session.error or error
