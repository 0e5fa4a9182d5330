"""What leaves a view has something standing for it, and what is known of it goes on: under every policy, chain of compactions and budget."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from palaver import AssistantMessage, Dialog, Session
from palaver.context import POLICIES, Meter
from palaver.context.floor import floor
from palaver.context.ground import GONE
from palaver.context.record.telling import counts_rules
from palaver.errors import InfeasibleBudget
from palaver.messages import TextContent
from palaver.session.calls.composing import tokens_of
from palaver.store import MemoryStore
from palaver.tokens import counter
from palaver.view import Drop, Plan, View, fold

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


ACTS = st.lists(st.sampled_from(["ask", "rule", "paste", "answer", "answer", "answer"]), min_size=1, max_size=8)
STEPS = st.lists(st.tuples(ACTS, st.sampled_from(["half", "floor", "tight", "share"])), min_size=1, max_size=4)


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(policy=st.sampled_from(sorted(POLICIES)), steps=STEPS, more=st.integers(0, 150), share=st.floats(0.1, 0.9))
@example(policy="palaver", steps=[(["answer", "answer", "paste"], "half")] * 3, more=0, share=0.5)
@example(policy="fold", steps=[(["answer", "answer", "ask"], "floor"), (["ask"], "half")], more=0, share=0.5)
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
        try:
            preview = dialog.compact(policy=policy, budget=budget, model=MODEL)
        except InfeasibleBudget as error:
            assert error.needed > error.budget
            preview = None
        if preview is not None and preview.worthwhile:
            assert preview.tokens_before == size
            preview.approve()
            assert tokens_of(dialog.view(), MODEL) == preview.tokens_after
            assert budget is None or preview.tokens_after <= budget
        assert set(rules) <= set(dialog.constraints.texts)
        assert told(dialog.view(), rules), (policy, how, texts(dialog.view()))
        assert stands(dialog.view()) or (how != "half" and dialog.view().carried)
        assert fold(dialog.store, dialog.dialog_id) == dialog.view()
        assert fold(dialog.store, dialog.dialog_id).carried == dialog.view().carried
    facts = facts_after(dialog)
    assert GOAL in facts or any(GOAL in text for text in texts(dialog.view()))
    assert set(rules) <= set(dialog.constraints.texts)
