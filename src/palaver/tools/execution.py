"""Running one call: every call has an outcome, whatever its tool does.

What is refused is refused before anything runs, and what runs, runs at most once. Only three things pass through: the caller's
cancellation, a real interrupt, and an exception of the caller's own `on_start` or `on_outcome`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

import anyio

from palaver.messages import FunctionCall, ToolCallContent
from palaver.tools.calls import CallContext, Ending, ToolOutcome
from palaver.tools.function import Function
from palaver.tools.results import RenderedResult, cut_text, describe_error, result_of
from palaver.tools.schemas import SchemaViolation, violations
from palaver.tools.signature import InvalidArgumentsError, is_async
from palaver.tools.toolbox import Toolbox
from palaver.tools.workers import hand_over, run_in_thread, run_in_worker

__all__ = ["OnOutcome", "OnStart", "execute", "refuse"]

OnStart: TypeAlias = Callable[[ToolCallContent, Function], Awaitable[None]]
"""Awaited before a function runs, and only then: the place to record the intent. Its exception ends the call."""

OnOutcome: TypeAlias = Callable[[ToolCallContent, ToolOutcome], Awaitable[None]]
"""Awaited as soon as a call has its outcome, to its end even while the caller is cancelled: the place to record it."""

_MOST_NAMED = 30
_MOST_VIOLATIONS = 10
_QUOTED_BYTES = 4_000
_ARGUMENT_BYTES = 500


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
        toolbox: The tools.
        call: The call as the model made it.
        context: What the tool may ask for; the call's id and name are filled in.
        earlier: The calls of this turn that have answers, oldest first: the same call does not run again.
        on_start: See `OnStart`.
        on_outcome: See `OnOutcome`.

    Returns:
        The outcome. An exception of the tool, an unknown name, invalid arguments and a timeout are results.
    """
    started = perf_counter()
    own = (context or CallContext()).of(call)
    if own.on_progress is not None:
        own = replace(own, on_progress=hand_over(own.on_progress))
    found = _prepare(toolbox, call, own, tuple(earlier))
    ready: _Refusal | _Ready
    if isinstance(found, _Refusal):
        ready = found
    else:  # in a worker: a schema may come from a hostile server, and a type may have a slow validator
        ready = await run_in_worker(partial(_checked, found, call, own))
    cancelled: BaseException | None = None
    if isinstance(ready, _Refusal):
        outcome = _outcome(call, RenderedResult(ready.text, is_error=ready.ending != "repeated"), ready.ending, started)
    else:
        if on_start is not None:
            await on_start(call, ready.function)
        ran, cancelled = await _run(ready)
        outcome = _outcome(call, ran.result, ran.ending, started, ran.value)
    if on_outcome is not None:
        with anyio.CancelScope(shield=True):
            await on_outcome(call, outcome)
    if cancelled is not None:
        raise cancelled
    return outcome


def refuse(call: ToolCallContent, reason: str) -> ToolOutcome:
    """Return the outcome of a call that somebody denied, in their own words."""
    text = f"{call.name!r} was not run: {reason.strip() or 'it was not allowed.'}"
    return _outcome(call, RenderedResult(text, is_error=True), "refused", perf_counter())


# --- what is refused before anything runs ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Refusal:
    ending: Ending
    text: str


@dataclass(frozen=True, slots=True)
class _Ready:
    function: Function
    call: ToolCallContent
    work: Callable[[], Any]
    context: CallContext


def _prepare(
    toolbox: Toolbox, call: ToolCallContent, context: CallContext, earlier: tuple[FunctionCall, ...]
) -> _Refusal | Function:
    function = toolbox.get(call.name)
    if function is None:
        return _Refusal("unknown_tool", _unknown(toolbox, call.name))
    if reason := function.unavailable(context):
        text = f"{call.name!r} was not run: {reason.strip().rstrip('.')}. It is not available now; continue without it."
        return _Refusal("unavailable", text)
    if function.binding is None or function.binding.is_method:
        return _Refusal("unlinked", f"{call.name!r} was not run: it has no implementation here. Continue without it.")
    if call.error is not None:
        written = cut_text(call.raw_args or "", _ARGUMENT_BYTES)
        text = f"{call.name!r} was not run: its arguments could not be read. {call.error}"
        return _Refusal("arguments", f"{text}\nCall it again with one JSON object. What was written:\n{written}")
    answered = None if function.allow_repeat else _earlier_answer(toolbox, FunctionCall.of(call), earlier)
    if answered is not None:
        quoted = cut_text(answered.result_str or "(no text)", _QUOTED_BYTES)
        text = f"{call.name!r} was not run again: the same call, {answered.id!r}, has been answered in this turn."
        return _Refusal("repeated", f"{text} Use that result, or call with other arguments. It was:\n{quoted}")
    return function


