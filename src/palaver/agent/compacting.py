"""Shape the view of the next call: commit the policy's plan as one entry, with a summary, and then read files again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from palaver.agent.claim import require_unclaimed
from palaver.agent.events import Asking, Compacted
from palaver.agent.invoking import WorkingCopy
from palaver.agent.limits import Guard
from palaver.agent.options import CallSettings
from palaver.agent.run import AgentRun
from palaver.agent.turn import REFUSED, REPEATED, RejectedAnswer, read_turn
from palaver.context import DEFAULT_POLICY, Composed, ContextManager, Policy, compose, policy
from palaver.context.meter import Meter
from palaver.context.summary import HEADINGS, Summarized, SummaryAnswer, SummaryRequest, summarize
from palaver.context.triggers import Figures, fired, next_request
from palaver.errors import Conflict, ContextOverflow, Erased, InfeasibleBudget, InvalidInput, NotFound, ProviderError
from palaver.ids import DialogId, new_message_id, now
from palaver.log import Handle, Place, copy_of
from palaver.log.entries import CallStarted, Compaction, Custom, MessageEntry
from palaver.messages import Message, Role, Speaker, StopReason, TextContent, ToolCallContent, UserMessage
from palaver.providers import Event, Provider, collect
from palaver.session import Dialog
from palaver.session.compaction import ATTEMPT as REJECTED_COMPACTION
from palaver.tokens import Budget, model_info
from palaver.tools import execute, run_in_worker
from palaver.view import Block, Exchange, Turn, View, in_force
from palaver.wire import Call, Request
from palaver.wire import compile as compile_request
from palaver.wire.binding import COMPACTION

_OVERFLOW_SHARE = 0.8
"""The share of the provider's stated limit for the next request. Coming answers and results need the rest."""

_BLIND_SHARE = 0.5
"""The share of a refused request for the next one, if the provider states no figures (OpenHands condenses to half)."""

_SEARCHED = 256
"""The number of exchanges, newest first, in which to search for files to read again."""


def is_plain(run: AgentRun) -> bool:
    """Return whether a plain context manager shapes the requests. Its result is sent exactly."""
    manager = run.settings.context_manager
    return manager is not None and not isinstance(manager, Policy)


def _meter(run: AgentRun) -> Meter:
    return run.dialog.compaction.meter(run.settings.model)


async def shaped(run: AgentRun, closing: str, limit: int | None = None) -> WorkingCopy:
    """Return the model's next view, planned in a worker. A plan that makes the view smaller is committed first.

    Args:
        run: The run.
        closing: The request for the answer when no more tools are allowed, or empty.
        limit: The maximum number of tokens after the provider refused more; None for the budget's limit.

    Raises:
        InfeasibleBudget: The content that must be sent is larger than the budget.
        PolicyFailed: The context manager raised.
        Conflict: The dialog was compacted meanwhile, or part of it erased.
    """
    after = tuple(notices(run.turn.attempts, closing, run.settings.model))
    manager = run.settings.context_manager
    if manager is None and limit is not None:
        manager = policy(DEFAULT_POLICY, run.settings.model)
    if isinstance(manager, Policy):
        manager = _for_model(run.settings, manager)
        await _read_again(run, manager)
        if limit is None and run.settings.options.triggers:
            await _committed(run, manager, await run_in_worker(partial(_fired, run, manager)))
        plan = await run_in_worker(partial(_planned, run, manager, after, limit))
        view = with_notices(await _committed(run, manager, plan) or plan.composed.view, after)
    else:
        view = await run_in_worker(partial(_unplanned, run, manager, after))
    return WorkingCopy(run.dialog, view, run.prompt, run.memo)


def _unplanned(run: AgentRun, manager: ContextManager | None, after: tuple[Exchange, ...]) -> View:
    """Return the whole view of the call, as a plain context manager shapes it."""
    view = with_notices(run.view(), after)
    if manager is None:
        return view
    budget = run.settings.budget or Budget.of_input(2**53)
    return _composed(run, manager, view, budget).view


