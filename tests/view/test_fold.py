"""The fold: exchanges are whole, nothing is left out without a reason, and what was seen does not change under what comes later."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palaver.log import (
    BranchSummary,
    Compaction,
    Custom,
    Derived,
    Instructions,
    Pin,
    Place,
    Quarantine,
    Run,
    Section,
    Toolset,
    ToolSpec,
)
from palaver.messages import (
    AssistantMessage,
    Message,
    Role,
    Speaker,
    StopReason,
    TextContent,
    ToolResultContent,
    UserMessage,
)
from palaver.testing.log_strategies import assert_closed, flat, sayings
from palaver.testing.logs import Log, model, result, sketch, system, text_of, user
from palaver.view import Reason, View, fold


def seen(log: Log, at: int | None = None, *, whole: bool = False) -> View:
    """Fold a log."""
    return fold(log.store, log.dialog, at, whole=whole)


def test_leading_system_messages_are_instructions_and_later_ones_are_not() -> None:
    """What the system says before anyone spoke is instructions; later it stands where it was said."""
    log = Log()
    log.put(system("be brief"), user("hi"), system("now be long"), user("go on"))

    view = seen(log)

    assert [text_of(block) for block in view.system] == ["be brief"]
    assert sketch(view) == ["user[hi]", "system[now be long]", "user[go on]"]


def test_fragments_of_a_response_are_one_turn_with_all_their_results() -> None:
    """A response recorded in pieces, with results between them, is one exchange in the order of its calls."""
    log = Log()
    log.put(user("hi"), model("I look", response="r1"), model("", "a", response="r1"), result("a"))
    log.put(model("", "b", response="r1"), result("b"), model("done", response="r2"))

    assert sketch(seen(log)) == [
        "user[hi]",
        "assistant[I look, call a, call b] tool[result a, result b]",
        "assistant[done]",
    ]


def test_results_stand_in_the_order_of_the_calls() -> None:
    """Parallel results may arrive in any order; the view shows them in the order of the calls."""
    log = Log()
    log.put(user("hi"), model("", "a", "b", "c"), result("c"), result("a"), result("b"))

    assert sketch(seen(log))[1] == "assistant[call a, call b, call c] tool[result a, result b, result c]"


def test_an_open_call_has_a_pending_result_that_is_not_stored() -> None:
    """A call without a result is answered in the view by a derived block, and marked open."""
    log = Log()
    log.put(user("hi"), model("", "a", "b"), result("b"))

    view = seen(log)

    assert sketch(view)[1] == "assistant[call a, call b] tool[pending a, result b]"
    assert view.exchanges[1].open
    assert log.store.last(log.dialog).open_calls == ("a",)


def test_a_call_given_up_reads_the_same_as_while_it_was_open() -> None:
    """The words for a missing result do not change when the conversation goes on: the earlier request stays a prefix."""
    log = Log()
    log.put(user("hi"), model("", "a"))
    before = seen(log).exchanges[1].turns[1].blocks[0]
    log.put(user("forget it"), model("fine"))
    after = seen(log).exchanges[1].turns[1].blocks[0]

    assert (before.derived, after.derived) == ("pending", "interrupted")
    assert before.content == after.content


def test_a_late_result_stands_where_it_came() -> None:
    """A result that comes after a newer response is shown as text where it came, never put back into what was sent already."""
    log = Log()
    log.put(user("hi"), model("", "a"), user("go on"), model("so be it", "b"), result("a", "late"), result("b"))

    view = seen(log)

    assert sketch(view)[1] == "assistant[call a] tool[interrupted a]"
    assert sketch(view)[3] == "assistant[so be it, call b] tool[result b]"
    assert "late" in sketch(view)[4]
    assert view.exchanges[4].turns[0].blocks[0].reason is Reason.UNPAIRED
    assert view.exchanges[4].turns[0].blocks[0].speaker is Speaker.TOOL


def test_a_second_result_of_a_call_is_left_out_with_its_handle() -> None:
    """At most one result of a call is shown; the other is an omission that can be recalled."""
    log = Log()
    log.put(user("hi"), model("", "a"), result("a", "first"), result("a", "second"))

    view = seen(log)

    assert text_of(view.exchanges[1].turns[1].blocks[0]) == "first"
    assert [(gone.reason, gone.handle) for gone in view.omissions] == [(Reason.DUPLICATE_RESULT, log.at(3, 0))]


def test_parallel_calls_recorded_one_by_one_without_ids_are_one_response() -> None:
    """Calls that follow unanswered calls directly belong to the same response, so that each recorded result stands with its call."""
    log = Log()
    log.put(user("hi"), model("both", "a"), model("", "b"))

    assert log.store.last(log.dialog).open_calls == ("a", "b")
    log.put(result("a"), result("b"), model("done"))
    assert sketch(seen(log)) == [
        "user[hi]",
        "assistant[both, call a, call b] tool[result a, result b]",
        "assistant[done]",
    ]


def test_d16_the_same_id_in_every_turn_is_paired_with_its_own_result() -> None:
    """D16: ids that restart every turn name different calls; each is paired with the result that follows it."""
    log = Log()
    for turn in range(3):
        log.put(user(f"u{turn}"), model("", "shell:0"), result("shell:0", f"r{turn}"))

    view = seen(log)

    assert [text_of(x.turns[1].blocks[0]) for x in view.exchanges if x.role is Role.ASSISTANT] == [
        "r0",
        "r1",
        "r2",
    ]
    assert view.omissions == ()


def test_the_same_id_twice_in_one_response_takes_results_in_order() -> None:
    """Two calls of one response with one id take the two results in the order in which they came."""
    log = Log()
    log.put(user("hi"), model("", "x", "x"), result("x", "one"), result("x", "two"))

    assert [text_of(block) for block in seen(log).exchanges[1].turns[1].blocks] == ["one", "two"]


def test_a_user_message_with_results_and_words_is_both() -> None:
    """Results in a user's message go to their calls; the words that came with them stay the user's."""
    log = Log()
    log.put(user("hi"), model("", "a"))
    log.put(UserMessage(contents=(ToolResultContent(id="a", content="ok"), TextContent("and stop"))))

    assert sketch(seen(log)) == ["user[hi]", "assistant[call a] tool[result a]", "user[and stop]"]


def test_d15_what_is_empty_is_left_out_with_a_reason() -> None:
    """D15: empty messages and failed responses never reach a provider, and each is an omission."""
    log = Log()
    log.put(
        user("hi"),
        AssistantMessage(contents=(), stop_reason=StopReason.ERROR, error="overloaded"),
        user("  "),
        model(""),
    )

    view = seen(log)

    assert sketch(view) == ["user[hi]"]
    assert [gone.reason for gone in view.omissions] == [Reason.FAILED_RESPONSE, Reason.EMPTY, Reason.EMPTY]


def test_newer_instructions_tools_and_models_replace_older_ones() -> None:
    """Of instructions and toolsets the newest is in force; the older is an omission."""
    log = Log()
    log.put(Instructions(sections=(Section(name="a", text="one"),)), Toolset(tools=(ToolSpec(name="t1"),)), user("hi"))
    log.put(Instructions(sections=(Section(name="a", text="two"),)), Toolset(tools=(ToolSpec(name="t2"),)))

    view = seen(log)

    assert [text_of(block) for block in view.system] == ["two"]
    assert [tool.name for tool in view.tools] == ["t2"]
    assert [gone.reason for gone in view.omissions] == [Reason.SUPERSEDED, Reason.SUPERSEDED]


def test_pins_protect_until_they_are_taken_away() -> None:
    """A pinned exchange must be in every view; the newest user message and open calls always."""
    log = Log()
    log.put(user("one"), model("a"), user("two"), model("b"), Pin(target=Place(dialog=log.dialog, seq=0)))
    assert seen(log).protected() == {0, 2}

    log.put(Pin(target=Place(dialog=log.dialog, seq=0), pinned=False), model("", "c"))
    assert seen(log).protected() == {2, 4}


def test_a_quarantined_block_is_a_placeholder_that_names_its_handle() -> None:
    """A block a provider refused costs the session one placeholder, never the session."""
    log = Log()
    log.put(user("poison"), model("ok"), Quarantine(target=Place(dialog=log.dialog, seq=0, block=0)))

    view = seen(log)

    assert str(log.at(0, 0)) in text_of(view.exchanges[0].turns[0].blocks[0])
    assert view.exchanges[0].turns[0].blocks[0].reason is Reason.QUARANTINED


def test_summaries_of_branches_are_derived_text_with_the_lowest_trust() -> None:
    """A branch summary reaches the model as derived text that is nobody's order."""
    log = Log()
    log.put(user("hi"), BranchSummary(summary="we tried X"), Custom(custom_type="telemetry", data={"a": 1}))

    view = seen(log)

    assert sketch(view) == ["user[hi]", "user[we tried X]"]
    assert view.exchanges[1].derived
    assert view.newest_user() == 0


