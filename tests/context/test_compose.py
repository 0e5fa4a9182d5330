"""Compose: a policy within a budget, or a typed answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from palaver.context import POLICIES, Composed, Policy, compose, policy
from palaver.context.compose import floor
from palaver.context.meter import Meter
from palaver.context.recall import LIST
from palaver.errors import InfeasibleBudget, PolicyFailed
from palaver.log import Handle
from palaver.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    SystemMessage,
    TextContent,
    ToolCallContent,
    UserMessage,
    words_of,
)
from palaver.testing.conversations import picture
from palaver.testing.logs import Log
from palaver.testing.policy_checks import check_policy
from palaver.tokens import Budget, counter
from palaver.view import Drop, Insert, Plan, Reason, Rewrite, View, fold, fold_messages
from tests.context.pencil import COUNTER, METER, composed, did, prose, shape, talk, text, work

CUTTING = sorted(set(POLICIES) - {"full"})


class Planned(Policy):
    """Plans what a function plans."""

    name = "planned"

    def __init__(self, plans: Callable[[View, Budget, Meter], object]) -> None:
        super().__init__()
        self._plans = plans

    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Return what the function returns."""
        return self._plans(view, budget, meter)  # type: ignore[return-value]


def run(messages: list[Message], plans: Callable[[View, Budget, Meter], object], limit: int = 10**6) -> Composed:
    """Compose a list by a policy; in tokens of o200k_base."""
    return composed(messages, Planned(plans), limit)


# --- what a policy plans ------------------------------------------------------------------------------------------------------


def test_what_fits_is_the_very_same_view() -> None:
    """R162: no plan, no copy."""
    view = fold_messages(talk(5), LIST)
    for name in POLICIES:
        manager = policy(name)
        assert manager is not None
        made = compose(view, manager, Budget.of_input(10**6), Meter(COUNTER))
        assert made.view is view
        assert made.before == made.after == METER.view(view)
        assert (made.by, made.failure, bool(made.plan)) == (name, "", False)


def test_only_who_acts_within_the_limit_is_asked() -> None:
    """A policy of one's own sees every view; one that says that it leaves fitting views alone sees those that exceed the limit."""
    asked: list[int] = []

    def plan(view: View, *_: object) -> Plan:
        asked.append(len(view.exchanges))
        return Plan(policy="planned", drops=(Drop(index=0),))

    assert len(run(talk(5), plan).view.exchanges) == 4
    rests: Any = type("Rests", (Planned,), {"acts_within_limit": False})
    assert len(composed(talk(5), rests(plan), 10**6).view.exchanges) == 5
    assert len(composed(talk(6), rests(plan), 5_500).view.exchanges) == 5
    assert asked == [5, 6]


def test_a_policy_that_raises_fails_or_gives_way() -> None:
    """Or returns no plan, or one that drops what must stay: `PolicyFailed`, with the cause; with a fallback, its view and the reason."""

    def broken(*_: object) -> Plan:
        raise KeyError("x")

    unknown = Rewrite(target=Handle(LIST, 99, 0), text="x", reason=Reason.SHORTENED)
    wrong = [None, Plan(policy="p", drops=(Drop(index=8),)), Plan(policy="p", rewrites=(unknown,))]
    for plan in wrong:
        with pytest.raises(PolicyFailed, match="planned"):
            run(talk(9), lambda *_, plan=plan: plan)
    with pytest.raises(PolicyFailed) as caught:
        run(talk(9), broken)
    assert isinstance(caught.value.__cause__, KeyError)
    fold = policy("fold")
    assert isinstance(fold, Policy)
    view = fold_messages(talk(30), LIST)
    made = compose(view, Planned(broken), Budget.of_input(9_000), Meter(COUNTER), fallback=fold)
    assert (made.by, made.after.total <= 9_000) == ("fold", True)
    assert "KeyError" in made.failure


# --- a plan that leaves too much ------------------------------------------------------------------------------------------------


def test_a_plan_that_leaves_too_much_is_continued() -> None:
    """By dropping the oldest into a record: what the plan did stays done, and a note says so."""
    rewrite = Rewrite(target=Handle(LIST, 29, 0), text="short", reason=Reason.SHORTENED)
    insert = Insert(before=2, text="mine", label="notice")
    plan = Plan(policy="planned", drops=(Drop(index=0, stop=2),), rewrites=(rewrite,), inserts=(insert,))
    alone = run(talk(31), lambda *_: plan)
    assert [text(alone.view, at)[:5] for at in (0, 1, 28, 29)] == ["mine", "0002 ", "short", "0030 "]
    made = run(talk(30), lambda *_: replace(plan, rewrites=()), 9_000)
    assert 4_500 < made.after.total <= 9_000
    assert [each.label for each in made.plan.inserts] == ["record"]
    assert made.plan.drops[0].index == 0
    assert any("besides" in note for note in made.plan.notes)


