"""One request to the model: deliver the inbox, declare tools, memory and model, send, retry, and record the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from palaver.agent.compacting import is_plain, room_after, shaped
from palaver.agent.events import AnswerRefused, Asking, Retrying
from palaver.agent.invoking import InvokeResult, ProviderInvoker
from palaver.agent.run import AgentRun, callback_failed
from palaver.agent.trace import Trace
from palaver.agent.turn import EXHAUSTED, PARTIAL, REFUSED, RejectedAnswer, attempt_entry, unfinished
from palaver.errors import (
    AgentFailure,
    Conflict,
    ContextOverflow,
    InfeasibleBudget,
    PalaverError,
    ProviderError,
    RepairFailed,
)
from palaver.ids import new_message_id
from palaver.log import Entry, Handle, Instructions, Place, Section, entry_at
from palaver.log.entries import ErrorEntry, Invocation, MessageEntry, ModelChange, Toolset
from palaver.messages import AssistantMessage, Content, Message, Role, ToolCallContent, words_of
from palaver.messages.frozen import EMPTY
from palaver.plurals import a_type, counted
from palaver.providers import Assembly, Event
from palaver.providers.retry import with_retries
from palaver.session.refusals import blamed
from palaver.store.redacting import RedactingStore
from palaver.tokens.pricing import cost_of
from palaver.tools import run_in_worker
from palaver.view import View
from palaver.view.blocks import CARRIED
from palaver.wire import Request

MEMORY_SECTION = "palaver.memory"
"""The name of the instructions' section with the core memory."""

_OWN = "palaver.agent"
"""The name of the instructions' section with the system prompt of an agent that adopted the dialog."""

_MOST_REQUESTS = 3
"""How often a request is recompiled after an erasure or a compaction came between compiling and recording it."""


async def ask(run: AgentRun, *, final: bool) -> None:
    """Ask the model once, and record its answer; `final` when no more tools are allowed.

    Raises:
        AgentFailure: There is no answer, it calls tools although no more are allowed, or a callback of the caller raised.
        RepairFailed: The answer is refused, and no repair is left.
        InfeasibleBudget: The content that must be sent is larger than the budget.
        PolicyFailed: The context manager raised.
    """
    await _deliver(run)
    await _declare(run)
    closing = _closing(run) if final else ""
    result = await _answered(run, closing)
    run.trace.add_answer(run.turn.rounds, result)
    await _accept(run, result, final=final)


async def _deliver(run: AgentRun) -> None:
    """Append the messages of the inbox to the conversation."""
    await run.awaited(run.look)
    entries = run.due()
    if entries:
        await run.record(*entries)
        await run.tell(entries)


async def _declare(run: AgentRun) -> None:
    """Record tools, instructions, core memory and model if they differ from those in force."""
    changed = await run_in_worker(partial(_changes, run))
    if changed:
        await run.record(*changed)


def _changes(run: AgentRun) -> list[Entry]:
    view = run.view()
    if view.model in run.settings.options.fallback_models:  # it accepted what another had refused
        run.settings = replace(run.settings, model=view.model)
    changed: list[Entry] = []
    provided = run.settings.model_args.get("provider_tools", run.prompt.addon_args)
    if (view.tools, view.provided) != (run.toolbox.specs, provided):
        changed.append(Toolset(tools=run.toolbox.specs, provided=provided or None))
    changed += _instructed(run, view)
    if view.model != run.settings.model:
        changed.append(ModelChange(model=run.settings.model, provider=run.settings.provider))
    return changed


def _instructed(run: AgentRun, view: View) -> Iterator[Entry]:
    """Yield the agent's instructions with the current core memory, unless they are in force already."""
    before, memory = _in_force(run, view), run.settings.options.memory
    sections, replaces = before.sections, before.replaces
    own = _as_stored(run, Instructions(sections=(Section(name=_OWN, text=run.instructions),))).sections
    if run.instructions and own[0].text not in {words_of(block.content) for block in view.system}:
        sections = own
        replaces = (*replaces, *(Place(dialog=place.dialog, seq=place.seq) for place in _places(run, view, "message")))
    if memory is not None:
        core = memory.core(run.dialog) if hasattr(memory, "core") else memory
        text = core.rendered()
        others = tuple(section for section in sections if section.name != MEMORY_SECTION)
        sections = (*others, Section(name=MEMORY_SECTION, text=text, behind=True)) if text else others
    after = _as_stored(run, Instructions(sections=sections, replaces=replaces))
    if (after.sections, after.replaces) != (before.sections, before.replaces):
        yield after


