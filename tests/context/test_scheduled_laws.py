"""Scheduled policies are held to every law of policies: whatever waits, whatever is flushed."""

from __future__ import annotations

from palaver.context import ContextManager, PriceSheet, Scheduled
from palaver.testing.policy_laws import PolicyLaws

_EAGER = PriceSheet(read=1.0, write=1.0, loss=10.0, missed=0.0)
"""Without a cache every edit pays at once."""

_BUSY = PriceSheet(read=0.5, write=1.0, loss=50.0)
"""Edits and folds pay after a few calls, so that short conversations have many of them."""


class TestPalaver(PolicyLaws):
    """The default preset, with most providers' prices."""

    def policy(self) -> ContextManager:
        """Schedule it."""
        return Scheduled("palaver")


class TestBusy(PolicyLaws):
    """The default preset where edits and folds pay often."""

    def policy(self) -> ContextManager:
        """Schedule it, with nothing left alone but the newest result."""
        return Scheduled("palaver", prices=_BUSY, newest=1, keep=300)


class TestEager(PolicyLaws):
    """A preset that clears besides, where edits pay at once."""

    def policy(self) -> ContextManager:
        """Schedule it."""
        return Scheduled("claude-code", prices=_EAGER, newest=2)


class TestDrawn(PolicyLaws):
    """A preset with steps of its own at every exchange, thresholds drawn at random."""

    def policy(self) -> ContextManager:
        """Schedule it."""
        return Scheduled("swe-agent", prices=_BUSY, newest=3, seed="a conversation")
