"""Where a turn can be watched from outside: what a tracer is told, and the one that is told nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from palaver.agent.call_session import AgentCallSession
from palaver.agent.invoking import InvokeResult
from palaver.agent.settings import Settings
from palaver.context import Composed
from palaver.messages import ToolCallContent, ToolResultContent

__all__ = ["Asked", "Tracer", "Untraced"]


class Asked(Protocol):
    """One call of a model, as a tracer follows it."""

    def seen(self, composed: Composed) -> None:
        """Take note of what the context manager made of the view."""
        ...

    def answered(self, result: InvokeResult) -> None:
        """Take note of the answer."""
        ...


class Tracer(Protocol):
    """Follows turns. What it raises ends the turn, behind a durable step.

    It is called in the task that does the work, so that what it sets in the context holds for what runs within.
    """

    def turn(self, settings: Settings, session: AgentCallSession) -> AbstractContextManager[None]:
        """Surround a turn."""
        ...

    def asking(self, settings: Settings, session: AgentCallSession) -> AbstractContextManager[Asked]:
        """Surround one call of a model."""
        ...

    def compacted(self, composed: Composed) -> None:
        """Take note of a compaction that an overflow led to."""
        ...

    def call_begun(self, call: ToolCallContent) -> None:
        """Take note that a tool is about to run, in the task in which it does."""
        ...

    def call_ended(self, call: ToolCallContent, result: ToolResultContent, ending: str) -> None:
        """Take note of its result, in the same task; a call that never began has one, too."""
        ...


class Untraced:
    """The tracer that is told nothing."""

    @contextmanager
    def turn(self, settings: Settings, session: AgentCallSession) -> Iterator[None]:
        """Surround nothing."""
        del settings, session
        yield

    @contextmanager
    def asking(self, settings: Settings, session: AgentCallSession) -> Iterator[Asked]:
        """Surround nothing."""
        del settings, session
        yield self

    def seen(self, composed: Composed) -> None:
        """Do nothing."""

    def answered(self, result: InvokeResult) -> None:
        """Do nothing."""

    def compacted(self, composed: Composed) -> None:
        """Do nothing."""

    def call_begun(self, call: ToolCallContent) -> None:
        """Do nothing."""

    def call_ended(self, call: ToolCallContent, result: ToolResultContent, ending: str) -> None:
        """Do nothing."""