def _composed(run: AgentRun, manager: ContextManager, view: View, budget: Budget) -> Composed:
    fallback = run.settings.fallback if isinstance(run.settings.fallback, Policy) else None
    committed = not (isinstance(manager, Policy) and manager.asks_provider)
    return compose(view, manager, budget, _meter(run), fallback=fallback, committed=committed)


def _for_model(settings: CallSettings, manager: Policy) -> Policy:
    """Return a policy for the requests of an agent's model, where its invoker says what they may have."""
    provider = getattr(settings.invoker, "provider", None)
    return manager.for_profile(provider.profile_for(settings.model)) if isinstance(provider, Provider) else manager


# --- between two turns ---------------------------------------------------------------------------------------------------


async def compacted(dialog: Dialog, settings: CallSettings, guard: Guard) -> Handle:
    """Compact a conversation now: commit the policy's plan, or append the block that the provider returns when it is asked.

    Raises:
        InvalidInput: A turn is not over, the provider compacts no conversation of the model, or the view would not become smaller.
        AgentFailure: A limit of the session or subject is reached.
        ProviderError: The provider returned no compaction.
        Conflict: Another process wrote meanwhile.
    """
    await run_in_worker(guard.require)
    if not await run_in_worker(partial(_answered, dialog)):
        raise InvalidInput(
            "Between an answer and the next message a conversation is compacted; this one waits for an answer."
        )
    manager = settings.context_manager or policy(DEFAULT_POLICY, settings.model)
    if isinstance(manager, Policy) and manager.asks_provider:
        return await _asked(dialog, settings, _for_model(settings, manager))
    compaction, summarizer = dialog.compaction, guard.counted(settings.options.summarizer)
    known: dict[str, Any] = {"budget": settings.budget, "model": settings.model}
    if summarizer is None:
        preview = await run_in_worker(partial(compaction.preview, manager, **known))
    else:
        preview = await compaction.apreview(summarizer, manager, **known)
    return await run_in_worker(preview.approve)


def _answered(dialog: Dialog) -> bool:
    """Return whether a dialog ends on an answer, and nothing waits for the next one.

    Raises:
        Busy: Another process is answering.
    """
    dialog.reload()
    turn = read_turn(dialog.opened.recent, dialog.dialog_id)
    require_unclaimed(dialog.opened.recent, dialog.dialog_id, turn)
    tail = dialog.tail
    return not (turn.open or turn.pending or turn.inbox) and tail is not None and tail.is_assistant_side


async def _asked(dialog: Dialog, settings: CallSettings, manager: Policy) -> Handle:
    """Ask the provider for a compaction, and append its answer."""
    view = await run_in_worker(partial(dialog.view, manager, settings.budget, model=settings.model))

    async def record(event: Event | Asking) -> None:
        if isinstance(event, Asking):
            await run_in_worker(partial(dialog.calls.record, event.request))

    args = {"provider_tools": view.provided, **settings.model_args, "compact": True, "stream": False}
    result = await settings.invoker.invoke(
        WorkingCopy(dialog, view), settings.model, model_args=args, stream_handler=record
    )
    if result.message is None or not any(block.type == COMPACTION for block in result.message.contents):
        raise ProviderError(
            "The provider returned no compaction.", kind="broken", model=settings.model, partial=result.message
        )
    (message,) = dialog.opened.stamped(result.message)
    bound = None if result.request is None else result.request.bound_for(message)
    (place,) = await run_in_worker(partial(dialog.record, MessageEntry(message=message, bound=bound)))
    return place


# --- policies ------------------------------------------------------------------------------------------------------------


class _Proposal(NamedTuple):
    """A policy's proposal: the view before, the composed view, its budget, and the trigger."""

    before: View
    composed: Composed
    budget: Budget
    trigger: str


