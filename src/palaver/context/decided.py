"""What was decided before a call, and what a policy put into its view, read back from what is recorded with the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palaver.context.repo_map.mapped import LABEL
from palaver.context.schedule.replay import Scheduling

__all__ = ["sentences"]


def sentences(decision: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what is recorded with a call (`Composed.plan.details`), one sentence each.

    Args:
        decision: The record: a schedule's figures, those of a map under its label, or both.
    """
    told = Scheduling.of(decision).sentences() if "prices" in decision else ()
    return (*told, *(_drawn(decision[name]) for name in (LABEL,) if name in decision))


def _drawn(figures: Mapping[str, Any]) -> str:
    shown = f"{figures['definitions']:,} of {figures['of_definitions']:,} definitions"
    files = f"files: {figures['files']:,} of {figures['of_files']:,}"
    return f"{LABEL}: drawn ({figures['why']}), {figures['tokens']:,} tokens, {shown}, {files}"
