"""Shape the view of the next call: commit the policy's plan as one entry, and read files again after it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from palaver.agent.events import Compacted
from palaver.agent.run import AgentRun
from palaver.agent.working import WorkingCopy, notices, with_notices
from palaver.context.compose import Composed, compose
from palaver.context.meter import Meter
from palaver.context.policy import DEFAULT_POLICY, ContextManager, Policy, policy
from palaver.context.summary import HEADINGS, Summarized, summarize
from palaver.context.triggers import Figures, Fired, fired, next_request
from palaver.errors import ContextOverflow, InfeasibleBudget, InvalidInput
from palaver.ids import now
from palaver.log import Handle, entry_at
from palaver.log.entries import Compaction, MessageEntry
from palaver.messages import Speaker, TextContent, ToolCallContent, UserMessage
from palaver.session import Dialog
from palaver.tokens import Budget
from palaver.tools import execute, run_in_worker
from palaver.view import Exchange, View

__all__ = ["is_plain", "room_after", "shaped"]

_OVERFLOW_SHARE = 0.8
"""The share of what the provider says it reads that the next request may have: answers and results to come need the rest."""

_BLIND_SHARE = 0.5
"""The share of a refused request that the next one may have where the provider names no figures (OpenHands condenses to half)."""

_SEARCHED = 256
"""Exchanges that are searched, newest first, for files to read again."""


def is_plain(run: AgentRun) -> bool:
    """Return whether a plain context manager shapes the requests: what it returns is obeyed exactly."""
    manager = _manager(run)
    return manager is not None and not isinstance(manager, Policy)


def _manager(run: AgentRun) -> ContextManager | None:
    settings = run.settings
    named = settings.context_manager
    if named is None and settings.budget is not None:
        named = DEFAULT_POLICY
    return policy(named, settings.model, runtime=run.settings.agent.runtime)


async def shaped(run: AgentRun, closing: str, limit: int | None = None) -> WorkingCopy:
    """Return what the model is to see, planned in a worker. A plan that makes the view smaller is committed first.

    Args:
        run: The run.
        closing: What asks for the answer when no more tools are allowed, or empty.
        limit: The most tokens that may be sent after the provider refused more; None for what the budget says.

    Raises:
        InfeasibleBudget: What must be sent is larger than the budget.
        PolicyFailed: The context manager raised.
        Conflict: The dialog was compacted, or something in it erased, meanwhile.
    """
    settings, dialog = run.settings, run.dialog
    after = tuple(notices(run.turn.attempts, closing, settings.model))
    manager = _manager(run)
    if manager is None and limit is not None:
        manager = policy(DEFAULT_POLICY, settings.model)
    if manager is None:
        view = await run_in_worker(dialog.view)
    elif isinstance(manager, Policy):
        if limit is None:
            await _if_fired(run, manager)
        view = await _planned(run, manager, after, limit)
    else:
        view = (await run_in_worker(partial(_managed, run, manager, after))).view
        after = ()
    return WorkingCopy(dialog, with_notices(view, after), run.prompt, run.memo)


def _managed(run: AgentRun, manager: ContextManager, after: tuple[Exchange, ...]) -> Composed:
    """Have a plain context manager shape all that the call sees."""
    settings = run.settings
    budget = Budget.of_input(2**53) if settings.budget is None else Budget.parse(settings.budget, settings.model)
    return _composed(run, manager, with_notices(run.dialog.view(), after), budget)


async def _planned(run: AgentRun, manager: Policy, after: tuple[Exchange, ...], limit: int | None) -> View:
    """Return the view under a policy; where its plan makes the view smaller, commit it and start from there."""
    budget = await run_in_worker(partial(_room, run, manager, after, limit))
    view = await run_in_worker(run.dialog.view)
    composed = await run_in_worker(partial(_composed, run, manager, view, budget))
    if composed.view is view or composed.after.total >= composed.before.total:
        return composed.view
    return await _committed(run, manager, view, composed, budget, "limit" if limit is None else "overflow")


def _composed(run: AgentRun, manager: ContextManager, view: View, budget: Budget) -> Composed:
    settings = run.settings
    fallback = None if settings.fallback is None else policy(settings.fallback, settings.model)
    meter = run.dialog.compaction.meter(settings.model)
    return compose(view, manager, budget, meter, fallback=fallback if isinstance(fallback, Policy) else None)


def _room(run: AgentRun, manager: Policy, after: tuple[Exchange, ...], limit: int | None) -> Budget:
    """Return what the view may occupy: the budget as the provider counts tokens, less the exchanges after the view."""
    settings, meter = run.settings, run.dialog.compaction.meter(run.settings.model)
    budget = manager.budget_for(settings.model)
    if settings.budget is not None:
        budget = Budget.parse(settings.budget, settings.model)
    counted, reported = _reported(run, meter)
    budget = budget.corrected(counted, reported)
    most = budget.limit if limit is None else min(limit, budget.limit)
    most -= sum(meter.exchange(exchange) for exchange in after)
    return budget if most == budget.limit else budget.with_limit(max(most, 1))


def _reported(run: AgentRun, meter: Meter) -> tuple[int, int]:
    """Return what the last request counted and what the provider reported of it; zeros where there was none."""
    if run.measured is None or run.measured[0].view is None:
        return 0, 0
    return meter.view(run.measured[0].view).total, run.measured[1]


async def _if_fired(run: AgentRun, manager: Policy) -> None:
    """Commit a smaller view where a trigger fires although the view still fits."""
    cause = await run_in_worker(partial(_cause, run, manager)) if run.settings.triggers else None
    if cause is None:
        return
    settings, dialog = run.settings, run.dialog
    try:
        preview = await run_in_worker(
            partial(dialog.compaction.preview, manager, model=settings.model, trigger=cause.trigger)
        )
    except InfeasibleBudget:  # nothing can be left out; whether the view fits is the budget's business
        return
    if preview.worthwhile:
        room = Budget.of_input(preview.tokens_before)
        await _committed(run, manager, preview.before, preview.composed, room, cause.trigger)


def _cause(run: AgentRun, manager: Policy) -> Fired | None:
    """Return the trigger that fires, or None."""
    dialog, meter = run.dialog, run.dialog.compaction.meter(run.settings.model)
    view, store = dialog.view(), dialog.store
    last = store.last(dialog.dialog_id)
    said = next((each.at for each in store.headers(dialog.dialog_id, reverse=True) if each.kind == "message"), last.at)
    figures = Figures(
        events=sum(exchange.messages or 1 for exchange in view.exchanges),
        tokens=next_request(meter.estimate(view).total, *_reported(run, meter)),
        window=manager.budget_for(run.settings.model).max_tokens,
        idle=max(0.0, now() - said),
        compacted=_compacted(dialog, meter, last.view_base),
    )
    return fired(run.settings.triggers, figures)


def _compacted(dialog: Dialog, meter: Meter, seq: int) -> int:
    """Return the size of the view after its last compaction, or after the undoing of one; 0 where there was none."""
    entry = entry_at(dialog.store, Handle(dialog.dialog_id, seq)) if seq >= 0 else None
    if not isinstance(entry, Compaction):
        return 0
    return entry.tokens_after if entry.undone is None else meter.estimate(dialog.view(at=seq)).total


async def _committed(
    run: AgentRun, manager: Policy, before: View, composed: Composed, budget: Budget, trigger: str
) -> View:
    """Commit a plan, with a summary if there is a summarizer, and read files again that it dropped; return the view to start from."""
    summarized = await _summarized(run, manager, before, composed, budget)
    made, attempt = summarized.composed, {"trigger": trigger, **_account(summarized)}
    try:
        await run_in_worker(partial(run.dialog.compaction.commit, made, attempt=attempt))
    except InvalidInput:  # not smaller when it is counted exactly: it is sent as it is
        return composed.view
    run.look()
    restored = await _restored(run, manager, before, made.view)
    event = Compacted(
        made.before.total, made.after.total, made.by, trigger, summarized.model, summarized.usages, restored
    )
    await run.listeners.emit(event)
    return await run_in_worker(run.dialog.view)


async def _summarized(run: AgentRun, manager: Policy, before: View, composed: Composed, budget: Budget) -> Summarized:
    summarizer = run.settings.summarizer
    if summarizer is None:
        return Summarized(composed=composed)
    meter = run.dialog.compaction.meter(run.settings.model)
    headings = manager.headings or HEADINGS
    return await summarize(before, composed, summarizer, budget, meter, headings=headings)


def _account(summarized: Summarized) -> dict[str, Any]:
    """Return what is recorded of a summary that was asked for."""
    return {"summary": summarized.account()} if summarized.requests or summarized.failed else {}


async def room_after(run: AgentRun, overflow: ContextOverflow) -> int:
    """Return how many tokens the next request may have, as they are counted here, after the provider refused one as too long."""
    request = None if run.answering is None else run.answering.request
    meter = run.dialog.compaction.meter(run.settings.model)
    view = request.view if request is not None and request.view is not None else await run_in_worker(run.dialog.view)
    refused = (await run_in_worker(lambda: meter.view(view))).total
    asked = overflow.asked or refused
    if overflow.limit and asked > overflow.limit:
        share = overflow.limit / asked * (_OVERFLOW_SHARE if overflow.asked else _BLIND_SHARE)
    else:
        share = _BLIND_SHARE
    return max(1, int(refused * share))


# --- files ---------------------------------------------------------------------------------------------------------------


async def _restored(run: AgentRun, manager: Policy, before: View, after: View) -> tuple[str, ...]:
    """Read the newest files again whose contents left the view, through the tool that read them, and append what they say.

    How many, and how much of each, the policy says: `restore_files` and `restore_tokens` (Claude Code: 5 files of 5,000 tokens).
    """
    most = getattr(manager, "restore_files", 0)
    if not most:
        return ()
    calls = await run_in_worker(lambda: list(_newest_reads(run, before, after, most)))
    entries: list[MessageEntry] = []
    for path, call in calls:
        outcome = await execute(run.toolbox, call)
        if outcome.error is None:
            text = await run_in_worker(partial(_cut, run, outcome.result.text(), getattr(manager, "restore_tokens", 0)))
            said = f"[{path} as it is now, read again after older messages left the context]\n{text}"
            entries.append(MessageEntry(message=UserMessage(contents=(TextContent(said),), speaker=Speaker.TOOL)))
    if entries:
        run.record(*entries)
    return tuple(path for path, _ in calls)


def _newest_reads(run: AgentRun, before: View, after: View, most: int) -> Iterator[tuple[str, ToolCallContent]]:
    """Yield the newest calls that read or wrote a file by declaration and are not shown any more, one for each file."""
    shown = {block.origin for exchange in after.exchanges[-_SEARCHED:] for block in exchange.blocks()}
    seen: set[str] = set()
    first = max(0, len(before.exchanges) - _SEARCHED)
    before.load(range(first, len(before.exchanges)))
    for exchange in reversed(before.exchanges[first:]):
        for block in exchange.blocks():
            call = block.content
            function = run.toolbox.get(call.name) if isinstance(call, ToolCallContent) else None
            if function is None or not isinstance(call, ToolCallContent) or not function.reads:
                continue
            path = str(call.args.get(function.reads[0], ""))
            if not path or path in seen or function.approval_needed(call):
                continue
            seen.add(path)
            if block.origin not in shown:
                yield path, call
            if len(seen) >= most:
                return


def _cut(run: AgentRun, text: str, tokens: int) -> str:
    """Return the beginning of a text, about so many tokens of it."""
    meter = run.dialog.compaction.meter(run.settings.model)
    size = meter.text(text)
    return text if size <= tokens else f"{text[: len(text) * tokens // size]}\n[… cut]"
