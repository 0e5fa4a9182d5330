"""Running one call: every call gets an outcome, whatever the tool does.

What is refused is refused before anything runs; what runs, runs at most once; and only the cancellation of the caller, a real
interrupt, and a failure of the caller's own `on_start` pass through.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

import anyio

from palaver.messages import FunctionCall, ToolCallContent
from palaver.tools import words
from palaver.tools.binding import UnfitArgumentsError, is_async
from palaver.tools.context import CallContext
from palaver.tools.function import Function
from palaver.tools.isolation import Job, in_process
from palaver.tools.judging import faults
from palaver.tools.mending import mended
from palaver.tools.outcome import Ending, ToolOutcome
from palaver.tools.repeats import earlier_answer
from palaver.tools.replies import Reply, reply_of
from palaver.tools.threads import hand_over, in_thread
from palaver.tools.toolbox import Toolbox

__all__ = ["OnOutcome", "OnStart", "execute", "refuse"]

OnStart: TypeAlias = Callable[[ToolCallContent, Function], Awaitable[None]]
"""Awaited before a function runs, and only when it is going to: the place to record the intent. What it raises ends the call."""

OnOutcome: TypeAlias = Callable[[ToolCallContent, ToolOutcome], Awaitable[None]]
"""Awaited as soon as a call has its outcome, and to its end even when the caller is being cancelled: the place to make a result durable."""


async def execute(
    toolbox: Toolbox,
    call: ToolCallContent,
    *,
    context: CallContext | None = None,
    earlier: Iterable[FunctionCall] = (),
    on_start: OnStart | None = None,
    on_outcome: OnOutcome | None = None,
) -> ToolOutcome:
    """Answer one call.

    Args:
        toolbox: The tools there are.
        call: The call, as the model made it.
        context: What a tool may ask for; the call's own id and name are filled in.
        earlier: The calls that were answered before in this agent call, oldest first: the same call is not run again.
        on_start: Awaited before the effect; see `OnStart`.
        on_outcome: Told of the outcome; see `OnOutcome`.

    Returns:
        The outcome. Exceptions of the tool, an unknown name, unfit arguments, a timeout and anything else the tool did are results in it.
    """
    started = perf_counter()
    surroundings = _heard((context or CallContext()).of(call))
    seen = FunctionCall.of(call)
    checked = _checked(toolbox, toolbox.get(call.name), call, surroundings, tuple(earlier))
    cancelled: BaseException | None = None
    if isinstance(checked, _Refusal):
        outcome = _outcome(seen, Reply(checked.text, is_error=checked.ending != "repeated"), checked.ending, started)
    else:
        if on_start is not None:
            await on_start(call, checked.function)
        finished, cancelled = await _run(checked, surroundings)
        outcome = _outcome(replace(seen, result=finished.value), finished.reply, finished.ending, started)
    if on_outcome is not None:
        with anyio.CancelScope(shield=True):
            await on_outcome(call, outcome)
    if cancelled is not None:
        raise cancelled
    return outcome


def refuse(call: ToolCallContent, reason: str) -> ToolOutcome:
    """Answer a call that somebody did not allow, in the person's or the program's own words."""
    text = f"{call.name!r} was not run: {reason.strip() or 'it was not allowed.'}"
    return _outcome(FunctionCall.of(call), Reply(text, is_error=True), "refused", perf_counter())


def _heard(context: CallContext) -> CallContext:
    """Let progress be told from any thread, and be heard in the loop's."""
    return replace(context, on_progress=hand_over(context.on_progress)) if context.on_progress else context


@dataclass(frozen=True, slots=True)
class _Refusal:
    ending: Ending
    text: str


@dataclass(frozen=True, slots=True)
class _Ready:
    function: Function
    work: Callable[[], Any]
    seen: FunctionCall


@dataclass(frozen=True, slots=True)
class _Finished:
    ending: Ending
    reply: Reply
    value: Any = None


def _outcome(seen: FunctionCall, reply: Reply, ending: Ending, started: float) -> ToolOutcome:
    block = reply.block(seen.id, seen.name)
    text = block.text()
    known = replace(seen, result_str=text, error_message=text if block.is_error else None)
    if ending == "done" and block.is_error:
        ending = "failed"
    return ToolOutcome(block, known, perf_counter() - started, ending)


# --- what is refused before anything runs ------------------------------------------------------------------------------


