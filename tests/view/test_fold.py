"""The fold: exchanges are whole, nothing is left out without a reason, and what was seen does not change under what comes later."""

from __future__ import annotations

from palaver.log import (
    Compaction,
    Derived,
    Run,
    Span,
)
from palaver.messages import (
    AssistantMessage,
    Speaker,
    StopReason,
    TextContent,
    ToolResultContent,
    UserMessage,
)
from palaver.testing.logs import Log, model, result, system, user
from palaver.view import Reason
from tests.sketches import sketch, text_of
from tests.view.growing import seen


def test_empty_messages_are_omitted_with_a_reason() -> None:
    """D15: empty messages and failed responses never reach a provider, and each is an omission."""
    log = Log()
    failed = AssistantMessage(contents=(), stop_reason=StopReason.ERROR, error="overloaded")
    log.put(user("hi"), failed, user("  "), model(""))
    assert sketch(seen(log)) == ["user[hi]"]
    assert [gone.reason for gone in seen(log).omissions] == [Reason.FAILED_RESPONSE, Reason.EMPTY, Reason.EMPTY]


def test_turn_names_the_model_and_provider_of_its_response() -> None:
    """What only its provider can read goes back by these names."""
    log = Log()
    log.put(user("hi"), AssistantMessage(contents=(TextContent(content="ho"),), model="m", provider="p"))
    (turn,) = seen(log).exchanges[1].turns
    assert (turn.model, turn.provider) == ("m", "p")


def test_fork_that_parts_a_pair_says_so() -> None:
    """R76: the call is an omission with its handle; the derived result says that it is elsewhere and claims no error. A window has the same rule."""
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
        assert answer.text() == "The result of this call is not part of this branch."
    given_up = seen(fork).exchanges[1].turns[1].blocks[0].content
    assert isinstance(given_up, ToolResultContent)
    assert given_up.is_error, "the first call was given up before the fork"


def test_equal_response_ids_in_two_turns_never_merge() -> None:
    """Servers that give a constant id, or restart it, get two responses; each result goes to its own."""
    for between in (user("q2"), system("be brief")):
        log = Log()
        log.put(user("q1"), model("a1", "x", response="r"), result("x", "one"), model("more", response="r"))
        log.put(between, model("a2", "x", response="r"), result("x", "two"))
        view = seen(log)
        assert [text_of(x.turns[1].blocks[0]) for x in view.exchanges if len(x.turns) == 2] == ["one", "two"]
        assert sketch(view)[1] == "assistant[a1, call x, more] tool[result x]"
        assert [header.number for header in log.store.headers(log.dialog)] == [1, 2, 3, 3, 4, 5, 6]


def test_whole_responses_never_merge() -> None:
    """An answer is a whole response unless its recorder writes fragments: a server's constant id joins nothing, not even within a turn."""
    log = Log()
    answers = [model("", "x"), model("done")]
    same = [each.model_copy(update={"response_id": "chatcmpl-7"}) for each in answers]
    log.put(user("q"), same[0], result("x", "one"), same[1])
    assert [header.number for header in log.store.headers(log.dialog)] == [1, 2, 3, 4]
    assert sketch(seen(log)) == ["user[q]", "assistant[call x] tool[result x]", "assistant[done]"]


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


def test_imported_compaction_is_in_force_and_whole_ignores_it() -> None:
    """An imported compaction is in force by default; `whole` passes over it; before it, the view is as it was."""
    log = Log()
    log.put(user("one"), model("a"), user("two"), model("b"))
    before = seen(log)
    pieces = (Derived(text="SUMMARY", label="summary"), Run(dialog=log.dialog, start=2, stop=4))
    log.put(Compaction(base=3, pieces=pieces, foreign=True), user("three"))
    assert sketch(seen(log)) == ["user[SUMMARY]", "user[two]", "assistant[b]", "user[three]"]
    assert sketch(seen(log, whole=True)) == ["user[one]", "assistant[a]", "user[two]", "assistant[b]", "user[three]"]
    assert seen(log, 3) == before
