"""Intervals: how sure a figure over sessions is, by resampling the sessions.

Source: Efron, "Bootstrap Methods: Another Look at the Jackknife" (1979), percentile intervals; paired, because every policy is replayed on the same
sessions, and a session that is dear under one is dear under all. Calls of one session are not independent, so sessions are resampled.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple, TypeAlias

__all__ = ["Interval", "paired_interval", "paired_share", "ratio_interval"]

_Row: TypeAlias = tuple[float, ...]

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
    """Return the ratio of two sums over sessions, such as hits over references, and its interval.

    Args:
        pairs: For each session, what goes above and what goes below.
        resamples: How often the sessions are resampled.
        seed: What the resampling begins with: the same seed gives the same interval.

    Returns:
        None where there is nothing below.
    """
    value = _ratio(_sums(pairs))
    return None if value is None else _interval(value, map(_ratio, _resampled(pairs, resamples, seed)))


def paired_interval(
    ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]], *, resamples: int = 1_000, seed: int = 0
) -> Interval | None:
    """Return the difference of two ratios over the same sessions, the first less the second, and its interval.

    Args:
        ours: For each session, what goes above and what goes below.
        theirs: The same for what is compared with, session for session.
        resamples: How often the sessions are resampled.
        seed: What the resampling begins with.

    Returns:
        None where one of them has nothing below.
    """
    value = _less(_ratio(_sums(ours)), _ratio(_sums(theirs)))
    if value is None:
        return None
    both = zip(_resampled(ours, resamples, seed), _resampled(theirs, resamples, seed), strict=True)
    return _interval(value, (_less(_ratio(one), _ratio(other)) for one, other in both))


def paired_share(
    ours: Sequence[_Row],
    theirs: Sequence[_Row],
    wins: Callable[[tuple[float, ...], tuple[float, ...]], bool],
    *,
    resamples: int = 1_000,
    seed: int = 0,
) -> float | None:
    """Return in what share of resamplings of the sessions one wins over another by its sums.

    Args:
        ours: For each session, what is added up.
        theirs: The same for what is compared with, session for session.
        wins: Tells whether the sums of the first win over those of the second.
        resamples: How often the sessions are resampled.
        seed: What the resampling begins with.

    Returns:
        None where nothing is resampled.
    """
    drawn = list(zip(_resampled(ours, resamples, seed), _resampled(theirs, resamples, seed), strict=True))
    return sum(wins(one, other) for one, other in drawn) / len(drawn) if drawn and ours else None


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _ratio(sums: tuple[float, ...]) -> float | None:
    above, below = sums
    return above / below if below else None


def _sums(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def _resampled(rows: Sequence[_Row], resamples: int, seed: int) -> Iterator[tuple[float, ...]]:
    """Return the sums over each resampling; for the same number of sessions and the same seed, the same sessions are drawn."""
    columns = tuple(zip(*rows, strict=True)) or ((), ())
    for drawn in _draws(len(rows), resamples, seed):
        yield tuple(sum(drawn(column)) for column in columns)


_DRAWN = 1_000_000
"""Sessions that are drawn in all, so that the time and the memory that intervals take do not grow with the sessions: of more than a thousand
sessions there are fewer than a thousand resamplings."""

_LEAST = 100
"""Resamplings that there are of any number of sessions, if so many are asked for: an end of the interval is the third of a hundred."""


@lru_cache(maxsize=4)  # every figure of every policy is resampled with the same draws
def _draws(count: int, resamples: int, seed: int) -> tuple[Callable[[Sequence[float]], tuple[float, ...]], ...]:
    chance, places = random.Random(seed), list(range(count))  # noqa: S311 - resampling, no secret
    often = min(resamples, max(_DRAWN // count, _LEAST)) if count else 0
    return tuple(_drawn(chance.choices(places, k=count)) for _ in range(often))


def _drawn(places: list[int]) -> Callable[[Sequence[float]], tuple[float, ...]]:
    """Return what takes the values at some places, which may be one place only."""
    taken = itemgetter(*places, places[0])
    return lambda values: taken(values)[:-1]


def _interval(value: float, drawn: Iterable[float | None]) -> Interval:
    """Return the interval that holds 95 of 100; resamplings in which there is nothing below are left out."""
    values = sorted(one for one in drawn if one is not None)
    if not values:
        return Interval(value, value, value)
    return Interval(value, values[int(_TAIL * (len(values) - 1))], values[round((1 - _TAIL) * (len(values) - 1))])
