"""Holding a policy to its laws: over one view and one budget, and over the views of a log that grows. They need no hypothesis.

`palaver.testing.policy_laws` runs them over generated conversations; these are for views and logs of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from palaver import wire
from palaver.context import Calls, Composed, ContextManager, Ledger, Meter, account, compose, planner
from palaver.errors import InfeasibleBudget, MissingBlob
from palaver.log import Handle
from palaver.messages import Content, Speaker, ToolCallContent
from palaver.testing.logs import assert_closed
from palaver.tokens import Budget, Counter
from palaver.view import Exchange, Reason, View

__all__ = ["MODELS", "hold", "hold_composed", "hold_infeasible", "shown_and_left_out", "stable"]

MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5.2",
    "anthropic": "claude-opus-4-6",
    "gemini": "gemini-3-pro",
}
"""A model for each profile whose validator every view must pass."""

_BOUNDLESS = 2**53
_LIMITS = {"bytes": "max_bytes", "images and sounds": "max_media"}
"""The words of a budget for the units of its limits."""


def _no_media(digest: str) -> bytes:
    raise MissingBlob(digest)


# --- one view, one budget ---------------------------------------------------------------------------------------------------


def hold(
    view: View,
    manager: ContextManager,
    budget: Budget,
    count: Counter,
    *,
    media: Callable[[str], bytes] = _no_media,
) -> Composed | None:
    """Hold a policy to all laws about one view and one budget.

    Returns:
        The composed view; None when the budget is infeasible, after its breakdown was held to be true.
    """
    policy = planner(manager)
    try:
        composed = compose(view, policy, budget, count)
    except InfeasibleBudget as error:
        hold_infeasible(error, view, manager, budget, count)
        return None
    hold_composed(composed, view, budget, count)
    _valid(composed.view, media)
    again = compose(view, planner(manager), budget, count)
    assert again.view == composed.view, "the same view, policy and budget gave two different views"
    assert compose(composed.view, planner(manager), budget, count).view is composed.view, (
        "composing twice is not composing once"
    )
    return composed


def hold_composed(composed: Composed, view: View, budget: Budget, count: Counter) -> None:
    """Hold what a policy made of a view to the laws that need nothing else: within the budget, nothing missing, nothing silently gone.

    Args:
        composed: What was composed.
        view: The view that went in.
        budget: What it had to fit.
        count: Measures it anew.
    """
    _within(composed, view, budget, count)
    _present(composed.view, view)
    _accounted(composed.view, view)


def hold_infeasible(
    error: InfeasibleBudget, view: View, manager: ContextManager, budget: Budget, count: Counter
) -> None:
    """Hold a refusal to be true: the breakdown adds up, is larger than the budget, and a budget of exactly that size in that unit is enough."""
    assert error.needed == sum(error.breakdown.values()) > error.budget
    if error.unit == "tokens":
        assert error.budget == budget.for_input
        assert compose(view, planner(manager), Budget.of_input(error.needed), count).tokens_after <= error.needed
        return
    room = replace(Budget.of_input(_BOUNDLESS), **{_LIMITS[error.unit]: error.needed})
    assert account(compose(view, planner(manager), room, count).view, room, Meter(count)).fits


def _within(composed: Composed, view: View, budget: Budget, count: Counter) -> None:
    """The view is within the budget, by a fresh measure; it is the same object, or a smaller one but for what stands there for its own sake."""
    meter = Meter(count)
    measured = meter.view(composed.view).total
    assert measured == composed.tokens_after <= budget.for_input
    standing = [insert for insert in composed.plan.inserts if insert.standing]
    assert not (standing and composed.fallback), "something stands there for its own sake where there was no room"
    rest = measured - sum(meter.derived(insert.text, insert.label) for insert in standing)
    alone = bool(standing) and not replace(
        composed.plan, inserts=tuple(each for each in composed.plan.inserts if not each.standing)
    )
    smaller = rest < composed.tokens_before or (alone and rest == composed.tokens_before)
    assert composed.view is view or composed.limits or smaller
    sizes = account(composed.view, budget, Meter(count))
    assert sizes.fits, f"{sizes.bytes.total:,} bytes, {sizes.media} images and sounds"


def _present(after: View, before: View) -> None:
    """The newest words of the user and what is pinned are there as they were, and of what is open at least the calls."""
    shown = {exchange.first: exchange for exchange in after.exchanges if exchange.first is not None}
    newest = before.newest_user()
    for index in before.protected():
        exchange = before.exchanges[index]
        there = None if exchange.first is None else shown.get(exchange.first)
        assert there is not None, f"exchange {index} is gone, which every view must hold"
        if exchange.pinned or index == newest:
            assert _contents(there) == _contents(exchange)
        else:
            assert _calls(there) == _calls(exchange)
    assert after.newest_user() is None or newest is not None, "the user said something that he did not say"


def _contents(exchange: Exchange) -> list[object]:
    return [block.content for block in exchange.blocks()]


def _calls(exchange: Exchange) -> list[object]:
    return [block.content for block in exchange.blocks() if isinstance(block.content, ToolCallContent)]


def shown_and_left_out(view: View) -> frozenset[Handle]:
    """Give every entry that a view shows some of, or says it leaves out."""
    shown = {
        Handle(run.dialog, seq)
        for exchange in view.exchanges
        for run in exchange.runs
        for seq in range(run.start, run.stop)
    }
    gone = {Handle(handle.dialog, handle.seq) for omission in view.omissions for handle in omission.handles()}
    return frozenset(shown | gone)


def _accounted(after: View, before: View) -> None:
    """Every entry is shown or has a handle among the omissions; what is shown in another form has one too; nothing is said twice."""
    assert shown_and_left_out(after) >= shown_and_left_out(before), "something is gone without a handle"
    was = {block.origin: block.content for exchange in before.exchanges for block in exchange.blocks()}
    for exchange in after.exchanges:
        for block in exchange.blocks():
            assert block.reason is None or block.origin is not None, (
                "a block is shown in another form, without a handle"
            )
            assert block.reason is not None or block.origin is None or block.content == was[block.origin]
            assert not exchange.derived or block.speaker is not Speaker.HUMAN, "a derived text speaks as the user"
    places = [exchange.first for exchange in after.exchanges if exchange.first is not None]
    assert len(places) == len(set(places))


def _valid(view: View, media: Callable[[str], bytes]) -> None:
    """Calls stand with their results, and the strict validator of every profile takes the request."""
    assert_closed(view)
    for name, model in MODELS.items():
        profile = wire.profile(name, model)
        request = wire.compile(view, profile, wire.Call(model=model), media)
        faults = wire.validate(request.body, profile, as_history=request.history)
        assert not faults, f"{name}: {faults[0]}"


# --- a conversation that grows ----------------------------------------------------------------------------------------------


def stable(  # noqa: PLR0913 - views, a policy, and how it is asked
    views: Iterator[View],
    manager: ContextManager,
    budget: Budget,
    count: Counter,
    *,
    targets: Sequence[str] = ("openai-chat",),
    media: Callable[[str], bytes] = _no_media,
    told: bool = False,
    sources: Callable[[Handle], Content | None] | None = None,
) -> tuple[int, int]:
    """Hold a policy to prefix stability over the views of a growing log, each as it is when a model is called.

    Between two edits a request goes on from the one before. An edit is where something more is left out, or shown in another form; or where
    something else stands for what is left out, such as a notice in the place of a record, or it is left out for another reason, which says
    another thing; or where the log itself has other instructions or tools, which stand in front of everything, or an entry that shows a block
    in another form than before. While the same is left out, a reason that was given up does not come back: a policy that goes to and fro
    writes its words anew at each request, for nothing.

    Args:
        views: The views, the shortest first.
        manager: The policy.
        budget: What each may occupy.
        count: Counts its tokens.
        targets: The profiles of the providers whose requests each becomes, of those in `MODELS`.
        media: Gives the bytes of a payload by its digest.
        told: Whether the policy is told what the last call was sent, as where calls are recorded.
        sources: Gives a block as it was recorded, as a dialog does: else a record says what the view says, and says another thing where an
            entry of the log had a block cleared that was told before.

    Returns:
        How many requests there were, and how many edits.
    """
    last: _Asked | None = None
    given: dict[Handle, list[frozenset[Reason]]] = {}
    requests = edits = 0
    for view in views:
        sent = last.view if told and last is not None else None
        try:
            books = Ledger(meter=Meter(count), calls=None if sent is None else Calls(sent=sent), sources=sources)
            composed = compose(view, planner(manager), budget, count, ledger=books)
        except InfeasibleBudget:
            last = None
            given = {}
            continue
        reasons = _reasons(composed.view)
        given = given if reasons.keys() == given.keys() else {handle: [] for handle in reasons}
        _onwards(reasons, given)
        asked = _Asked(
            composed.view, (view.system, view.tools, _rewritten(view), reasons, _edited(composed.view)), media
        )
        requests += 1
        if last is not None and last.state != asked.state:
            edits += 1
        elif last is not None:
            for target in targets:
                before, after = last.units(target), asked.units(target)
                assert before == after[: len(before)], (
                    f"{target}: the request does not go on from the one before, without an edit"
                )
        last = asked
    return requests, edits


class _Asked:
    """What a model is asked with: the units of the request of any provider, each made once and only when it is looked at."""

    def __init__(self, view: View, state: object, media: Callable[[str], bytes]) -> None:
        self.state = state
        self.view = view
        self._media = media
        self._units: dict[str, tuple[bytes, ...]] = {}

    def units(self, target: str) -> tuple[bytes, ...]:
        if target not in self._units:
            profile, call = wire.profile(target, MODELS[target]), wire.Call(model=MODELS[target])
            self._units[target] = wire.units(wire.compile(self.view, profile, call, self._media))
        return self._units[target]


def _rewritten(view: View) -> object:
    return frozenset(
        (block.origin, block.reason) for x in view.exchanges for block in x.blocks() if block.reason is not None
    )


def _edited(view: View) -> object:
    derived = tuple(exchange.turns[0].blocks[0].derived for exchange in view.exchanges if exchange.derived)
    return _rewritten(view), derived


def _reasons(view: View) -> dict[Handle, frozenset[Reason]]:
    """Give what is left out, and why."""
    found: dict[Handle, frozenset[Reason]] = {}
    for omission in view.omissions:
        if omission.messages or omission.size:  # a change of model is no words
            for handle in omission.handles():
                found[handle] = found.get(handle, frozenset()) | {omission.reason}
    return found


def _onwards(reasons: Mapping[Handle, frozenset[Reason]], given: dict[Handle, list[frozenset[Reason]]]) -> None:
    """Hold what is left out to reasons that only go on, and note them."""
    for handle, why in reasons.items():
        before = given[handle]
        if why not in before:
            before.append(why)
        assert before[-1] == why, f"{handle} is left out again for a reason that was given up: {', '.join(why)}"
