"""The schedule's theory: the ledger's decisions, rent or buy, and both against the optimum."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from functools import partial
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.context import FullContext, Scheduled, Scheduling, compose, policy
from palaver.context.presets import Palaver
from palaver.context.schedule import DETERMINISTIC, RANDOMISED, Edit, EditLedger, PriceSheet, RentOrBuy, Why, drawn
from palaver.context.schedule.due import Waiting
from palaver.context.schedule.folding import (
    Moment,
    at_size,
    break_even,
    forced,
    optimal_rent,
    optimum,
    played,
    rent_or_buy,
)
from palaver.context.schedule.masking import (
    AtLeast,
    EveryStep,
    Masking,
    Never,
    Polling,
    Suffix,
    best_batches,
    best_suffixes,
    masked,
)
from palaver.context.schedule.replay import Folding
from palaver.context.schedule.workloads import Growth, Observations, growing, observing
from palaver.errors import InfeasibleBudget, InvalidInput
from palaver.messages import UserMessage
from palaver.testing.logs import Log
from palaver.tokens import Budget, Rates, counter
from palaver.view import fold
from tests.context.work import ground_of, run, worked

_PLAIN = PriceSheet(loss=0.0, missed=0.0)
_NEAR = 1e-6

edits = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 2_000), st.integers(0, 40)), min_size=1, max_size=12)


def _ledger(found: list[tuple[int, int, int]]) -> EditLedger:
    """Make a ledger in which each edit has waited for so many calls."""
    ledger = EditLedger(prices=_PLAIN)
    last = max(age for _, _, age in found)
    for call in range(last + 1):
        fresh = [Edit(place=p, number=n, saved=s) for n, (p, s, age) in enumerate(found) if last - age == call]
        ledger = ledger.marked(*fresh)
        ledger = ledger.called() if call < last else ledger
    return ledger


def _behind(found: list[tuple[int, int, int]], other: int) -> dict[int, int]:
    return {place: sum(s + other for p, s, _ in found if p >= place) for place in range(32)}


# --- the ledger -----------------------------------------------------------------------------------------------------------------


@given(found=edits, other=st.integers(0, 500))
def test_what_is_flushed_is_the_leftmost_suffix_that_pays_for_itself(
    found: list[tuple[int, int, int]], other: int
) -> None:
    """By going through all places: the leftmost whose edits' rent reaches what rewriting behind it costs; else nothing."""
    ledger, behind = _ledger(found), _behind(found, other)
    paying = []
    for cut in {place for place, _, _ in found}:
        right = [(s, age) for p, s, age in found if p >= cut]
        rent = sum(_PLAIN.read * s * age for s, age in right)
        price = _PLAIN.write * (behind[cut] - sum(s for s, _ in right)) - _PLAIN.read * behind[cut]
        if rent >= price + _NEAR:
            paying.append(cut)
        elif rent > price - _NEAR:
            return  # on the edge either is right
    decision = ledger.decide(behind.__getitem__)
    assert decision.cut == min(paying, default=None)
    assert decision.waiting == len(found)
    assert decision.flushed == sum(1 for p, _, _ in found if decision.cut is not None and p >= decision.cut)
    assert decision.why is (Why.PAID if paying else Why.KEPT)


@given(found=edits, other=st.integers(0, 500))
def test_a_cold_cache_flushes_everything_for_nothing(found: list[tuple[int, int, int]], other: int) -> None:
    """When everything is written anew anyway, all that waits goes, whatever its rent."""
    decision = _ledger(found).decide(_behind(found, other).__getitem__, free_from=0, why=Why.COLD)
    assert (decision.flushed, decision.why, decision.behind) == (len(found), Why.COLD, 0)
    assert decision.cut == min(place for place, _, _ in found)


