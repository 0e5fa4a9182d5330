"""One call of the model on its way: what it is asked with, and its answer as far as it has come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from palaver.agent.events import Asking
from palaver.agent.sink import Sink
from palaver.agent.turn import PARTIAL, Attempt, attempt_entry
from palaver.errors import BrokenAnswer, ProviderError
from palaver.log import Entry
from palaver.messages import Message
from palaver.models import Assembly, Event
from palaver.session import Dialog
from palaver.tools.aside import aside
from palaver.view import View
from palaver.wire import Request

__all__ = ["Answering"]


@dataclass(slots=True, kw_only=True)
class Answering:
    """One call of the model on its way.

    A whole answer is put together by its provider and comes back from the invoker. What is put together here, of the events, is there for an
    answer that never comes back: the call is cut off, and no error says what had come.

    Attributes:
        dialog: The dialog that is to be answered.
        sink: Who is told of the events.
        model: The model.
        view: What it is shown.
        decision: What a schedule decided before this call, to be recorded with it; None where nothing was scheduled.
        request: What it is asked with, once the invoker says; that it is being asked is durable from then on.
    """

    dialog: Dialog
    sink: Sink
    model: str
    view: View
    decision: Mapping[str, Any] | None = None
    request: Request | None = None
    _come: Assembly | None = field(default=None, init=False)

    async def hear(self, event: Event | Asking) -> None:
        """Take an event of the answer, and pass it on. That the model is asked is recorded before it is."""
        if isinstance(event, Asking):
            await aside(partial(self.dialog.record_call, event.request, self.decision))
            self.request = event.request
        else:
            self._take(event)
        await self.sink.emit(event)

    def _take(self, event: Event) -> None:
        if self._come is None:
            self._come = Assembly(model=self.model)
        try:
            self._come.add(event)
        except BrokenAnswer:  # an invoker of the caller's may ask several models in turn: another answer begins
            self._come = Assembly(model=self.model)
            self._come.add(event)

    def cut_off(self, error: ProviderError | None = None) -> Iterator[Entry]:
        """Give the entry that keeps an answer which never became a message, once; nothing where nothing came.

        Args:
            error: How the provider failed; None where the turn was cut off. What it says had come knows more than the events did.
        """
        come, self._come = self._come, None
        told = None if error is None else error.partial
        if error is not None and isinstance(told, Message) and told.contents:
            yield attempt_entry(Attempt(told, PARTIAL, error.message))
        elif come is not None and come.partial.contents:
            yield attempt_entry(Attempt(come.partial, PARTIAL, "The answer was cut off."))
