"""The record: what code reads from calls and words, and how it is told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.context.record import Command, Facts, File, Recorder, Said, Trouble, told
from palaver.context.record.asks import rules
from palaver.context.work.deeds import deed
from palaver.context.work.outcomes import error_line, outcome
from palaver.errors import InvalidInput
from palaver.messages import AssistantMessage, Content, TextContent, ToolCallContent, ToolMessage, ToolResultContent
from palaver.testing.logs import Log, model, result, system, user
from palaver.view import Insert, Plan, Reason, Rewrite, View, apply
from tests.context.helper import COUNTER, commit, fitted, seen, texts


def call(name: str, **args: Any) -> ToolCallContent:  # noqa: ANN401 - any argument
    """Make a call."""
    return ToolCallContent(id="c", name=name, args=args)


@pytest.mark.parametrize(
    ("made", "read", "wrote"),
    [
        (call("Read", file_path="/a/b.py"), ["/a/b.py"], []),
        (call("Write", file_path="/a/b.py", content="x"), [], ["/a/b.py"]),
        (call("MultiEdit", file_path="b.py"), [], ["b.py"]),
        (call("str_replace_editor", command="view", path="/r/a.py"), ["/r/a.py"], []),
        (call("str_replace_editor", command="str_replace", path="/r/a.py"), [], ["/r/a.py"]),
        (call("bash", command="cat src/a.py | head -5"), ["src/a.py"], []),
        (call("bash", command="sed -n 1,5p a.py && sed -i s/x/y/ b.py"), ["a.py"], ["b.py"]),
        (call("bash", command="echo hi > out.txt; echo more >> log/x.log 2>/dev/null"), [], ["out.txt", "log/x.log"]),
        (
            call("bash", command="cat > new.py <<'EOF'\nimport os\ncat fake.py\nEOF\ncat real.py"),
            ["real.py"],
            ["new.py"],
        ),
        (call("shell", command=["bash", "-lc", "cat a.md"]), ["a.md"], []),
        (call("shell", command=["cat", "a.md"]), ["a.md"], []),
        (
            call("apply_patch", input="*** Begin Patch\n*** Update File: a/b.py\n*** Add File: c.py\n*** End Patch"),
            [],
            ["a/b.py", "c.py"],
        ),
        (call("bash", command="rm old.py; mv a.py b.py"), [], ["old.py", "a.py", "b.py"]),
        (call("book_flight", path_to="x", number=3), [], []),
        (call("bash", command="echo 'an open quote"), [], []),
    ],
)
def test_files_come_from_arguments_and_common_commands(
    made: ToolCallContent, read: list[str], wrote: list[str]
) -> None:
    """What a call read and wrote, by the names of its arguments, by patches in them, and by the usual shell commands."""
    done = deed(made)
    assert (list(done.read), list(done.wrote)) == (read, wrote)


@given(
    name=st.text(max_size=8),
    args=st.dictionaries(
        st.sampled_from(["command", "cmd", "path", "file", "paths"]),
        st.one_of(st.text(), st.lists(st.text()), st.integers()),
    ),
)
def test_any_call_can_be_read(name: str, args: dict[str, Any]) -> None:
    """No arguments, however odd, are more than the deed can bear; what it says is short."""
    done = deed(ToolCallContent(id="c", name=name, args=args))
    assert len(done.of) <= 310


@pytest.mark.parametrize(
    ("text", "error", "ended"),
    [
        ("fine", False, "ok"),
        ("oops", True, "failed"),
        ("Exit code: 0\nWall time: 1s\nOutput:\nhi", False, "ok"),
        ("<returncode>127</returncode>\n<output>\nsh: x: not found", False, "exit 127"),
        ("a\nb\n[The command completed with exit code 2.]", False, "exit 2"),
        ("Process exited with code 1", True, "exit 1"),
        ("#!/bin/sh\nif true; then\n  exit 1\nfi", False, "ok"),
        ("", False, "ok"),
    ],
)
def test_how_a_call_ended_comes_from_the_mark_and_the_exit_code(text: str, error: bool, ended: str) -> None:
    """The harness's exit code at either end decides, else the error mark; a script that says exit is no exit."""
    assert outcome(ToolResultContent(id="c", content=text, is_error=error)) == ended


