"""Bringing calls to their results: the intent durable before the effect, each result as soon as it is there."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from palaver.agent.approvals import Decision
from palaver.agent.events import CallEnded, CallProgress, CallStarting
from palaver.agent.inbox import beside
from palaver.agent.run import Run
from palaver.agent.settings import Verdict
from palaver.agent.steps import Fate, Settle
from palaver.errors import CallbackFailed, Conflict, InvalidInput, PalaverError, StoreError
from palaver.log.entries import Approval, CallStarted, LateResult
from palaver.messages import (
    FunctionCall,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
)
from palaver.tools import CallContext, Function, Progress, ToolOutcome, execute_all

__all__ = ["SUSPENDED", "settle"]

SUSPENDED = "palaver.suspended"
"""The key of a result's metadata by which a tool says that it has none yet: it waits for a decision, and is to be called again."""

UNKNOWN = (
    "The outcome of this call is unknown: the program stopped after the call had begun and before its result was recorded. "
    "It was not run again. Find out what it did before you repeat it."
)
GIVEN_UP = "This call was not run: the conversation went on without it."
_DENIED = "This call was not run: it was not allowed."
_EDITED = "[The arguments were changed before the call ran, to {arguments}]"


async def settle(run: Run, step: Settle) -> None:
    """Bring calls to their results, each in its way; whoever has to decide is asked when the others have run.

    Raises:
        CallbackFailed: A handler or the approver raised; results are recorded all the same.
        Conflict: Another process has the turn in hand.
        StoreError: The store refused a result; this process keeps it.
    """
    run.enter("interrupt")
    runnable: list[ToolCallContent] = []
    for call, fate in step.calls:
        kept = run.unsaved.get((run.dialog.dialog_id, call.id))
        if kept is not None:
            run.say(kept)
            del run.unsaved[run.dialog.dialog_id, call.id]
        elif fate is Fate.RUN:
            runnable.append(_edited(run, call))
        elif fate is not Fate.DECIDE:
            await _close(run, call, fate)
    await _Batch(run).execute(runnable)
    for call, fate in step.calls:
        if fate is Fate.DECIDE and run.settings.approve is not None and call.id not in run.suspended:
            await _ask(run, call)


async def _close(run: Run, call: ToolCallContent, fate: Fate) -> None:
    """Answer a call that is not run."""
    text = {Fate.UNKNOWN: UNKNOWN, Fate.GIVEN_UP: GIVEN_UP}.get(fate) or _denial(run.turn.decisions.get(call.id))
    result = ToolResultContent(id=call.id, content=text, is_error=True, name=call.name)
    run.say(_message(result, call, str(fate)))
    run.session.interrupts[run.step].append(FunctionCall(call.id, call.name, call.args, None, text, text))
    await run.sink.emit(CallEnded(call, result, str(fate)))


def _denial(decision: Approval | None) -> str:
    if decision is None:
        return _DENIED
    who = f" {decision.by} said" if decision.by and decision.reason else ""
    return f"{_DENIED}{who}{':' if who else ''} {decision.reason or ''}".strip()


def _message(result: ToolResultContent, call: ToolCallContent, ending: str, seconds: float = 0.0) -> ToolMessage:
    metadata = {"tool_call_id": call.id, "ending": ending, "seconds": round(seconds, 3)}
    return ToolMessage(contents=(result,), name=call.name, metadata=metadata)


def _edited(run: Run, call: ToolCallContent) -> ToolCallContent:
    """Give a call as it is to run: with the arguments that somebody put in the place of the model's."""
    decision = run.turn.decisions.get(call.id)
    if decision is None or decision.decision != "edit" or not isinstance(decision.arguments, dict):
        return call
    return ToolCallContent(id=call.id, name=call.name, kind=call.kind, args=decision.arguments)


async def _ask(run: Run, call: ToolCallContent) -> None:
    """Have the approver decide; what it leaves to others waits."""
    try:
        verdict = run.settings.approve(call) if run.settings.approve is not None else None
        if inspect.isawaitable(verdict):
            verdict = await verdict
        decision = _decision(verdict)
    except Exception as error:  # an approver of the caller's
        raise CallbackFailed("approver", error, session=run.session) from error
    if decision is None:
        run.undecided.add(call.id)
        return
    beside(run.dialog.store, run.dialog.dialog_id, decision.entry(call.id))
    run.look()


