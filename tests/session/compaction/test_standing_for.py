"""What leaves a view has something standing for it, and what is known of it goes on: under every policy, chain of compactions and budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palaver import Agent, AssistantMessage, AutoCompact, Dialog, Prompt, ScriptedProvider, Session
from palaver.context import POLICIES, ContextManager, Ledger, Meter, Policy
from palaver.context.floor import floor
from palaver.context.ground import GONE
from palaver.context.record.telling import counts_rules
from palaver.context.triggers import Tokens
from palaver.errors import InfeasibleBudget
from palaver.log import Compaction, Handle, decode_entry
from palaver.messages import TextContent
from palaver.session.calls.composing import tokens_of
from palaver.session.erasure import erase
from palaver.store import MemoryStore
from palaver.tokens import Budget, Rates, counter
from palaver.view import Drop, Insert, Plan, View, fold
from palaver.wire import Request

MODEL = "gpt-4o"
GOAL = "Build the heron site."
RULE = "You must never push to main."
PASTE = " ".join(f"line{number}" for number in range(400))


def begun() -> Dialog:
    """Give a dialog with a goal and a constraint at its beginning."""
    dialog = Session.create(MemoryStore(), "heron", owner="coder").root
    dialog.put_text(f"{GOAL} {RULE}")
    return dialog


def grow(dialog: Dialog, acts: Sequence[str], tag: str) -> list[str]:
    """Let some things happen; the constraints that were said."""
    said = []
    for number, act in enumerate(acts):
        name = f"{tag}{number}"
        if act == "ask":
            dialog.put_text(f"Do {name}.")
        elif act == "rule":
            said.append(f"You must always keep {name}.py.")
            dialog.put_text(said[-1])
        elif act == "paste":
            dialog.put_text(f"Here is the log of {name}: {PASTE}")
        else:
            dialog.append(AssistantMessage(content=f"{name} " + "word " * 90, response_id=name))
    return said


def texts(view: View) -> list[str]:
    """Give all that is said in a view, the texts of policies too."""
    return [
        block.content.content
        for exchange in view.exchanges
        for block in exchange.blocks()
        if isinstance(block.content, TextContent)
    ]


def told(view: View, rules: Sequence[str]) -> bool:
    """Tell whether a view says each of some constraints, or how many it does not."""
    said = texts(view)
    return any(map(counts_rules, said)) or all(any(rule in text for text in said) for rule in rules)


def stands(view: View) -> bool:
    """Tell whether something stands for what a view leaves out, if it leaves something out."""
    return not any(one.reason in GONE for one in view.omissions) or any(x.derived for x in view.exchanges)


def facts_after(dialog: Dialog) -> str:
    """Give what is known of all that leaves when all that may leave does, by a plan that puts nothing in its place."""
    grow(dialog, ["answer", "ask", "answer", "ask"], "later")
    view = dialog.view()
    drops = tuple(Drop(index=n) for n in range(len(view.exchanges) - 1) if n not in view.protected())
    dialog.commit(Plan(policy="mine", drops=drops), model=MODEL, margin=0)
    return "\n".join(block.facts for x in dialog.view().known() if x.derived for block in x.blocks())


class Last(ContextManager):
    """Shows the newest words alone, and puts nothing in the place of the rest."""

    name = "last"

    def __call__(self, dialog: Dialog) -> Dialog:
        """Fork."""
        return dialog.fork(last_n=1, first_k=0)


class Dropping(Policy):
    """Drops what may be dropped, and puts nothing in its place."""

    name = "dropping"

    def plan(self, view: View, _ledger: Ledger, _budget: Budget, _prices: Rates | None, /) -> Plan:
        """Drop."""
        drops = (n for n in range(len(view.exchanges)) if n not in view.protected() and not view.exchanges[n].derived)
        return Plan(policy=self.name, drops=tuple(Drop(index=n) for n in drops))


WAYS: dict[str, str | ContextManager] = {name: name for name in POLICIES} | {"last": Last(), "dropping": Dropping()}

ACTS = st.lists(st.sampled_from(["ask", "rule", "paste", "answer", "answer", "answer"]), min_size=1, max_size=8)
STEPS = st.lists(st.tuples(ACTS, st.sampled_from(["half", "floor", "tight", "share"])), min_size=1, max_size=4)


@settings(max_examples=settings().max_examples // 5, deadline=None)
@given(policy=st.sampled_from(sorted(WAYS)), steps=STEPS, more=st.integers(0, 150), share=st.floats(0.1, 0.9))
@example(policy="palaver", steps=[(["answer", "answer", "paste"], "half")] * 3, more=0, share=0.5)
@example(policy="last", steps=[(["answer", "answer", "ask"], "half"), (["answer", "ask"], "share")], more=0, share=0.5)
@example(
    policy="dropping", steps=[(["answer", "answer", "ask"], "share"), (["answer", "ask"], "half")], more=0, share=0.5
)
@example(policy="fold", steps=[(["answer", "answer", "ask"], "floor"), (["ask"], "half")], more=0, share=0.5)
@example(policy="aider", steps=[(["answer"], "floor"), (["ask"], "half")], more=0, share=0.5)
def test_what_was_said_goes_on_whatever_leaves(
    policy: str, steps: Sequence[tuple[list[str], str]], more: int, share: float
) -> None:
    """After any chain of compactions each constraint is listed and said, a line stands for what left, and the goal is known; else nothing is committed."""
    dialog, rules = begun(), [RULE]
    for number, (acts, how) in enumerate(steps):
        rules += grow(dialog, acts, f"s{number}x")
        view = dialog.view()
        least = sum(floor(view, Meter(counter(MODEL))).values())
        size = tokens_of(view, MODEL)
        budget = {"half": None, "floor": least, "tight": least + more, "share": max(int(size * share), 1)}[how]
        for _ in range(3):
            try:
                preview = dialog.compact(policy=WAYS[policy], budget=budget, model=MODEL)
                break
            except InfeasibleBudget as error:  # at first what must be sent, then a line with it; that is enough
                budget = error.needed
        else:
            pytest.fail("what was said to be enough is not")
        if preview.worthwhile:
            assert preview.tokens_before == size
            preview.approve()
            assert tokens_of(dialog.view(), MODEL) == preview.tokens_after
        assert budget is None or preview.tokens_after <= budget
        assert set(rules) <= set(dialog.constraints.texts)
        assert told(dialog.view(), rules), (policy, how, texts(dialog.view()))
        roomy = how == "half" and preview.worthwhile  # what is not written down puts no line
        assert stands(dialog.view()) or (not roomy and dialog.view().carried)
        assert fold(dialog.store, dialog.dialog_id) == dialog.view()
        assert fold(dialog.store, dialog.dialog_id).carried == dialog.view().carried
    facts = facts_after(dialog)
    assert GOAL in facts or any(GOAL in text for text in texts(dialog.view()))
    assert set(rules) <= set(dialog.constraints.texts)


@pytest.mark.parametrize("before", ["claude-code", "palaver"])
@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"full"}))
def test_one_policy_after_the_other_says_goal_and_rule(policy: str, before: str) -> None:
    """Also one that drops another's record, and puts a notice in its place: in each view of a chain the user's goal and his rule stand."""
    dialog = begun()
    for number in range(6):
        grow(dialog, ["answer", "ask"] * 12, f"r{number}x")
        dialog.compact(policy=policy if number % 2 else before, budget=1_000, model=MODEL).approve()
        said = "\n".join(texts(dialog.view()))
        assert GOAL in said
        assert RULE in said


@pytest.mark.parametrize("policy", sorted(WAYS))
def test_the_line_makes_no_view_larger_than_its_budget(policy: str) -> None:
    """Where nothing but the line of before is left to go, it stands as long as it has room, and no longer."""
    dialog = begun()
    grow(dialog, ["answer", "answer", "ask"], "a")
    dialog.compact(policy="palaver", budget=130, model=MODEL).approve()
    size = tokens_of(dialog.view(), MODEL)
    for budget in range(size, size - 25, -3):
        try:
            assert dialog.compose(WAYS[policy], budget, model=MODEL).tokens_after <= budget
        except InfeasibleBudget as error:
            assert error.needed > budget  # noqa: PT017 - where it fits the size is held, where not the refusal


# --- carried on without words -------------------------------------------------------------------------------------------------------


def by_hand(dialog: Dialog) -> None:
    """Have all leave that may, by a plan of one's own that puts nothing in its place."""
    view = dialog.view()
    drops = tuple(Drop(index=n) for n in range(len(view.exchanges)) if n not in view.protected())
    dialog.commit(Plan(policy="mine", drops=drops), model=MODEL)


