"""The lab on recorded sessions."""

from pathlib import Path

import pytest

from bench.baselines import KNOWN
from palaver.context import POLICIES
from palaver.lab import Problem, Results, Settings, entrant, run_lab, sheet
from palaver.lab.loading import loaded
from palaver.lab.sessions import LabSession, replayed
from palaver.tokens import counter
from tests.recorded import Recording, recordings

MODEL = "claude-sonnet-4-5"
BASELINES = Path(__file__).parents[2] / "bench" / "baselines.py"
WITHIN = 0.02
"""How far a baseline that is made again may be from what is known: the pattern of identifiers is not the same (docs/lab.md)."""


@pytest.mark.parametrize("recording", recordings("mini_swe_agent", "openhands_llm_calls", each=1))
def test_a_recorded_session_is_replayed_under_the_laws(recording: Recording) -> None:
    """No law is broken, every row adds up, and what is left out of nothing recalls everything."""
    counting, prices = counter(MODEL), sheet(MODEL)
    found = next(one for one in loaded(recording.path) if not isinstance(one, Problem))
    session = LabSession.of(found, "key", "run", counting)
    for name in ("full", "palaver", "swe-agent"):
        replay, rows = replayed(session, entrant(name, MODEL, budget=12_000), "fold", prices)
        assert (replay.status, replay.broken, replay.calls) == ("ok", 0, len(rows))
        assert all(sum(row.composition.values()) == row.tokens for row in rows)
        assert replay.in_view <= replay.reached <= replay.references
        assert name != "full" or replay.in_view == replay.references


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("recording", recordings())
def test_every_preset_over_every_recorded_session(recording: Recording, tmp_path: Path) -> None:
    """No law is broken and no preset fails, whatever the session; what cannot be read is named."""
    settings = Settings(
        paths=(recording.path,), policies=tuple(POLICIES), model=MODEL, window=64_000, resamples=10, jobs=1
    )
    table = run_lab(settings, tmp_path)
    assert {problem.kind for problem in table.problems} <= {
        "unreadable",
        "empty",
        "no timestamps",
        "no usage",
        "no model",
        "no evidence",
    }
    assert all(row.broken == 0 and row.failed == 0 for row in table.rows)
    assert table.sessions == len(list(Results(tmp_path).sessions()))


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("recording", recordings("tau_bench"))
def test_the_known_baselines_are_made_again(recording: Recording, tmp_path: Path) -> None:
    """Masks and tails recall on recorded tau-bench runs what was computed before, within two points; and no law is broken."""
    policies = tuple(f"{BASELINES}:{name}" for name in KNOWN)
    table = run_lab(Settings(paths=(recording.path,), policies=policies, model="gpt-4o", resamples=10), tmp_path)
    for row in table.rows:
        known, _ = KNOWN[row.policy.rpartition(":")[2]]
        assert (row.status, row.broken) == ("ok", 0)
        assert row.scores["frr"].value == pytest.approx(known, abs=WITHIN)