def _decision(verdict: Verdict) -> Decision | None:
    if isinstance(verdict, bool):
        return Decision(decision="approve" if verdict else "deny")
    if verdict is not None and not isinstance(verdict, Decision):
        raise InvalidInput(f"An approver gives True, False, a Decision or None, not a {type(verdict).__name__}.")
    return verdict


class _Batch:
    """The calls of one answer that are run. What goes wrong with the record of one never stops another."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._fault: PalaverError | None = None

    async def execute(self, calls: Sequence[ToolCallContent]) -> None:
        if not calls:
            return
        run = self._run
        context = CallContext(
            dialog=run.dialog, agent=run.settings.agent, deps=run.settings.deps, on_progress=self._progress
        )
        await execute_all(
            run.toolbox,
            calls,
            context=context,
            earlier=tuple(run.turn.executed),
            on_start=self._start,
            on_outcome=self._outcome,
            parallel=run.settings.parallel,
        )
        if self._fault is not None:
            raise self._fault

    def _progress(self, progress: Progress) -> None:
        told = CallProgress(progress.call_id, progress.tool, progress.message, progress.done, progress.total)
        self._run.sink.note(told)

    async def _start(self, call: ToolCallContent, function: Function) -> None:
        """Record the intent; when that fails nothing of the call has happened."""
        self._run.record(CallStarted(call_id=call.id, tool=call.name, idempotent=function.idempotent))
        self._run.tracer.call_begun(call)
        await self._run.sink.emit(CallStarting(call))

    async def _outcome(self, call: ToolCallContent, outcome: ToolOutcome) -> None:
        """Record a result. The handler's words stand in it, unless the handler raises: then the tool's own."""
        run = self._run
        if SUSPENDED in outcome.result.metadata:
            run.suspended.add(call.id)
            run.tracer.call_ended(call, outcome.result, outcome.ending)
            return
        run.session.interrupts[run.step].append(outcome.function_call)
        try:
            result = self._worded(self._noted(call, outcome.result))
        except Exception as error:  # noqa: BLE001 - a handler of the caller's; the result is recorded first
            result = outcome.result
            self._fault = self._fault or CallbackFailed("handler", error, session=run.session)
        self._keep(_message(result, call, outcome.ending, outcome.seconds))
        run.tracer.call_ended(call, result, outcome.ending)
        await run.sink.emit(CallEnded(call, result, outcome.ending, outcome.seconds))

    def _noted(self, call: ToolCallContent, result: ToolResultContent) -> ToolResultContent:
        """Tell the model where the arguments were not its own."""
        decision = self._run.turn.decisions.get(call.id)
        if decision is None or decision.decision != "edit":
            return result
        return _with_text(result, f"{_EDITED.format(arguments=call.arguments)}\n{result.text()}")

    def _worded(self, result: ToolResultContent) -> ToolResultContent:
        """Give a result in the words of the prompt's handler."""
        text = self._run.session.call_results = result.text()
        prompt = self._run.prompt.on_interrupt(self._run.session)
        said = prompt.render({"call_results": text})
        return result if said == text else _with_text(result, said)

    def _keep(self, message: ToolMessage) -> None:
        """Record a result; one that the store refuses stays here, one that comes after somebody else took over stands beside the turn."""
        run = self._run
        try:
            run.say(message)
        except Conflict as error:
            self._fault = self._fault or error
            beside(run.dialog.store, run.dialog.dialog_id, LateResult(message=message))
        except StoreError as error:
            self._fault = self._fault or error
            (result,) = message.tool_results()
            run.unsaved[run.dialog.dialog_id, result.id] = message


def _with_text(result: ToolResultContent, text: str) -> ToolResultContent:
    """Give a result with other words; its media stay."""
    if isinstance(result.content, str):
        return result.model_copy(update={"content": text})
    rest = tuple(part for part in result.content if not isinstance(part, TextContent))
    return result.model_copy(update={"content": (TextContent(content=text), *rest)})
