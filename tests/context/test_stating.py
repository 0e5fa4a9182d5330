"""Constraints put on the list by hand within a budget: told as far as a quarter of the room goes, and never the reason why nothing can be sent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Agent, Dialog, MemoryStore, Prompt, ScriptedProvider
from palaver.context import Composed, Meter
from palaver.errors import InfeasibleBudget
from palaver.tokens import Budget
from palaver.view import View
from tests.context.helper import COUNTER

METER = Meter(COUNTER)
POLICIES = ("palaver", "default", "claude-code", "fold", "offload", "full")


def asked(rules: list[str]) -> Dialog:
    """Give a conversation of a few turns with rules put on by hand."""
    dialog = Dialog(owner="agent")
    dialog.put_text("You help.", role="system")
    for number in range(4):
        dialog.put_text(f"Go on, {number}.")
        dialog.put_text(f"answer {number} " + "word " * 60, role="assistant")
    dialog.put_text("And now?")
    for rule in rules:
        dialog.constraints.add(rule)
    return dialog


def composed(dialog: Dialog, policy: str, budget: Budget) -> Composed | None:
    """Compose, or give None where the budget is too small."""
    try:
        return dialog.compose(policy, budget, model="gpt-4o")
    except InfeasibleBudget:
        return None


def section(view: View) -> str:
    """Give what the instructions tell of the list."""
    return "".join(str(block.content) for block in view.system if block.derived == "constraints")


def rule(number: int, words: int) -> str:
    """Give a rule of so many words."""
    return f"Rule {number}: {'never ' * words}do {number}."


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 300), min_size=1, max_size=12),
    tokens=st.integers(10, 2_500),
    most_bytes=st.none() | st.integers(100, 9_000),
    policy=st.sampled_from(POLICIES),
)
def test_adding_a_constraint_never_makes_a_budget_infeasible(
    lengths: list[int], tokens: int, most_bytes: int | None, policy: str
) -> None:
    """Whatever was possible without the rules is with them, within the budget, and what tells them has at most a quarter of it."""
    budget = Budget(max_tokens=tokens, reserve=0, safety_buffer=0, max_bytes=most_bytes)
    rules = [rule(number, length) for number, length in enumerate(lengths)]
    before, after = composed(asked([]), policy, budget), composed(asked(rules), policy, budget)
    assert before is None or after is not None
    if after is not None:
        assert after.tokens_after <= budget.for_input
        assert METER.text(section(after.view)) <= budget.for_input // 4 + 4


@pytest.mark.parametrize("policy", POLICIES)
def test_a_dozen_long_constraints_fit_a_small_budget_and_the_newest_are_told(policy: str) -> None:
    """The newest first; of the others how many there are and the entries that hold them, each of which can be recalled."""
    rules = [rule(number, 120) for number in range(12)]
    dialog = asked(rules)
    handles = [stated.at for stated in dialog.view().constraints]
    made = composed(dialog, policy, Budget(max_tokens=3_000, reserve=0, safety_buffer=0))
    assert made is not None
    text = section(made.view)
    told = [number for number, each in enumerate(rules) if each in text]
    assert 3 <= len(told) < 12
    assert told == list(range(12 - len(told), 12))
    assert f"(+ {12 - len(told)} older ones, not told here; recall {handles[0]} to {handles[told[0] - 1]})" in text
    assert rules[0] in str(dialog.recall(handles[0]))


def test_one_that_is_larger_than_a_quarter_is_named() -> None:
    """The list is never passed over in silence while a line has room: it says how many there are and where."""
    dialog = asked([rule(0, 300)])
    (stated,) = dialog.view().constraints
    made = composed(dialog, "palaver", Budget(max_tokens=400, reserve=0, safety_buffer=0))
    assert made is not None
    assert (
        f"1 constraint on his list by hand, for which there is no room here. Look before you act: recall {stated.at}"
        in section(made.view)
    )


def test_what_has_room_is_told_whole_and_the_view_is_the_very_same() -> None:
    """Where all of them are within their share nothing changes."""
    dialog = asked(["Write in English.", "Never push."])
    view = dialog.view()
    assert dialog.compose("palaver", 100_000, model="gpt-4o", view=view).view is view


def test_a_view_that_tells_fewer_can_be_compacted_and_the_log_keeps_all() -> None:
    """What a compaction writes down is the conversation; the list is told anew for each request, by its room."""
    dialog = asked([rule(number, 200) for number in range(12)])
    dialog.compact(policy="fold", budget=300, model="gpt-4o").approve()
    assert all(rule(number, 200) in section(dialog.view()) for number in range(12))
    made = dialog.compose("palaver", 1_000, model="gpt-4o")
    assert made.tokens_after <= 1_000
    assert rule(0, 200) not in section(made.view)


def test_a_call_that_was_told_fewer_is_given_back_as_it_was() -> None:
    """What an agent with a small budget sent is recorded, with the constraints that had a place in it."""
    provider = ScriptedProvider(["Fine."])
    agent = Agent(
        "helper",
        Prompt(path="helper/system", prompt="You help."),
        "gpt-4o",
        provider,
        store=MemoryStore(),
        budget=1_500,
    )
    agent.open("x")
    for number in range(12):
        agent.current_dialog.constraints.add(rule(number, 120))
    agent.respond(input="And now?")
    (call,) = agent.current_dialog.invocations
    sent = section(call.view())
    assert rule(11, 120) in sent
    assert rule(0, 120) not in sent
    assert METER.view(call.view()).total <= 1_500
    assert call.request().data == provider.requests[0].data