def forgot() -> Dialog:
    """Give a dialog whose view shows its newest words alone."""
    dialog = begun()
    grow(dialog, ["answer", "ask", "answer", "ask"], "a")
    by_hand(dialog)
    assert texts(dialog.view()) == ["Do a3."]
    return dialog


def test_a_plan_without_a_text_loses_no_constraint() -> None:
    """Whoever commits a plan of his own sees what he wrote; the list of constraints has all, in forks, behind an undo and in the next process, too."""
    dialog = forgot()
    again = Session.open("heron", dialog.store).root
    for one in (dialog, again, dialog.fork()):
        assert one.constraints.texts == (RULE,)
        assert texts(one.view()) == ["Do a3."]
    dialog.put_text("And now?")
    by_hand(dialog)
    assert dialog.constraints.texts == (RULE,)
    dialog.undo()
    assert dialog.constraints.texts == (RULE,)
    assert dialog.view().carried == again.view().carried


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"full"}))
def test_a_later_view_with_room_says_it_again(policy: str) -> None:
    """What left without a line has one in the next view that a policy makes, with the goal and the constraints, wherever it has room."""
    dialog = forgot()
    composed = dialog.compose(policy, 3_000, model=MODEL)
    said = "\n".join(texts(composed.view))
    assert f"Goal, in the user's words:\n- \"{GOAL} {RULE}" in said
    assert told(composed.view, [RULE])
    assert dialog.compose(policy, composed.tokens_after, model=MODEL).view == composed.view
    assert dialog.compose(policy, composed.tokens_before, model=MODEL).view == dialog.view()