@given(found=edits, other=st.integers(0, 500), free=st.integers(0, 31))
def test_right_of_where_the_prefix_broke_edits_are_free(
    found: list[tuple[int, int, int]], other: int, free: int
) -> None:
    """Every edit at or right of the break is flushed; what stands left of it has to pay for itself."""
    decision = _ledger(found).decide(_behind(found, other).__getitem__, free_from=free)
    right = [place for place, _, _ in found if place >= free]
    assert not right or (decision.cut is not None and decision.cut <= min(right))


@given(found=edits, other=st.integers(0, 500), branches=st.integers(2, 5))
def test_a_prefix_that_several_branches_share_costs_as_often(
    found: list[tuple[int, int, int]], other: int, branches: int
) -> None:
    """With each token behind a place counted once for every living branch, nothing is flushed sooner, and the price tells of them."""
    behind = _behind(found, other)
    alone = _ledger(found).decide(behind.__getitem__)
    shared = _ledger(found).decide(lambda place: behind[place] * branches, branches=lambda _: branches)
    assert shared.flushed <= alone.flushed
    assert shared.branches == branches


def test_a_loss_has_to_be_paid_too_even_where_the_cache_is_cold() -> None:
    """An edit that costs the work more than it saves is kept."""
    ledger = EditLedger(prices=_PLAIN).marked(Edit(place=0, saved=100, loss=1_000.0))
    assert ledger.decide(lambda _: 100, free_from=0, why=Why.COLD).cut is None
    assert ledger.decide(lambda _: 100).price == pytest.approx(1_000 + 1.15 * 100 - 1.25 * 100)


def test_a_ledger_is_a_value() -> None:
    """Marking, calling and flushing give another ledger; an edit that waits is refused, and so is one that saves less than nothing."""
    ledger = EditLedger(prices=_PLAIN)
    marked = ledger.marked(Edit(place=3, saved=10))
    assert not ledger.waiting
    assert marked.called().rent(marked.waiting[0]) == pytest.approx(1.0)
    assert marked.flushed(4) == marked
    assert not marked.flushed(3).waiting
    for wrong in (Edit(place=3, saved=5), Edit(place=4, saved=-1)):
        with pytest.raises(InvalidInput):
            marked.marked(wrong)
    assert ledger.decide(lambda _: 0).why is Why.NOTHING


# --- prices ----------------------------------------------------------------------------------------------------------------------


def test_prices_come_from_a_providers_rates() -> None:
    """Ratios to an uncached input token; without a cache of its own every edit pays at once."""
    sheet = PriceSheet.of(Rates(3e-6, 3e-7, 3.75e-6, 1.5e-5, "list"))
    assert [sheet.read, sheet.write, sheet.output] == pytest.approx([0.1, 1.25, 5.0])
    bare = PriceSheet.of(Rates(2e-6, 2e-6, 2e-6, 8e-6, "list"))
    ledger = EditLedger(prices=bare).marked(Edit(place=0, saved=1))
    assert ledger.decide(lambda _: 1_000_000).why is Why.PAID
    assert PriceSheet.of(Rates(0.0, 0.0, 0.0, 0.0, "mine")).dollar == 0


def test_to_ask_for_something_again_costs_a_call() -> None:
    """However small what was set aside is, asking reads the request, writes the question and its answer: dearer the larger the request is."""
    sheet = PriceSheet(missed=0.1)
    assert sheet.again(0, 20_000) == pytest.approx(0.1 * (1.25 * 60 + 0.1 * 20_000 + 5 * 60))
    assert sheet.again(800, 20_000) - sheet.again(0, 20_000) == pytest.approx(0.1 * 1.25 * 800)
    assert sheet.again(800, 40_000) > sheet.again(800, 20_000)
    assert PriceSheet(missed=0.0).again(800, 20_000) == 0


@pytest.mark.parametrize(
    "wrong", [{"read": -1.0}, {"lifetime": float("nan")}, {"read": 2.0}, {"loss": "much"}, {"missed": -0.1}]
)
def test_what_is_no_price_is_refused(wrong: dict[str, float]) -> None:
    """A negative figure, no figure, and a cache that costs more to read than to write."""
    with pytest.raises(InvalidInput):
        PriceSheet(**wrong)  # type: ignore[arg-type] # on purpose


