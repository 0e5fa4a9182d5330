"""Scheduled policies are held to every law of policies: whatever waits, whatever is flushed."""

from __future__ import annotations

import pytest

from palaver.context import ContextManager, PriceSheet, Scheduled
from palaver.ids import BlobId
from palaver.store.memory import MemoryStore
from palaver.testing.policy_laws import PolicyLaws, hold, stable
from palaver.tokens import Budget
from palaver.transcripts import Importer
from palaver.view import fold
from tests.context.every_view import asked
from tests.context.helper import COUNTER, size
from tests.recorded import Recording, recordings

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


@pytest.mark.parametrize("recording", recordings("claude_code", each=1))
def test_every_law_holds_on_a_recorded_session(recording: Recording) -> None:
    """A real session, at every point where its model was called: valid for all providers, within budget, prefixes between edits."""
    _hold(recording, calls=12)


@pytest.mark.soak
@pytest.mark.parametrize("recording", recordings("claude_code", "codex", "pi", "tau_bench"))
def test_every_law_holds_on_all_recorded_sessions(recording: Recording) -> None:
    """The same for all of them, at up to a thousand calls."""
    _hold(recording, calls=1_000)


def _hold(recording: Recording, calls: int) -> None:
    store = MemoryStore()
    (imported, *_) = Importer(store, keep_source=False).import_path(recording.path)
    dialog = store.nodes(imported.session_id)[0].dialog_id
    policy = TestBusy().policy()
    whole = fold(store, dialog)
    for share in (25, 300):
        budget = Budget.of_input(max(size(whole) * share // 100, 1))
        hold(whole, policy, budget, COUNTER, media=lambda digest: store.blob(BlobId(digest)))
    stable(iter(asked(store, dialog, calls)), policy, Budget.of_input(max(size(whole) // 2, 1)), COUNTER)