def test_batch_larger_than_the_window_is_shortened() -> None:
    """T4: five parallel results of 8,000 tokens in a room of 10,000: all are shown in part, with handles."""
    for name in CUTTING:
        calls = AssistantMessage(contents=tuple(ToolCallContent(f"c{at}", "bash", args={}) for at in range(5)))
        results = [message for at in range(5) for message in did(at, prose(8_000, f"{at}"))[1:]]
        made = composed([UserMessage(content="go"), calls, *results], name, 10_000)
        newest = [block for block in made.view.exchanges[-1].blocks() if block.content.type == "tool_result"]
        assert made.after.total <= 10_000, name
        assert len(newest) == 5, name
        assert all(block.reason is not None and str(block.origin) in words_of(block.content) for block in newest), name


def test_one_huge_output_does_not_cost_the_rest() -> None:
    """An output larger than the whole budget, old or newest, is shortened first: all else is shown as though it had been small."""

    def session(size: int) -> list[Message]:
        rounds = [did(at, prose(size if at == huge else 700, f"{at}\n")) for at in range(9)]
        return [UserMessage(content="task"), *(each for one in rounds for each in one)]

    for huge in (0, 8):
        for name in CUTTING:
            made = composed(session(30_000), name, 10_000)
            as_small = [*shape(composed(session(400), name, 10_000).view)]
            as_small[huge + 1] = "c"
            assert shape(made.view) == "".join(as_small), (name, huge)
            assert made.after.total <= 10_000, (name, huge)

    kept = run(session(30_000), lambda *_: Plan(policy="planned"), 10_000)
    assert shape(kept.view) == "." * 9 + "c", "also where a plan leaves it"


# --- infeasible ---------------------------------------------------------------------------------------------------------------


def test_law_8_an_infeasible_budget_has_a_true_breakdown() -> None:
    """What must be sent, by name; a budget of exactly that is enough."""
    messages = [SystemMessage.text(prose(700)), *talk(5), UserMessage(content=prose(3_000)), *did(1, prose(4_000))]
    view, by = fold_messages(messages, LIST, pinned=[2]), policy("palaver")
    assert by is not None
    needed = floor(view, METER)
    assert set(needed) == {"instructions", "pinned", "newest user message"}
    for limit in (1, 900, sum(needed.values()) - 1, sum(needed.values()), 7_000, 12_000):
        made = check_policy(view, by, Budget.of_input(limit), COUNTER)
        assert (made is None) == (limit < sum(needed.values())), limit


# --- media and bytes -----------------------------------------------------------------------------------------------------------


def shown_media(view: View) -> list[int]:
    """Return the exchanges that still show an image."""
    return [
        at
        for at, each in enumerate(view.exchanges)
        if any(isinstance(block.content, ImageContent) for block in each.blocks())
    ]


def pictures(count: int) -> list[Message]:
    """Return so many messages with an image each, and the user's newest."""
    said = [UserMessage(contents=(TextContent("look"), ImageContent(images=[picture(at, 900)]))) for at in range(count)]
    return [*said, UserMessage(content="now")]


def test_the_oldest_media_are_hidden_first() -> None:
    """In steps of half of what a request may have, and a line stands for each."""
    view = fold_messages(pictures(30), LIST)
    made = compose(view, policy("fold"), replace(Budget.of_input(10**6), max_media=20), Meter(counter("gpt-4o")))  # type: ignore[arg-type]
    shown = shown_media(made.view)
    assert 10 < len(shown) <= 20
    assert shown == list(range(30 - len(shown), 30))
    assert "image/png left out" in str(made.view.exchanges[0].turns)


def test_media_of_the_newest_message_are_an_answer() -> None:
    """They cannot be hidden: the error counts images."""
    newest = UserMessage(contents=(ImageContent(images=[picture(at, 10) for at in range(3)]),))
    with pytest.raises(InfeasibleBudget) as caught:
        compose(fold_messages([newest], LIST), policy("fold"), replace(Budget.of_input(10**6), max_media=2), METER)  # type: ignore[arg-type]
    assert (caught.value.needed, caught.value.budget, caught.value.unit) == (3, 2, "images and sounds")


# --- what it costs --------------------------------------------------------------------------------------------------------------


def test_a_plan_reads_the_tail_only() -> None:
    """Law 11: of 2,500 exchanges every policy reads the bodies of the newest few hundred, and of the first two, which some must show."""
    log = Log()
    log.put(*work(2_500, size=400))
    for name in CUTTING:
        view, by = fold(log.store, log.dialog), policy(name)
        assert by is not None
        made = compose(view, by, Budget.of_input(10_000), Meter(COUNTER))
        assert made.after.total <= 10_000, name
        assert (made.before.exact, made.after.exact) == (False, True), "what was not read is estimated"
        read = {index for index, exchange in enumerate(view.exchanges) if exchange.loaded}
        assert min(read - {0, 1}) > 2_500 - 1_000, name
