"""Laws 15 and 16 over random histories, against the stand-ins."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings

from palaver.context import POLICIES
from palaver.testing.binding_laws import BindingStep, Play, binding_steps
from palaver.testing.binding_sides import AnthropicSide

_COUNT: Counter[str] = Counter()
HISTORIES = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)


@HISTORIES
@given(steps=binding_steps())
def test_histories_of_claude_are_accepted(steps: list[BindingStep]) -> None:
    """Laws 15 and 16: over any history the stand-in refuses nothing and drops nothing, and nothing more could be kept."""
    play = Play([AnthropicSide()], policies=tuple(POLICIES))
    faults = play.play(steps)
    _COUNT["requests"] += play.requests
    assert not faults, faults[0]