def test_the_line_of_an_error_is_the_last_that_names_one() -> None:
    """Of a traceback it is the exception; of a silent failure nothing."""
    text = "Traceback (most recent call last):\n  File x\nValueError: bad value\n\n"
    assert error_line(ToolResultContent(id="c", content=text)) == "ValueError: bad value"
    assert error_line(ToolResultContent(id="c", content="")) == ""


def test_constraints_are_the_users_sentences_verbatim_and_code_is_not_read() -> None:
    """Sentences with must, never, only and the like; not those between fences, not those without."""
    text = (
        "Please fix it. Never push to main! You must use tabs.\n```\nalways = 1\n```\n- only touch src/\nThanks a lot."
    )
    assert list(rules(text)) == ["Never push to main!", "You must use tabs.", "- only touch src/"]


def work(name: str, answer: str, *, failed: bool = False, **args: Any) -> list[Any]:  # noqa: ANN401 - any argument
    """Give a call and its result."""
    made = ToolCallContent(id=name, name="bash", args=args)
    reply = ToolResultContent(id=name, content=answer, is_error=failed, name="bash")
    return [AssistantMessage(contents=(made,)), ToolMessage.from_result(reply)]


def session() -> Log:
    """A small session: a goal, a rule, a failing command that later succeeds, files, a call without a result."""
    log = Log()
    log.put(system("s"), user("Make the tests pass. Do not edit the tests."))
    log.put(*work("a", "E  AssertionError: 3 != 4\nexit code: 1", command="pytest -q"))
    log.put(*work("b", "text", command="cat src/a.py"))
    log.put(*work("c", "", command="sed -i s/3/4/ src/a.py"))
    log.put(*work("d", "1 passed\nexit code: 0", command="pytest -q"))
    log.put(*work("e", "bash: frob: command not found", failed=True, command="frob"))
    log.put(model("", "f"), user("And a changelog."), model("All green."))
    return log


def test_a_recorder_keeps_what_was_said_and_done() -> None:
    """Goal and asks verbatim, the rule, files with what was done to them, commands with their last end, errors open and closed."""
    log = session()
    facts = Recorder().take(seen(log).exchanges).facts()
    place = f"{log.dialog}:"
    assert facts.goal == Said(f"{place}1:0", "Make the tests pass. Do not edit the tests.")
    assert facts.asks == (Said(f"{place}13:0", "And a changelog."),)
    assert [said.text for said in facts.rules] == ["Do not edit the tests."]
    assert facts.files == (File("src/a.py", read=f"{place}4:0", wrote=f"{place}6:0"),)
    assert [(command.run, command.ended, command.times) for command in facts.commands] == [
        ("cat src/a.py", "ok", 1),
        ("sed -i s/3/4/ src/a.py", "ok", 1),
        ("pytest -q", "ok", 2),
        ("frob", "failed", 1),
        ("f", "no result", 1),
    ]
    assert facts.troubles == (
        Trouble(f"{place}3:0", "pytest -q", "E  AssertionError: 3 != 4", closed=f"{place}9:0"),
        Trouble(f"{place}11:0", "frob", "bash: frob: command not found"),
    )
    assert [said.text for said in facts.unanswered] == ["f"]
    assert facts.last == Said(f"{place}14:0", "All green.")


def test_a_record_goes_on_from_facts_as_if_it_had_seen_everything() -> None:
    """Cut anywhere, written down as JSON and gone on from: the same facts as in one go."""
    exchanges = seen(session()).exchanges
    whole = Recorder().take(exchanges).facts()
    for cut in range(len(exchanges) + 1):
        first = Recorder().take(exchanges[:cut]).facts()
        again = Recorder(Facts.from_json(first.to_json())).take(exchanges[cut:]).facts()
        assert again == whole
        assert again.to_json() == whole.to_json()


def test_a_record_goes_back_to_the_sources_of_what_is_shown_in_another_form() -> None:
    """An output that was set aside is read from the log, where the log can be read."""
    log = session()
    view = seen(log)
    aside = apply(
        view, Plan(policy="x", rewrites=(Rewrite(target=log.at(3, 0), text="[aside]", reason=Reason.OFFLOADED),))
    )
    blocks: dict[object, Content] = {block.origin: block.content for x in view.exchanges for block in x.blocks()}
    assert Recorder(sources=blocks.get).take(aside.exchanges).facts() == Recorder().take(view.exchanges).facts()
    assert Recorder().take(aside.exchanges).facts() != Recorder().take(view.exchanges).facts()


