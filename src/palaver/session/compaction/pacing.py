"""Policies that know themselves when a view is to be made smaller, and down to what: presets of other systems."""

from __future__ import annotations

from dataclasses import replace

from palaver.context import Policy
from palaver.errors import InfeasibleBudget
from palaver.session.calls.composing import Composing
from palaver.session.compaction.committing import worth
from palaver.tokens import Budget

__all__ = ["BY_HAND", "apart", "as_if_full", "due", "of_input", "paced"]

BY_HAND = "constraints"
"""What the section is called that tells the constraints put on the list by hand."""


def apart(ready: Composing) -> tuple[Composing, int]:
    """Give what is ready without the constraints that were put on the list by hand, nor their room, and how many tokens they have.

    No plan makes them smaller, and what is written down does not cut them: so what a compaction saves is counted without them.
    """
    view, meter = ready.view, ready.ledger.meter
    system = tuple(block for block in view.system if block.derived != BY_HAND)
    if system == view.system:
        return ready, 0
    rest = replace(view, system=system)
    tokens = meter.view(view).total - meter.view(rest).total
    room = ready.budget.for_input
    less = ready.budget.with_input(room - tokens)
    return replace(ready, view=rest, budget=less), tokens


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
    rest, by_hand = apart(ready)
    try:
        made = rest.composed()
    except InfeasibleBudget:
        return ""
    before, after = made.tokens_before + by_hand, made.tokens_after + by_hand
    if not worth(before, after):
        return ""
    return f"{before:,} tokens, of which the policy {ready.manager.name} would leave {after:,}"


def as_if_full(ready: Composing, size: int) -> Budget:
    """Give the budget by which a view of some size has just outgrown its room: somebody asks for it to be made smaller before it has."""
    return of_input(ready, size - 1)


def of_input(ready: Composing, tokens: int) -> Budget:
    """Give the budget of so many tokens of input, with what the policy leaves alone at the end."""
    budget = Budget.of_input(max(1, tokens))
    return replace(budget, keep_recent=ready.budget.keep_recent, keep_last=ready.budget.keep_last)
