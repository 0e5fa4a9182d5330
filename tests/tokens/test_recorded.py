"""Counts against what providers reported in recorded sessions: the stated error bounds hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.recorded_usage import READERS, Run
from bench.token_error import growth, requests
from palaver.tokens import counter


def _runs(folder: Path, kind: str, files: int) -> list[Run]:
    """Read the first files of a kind."""
    return [run for path in sorted((folder / kind).glob("*.zst"))[:files] for run in READERS[kind](path)]


def test_whole_requests_are_within_the_bound(recorded_sessions: Path) -> None:
    """Every request recorded whole, tools and instructions included, is within its family's stated bound."""
    seen = 0
    for run in _runs(recorded_sessions, "openhands_llm_calls", 10):
        counting = counter(run.model)
        for estimated, reported in requests(run, counting):
            assert abs(reported - estimated) <= counting.family.bound * estimated + 1, run.source
            seen += 1
    assert seen > 90


@pytest.mark.parametrize(
    ("kind", "files"),
    [("tau2_bench", 3), ("mini_swe_agent", 2), ("pi", 1), pytest.param("codex", 10, marks=pytest.mark.soak)],
)
def test_growth_is_within_the_bound(recorded_sessions: Path, kind: str, files: int) -> None:
    """What conversations grew by, in samples of 2,000 tokens and more, is within the bound 95 times of 100."""
    inside = []
    for run in _runs(recorded_sessions, kind, files):
        counting = counter(run.model)
        for estimated, reported in growth(run, counting):
            inside.append(abs(reported - estimated) <= counting.family.bound * estimated + 1)
    assert len(inside) > 20
    assert sum(inside) >= 0.95 * len(inside)