def test_a_later_record_goes_on_from_it() -> None:
    """What was carried on without words is the beginning of the next record, before what was said since."""
    dialog = forgot()
    grow(dialog, ["answer"] * 14, "b")
    dialog.put_text("And now?")
    dialog.compact(policy="fold", model=MODEL, budget=1_200).approve()
    record = "\n".join(text for text in texts(dialog.view()) if text.startswith("[Record"))
    assert f"Goal, in the user's words:\n- \"{GOAL} {RULE}" in record
    assert RULE in record
    assert dialog.view().carried == ()


def test_what_is_erased_is_not_carried_on() -> None:
    """An erasure takes the words from what is carried on without any, too."""
    dialog = forgot()
    session = Session.open("heron", dialog.store)
    session.erase(entries=[dialog.messages.handle(0)])
    for one in (dialog.reload(), Session.open("heron", dialog.store).root):
        assert one.constraints.texts == ()
        assert "heron" not in str(one.view())
        assert not any("heron" in block.facts for x in one.view().known() for block in x.blocks())


# --- in agents ----------------------------------------------------------------------------------------------------------------------


def talked(agent: Agent) -> Dialog:
    """Have an agent told the goal and asked for some steps."""
    dialog = agent.open("heron").current_dialog
    agent.receive(f"{GOAL} {RULE}")
    agent.respond()
    for step in range(4):
        agent.receive(f"Do step {step}. {'word ' * 80}")
        agent.respond()
    return dialog