def _planned(run: AgentRun, manager: Policy, after: tuple[Exchange, ...], limit: int | None) -> _Proposal:
    """Return a policy's proposal for the next request. Its budget follows the provider's count, minus the exchanges after the view."""
    settings, meter = run.settings, _meter(run)
    whole = settings.budget or manager.budget_for(settings.model)
    budget = whole.corrected(*_reported(run, meter))
    most = budget.limit if limit is None else min(limit, budget.limit)
    most -= sum(meter.exchange(exchange) for exchange in after)  # the notices come after the view and are never cut
    if most != budget.limit:
        budget = budget.with_limit(max(most, 1))
    view = run.view()
    made = _composed(run, manager, view, budget)
    if made.view.compact_at:  # the provider compares it with its own count
        made = replace(made, view=replace(made.view, compact_at=manager.compact_at(whole)))
    return _Proposal(view, made, budget, "limit" if limit is None else "overflow")


def _reported(run: AgentRun, meter: Meter) -> tuple[int, int]:
    """Return our count and the provider's count of the last request; zeros if there was none."""
    if run.measured is None or run.measured[0].view is None:
        return 0, 0
    return meter.view(run.measured[0].view).total, run.measured[1]


def _fired(run: AgentRun, manager: Policy) -> _Proposal | None:
    """Return the proposal for a smaller view if a trigger fires although the view still fits."""
    dialog, meter, log, model = run.dialog, _meter(run), run.dialog.opened.recent, run.settings.model
    view, last = run.view(), log.last(dialog.dialog_id)
    said = next(
        (header.at for header in log.headers(dialog.dialog_id, reverse=True) if header.kind == "message"), last.at
    )
    figures = Figures(
        events=sum(exchange.messages or 1 for exchange in view.exchanges),
        tokens=next_request(meter.estimate(view).total, *_reported(run, meter)),
        window=manager.budget_for(model).max_tokens,
        idle=max(0.0, now() - said),
        compacted=_compacted(dialog, meter, last.view_base),
    )
    cause = fired(run.settings.options.triggers, figures)
    if cause is None:
        return None
    try:
        preview = dialog.compaction.preview(manager, model=model, trigger=cause.trigger)
    except InfeasibleBudget:  # nothing can be left out; the budget decides whether the view fits
        return None
    return _Proposal(preview.before, preview.composed, Budget.of_input(preview.tokens_before), cause.trigger)


def _compacted(dialog: Dialog, meter: Meter, seq: int) -> int:
    """Return the size of the view after its last compaction or undo; 0 if there was none."""
    seq, entry = in_force(dialog.opened.recent, dialog.dialog_id, seq)
    if not isinstance(entry, Compaction):
        return 0
    return entry.tokens_after if entry.undone is None else meter.estimate(dialog.view(at=seq)).total


async def _committed(run: AgentRun, manager: Policy, plan: _Proposal | None) -> View | None:
    """Commit a plan that makes the view smaller, with a summary if there is a summarizer, and read dropped files again.

    Returns:
        The view to start from; None if nothing was committed.
    """
    if plan is None or manager.asks_provider or plan.composed.view is plan.before:
        return None
    if plan.composed.after.total >= plan.composed.before.total:
        return None
    summarizer, headings = run.guard.counted(run.settings.options.summarizer), manager.headings or HEADINGS
    summarized = Summarized(composed=plan.composed)
    if summarizer is not None:
        meter = _meter(run)
        summarized = await summarize(
            plan.before,
            plan.composed,
            summarizer,
            plan.budget,
            meter,
            headings=headings,
            anew=not manager.incremental,
        )
    made = summarized.composed
    asked = {"summary": summarized.account()} if summarized.requests or summarized.failed else {}
    attempt: dict[str, Any] = {"trigger": plan.trigger, **asked}
    run.trace.add_cost(summarized.cost)
    try:
        await run_in_worker(partial(run.dialog.compaction.commit, made, attempt=attempt))
    except (Conflict, InvalidInput) as error:
        if asked:  # the summary was paid for
            data = {**attempt, "rejected": error.message}
            await run.awaited(
                partial(run.dialog.record, Custom(custom_type=REJECTED_COMPACTION, data=data), beside=True)
            )
        if isinstance(error, Conflict):
            raise
        return None  # an exact count shows that it is not smaller: send the view as it is
    finally:
        run.guard.settle()
    await run.awaited(run.look)
    restored = await _restored(run, manager, plan.before, made.view)
    sizes = made.before.total, made.after.total
    model, usages, summary = summarized.model, summarized.usages, summarized.summary
    await run.listeners.emit(Compacted(*sizes, made.by, plan.trigger, model, usages, summary, restored))
    return await run_in_worker(run.view)


