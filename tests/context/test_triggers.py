"""Triggers: values that fire at their figures, exactly there, and never again before there is progress."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.context.triggers import EventCount, Figures, Fired, Idle, Overflow, Tokens, Trigger, fired
from palaver.errors import InvalidInput

ALL: tuple[Trigger, ...] = (Overflow(), EventCount(), Tokens(limit=1_000), Idle())


@pytest.mark.parametrize(
    ("trigger", "below", "above"),
    [
        (EventCount(), Figures(events=120), Figures(events=121)),
        (EventCount(3), Figures(events=3), Figures(events=4)),
        (Tokens(), Figures(tokens=80, window=100), Figures(tokens=81, window=100)),
        (Tokens(limit=50), Figures(tokens=50, window=100), Figures(tokens=51, window=100)),
        (Tokens(), Figures(tokens=10**9), Figures(tokens=81, window=100)),
        (Idle(), Figures(idle=3_599.9, tokens=10_001), Figures(idle=3_600.0, tokens=10_001)),
        (Idle(60, least=0), Figures(idle=60), Figures(idle=60, tokens=1)),
        (Overflow(), Figures(tokens=10**9), Figures(overflow=True)),
    ],
    ids=lambda one: str(one)[:40],
)
def test_each_fires_at_its_figure_and_not_below(trigger: Trigger, below: Figures, above: Figures) -> None:
    """R265, R300: strictly more than the share or the count (event 121 of 120); an hour is an hour; and the reason says the figures."""
    assert trigger.why(below) == ""
    assert trigger.why(above)
    assert fired((trigger,), below) is None
    assert fired((trigger,), above) == Fired(trigger.name, trigger.why(above))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (EventCount, {"limit": 0}),
        (Tokens, {"share": 0}),
        (Tokens, {"share": 1.5}),
        (Tokens, {"limit": 0}),
        (Idle, {"seconds": 0}),
    ],
    ids=str,
)
def test_what_would_always_fire_or_never_is_refused(
    kind: type[EventCount | Tokens | Idle], words: dict[str, float]
) -> None:
    """A limit of nothing, a share beyond the window."""
    with pytest.raises(InvalidInput):
        kind(**words)  # type: ignore[arg-type]


@given(st.integers(1, 10_000), st.integers(0, 500), st.floats(0, 10_000))
def test_nothing_fires_again_before_the_view_has_grown_by_a_tenth(compacted: int, events: int, idle: float) -> None:
    """T2, T8, T20: whatever the figures, behind a compaction only growth or the provider's own word leads to the next one."""
    for tokens in (compacted, int(compacted * 1.09)):
        figures = Figures(events=events, tokens=tokens, window=10, idle=idle, compacted=compacted)
        assert fired(ALL, figures) is None
    again = Figures(tokens=compacted, compacted=compacted, overflow=True)
    assert fired(ALL, again) == Fired("overflow", Overflow().why(again))
