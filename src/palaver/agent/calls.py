"""Run tool calls: the intent is durable before the effect, and each result as soon as it exists."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial

from palaver.agent.approvals import Decision, Verdict, annotate, repeated, standing
from palaver.agent.events import CallEnded, CallStarting
from palaver.agent.run import AgentRun, callback_failed
from palaver.agent.turn import Fate
from palaver.errors import Conflict, InvalidInput, PalaverError, StoreError
from palaver.log.entries import Approval, CallStarted, LateResult
from palaver.messages import FunctionCall, TextContent, ToolCallContent, ToolMessage, ToolResultContent
from palaver.plurals import a_type
from palaver.tools import Function, ToolOutcome, execute_all

SUSPENDED = "palaver.suspended"
"""The metadata key with which a tool says that it has no result yet. It waits for a decision and will be called again."""

LIMITED = "palaver.limited"
"""The metadata key with which it says that it stopped at a limit of its caller's turn."""

UNKNOWN = (
    "The outcome of this call is unknown: the program stopped after the call had begun and before its result was recorded. "
    "It was not run again. Find out what it did before you repeat it."
)
GIVEN_UP = "This call was not run: the conversation went on without it."
_AGREED = "This call was allowed."
_DENIED = "This call was not run: it was not allowed."
_EDITED = "[The arguments were changed before the call ran, to {arguments}]"


async def settle(run: AgentRun, calls: Sequence[tuple[ToolCallContent, Fate]]) -> None:
    """Settle calls: run them, refuse them, or ask the approver after the others have run.

    Raises:
        AgentFailure: A handler or the approver raised. The results are recorded anyway.
        Conflict: Another process continued the turn.
        StoreError: The store refused a result, which this process keeps.
    """
    run.trace.state = "interrupt"
    runnable: list[ToolCallContent] = []
    for call, fate in calls:
        kept = run.unsaved.get((run.dialog.dialog_id, call.id))
        if kept is not None:
            await run.say(kept)
            del run.unsaved[run.dialog.dialog_id, call.id]
        elif fate is Fate.RUN:
            runnable.append(_edited(run, call))
        elif fate not in {Fate.DECIDE, Fate.WAIT}:
            await _close(run, call, fate)
    await _ToolRound(run).execute(runnable)  # before the approver: a person may take hours
    for call, fate in calls:
        if fate is Fate.DECIDE and call.id not in run.undecided:
            await _decide(run, call)


async def _close(run: AgentRun, call: ToolCallContent, fate: Fate) -> None:
    """Answer a call that does not run."""
    known = {Fate.UNKNOWN: UNKNOWN, Fate.GIVEN_UP: GIVEN_UP, Fate.AGREED: _AGREED}
    text, failed = known.get(fate) or _denial(run.turn.decisions.get(call.id)), fate is not Fate.AGREED
    result = ToolResultContent(id=call.id, content=text, is_error=failed, name=call.name)
    await run.say(_message(result, call, str(fate)))
    run.trace.interrupts[max(run.turn.rounds - 1, 0)].append(
        FunctionCall(call.id, call.name, call.args, None, text, text if failed else None)
    )
    await run.listeners.emit(CallEnded(call, result, str(fate)))


def _denial(decision: Approval | None) -> str:
    if decision is None or not decision.reason:
        return _DENIED
    return f"{_DENIED} {decision.by} said: {decision.reason}" if decision.by else f"{_DENIED} {decision.reason}"


def _message(result: ToolResultContent, call: ToolCallContent, ending: str, seconds: float = 0.0) -> ToolMessage:
    metadata = {"tool_call_id": call.id, "ending": ending, "seconds": round(seconds, 3)}
    return ToolMessage(contents=(result,), name=call.name, metadata=metadata)


def _edited(run: AgentRun, call: ToolCallContent) -> ToolCallContent:
    """Return the call to run, with the arguments of an edit if there is one."""
    decision = run.turn.decisions.get(call.id)
    if decision is None or decision.decision != "edit" or not isinstance(decision.arguments, dict):
        return call
    return ToolCallContent(id=call.id, name=call.name, kind=call.kind, args=decision.arguments)