def test_facts_are_bounded_and_say_how_many_more_there_were() -> None:
    """Of thousands of commands and files the newest are carried, and the rest is counted; the JSON stays small."""
    log = Log()
    log.put(user("go"))
    for number in range(700):
        log.put(model("", f"run {number}"), result(f"run {number}"))
    facts = Recorder().take(seen(log).exchanges).facts()
    assert len(facts.commands) == 64
    assert facts.commands[-1].run == "run 699"
    assert facts.more["commands"] == 700 - 64
    assert len(facts.to_json()) < 20_000


@given(room=st.integers(0, 900))
def test_a_record_is_told_within_its_room_and_what_matters_most_comes_first(room: int) -> None:
    """At any room: the head, then as much as fits; the goal before anything else."""
    head = "[Record of 14 messages]"
    facts = Facts(
        goal=Said("d" * 32 + ":1:0", "Make the tests pass. Do not edit the tests."),
        rules=tuple(Said("d" * 32 + f":{number}:0", f"Never do {number}.") for number in range(20)),
        commands=tuple(Command("d" * 32 + f":{number}:0", f"run {number}", "ok") for number in range(20)),
    )
    text = told(facts, head, room, COUNTER.text)
    assert text.startswith(head)
    assert COUNTER.text(text) <= max(room, COUNTER.text(head))
    assert text == told(facts, head, room, COUNTER.text)
    if room > 100:
        assert "Make the tests pass." in text
    if "run " in text:
        assert text.count("Never do") == 20


def test_every_line_of_a_record_has_a_handle() -> None:
    """Each fact names where it comes from."""
    log = session()
    facts = Recorder().take(seen(log).exchanges).facts()
    lines = [line for line in told(facts, "head", 10_000, COUNTER.text).splitlines() if line.startswith("- ")]
    assert len(lines) == 13
    assert all(f"[{log.dialog[:12]}:" in line for line in lines)


def test_facts_that_are_none_are_refused() -> None:
    """A text that is no JSON object of facts is the caller's mistake, not a crash; unknown fields are passed over."""
    for text in ("", "[]", "{", '{"asks": [3]}', '{"asks": [{}]}'):
        with pytest.raises(InvalidInput):
            Facts.from_json(text)
    assert Facts.from_json('{"later": 1, "commands": [{"at": "a", "run": "b", "ended": "ok", "new": 2}]}').commands == (
        Command("a", "b", "ok"),
    )


def test_a_summary_by_others_is_carried_on_and_a_notice_is_not() -> None:
    """What another agent summarised stays readable; a line that only says what is missing is made anew."""
    view = apply(
        View(dialog_id=Log().dialog, at=-1),
        Plan(
            policy="x",
            inserts=(
                Insert(before=0, text="They spoke of parsers.", label="summary"),
                Insert(before=0, text="[gone]", label="notice"),
            ),
        ),
    )
    facts = Recorder().take(view.exchanges).facts()
    assert [said.text for said in facts.summaries] == ["They spoke of parsers."]
    assert isinstance(view.exchanges[0].turns[0].blocks[0].content, TextContent)


def test_equal_asks_are_one_line_with_a_count() -> None:
    """An agent that is told to continue two hundred times: one line with the newest handle, and the asks that differ are told beside it."""
    log = Log()
    log.put(user("Make it fast."))
    for number in range(200):
        log.put(
            model(f"answer {number} " + "word " * 60),
            user("And a changelog." if number == 3 else " Continue" if number % 2 else "continue"),
        )
    record = "\n".join(texts(fitted(seen(log), "fold", 4_000).view))
    lines = [line for line in record.splitlines() if line.startswith('- "')]
    assert sum("ontinue" in line for line in lines) == 1
    (line,) = (line for line in lines if "ontinue" in line)
    assert " times) [" in line
    assert any("And a changelog." in line for line in lines)


def test_the_count_goes_on_from_record_to_record() -> None:
    """What earlier records counted is not counted anew, and nothing is counted twice."""
    log = Log()
    log.put(user("Make it fast."))
    for _ in range(3):
        for number in range(20):
            log.put(model(f"answer {number} " + "word " * 60), user("continue"))
        commit(log, fitted(seen(log), "fold", 1_500))
    view = seen(log)
    facts = Recorder().take(view.exchanges).facts()
    assert sum(said.times for said in facts.asks if said.text == "continue") == 60
    assert len([said for said in facts.asks if said.text == "continue"]) == 1