# --- rent or buy -------------------------------------------------------------------------------------------------------------------

rents = st.lists(st.one_of(st.just(0.0), st.floats(0.01, 50.0)), max_size=24).map(tuple)


def _paid(new: tuple[float, ...], price: float, room: float, share: float | None) -> float:
    """Give what the rule pays in the bare problem; with a share, the rule for random thresholds at that share."""
    total, carried = 0.0, 0.0
    state = RentOrBuy(seed=None if share is None else "any")
    for each in new:
        carried += each
        due = state.due(carried, price) if share is None else state.reached(carried) >= share * price
        if due or carried > room:
            total, carried, state = total + price, 0.0, state.folded()
        else:
            total, state = total + carried, state.paid(carried)
    return total


@given(new=rents, price=st.floats(0.5, 200.0), room=st.one_of(st.just(float("inf")), st.floats(50.0, 300.0)))
def test_rent_or_buy_never_pays_more_than_twice_the_optimum(new: tuple[float, ...], price: float, room: float) -> None:
    """Whatever comes, with a window or without: at most twice what a planner pays that knows the future."""
    best = optimal_rent(new, price, room)
    assert best <= _paid(new, price, room, None) * (1 + _NEAR)
    assert _paid(new, price, room, None) <= DETERMINISTIC * best * (1 + _NEAR) + _NEAR


@given(new=st.lists(st.floats(0.0, 5.0), max_size=16).map(tuple), price=st.floats(20.0, 200.0))
def test_thresholds_drawn_at_random_expect_to_pay_less(new: tuple[float, ...], price: float) -> None:
    """In the mean over 200 shares with the density of the paper at most e/(e-1) times the optimum, within what sampling and whole calls err."""
    shares = [drawn("shares", number) for number in range(200)]
    best = optimal_rent(new, price)
    paid = mean(_paid(new, price, float("inf"), share) for share in shares)
    assert paid <= RANDOMISED * best + 0.08 * price


def test_no_rule_without_chance_is_better_than_twice_and_this_one_comes_near() -> None:
    """The worst there is: nothing comes after a fold. Then it has paid twice."""
    new = (1.0, *[0.0] * 99)
    assert _paid(new, 100.0, float("inf"), None) == pytest.approx(199.0)
    assert optimal_rent(new, 100.0) == pytest.approx(100.0)


def test_with_steady_growth_it_folds_where_the_square_root_formula_does() -> None:
    """Growth g, rent r, price R: every sqrt(2R/(rg)) calls, which is the best there is."""
    load = Growth(new=(1_000,) * 400, cold=(False,) * 400, prefix=12_000, summary=2_500, keep=12_000, room=10**9)
    folds = played(load, _PLAIN, rent_or_buy()).folds
    gaps = [after - before for before, after in itertools.pairwise(folds[1:])]
    price = 5 * 2_500 + 0.1 * 12_000 + 1.25 * 14_500 - 0.1 * 0
    assert all(abs(gap - (2 * price / (0.1 * 1_000)) ** 0.5) <= 2 for gap in gaps)
    assert played(load, _PLAIN, rent_or_buy()).total <= 1.02 * optimum(load, _PLAIN).total


def test_shares_are_drawn_from_a_seed_with_the_density_of_the_paper() -> None:
    """The same seed draws the same; the mean of 2,000 is that of e^x/(e-1), 1/(e-1)."""
    assert drawn("a", 1) == drawn("a", 1) != drawn("a", 2)
    shares = [drawn("b", number) for number in range(2_000)]
    assert all(0 <= share <= 1 for share in shares)
    assert mean(shares) == pytest.approx(RANDOMISED - 1, abs=0.02)
    assert RentOrBuy(seed="b").due(1.0, 1e-9)


# --- the optimum of whole bills ----------------------------------------------------------------------------------------------------