def _checked(function: Function, call: ToolCallContent, context: CallContext) -> _Refusal | _Ready:
    """Check the arguments against the types, or against a declared schema."""
    binding = function.binding
    found = [] if binding is None or binding.typed else violations(function.parameters, call.args)
    try:
        if binding is not None and not found:
            return _Ready(function, call, binding.call(call.args, context), context)
    except InvalidArgumentsError as error:
        found = error.found
    except Exception as error:  # noqa: BLE001 - a validator in the types may raise anything
        found = [SchemaViolation("", f"checking them failed. {describe_error(error)}")]
    lines = [f"- {violation}" for violation in found[:_MOST_VIOLATIONS]]
    more = [f"- and {len(found) - _MOST_VIOLATIONS} more"] if len(found) > _MOST_VIOLATIONS else []
    text = [
        f"{call.name!r} was not run: its arguments are not valid.",
        *lines,
        *more,
        "Correct them and call it again.",
    ]
    return _Refusal("arguments", "\n".join(text))


def _unknown(toolbox: Toolbox, name: str) -> str:
    close, names = toolbox.close(name), toolbox.names
    near = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    known = f"The tools are: {', '.join(names[:_MOST_NAMED])}{more}." if names else "There are no tools."
    return f"There is no tool {name!r}.{near} {known}"


def _earlier_answer(toolbox: Toolbox, call: FunctionCall, earlier: Sequence[FunctionCall]) -> FunctionCall | None:
    """Return the earlier call whose result still answers this one, or None.

    Reading a file again after it was edited is not a repeat: any call between that is not idempotent may have changed the
    answer. A call that failed may be tried again.
    """
    found = None
    for each in reversed(earlier):
        if not each.equals(call):
            function = toolbox.get(each.name)
            if function is not None and not function.idempotent:
                break
        elif each.success:
            found = each
    return found


# --- what runs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ran:
    ending: Ending
    result: RenderedResult
    value: Any = None


async def _run(ready: _Ready) -> tuple[_Ran, BaseException | None]:
    """Run a function within its time; return how it ended, and a cancellation that came after it had ended."""
    ended: list[_Ran] = []
    cancelled: BaseException | None = None
    try:
        with anyio.move_on_after(ready.function.timeout):
            await _finish(ready, ended)
    except anyio.get_cancelled_exc_class() as error:
        if not ended:
            raise
        cancelled = error  # raised again when the result is recorded
    finally:
        ready.context.stop.set()
    if not ended:
        within = f"within {ready.function.timeout:g} s"
        text = f"{ready.call.name!r} did not answer {within}. It may still be running. Its effect is unknown."
        ended.append(_Ran("timeout", RenderedResult(text, is_error=True)))
    return ended[0], cancelled


async def _finish(ready: _Ready, ended: list[_Ran]) -> None:
    """Run a function in its way. How it ended is in `ended` before anything can be cancelled."""
    if is_async(ready.function.function):
        await _await(ready, ready.work, ended)
    else:
        later = await run_in_thread(partial(_attempt, ready, ended))
        if later is not None:
            await _await(ready, lambda: later, ended)


def _attempt(ready: _Ready, ended: list[_Ran]) -> Awaitable[Any] | None:
    """Call a function in its thread, where its value becomes a result too; return what is still to be awaited."""
    try:
        value = ready.work()
        if inspect.isawaitable(value):
            return value
        ended.append(_answered(ready, value))
    except BaseException as error:  # noqa: BLE001 - whatever a tool raises, SystemExit too, is its result
        ended.append(_Ran("failed", RenderedResult(describe_error(error), is_error=True)))
    return None


async def _await(ready: _Ready, begin: Callable[[], Awaitable[Any]], ended: list[_Ran]) -> None:
    """Await a function in a task of its own, so that a cancellation it raises itself differs from the caller's."""

    async def run() -> None:
        try:
            ended.append(_answered(ready, await begin()))
        except (KeyboardInterrupt, anyio.get_cancelled_exc_class()):
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            ended.append(_Ran("failed", RenderedResult(describe_error(error), is_error=True)))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
    if not ended:
        ended.append(_Ran("failed", RenderedResult("The tool cancelled itself.", is_error=True)))


def _answered(ready: _Ready, value: Any) -> _Ran:  # noqa: ANN401 - whatever a tool returned
    function = ready.function
    seen = replace(FunctionCall.of(ready.call), result=value)
    result = result_of(function.processor(value, seen) if function.processor else value, function.max_bytes)
    return _Ran("done", result, result.text() if "cut" in result.metadata else value)


def _outcome(
    call: ToolCallContent,
    result: RenderedResult,
    ending: Ending,
    started: float,
    value: Any = None,  # noqa: ANN401 - whatever a tool returned
) -> ToolOutcome:
    block = result.block(call.id, call.name)
    text = block.text()
    seen = replace(FunctionCall.of(call), result=value, result_str=text, error_message=text if block.is_error else None)
    if ending == "done" and block.is_error:
        ending = "failed"
    return ToolOutcome(block, seen, perf_counter() - started, ending)
