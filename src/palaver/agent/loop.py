"""The loop: look where the turn stands, do what comes next, until it is answered, waits, fails or is cut off."""

from __future__ import annotations

from anyio import get_cancelled_exc_class

from palaver.agent.asking import ask
from palaver.agent.calls import settle
from palaver.agent.events import DecisionAwaited, TurnFinished
from palaver.agent.run import Run
from palaver.agent.steps import Ask, Finish, Settle, Wait, next_step
from palaver.errors import Conflict, StoreError
from palaver.messages import Message, ToolResultContent

__all__ = ["go"]


async def go(run: Run) -> None:
    """Bring a turn to its end, from wherever it stands. How it ended stands in `run.session`.

    Raises:
        AgentFailure: There is no answer; the error has the session.
        Conflict: Another process has the turn in hand.
        StoreError: The store failed; the dialog is as it was after the last durable step.
        InfeasibleBudget: What must be sent is larger than the budget.
    """
    try:
        await _steps(run)
    except get_cancelled_exc_class():
        _interrupted(run)
        raise
    except (KeyboardInterrupt, SystemExit):
        _interrupted(run)
        raise
    except Exception as error:  # whatever it is, the turn is let go of, and it is raised again
        _failed(run, error)
        raise
    finally:
        await run.sink.end(TurnFinished(run.session))


async def _steps(run: Run) -> None:
    first = next_step(run.turn, run.rules)
    if isinstance(first, Wait):  # nobody has decided yet: there is nothing to write down
        await _wait(run, first)
        return
    if not run.turn.over:
        run.begin()
    while run.turn.open:
        step = next_step(run.turn, run.rules)
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
        run.require_heard()
    run.session.delivery = _delivered(run)
    run.enter("success")


async def _wait(run: Run, step: Wait) -> None:
    run.session.waiting = step.calls
    run.enter("waiting")
    await run.sink.emit(DecisionAwaited(step.calls))


def _delivered(run: Run) -> Message | None:
    """Give the answer; where the tools themselves ended the turn, the message that called them, with what they said."""
    message = run.turn.response
    if message is None or not message.is_function_call:
        return message
    results = list(run.turn.answers.values())
    text = "\n".join(result.text() for result in results)
    parsed = {"raw": text, "results": {result.id: _value(result) for result in results}}
    return message.model_copy(update={"parsed": parsed, "content": text})


def _value(result: ToolResultContent) -> str:
    return result.text()


def _interrupted(run: Run) -> None:
    """Leave a valid dialog behind: the turn is let go of, and goes on at the next call."""
    run.enter("interrupted")
    _let_go(run, "interrupted")


def _failed(run: Run, error: Exception) -> None:
    run.enter("failure")
    run.session.error = error
    if not isinstance(error, Conflict | StoreError):
        _let_go(run, "failed")


def _let_go(run: Run, outcome: str) -> None:
    """End the turn in the log, if that can be done: a turn left open is taken up just as well."""
    try:
        if run.turn.open:
            run.end(outcome, *(() if run.answering is None else run.answering.cut_off()))
    except (Conflict, StoreError) as error:
        run.session.error = run.session.error or error
