"""Asking the model: what came for the user meanwhile, tools and model in force, the call with its failures, and what becomes of the answer."""

from __future__ import annotations

from typing import Any

from palaver.agent.answering import Answering
from palaver.agent.call_session import AgentCallSession
from palaver.agent.compacting import compact_if_due
from palaver.agent.events import AnswerRefused, Delivered, Retrying
from palaver.agent.inbox import deliveries
from palaver.agent.instructing import remembered
from palaver.agent.invoking import InvokeResult
from palaver.agent.overflow import make_room
from palaver.agent.refusing import set_aside, unanswered
from palaver.agent.run import Run
from palaver.agent.seeing import overtaken, seen
from palaver.agent.steps import Ask
from palaver.agent.tracing import Asked
from palaver.agent.turn import EXHAUSTED, REFUSED, Attempt, attempt_entry, paused
from palaver.errors import (
    CallbackFailed,
    Conflict,
    ContextOverflow,
    PalaverError,
    ProviderError,
    RepairFailed,
    RequestRefused,
    StepsExhausted,
)
from palaver.ids import new_message_id
from palaver.log import Entry
from palaver.log.entries import ErrorEntry, Invocation, MessageEntry, ModelChange
from palaver.messages import AssistantMessage, Content, Message, Role, ToolCallContent
from palaver.models.retry import with_retries
from palaver.session.dialog.words import stamped
from palaver.tools.aside import aside

__all__ = ["ask"]


async def ask(run: Run, step: Ask) -> None:
    """Ask the model once more, and make what it says durable.

    Raises:
        ModelCallFailed: There is no answer, as often as it was allowed to ask.
        RepairFailed: The answer is refused, and no repair is left.
        StepsExhausted: The model calls tools where no more are allowed.
        CallbackFailed: A handler or an invoker of the caller's raised.
        InfeasibleBudget: What must be sent is larger than the budget.
    """
    await _deliver(run)
    await _declare(run)
    await compact_if_due(run)
    closing = _closing(run) if step.final else ""
    result = await _answered(run, closing)
    run.session.heard(run.step, result)
    await _take(run, result, step)


async def _deliver(run: Run) -> None:
    """Make what arrived part of the conversation."""
    run.look()
    entries = deliveries(run.turn.inbox, run.dialog.dialog_id)
    if entries:
        run.record(*entries)
        for entry in entries:
            await run.sink.emit(Delivered(entry.message))


async def _declare(run: Run) -> None:
    """Put tools, core memory and model in force where others are."""
    view = await aside(run.dialog.view)
    changed: list[Entry] = []
    if view.tools != run.toolbox.specs:
        changed.append(run.toolbox.toolset)
    changed += remembered(run, view)
    if view.model != run.settings.model:
        changed.append(ModelChange(model=run.settings.model, provider=_provider(run)))
    if changed:
        run.record(*changed)


def _provider(run: Run) -> str:
    return str(getattr(getattr(run.settings.invoker, "provider", None), "name", ""))


def _closing(run: Run) -> str:
    try:
        return run.prompt.on_interrupt_final(run.session).render({})
    except Exception as error:  # a handler of the caller's
        raise CallbackFailed("handler", error, session=run.session) from error


# --- the call ------------------------------------------------------------------------------------------------------------


_ANEW = 3
"""So often a request is made anew, if something that it holds is erased each time before it is sent."""


async def _answered(run: Run, closing: str) -> InvokeResult:
    """Ask; a view that is too long is made smaller once, and what is refused is set aside, where the agent is to do so."""
    smaller = run.turn.compacted
    most: int | None = None
    anew = _ANEW
    while True:
        try:
            return await _tried(run, closing, most)
        except Conflict:
            if not anew or not overtaken(run):
                raise
            anew -= 1
        except ContextOverflow as overflow:
            if smaller:
                raise await unanswered(run, overflow) from overflow
            most = await make_room(run, overflow, closing)
            smaller = True
        except RequestRefused as refused:
            await set_aside(run, refused)
        except ProviderError as error:
            raise await unanswered(run, error) from error


async def _tried(run: Run, closing: str, most: int | None) -> InvokeResult:
    """Ask, and again after failures that are worth it; each failure is recorded, with what came of the answer."""
    async for attempt in with_retries(run.settings.retry):
        with attempt:
            try:
                return await _once(run, closing, most)
            except ProviderError as error:
                _failed(run, error)
                raise
        if attempt.error is not None:
            run.enter("llm_recall")
            run.session.llm_recalls[run.step].append(attempt.error)
            await run.sink.emit(Retrying(attempt.error, attempt.wait or 0.0))
    raise AssertionError("a retry ends in an answer or an error")