def _checked(
    toolbox: Toolbox,
    function: Function | None,
    call: ToolCallContent,
    context: CallContext,
    earlier: tuple[FunctionCall, ...],
) -> _Refusal | _Ready:
    if function is None:
        return _Refusal("unknown_tool", words.unknown(toolbox, call.name))
    if reason := function.unavailable(context):
        return _Refusal("unavailable", words.unavailable(call.name, reason))
    if function.binding is None or function.binding.is_method:
        return _Refusal("unlinked", words.unlinked(call.name))
    if call.error is not None:
        return _Refusal("arguments", words.unreadable(call))
    seen = FunctionCall.of(call)
    answered = None if function.allow_repeat else earlier_answer(toolbox, seen, earlier)
    if answered is not None:
        return _Refusal("repeated", words.repeated(answered))
    return _fitted(function, function.binding.call, call, context)


def _fitted(
    function: Function,
    make: Callable[[Mapping[str, Any], CallContext], Callable[[], Any]],
    call: ToolCallContent,
    context: CallContext,
) -> _Refusal | _Ready:
    """Hold the arguments to the schema and to the types."""
    arguments = mended(function.parameters, call.args)
    found = list(faults(function.parameters, arguments))
    if found:
        return _Refusal("arguments", words.unfit(function, found))
    try:
        return _Ready(function, make(arguments, context), replace(FunctionCall.of(call), arguments=arguments))
    except UnfitArgumentsError as error:
        return _Refusal("arguments", words.unfit(function, error.faults))
    except Exception as error:  # noqa: BLE001 - a validator in the types of the arguments may raise anything
        return _Refusal("arguments", f"{call.name!r} was not run: checking its arguments failed. {words.raised(error)}")


# --- what runs ---------------------------------------------------------------------------------------------------------


async def _run(ready: _Ready, context: CallContext) -> tuple[_Finished, BaseException | None]:
    """Run a function within its time, and give how it ended, and the cancellation that came when it had ended already.

    A thread that is left behind is told by the context.
    """
    ended: list[_Finished] = []
    cancelled: BaseException | None = None
    try:
        with anyio.move_on_after(ready.function.timeout):
            await _finish(ready, context, ended)
    except anyio.get_cancelled_exc_class() as error:
        if not ended:
            raise
        cancelled = error  # raised again when the result is safe
    finally:
        context.stop.set()
    if not ended:
        text = words.timed_out(ready.function.name, ready.function.timeout or 0, killed=ready.function.isolated)
        ended.append(_Finished("timeout", Reply(text, is_error=True)))
    return ended[0], cancelled


async def _finish(ready: _Ready, context: CallContext, ended: list[_Finished]) -> None:
    """Run a function in its way; how it ended is there before anything can be cancelled."""
    function = ready.function
    if function.isolated:
        job = Job(function.name, ready.work, ready.seen, function.processor, function.max_bytes)
        alive, reply = await in_process(job, context.on_progress)
        ended.append(_Finished("done" if alive else "crashed", reply, reply.text()))
    elif is_async(function.function):
        await _await(ready, ready.work, ended)
    else:
        later = await in_thread(partial(_attempt, ready, ended))
        if later is not None:
            await _await(ready, lambda: later, ended)


def _attempt(ready: _Ready, ended: list[_Finished]) -> Awaitable[Any] | None:
    """Call a function in its thread, where its result is turned into a reply too; give what it returned if that is to be awaited."""
    try:
        value = ready.work()
        if inspect.isawaitable(value):
            return value
        ended.append(_answered(ready, value))
    except BaseException as error:  # noqa: BLE001 - whatever a tool raises, SystemExit too, is its result
        ended.append(_failed(error))
    return None


async def _await(ready: _Ready, begin: Callable[[], Awaitable[Any]], ended: list[_Finished]) -> None:
    """Await a function in a task of its own, so that a cancellation it raises itself is told apart from the caller's."""

    async def run() -> None:
        try:
            ended.append(_answered(ready, await begin()))
        except (KeyboardInterrupt, anyio.get_cancelled_exc_class()):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises, SystemExit too, is its result
            ended.append(_failed(error))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
    if not ended:
        ended.append(_Finished("failed", Reply("The tool cancelled itself.", is_error=True)))


def _answered(ready: _Ready, value: Any) -> _Finished:  # noqa: ANN401 - whatever a tool returned
    shown = ready.function.processor(value, replace(ready.seen, result=value)) if ready.function.processor else value
    reply = reply_of(shown, ready.function.max_bytes)
    kept = reply.text() if "cut" in reply.metadata else value  # what was too long is not kept here either
    return _Finished("done", reply, kept)


def _failed(error: BaseException) -> _Finished:
    return _Finished("failed", Reply(words.raised(error), is_error=True))
