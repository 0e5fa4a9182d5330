"""Run calls: every call has an outcome, even if its tool fails.

A call is refused before anything runs, or it runs at most once. Only three exceptions pass through: the caller's cancellation, a real
interrupt, and an exception of the caller's own `on_start` or `on_outcome`.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

import anyio

from palaver.messages import FunctionCall, ToolCallContent, ToolResultContent
from palaver.tools.function import Function
from palaver.tools.outcomes import CallContext, Ending, ToolOutcome
from palaver.tools.results import cut_text, describe_error, result_of
from palaver.tools.schemas import SchemaViolation, violations
from palaver.tools.signature import InvalidArgumentsError
from palaver.tools.toolbox import Toolbox
from palaver.tools.workers import hand_over, run_in_thread, run_in_worker

OnStart: TypeAlias = Callable[[ToolCallContent, Function], Awaitable[None]]
"""Awaited just before a function runs, to record the intent. Its exception ends the call."""

OnOutcome: TypeAlias = Callable[[ToolCallContent, ToolOutcome], Awaitable[None]]
"""Awaited as soon as a call has its outcome, to record it. It runs to its end even if the caller is cancelled."""

_MOST_NAMED = 30
_MOST_VIOLATIONS = 10
_QUOTED_BYTES = 4_000
_ARGUMENT_BYTES = 500


# --- the calls of one response -----------------------------------------------------------------------------------------


async def execute_all(  # noqa: PLR0913 - the arguments of one call, and a limit
    toolbox: Toolbox,
    calls: Sequence[ToolCallContent],
    *,
    context: CallContext | None = None,
    earlier: Iterable[FunctionCall] = (),
    on_start: OnStart | None = None,
    on_outcome: OnOutcome | None = None,
    parallel: int = 8,
) -> tuple[ToolOutcome, ...]:
    """Run the calls of one response in parallel, and report each as soon as it has its outcome.

    An `exclusive` call waits for those before it and delays those after it. A call that repeats one before it in the same
    response waits for its answer. `on_start` and `on_outcome` are awaited one at a time.

    Args:
        toolbox: The tools.
        calls: The calls, in the order of the response.
        context: The context for tools.
        earlier: The calls of this turn that have answers, oldest first.
        on_start: Awaited before each effect; see `OnStart`.
        on_outcome: Awaited with each outcome; see `OnOutcome`.
        parallel: The maximum number of calls that run in parallel, at least 1.

    Returns:
        The outcomes, in the order of the calls.

    Raises:
        Exception: An exception of `on_start` or `on_outcome`, after the running calls were cancelled.
    """
    batch = _Batch(toolbox, calls, context, tuple(earlier), on_start, on_outcome)
    room = anyio.CapacityLimiter(max(1, parallel))
    async with anyio.create_task_group() as group:
        for index in range(len(calls)):
            group.start_soon(batch.answer, index, room, group.cancel_scope)
    if batch.failures:
        raise batch.failures[0]
    return tuple(batch.outcomes[index] for index in range(len(calls)))


@dataclass
class _Batch:
    """The calls of one response while they run."""

    toolbox: Toolbox
    calls: Sequence[ToolCallContent]
    context: CallContext | None
    earlier: tuple[FunctionCall, ...]
    on_start: OnStart | None
    on_outcome: OnOutcome | None

    def __post_init__(self) -> None:
        self.outcomes: dict[int, ToolOutcome] = {}
        self.failures: list[Exception] = []
        self._seen = [_seen(call) for call in self.calls]
        self._done = [anyio.Event() for _ in self.calls]
        self._one_at_a_time = anyio.Lock()

    async def answer(self, index: int, room: anyio.CapacityLimiter, scope: anyio.CancelScope) -> None:
        """Answer one call after those it waits for. An exception of a callback ends the batch."""
        for other in range(index):
            if _waits_for(self.toolbox, self._seen[index], self._seen[other]):
                await self._done[other].wait()
        async with room:
            try:
                await execute(
                    self.toolbox,
                    self.calls[index],
                    context=self.context,
                    earlier=(*self.earlier, *self._seen[:index]),
                    on_start=self._start,
                    on_outcome=partial(self._keep, index),
                )
            except Exception as error:  # noqa: BLE001 - raised by `execute_all`, without the group that would wrap it
                self.failures.append(error)
                scope.cancel()  # before capacity is free again, so that nothing more begins
                return
        self._done[index].set()

    async def _start(self, call: ToolCallContent, function: Function) -> None:
        if self.on_start is not None:
            async with self._one_at_a_time:
                await self.on_start(call, function)

    async def _keep(self, index: int, call: ToolCallContent, outcome: ToolOutcome) -> None:
        self.outcomes[index], self._seen[index] = outcome, outcome.function_call
        if self.on_outcome is not None:
            async with self._one_at_a_time:
                await self.on_outcome(call, outcome)


def _waits_for(toolbox: Toolbox, call: FunctionCall, before: FunctionCall) -> bool:
    """Return whether a call must wait for an earlier one in the same response."""
    own, other = toolbox.get(call.name), toolbox.get(before.name)
    exclusive = any(function is not None and function.exclusive for function in (own, other))
    return exclusive or (own is not None and not own.allow_repeat and before.equals(call))


# --- one call ----------------------------------------------------------------------------------------------------------


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
        call: The call of the model.
        context: The context for the tool; the call's id and name are filled in.
        earlier: The calls of this turn that have answers, oldest first. An equal call does not run again.
        on_start: See `OnStart`.
        on_outcome: See `OnOutcome`.

    Returns:
        The outcome. An exception of the tool, an unknown name, invalid arguments and a timeout are results.
    """
    started = perf_counter()
    shared = context or CallContext()
    progress = None if shared.on_progress is None else hand_over(shared.on_progress)
    own = replace(shared, call_id=call.id, tool=call.name, on_progress=progress, stop=threading.Event())
    cancelled: BaseException | None = None
    try:
        function = _usable(toolbox, call, own, tuple(earlier))
        # In a worker: a schema may come from a hostile server, and a type may have a slow validator.
        work = await run_in_worker(partial(_checked, function, call, own))
    except _RefusedError as refusal:
        outcome = refusal.outcome
    else:
        if on_start is not None:
            await on_start(call, function)
        outcome, cancelled = await _run(function, call, work, own)
    outcome = replace(outcome, seconds=perf_counter() - started)
    if on_outcome is not None:
        with anyio.CancelScope(shield=True):
            await on_outcome(call, outcome)
    if cancelled is not None:
        raise cancelled
    return outcome


