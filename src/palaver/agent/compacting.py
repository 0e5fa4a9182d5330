"""Compacting on its own: when a trigger fires before the model is asked, the view is made smaller first, as an entry of the log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from palaver.agent.auto_compact import AutoCompact
from palaver.agent.events import Compacted
from palaver.agent.invoking import call_words
from palaver.agent.run import Run
from palaver.agent.summarizing import AsTheAgent
from palaver.context.triggers import Fired, Overflow, Own
from palaver.errors import (
    Conflict,
    ContextOverflow,
    InfeasibleBudget,
    InvalidInput,
    ModelCallFailed,
    StoreError,
    UnknownPolicy,
)
from palaver.session import CompactionPreview
from palaver.session.calls.composing import tokens_of
from palaver.session.compaction.attempts import attempt_of, rejection
from palaver.tokens import Budget
from palaver.tools.aside import aside
from palaver.wire import Call

__all__ = ["LAST", "compact_if_due", "make_room", "policy_failed"]

_ROOM = 0.8
"""The share of what fits that the smaller view may take: the answers and results to come need the rest."""

LAST = "default"
"""The policy that decides when no other one can: it is ours, and never raises."""

_UNTOLD = 0.5
"""The share of its size that a view keeps when the provider does not say by how much it was too long."""


_Made = TypeVar("_Made")


async def compact_if_due(run: Run) -> None:
    """Commit a smaller view, if a trigger fires and there is one worth it. Whatever cannot be done, the turn goes on as it is.

    Where a policy of the caller's raises, that is recorded, and the default policy decides.
    """
    how = run.settings.compact
    if how is None:
        return
    try:
        cause = await _due(run, how)
        if cause is None:
            return
        preview = await _previewed(run, how, cause)
        if preview.worthwhile:
            await _approved(run, preview)
    except (Conflict, InfeasibleBudget, InvalidInput):
        # somebody else compacted meanwhile; or nothing can be left out, and then the provider has the last word
        run.dialog.reload()


async def _due(run: Run, how: AutoCompact) -> Fired | None:
    """Give the trigger that fires; where the policy raises when it is asked for its own limit, the default policy has none, and the window counts."""
    asked = Fired(Own.name, "it was asked whether its own limit is reached")
    return await _or_last(run, how, asked, lambda way: aside(partial(way.due, run.dialog, run.settings.model)))


async def _previewed(run: Run, how: AutoCompact, cause: Fired) -> CompactionPreview:
    return await _or_last(run, how, cause, lambda way: _preview(run, way, cause))


async def _or_last(run: Run, how: AutoCompact, cause: Fired, make: Callable[[AutoCompact], Awaitable[_Made]]) -> _Made:
    """Make something by a policy; where it raises, or what it gives is no plan, that is recorded, and it is made by the default one."""
    try:
        return await make(how)
    except NOT_THE_POLICYS:
        raise
    except Exception as error:  # noqa: BLE001 - a policy of the caller's may raise anything, and is no reason to end a turn
        fault = error
    await policy_failed(run, cause, fault)
    return await make(replace(how, policy=LAST))


NOT_THE_POLICYS = (StoreError, InfeasibleBudget, UnknownPolicy)
"""What tells of the store, the budget or the configuration. Whatever else comes of planning, also an error of palaver's, the policy raised."""


async def _size(run: Run) -> int:
    """Count the tokens of the view, beside the loop."""
    return await aside(lambda: tokens_of(run.dialog.view(), run.settings.model))


_LONGEST = 200
"""Characters of what a policy says of its failure that are recorded: it may quote the whole view."""


def _first_line(text: str) -> str:
    line = next(iter(text.splitlines()), "")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


async def policy_failed(run: Run, cause: Fired, error: Exception) -> None:
    """Have the log say that a policy of the caller's raised, or gave what is no plan; once in a call of the agent, however often it does."""
    why = f"the policy raised {type(error).__name__}: {_first_line(str(error))}"
    if why in run.faults:
        return
    run.faults.add(why)
    size = await _size(run)
    run.dialog.annotate(rejection(attempt_of(cause, "", None), why, (size, size)))


async def _preview(run: Run, how: AutoCompact, cause: Fired) -> CompactionPreview:
    if isinstance(how.summarizer, AsTheAgent):
        words = call_words(run.prompt, run.settings.model_args)
        how = replace(how, summarizer=how.summarizer.sending(Call(model=run.settings.model, **words)))
    return await how.apreview(run.dialog, run.settings.model, cause)


async def _approved(run: Run, preview: CompactionPreview) -> None:
    await aside(preview.approve)
    run.look()
    run.tracer.compacted(preview.composed)
    await run.sink.emit(_event(preview))


def _event(preview: CompactionPreview) -> Compacted:
    made = preview.summarized
    return Compacted(
        preview.tokens_before,
        preview.tokens_after,
        preview.policy,
        trigger=str(preview.attempt.get("trigger", "")),
        why=str(preview.attempt.get("why", "")),
        summarizer="" if made is None else made.model,
        refused=preview.refused,
        usages=() if made is None else made.usages,
    )


# --- a request that was too long ---------------------------------------------------------------------------------------------------


async def make_room(run: Run, overflow: ContextOverflow) -> None:
    """Commit a smaller view, made by the agent's own policy or else by the default one.

    How small is measured with the provider's own figures, where it tells them: what it counted for the request, and what it reads.

    Raises:
        ModelCallFailed: No smaller view holds what every view must hold.
    """
    size = await _size(run)
    target = Budget.of_input(max(1, int(size * _share(overflow, size))))
    cause = Fired(Overflow.name, overflow.message)
    for how in _ways(run):
        try:
            preview = await _preview(run, replace(how, budget=target), cause)
            await _approved(run, preview)
        except (InfeasibleBudget, InvalidInput):
            continue  # the floor does not fit, or the policy does not make it smaller: the next one may
        except Conflict:  # somebody else made it smaller meanwhile
            run.dialog.reload()
            run.look()
        except NOT_THE_POLICYS:
            raise
        except Exception as error:  # noqa: BLE001 - a policy of the caller's may raise anything: the next one decides
            await policy_failed(run, cause, error)
            continue
        return
    raise ModelCallFailed(
        overflow, session=run.session, hint="What every view must hold is larger than the model's window."
    ) from overflow


def _share(overflow: ContextOverflow, size: int) -> float:
    """Give the share of its size that the view may keep, of `size` tokens as we count them.

    The provider's own count, where it tells it, corrects ours; the limit alone is taken at our count, where that is larger.
    """
    if not overflow.limit:
        return _UNTOLD
    asked = overflow.asked or size
    return _ROOM * overflow.limit / asked if asked > overflow.limit else _UNTOLD


def _ways(run: Run) -> list[AutoCompact]:
    """Give the ways in which room can be made, the agent's own first."""
    how, own = run.settings.compact, run.settings.context_manager
    found = [] if how is None else [how]
    found += [] if own is None else [AutoCompact(policy=own)]
    return [*found, AutoCompact(policy=LAST)]
