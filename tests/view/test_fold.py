"""The fold: exchanges are whole, nothing is left out without a reason, and what was seen does not change under what comes later."""

from __future__ import annotations

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
    Span,
    Toolset,
    ToolSpec,
)
from palaver.messages import (
    AssistantMessage,
    Role,
    Speaker,
    StopReason,
    TextContent,
    ToolResultContent,
    UserMessage,
)
from palaver.testing.logs import Log, model, result, sketch, system, text_of, user
from palaver.view import Reason
from tests.view.growing import seen


def test_leading_system_messages_are_instructions() -> None:
    """What the system says before anyone spoke is instructions; later it stands where it was said."""
    log = Log()
    log.put(system("be brief"), user("hi"), system("now be long"), user("go on"))

    view = seen(log)

    assert [text_of(block) for block in view.system] == ["be brief"]
    assert sketch(view) == ["user[hi]", "system[now be long]", "user[go on]"]


def test_fragments_of_a_response_are_one_turn() -> None:
    """A response recorded in pieces, with results between them, is one exchange in the order of its calls."""
    log = Log()
    log.put(user("hi"), model("I look", response="r1"), model("", "a", response="r1"), result("a"))
    log.put(model("", "b", response="r1"), result("b"), model("done", response="r2"))

    assert sketch(seen(log)) == [
        "user[hi]",
        "assistant[I look, call a, call b] tool[result a, result b]",
        "assistant[done]",
    ]


def test_results_have_the_order_of_the_calls() -> None:
    """Parallel results may arrive in any order; a call without a result is answered by a derived block, and the exchange is open."""
    log = Log()
    log.put(user("hi"), model("", "a", "b", "c"), result("c"), result("b"))

    view = seen(log)

    assert sketch(view)[1] == "assistant[call a, call b, call c] tool[pending a, result b, result c]"
    assert view.exchanges[1].open
    assert log.store.last(log.dialog).open_calls == ("a",)


def test_abandoned_call_reads_as_while_it_was_open() -> None:
    """The words for a missing result do not change when the conversation goes on: the earlier request stays a prefix."""
    log = Log()
    log.put(user("hi"), model("", "a"))
    before = seen(log).exchanges[1].turns[1].blocks[0]
    log.put(user("forget it"), model("fine"))
    after = seen(log).exchanges[1].turns[1].blocks[0]

    assert (before.derived, after.derived) == ("pending", "interrupted")
    assert before.content == after.content


def test_late_result_is_shown_where_it_came() -> None:
    """A result that comes after a newer response is shown as text where it came, never put back into what was sent already."""
    log = Log()
    log.put(user("hi"), model("", "a"), user("go on"), model("so be it", "b"), result("a", "late"), result("b"))

    view = seen(log)

    assert sketch(view)[1] == "assistant[call a] tool[interrupted a]"
    assert sketch(view)[3] == "assistant[so be it, call b] tool[result b]"
    assert "late" in sketch(view)[4]
    assert view.exchanges[4].turns[0].blocks[0].reason is Reason.UNPAIRED
    assert view.exchanges[4].turns[0].blocks[0].speaker is Speaker.TOOL


def test_second_result_of_a_call_is_omitted_with_its_handle() -> None:
    """At most one result of a call is shown; the other is an omission that can be recalled."""
    log = Log()
    log.put(user("hi"), model("", "a"), result("a", "first"), result("a", "second"))

    view = seen(log)

    assert text_of(view.exchanges[1].turns[1].blocks[0]) == "first"
    assert [(gone.reason, gone.handle) for gone in view.omissions] == [(Reason.DUPLICATE_RESULT, log.at(3, 0))]


def test_calls_recorded_one_by_one_are_one_response() -> None:
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


def test_d16_repeated_call_ids_pair_with_their_own_results() -> None:
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


def test_same_id_twice_in_a_response_takes_results_in_order() -> None:
    """Two calls of one response with one id take the two results in the order in which they came."""
    log = Log()
    log.put(user("hi"), model("", "x", "x"), result("x", "one"), result("x", "two"))

    assert [text_of(block) for block in seen(log).exchanges[1].turns[1].blocks] == ["one", "two"]


def test_d15_empty_messages_are_omitted_with_a_reason() -> None:
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


def test_newer_instructions_and_tools_replace_older_ones() -> None:
    """Of instructions and toolsets the newest is in force; the older is an omission."""
    log = Log()
    log.put(Instructions(sections=(Section(name="a", text="one"),)), Toolset(tools=(ToolSpec(name="t1"),)), user("hi"))
    log.put(Instructions(sections=(Section(name="a", text="two"),)), Toolset(tools=(ToolSpec(name="t2"),)))

    view = seen(log)

    assert [text_of(block) for block in view.system] == ["two"]
    assert [tool.name for tool in view.tools] == ["t2"]
    assert [gone.reason for gone in view.omissions] == [Reason.SUPERSEDED, Reason.SUPERSEDED]


def test_law_10_pins_protect_until_they_are_taken_away() -> None:
    """A pinned exchange must be in every view; the newest user message and open calls always."""
    log = Log()
    log.put(user("one"), model("a"), user("two"), model("b"), Pin(target=Place(dialog=log.dialog, seq=0)))
    assert seen(log).protected() == {0, 2}

    log.put(Pin(target=Place(dialog=log.dialog, seq=0), pinned=False), model("", "c"))
    assert seen(log).protected() == {2, 4}