def test_d24_a_fork_in_the_middle_of_a_turn_never_waits_for_the_parents_result() -> None:
    """D24: the child of a fork with an open call shows it as interrupted, and never receives the parent's result."""
    parent = Log()
    parent.put(user("hi"), model("", "a"))
    child = parent.fork()
    parent.put(result("a"))
    child.put(user("elsewhere"))

    view = seen(child)

    assert sketch(view) == ["user[hi]", "assistant[call a] tool[interrupted a]", "user[elsewhere]"]
    assert not any(exchange.open for exchange in view.exchanges)


def test_a_recorded_compaction_shows_what_that_agent_saw_and_whole_shows_all() -> None:
    """An imported compaction is in force by default; `whole` passes over it; before it, the view is as it was."""
    log = Log()
    log.put(user("one"), model("a"), user("two"), model("b"))
    before = seen(log)
    log.put(
        Compaction(
            base=3,
            pieces=(Derived(text="SUMMARY", label="summary"), Run(dialog=log.dialog, start=2, stop=4)),
            foreign=True,
        ),
        user("three"),
    )

    assert sketch(seen(log)) == ["user[SUMMARY]", "user[two]", "assistant[b]", "user[three]"]
    assert sketch(seen(log, whole=True)) == ["user[one]", "assistant[a]", "user[two]", "assistant[b]", "user[three]"]
    assert seen(log, 3) == before


