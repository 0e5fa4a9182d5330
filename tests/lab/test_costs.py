"""What a replay and a run cost, in things that are the same on every machine."""

import json
from functools import partial
from pathlib import Path

from bench.replays import calls_of, session
from palaver.lab import entrant, sheet
from palaver.lab.loading import Loaded, loaded
from palaver.lab.sessions import LabSession, replayed
from palaver.tokens import counter

MODEL, BUDGET = "gpt-4o", 5_000


def _calls(path: Path, rounds: int, policy: str) -> float:
    """Give how many calls of Python a replay makes for each round."""
    path.write_text(json.dumps(session(rounds)))
    (found,) = (one for one in loaded(path) if isinstance(one, Loaded))
    ready = LabSession.of(found, "key", "run", counter(MODEL))
    return calls_of(partial(replayed, ready, entrant(policy, MODEL, budget=BUDGET), "fold", sheet(MODEL))) / rounds


def test_a_replay_costs_what_its_session_has_in_messages(tmp_path: Path) -> None:
    """Of four times the length, each message costs hardly more than before: what a replay does grows with the session, not with its square."""
    short, long = (_calls(tmp_path / f"{rounds}.json", rounds, "palaver") for rounds in (30, 120))
    assert long < 1.5 * short
