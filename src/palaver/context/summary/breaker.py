"""The breaker: a summariser that is down is not asked for ever."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAILED_TOO_OFTEN", "Breaker"]

FAILED_TOO_OFTEN = "it failed too often"
"""Why nothing is asked while the breaker is open."""

_FAILURES = 3
"""After so many failures in a row nothing is asked any more (Claude Code: before it had that, 1,279 sessions failed 50 times and more)."""

_GROWTH = 1.25
"""Then only when the view has grown by a quarter."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """Counts failures in a row, so that a summariser that is down is not asked for ever.

    Attributes:
        failures: How many there were.
        at: The size of the view at the last one, in tokens.
    """

    failures: int = 0
    at: int = 0

    def closed(self, tokens: int) -> bool:
        """Tell whether a summariser may be asked for a view of this size."""
        return self.failures < _FAILURES or tokens >= self.at * _GROWTH

    def after(self, *, failed: bool, tokens: int) -> Breaker:
        """Give the breaker after a try."""
        return Breaker(self.failures + 1, tokens) if failed else Breaker()