async def _decide(run: AgentRun, call: ToolCallContent) -> None:
    """Decide as somebody did about all calls of the tool, or ask the approver. A call without a decision waits."""
    known = await run.awaited(partial(standing, run.dialog.store, run.dialog.session_id, call.name))
    if known is not None:
        await run.record(repeated(known, call))
        return
    try:
        verdict = run.settings.options.approve(call) if run.settings.options.approve is not None else None
        if inspect.isawaitable(verdict):
            verdict = await verdict
        decision = _decision(verdict)
    except Exception as error:  # an approver of the caller
        raise callback_failed("approver", error, run.trace) from error
    if decision is None:
        run.undecided.add(call.id)
        return
    await run.record(decision.entry(call))


def _decision(verdict: Verdict) -> Decision | None:
    if isinstance(verdict, bool):
        return Decision(decision="approve" if verdict else "deny")
    if verdict is not None and not isinstance(verdict, Decision):
        raise InvalidInput(f"An approver returns True, False, a Decision or None, not {a_type(verdict)}.")
    return verdict


class _ToolRound:
    """The running calls of one answer. If recording one fails, the others still run."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self._fault: PalaverError | None = None

    async def execute(self, calls: Sequence[ToolCallContent]) -> None:
        run = self._run
        if calls:
            await execute_all(
                run.toolbox,
                calls,
                context=run.context,
                earlier=tuple(run.turn.executed),
                on_start=self._start,
                on_outcome=self._outcome,
                parallel=run.settings.options.parallel,
            )
        if self._fault is not None:
            raise self._fault

    async def _start(self, call: ToolCallContent, function: Function) -> None:
        """Record the intent. If that fails, the call has not begun."""
        await self._run.record(CallStarted(call_id=call.id, tool=call.name, idempotent=function.idempotent))
        await self._run.listeners.emit(CallStarting(call))

    async def _outcome(self, call: ToolCallContent, outcome: ToolOutcome) -> None:
        """Record a result as the handler words it, or unchanged if the handler raises."""
        run = self._run
        if SUSPENDED in outcome.result.metadata:
            run.suspended.add(call.id)
            run.limited = run.limited or LIMITED in outcome.result.metadata
            return
        run.trace.interrupts[max(run.turn.rounds - 1, 0)].append(outcome.function_call)
        try:
            result = self._worded(self._noted(call, outcome.result))
        except Exception as error:  # noqa: BLE001 - a handler of the caller; the result is recorded first
            result = outcome.result
            self._fault = self._fault or callback_failed("handler", error, run.trace)
        await self._keep(_message(result, call, outcome.ending, outcome.seconds))
        await run.listeners.emit(CallEnded(call, result, outcome.ending, outcome.seconds))

    def _noted(self, call: ToolCallContent, result: ToolResultContent) -> ToolResultContent:
        """Return a result that says so if the arguments were edited."""
        decision = self._run.turn.decisions.get(call.id)
        if decision is None or decision.decision != "edit":
            return result
        return _with_text(result, f"{_EDITED.format(arguments=call.arguments)}\n{result.text()}")

    def _worded(self, result: ToolResultContent) -> ToolResultContent:
        """Return a result as the prompt's handler words it."""
        text = self._run.trace.call_results = result.text()
        said = self._run.prompt.on_interrupt(self._run.trace).render({"call_results": text})
        return result if said == text else _with_text(result, said)

    async def _keep(self, message: ToolMessage) -> None:
        """Record a result. If the store refuses it, this process keeps it; after a takeover it is written outside the turn."""
        run = self._run
        try:
            await run.say(message)
        except Conflict as error:
            self._fault = self._fault or error
            # outside the turn, which another process has: the effect happened and must be known
            await run.awaited(partial(annotate, run.dialog.store, run.dialog.dialog_id, LateResult(message=message)))
        except StoreError as error:
            self._fault = self._fault or error
            (result,) = message.tool_results()
            run.unsaved[run.dialog.dialog_id, result.id] = message


def _with_text(result: ToolResultContent, text: str) -> ToolResultContent:
    """Return a result with another text and the same media."""
    if isinstance(result.content, str):
        return result.model_copy(update={"content": text})
    rest = tuple(part for part in result.content if not isinstance(part, TextContent))
    return result.model_copy(update={"content": (TextContent(content=text), *rest)})
