"""Compose: apply a policy to a view within a budget, and continue its plan until the view fits, or say that nothing can make it fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from palaver.context.cut import find_cut
from palaver.context.layout import Layout
from palaver.context.manager import ContextManager, WorkingDialog, managed_view
from palaver.context.meter import Bytes, Measure, Meter, Pieces, Size
from palaver.context.operators import Shortened, StandIn, drop, drop_with_note, hide_media, shorten_huge
from palaver.context.parameters import Parameters, require, require_words
from palaver.context.record import note, record
from palaver.errors import InfeasibleBudget, InvalidInput, PolicyFailed, StoreError
from palaver.plurals import a_type
from palaver.tokens import Budget, ModelInfo, counter
from palaver.tokens.budget import ANY_MODEL
from palaver.view import Plan, Reason, View, apply

if TYPE_CHECKING:
    from palaver.wire import Profile


class Policy(ContextManager):
    """A context manager that returns a plan, which `compose` applies.

    `plan` is pure: the same view, budget and counter lead to the same plan on any machine. A plan names whole exchanges and single blocks, so it
    cannot separate a call from its result or drop the newest user message.

    Attributes:
        model_name: The model whose window and tokens count; empty when the caller passes the budget.
        max_tokens: The window in tokens, the request and its answer together; None for the model's own.
        parameters: The constructor's own parameters, each with its bounds; other values raise `InvalidInput`.
        asks_provider: Whether the provider compacts the conversation; then its plans are never committed, and each is computed from the log.
        acts_within_limit: Whether the policy may change a view that fits its budget; where it never does, `compose` does not ask it about such a view.
        complete: True when the policy shows everything or nothing: `compose` raises `InfeasibleBudget` instead of cutting further.
        enabled: False when the policy does nothing: `compose` sends the view as it is, also one that exceeds the budget.
        incremental: Whether a summary starts from the one before; otherwise what that one covers is summarised again.
        headings: The sections to ask of a summarizer; a mapping says what belongs in each.
        restore_files: How many of the files that its tools read last an agent reads again after a compaction.
        restore_tokens: The most tokens of each of them.
    """

    asks_provider: ClassVar[bool] = False
    acts_within_limit: ClassVar[bool] = True
    complete: ClassVar[bool] = False
    enabled: bool = True
    incremental: bool = True
    parameters: ClassVar[Parameters] = MappingProxyType({})
    headings: ClassVar[Collection[str]] = ()
    restore_files: int = 0
    restore_tokens: int = 0

    def __init_subclass__(cls, **words: Any) -> None:  # noqa: ANN401 - of another base class
        """Refuse a subclass with a `__call__` of its own, which `compose` would never call.

        Raises:
            InvalidInput: The subclass has one.
        """
        super().__init_subclass__(**words)
        if cls.__call__ is not Policy.__call__:
            raise InvalidInput(
                f"The policy class {cls.__name__} overrides __call__, but what decides is its plan().",
                hint="Override plan(), or subclass ContextManager and call the policy in its __call__.",
            )

    def __init__(self, model_name: str = "", max_tokens: int | None = None, **budget: object) -> None:
        """Make the policy for a model.

        Args:
            model_name: The model.
            max_tokens: A smaller window.
            budget: Further words of a budget, in any vocabulary that `Budget.parse` reads.

        Raises:
            InvalidInput: A word is unknown or its value is out of bounds.
            InfeasibleBudget: Answer and buffer leave no token for any input.
        """
        require(self.parameters, {name: getattr(self, name) for name in self.parameters})
        require_words(self.name, model_name, budget, self.parameters)
        self.model_name = model_name
        self.max_tokens = max_tokens
        self._words: Mapping[str, object] = {**budget, "max_tokens": max_tokens}
        if model_name or max_tokens is not None:
            budgeted = self.budget  # refuses a wrong value
            self.max_tokens = budgeted.max_tokens if max_tokens is None else max_tokens
        else:
            Budget.parse(self._words, ANY_MODEL)  # the same

    @cached_property
    def budget(self) -> Budget:
        """The policy's own budget.

        Raises:
            InvalidInput: The policy was made without a model and without a window.
        """
        return self.budget_for(self.model_name)

    @property
    def cuts(self) -> bool:
        """Whether the policy can leave something out or shorten it. One that cannot needs neither a model nor a budget."""
        return self.enabled and not self.complete

    def budget_for(self, model: str | ModelInfo) -> Budget:
        """Return the policy's budget on a model; the policy's own model wins.

        Raises:
            InvalidInput: There is neither a model nor a window.
        """
        return Budget.parse(self._words, self.model_name or model or None)

    def compact_at(self, budget: Budget) -> int:  # noqa: ARG002 - most ask no provider
        """Return the number of tokens from which the provider is asked to compact the conversation; 0 for never."""
        return 0

    def for_profile(self, profile: Profile) -> Policy:  # noqa: ARG002 - most plan alike for all
        """Return the policy for requests of one profile."""
        return self

    def compact(self, view: View, budget: Budget, meter: Meter, *, asked: bool = False) -> Plan:
        """Return what to change in a view for good: the plan is committed, and the next one starts from its result. By default what `plan` returns.

        Args:
            view: The view.
            budget: What one request may occupy.
            meter: Counts tokens.
            asked: Whether somebody asked for a compaction: then what the policy does to a view that has just exceeded its limit.
        """
        return self.plan(
            view, budget.with_limit(min(budget.limit, meter.view(view).total - 1)) if asked else budget, meter
        )

    @abstractmethod
    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Return what to change in a view for one call. Nothing is kept: the next plan starts from the log again.

        Args:
            view: The view.
            budget: What one request may occupy.
            meter: Counts tokens of blocks, exchanges and views.

        Returns:
            The plan; an empty one leaves the view as it is.
        """

    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - as above
        """Return the dialog as the model sees it: the same object when nothing changes.

        Raises:
            InvalidInput: The policy was made without a model.
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        if not self.model_name:
            raise InvalidInput(
                f"The policy {self.name!r} has no model, so it cannot count tokens.",
                hint="Make it with a model's name, or use compose() with a meter.",
            )
        view = dialog.view()
        composed = compose(view, self, self.budget, Meter(counter(self.model_name)))
        return dialog if composed.view is view else WorkingDialog(composed.view, owner=getattr(dialog, "owner", ""))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r}, max_tokens={self.max_tokens})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What the model sees, and how it came about.

    Attributes:
        view: The view to send; the same object that went in when nothing changed.
        plan: The changes; empty for a plain context manager, whose result is the view.
        before: The size of the view that went in. Parts that were not read are estimated from their recorded bytes.
        after: The exact size of `view`.
        by: The name of the policy that decided, or of its fallback.
        failure: Why the policy failed, when its fallback decided; else empty.
    """

    view: View
    plan: Plan
    before: Size
    after: Size
    by: str
    failure: str = ""


