"""Policies that know themselves when a view is to be made smaller, and down to what: presets of other systems."""

from __future__ import annotations

from dataclasses import replace

from palaver.context import Policy
from palaver.errors import InfeasibleBudget
from palaver.session.calls.composing import Composing
from palaver.session.compaction.committing import worth
from palaver.tokens import Budget

__all__ = ["as_if_full", "due", "of_input", "paced"]


def paced(ready: Composing) -> bool:
    """Tell whether the policy has a limit of its own."""
    return isinstance(ready.manager, Policy) and ready.manager.paced


def due(ready: Composing) -> str | None:
    """Say why a policy would make a view smaller now by its own limit, in one clause.

    Returns:
        The clause; an empty text where it would not, or not by enough to be committed; None for a policy that has no such limit.
    """
    if not paced(ready):
        return None
    try:
        made = ready.composed()
    except InfeasibleBudget:
        return ""
    if not worth(made.tokens_before, made.tokens_after):
        return ""
    return f"{made.tokens_before:,} tokens, of which the policy {ready.manager.name} would leave {made.tokens_after:,}"


def as_if_full(ready: Composing, size: int) -> Budget:
    """Give the budget by which a view of some size has just outgrown its room: somebody asks for it to be made smaller before it has."""
    return of_input(ready, size - 1)


def of_input(ready: Composing, tokens: int) -> Budget:
    """Give the budget of so many tokens of input, with what the policy leaves alone at the end."""
    budget = Budget.of_input(max(1, tokens))
    return replace(budget, keep_recent=ready.budget.keep_recent, keep_last=ready.budget.keep_last)
