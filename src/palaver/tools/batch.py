"""Running the calls of one response: side by side where they may, each told of as soon as it is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import anyio

from palaver.messages import FunctionCall, ToolCallContent
from palaver.tools.context import CallContext
from palaver.tools.function import Function
from palaver.tools.outcome import ToolOutcome
from palaver.tools.running import OnOutcome, OnStart, execute
from palaver.tools.toolbox import Toolbox

__all__ = ["execute_all"]


async def execute_all(  # noqa: PLR0913 - what one call takes, and what makes them a batch
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

    A call of an `exclusive` function waits for those before it and holds back those after it. A call that repeats one before it in the
    same response waits for that one's answer.

    Args:
        toolbox: The tools there are.
        calls: The calls, in the order of the response.
        context: What tools may ask for.
        earlier: The calls that were answered before in this agent call, oldest first.
        on_start: Awaited before each effect, one at a time.
        on_outcome: Told of each outcome when it is there, one at a time; a cancellation waits for it.
        parallel: How many may run at a time, at least 1; 1 runs them in order.

    Returns:
        The outcomes, in the order of the calls.

    Raises:
        BaseException: What `on_start` or `on_outcome` raised, after the calls still running were cancelled.
    """
    batch = _Batch(
        toolbox, calls, context, tuple(earlier), on_start, on_outcome, anyio.CapacityLimiter(max(1, parallel))
    )
    return await batch.run()


class _Batch:
    """The calls of one response, on their way."""

    def __init__(  # noqa: PLR0913, PLR0917 - what `execute_all` was given
        self,
        toolbox: Toolbox,
        calls: Sequence[ToolCallContent],
        context: CallContext | None,
        earlier: tuple[FunctionCall, ...],
        on_start: OnStart | None,
        on_outcome: OnOutcome | None,
        room: anyio.CapacityLimiter,
    ) -> None:
        self._toolbox = toolbox
        self._calls = tuple(calls)
        self._context = context
        self._earlier = earlier
        self._on_start = on_start
        self._on_outcome = on_outcome
        self._room = room
        self._seen = [FunctionCall.of(call) for call in self._calls]
        self._done = [anyio.Event() for _ in self._calls]
        self._outcomes: dict[int, ToolOutcome] = {}
        self._one_at_a_time = anyio.Lock()
        self._failure: BaseException | None = None

    async def run(self) -> tuple[ToolOutcome, ...]:
        async with anyio.create_task_group() as group:
            for index in range(len(self._calls)):
                group.start_soon(self._answer, index, group.cancel_scope)
        if self._failure is not None:
            raise self._failure
        return tuple(self._outcomes[index] for index in range(len(self._calls)))

    async def _answer(self, index: int, batch: anyio.CancelScope) -> None:
        """Answer one call once those it waits for are answered; a failure of the caller's own ends the batch."""
        for before in self._waits_for(index):
            await self._done[before].wait()
        async with self._room:
            try:
                await self._execute(index)
            except anyio.get_cancelled_exc_class():
                raise
            except Exception as error:  # noqa: BLE001 - raised again by `run`, without the group that the tasks would wrap it in
                self._failure = self._failure or error
                batch.cancel()  # before the room is free: nothing more may begin
                return
        self._done[index].set()

    async def _execute(self, index: int) -> None:
        await execute(
            self._toolbox,
            self._calls[index],
            context=self._context,
            earlier=(*self._earlier, *self._seen[:index]),
            on_start=self._start if self._on_start else None,
            on_outcome=partial(self._keep, index),
        )

    async def _keep(self, index: int, call: ToolCallContent, outcome: ToolOutcome) -> None:
        self._outcomes[index] = outcome
        self._seen[index] = outcome.function_call
        if self._on_outcome is not None:
            async with self._one_at_a_time:
                await self._on_outcome(call, outcome)

    async def _start(self, call: ToolCallContent, function: Function) -> None:
        if self._on_start is not None:
            async with self._one_at_a_time:
                await self._on_start(call, function)

    def _waits_for(self, index: int) -> list[int]:
        """Give the calls before this one that must be answered first."""
        alone = self._is_exclusive(index)
        own = self._toolbox.get(self._calls[index].name)
        repeats = own is not None and not own.allow_repeat
        return [
            before
            for before in range(index)
            if alone or self._is_exclusive(before) or (repeats and self._seen[before].equals(self._seen[index]))
        ]

    def _is_exclusive(self, index: int) -> bool:
        function = self._toolbox.get(self._calls[index].name)
        return function is not None and function.exclusive
