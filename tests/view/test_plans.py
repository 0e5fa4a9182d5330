"""Plans and checkpoints: a plan makes a valid, smaller view, and a checkpoint gives it back."""

from __future__ import annotations

import pytest

from palaver.errors import InvalidInput
from palaver.log import Instructions, Pin, Place, Quarantine, Section, Span
from palaver.messages import AssistantMessage, TextContent, ThinkingContent, ToolResultContent, UserMessage
from palaver.testing.logs import Log, assert_closed, model, result, sketch, user
from palaver.view import Drop, Plan, Reason, Remove, Rewrite, apply
from tests.view.growing import commit, seen


def test_law_10_protected_exchanges_cannot_be_dropped() -> None:
    """Law 10: a plan that drops the newest user message, a pin or an open call is refused."""
    log = Log()
    log.put(user("one"), model("a"), user("two"), model("", "c"), Pin(target=Place(dialog=log.dialog, seq=0)))
    view = seen(log)

    for index in (0, 2, 3):
        with pytest.raises(InvalidInput, match="every view must hold"):
            apply(view, Plan(policy="bad", drops=(Drop(index=index),)))


def test_calls_stay_whole_and_results_stay() -> None:
    """A plan changes text and result content only, so that no pair can be parted."""
    log = Log()
    log.put(user("hi"), model("", "a"), result("a"), user("go"))
    view = seen(log)

    with pytest.raises(InvalidInput, match="call stays whole"):
        apply(view, Plan(policy="bad", rewrites=(Rewrite(target=log.at(1, 0), text="x", reason=Reason.SHORTENED),)))
    with pytest.raises(InvalidInput, match="result stays"):
        apply(view, Plan(policy="bad", removes=(Remove(target=log.at(2, 0), reason=Reason.SHORTENED),)))


def test_dropping_one_exchange_of_a_shared_entry_keeps_the_other() -> None:
    """A user's message that carried a result and words belongs to two exchanges; dropping one keeps the other, after a checkpoint too."""
    log = Log()
    log.put(user("hi"), model("", "a"))
    log.put(UserMessage(contents=(ToolResultContent(id="a", content="ok"), TextContent("and stop"))), user("go"))
    small = apply(seen(log), Plan(policy="any", drops=(Drop(index=1),)))
    log.put(commit(log, small))

    assert sketch(small) == ["user[hi]", "user[and stop]", "user[go]"]
    assert sketch(seen(log)) == sketch(small)
    assert log.at(2, 0) in {handle for omission in seen(log).omissions for handle in omission.handles()}


def test_checkpoints_on_checkpoints_stay_small() -> None:
    """After many compactions the newest alone describes the view, and it does not grow with their number."""
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


def spans(log: Log, plan: Plan) -> list[tuple[int, int]]:
    """Return the omitted spans of a plan."""
    return [(gone.span.start, gone.span.stop) for gone in apply(seen(log), plan).omissions if gone.span is not None]


def test_range_of_exchanges_is_one_omission() -> None:
    """Neighbours join over entries that no view shows and over empty messages; what stays in the view or in force parts them."""
    log = Log()
    log.put(user("0"), model("1"), user(" "), model("3"), user("4"), Pin(target=Place(dialog=log.dialog, seq=0)))
    log.put(model("6"), Instructions(sections=(Section(name="a", text="b"),)), user("8"), model("9"), user("10"))

    assert spans(log, Plan(policy="p", drops=(Drop(index=1, stop=7),))) == [(1, 5), (6, 7), (8, 10)]
    (gone,) = apply(seen(log), Plan(policy="p", drops=(Drop(index=1, stop=3),))).omissions
    assert (gone.messages, gone.size) == (2, sum(log.store.header(log.dialog, seq).size for seq in (1, 3)))


def test_second_plan_extends_the_omission_of_the_first() -> None:
    """After many compactions by one policy the omission is still one."""
    log = Log()
    log.put(*(message for turn in range(6) for message in (user(f"u{turn}"), model(f"m{turn}"))))
    for _ in range(3):
        log.put(commit(log, apply(seen(log), Plan(policy="p", drops=(Drop(index=0, stop=2),)))))
    (gone,) = seen(log).omissions
    assert (gone.span, gone.messages) == (Span(log.dialog, 0, 6), 6)


def test_fork_window_is_no_part_of_an_omission() -> None:
    """Entries that a fork did not take are not omitted by a plan on both sides of them."""
    parent = Log()
    parent.put(*(user(str(number)) for number in range(9)))
    child = Log(parent, (Span(parent.dialog, 0, 2), Span(parent.dialog, 6, 9)))

    assert spans(child, Plan(policy="p", drops=(Drop(index=0, stop=4),))) == [(0, 2), (6, 8)]


def test_plan_outside_the_view_is_refused() -> None:
    """Indexes and handles that the view does not hold are errors, and so is a turn without blocks."""
    log = Log()
    log.put(user("hi"), AssistantMessage(contents=(ThinkingContent("hm"), TextContent("yes"))), user("go"))
    with pytest.raises(InvalidInput, match="the view has 3"):
        apply(seen(log), Plan(policy="bad", drops=(Drop(index=1, stop=4),)))
    with pytest.raises(InvalidInput, match="no exchange of the view"):
        apply(seen(log), Plan(policy="bad", removes=(Remove(target=log.at(1, 5), reason=Reason.SHORTENED),)))
    both = tuple(Remove(target=log.at(1, block), reason=Reason.OVER_BUDGET) for block in (0, 1))
    with pytest.raises(InvalidInput, match="drop the exchange"):
        apply(seen(log), Plan(policy="bad", removes=both))
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


def test_apply_reads_no_body() -> None:
    """Dropping, rewriting and inserting need headers only."""
    log = Log()
    log.put(user("hi"), model("", "a"), result("a", "long"), user("go"))
    rewrite = Rewrite(target=log.at(2, 0), text="short", reason=Reason.SHORTENED)
    view = apply(seen(log), Plan(policy="p", drops=(Drop(index=0),), rewrites=(rewrite,)))
    assert not any(exchange.loaded for exchange in view.exchanges)
    assert sketch(view) == ["assistant[call a] tool[result a]", "user[go]"]
