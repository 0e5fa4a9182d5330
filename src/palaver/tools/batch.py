"""Running the calls of one response side by side, each reported as soon as it has its outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import anyio

from palaver.messages import FunctionCall, ToolCallContent
from palaver.tools.calls import CallContext, ToolOutcome
from palaver.tools.execution import OnOutcome, OnStart, execute
from palaver.tools.function import Function
from palaver.tools.toolbox import Toolbox

__all__ = ["execute_all"]


async def execute_all(  # noqa: PLR0913 - what one call takes, and what makes a batch of them
    toolbox: Toolbox,
    calls: Sequence[ToolCallContent],
    *,
    context: CallContext | None = None,
    earlier: Iterable[FunctionCall] = (),
    on_start: OnStart | None = None,
    on_outcome: OnOutcome | None = None,
    parallel: int = 8,
) -> tuple[ToolOutcome, ...]:
    """Answer the calls of one response.

    An `exclusive` call waits for those before it and delays those after it. A call that repeats one before it in the same
    response waits for its answer. `on_start` and `on_outcome` are awaited one at a time.

    Args:
        toolbox: The tools.
        calls: The calls, in the order of the response.
        context: What tools may ask for.
        earlier: The calls of this turn that have answers, oldest first.
        on_start: Awaited before each effect; see `OnStart`.
        on_outcome: Awaited with each outcome; see `OnOutcome`.
        parallel: How many calls run at a time, at least 1.

    Returns:
        The outcomes, in the order of the calls.

    Raises:
        Exception: What `on_start` or `on_outcome` raised, after the calls that still ran were cancelled.
    """
    batch = _Batch(toolbox, calls, context, on_start, on_outcome)
    room = anyio.CapacityLimiter(max(1, parallel))
    async with anyio.create_task_group() as group:
        for index in range(len(calls)):
            group.start_soon(batch.answer, index, tuple(earlier), room, group.cancel_scope)
    if batch.failure is not None:
        raise batch.failure
    return tuple(batch.outcomes[index] for index in range(len(calls)))


class _Batch:
    """The calls of one response while they run."""

    def __init__(
        self,
        toolbox: Toolbox,
        calls: Sequence[ToolCallContent],
        context: CallContext | None,
        on_start: OnStart | None,
        on_outcome: OnOutcome | None,
    ) -> None:
        self.outcomes: dict[int, ToolOutcome] = {}
        self.failure: Exception | None = None
        self._toolbox = toolbox
        self._calls = calls
        self._context = context
        self._on_start = on_start
        self._on_outcome = on_outcome
        self._seen = [FunctionCall.of(call) for call in calls]
        self._done = [anyio.Event() for _ in calls]
        self._one_at_a_time = anyio.Lock()

    async def answer(
        self, index: int, earlier: tuple[FunctionCall, ...], room: anyio.CapacityLimiter, scope: anyio.CancelScope
    ) -> None:
        """Answer one call after those it waits for. An exception of the caller's own ends the batch."""
        for before in self._waits_for(index):
            await self._done[before].wait()
        async with room:
            try:
                await execute(
                    self._toolbox,
                    self._calls[index],
                    context=self._context,
                    earlier=(*earlier, *self._seen[:index]),
                    on_start=self._start,
                    on_outcome=partial(self._keep, index),
                )
            except Exception as error:  # noqa: BLE001 - raised by `execute_all`, without the group that would wrap it
                self.failure = self.failure or error
                scope.cancel()  # before there is room again: nothing more may begin
                return
        self._done[index].set()

    async def _start(self, call: ToolCallContent, function: Function) -> None:
        if self._on_start is not None:
            async with self._one_at_a_time:
                await self._on_start(call, function)

    async def _keep(self, index: int, call: ToolCallContent, outcome: ToolOutcome) -> None:
        self.outcomes[index], self._seen[index] = outcome, outcome.function_call
        if self._on_outcome is not None:
            async with self._one_at_a_time:
                await self._on_outcome(call, outcome)

    def _waits_for(self, index: int) -> list[int]:
        """Return the calls before one that must be answered first."""
        function = self._toolbox.get(self._calls[index].name)
        repeats = function is not None and not function.allow_repeat
        return [
            before
            for before in range(index)
            if self._is_exclusive(index)
            or self._is_exclusive(before)
            or (repeats and self._seen[before].equals(self._seen[index]))
        ]

    def _is_exclusive(self, index: int) -> bool:
        function = self._toolbox.get(self._calls[index].name)
        return function is not None and function.exclusive