def agent(sent: list[View], **kw: object) -> Agent:
    """Give an agent whose requests are written down."""

    def answer(request: Request) -> str:
        assert request.view is not None
        sent.append(request.view)
        return "ok " + "word " * 100

    settings: Any = kw
    prompt = Prompt(path="coder", prompt="You help.")
    return Agent("coder", prompt, "gpt-4", ScriptedProvider(answer), recall=False, **settings)


@pytest.mark.parametrize("policy", ["palaver", "fold", "default", "pi"])
def test_a_paste_larger_than_half_of_the_view_leaves_goal_and_rules(policy: str) -> None:
    """The default triggers make room for a paste, and a line that has the goal's place and the constraint is sent with it."""
    sent: list[View] = []
    one = agent(sent, compact=AutoCompact(policy=policy, triggers=(Tokens(limit=2_000),)))
    dialog = talked(one)
    one.receive(f"Here is the log: {PASTE} {PASTE}")
    one.respond()
    assert len(sent[-1].exchanges) < len(dialog.reload().messages) - 2
    assert told(sent[-1], [RULE])
    assert dialog.constraints.texts == (RULE,)


@pytest.mark.parametrize(
    "kw",
    [{"context_manager": "palaver", "budget": 2_000}, {"budget": 2_000}, {"context_manager": "fold", "budget": 2_000}],
)
def test_a_request_without_room_for_a_line_is_written_down_by_nobody(kw: dict[str, object]) -> None:
    """Near its limit a request goes without the line; the next one that has room says goal and constraint again."""
    sent: list[View] = []
    one = agent(sent, **kw)
    dialog = talked(one)
    least = 2_000 - tokens_of(sent[-1], "gpt-4") + Meter(counter("gpt-4")).view(sent[-1]).messages
    paste = "x " * (least - 25)
    one.receive(paste)
    one.respond()
    assert tokens_of(sent[-1], "gpt-4") > 1_900
    assert dialog.reload().constraints.texts == (RULE,)
    for step in range(3):
        one.receive(f"Do more {step}. {'word ' * 200}")
        one.respond()
    assert told(sent[-1], [RULE])
    assert dialog.reload().constraints.texts == (RULE,)


# --- what figures count ---------------------------------------------------------------------------------------------------------------


def ruled() -> Dialog:
    """Give a dialog with many constraints that were put on by hand."""
    dialog = begun()
    for number in range(40):
        dialog.constraints.add(f"Rule {number}: never do thing number {number} in any module of the whole repository.")
    return dialog


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"full"}))
@pytest.mark.parametrize("budget", [None, 1_150])
def test_sizes_are_those_of_what_is_sent(policy: str, budget: int | None) -> None:
    """Both sizes of a compaction are those of the log's view, with all that was put on the list by hand, in the preview and in the entry."""
    dialog = ruled()
    acts = ["answer", "ask", "answer", "ask", "answer", "answer", "ask"]
    grow(dialog, [*acts, *acts, *acts], "a")  # so much that the own limits of all cut a third or more
    size = tokens_of(dialog.view(), MODEL)
    preview = dialog.compact(policy=policy, budget=budget, model=MODEL)
    assert preview.tokens_before == size
    assert preview.worthwhile
    place = preview.approve()
    entry = decode_entry(dialog.store.body(place.dialog, place.seq))
    assert isinstance(entry, Compaction)
    now = tokens_of(dialog.view(), MODEL)
    assert (entry.tokens_before, entry.tokens_after) == (size, now) == (preview.tokens_before, preview.tokens_after)
    assert dialog.figures(model=MODEL).compacted == now
    assert dialog.view().system == fold(dialog.store, dialog.dialog_id, whole=True).system


def test_what_a_request_cuts_is_no_saving() -> None:
    """A view that was composed for a budget and is written down is counted with the constraints that it does not tell, for later views tell them."""
    dialog = ruled()
    grow(dialog, ["answer"] * 6 + ["ask"], "a")
    composed = dialog.compose("fold", 700, model=MODEL)
    assert composed.cut > 0
    place = dialog.commit(composed)
    entry = decode_entry(dialog.store.body(place.dialog, place.seq))
    assert isinstance(entry, Compaction)
    assert entry.tokens_after == composed.tokens_after + composed.cut == tokens_of(dialog.view(), MODEL)


