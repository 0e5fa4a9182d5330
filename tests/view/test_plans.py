"""Plans and checkpoints: a plan makes a valid, smaller view, and a checkpoint gives it back."""

from __future__ import annotations

import pytest

from palaver.errors import InvalidInput
from palaver.log import ContextEdit, Handle, Omitted, Pin, Place, Quarantine, Run
from palaver.messages import AssistantMessage, TextContent, ThinkingContent, Trust
from palaver.testing.logs import Log, assert_closed, model, result, user
from palaver.view import Drop, Plan, Reason, Remove, Rewrite, apply
from tests.sketches import sketch
from tests.view.growing import commit, seen


def test_checkpoints_on_checkpoints_stay_small() -> None:
    """After many compactions the newest alone describes the view, with one omission; it does not grow with their number."""
    log = Log()
    sizes = []
    for turn in range(33):
        log.put(user(f"u{turn}"), model("", f"c{turn}"), result(f"c{turn}"), model(f"a{turn}"))
        view = seen(log)
        if len(view.exchanges) > 8:
            log.put(commit(log, apply(view, Plan(policy="any", drops=(Drop(index=0, stop=4),)))))
            sizes.append(log.store.last(log.dialog).size)

    assert_closed(seen(log))
    assert sizes[-1] < 2 * sizes[0]
    assert len(seen(log).omissions) == 1


def test_law_10_plans_that_no_view_allows_are_refused() -> None:
    """Law 10: what every view must show, parting a call from its result, and places that the view does not have are errors."""
    log = Log()
    log.put(user("one"), AssistantMessage(contents=(ThinkingContent("hm"), TextContent("yes"))), user("two"))
    log.put(model("", "c"), result("c"), model("", "open"), Pin(target=Place(dialog=log.dialog, seq=0)))
    both = tuple(Remove(target=log.at(1, block), reason=Reason.OVER_BUDGET) for block in (0, 1))
    call = Rewrite(target=log.at(3, 0), text="x", reason=Reason.SHORTENED)
    for words, plan in (
        ("every view must show", Plan(policy="bad", drops=(Drop(index=0),))),
        ("every view must show", Plan(policy="bad", drops=(Drop(index=2),))),
        ("every view must show", Plan(policy="bad", drops=(Drop(index=4),))),
        ("call stays whole", Plan(policy="bad", rewrites=(call,))),
        ("result stays", Plan(policy="bad", removes=(Remove(target=log.at(4, 0), reason=Reason.SHORTENED),))),
        ("the view has 5", Plan(policy="bad", drops=(Drop(index=1, stop=6),))),
        (
            "no exchange of the view",
            Plan(policy="bad", removes=(Remove(target=log.at(1, 5), reason=Reason.SHORTENED),)),
        ),
        ("drop the exchange", Plan(policy="bad", removes=both)),
    ):
        with pytest.raises(InvalidInput, match=words):
            apply(seen(log), plan)
    view = apply(seen(log), Plan(policy="good", removes=both[:1]))
    assert sketch(view)[1] == "assistant[yes]"
    assert [gone.handle for gone in view.omissions] == [log.at(1, 0)]


def test_refused_block_stays_set_aside_under_a_plan() -> None:
    """A shortened form may hold just what the provider refused."""
    log = Log()
    log.put(user("poison"), model("ok"), user("go"), Quarantine(target=Place(dialog=log.dialog, seq=0, block=0)))
    again = Rewrite(target=log.at(0, 0), text="poison, shortened", reason=Reason.SHORTENED)
    view = apply(seen(log), Plan(policy="p", rewrites=(again,)))
    log.put(commit(log, view))
    assert "poison" not in sketch(view)[0]
    assert seen(log).exchanges == view.exchanges


def test_sources_and_trust_of_a_form_are_recorded() -> None:
    """The view reads back equal; a later form of the same block keeps them, for it may be a part of the one before; trust is never raised."""
    log = Log()
    log.put(user("ask"), model("a long answer"), user("go on"))
    asked = Run(dialog=log.dialog, start=0, stop=1)
    for text, sources, trust in (("short", (asked,), Trust.OUTSIDE), ("sh", (), Trust.HARNESS)):
        form = Rewrite(target=log.at(1, 0), text=text, reason=Reason.SHORTENED, sources=sources, trust=trust)
        view = apply(seen(log), Plan(policy="p", rewrites=(form,)))
        (block,) = [one for x in view.exchanges for one in x.blocks() if one.origin == log.at(1, 0)]
        assert (block.sources, block.trust) == ((asked,), Trust.OUTSIDE), text
        log.put(commit(log, view))
        assert seen(log).exchanges == view.exchanges


def test_law_6_a_removed_block_stays_removed() -> None:
    """A plan that rewrites a block which an edit removed changes nothing, so the checkpoint restores the view."""
    log = Log()
    log.put(user("go"), model("", "a"), user("and?"), result("a", "out"))
    gone = Place(dialog=log.dialog, seq=3, block=0)
    log.put(ContextEdit(base=3, omitted=(Omitted(target=gone, reason="over_budget"),), policy="edits"))
    rewrite = Rewrite(target=Handle(log.dialog, 3, 0), text="see there", reason=Reason.OFFLOADED)
    small = apply(seen(log), Plan(policy="any", drops=(Drop(index=0),), rewrites=(rewrite,)))
    log.put(commit(log, small))
    assert seen(log).exchanges == small.exchanges


def test_a_second_result_answers_no_earlier_call_of_its_id() -> None:
    """Once the call that it repeats has left, a checkpoint still leaves the second result out, with calls before it and without."""
    for dropped in (Drop(index=3), Drop(index=1, stop=4)):
        log = Log()
        log.put(
            user("a"), model("", "x"), user("b"), model("", "x"), result("x"), user("c"), result("x"), model("done")
        )
        small = apply(seen(log), Plan(policy="any", drops=(dropped,)))
        log.put(commit(log, small))
        again = seen(log)
        assert again.exchanges == small.exchanges
        assert set(again.omissions) == set(small.omissions)
        assert Reason.DUPLICATE_RESULT in {gone.reason for gone in again.omissions}