def _as_stored(run: AgentRun, entry: Instructions) -> Instructions:
    """Return instructions as the store keeps them, to compare them with those in force."""
    store = run.dialog.store
    return store.stored(entry) if isinstance(store, RedactingStore) else entry


def _in_force(run: AgentRun, view: View) -> Instructions:
    """Return the instructions in force that are an entry of their own."""
    for place in _places(run, view, "instructions"):
        entry = entry_at(run.dialog.opened.recent, place)
        if isinstance(entry, Instructions):
            return entry
    return Instructions()


def _places(run: AgentRun, view: View, kind: str) -> Iterator[Handle]:
    """Yield the entries of a kind that are in force before the conversation."""
    for span in view.state:
        place = Handle(span.dialog, span.start)
        if run.dialog.opened.recent.header(*place[:2]).kind == kind:
            yield place


def _closing(run: AgentRun) -> str:
    try:
        return run.prompt.on_interrupt_final(run.trace).render({})
    except Exception as error:  # a handler of the caller
        raise callback_failed("handler", error, run.trace) from error


# --- the call ------------------------------------------------------------------------------------------------------------


class _Answering:
    """One running call of the model. It records the request, passes events on, and assembles the answer so far.

    If the call is cut off and no error has a partial answer, the assembled part is recorded.
    """

    def __init__(self, run: AgentRun) -> None:
        self.request: Request | None = None
        self._run = run
        self._come: Assembly | None = None

    async def handle(self, event: Event | Asking) -> None:
        """Handle an event. The invocation is recorded before the request is sent."""
        if isinstance(event, Asking):
            await run_in_worker(partial(self._record, event.request))
            self.request = event.request
        else:
            self._add(event)
        await self._run.listeners.emit(event)

    def _record(self, request: Request) -> None:
        """Record the invocation if no limit is reached. Meanwhile no sub-agent's turn of this process records another."""
        with self._run.guard.lock:
            self._run.guard.require(self._run.trace)
            self._run.dialog.calls.record(request)

    def _add(self, event: Event) -> None:
        model = self._run.settings.model
        self._come = self._come or Assembly(model=model)
        try:
            self._come.add(event)
        except ProviderError:  # the invoker asks several models in turn, and another answer begins
            self._come = Assembly(model=model)
            self._come.add(event)

    def cut_off(self, error: ProviderError | None = None) -> Iterator[Entry]:
        """Yield the entry of a partial answer, once; yield nothing if nothing arrived."""
        come, self._come = self._come, None
        partial = None if error is None else error.partial
        if error is not None and isinstance(partial, Message) and partial.contents:
            yield self._attempt(partial, error.message)
        elif come is not None and come.partial.contents:
            yield self._attempt(come.partial, "The answer was cut off.")

    def _attempt(self, message: Message, error: str) -> Entry:
        """Count a partial answer, which may have been paid for, and return its entry."""
        self._run.trace.add_cost(cost_of(message.usage, message.model or "", message.timestamp))
        return attempt_entry(RejectedAnswer(message, PARTIAL, error))


