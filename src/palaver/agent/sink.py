"""Where a turn's events go. A listener that raises loses its place, never a step: what it heard of was durable before."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable

import anyio

from palaver.agent.events import AgentEvent
from palaver.agent.invoking import StreamHandler

__all__ = ["LAST_WORD", "Sink"]

LAST_WORD = 5.0
"""Seconds that listeners have to take note of the end of a turn."""


class Sink:
    """Tells listeners what happens, in the loop's thread, one event at a time.

    Attributes:
        fault: What the first listener that raised has raised, or None; nobody is told anything after it.
    """

    def __init__(self, listeners: Iterable[StreamHandler | None]) -> None:
        """Take the listeners; None is nobody."""
        self.fault: Exception | None = None
        self._listeners = tuple(each for each in listeners if each is not None)
        self._owed: list[Awaitable[None]] = []

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    async def emit(self, event: AgentEvent) -> None:
        """Tell everybody, and wait for those who want to be waited for."""
        self.note(event)
        while self._owed:
            try:
                await self._owed.pop(0)
            except Exception as error:  # noqa: BLE001 - whatever a listener raises, it is reported when the step is done
                self.fault = self.fault or error

    async def end(self, event: AgentEvent) -> None:
        """Tell everybody that it is over, also when it was cancelled; a listener that does not come back is not waited for."""
        with anyio.move_on_after(LAST_WORD, shield=True):
            await self.emit(event)
        for waiting in self._owed:
            if inspect.iscoroutine(waiting):
                waiting.close()
        self._owed.clear()

    def note(self, event: AgentEvent) -> None:
        """Tell everybody without waiting; whoever wants to be waited for is, at the next event."""
        for listener in self._listeners:
            if self.fault is not None:
                return
            try:
                waiting = listener(event)
            except Exception as error:  # noqa: BLE001 - as above
                self.fault = error
                return
            if inspect.isawaitable(waiting):
                self._owed.append(waiting)
            elif inspect.isgenerator(waiting) or inspect.isasyncgen(waiting):
                self.fault = TypeError("it is a generator, of which nothing runs when it is called: take out the yield")
