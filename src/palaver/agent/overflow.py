"""A request that was longer than the model reads: the view is made smaller, once, as an entry of the log."""

from __future__ import annotations

from palaver.agent.run import Run
from palaver.context import Composed
from palaver.errors import ContextOverflow, InfeasibleBudget, InvalidInput, ModelCallFailed
from palaver.session.composing import PolicyLike, tokens_of

__all__ = ["make_room"]

_ROOM = 0.8
"""The share of what fits that the smaller view may take: the answers and results to come need the rest."""

_UNTOLD = 0.5
"""The share of its size that a view keeps when the provider does not say by how much it was too long."""


def make_room(run: Run, overflow: ContextOverflow) -> Composed:
    """Commit a smaller view, made by the agent's own policy or else by the default one.

    How small is measured with the provider's own figures, where it tells them: what it counted for the request, and what it reads.

    Raises:
        ModelCallFailed: No smaller view holds what every view must hold.
    """
    size = tokens_of(run.dialog.view(), run.settings.model)
    share = _UNTOLD
    if overflow.limit and overflow.asked and overflow.asked > overflow.limit:
        share = _ROOM * overflow.limit / overflow.asked
    target = max(1, int(size * share))
    own = run.settings.context_manager
    for policy in (*([] if own is None else [own]), "default"):
        made = _committed(run, policy, target)
        if made is not None:
            return made
    raise ModelCallFailed(
        overflow, session=run.session, hint="What every view must hold is larger than the model's window."
    ) from overflow


def _committed(run: Run, policy: PolicyLike, target: int) -> Composed | None:
    """Compose and commit; None where this policy cannot."""
    try:
        made = run.dialog.compose(policy, target, model=run.settings.model)
        run.dialog.commit(made)
    except (
        InfeasibleBudget,
        InvalidInput,
    ):  # the floor does not fit, or the policy does not make it smaller: the next one may
        return None
    run.look()
    return made
