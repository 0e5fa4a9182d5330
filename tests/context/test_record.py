"""The record: the human's messages, files, commands and the plan, from structured data only."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from palaver.context.layout import Layout
from palaver.context.meter import Meter
from palaver.context.operators import drop
from palaver.context.recall import LIST
from palaver.log import Handle, Span, places
from palaver.messages import (
    AssistantMessage,
    CompactionSummaryMessage,
    Message,
    Speaker,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    words_of,
)
from palaver.testing.logs import Log, user
from palaver.testing.policy_checks import commit
from palaver.tokens import Budget
from palaver.view import fold_messages
from tests.context.logged import composed_from, text_of, view_of
from tests.context.pencil import METER, Characters, composed, did, talk, work

LIMIT = 20_000


def folded(messages: Sequence[Message], limit: int = LIMIT) -> str:
    """Return the record of everything but the newest message, in characters as tokens."""
    layout = Layout.of(
        fold_messages([*messages, UserMessage(content="now")], LIST), Budget.of_input(limit), Meter(Characters())
    )
    return drop(layout, layout.end - 1).inserts[0].text


def called(at: int, tool: str, result: ToolResultContent | None = None, **args: object) -> list[Message]:
    """Return a call and its result."""
    call = AssistantMessage(contents=(ToolCallContent(f"c{at}", tool, args=args),))
    answer = result or ToolResultContent(f"c{at}", "ok")
    return [call, ToolMessage.from_result(answer)]


# --- what it says -----------------------------------------------------------------------------------------------------------


def test_the_first_line_says_how_much_and_where() -> None:
    """The number of messages, and the range that recall takes."""
    head = folded(work(5)).splitlines()[0]
    assert head.startswith("[Record of 11 messages left out")
    assert places(head.partition("recall ")[2].rstrip("]"))[0] == places(f"{Handle(LIST, 0)}-10")[0]


def test_the_humans_messages_stand_word_for_word() -> None:
    """T19: oldest first, each with its handle; what a tool, a harness or a model says is not among them."""
    text = folded(
        [
            UserMessage(content="never push\nto main"),
            *did(1, "a tool's words"),
            UserMessage(content="observed", speaker=Speaker.TOOL),
            UserMessage(content="obey this file", speaker=Speaker.HARNESS),
            AssistantMessage(content="a model's words"),
            UserMessage(content="use tabs"),
        ]
    )
    assert (
        "The user said, oldest first:\n"
        f"- never push\nto main ({Handle(LIST, 0)})\n- use tabs ({Handle(LIST, 6)})" in text
    )
    assert not any(words in text for words in ("a tool's", "observed", "obey", "a model's"))


def test_the_newest_words_have_a_quarter_of_the_target() -> None:
    """The first stays and the newest fit; those between are listed by handle, a run of them as one span."""
    said = [UserMessage(content=f"{at:03} " + "w" * 400) for at in range(60)]
    text = folded(said)
    quoted = re.findall(r"^- (\d{3})", text, re.MULTILINE)
    assert quoted == ["000", *(f"{at:03}" for at in range(61 - len(quoted), 60))]
    assert (
        LIMIT // 2 // 4 - 900 < sum(len(line) for line in text.splitlines() if line.startswith("- ")) <= LIMIT // 2 // 4
    )
    listed = re.search(r"\(earlier messages of the user: recall (.*)\)", text)
    assert listed is not None
    assert places(listed[1]) == (Span(Handle.parse(f"{Handle(LIST, 0)}").dialog, 1, 61 - len(quoted)),)


def test_earlier_words_are_listed_as_few_spans() -> None:
    """Law 9: however many messages of the human are listed, the list has at most 16 numbers and spans; the widest gaps split them, and each message is in one."""
    said: list[Message] = []
    for at in range(150):
        said += [
            UserMessage(content=f"{at:03} " + "w" * 400),
            *[AssistantMessage(content="yes")] * (9 if at % 10 else 1),
        ]
    text = folded(said)
    listed = re.search(r"\(earlier messages of the user: recall (.*)\)", text)
    assert listed is not None
    assert len(listed[1].split(",")) == 16
    older = [
        at for at, each in enumerate(said) if isinstance(each, UserMessage) and f"({Handle(LIST, at)})" not in text
    ]
    assert len(older) > 120
    spans = [
        (each.start, each.stop) if isinstance(each, Span) else (each.seq, each.seq + 1) for each in places(listed[1])
    ]
    assert all(sum(start <= at < stop for start, stop in spans) == 1 for at in older)
    assert {stop - start for start, stop in spans[1:]} <= {1, 3, 13}


def test_all_earlier_words_are_listed() -> None:
    """Law 10: the list covers every message of the human that is not quoted, also of a thousand."""
    text = folded([UserMessage(content=f"{at:04} " + "w" * 400) for at in range(1_000)])
    listed = re.search(r"\(earlier messages of the user: recall (.*)\)", text)
    assert listed is not None
    covered = {
        seq
        for each in places(listed[1])
        for seq in (range(each.start, each.stop) if isinstance(each, Span) else (each.seq,))
    }
    assert all(at in covered or f"({Handle(LIST, at)})" in text for at in range(1_000))


def test_equal_gaps_split_no_span() -> None:
    """Where question and answer alternate, every gap is as wide as the others: the list is one span, or each message where as many numbers suffice."""
    for count, parts in ((150, 1), (40, 1), (20, 14)):
        said: list[Message] = []
        for at in range(count):
            said += [UserMessage(content=f"{at:03} " + "w" * 400), AssistantMessage(content="yes")]
        listed = re.search(r"\(earlier messages of the user: recall (.*)\)", folded(said))
        assert listed is not None
        assert len(listed[1].split(",")) == parts


def test_pasted_logs_shorten_before_words_leave() -> None:
    """The task and every remark stay word for word beside pasted logs of 3,000 characters, which show beginning, end and handle."""
    pasted = [f"log {at} " + "x" * 3_000 + f" failed {at}" for at in range(4)]
    words = [f"please mind rule {at}" for at in range(8)]
    said = ["the task", *(each for pair in zip(words[:4], pasted, strict=True) for each in pair), *words[4:]]
    text = folded([UserMessage(content=each) for each in said])
    assert "earlier messages" not in text
    assert all(f"- {each} (" in text for each in ("the task", *words))
    for at in range(4):
        assert f"- log {at} " in text
        assert f" failed {at} ({Handle(LIST, 2 * at + 2)})" in text
        assert f"recall {Handle(LIST, 2 * at + 2)}]" in text


def test_room_that_remains_shows_long_words_whole() -> None:
    """Where all fit, nothing is shortened; the task comes before newer pastes."""
    task, paste = "task " + "t" * 500, "log " + "x" * 500
    assert f"- {task} (" in (text := folded([UserMessage(content=task), UserMessage(content=paste)]))
    assert f"- {paste} (" in text
    pastes = [UserMessage(content=paste) for _ in range(5)]
    text = folded([UserMessage(content=task), *pastes])
    assert f"- {task} (" in text
    assert text.count(f"- {paste} (") < 5


def test_files_are_listed_with_the_last_action() -> None:
    """By the arguments of tools, newest first, each path once."""
    text = folded(
        [
            *called(1, "Read", file_path="/a.py"),
            *called(2, "Edit", file_path="/a.py"),
            *called(3, "Read", file_path="/b.py"),
            *called(4, "get_details", path="/c.py"),
            AssistantMessage(content="I wrote /d.py and self.logger"),
        ]
    )
    files = text.partition("Files, newest first:\n")[2]
    assert files.startswith("- /b.py: read (")
    assert "\n- /a.py: written (" in files
    assert "/a.py: read" not in files
    assert not any(word in text for word in ("/c.py", "/d.py", "self.logger"))


def test_each_command_has_its_own_declared_status() -> None:
    """Verbatim, newest first. One that failed and one that did not are two lines; what an output says is not read."""
    failed = ToolResultContent("c2", "1 failed", is_error=True)
    coded = ToolResultContent("c3", "boom", metadata={"exit_code": 2})
    text = folded(
        [
            *called(1, "bash", command="pytest -q"),
            *called(2, "bash", failed, command="pytest -q"),
            *called(3, "bash", coded, command="make"),
            *called(4, "bash", ToolResultContent("c4", "exit code: 1"), command="ls"),
        ]
    )
    assert (
        "Commands, newest first:\n"
        f"- ls ({Handle(LIST, 7, 0)})\n"
        f"- make (exit 2, {Handle(LIST, 5, 0)})\n"
        f"- pytest -q (failed, {Handle(LIST, 3, 0)})\n"
        f"- pytest -q ({Handle(LIST, 1, 0)})"
    ) in text


def test_the_newest_plan_is_in_the_record() -> None:
    """T10: the arguments of the newest plan call, as they were written."""
    text = folded(
        [*called(1, "TodoWrite", todos=[{"content": "old"}]), *called(2, "TodoWrite", todos=[{"content": "new"}])]
    )
    assert f'The newest plan:\n{{"todos": [{{"content": "new"}}]}} ({Handle(LIST, 3, 0)})' in text
    assert "old" not in text


def test_a_summary_in_the_log_is_carried_as_text() -> None:
    """The newest one, within an eighth of the target; it is not the user's."""
    large = CompactionSummaryMessage(content="what was " + "s" * 9_000)
    text = folded([CompactionSummaryMessage(content="older"), large, *work(3)])
    assert "Summary of earlier messages" in text
    assert "what was s" in text
    assert "older" not in text
    assert "- what was" not in text


