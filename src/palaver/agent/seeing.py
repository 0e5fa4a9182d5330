"""What the next call sees: planned beside the loop, by the context manager, or by the default policy where that one fails."""

from __future__ import annotations

from functools import partial

from palaver.agent.compacting import NOT_THE_POLICYS, first_line, policy_failed, record_once
from palaver.agent.run import Run
from palaver.agent.working import LAST, Working, working_copy
from palaver.context import policy
from palaver.context.triggers import Fired
from palaver.errors import InvalidInput
from palaver.session.reading.erased import erased_since
from palaver.tools.aside import aside

__all__ = ["overtaken", "seen"]


async def seen(run: Run, closing: str, most: int | None = None) -> Working:
    """Plan what the model is to see, beside the loop: no policy keeps others waiting.

    Where one of the caller's raises, or gives what is no view, that is recorded, and the default policy decides: the turn goes on.

    Args:
        run: The run.
        closing: What asks for the answer when no more tools are allowed; empty for nothing.
        most: So many tokens are the most that may be sent, as they are counted here; what the budget allows when not given.

    Raises:
        InfeasibleBudget: What must be sent is larger than the budget, or than `most`.
        InvalidInput: There is no such policy, or its configuration is none.
    """
    settings = run.settings
    planned = partial(
        working_copy,
        run.dialog,
        run.turn.attempts,
        closing,
        prompt=run.prompt,
        budget=settings.budget,
        model=settings.model,
        most=most,
    )
    try:
        return await _told(run, await aside(partial(planned, manager=settings.context_manager)))
    except InvalidInput as error:
        _require_policy(run)
        fault: Exception = error
    except NOT_THE_POLICYS:
        raise
    except Exception as error:  # noqa: BLE001 - a policy of the caller's may raise anything, and is no reason to end a turn
        fault = error
    await policy_failed(run, _CAUSE, fault)
    return await _told(run, await aside(partial(planned, manager=LAST)))


SHAPING = "request"
"""The trigger under which it is recorded that a context manager could not shape a request, or that what it decided could not be committed."""

_CAUSE = Fired(SHAPING, "a request was to be shaped")


async def _told(run: Run, working: Working) -> Working:
    """Have the log say where what a schedule decided is sent and could not be committed: it is decided anew before each call."""
    if working.unwritten:
        await record_once(run, _CAUSE, f"what was decided could not be committed: {first_line(working.unwritten)}")
    return working


def _require_policy(run: Run) -> None:
    """Insist that there is the policy that the agent is to have: that it is not there, or not so, is for its author to mend.

    Raises:
        InvalidInput: There is none of this name, or its configuration is none.
    """
    policy(run.settings.context_manager, run.settings.model, runtime=run.dialog.runtime)


def overtaken(run: Run) -> bool:
    """Tell whether something was erased that the request holds which could not be recorded, and so was not sent; it is taken note of."""
    view = None if run.answering is None else run.answering.view
    if view is None or erased_since(run.dialog.store, run.dialog.dialog_id, view.at) is None:
        return False
    run.dialog.reload()
    run.look()
    return True