def _seen(call: ToolCallContent, value: object = None) -> FunctionCall:
    return FunctionCall(call.id, call.name, call.args, value)


def _outcome(
    call: ToolCallContent,
    ending: Ending,
    result: ToolResultContent | str,
    value: Any = None,  # noqa: ANN401 - whatever a tool returned
) -> ToolOutcome:
    """Return the outcome of a call; a text is an error."""
    if isinstance(result, str):
        result = ToolResultContent(call.id, result, is_error=ending != "repeated")
    block = result.model_copy(update={"id": call.id, "name": call.name})
    text = block.text()
    seen = FunctionCall(call.id, call.name, call.args, value, text, text if block.is_error else None)
    return ToolOutcome(block, seen, ending="failed" if ending == "done" and block.is_error else ending)


# --- what is refused before anything runs ------------------------------------------------------------------------------


class _RefusedError(Exception):
    """A call that does not run."""

    def __init__(self, call: ToolCallContent, ending: Ending, text: str) -> None:
        super().__init__(text)
        self.outcome = _outcome(call, ending, text)


def _usable(
    toolbox: Toolbox, call: ToolCallContent, context: CallContext, earlier: tuple[FunctionCall, ...]
) -> Function:
    """Return the function that a call runs, or raise the reason for a refusal."""
    function = toolbox.get(call.name)
    if function is None:
        raise _RefusedError(call, "unknown_tool", _unknown(toolbox, call.name))
    not_run = f"{call.name!r} was not run"
    if reason := function.unavailable(context):
        why = f"{reason.strip().rstrip('.')}. It is not available now; continue without it."
        raise _RefusedError(call, "unavailable", f"{not_run}: {why}")
    if function.binding is None or function.binding.is_method:
        raise _RefusedError(call, "unlinked", f"{not_run}: it has no implementation here. Continue without it.")
    if call.error is not None:
        written = cut_text(call.raw_args or "", _ARGUMENT_BYTES)
        text = f"{not_run}: its arguments could not be read. {call.error}"
        again = f"Call it again with one JSON object. What was written:\n{written}"
        raise _RefusedError(call, "arguments", f"{text}\n{again}")
    answered = None if function.allow_repeat else _earlier_answer(toolbox, _seen(call), earlier)
    if answered is not None:
        quoted = cut_text(answered.result_str or "(no text)", _QUOTED_BYTES)
        text = f"{not_run} again: the same call, {answered.id!r}, has been answered in this turn."
        again = f"Use that result, or call with other arguments. It was:\n{quoted}"
        raise _RefusedError(call, "repeated", f"{text} {again}")
    return function


