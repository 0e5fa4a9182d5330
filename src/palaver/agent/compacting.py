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
from palaver.agent.working import LAST
from palaver.context.triggers import Fired, Own
from palaver.errors import (
    Conflict,
    InfeasibleBudget,
    InvalidInput,
    PolicyFailed,
    StoreError,
    UnknownPolicy,
)
from palaver.session import CompactionPreview
from palaver.session.calls.composing import tokens_of
from palaver.session.compaction.attempts import attempt_of, rejection
from palaver.tools.aside import aside
from palaver.wire import Call

__all__ = ["NOT_THE_POLICYS", "committed", "compact_if_due", "first_line", "policy_failed", "previewed", "record_once"]

_Made = TypeVar("_Made")


_PLANS = 3
"""So often a view is planned before one call of the model, if somebody writes each time before it is committed; the last time without a summariser,
which takes long and is paid for."""


async def compact_if_due(run: Run) -> None:
    """Commit a smaller view, if a trigger fires and there is one worth it. Whatever cannot be done, the turn goes on as it is.

    Where a policy of the caller's raises, that is recorded, and the default policy decides. What cannot be committed is recorded, too: where
    a summary is in it the plan that code makes is committed in its place; where somebody compacted or erased something meanwhile, it is planned anew.
    """
    how = run.settings.compact
    for left in reversed(range(_PLANS)):
        if how is None:
            return
        how = await _left_to_do(run, how if left else replace(how, summarizer=None))


async def _left_to_do(run: Run, how: AutoCompact) -> AutoCompact | None:
    """Compact, if it is due; how to go on where that came to nothing, and None where there is nothing more to do."""
    cause = Fired(Own.name, "a view was to be made smaller")
    try:
        due = await _due(run, how)
        if due is None:
            return None
        cause = due
        preview = await _or_previewed(run, how, cause)
    except InfeasibleBudget as error:  # nothing can be left out, and the provider has the last word
        await record_once(run, cause, f"there is no view so small: {first_line(error.message)}")
        return None
    except (Conflict, InvalidInput) as error:  # the default policy's, too
        await policy_failed(run, cause, error)
        run.dialog.reload()
        return None
    plain = replace(how, summarizer=None) if preview.summary else None
    if not preview.worthwhile:
        if preview.paid:
            await aside(partial(preview.fail, "it would not be smaller"))
        return plain
    fault = await committed(run, preview)
    return how if isinstance(fault, Conflict) else plain if fault is not None else None


async def committed(run: Run, preview: CompactionPreview) -> Conflict | InvalidInput | None:
    """Commit a smaller view, and give what stood in the way, which is recorded: a conflict with somebody else, or that it cannot be written down.

    That it cannot counts as a failure of the summariser where a summary is in it. Where nobody was asked it is recorded once in a call of the agent.
    """
    try:
        await _approved(run, preview)
    except Conflict as error:
        if preview.paid:
            await aside(partial(preview.reject, error.message))
        fault: Conflict | InvalidInput = error
    except InvalidInput as error:
        why = f"the view could not be committed: {first_line(error.message)}"
        if preview.paid or why not in run.faults:
            run.faults.add(why)
            await aside(partial(preview.fail, why))
        fault = error
    else:
        return None
    run.dialog.reload()
    run.look()
    return fault


async def _due(run: Run, how: AutoCompact) -> Fired | None:
    """Give the trigger that fires; where the policy raises when it is asked for its own limit, the default policy has none, and the window counts."""
    asked = Fired(Own.name, "it was asked whether its own limit is reached")
    return await _or_last(run, how, asked, lambda way: aside(partial(way.due, run.dialog, run.settings.model)))


async def _or_previewed(run: Run, how: AutoCompact, cause: Fired) -> CompactionPreview:
    return await _or_last(run, how, cause, lambda way: previewed(run, way, cause))


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


def first_line(text: str) -> str:
    """Give the first line of what is recorded of a failure, cut where it is long."""
    line = next(iter(text.splitlines()), "")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


async def policy_failed(run: Run, cause: Fired, error: Exception) -> None:
    """Have the log say that a policy of the caller's raised, or gave what is no plan; once in a call of the agent, however often it does."""
    fault = error.error if isinstance(error, PolicyFailed) else error
    await record_once(run, cause, f"the policy raised {type(fault).__name__}: {first_line(str(fault))}")


async def record_once(run: Run, cause: Fired, why: str) -> None:
    """Have the log say why no smaller view was committed; once in a call of the agent, however often it comes to that."""
    if why in run.faults:
        return
    run.faults.add(why)
    size = await _size(run)
    run.dialog.annotate(rejection(attempt_of(cause, "", None), why, (size, size)))


async def previewed(run: Run, how: AutoCompact, cause: Fired) -> CompactionPreview:
    """Look at what a compaction would do; a summariser that is the agent's own model is asked behind the request that the agent sends."""
    if isinstance(how.summarizer, AsTheAgent):
        words = call_words(run.prompt, run.settings.model_args)
        how = replace(how, summarizer=how.summarizer.sending(Call(model=run.settings.model, **words)))
    return await how.apreview(run.dialog, run.settings.model, cause)


async def _approved(run: Run, preview: CompactionPreview) -> None:
    """Commit it, and tell whoever listens."""
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