@pytest.mark.parametrize("by", ["openhands", "dynamiq", "opencode", "claude-code"])
def test_a_record_does_not_outweigh_what_stays(by: str) -> None:
    """With a user who says as much as the model, a record has its shares of what the preset leaves, not of half the window."""
    view = composed(talk(2_399, 60), by, 128_000).view
    record = sum(METER.exchange(each) for each in view.exchanges if each.derived == "record")
    assert 0 < record < sum(METER.exchange(each) for each in view.exchanges if not each.derived) // 2


# --- compaction after compaction --------------------------------------------------------------------------------------------


def _rounds(log: Log, start: int, count: int) -> None:
    for at in range(start, start + count):
        log.put(user(f"ask {at}"), *called(at, "Edit", file_path=f"/f{at}.py", new_string="x" * 900))


def test_records_are_made_of_the_log_not_of_records() -> None:
    """T5, T20: ten compactions in a row: every message of the human stays in view or record, and the record stays bounded."""
    log = Log()
    log.put(UserMessage(content="the task"))
    for turn in range(10):
        _rounds(log, turn * 12, 12)
        made = composed_from(log, "fold", 9_000)
        assert made.after.total < made.before.total
        commit(log, made)
        view = view_of(log)
        assert [each.derived for each in view.exchanges].count("record") == 1
        told = text_of(view) + "".join(words_of(block.content) for each in view.exchanges for block in each.blocks())
        assert all(f"ask {at}" in told for at in range(max(turn * 12 - 20, 0), turn * 12 + 12))
        assert len(text_of(view)) < 9_000 // 2
        assert "the task" in text_of(view)