# --- laws on arbitrary logs ---


@given(sayings())
def test_law_1_every_view_is_closed(said: list[Message]) -> None:
    """Law 1: whatever was appended, calls and results are paired in the view."""
    log = Log()
    log.put(*said)

    assert_closed(seen(log))


@given(sayings())
def test_law_9_every_entry_is_shown_or_is_an_omission(said: list[Message]) -> None:
    """Law 9: no entry leaves the view without an omission that names it."""
    log = Log()
    log.put(*said)
    view = seen(log)

    shown = {seq for x in view.exchanges for run in x.runs for seq in range(run.start, run.stop)}
    shown |= {run.start for run in view.state}
    gone = {handle.seq for omission in view.omissions for handle in omission.handles()}
    assert shown | gone == set(range(len(said)))


@given(sayings())
def test_law_7_what_was_sent_is_a_prefix_of_what_is_sent_later(said: list[Message]) -> None:
    """Law 7: once no call is open, appending a message leaves all that was in the view where it was."""
    log = Log()
    earlier: list[object] = []
    settled = True
    for message in said:
        fragment = message.response_id is not None and message.response_id == log.store.last(log.dialog).response
        log.put(message)
        view = seen(log)
        if settled and not fragment:
            assert flat(view)[: len(earlier)] == earlier
        earlier, settled = flat(view), not any(x.open for x in view.exchanges)


@given(sayings(), st.integers(0, 13))
def test_law_6_a_past_view_is_what_it_was(said: list[Message], at: int) -> None:
    """Law 6: the view at an entry is the view that was computed when the entry was the newest."""
    log = Log()
    log.put(*said[: at + 1])
    then = seen(log)
    log.put(*said[at + 1 :])

    assert seen(log, then.at) == then