async def _answered(run: AgentRun, closing: str) -> InvokeResult:
    """Send the request. If it is too long, make it smaller once; if the model refuses, ask the next one the same.

    «Treat any partial output as incomplete and discard it», and «follow-up requests stay pinned» to the model that accepted
    (platform.claude.com/docs/en/build-with-claude/refusals-and-fallback).
    """
    try:
        try:
            return await _recompiled(run, closing, None)
        except ContextOverflow as overflow:
            if is_plain(run):  # the result of a plain context manager is not cut further
                raise
            try:
                return await _recompiled(run, closing, await room_after(run, overflow))
            except InfeasibleBudget as error:
                raise await _failed(run, overflow, str(error)) from overflow
    except ProviderError as error:
        others, model = list(run.settings.options.fallback_models), run.settings.model
        others = others[others.index(model) + 1 :] if model in others else others
        if error.kind != "declined" or not others:
            raise await _failed(run, error) from error
        run.settings = replace(run.settings, model=others[0])
        run.left = error.partial.metadata.get(CARRIED, EMPTY) if isinstance(error.partial, Message) else EMPTY
        await run.record(ModelChange(model=others[0], provider=run.settings.provider))
        return await _answered(run, closing)


async def _recompiled(run: AgentRun, closing: str, limit: int | None) -> InvokeResult:
    """Send the request; recompile it if an erasure or a compaction came first."""
    for left in reversed(range(_MOST_REQUESTS)):
        try:
            return await _with_retries(run, closing, limit)
        except Conflict:
            if not left or not await run.awaited(partial(_still_ours, run)):
                raise
    raise AssertionError("the last request ends in an answer or an error")


def _still_ours(run: AgentRun) -> bool:
    """Return whether this process still has the turn, after reading the entries written meanwhile."""
    try:
        run.dialog.record()
    except Conflict:
        return False
    run.dialog.reload()
    run.look()
    return True


async def _failed(run: AgentRun, error: ProviderError, hint: str = "") -> AgentFailure:
    """Return the failure. A refusal names the block it concerns, which every later request would contain."""
    request = None if run.answering is None else run.answering.request
    place = None
    if request is not None and error.kind == "refused":
        place = await run.awaited(partial(blamed, run.dialog.store, request, error.message))
    about = f"It concerns {place}: dialog.marks.quarantine({str(place)!r}) sets that block aside." if place else ""
    hints = " ".join(filter(None, (about, hint or error.hint)))
    return AgentFailure(error.message, trace=run.trace, kind="provider", error=error, hint=hints)


async def _with_retries(run: AgentRun, closing: str, limit: int | None) -> InvokeResult:
    """Send the request with retries; record each failure with its partial answer."""
    async for attempt in with_retries(run.settings.retrying):
        with attempt:
            try:
                return await _once(run, closing, limit)
            except ProviderError as error:
                facts = {
                    "message": error.message,
                    "provider": error.provider,
                    "model": error.model,
                    "status": error.status,
                }
                kept = () if run.answering is None else run.answering.cut_off(error)
                await run.record(*kept, ErrorEntry(error=type(error).__name__, data=facts))
                raise
        if attempt.error is not None:
            run.trace.state = "llm_recall"
            run.trace.llm_recalls[run.turn.rounds].append(attempt.error)
            await run.listeners.emit(Retrying(attempt.error, attempt.wait or 0.0))
    raise AssertionError("a retry ends in an answer or an error")


async def _once(run: AgentRun, closing: str, limit: int | None) -> InvokeResult:
    settings = run.settings
    working = await shaped(run, closing, limit)
    if settings.options.fallback_models:
        working.fallback = run.left
    args: dict[str, Any] = {"stream": bool(run.listeners), **settings.model_args}
    if closing:
        args["tool_choice"] = "none"
    if not isinstance(settings.invoker, ProviderInvoker):
        # raises Conflict if another process took over, before anything is paid for
        await run.awaited(run.dialog.record)
        await run.within_limits()
    run.answering = answering = _Answering(run)
    try:
        result = await settings.invoker.invoke(
            working,
            settings.model,
            prompt=run.prompt,
            model_args=args,
            parser_args=settings.call.get("parser_args"),
            responder="assistant",
            metadata=settings.call.get("metadata"),
            api_type=settings.options.api_type,
            stream_handler=answering.handle,
        )
        _require_answer(result)
    except PalaverError:
        raise
    except Exception as error:  # an invoker of the caller
        raise callback_failed("invoker", error, run.trace) from error
    run.answering, run.left = None, EMPTY
    if answering.request is None:  # an invoker that does not report its request
        unseen = Invocation(model=settings.model, manifest={"at": working.view().at})
        await run.awaited(partial(run.dialog.record, unseen, beside=True))
    elif result.message is not None:
        run.measured = answering.request, result.message.usage.invoke_cost.prompt_tokens
    return result