async def room_after(run: AgentRun, overflow: ContextOverflow) -> int:
    """Return the maximum size of the next request, in our tokens, after the provider refused one as too long."""
    request = None if run.answering is None else run.answering.request
    meter = _meter(run)
    view = request.view if request is not None and request.view is not None else await run_in_worker(run.view)
    refused = (await run_in_worker(lambda: meter.view(view))).total
    asked = overflow.asked or refused
    if overflow.limit and asked > overflow.limit:
        share = overflow.limit / asked * (_OVERFLOW_SHARE if overflow.asked else _BLIND_SHARE)
    else:
        share = _BLIND_SHARE
    return max(1, int(refused * share))


def notices(attempts: Sequence[RejectedAnswer], closing: str, model: str) -> Iterator[Exchange]:
    """Yield the exchanges after the conversation: refused answers with their repairs, and the request for the final answer.

    Args:
        attempts: The answers since the newest message that did not become messages.
        closing: The request for the answer when no more tools are allowed, or empty.
        model: The model.
    """
    for attempt in attempts:
        if attempt.why == REFUSED and attempt.repair:
            text = attempt.message.text_content()
            if text.strip():
                yield _answer(attempt.message, text, model)
            yield _notice(attempt.repair)
    if closing:
        yield _notice(closing)


def with_notices(view: View, after: Sequence[Exchange]) -> View:
    """Return a view with derived exchanges at its end, or the same view if there are none."""
    return replace(view, exchanges=(*view.exchanges, *after)) if after else view


def _answer(message: Message, text: str, model: str) -> Exchange:
    """Return the text of a refused answer. Its thinking was signed for another conversation."""
    block = Block(content=TextContent(content=text), derived="notice", speaker=Speaker.MODEL, trust=Speaker.MODEL.trust)
    turn = Turn(role=Role.ASSISTANT, blocks=(block,), model=message.model or model)
    return Exchange.of((turn,), pinned=True, derived="notice")


def _notice(text: str) -> Exchange:
    """Return a notice of the harness to the model."""
    speaker = Speaker.HARNESS
    block = Block(content=TextContent(content=text), derived="notice", speaker=speaker, trust=speaker.trust)
    return Exchange.of((Turn(role=Role.USER, blocks=(block,)),), pinned=True, derived="notice")


# --- files ---------------------------------------------------------------------------------------------------------------


async def _restored(run: AgentRun, manager: Policy, before: View, after: View) -> tuple[str, ...]:
    """Read the newest files again whose contents left the view, and return their paths.

    The policy sets the number of files and the tokens of each: `restore_files` and `restore_tokens` (Claude Code: 5 files of 5,000 tokens). Only
    tools that read and do nothing else are called, each call recorded before it runs.
    """
    most = manager.restore_files
    reads = await run_in_worker(lambda: list(_newest_reads(run, before, after, most))) if most else []
    if reads:
        await run.record(*(_intent(call, origin) for call, origin in reads))
    return await _read_again(run, manager)


def _intent(call: ToolCallContent, origin: Handle) -> CallStarted:
    return CallStarted(call_id=new_message_id(), tool=call.name, idempotent=True, repeats=Place.of(origin))