def compose(  # noqa: PLR0913 - what it works on, and how it is asked, by keyword
    view: View,
    policy: ContextManager,
    budget: Budget,
    meter: Meter,
    *,
    dialog: Any = None,  # noqa: ANN401 - whatever dialog the caller has
    fallback: Policy | None = None,
    committed: bool = False,
    manual: bool = False,
) -> Composed:
    """Return the view that the model sees under a policy and a budget.

    Pure: neither the view nor the log changes, and the same inputs give the same view. A policy that leaves too much is continued by dropping the oldest
    exchanges into a record. What a plain context manager returns is sent as it is.

    Args:
        view: The view, from the fold.
        policy: A policy, or a plain context manager.
        budget: What one request may occupy, in tokens, bytes and media.
        meter: Counts tokens. Pass the same meter from call to call, and it counts every exchange once.
        dialog: The dialog that a plain manager is called with; by default one over `view`.
        fallback: The policy to use when `policy` raises; without one the error propagates.
        committed: Whether the caller commits the plan, so that the next view starts from its result: the plan then goes as far as the policy's source does. Otherwise
            it goes in steps, so that the views of a growing log continue each other.
        manual: Whether somebody asked for a compaction, which is committed: a policy then makes the view smaller even where it fits.

    Raises:
        InfeasibleBudget: What must be sent is larger than the budget; the error has the breakdown.
        PolicyFailed: The policy raised, or returned something that is not a plan or a dialog.
    """
    if not isinstance(policy, ContextManager):
        raise InvalidInput(
            f"The policy is {policy!r}.", hint="Pass an object whose class is a Policy or ContextManager."
        )
    try:
        if isinstance(policy, Policy):
            return _planned(view, policy, budget, meter, committed=committed, manual=manual)
        return _managed(view, policy, budget, meter, dialog)
    except PolicyFailed as error:
        if fallback is None:
            raise
        return replace(_planned(view, fallback, budget, meter, committed=committed), failure=str(error))