def test_constraints_by_hand_do_not_make_compactions_late() -> None:
    """Where they are most of the view, what else there is becomes smaller all the same, and no sooner again than it has grown."""
    sent: list[View] = []
    one = agent(sent, compact=AutoCompact(triggers=(Tokens(limit=1_200),)))
    dialog = one.open("heron").current_dialog
    for number in range(40):
        dialog.constraints.add(f"Rule {number}: never do thing number {number} in any module of the whole repository.")
    for step in range(12):
        one.receive(f"Do step {step}. {'word ' * 40}")
        one.respond()
    made = [header.seq for header in dialog.store.headers(dialog.dialog_id) if header.kind == "compaction"]
    assert 1 < len(made) < 8
    assert max(tokens_of(view, "gpt-4") for view in sent) < 1_600


# --- what a line says, and whence ---------------------------------------------------------------------------------------------------


def test_a_line_names_where_all_that_it_says_was_said() -> None:
    """It tells a constraint of a text that stays beside it, too; so an erasure of what said that reaches the line."""
    dialog = Session.create(MemoryStore(), "heron", owner="coder").root
    dialog.put_text("Build it.")
    dialog.append(AssistantMessage(content="ok " * 60, response_id="x0"))
    dialog.put_text(
        f"I looked at the plan of yesterday again, it is fine. {RULE} Everything else is for you to decide."
    )
    dialog.append(AssistantMessage(content="ok " * 60, response_id="x1"))
    dialog.put_text("Do a.")
    view = dialog.view()
    drops = tuple(Drop(index=index) for index in range(len(view.exchanges)) if index not in view.protected())
    silent = Insert(before=0, text="Earlier: setup.", label="notice")
    dialog.commit(Plan(policy="mine", drops=drops, inserts=(silent,)), model=MODEL)
    grow(dialog, ["answer", "ask"] * 6, "b")
    composed = dialog.compose(WAYS["dropping"], 600, model=MODEL)
    assert any(RULE in text for text in texts(composed.view))
    dialog.commit(composed, model=MODEL)
    erase(dialog.store, entries=[Handle(dialog.dialog_id, 2)], thorough=False)
    assert not any(RULE.encode() in body for _, body in dialog.store.bodies(dialog.dialog_id))


def test_a_line_in_front_stays_the_same_while_the_view_grows() -> None:
    """How much it tells follows the budget, and not the view, so that the provider's cache is met."""
    dialog = begun()
    for number in range(40):
        dialog.put_text(
            f"You must never touch file number {number} of the folder module_{number}, for it is made by a tool each night."
        )
        dialog.append(AssistantMessage(content="ok", response_id=f"q{number}"))
    dialog.put_text("Go on.")
    by_hand(dialog)
    lines = []
    for turn in range(14):
        dialog.append(AssistantMessage(content=f"w{turn} " + "word " * 250, response_id=f"t{turn}"))
        dialog.put_text(f"Next {turn}.")
        lines.append(texts(dialog.compose("palaver", 100_000, model=MODEL).view)[0])
    assert all(line.startswith("[Earlier in this conversation") for line in lines)
    assert len(set(lines)) == 1


@pytest.mark.parametrize("policy", ["last", "dropping"])
def test_a_view_that_fits_is_no_reason_to_refuse(policy: str) -> None:
    """Where the line makes a short view no smaller, it is left as it is."""
    dialog = Dialog(owner="a")
    dialog.put_text("Hi. You must never push.")
    dialog.append(AssistantMessage(content="ok", response_id="a"))
    dialog.put_text("Go.")
    preview = dialog.compact(policy=WAYS[policy], budget=4_000, model=MODEL)
    assert not preview.worthwhile
    assert preview.tokens_after <= preview.tokens_before