def test_quarantined_block_is_a_placeholder_with_its_handle() -> None:
    """A block a provider refused costs the session one placeholder, never the session."""
    log = Log()
    log.put(user("poison"), model("ok"), Quarantine(target=Place(dialog=log.dialog, seq=0, block=0)))

    view = seen(log)

    assert str(log.at(0, 0)) in text_of(view.exchanges[0].turns[0].blocks[0])
    assert view.exchanges[0].turns[0].blocks[0].reason is Reason.QUARANTINED


def test_branch_summary_is_derived_text_with_lowest_trust() -> None:
    """A branch summary reaches the model as derived text that is nobody's order."""
    log = Log()
    log.put(user("hi"), BranchSummary(summary="we tried X"), Custom(custom_type="telemetry", data={"a": 1}))

    view = seen(log)

    assert sketch(view) == ["user[hi]", "user[we tried X]"]
    assert view.exchanges[1].derived == "summary"
    assert view.newest_user() == 0


def test_d24_fork_in_a_turn_never_waits_for_the_parents_result() -> None:
    """D24: the child of a fork with an open call shows it as interrupted, and never receives the parent's result."""
    parent = Log()
    parent.put(user("hi"), model("", "a"))
    child = parent.fork()
    parent.put(result("a"))
    child.put(user("elsewhere"))

    view = seen(child)

    assert sketch(view) == ["user[hi]", "assistant[call a] tool[interrupted a]", "user[elsewhere]"]
    assert not any(exchange.open for exchange in view.exchanges)


def test_r76_fork_that_parts_a_pair_says_so() -> None:
    """The call is an omission with its handle; the derived result says that it is elsewhere and claims no error. A window has the same rule."""
    parent = Log()
    parent.put(user("hi"), model("", "a"), user("never mind"), model("", "b"))
    fork, window = parent.fork(), Log(parent, (Span(parent.dialog, 2, 4),))
    parent.put(result("b"))

    for view in (seen(fork), seen(window)):
        (gone,) = view.omissions
        assert (gone.reason, gone.handle) == (Reason.PARTED, parent.at(3, 0))
        answer = view.exchanges[-1].turns[1].blocks[0].content
        assert isinstance(answer, ToolResultContent)
        assert not answer.is_error
        assert "branch" in answer.text()
    given_up = seen(fork).exchanges[1].turns[1].blocks[0].content
    assert isinstance(given_up, ToolResultContent)
    assert given_up.is_error, "the first call was given up before the fork"


def test_fork_may_answer_an_inherited_call() -> None:
    """A result that the branch itself records goes to the call, and nothing is parted any more."""
    parent = Log()
    parent.put(user("hi"), model("", "a"))
    child = parent.fork()
    child.put(result("a", "mine"))

    assert sketch(seen(child)) == ["user[hi]", "assistant[call a] tool[result a]"]
    assert seen(child).omissions == ()


def test_equal_response_ids_in_two_turns_never_merge() -> None:
    """Servers that give a constant id, or restart it, get two responses; each result goes to its own."""
    for between in (user("q2"), system("be brief")):
        log = Log()
        log.put(user("q1"), model("a1", "x", response="r"), result("x", "one"), model("more", response="r"))
        log.put(between, model("a2", "x", response="r"), result("x", "two"))

        texts = [text_of(x.turns[1].blocks[0]) for x in seen(log).exchanges if len(x.turns) == 2]
        assert texts == ["one", "two"]
        assert sketch(seen(log))[1] == "assistant[a1, call x, more] tool[result x]"
        assert [header.number for header in log.store.headers(log.dialog)] == [1, 2, 3, 3, 4, 5, 6]


def test_observation_of_a_text_protocol_is_no_user_message() -> None:
    """What the importer recorded as a tool's words is not the user's newest message, and stays while the model has not answered it."""
    log = Log()
    output = UserMessage(contents=(TextContent("OBSERVATION: ok"),), speaker=Speaker.TOOL)
    log.put(user("fix it"), model("ls"), output)

    view = seen(log)
    assert [x.speaker for x in view.exchanges] == [Speaker.HUMAN, Speaker.MODEL, Speaker.TOOL]
    assert not any(x.loaded for x in view.exchanges), "headers say who speaks"
    assert view.newest_user() == 0
    assert view.protected() == {0, 2}
    log.put(model("done"))
    assert seen(log).protected() == {0}


def test_results_and_sizes_are_known_from_headers() -> None:
    """Handles and sizes of results come without reading a body; an entry with two results shares its size."""
    log = Log()
    log.put(user("hi"), model("", "a", "b"))
    both = (TextContent("so:"), ToolResultContent(id="b", content="b"), ToolResultContent(id="a", content="a"))
    header = log.put(UserMessage(contents=both))[0]

    exchange = seen(log).exchanges[1]
    size = header.size // 2
    assert exchange.results == ((log.at(2, 2), size), (log.at(2, 1), size))
    assert not exchange.loaded
    assert dict(exchange.shape())[log.at(2, 1)] == "r"


def test_user_message_with_result_and_words_is_both() -> None:
    """Results in a user's message go to their calls, the words stay the user's; each block is found in its own exchange."""
    log = Log()
    log.put(user("hi"), model("", "a"))
    log.put(UserMessage(contents=(ToolResultContent(id="a", content="ok"), TextContent("and stop"))))

    view = seen(log)
    assert sketch(view) == ["user[hi]", "assistant[call a] tool[result a]", "user[and stop]"]
    assert [view.find(log.at(2, block)) for block in (0, 1)] == [1, 2]
    assert view.find(log.at(0)) == 0
    assert view.find(log.at(9)) is None


def test_imported_compaction_is_in_force_and_whole_ignores_it() -> None:
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