def _planned(
    view: View, policy: Policy, budget: Budget, meter: Meter, *, committed: bool, manual: bool = False
) -> Composed:
    """Return the view under a policy. One that fits stays as it is, unless the policy changes such views, too."""
    plain = budget.max_bytes is None and budget.max_media is None and not manual
    if not policy.enabled or (plain and not policy.acts_within_limit and meter.fits(view, budget.limit)):
        return _composed(view, view, Plan(policy=policy.name), meter, by=policy.name)
    plan, made = planned(view, policy, budget, meter, committed=committed, manual=manual)
    compact_at = policy.compact_at(budget)
    if made.compact_at != compact_at:
        made = replace(made, compact_at=compact_at)
    return _composed(view, made, plan, meter, by=policy.name)


def _managed(view: View, manager: ContextManager, budget: Budget, meter: Meter, dialog: object) -> Composed:
    """Return exactly what a plain context manager made of the dialog.

    Raises:
        PolicyFailed: It raised, or returned something that is not a dialog.
        InfeasibleBudget: What it returned is larger than the budget.
    """
    made = managed_view(view, manager, dialog)
    composed = _composed(view, made, Plan(policy=manager.name), meter, by=manager.name)
    if composed.after.total > budget.limit:
        needed = {name: size for name, size in composed.after.parts().items() if size}
        raise InfeasibleBudget(
            budget.limit,
            composed.after.total,
            needed,
            hint=f"The context manager {manager.name!r} returned more than the budget allows; it is not cut further.",
        )
    return composed


def _composed(view: View, made: View, plan: Plan, meter: Meter, *, by: str) -> Composed:
    after = meter.view(made)
    before = after if made is view else meter.estimate(view)
    return Composed(view=made, plan=plan, before=before, after=after, by=by)


# --- until it fits --------------------------------------------------------------------------------------------------------

_SMALLEST = 50
"""Outputs of at most this many tokens are never shortened: the line in their place has about as many."""


def planned(
    view: View, policy: Policy, budget: Budget, meter: Meter, *, committed: bool = False, manual: bool = False
) -> tuple[Plan, View]:
    """Return the plan of a policy, continued where it leaves too much, and the view: within the budget in tokens, bytes and media.

    Args:
        view: The view.
        policy: The policy.
        budget: What one request may occupy.
        meter: Counts tokens.
        committed: Whether the plan is committed.
        manual: Whether somebody asked for a compaction, which is committed, too.

    Raises:
        InfeasibleBudget: What must be sent is larger than the budget.
        PolicyFailed: The policy raised, or returned a plan that does not fit the view.
    """
    room, last = budget, None
    for _ in range(_ATTEMPTS):
        try:
            asked = _asked(view, policy, room, meter, committed=committed, manual=manual)
            plan, made = _within(view, asked, policy, room, meter, committed=committed or manual)
        except InfeasibleBudget as error:
            if last is None or error.needed >= room.limit:
                raise last or error from None
            room = room.with_limit(error.needed)
            continue
        made = _with_fewer_media(made, budget)
        size = Size() if budget.max_bytes is None else Bytes().view(made)
        if budget.max_bytes is None or size.total <= budget.max_bytes:
            return plan, made
        last = InfeasibleBudget(budget.max_bytes, size.total, size.parts(), unit=Bytes.unit)
        if policy.complete:
            break
        room = room.with_limit(int(meter.view(made).total * budget.max_bytes / size.total * _BYTES_SHARE))
    raise last or AssertionError("a view is composed at least once")


_ATTEMPTS = 8
_BYTES_SHARE = 0.9
"""Of the tokens that a request of the largest size has, the share that the next attempt may have."""


def _asked(view: View, policy: Policy, budget: Budget, meter: Meter, *, committed: bool, manual: bool) -> Plan:
    try:
        if committed or manual:
            plan = policy.compact(view, budget, meter, asked=manual)
        else:
            plan = policy.plan(view, budget, meter)
    except (InfeasibleBudget, PolicyFailed, StoreError):
        raise
    except Exception as error:
        raise PolicyFailed(policy.name, error) from error
    if not isinstance(plan, Plan):
        raise PolicyFailed(policy.name, TypeError(f"plan() returned {a_type(plan)}, not a Plan"))
    return plan