def _require_answer(result: object) -> None:
    """Raise TypeError unless the caller's invoker returned an InvokeResult."""
    if not isinstance(result, InvokeResult):
        raise TypeError(f"invoke returned {a_type(result)}, not an InvokeResult")
    said: object = result.message
    if said is not None and not (isinstance(said, Message) and said.is_assistant_side):
        raise TypeError(f"the message of the InvokeResult is {a_type(said)}, not an AssistantMessage")


# --- the answer ------------------------------------------------------------------------------------------------------------


async def _accept(run: AgentRun, result: InvokeResult, *, final: bool) -> None:
    message = result.message
    if result.has_errors or message is None:
        error = result.execution_errors[0] if result.execution_errors else None
        text = result.error_message or "There was no answer."
        await _refuse(run, message or AssistantMessage(contents=()), text, error)
        return
    (kept,) = run.dialog.opened.stamped(_as_logged(message))
    if kept.is_function_call and final:
        await run.record(attempt_entry(RejectedAnswer(kept, EXHAUSTED, "No more tools were allowed.")))
        rounds = counted(run.settings.options.rounds, "round")
        raise AgentFailure(
            f"After {rounds} of tools, the model was asked for a final answer but called tools again.",
            trace=run.trace,
            kind="steps",
            hint="Raise max_interrupt_steps, or give the agent less to do at once.",
        )
    if kept.is_function_call or (unfinished(kept) and not final):
        await run.record(_answer(kept, result))
        # a store may redact what it writes, but the call must run with the model's own arguments
        run.turn.response = kept
        return
    run.deliver(kept)
    await run.end("final" if run.listeners.fault is None else "failed", _answer(kept, result))


def _answer(message: Message, result: InvokeResult) -> MessageEntry:
    """Return the entry of an answer, with what its request had before it."""
    return MessageEntry(message=message, bound=None if result.request is None else result.request.bound_for(message))


def _as_logged(message: Message) -> Message:
    """Return an answer as the log stores it: calls get the role `tool_call` and unique ids."""
    if not message.is_function_call:
        return message
    seen: set[str] = set()
    blocks: list[Content] = []
    for block in message.contents:
        if isinstance(block, ToolCallContent) and (not block.id or block.id in seen):
            fresh = f"{block.id or 'call'}_{new_message_id()[:8]}"
            blocks.append(block.model_copy(update={"id": fresh, "provider_id": block.id}))
        else:
            blocks.append(block)
        seen |= {block.id} if isinstance(block, ToolCallContent) else set()
    return message.model_copy(update={"role": Role.TOOL_CALL, "contents": tuple(blocks)})


async def _refuse(run: AgentRun, message: Message, text: str, cause: BaseException | None) -> None:
    """Record a refused answer and the request for a repair; fail the turn when no repair is left."""
    trace: Trace = run.trace
    run.trace.state = "exception"
    trace.error_message = text
    trace.exception_retries[run.turn.rounds].append(text)
    most = run.settings.options.max_exception_retry
    left = run.turn.repairs < most
    repair, fault = _repair(run, text) if left else ("", None)
    await run.record(attempt_entry(RejectedAnswer(message, REFUSED, text, repair)))
    if fault is not None:
        raise callback_failed("handler", fault, trace) from fault
    if not left:
        raise RepairFailed(text, most, trace=trace) from cause
    await run.listeners.emit(AnswerRefused(message, text))


def _repair(run: AgentRun, text: str) -> tuple[str, Exception | None]:
    try:
        return run.prompt.on_exception(run.trace).render({"error_message": text}), None
    except Exception as fault:  # noqa: BLE001 - a handler of the caller; the answer is recorded first
        return "", fault
