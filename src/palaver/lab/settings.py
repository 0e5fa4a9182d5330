"""What is asked of the lab."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from palaver.lab.entrants import Entrant, entrant

__all__ = ["Settings", "entrant_of"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is asked of the lab.

    Attributes:
        paths: Files and folders.
        policies: The policies.
        model: The model whose tokens, prices and window count.
        window: Its window in tokens; its own when None.
        budget: What a request may occupy under every policy; unless given, each divides the window in its own way.
        stand_ins: What stands for a model's summaries.
        lifetime: Seconds for which the provider's cache lives; the provider's own when None.
        jobs: How many processes work.
        seed: What the resampling of sessions begins with.
        resamples: How often sessions are resampled.
    """

    paths: tuple[Path, ...]
    policies: tuple[str, ...]
    model: str
    window: int | None = None
    budget: int | None = None
    stand_ins: tuple[str, ...] = ("fold",)
    lifetime: float | None = None
    jobs: int = 1
    seed: int = 0
    resamples: int = 1_000


def entrant_of(asked: str, settings: Settings) -> Entrant:
    """Make a policy that was asked for."""
    return entrant(asked, settings.model, window=settings.window, budget=settings.budget)
