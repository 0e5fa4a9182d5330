"""Triggers: when a view is to be made smaller, as values. Each looks at figures and says why it fires; none reads a clock of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from palaver.errors import InvalidInput

__all__ = [
    "MANUAL",
    "EventCount",
    "Figures",
    "Fired",
    "Idle",
    "Overflow",
    "Own",
    "Tokens",
    "Trigger",
    "fired",
    "grown",
    "held",
]

MANUAL = "manual"
"""The name under which a compaction is recorded that somebody asked for."""

_PROGRESS = 1.1
"""By how much a view must have grown since the last compaction, or its undoing, before a trigger fires again: compaction never loops (T8, T20)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What triggers look at.

    Attributes:
        events: Messages in the view; what a policy put in counts as one.
        tokens: The size of the next request, in tokens.
        window: The model's window, in tokens; 0 where it is not known.
        idle: Seconds since the newest words of the model, or of a tool; 0 where there are none.
        overflow: Whether the provider has just said that the request is too long.
        compacted: The size of the view behind its last compaction, or behind the undoing of one, in tokens; 0 where there was none.
        undone: Whether that was an undoing: the view is as large as somebody wants it to be.
        own: Why the policy would make the view smaller now by a limit of its own; empty where it would not, or was not asked.
    """

    events: int = 0
    tokens: int = 0
    window: int = 0
    idle: float = 0.0
    overflow: bool = False
    compacted: int = 0
    undone: bool = False
    own: str = ""


class Trigger(Protocol):
    """Says whether a view is to be made smaller now."""

    @property
    def name(self) -> str:
        """The name under which a compaction is recorded that it led to."""
        ...

    def why(self, figures: Figures, /) -> str:
        """Say why it fires, in one clause; an empty text when it does not."""
        ...


@dataclass(frozen=True, slots=True)
class Overflow:
    """Fires when the provider says that the request is too long."""

    name: ClassVar[str] = "overflow"

    def why(self, figures: Figures) -> str:
        """Say why it fires."""
        return "the provider said that the request is too long" if figures.overflow else ""


@dataclass(frozen=True, slots=True)
class Own:
    """Fires when the policy's own limit is reached: what a preset of another system acts at, be it events, steps or tokens."""

    name: ClassVar[str] = "policy"

    def why(self, figures: Figures) -> str:
        """Say why it fires."""
        return figures.own


@dataclass(frozen=True, slots=True)
class EventCount:
    """Fires when the view has more messages than a number.

    (OpenHands: 120 events by default, openhands-sdk, context/condenser.)

    Attributes:
        limit: The number; one message more fires.
    """

    limit: int = 120
    name: ClassVar[str] = "events"

    def __post_init__(self) -> None:
        """Refuse a number that would always fire."""
        _positive("limit", self.limit)

    def why(self, figures: Figures) -> str:
        """Say why it fires."""
        return f"{figures.events:,} messages, more than {self.limit:,}" if figures.events > self.limit else ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Fires when the next request is larger than a share of the model's window, or than a number of tokens.

    (dynamiq's RFC: `context_usage_ratio` 0.8, `max_token_context_length`; either, and strictly more.)

    Attributes:
        share: The share of the window; it does not count where the window is not known.
        limit: A number of tokens, or None.
    """

    share: float = 0.8
    limit: int | None = None
    name: ClassVar[str] = "tokens"

    def __post_init__(self) -> None:
        """Refuse what would always fire, or never."""
        if not 0 < self.share <= 1:
            raise InvalidInput(
                f"share is {self.share!r}.", hint="Give a share of the window, more than 0 and at most 1."
            )
        if self.limit is not None:
            _positive("limit", self.limit)

    def why(self, figures: Figures) -> str:
        """Say why it fires."""
        limits = [int(self.share * figures.window)] if figures.window else []
        limits += [] if self.limit is None else [self.limit]
        least = min(limits, default=None)
        if least is None or figures.tokens <= least:
            return ""
        return f"{figures.tokens:,} tokens, more than {least:,}"


@dataclass(frozen=True, slots=True)
class Idle:
    """Fires when nothing was said for a while: by then the provider's cache is cold, so that nothing is lost by beginning differently.

    (Claude Code clears old results after 60 minutes; caches live for 5 minutes or an hour.)

    Attributes:
        seconds: The while; exactly that long fires.
        least: Views of at most this many tokens are left alone.
    """

    seconds: float = 3_600.0
    least: int = 10_000
    name: ClassVar[str] = "idle"

    def __post_init__(self) -> None:
        """Refuse a time that would always fire."""
        _positive("seconds", self.seconds)

    def why(self, figures: Figures) -> str:
        """Say why it fires."""
        waited = figures.idle >= self.seconds and figures.tokens > self.least
        return f"nothing was said for {figures.idle:,.0f} seconds" if waited else ""


@dataclass(frozen=True, slots=True)
class Fired:
    """A trigger that fired.

    Attributes:
        trigger: Its name.
        why: Why, in one clause.
    """

    trigger: str
    why: str


def grown(figures: Figures) -> bool:
    """Tell whether the view may be made smaller again: it has grown by a tenth since its last compaction, or since that was undone.

    One that somebody undid may be, too, as soon as the model's window does not hold it.
    """
    if not figures.compacted or figures.tokens >= figures.compacted * _PROGRESS:
        return True
    return figures.undone and 0 < figures.window < figures.tokens


def held(figures: Figures, room: int) -> bool:
    """Tell whether a view is as large as somebody wants it to be: he took a compaction back, a request holds it, and it has not grown by a tenth since.

    Args:
        figures: The figures.
        room: What one request may occupy, in tokens; 0 where that is not known.
    """
    return figures.undone and not grown(replace(figures, window=room))


def fired(triggers: Iterable[Trigger], figures: Figures) -> Fired | None:
    """Give the first trigger that fires, or None.

    Behind a compaction none does before the view has grown by a tenth, but for an overflow: what could not be made smaller then is not tried
    again with every message. Nor behind the undoing of one, so that it holds; unless the window is too small for that.
    """
    if not figures.overflow and not grown(figures):
        return None
    for trigger in triggers:
        why = trigger.why(figures)
        if why:
            return Fired(trigger.name, why)
    return None


def _positive(name: str, value: float) -> None:
    if isinstance(value, bool) or not value > 0:
        raise InvalidInput(f"{name} is {value!r}.", hint="Give a number above 0.")