async def _read_again(run: AgentRun, manager: Policy) -> tuple[str, ...]:
    """Run the harness's recorded calls that have no result, also those of a process that died, and append what they return.

    Returns:
        The paths of the files that were read.
    """
    paths: list[str] = []
    for call_id, origin in tuple(run.turn.repeats.items()) if manager.restore_files else ():
        call, path = await run_in_worker(partial(_recorded, run, call_id, origin))
        if call is None:  # the call was erased, or its tool changed: the file stays unread
            continue
        outcome = await execute(run.toolbox, call, context=run.context)
        text = await run_in_worker(partial(_cut, run, outcome.result.text(), manager.restore_tokens))
        how = "as it is now, read again" if outcome.error is None else "could not be read again"
        said = f"[{path} {how} after older messages left the context]\n{text}"
        message = UserMessage(
            contents=(TextContent(said),), speaker=Speaker.TOOL, metadata={REPEATED: call_id, **copy_of([origin])}
        )
        await run.record(MessageEntry(message=message))
        paths += [path] if outcome.error is None else []
    return tuple(paths)


def _recorded(run: AgentRun, call_id: str, origin: Handle) -> tuple[ToolCallContent | None, str]:
    """Return a call of the harness and the path that it reads; None if it is erased, or if it would do more than read now."""
    try:
        call = run.dialog.recall(origin)
    except (Erased, NotFound):
        return None, ""
    path = _path_read(run, call)
    return (call.model_copy(update={"id": call_id}) if path and isinstance(call, ToolCallContent) else None), path


def _path_read(run: AgentRun, call: object) -> str:
    """Return the path of the file that a call reads if it does nothing else; otherwise an empty string."""
    function = run.toolbox.get(call.name) if isinstance(call, ToolCallContent) else None
    if function is None or not isinstance(call, ToolCallContent) or not function.reads:
        return ""
    if function.writes or not function.idempotent or function.approval_needed(call):
        return ""
    return str(call.args.get(function.reads[0], ""))


def _newest_reads(run: AgentRun, before: View, after: View, most: int) -> Iterator[tuple[ToolCallContent, Handle]]:
    """Yield the newest calls that only read a file and are no longer shown, one per file, with their handles."""
    shown = {block.origin for exchange in after.exchanges[-_SEARCHED:] for block in exchange.blocks()}
    seen: set[str] = set()
    first = max(0, len(before.exchanges) - _SEARCHED)
    before.load(range(first, len(before.exchanges)))
    for exchange in reversed(before.exchanges[first:]):
        for block in exchange.blocks():
            call, path = block.content, _path_read(run, block.content)
            if not path or path in seen:
                continue
            seen.add(path)
            if isinstance(call, ToolCallContent) and block.origin is not None and block.origin not in shown:
                yield call, block.origin
            if len(seen) >= most:
                return


def _cut(run: AgentRun, text: str, tokens: int) -> str:
    """Return the beginning of a text, about as many tokens as asked."""
    meter = _meter(run)
    size = meter.text(text)
    return text if size <= tokens else f"{text[: len(text) * tokens // size]}\n[… cut]"


# --- summaries ----------------------------------------------------------------------------------------------------------


_EMPTY = View(dialog_id=DialogId("0" * 32), at=-1)


class ModelSummarizer:
    """Asks a model for summaries, possibly a cheaper one than the agent's. The request is one text, without tools.

    Attributes:
        provider: The provider.
        model: The model.
        max_tokens: The maximum length of an answer in tokens; None for the provider's own limit.
    """

    def __init__(self, provider: Provider, model: str, *, max_tokens: int | None = None) -> None:
        self.provider = provider
        self.model = model
        self.max_tokens = max_tokens

    @property
    def window(self) -> int:
        """The model's window in tokens; 0 if it is unknown."""
        info = model_info(self.model)
        return info.max_input if info.known else 0

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Return a summary.

        Raises:
            ProviderError: The provider returned no complete answer.
        """
        sent = await run_in_worker(partial(self._compiled, request.prompt()))
        async with aclosing(self.provider.stream(sent)) as events:
            message = await collect(events)
        return SummaryAnswer(
            text=message.text_content(),
            complete=message.stop_reason is not StopReason.LENGTH,
            calls=len(message.tool_calls()),
            model=message.model or self.model,
            usage=message.usage,
        )

    def _compiled(self, text: str) -> Request:
        call = Call(model=self.model, then=text, max_tokens=self.max_tokens)
        request = compile_request(_EMPTY, self.provider.profile_for(self.model), call, lambda _: b"")
        request.check()
        return request
