"""Plans and checkpoints: a plan makes a valid, smaller view, and a checkpoint gives it back."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from palaver.errors import InvalidInput
from palaver.log import Pin, Place
from palaver.messages import Message, TextContent, ToolResultContent, UserMessage
from palaver.testing.log_strategies import assert_closed, flat, plans, sayings
from palaver.testing.logs import Log, model, result, sketch, user
from palaver.view import Drop, Plan, Reason, Remove, Rewrite, View, apply, checkpoint, fold, held

DECIDED = {Reason.OVER_BUDGET, Reason.FOLDED, Reason.COMPACTED, Reason.MANAGER}


def seen(log: Log) -> View:
    """Fold a log."""
    return fold(log.store, log.dialog)


def write_down(log: Log, view: View) -> None:
    """Append the checkpoint of a view."""
    log.put(checkpoint(view, held(log.store, log.dialog, view.at), policy="any", tokens_before=2, tokens_after=1))


@given(st.data(), sayings())
def test_law_1_a_plan_cannot_make_a_view_invalid(data: st.DataObject, said: list[Message]) -> None:
    """Law 1: any legal plan on any view leaves calls and results paired."""
    log = Log()
    log.put(*said)

    assert_closed(apply(seen(log), data.draw(plans(seen(log)))))


@given(st.data(), sayings(), sayings())
def test_law_6_a_checkpoint_gives_the_view_back_and_later_entries_follow_it(
    data: st.DataObject, said: list[Message], later: list[Message]
) -> None:
    """Law 6: folding a checkpoint gives the view that was written down, and later entries follow as they would have."""
    log = Log()
    log.put(*said)
    view = seen(log)
    plan = data.draw(plans(view))
    assume(plan)
    small = apply(view, plan)
    write_down(log, small)
    again = seen(log)

    assert flat(again) == flat(small)
    assert [x.runs for x in again.exchanges] == [x.runs for x in small.exchanges]
    assert set(small.omissions) <= set(again.omissions)

    log.put(user("between"), *(message.model_copy(update={"response_id": None}) for message in later))
    assert flat(seen(log))[: len(flat(small))] == flat(small) or any(x.open for x in small.exchanges)


@given(st.data(), sayings())
def test_law_9_every_omission_of_a_plan_names_entries_the_log_holds(data: st.DataObject, said: list[Message]) -> None:
    """Law 9: what a plan left out is named by handles, and each names an entry that is there."""
    log = Log()
    log.put(*said)
    view = seen(log)
    small = apply(view, data.draw(plans(view)))

    shown = {seq for x in small.exchanges for run in x.runs for seq in range(run.start, run.stop)}
    shown |= {run.start for run in small.state}
    gone = {handle.seq for omission in small.omissions for handle in omission.handles()}
    assert shown | gone == set(range(len(said)))
    for omission in small.omissions:
        for handle in omission.handles():
            assert log.store.body(handle.dialog, handle.seq)


@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])  # to make a log smaller takes minutes
@given(st.data(), sayings())
def test_no_entry_leaves_twice(data: st.DataObject, said: list[Message]) -> None:
    """What a plan takes out, and what says nothing, is named by one omission: the messages they count are those that are no longer shown."""
    log = Log()
    log.put(*said)
    view = seen(log)
    small = apply(view, data.draw(plans(view)))
    once = [each for each in small.omissions if each.span is not None and each.reason in {Reason.EMPTY, *DECIDED}]
    named = Counter(handle for each in once for handle in each.handles())
    assert set(named.values()) <= {1}
    left = sum(x.messages for x in view.exchanges) - sum(x.messages for x in small.exchanges)
    assert sum(each.messages for each in small.omissions if each.reason in DECIDED) == left


def test_law_10_what_every_view_must_hold_cannot_be_dropped() -> None:
    """Law 10: a plan that drops the newest user message, a pin or an open call is refused."""
    log = Log()
    log.put(user("one"), model("a"), user("two"), model("", "c"), Pin(target=Place(dialog=log.dialog, seq=0)))
    view = seen(log)

    for index in (0, 2, 3):
        with pytest.raises(InvalidInput, match="every view must hold"):
            apply(view, Plan(policy="bad", drops=(Drop(index=index),)))


def test_a_call_cannot_be_rewritten_and_a_result_cannot_be_removed() -> None:
    """A plan changes text and result content only, so that no pair can be parted."""
    log = Log()
    log.put(user("hi"), model("", "a"), result("a"), user("go"))
    view = seen(log)

    with pytest.raises(InvalidInput, match="call stays whole"):
        apply(view, Plan(policy="bad", rewrites=(Rewrite(target=log.at(1, 0), text="x", reason=Reason.SHORTENED),)))
    with pytest.raises(InvalidInput, match="result stays"):
        apply(view, Plan(policy="bad", removes=(Remove(target=log.at(2, 0), reason=Reason.SHORTENED),)))


def test_dropping_one_of_two_exchanges_that_share_an_entry_leaves_the_other_as_it_is() -> None:
    """A user's message that carried a result and words belongs to two exchanges; dropping one keeps the other, after a checkpoint too."""
    log = Log()
    log.put(user("hi"), model("", "a"))
    log.put(UserMessage(contents=(ToolResultContent(id="a", content="ok"), TextContent("and stop"))), user("go"))
    small = apply(seen(log), Plan(policy="any", drops=(Drop(index=1),)))
    write_down(log, small)

    assert sketch(small) == ["user[hi]", "user[and stop]", "user[go]"]
    assert sketch(seen(log)) == sketch(small)
    assert log.at(2, 0) in {handle for omission in seen(log).omissions for handle in omission.handles()}


def test_checkpoints_on_checkpoints_stay_small_and_true() -> None:
    """After many compactions the newest alone describes the view, and it does not grow with their number."""
    log = Log()
    sizes = []
    for turn in range(33):
        log.put(user(f"u{turn}"), model("", f"c{turn}"), result(f"c{turn}"), model(f"a{turn}"))
        view = seen(log)
        if len(view.exchanges) > 8:
            write_down(log, apply(view, Plan(policy="any", drops=tuple(Drop(index=i) for i in range(4)))))
            sizes.append(log.store.last(log.dialog).size)

    assert_closed(seen(log))
    assert sizes[-1] < 2 * sizes[0]
