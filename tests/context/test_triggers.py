"""Triggers: values that say why they fire, and never loop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.context.triggers import EventCount, Figures, Fired, Idle, Overflow, Tokens, Trigger, fired, next_request
from palaver.errors import InvalidInput

COUNTS = st.integers(0, 500_000)


def test_a_trigger_fires_strictly_beyond_its_figure() -> None:
    """R300: exactly at the figure it is quiet, and what it says when it fires is one clause."""
    cases: list[tuple[Trigger, Figures, Figures | None]] = [
        (Overflow(), Figures(tokens=9_000_000), Figures(overflow=True)),
        (EventCount(), Figures(events=120), Figures(events=121)),
        (Tokens(), Figures(tokens=80_000, window=100_000), Figures(tokens=80_001, window=100_000)),
        (Tokens(limit=50_000), Figures(tokens=50_000, window=100_000), Figures(tokens=50_001, window=100_000)),
        (Tokens(), Figures(tokens=9_000_000), None),
        (Idle(), Figures(idle=3_599, tokens=20_000), Figures(idle=3_600, tokens=20_000)),
    ]
    for trigger, quiet, firing in cases:
        assert trigger.why(quiet) == "", (trigger, quiet, firing)
        if firing is not None:
            assert trigger.why(firing), (trigger, quiet, firing)
            assert fired([trigger], firing) == Fired(trigger.name, trigger.why(firing)), (trigger, quiet, firing)


def test_a_trigger_that_always_fires_is_refused() -> None:
    """The error names the figure and its bounds."""
    cases: list[tuple[type[Any], dict[str, float]]] = [
        (Tokens, {"share": 1.1}),
        (EventCount, {"limit": 0}),
        (Idle, {"seconds": 0}),
    ]
    for trigger, words in cases:
        with pytest.raises(InvalidInput, match="Give a"):
            trigger(**words)


@given(COUNTS, COUNTS, COUNTS)
def test_after_a_compaction_a_view_must_grow_first(tokens: int, compacted: int, window: int) -> None:
    """T2, T8: none fires before the view has grown by a tenth, but for an overflow, or where the window no longer holds it."""
    figures = Figures(events=10**6, tokens=tokens, compacted=compacted, window=window)
    grown = tokens >= compacted * 1.1 or 0 < window < tokens
    assert (fired([EventCount()], figures) is not None) == grown
    assert fired([Overflow()], Figures(overflow=True, tokens=tokens, compacted=compacted)) is not None


@given(COUNTS, COUNTS, COUNTS)
def test_next_request_is_the_report_and_what_is_new(then: int, new: int, reported: int) -> None:
    """C17, R238, T1: without a report, or where the view no longer continues the last request, all of it is counted."""
    counted = then + new
    assert next_request(counted) == counted
    expected = reported + new if then and reported else counted
    assert next_request(counted, then, reported) == expected
    assert next_request(counted, counted + 1, reported) == counted