growths = st.builds(
    lambda new, cold, keep, room: Growth(
        new=tuple(new), cold=tuple(cold[: len(new)]), prefix=500, summary=100, keep=keep, room=room
    ),
    new=st.lists(st.integers(1, 2_000), min_size=1, max_size=7),
    cold=st.lists(st.booleans(), min_size=7, max_size=7),
    keep=st.integers(0, 2_000),
    room=st.integers(4_700, 12_000),
)


@given(load=growths)
def test_the_optimum_is_the_cheapest_of_all_ways_to_fold(load: Growth) -> None:
    """By trying all of them: no set of calls to fold before has a smaller bill, and the one that is told has that bill."""
    best = optimum(load, _PLAIN)
    calls = range(len(load.new))
    ways = itertools.chain.from_iterable(itertools.combinations(calls, n) for n in range(len(calls) + 1))
    bills = [played(load, _PLAIN, partial(_among, folds)).total for folds in ways]
    assert best.total == pytest.approx(min(bills))
    assert played(load, _PLAIN, partial(_among, best.folds)).total == pytest.approx(best.total)


def _among(folds: tuple[int, ...], moment: Moment) -> bool:
    return moment.call in folds


@given(seed=st.integers(0, 10**6), window=st.sampled_from([60_000, 200_000]), cold=st.sampled_from([0.0, 0.1]))
def test_no_rule_beats_the_optimum_on_generated_workloads(seed: int, window: int, cold: float) -> None:
    """Neither the fixed ones nor ours; and the same seed makes the same workload."""
    load = replace(growing(seed, window=window, cold=cold))
    load = replace(load, new=load.new[:60], cold=load.cold[:60])
    assert growing(seed, window=window, cold=cold) == growing(seed, window=window, cold=cold)
    best = optimum(load, _PLAIN).total
    for rule in (forced, at_size(window / 2), break_even(20, _PLAIN), rent_or_buy(), rent_or_buy("seed")):
        assert played(load, _PLAIN, rule).total >= best * (1 - _NEAR)


def test_what_a_fold_leaves_has_to_fit() -> None:
    """A window smaller than prefix, summary and tail is infeasible, with the parts."""
    with pytest.raises(InfeasibleBudget) as caught:
        optimum(growing(1, window=25_000), _PLAIN)
    assert caught.value.needed == sum(caught.value.breakdown.values())


def _rules() -> list[Masking]:
    return [Never(), EveryStep(), Polling(3), AtLeast(500), Suffix(_PLAIN)]


@given(sizes=st.lists(st.integers(1, 4_000), min_size=1, max_size=8), prefix=st.integers(0, 5_000))
def test_no_rule_and_no_batches_beat_the_best_suffixes(sizes: list[int], prefix: int) -> None:
    """The bill over all suffixes at all calls is the least; that of the best whole batches is between it and every batching rule."""
    load = Observations(sizes=tuple(sizes), prefix=prefix, action=50, newest=2)
    best, batches = best_suffixes(load, _PLAIN), best_batches(load, _PLAIN)
    assert best <= batches * (1 + _NEAR)
    for rule in _rules():
        assert masked(load, _PLAIN, rule) >= best * (1 - _NEAR)
    for rule in (Never(), EveryStep(), Polling(2), AtLeast(800)):
        assert masked(load, _PLAIN, rule) >= batches * (1 - _NEAR)


def test_the_ledger_is_near_the_best_batches_on_long_conversations() -> None:
    """Within a tenth of a planner that knows the future, where masking at every step costs twice as much and more."""
    loads = [observing(seed, 120) for seed in range(6)]
    suffix = mean(masked(load, _PLAIN, Suffix(_PLAIN)) / best_batches(load, _PLAIN) for load in loads)
    every = mean(masked(load, _PLAIN, EveryStep()) / best_batches(load, _PLAIN) for load in loads)
    assert suffix < 1.1
    assert every > 2


