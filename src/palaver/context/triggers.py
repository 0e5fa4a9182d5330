"""Triggers: when an agent compacts, as values. Each looks at figures and says why it fires; none reads a clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from palaver.errors import InvalidInput

__all__ = ["EventCount", "Figures", "Fired", "Idle", "Overflow", "Tokens", "Trigger", "fired", "next_request"]

_PROGRESS = 1.1
"""A trigger fires again only when the view has grown by a tenth since its last compaction (OpenHands: minimum_progress 0.1)."""


def next_request(counted: int, counted_then: int = 0, reported_then: int = 0) -> int:
    """Return the size of the next request: the provider's report of the last one, plus a local count of the new part.

    Args:
        counted: What the next request counts, in tokens.
        counted_then: What the last request and its answer counted, where the next one continues it; 0 after a compaction, or where there was none.
        reported_then: What the provider reported for both; 0 where it did not.
    """
    return reported_then + counted - counted_then if reported_then and 0 < counted_then <= counted else counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What triggers look at.

    Attributes:
        events: Messages in the view; a derived text counts as one.
        tokens: The size of the next request (`next_request`).
        window: The model's window in tokens; 0 where it is unknown.
        idle: Seconds since the model or a tool last said something.
        overflow: Whether the provider has just said that the request is too long.
        compacted: The size of the view after its last compaction, or after the undoing of one; 0 where there was none.
    """

    events: int = 0
    tokens: int = 0
    window: int = 0
    idle: float = 0.0
    overflow: bool = False
    compacted: int = 0


@runtime_checkable
class Trigger(Protocol):
    """Says whether a view is to be made smaller now."""

    @property
    def name(self) -> str:
        """The name under which the compaction is recorded."""
        ...

    def why(self, figures: Figures, /) -> str:
        """Return why it fires, in one clause; an empty text when it does not."""
        ...


@dataclass(frozen=True, slots=True)
class Overflow:
    """Fires when the provider says that the request is too long."""

    name: ClassVar[str] = "overflow"

    def why(self, figures: Figures) -> str:
        """Return why it fires."""
        return "the provider said that the request is too long" if figures.overflow else ""


@dataclass(frozen=True, slots=True)
class EventCount:
    """Fires when the view has more messages than a limit. OpenHands condenses at 120 events.

    Attributes:
        limit: The limit; one message more fires.
    """

    limit: int = 120
    name: ClassVar[str] = "events"

    def __post_init__(self) -> None:
        """Check the limit."""
        _require_positive("limit", self.limit)

    def why(self, figures: Figures) -> str:
        """Return why it fires."""
        return f"{figures.events:,} messages, more than {self.limit:,}" if figures.events > self.limit else ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Fires when the next request exceeds a share of the model's window or a number of tokens.

    Attributes:
        share: The share of the window; it does not count where the window is unknown.
        limit: A number of tokens, or None.
    """

    share: float = 0.8
    limit: int | None = None
    name: ClassVar[str] = "tokens"

    def __post_init__(self) -> None:
        """Check share and limit."""
        if not 0 < self.share <= 1:
            raise InvalidInput(
                f"share is {self.share!r}.", hint="Give a share of the window, more than 0 and at most 1."
            )
        if self.limit is not None:
            _require_positive("limit", self.limit)

    def why(self, figures: Figures) -> str:
        """Return why it fires."""
        limits = [int(self.share * figures.window)] if figures.window else []
        limits += [] if self.limit is None else [self.limit]
        least = min(limits, default=None)
        if least is None or figures.tokens <= least:
            return ""
        return f"{figures.tokens:,} tokens, more than {least:,}"


@dataclass(frozen=True, slots=True)
class Idle:
    """Fires when nothing was said for a while: the provider's cache is cold then, so a new prefix costs nothing.

    Attributes:
        seconds: How long; exactly that long fires. Claude Code clears old results after 60 minutes.
        least: Views of at most this many tokens are left alone.
    """

    seconds: float = 3_600.0
    least: int = 10_000
    name: ClassVar[str] = "idle"

    def __post_init__(self) -> None:
        """Check the while."""
        _require_positive("seconds", self.seconds)

    def why(self, figures: Figures) -> str:
        """Return why it fires."""
        waited = figures.idle >= self.seconds and figures.tokens > self.least
        return f"nothing was said for {figures.idle:,.0f} seconds" if waited else ""


class Fired(NamedTuple):
    """A trigger that fired: its name, and why in one clause."""

    trigger: str
    why: str


def fired(triggers: Iterable[Trigger], figures: Figures) -> Fired | None:
    """Return the first trigger that fires, or None.

    After a compaction, or the undoing of one, none fires before the view has grown by a tenth or outgrown the window, except for an overflow.
    """
    grown = figures.tokens >= figures.compacted * _PROGRESS or 0 < figures.window < figures.tokens
    if not (grown or figures.overflow):
        return None
    return next((Fired(trigger.name, why) for trigger in triggers if (why := trigger.why(figures))), None)


def _require_positive(name: str, value: float) -> None:
    if isinstance(value, bool) or not value > 0:
        raise InvalidInput(f"{name} is {value!r}.", hint="Give a number above 0.")
