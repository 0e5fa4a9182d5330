"""Workloads: what a conversation brings to each call, generated from a seed. Schedules are measured on them against the optimum."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

__all__ = ["Growth", "Observations", "growing", "observing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A conversation that grows until it is folded.

    Attributes:
        new: The tokens that each call brings.
        cold: Whether the cache is cold at each call.
        prefix: Tokens of instructions and tools, which no fold touches.
        summary: Tokens that stand for what was folded.
        keep: Tokens at the end that a fold leaves.
        room: The most that a request may occupy.
    """

    new: tuple[int, ...]
    cold: tuple[bool, ...]
    prefix: int = 12_000
    summary: int = 1_500
    keep: int = 4_000
    room: int = 180_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """A conversation of an agent that acts and looks: each call adds an action and an observation.

    Attributes:
        sizes: The tokens of each observation.
        prefix: Tokens of instructions, tools and task.
        action: Tokens of an action.
        line: Tokens of what stands for an observation that is masked.
        newest: How many of the newest observations are never masked.
    """

    sizes: tuple[int, ...]
    prefix: int = 12_000
    action: int = 250
    line: int = 25
    newest: int = 10


def growing(seed: int, *, window: int, cold: float = 0.0, reserve: int = 20_000) -> Growth:
    """Make a conversation that grows: 20 to 320 calls, each bringing 500, 1,500 or 4,000 tokens in the mean, lognormal.

    Args:
        seed: Tells conversations apart.
        window: The model's window, in tokens.
        cold: The share of calls that find the cache cold.
        reserve: Tokens of the window kept for the answer and for errors.
    """
    chance = random.Random(seed)  # noqa: S311 - a workload, not a secret
    calls = chance.choice((20, 40, 80, 160, 320))
    mean = chance.choice((500, 1_500, 4_000))
    return Growth(
        new=tuple(max(1, round(_lognormal(chance, mean, 1.0))) for _ in range(calls)),
        cold=tuple(number > 0 and chance.random() < cold for number in range(calls)),
        summary=chance.choice((1_500, 4_000)),
        keep=chance.choice((4_000, 20_000)),
        room=window - reserve,
    )


def observing(seed: int, calls: int) -> Observations:
    """Make a conversation with observations: 900 tokens in the middle, lognormal with sigma 1.2, 16,000 at most.

    Args:
        seed: Tells conversations apart.
        calls: How many observations it has.
    """
    chance = random.Random(seed)  # noqa: S311 - a workload, not a secret
    return Observations(
        sizes=tuple(min(16_000, max(20, round(chance.lognormvariate(math.log(900), 1.2)))) for _ in range(calls))
    )


def _lognormal(chance: random.Random, mean: float, sigma: float) -> float:
    return chance.lognormvariate(math.log(mean) - sigma**2 / 2, sigma)