def _failed(run: Run, error: ProviderError) -> None:
    facts = {"message": error.message, "provider": error.provider, "model": error.model, "status": error.status}
    kept = () if run.answering is None else run.answering.cut_off(error)
    run.record(*kept, ErrorEntry(error=type(error).__name__, data=facts))


async def _once(run: Run, closing: str, most: int | None) -> InvokeResult:
    with run.tracer.asking(run.settings, run.session) as asked:
        return await _followed(run, closing, most, asked)


async def _followed(run: Run, closing: str, most: int | None, asked: Asked) -> InvokeResult:
    settings = run.settings
    working = await seen(run, closing, most)
    decision = None
    if working.composed is not None:
        asked.seen(working.composed)
        decision = working.composed.plan.details
    args: dict[str, Any] = {"stream": run.sink.heard, **settings.model_args}
    if closing:
        args["tool_choice"] = "none"
    run.require_in_hand()
    run.answering = answering = Answering(
        dialog=run.dialog, sink=run.sink, model=settings.model, view=working.view, decision=decision
    )
    try:
        result = await settings.invoker.invoke(
            working.dialog,
            settings.model,
            prompt=run.prompt,
            model_args=args,
            parser_args=settings.parser_args,
            metadata=settings.metadata,
            api_type=settings.api_type,
            stream_handler=answering.hear,
        )
        _require_answer(result)
    except PalaverError:
        raise
    except Exception as error:  # an invoker of the caller's
        raise CallbackFailed("invoker", error, session=run.session) from error
    run.answering = None
    asked.answered(result)
    if answering.request is None:  # an invoker that does not say what it sends
        run.dialog.annotate(Invocation(model=settings.model, manifest={"at": working.at}))
    return result


def _require_answer(result: object) -> None:
    """Insist that an invoker of the caller's gave what it says it gives."""
    if not isinstance(result, InvokeResult):
        raise TypeError(f"it gave a {type(result).__name__}, not an InvokeResult")
    said: object = result.message
    if said is not None and not (isinstance(said, Message) and said.is_assistant_side):
        raise TypeError(f"the message of its InvokeResult is a {type(said).__name__}, not an AssistantMessage")


# --- the answer ------------------------------------------------------------------------------------------------------------


async def _take(run: Run, result: InvokeResult, step: Ask) -> None:
    message = result.message
    if result.has_errors or message is None:
        await _refuse(run, message or AssistantMessage(contents=()), result.error_message or "There was no answer.")
        return
    (kept,) = stamped(_as_logged(message), run.dialog.dialog_id, run.dialog.store)
    if kept.is_function_call and step.final:
        run.record(attempt_entry(Attempt(kept, EXHAUSTED, "No more tools were allowed.")))
        raise StepsExhausted(run.settings.rounds, session=run.session)
    if kept.is_function_call or (paused(kept) and not step.final):
        run.record(MessageEntry(message=kept))
        run.turn.response = (
            kept  # a store may redact what it writes: what runs at once gets the arguments that the model gave
        )
        return
    run.look()
    run.session.delivery = kept
    run.end("final" if run.sink.fault is None else "failed", MessageEntry(message=kept))


def _as_logged(message: Message) -> Message:
    """Give an answer as the log keeps it: one that calls tools has a role of its own, and its calls have ids that differ."""
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


async def _refuse(run: Run, message: Message, error: str) -> None:
    """Keep a refused answer, with what the model is told about it; when no repair is left, that is the end."""
    session = run.session
    run.enter("exception")
    session.error_message = error
    session.exception_retries[run.step].append(error)
    left = run.turn.repairs < run.settings.max_exception_retry
    told, fault = _repair(run, session, error) if left else ("", None)
    run.record(attempt_entry(Attempt(message, REFUSED, error, told)))
    if fault is not None:
        raise CallbackFailed("handler", fault, session=session) from fault
    if not left:
        raise RepairFailed(error, run.settings.max_exception_retry, session=session)
    await run.sink.emit(AnswerRefused(message, error))


def _repair(run: Run, session: AgentCallSession, error: str) -> tuple[str, Exception | None]:
    try:
        return run.prompt.on_exception(session).render({"error_message": error}), None
    except Exception as fault:  # noqa: BLE001 - a handler of the caller's: the answer is kept first
        return "", fault
