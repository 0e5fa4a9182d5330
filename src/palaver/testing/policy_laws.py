"""The laws of a context policy, to run over any: ours, and yours.

A policy, or a plain context manager, gets every law by subclassing::

    class TestMine(PolicyLaws):
        def policy(self) -> ContextManager:
            return MyPolicy("gpt-4o")

`hold` is the same for one view and one budget, for logs of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver import wire
from palaver.context import Composed, ContextManager, Meter, account, compose, planner
from palaver.errors import InfeasibleBudget, MissingBlob
from palaver.log import Handle
from palaver.messages import Message, Speaker, TextContent, ToolCallContent, ToolResultContent
from palaver.testing.log_strategies import assert_closed, sayings
from palaver.testing.logs import Log
from palaver.testing.policy_strategies import EVALUATED, Step, conversations, played
from palaver.tokens import Budget, Counter, counter
from palaver.view import Exchange, View, fold

__all__ = ["MODELS", "PolicyLaws", "hold", "shown_and_left_out", "stable"]

MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5.2",
    "anthropic": "claude-opus-4-6",
    "gemini": "gemini-3-pro",
}
"""A model for each profile whose validator every view must pass."""

_LAW = settings(
    max_examples=max(settings().max_examples // 8, 10),
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)


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
        _truly_infeasible(error, view, manager, budget, count)
        return None
    _within(composed, view, budget, count)
    _present(composed.view, view)
    _accounted(composed.view, view)
    _valid(composed.view, media)
    again = compose(view, planner(manager), budget, count)
    assert again.view == composed.view, "the same view, policy and budget gave two different views"
    assert compose(composed.view, planner(manager), budget, count).view is composed.view, (
        "composing twice is not composing once"
    )
    return composed


def _truly_infeasible(
    error: InfeasibleBudget, view: View, manager: ContextManager, budget: Budget, count: Counter
) -> None:
    """The breakdown adds up, is larger than the budget, and a budget of exactly that size in that unit is enough."""
    assert error.needed == sum(error.breakdown.values()) > error.budget
    if error.unit == "tokens":
        assert error.budget == budget.for_input
        assert compose(view, planner(manager), Budget.of_input(error.needed), count).tokens_after <= error.needed
        return
    room = replace(Budget.of_input(_BOUNDLESS), **{_LIMITS[error.unit]: error.needed})
    assert account(compose(view, planner(manager), room, count).view, room, Meter(count)).fits


def _within(composed: Composed, view: View, budget: Budget, count: Counter) -> None:
    """The view is within the budget, by a fresh measure; it is the same object, or a smaller one."""
    measured = Meter(count).view(composed.view).total
    assert measured == composed.tokens_after <= budget.for_input
    assert composed.view is view or composed.limits or composed.tokens_after < composed.tokens_before
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


def stable(views: Iterator[View], manager: ContextManager, budget: Budget, count: Counter) -> tuple[int, int]:
    """Hold a policy to prefix stability over the views of a growing log, each as it is when a model is called.

    Between two edits a request goes on from the one before. An edit is where something more is left out, or shown in another form; or where
    something else stands for what is left out, such as a notice in the place of a record.

    Returns:
        How many requests there were, and how many edits.
    """
    last: tuple[wire.Request, object] | None = None
    requests = edits = 0
    for view in views:
        try:
            composed = compose(view, planner(manager), budget, count)
        except InfeasibleBudget:
            last = None
            continue
        request = wire.compile(composed.view, wire.profile("openai-chat"), wire.Call(model="gpt-4o"), _no_media)
        state = _edited(composed.view)
        requests += 1
        if last is not None:
            if last[1] == state:
                assert wire.broken_at(last[0], request) is None, (
                    "the request does not go on from the one before, without an edit"
                )
            else:
                edits += 1
        last = (request, state)
    return requests, edits


def _edited(view: View) -> object:
    rewritten = frozenset(
        (block.origin, block.reason) for x in view.exchanges for block in x.blocks() if block.reason is not None
    )
    gone = frozenset(handle for omission in view.omissions for handle in omission.handles())
    derived = tuple(exchange.turns[0].blocks[0].derived for exchange in view.exchanges if exchange.derived)
    return gone, rewritten, derived


# --- the suite --------------------------------------------------------------------------------------------------------------


class PolicyLaws:
    """All the laws of a policy. Subclass it and give `policy`; pytest finds the rest.

    Attributes:
        model: The model whose tokens count.
    """

    model = "gpt-4o"

    def policy(self) -> ContextManager:
        """Give the policy, or the plain context manager, that is held to the laws."""
        raise NotImplementedError

    def _budget(self, view: View, percent: int) -> Budget:
        return Budget.of_input(max(Meter(counter(self.model)).view(view).total * percent // 100, 1))

    @_LAW
    @given(steps=conversations(), percent=st.integers(5, 100))
    def test_every_law_holds_for_any_conversation_and_budget(self, steps: list[Step], percent: int) -> None:
        """Closed, valid, within budget or truly infeasible, nothing missing without a handle, deterministic, smaller, idempotent."""
        log = played(steps)
        bodies = list(log.store.bodies(log.dialog))
        view = fold(log.store, log.dialog)
        before = repr(view)
        hold(view, self.policy(), self._budget(view, percent), counter(self.model))
        assert list(log.store.bodies(log.dialog)) == bodies, "the log was changed"
        assert repr(view) == before, "the view that went in was changed"

    @_LAW
    @given(said=sayings(), percent=st.integers(5, 150))
    def test_every_law_holds_for_any_messages_sensible_or_not(self, said: list[Message], percent: int) -> None:
        """Results without calls, calls without results, ids used twice, empty words: the laws hold all the same."""
        log = Log()
        log.put(*said)
        view = fold(log.store, log.dialog)
        hold(view, self.policy(), self._budget(view, percent), counter(self.model))

    @_LAW
    @given(
        steps=conversations(least=4),
        percent=st.integers(20, 150),
        max_bytes=st.sampled_from([4_000, 20_000, 80_000]),
        max_media=st.integers(0, 4),
    )
    def test_every_law_holds_when_bytes_and_media_are_limited_too(
        self, steps: list[Step], percent: int, max_bytes: int, max_media: int
    ) -> None:
        """A budget's bytes and media are kept to like its tokens, or the error says which of them cannot be."""
        view = fold((log := played(steps)).store, log.dialog)
        budget = replace(self._budget(view, percent), max_bytes=max_bytes, max_media=max_media)
        hold(view, self.policy(), budget, counter(self.model))

    @_LAW
    @given(steps=conversations(least=6), tokens=st.sampled_from([400, 1_500, 4_000]))
    def test_between_edits_requests_go_on_from_each_other(self, steps: list[Step], tokens: int) -> None:
        """Law 7, with messages appended one turn at a time, wherever a model would be called."""
        stable(_growing(steps), self.policy(), Budget.of_input(tokens), counter(self.model))

    @_LAW
    @given(steps=conversations(least=4), percent=st.integers(10, 90))
    def test_no_text_is_ever_read_as_a_template(self, steps: list[Step], percent: int) -> None:
        """What a template in the log would come to is nowhere in the view, and no cut leaves half of a character."""
        view = fold((log := played(steps)).store, log.dialog)
        composed = hold(view, self.policy(), self._budget(view, percent), counter(self.model))
        for text in _texts(composed.view if composed else view):
            assert EVALUATED not in text
            assert text.encode("utf-8").decode("utf-8") == text


def _growing(steps: list[Step]) -> Iterator[View]:
    log = played(steps)
    last = log.store.last(log.dialog).seq
    for at in range(last + 1):
        view = fold(log.store, log.dialog, at)
        if view.exchanges and not any(exchange.open for exchange in view.exchanges):
            yield view


def _texts(view: View) -> Iterator[str]:
    for exchange in view.exchanges:
        for block in exchange.blocks():
            content = block.content
            if isinstance(content, TextContent | ToolResultContent):
                yield content.content if isinstance(content, TextContent) else content.text()