def _within(
    view: View, plan: Plan, policy: Policy, budget: Budget, meter: Meter, *, committed: bool
) -> tuple[Plan, View]:
    """Return the plan, continued until the view is at or under the limit, and the view.

    Raises:
        InfeasibleBudget: No plan can do that, or the policy shows everything or nothing.
        PolicyFailed: The plan does not fit the view.
    """
    try:
        made = apply(view, plan) if plan else view
    except InvalidInput as error:
        raise PolicyFailed(policy.name, error) from error
    if meter.fits(made, budget.limit):
        return plan, made
    if policy.complete:
        needed = {name: size for name, size in meter.view(made).parts().items() if size}
        raise InfeasibleBudget(budget.limit, sum(needed.values()), needed)
    whole = shorten_huge(Layout.of(view, budget, meter, committed=committed))
    kept = whole.with_plan(plan)
    bare = kept.without_stand_ins()
    # the last of them for what the plan shortened, which may have to be shorter still
    for tried in chain([kept], _continued(bare), _continued(whole)):
        if tried.fits():
            plan = tried.noted("shortened or dropped more besides, because the plan left too much").plan(policy.name)
            return plan, apply(view, plan)
    needed = dict(floor(view, meter))
    raise InfeasibleBudget(budget.limit, sum(needed.values()), needed)


def _continued(layout: Layout) -> Iterator[Layout]:
    """Iterate over ever smaller layouts: fewer old exchanges, then only what every view must show, with ever smaller outputs."""
    cuts = (find_cut(layout, stage) for stage in (drop, drop_with_note))
    yield from (cut for cut in cuts if cut is not None)
    stand_ins: tuple[StandIn, ...] = (record, note)
    for must in (layout.protected, layout.view.protected()):
        shown, small = max(layout.limit - layout.fixed, 1), layout
        while shown > 0:
            shown //= 2
            small = layout.with_rule(Shortened(max(shown, _SMALLEST), shown))
            yield from (drop(small, layout.end, keep=must, stand_in=stand_in) for stand_in in stand_ins)
        yield small.without(0, layout.end, Reason.OVER_BUDGET, keep=must)


def floor(view: View, meter: Measure) -> Mapping[str, int]:
    """Return the sizes of what every view must show: instructions, tools, the newest user message, pinned and open exchanges.

    The newest user message and pinned exchanges count in full; of the others the outputs may be shortened to a line.
    """
    layout = Layout.of(view, Budget.of_input(1), meter)
    small = layout.with_rule(Shortened(_SMALLEST, 0))
    size, newest = meter.fixed(view), view.newest_user()
    needed = {"request": size.request, "instructions": size.instructions, "tools": size.tools}
    for index in sorted(view.protected()):
        exchange = view.exchanges[index]
        name = "newest user message" if index == newest else "pinned" if exchange.pinned else "open calls"
        whole = index == newest or exchange.pinned
        needed[name] = needed.get(name, 0) + (layout if whole else small).size(index)
    return {name: tokens for name, tokens in needed.items() if tokens}


# --- media ----------------------------------------------------------------------------------------------------------------


def _with_fewer_media(view: View, budget: Budget) -> View:
    """Return the view with the oldest images and sounds hidden until no more than `max_media` are left, and as few bytes as that saves."""
    limits = [(Pieces(), budget.max_media), (Bytes(), budget.max_bytes)]
    for measure, most in limits:
        if most is None or measure.view(view).total <= most:
            continue
        layout = Layout.of(view, Budget.of_input(max(most, 1)), measure).within(most, most // 2)
        hide = partial(hide_media, keep=view.protected())
        shown = {index for index in view.protected() if view.exchanges[index].pinned or index == view.newest_user()}
        every = replace(layout, limit=layout.total())
        fewer = find_cut(layout, hide) or hide_media(every, layout.end, keep=frozenset(shown))
        hidden = fewer.plan("palaver")
        view = apply(view, hidden) if hidden else view
        left = measure.view(view).total
        if left > most and measure.unit == Pieces.unit:
            raise InfeasibleBudget(most, left, measure.view(view).parts(), unit=measure.unit)
    return view