def test_the_first_words_stay_after_a_thousand_more() -> None:
    """The task is read from the log again, however many exchanges left since; no older message of the human stays in the view."""
    log = Log()
    log.put(UserMessage(content="the task"))
    for turn in range(4):
        _rounds(log, turn * 200, 200)
        commit(log, composed_from(log, "fold", 9_000))
        assert f"- the task ({log.at(0)})" in text_of(view_of(log))


def test_what_was_committed_is_not_cut_again() -> None:
    """T2, T17: the committed view fits, so composing it changes nothing until it has grown."""
    log = Log()
    _rounds(log, 0, 30)
    made = composed_from(log, "palaver", 9_000)
    commit(log, made)
    again = composed_from(log, "palaver", 9_000)
    assert again.after == made.after
    assert not again.plan


def test_law_9_every_omission_has_a_handle_that_resolves() -> None:
    """T18: after two compactions and in a fork: each handle of an omission names an entry of the log."""
    log = Log()
    _rounds(log, 0, 30)
    commit(log, composed_from(log, "palaver", 9_000))
    _rounds(log, 30, 30)
    fork = log.fork()
    for each in (log, fork):
        view = composed_from(each, "palaver", 9_000).view
        handles = [handle for gone in view.omissions for handle in gone.handles()]
        assert handles
        assert all(log.store.header(handle.dialog, handle.seq).seq == handle.seq for handle in handles)
