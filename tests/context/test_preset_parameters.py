"""Parameters of presets: each has its effect, wherever it is said, and one number is the same for every operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from palaver.context import Meter, compose, planner, policy
from palaver.context.manager import Policy
from palaver.context.presets import PRESETS, Dynamiq, SummarizationConfig
from palaver.errors import InvalidInput
from palaver.messages import Message
from palaver.testing.logs import Log, model, user
from palaver.tokens import Budget
from palaver.view import Exchange, View
from tests.context.helper import COUNTER, fitted, seen, size
from tests.context.test_presets import of_its_own
from tests.context.work import PAGE, read, run

METER = Meter(COUNTER)


def working(turns: int = 30) -> View:
    """Ask, look and answer for so many turns; one output is larger than all others."""
    log = Log()
    log.put(user("Make the tests pass."))
    for turn in range(turns):
        said: list[Message] = [*read(f"r{turn}", f"src/f{turn}.py", f"{turn}\n{PAGE}")]
        log.put(*said, *run(f"b{turn}", f"ls {turn}", "x" * (9_000 if turn == 5 else 900)))
        log.put(model(f"did {turn}"), user(f"And now {turn}."))
    return seen(log)


def talking(turns: int = 60) -> View:
    """Talk for so many turns, without a tool."""
    log = Log()
    for turn in range(turns):
        log.put(user(f"ask {turn} " + "word " * 60), model(f"answer {turn} " + "word " * 60))
    return seen(log)


WORKING, TALKING = working(), talking()


def verbatim(view: View) -> int:
    """Give how many messages at the end are as they were said."""
    count = 0
    for exchange in reversed(view.exchanges):
        if exchange.derived or any(block.reason is not None for block in exchange.blocks()):
            break
        count += exchange.messages
    return count


def whole(view: View) -> int:
    """Give how many results are shown as they came."""
    return sum(not _changed(x) for x in view.exchanges if len(x.turns) > 1)


def _changed(exchange: Exchange) -> bool:
    return any(block.reason is not None for block in exchange.blocks())


def tail(view: View) -> int:
    """Give the tokens behind the last text that stands for something."""
    last = max((index for index, each in enumerate(view.exchanges) if each.derived), default=-1)
    return sum(map(METER.exchange, view.exchanges[last + 1 :]))


def head(view: View) -> int:
    """Give how many exchanges stand in front of what stands for others."""
    return next((index for index, each in enumerate(view.exchanges) if each.derived), len(view.exchanges))


def messages(view: View) -> int:
    """Give how many messages are shown."""
    return sum(each.messages for each in view.exchanges)


def records(view: View) -> int:
    """Give how many records stand for what was left out."""
    return sum(each.turns[0].blocks[0].derived == "record" for each in view.exchanges if each.derived)


def files(view: View) -> int:
    """Give how many files are brought back."""
    return sum(each.turns[0].blocks[0].derived == "file" for each in view.exchanges if each.derived)


@dataclass(frozen=True)
class Effect:
    """What a parameter does.

    Attributes:
        values: Values of it, each of which gives more of what is measured than the one before.
        measure: What is measured of the view.
        view: The conversation.
        share: The budget, as a share of it.
        words: What else the configuration says.
    """

    values: tuple[object, ...]
    measure: Callable[[View], int]
    view: View = WORKING
    share: float = 0.5
    words: Mapping[str, Any] | None = None

    def seen(self, name: str, parameter: str) -> list[int]:
        """Measure the views that the values give."""
        limit = int(size(self.view) * self.share)
        configurations = [{"type": name, **(self.words or {}), parameter: value} for value in self.values]
        return [self.measure(fitted(self.view, _made(each), limit).view) for each in configurations]


def _made(configuration: Mapping[str, Any]) -> Policy:
    found = policy(configuration)
    assert isinstance(found, Policy)
    return found


EFFECTS: Mapping[tuple[str, str], Effect] = {
    ("openhands", "max_size"): Effect((20, 40, 80), messages, TALKING, 2.0),
    ("openhands", "keep_first"): Effect((1, 4, 9), head, TALKING, 2.0, {"max_size": 60}),
    ("openhands", "keep_last"): Effect((3, 12, 40), verbatim, TALKING, 2.0, {"max_size": 60}),
    ("openhands", "minimum_progress"): Effect((0.1, 0.9), messages, TALKING, 2.0, {"max_size": 30}),
    ("claude-code", "keep_results"): Effect((2, 6, 12), whole, WORKING, 0.8),
    ("claude-code", "keep_tail"): Effect((0, 1_000, 3_000), tail, TALKING, 0.99),
    ("claude-code", "files"): Effect((0, 1, 3), files, WORKING, 0.9, {"keep_results": 100}),
    ("manus", "share"): Effect((0.1, 0.3, 0.6), whole, WORKING, 0.9),
    ("aider", "history"): Effect((400, 1_500, 4_000), tail, TALKING, 0.99),
    ("swe-agent", "n"): Effect((1, 4, 9), whole, WORKING, 2.0),
    ("swe-agent", "polling"): Effect((1, 7), whole, WORKING, 2.0, {"n": 3}),
    ("swe-agent", "largest"): Effect((5_000, 20_000), whole, WORKING, 2.0, {"n": 100}),
    ("letta", "evict"): Effect((0.8, 0.5, 0.2), tail, TALKING, 0.99),
    ("dynamiq", "enabled"): Effect((False, True), records, TALKING, 0.99),
    ("dynamiq", "max_token_context_length"): Effect((2_000, 4_000), tail, TALKING),
    ("dynamiq", "context_usage_ratio"): Effect((0.01, 0.03), tail, TALKING),
    ("dynamiq", "preserve_last_messages"): Effect((0, 7, 30), verbatim, WORKING, 0.9),
    ("dynamiq", "compaction_enabled"): Effect((False, True), messages, WORKING, 0.9),
    ("dynamiq", "compaction_token_threshold"): Effect((100, 700), whole, WORKING, 0.97),
    ("dynamiq", "max_preserved_tokens"): Effect((100, 2_000, 5_000), tail, TALKING, 0.99),
}

ELSEWHERE = {
    ("claude-code", "pause"),  # test_presets: it takes calls with times
    ("aider", "map_tokens"),  # test_repo_map: it takes a repository
    ("aider", "map_mul_no_files"),
    ("dynamiq", "incremental"),  # tests/agent/test_compacting: it takes a summariser
    ("dynamiq", "token_budget_ratio"),
}


def test_a3_every_parameter_of_a_preset_is_tested_to_have_its_effect() -> None:
    """A parameter that is added has a row here, or a test that is named."""
    own = {(each.name, name) for each in PRESETS for name in of_its_own(each)}
    assert own == EFFECTS.keys() | ELSEWHERE


OF_A_BUDGET = {"max_token_context_length", "context_usage_ratio"}


@pytest.mark.parametrize(("name", "parameter"), EFFECTS, ids=[f"{name} {parameter}" for name, parameter in EFFECTS])
def test_a3_a_parameter_has_its_effect(name: str, parameter: str) -> None:
    """More of what it says, with every step of it."""
    effect = EFFECTS[name, parameter]
    if parameter in OF_A_BUDGET:  # it says itself when something is done
        made = [policy({"type": name, parameter: value}, "gpt-4o") for value in effect.values]
        views = [
            compose(effect.view, planner(each), each.budget, COUNTER).view for each in made if isinstance(each, Policy)
        ]
        found = list(map(effect.measure, views))
    else:
        found = effect.seen(name, parameter)
    assert all(one < other for one, other in pairwise(found)), found


def cases() -> list[tuple[Mapping[str, Any], Budget | int | Mapping[str, Any] | None]]:
    """Give the ways in which a number of messages meets a budget."""
    limit = size(WORKING) - 1
    return [
        ({"preserve_last_messages": 11}, limit),
        ({"preserve_last_messages": 11}, {"max_token_context_length": limit}),  # which has a number of its own
        ({"preserve_last_messages": 11, "max_token_context_length": limit}, None),
        ({"preserve_last_messages": 11, "max_tokens": limit, "safety_buffer": 0}, None),
        ({"config": SummarizationConfig(enabled=True, preserve_last_messages=11)}, limit),
        ({}, {"max_token_context_length": limit, "preserve_last_messages": 11}),
    ]


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("compacting", [True, False], ids=["references", "a record"])
def test_a3_dynamiqs_last_messages_stay_whoever_says_the_budget(number: int, *, compacting: bool) -> None:
    """As many as the configuration says, whether outputs become references or the middle becomes a record, and whatever a budget has by default."""
    words, budget = cases()[number]
    made = policy(
        {"type": "dynamiq", "compaction_enabled": compacting, **_spread(words, compacting=compacting)}, "gpt-4o"
    )
    assert isinstance(made, Dynamiq)
    allowed = made.budget if budget is None else Budget.parse(budget)
    composed = compose(WORKING, planner(made), allowed, COUNTER)
    assert composed.plan
    assert 11 <= verbatim(composed.view) <= 11 + 6  # what is small stays anyway


def _spread(words: Mapping[str, Any], *, compacting: bool) -> Mapping[str, Any]:
    """Say of a whole configuration, too, whether outputs become references: words beside it win."""
    return {"compaction_enabled": compacting, **words}


def test_a3_tokens_at_the_end_stay_verbatim_for_both_of_dynamiqs_operators() -> None:
    """`max_preserved_tokens` in the place of messages: no output within them becomes a reference."""
    for tokens in (500, 6_000):
        made = policy({"type": "dynamiq", "max_preserved_tokens": tokens}, "gpt-4o")
        assert isinstance(made, Dynamiq)
        view = fitted(WORKING, made, size(WORKING) - 1).view
        end, kept = 0, 0
        for exchange in reversed(view.exchanges):
            if _changed(exchange):
                break
            end += METER.exchange(exchange)
            kept += 1
        assert end >= tokens
        assert kept < len(view.exchanges)


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ({"context_usage_ratio": 0.5}, 15_000),
        ({"context_usage_ratio": 0.8}, 24_000),  # the default, but said
        ({"context_usage_ratio": 1.0}, 30_000),
        ({"max_token_context_length": 9_000}, 9_000),
        ({"max_token_context_length": 29_000}, 24_000),
        ({"max_token_context_length": 9_000, "context_usage_ratio": 0.1}, 3_000),
        ({"max_token_context_length": 2_000, "context_usage_ratio": 0.1}, 2_000),
        ({"config": SummarizationConfig(enabled=True)}, 24_000),
        ({"config": SummarizationConfig(enabled=True, context_usage_ratio=0.5)}, 15_000),
        ({"config": SummarizationConfig(enabled=True, max_token_context_length=9_000)}, 9_000),
        ({"config": SummarizationConfig(enabled=True), "context_usage_ratio": 0.5}, 15_000),
        ({"context_usage_ratio": 0.5, "safety_buffer": 1_000}, 14_000),
    ],
)
@pytest.mark.parametrize("model", ["", "gpt-4o", "nobody-knows-it"])
def test_a3_of_dynamiqs_limits_the_less_counts_also_of_a_smaller_window(
    words: Mapping[str, Any], most: int, model: str
) -> None:
    """The length, or the share of the window that `max_tokens` says, by whichever of its names: nothing that was said is passed over."""
    for window in ("max_tokens", "window"):
        said: dict[str, Any] = {window: 30_000, **words}
        made = Dynamiq(model, **said)
        assert made.budget.for_input == most
        assert made.budget_for(model).for_input == most


def test_a3_of_dynamiqs_limits_a_models_own_window_counts_where_it_is_less() -> None:
    """A share is of the lesser of both windows; and a default that nobody said gives way to a window that somebody did."""
    assert Dynamiq("gpt-4o", max_tokens=1_000_000, context_usage_ratio=0.5).budget.for_input == 64_000
    assert Dynamiq("gpt-4o", max_tokens=30_000).budget == Budget.parse({"max_tokens": 30_000}, "gpt-4o")
    assert Dynamiq(max_tokens=30_000, max_token_context_length=None).budget == Budget.parse({"max_tokens": 30_000})
    assert Dynamiq(max_tokens=30_000, preserve_last_messages=4).budget.for_input == 25_000
    for window in (0, -1, "9", True):
        with pytest.raises(InvalidInput, match="max_tokens"):
            Dynamiq(max_tokens=window, context_usage_ratio=0.5)  # type: ignore[arg-type]


def test_a3_two_words_for_one_number_are_refused() -> None:
    """Neither of them is passed over; nor are two for how large the window is, in a budget of any other policy."""
    with pytest.raises(InvalidInput, match="another word for the same"):
        policy({"type": "dynamiq", "preserve_last_messages": 3, "keep_last": 9}, "gpt-4o")
    with pytest.raises(InvalidInput, match="another word for the same"):
        policy({"type": "dynamiq", "max_tokens": 30_000, "window": 20_000, "context_usage_ratio": 0.5}, "gpt-4o")
    for words in ({"context_usage_ratio": 0.5}, {"max_token_context_length": 9_000}):
        with pytest.raises(InvalidInput, match="how large"):
            policy({"type": "fold", "max_tokens": 30_000, **words}, "gpt-4o")


def test_a3_what_is_not_enabled_is_not_scheduled_either() -> None:
    """`enabled: false` holds also where the preset is scheduled."""
    made = policy({"type": "scheduled", "policy": "dynamiq", "enabled": False})
    assert isinstance(made, Policy)
    assert not fitted(WORKING, made, size(WORKING) - 1).plan


REACTS = sorted(each.name for each in PRESETS if each.name not in {"openhands", "swe-agent"})


@pytest.mark.parametrize("name", REACTS)
@pytest.mark.parametrize("words", [{"keep_last": 25}, {"keep_recent": 8_000}], ids=["messages", "tokens"])
def test_a3_what_is_to_be_left_alone_is_left_alone_by_every_preset(name: str, words: Mapping[str, Any]) -> None:
    """Said of the policy or of the budget: neither cleared, nor set aside, nor dropped, where there is room for it; at the step at which something is done."""
    limit = size(WORKING) - 1
    said = Budget.parse({"max_tokens": limit, "safety_buffer": 0, **words})
    for configuration, budget in (({"type": name, **words}, Budget.of_input(limit)), ({"type": name}, said)):
        view = compose(WORKING, planner(_made(configuration)), budget, COUNTER).view
        if "keep_last" in words:
            assert verbatim(view) >= 25
        else:
            # of which it is the most, and of all others the least
            one = max(map(METER.exchange, WORKING.exchanges)) if name == "pi" else 0
            assert _end(view) >= 8_000 - one


def _end(view: View) -> int:
    """Give the tokens at the end that are as they were said."""
    end = 0
    for exchange in reversed(view.exchanges):
        if exchange.derived or _changed(exchange):
            break
        end += METER.exchange(exchange)
    return end


def test_a3_what_is_to_be_left_alone_is_a_number() -> None:
    """Also where the budget comes from the caller: words that are no number are refused when they are used."""
    with pytest.raises(InvalidInput, match="keep_last"):
        fitted(WORKING, _made({"type": "cat", "keep_last": "many"}), 5_000)


def test_a4_claude_codes_tail_is_what_it_says() -> None:
    """At the step at which it compacts, so many tokens at the end stay beside the record, less at most one exchange; a large one has what room there is."""
    one = max(map(METER.exchange, TALKING.exchanges))
    for keep_tail in (700, 1_500, 3_000):
        made = _made({"type": "claude-code", "keep_tail": keep_tail})
        view = fitted(TALKING, made, size(TALKING) - 1).view
        assert keep_tail - one <= tail(view) <= keep_tail
    view = fitted(TALKING, _made({"type": "claude-code", "keep_tail": 10**6}), size(TALKING) - 1).view
    assert size(view) < size(TALKING)


def test_pi_takes_nothing_for_a_number() -> None:
    """`keep_recent_tokens: 0` is said, and is not the default; nor is it lost where the caller says a budget."""
    tails = [
        tail(fitted(TALKING, _made({"type": "pi", "keep_recent_tokens": each}), size(TALKING) - 1).view)
        for each in (0, 1_000, 3_000)
    ]
    assert tails == sorted(set(tails))
    assert tails[1] <= 1_000
    assert 2_700 <= tails[2] <= 3_000