def test_more_than_can_be_gone_through_is_refused() -> None:
    """All suffixes of a long conversation are too many."""
    with pytest.raises(InvalidInput, match="at most"):
        best_suffixes(observing(1, 60), _PLAIN)


# --- words ---------------------------------------------------------------------------------------------------------------------------


def test_a_decision_is_read_back_as_it_was_written() -> None:
    """Through JSON too, with a cache that is never cold, and it says the same."""
    sheet = PriceSheet(lifetime=float("inf"), dollar=3e-6)
    edits = _ledger([(3, 500, 4), (9, 100, 1)]).decide({3: 900, 9: 200}.__getitem__)
    fold = Folding(done=False, why=Why.KEPT, rent=1.5, price=60_000.0, excess=12)
    decided = Scheduling(edits=edits, fold=fold, prices=sheet)
    data = json.loads(json.dumps(decided.as_data(), allow_nan=False))
    again = Scheduling.of(data)
    assert again.prices == sheet
    assert again.fold == fold
    assert again.sentences() == decided.sentences()
    assert Scheduling.of(json.loads(json.dumps(again.as_data()))) == again


def test_what_failed_keeps_its_error_when_it_is_cleared() -> None:
    """Of an old result a line with its handle is left; of the result of a failure the line that names the error too."""
    page = "\n".join(f"collected {number}" for number in range(100))
    view = worked(
        run("c1", "pytest a", f"{page}\nKeyError: 'port'", failed=True),
        run("c2", "pytest b", page),
        run("c3", "ls", page),
    )
    failed, passed = (due.change.text for due in Waiting(newest=1)(ground_of(view)))
    assert failed.startswith("KeyError: 'port'\n[Old tool output cleared")
    assert passed.startswith("[Old tool output cleared")


def test_a_result_that_is_only_old_need_not_wait() -> None:
    """Without a number of newest results, what waits is what would wait anyway and is of no more use."""
    page = "\n".join(f"collected {number}" for number in range(100))
    view = worked(
        run("c1", "ls", page), run("c2", "cat a", page[1:]), run("c3", "ls", page), run("c4", "cat b", page[2:])
    )
    alone = list(Waiting(newest=None)(ground_of(view)))
    assert [due.spent for due in alone] == [True]
    assert alone == [due for due in Waiting(newest=3)(ground_of(view)) if due.spent]
    assert {due.spent for due in Waiting(newest=1)(ground_of(view))} == {False}


def test_a_schedule_is_made_from_a_configuration() -> None:
    """By name, with the words of the preset and of the sheet; what makes no sense is refused with a hint."""
    made = policy(
        {
            "type": "scheduled",
            "policy": "claude-code",
            "newest": 5,
            "keep": 20_000,
            "prices": {"read": 0.25, "write": 1.0},
        },
        "gpt-5",
    )
    assert isinstance(made, Scheduled)
    assert made.policy.name == "claude-code"
    assert made.budget == made.policy.budget
    assert made.prices == PriceSheet(read=0.25, write=1.0)
    assert made.schedule.waiting.newest == 5
    spent = policy({"type": "scheduled", "newest": None}, "gpt-5")
    assert isinstance(spent, Scheduled)
    assert spent.schedule.waiting.newest is None
    for wrong in (
        {"policy": "no-such"},
        {"policy": FullContext()},
        {"newest": -1},
        {"newest": "many"},
        {"keep": True},
        {"prices": {"reading": 1.0}},
        {"prices": {"read": "cheap"}},
    ):
        with pytest.raises(InvalidInput):
            policy({"type": "scheduled", **wrong}, "gpt-5")


def test_where_nothing_has_a_price_nothing_is_scheduled() -> None:
    """The default preset on a plain list, or for a model that nobody lists, does what it did without a schedule."""
    log = Log()
    log.put(*(UserMessage(content=f"{number} words to be kept") for number in range(20)))
    view = fold(log.store, log.dialog)
    composed = compose(view, Palaver(), Budget.of_input(10**6), counter("gpt-4o"))
    assert composed.view is view
    assert composed.plan.details is None
