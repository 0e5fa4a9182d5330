"""Limits besides tokens: bytes of the body, and images and sounds. A view is brought within them before its policy is asked.

The same operators do it, on another unit: first images and sounds are shown as lines, the oldest first, then large outputs as
references, and only then exchanges are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from palaver.context.fallback import NAME, fallback
from palaver.context.floor import floor
from palaver.context.ground import Ground, Room
from palaver.context.ledger import Ledger
from palaver.context.measure import Measure
from palaver.context.notice import NOTICE
from palaver.context.operators import DEGRADE_MEDIA, DROP_OLDEST, in_phases
from palaver.context.operators.offload import offload
from palaver.context.record.carried import carried
from palaver.context.record.notice_of import NoticeOf
from palaver.context.steps import laid_out, plan_of
from palaver.errors import InfeasibleBudget
from palaver.tokens import Budget
from palaver.view import Plan, View, apply
from palaver.wire import Profile

__all__ = ["bytes_over", "limited", "over_limits", "require_limits", "within_profile"]

_LARGE = 2_000
"""Bytes of output beyond which it is set aside, about as many as 500 tokens."""

_BYTES_IN_STEPS = in_phases(DEGRADE_MEDIA, offload(_LARGE), DROP_OLDEST)


def within_profile(budget: Budget, profile: Profile) -> Budget:
    """Give a budget that asks for no more bytes and images than a provider takes: of two limits the smaller one counts."""
    most_bytes, most_media = profile.request_bytes, profile.media.count
    return replace(
        budget,
        max_bytes=most_bytes if budget.max_bytes is None else min(budget.max_bytes, most_bytes),
        max_media=most_media if budget.max_media is None else min(budget.max_media, most_media),
    )


def require_limits(view: View, budget: Budget, books: Ledger) -> None:
    """Insist that what must be sent is within the limits.

    Raises:
        InfeasibleBudget: It has more bytes, or more images and sounds, than the budget allows.
    """
    for measure, most in _limits(budget, books):
        needed = floor(view, measure)
        if sum(needed.values()) > most:
            raise InfeasibleBudget(most, sum(needed.values()), needed, unit=measure.unit)


def limited(view: View, budget: Budget, books: Ledger, *, spare: int = 0) -> tuple[View, tuple[Plan, ...]]:
    """Bring a view within the limits, as far as it is not.

    Args:
        view: The view.
        budget: What one request may occupy.
        books: The books.
        spare: Bytes to leave free.

    Returns:
        The view, and the plans that made it so; the very same view and none when it is within them.
    """
    plans = []
    for measure, most in _limits(budget, books):
        most -= spare if measure is books.bytes else 0  # noqa: PLW2901 - what is left of it
        size = measure.view(view)
        if size.total <= most:
            continue
        room = Room.within(most, size)
        if measure is books.bytes:
            plan = fallback(view, measure, room, _BYTES_IN_STEPS, NoticeOf(books.sources, books.constraints))
        else:
            ground = Ground(view, measure, room, NOTICE)
            plan = plan_of(ground, laid_out(ground, DEGRADE_MEDIA), NAME)
        plan = carried(view, plan, books.sources)
        view = apply(view, plan, books.applied)
        plans.append(plan)
    return view, tuple(plans)


def bytes_over(view: View, budget: Budget, books: Ledger) -> int:
    """Tell how many bytes a view has too many; 0 or less when it has not."""
    return 0 if budget.max_bytes is None else books.bytes.view(view).total - budget.max_bytes


def over_limits(view: View, budget: Budget, books: Ledger) -> InfeasibleBudget:
    """Make the error about a view that is over a limit, or over its tokens, and may not be made smaller."""
    for measure, most in (*_limits(budget, books), (books.meter, budget.for_input)):
        size = measure.view(view)
        if size.total > most:
            parts = {name: part for name, part in size.parts().items() if part}
            return InfeasibleBudget(most, size.total, parts, unit=measure.unit)
    raise AssertionError("no limit is broken")


def _limits(budget: Budget, books: Ledger) -> Iterator[tuple[Measure, int]]:
    if budget.max_media is not None:
        yield books.pieces, budget.max_media
    if budget.max_bytes is not None:
        yield books.bytes, budget.max_bytes
