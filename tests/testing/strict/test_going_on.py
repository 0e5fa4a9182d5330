"""Recorded sessions go on under every API and three models each: a sample in every run, and all of them in the soak."""

from __future__ import annotations

from collections import Counter

import pytest

from tests import laws
from tests.recorded import Recording, recordings
from tests.testing.strict.recorded import go_on, sides

KINDS = (
    *("claude_code", "codex", "gemini_cli", "mini_swe_agent", "openhands_llm_calls", "pi", "swe_agent", "tau2_bench"),
    "tau_bench",
)
NO_SESSION = "gemini_cli/trajectory.json.zst"
ALL = [case for case in recordings(*KINDS) if case.id != NO_SESSION]
_SAMPLE = {
    case.id for case in recordings("codex", "gemini_cli", "openhands_llm_calls", "swe_agent", "tau2_bench", each=1)
}


def check(recording: Recording, every: int = 1) -> None:
    """Check that nothing is refused or dropped, that all is of the vendors' types, and that the thinking of the turn goes back."""
    count = Counter[str]()
    faults = list(go_on(recording, sides(), count, every))
    assert not faults, faults[0]
    laws.checked(count.total())


@pytest.mark.parametrize("recording", [case for case in ALL if case.id in _SAMPLE])
def test_a_sample_of_recordings_goes_on(recording: Recording) -> None:
    """Laws 15 and 16: the next turn of some recorded dialogs is accepted everywhere."""
    check(recording, every=max(1, (recording.count("conversations") or 1) // 2))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("recording", ALL)
def test_every_recording_goes_on(recording: Recording) -> None:
    """Laws 15 and 16: the next turn of every recorded dialog is accepted everywhere."""
    check(recording)
