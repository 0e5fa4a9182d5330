"""Intervals: how sure a figure over sessions is, by resampling the sessions.

Source: Efron, "Bootstrap Methods: Another Look at the Jackknife" (1979), percentile intervals; paired, because every policy is replayed on the same
sessions, and a session that is dear under one is dear under all. Calls of one session are not independent, so sessions are resampled.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Interval", "paired_interval", "ratio_interval"]

_TAIL = 0.025


class Interval(NamedTuple):
    """A figure and the interval that holds 95 of 100 resampled ones.

    Attributes:
        value: The figure over all sessions.
        low: The lower end.
        high: The upper end.
    """

    value: float
    low: float
    high: float


def ratio_interval(pairs: Sequence[tuple[float, float]], *, resamples: int = 1_000, seed: int = 0) -> Interval | None:
    """Give the ratio of two sums over sessions, such as hits over references, and its interval.

    Args:
        pairs: For each session, what goes above and what goes below.
        resamples: How often the sessions are resampled.
        seed: What the resampling begins with: the same seed gives the same interval.

    Returns:
        None where there is nothing below.
    """
    return _interval(len(pairs), lambda chosen: _ratio([pairs[index] for index in chosen]), resamples, seed)


def paired_interval(
    ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]], *, resamples: int = 1_000, seed: int = 0
) -> Interval | None:
    """Give the difference of two ratios over the same sessions, the first less the second, and its interval.

    Args:
        ours: For each session, what goes above and what goes below.
        theirs: The same for what is compared with, session for session.
        resamples: How often the sessions are resampled.
        seed: What the resampling begins with.
    """

    def difference(chosen: Sequence[int]) -> float | None:
        one, other = _ratio([ours[index] for index in chosen]), _ratio([theirs[index] for index in chosen])
        return None if one is None or other is None else one - other

    return _interval(min(len(ours), len(theirs)), difference, resamples, seed)


def _ratio(pairs: Sequence[tuple[float, float]]) -> float | None:
    below = sum(pair[1] for pair in pairs)
    return sum(pair[0] for pair in pairs) / below if below else None


def _interval(
    count: int, figure: Callable[[Sequence[int]], float | None], resamples: int, seed: int
) -> Interval | None:
    value = figure(range(count))
    if value is None:
        return None
    chance = random.Random(seed)  # noqa: S311 - resampling, no secret
    drawn = (figure([chance.randrange(count) for _ in range(count)]) for _ in range(resamples))
    values = sorted(one for one in drawn if one is not None)
    if not values:
        return Interval(value, value, value)
    return Interval(value, values[int(_TAIL * (len(values) - 1))], values[round((1 - _TAIL) * (len(values) - 1))])