def _checked(function: Function, call: ToolCallContent, context: CallContext) -> Callable[[], Any]:
    """Check the arguments against the types or the declared schema, and return a function that makes the call."""
    binding = function.binding
    faults = [] if binding is None or binding.typed else violations(function.parameters, call.args)
    try:
        if binding is not None and not faults:
            return binding.call(call.args, context)
    except InvalidArgumentsError as error:
        faults = error.faults
    except Exception as error:  # noqa: BLE001 - a validator in the types may raise anything
        faults = [SchemaViolation("", f"checking them failed. {describe_error(error)}")]
    lines = [f"{call.name!r} was not run: its arguments are not valid."]
    lines += [f"- {violation}" for violation in faults[:_MOST_VIOLATIONS]]
    lines += [f"- and {len(faults) - _MOST_VIOLATIONS} more"] if len(faults) > _MOST_VIOLATIONS else []
    raise _RefusedError(call, "arguments", "\n".join([*lines, "Correct them and call it again."]))


def _unknown(toolbox: Toolbox, name: str) -> str:
    close, names = toolbox.close(name), toolbox.names
    near = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    known = f"The tools are: {', '.join(names[:_MOST_NAMED])}{more}." if names else "There are no tools."
    return f"There is no tool {name!r}.{near} {known}"


def _earlier_answer(toolbox: Toolbox, call: FunctionCall, earlier: Sequence[FunctionCall]) -> FunctionCall | None:
    """Return the earlier call whose result still answers this one, or None.

    Reading a file again after an edit is not a repeat: any non-idempotent call in between may have changed the answer. A
    failed call may be tried again.
    """
    answer = None
    for outcome in reversed(earlier):
        if not outcome.equals(call):
            function = toolbox.get(outcome.name)
            if function is not None and not function.idempotent:
                break
        elif outcome.success:
            answer = outcome
    return answer


# --- what runs ---------------------------------------------------------------------------------------------------------


async def _run(
    function: Function, call: ToolCallContent, work: Callable[[], Any], context: CallContext
) -> tuple[ToolOutcome, BaseException | None]:
    """Run a function within its timeout. Return its outcome, and a cancellation that came after it ended."""
    ended: list[ToolOutcome] = []  # filled before anything can be cancelled
    cancelled: BaseException | None = None
    try:
        with anyio.move_on_after(function.timeout):
            if _is_async(function.function):
                await _await(function, call, work, ended)
            else:
                later = await run_in_thread(partial(_attempt, function, call, work, ended))
                if later is not None:
                    await _await(function, call, lambda: later, ended)
    except anyio.get_cancelled_exc_class() as error:
        if not ended:
            raise
        cancelled = error  # raised again when the result is recorded
    finally:
        context.stop.set()
    if not ended:
        within = f"within {function.timeout:g} s"
        text = f"{call.name!r} did not answer {within}. It may still be running. Its effect is unknown."
        ended.append(_outcome(call, "timeout", text))
    return ended[0], cancelled


def _is_async(function: object) -> bool:
    """Return whether calling it returns an awaitable: a coroutine function, a partial of one, an object whose `__call__` is one."""
    while isinstance(function, partial):
        function = function.func
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself, not whether there is one
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _attempt(
    function: Function, call: ToolCallContent, work: Callable[[], Any], ended: list[ToolOutcome]
) -> Awaitable[Any] | None:
    """Call a function in a thread, and convert its value there, too. Return an awaitable that remains, if any."""
    try:
        value = work()
        if inspect.isawaitable(value):
            return value
        ended.append(_answered(function, call, value))
    except BaseException as error:  # noqa: BLE001 - any exception of a tool, even SystemExit, is its result
        ended.append(_outcome(call, "failed", describe_error(error)))
    return None


async def _await(
    function: Function, call: ToolCallContent, begin: Callable[[], Awaitable[Any]], ended: list[ToolOutcome]
) -> None:
    """Await a function in its own task, to distinguish a cancellation that it raises from the caller's."""

    async def run() -> None:
        try:
            ended.append(_answered(function, call, await begin()))
        except (KeyboardInterrupt, anyio.get_cancelled_exc_class()):
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            ended.append(_outcome(call, "failed", describe_error(error)))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
    if not ended:
        ended.append(_outcome(call, "failed", "The tool cancelled itself."))


def _answered(function: Function, call: ToolCallContent, value: Any) -> ToolOutcome:  # noqa: ANN401 - whatever a tool returned
    seen = _seen(call, value)
    result = result_of(function.processor(value, seen) if function.processor else value, function.max_bytes)
    return _outcome(call, "done", result, result.text() if "cut" in result.metadata else value)
