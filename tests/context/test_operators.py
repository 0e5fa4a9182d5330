"""Operators, one by one: what each takes out, what it leaves alone, and that it never makes anything larger."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from palaver.context import Meter
from palaver.context.ground import Room
from palaver.context.keeps import first_asks, first_messages, latest_plan
from palaver.context.notice import NOTICE
from palaver.context.operators import (
    ALWAYS,
    ASKED_AGAIN,
    DEDUPE,
    DEGRADE_MEDIA,
    DROP_OLDEST,
    DROP_REASONING,
    DROP_SUPERSEDED,
    OFFLOAD,
    OUTDATED_READS,
    PURGE_FAILED,
    Cap,
    Clear,
    Cut,
    Loss,
    Mask,
    Operator,
    Property,
    broken,
    cap,
    clear,
    dropping,
    in_phases,
    mask,
)
from palaver.context.operators.shorten import shortened
from palaver.context.rehydrate import Rehydrating
from palaver.context.steps import laid_out, plan_of, removed
from palaver.context.texts import compact, kept_end, kept_ends, lines_omitted, preview
from palaver.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
)
from palaver.testing.logs import Log, model, result, sketch, user
from palaver.testing.policy_strategies import Step, conversations, picture, played
from palaver.view import Reason, View, apply
from tests.context.helper import COUNTER, faults, seen, size, texts
from tests.context.work import PAGE, did, ground_of, operated, read, run, whole, worked, write

OPERATORS: dict[str, Operator] = {
    each.name: each
    for each in (
        OFFLOAD,
        DEDUPE,
        OUTDATED_READS,
        ASKED_AGAIN,
        PURGE_FAILED,
        DROP_SUPERSEDED,
        DROP_REASONING,
        DEGRADE_MEDIA,
        DROP_OLDEST,
        clear(Clear(keep=1)),
        mask(Mask(n=2)),
        cap(Cap(characters=1_000, shown=200, words=preview)),
    )
}


def is_line(text: str) -> bool:
    """Tell whether something stands for another text."""
    return "recall " in text


# --- every operator ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(OPERATORS))
@settings(max_examples=25)
@given(steps=conversations(least=3), share=st.floats(0.1, 0.9), data=st.data())
def test_every_operator_keeps_what_it_declares_and_makes_nothing_larger(
    name: str, steps: list[Step], share: float, data: st.DataObject
) -> None:
    """At any point of any conversation: its properties hold, the layout is no larger, and the measured size is the real one."""
    view = seen(played(steps))
    assume(view.exchanges)
    ground = ground_of(view, share)
    upto = data.draw(st.integers(0, len(view.exchanges) - 1))
    before = whole(ground, upto)
    for operator in data.draw(st.permutations([OPERATORS[name], OFFLOAD])):
        after = operator(ground, upto, before)
        for which in operator.properties:
            assert list(broken(which, ground, upto, before, after)) == [], which
        assert after.size <= before.size or operator is DROP_OLDEST  # which may leave room for a notice
        assert operator(ground, upto, before) == after, "the same input gave two layouts"
        before = after


@pytest.mark.parametrize("name", sorted(OPERATORS))
@settings(max_examples=15)
@given(steps=conversations(least=3), share=st.floats(0.1, 0.9))
def test_what_an_operator_leaves_is_valid_for_every_provider(name: str, steps: list[Step], share: float) -> None:
    """Applied to a whole conversation, in steps or at once: valid, no larger, and each omission has a handle."""
    view = seen(played(steps))
    ground = ground_of(view, share)
    for layout in (OPERATORS[name](ground, len(view.exchanges) - 1, whole(ground)), laid_out(ground, OPERATORS[name])):
        after = apply(view, plan_of(ground, layout, "test"))
        assert faults(after) == []
        assert sum(map(ground.meter.exchange, after.exchanges)) <= layout.size
        assert all(list(gone.handles()) for gone in after.omissions)
        shown = [block for x in after.exchanges for block in x.blocks() if block.reason is not None]
        assert all(block.origin is not None for block in shown)


def test_every_operator_says_what_it_is() -> None:
    """A name of its own, a loss, and at least what every operator leaves alone; the reversible ones leave no exchange out."""
    for name, operator in OPERATORS.items():
        assert operator.name == name
        assert operator.properties >= ALWAYS
        if operator.loss is Loss.REVERSIBLE:
            assert Property.NOTHING_LEFT_OUT in operator.properties


def test_a39_reversible_operators_come_first_and_lossy_ones_only_if_the_view_is_still_too_large() -> None:
    """Whatever the order they are named in; and when setting aside is enough, nothing is dropped (R280, R281, R308, R331)."""
    calls: list[str] = []

    def noting(operator: Operator) -> Operator:
        def edit(*args: object) -> object:
            calls.append(operator.name)
            return operator.edit(*args)  # type: ignore[arg-type]

        return Operator(operator.name, operator.loss, edit, operator.respects)  # type: ignore[arg-type]

    view = worked(*(run(f"c{n}", f"pytest tests/test_{n}.py") for n in range(12)))
    edit = in_phases(noting(DROP_OLDEST), noting(OFFLOAD))
    laid_out(ground_of(view, 0.6), edit)
    assert set(calls) == {"offload"}
    calls.clear()
    laid_out(ground_of(view, 0.05), edit)
    assert calls[:2] == ["offload", "drop_oldest"]


def test_what_was_removed_is_told_by_operator() -> None:
    """How many exchanges and blocks, and how much that saved; the plan's notes say it in words."""
    view = worked(*(run(f"c{n}", f"pytest tests/test_{n}.py") for n in range(12)))
    ground = ground_of(view, 0.05)
    layout = laid_out(ground, in_phases(OFFLOAD, DROP_OLDEST))
    told = {each.operator: each for each in removed(ground, layout)}
    plan = plan_of(ground, layout, "test")
    assert told["over_budget"].exchanges == len(plan.drops)
    assert told["over_budget"].saved == sum(ground.whole(drop.index) for drop in plan.drops)
    assert len(plan.notes) == len(told)
    assert any(note.startswith("over_budget: ") and note.endswith(" tokens") for note in plan.notes)


# --- clearing ---------------------------------------------------------------------------------------------------------------


def test_clear_keeps_the_newest_results_and_the_tools_that_are_excluded() -> None:
    """Of eight results the newest three and those of an excluded tool stay, byte for byte; calls and ids are as they were."""
    parts = [run(f"c{n}", f"ls {n}") for n in range(4)] + [did("s", "Skill", {"name": "x"}, PAGE)]
    view = worked(*parts, *(run(f"d{n}", f"ls {n}") for n in range(3)))
    after, _, _ = operated(view, clear(Clear(keep=3, exclude=frozenset({"skill"}))))
    outputs = texts(after)[1:]
    assert [is_line(text) for text in outputs] == [True] * 4 + [False] * 4
    assert [call for line in sketch(after) for call in line.split() if call.startswith("c")] == [
        call for line in sketch(view) for call in line.split() if call.startswith("c")
    ]


def test_clear_does_nothing_unless_it_is_worth_the_cache() -> None:
    """What would be saved is less than `at_least`: the very same layout (Anthropic's clear_at_least, OpenCode's minimum)."""
    view = worked(*(run(f"c{n}", f"ls {n}") for n in range(6)))
    ground = ground_of(view)
    before = whole(ground)
    last = len(view.exchanges) - 1
    assert clear(Clear(keep=3, at_least=100_000))(ground, last, before) is before
    assert clear(Clear(keep=3, at_least=1_000))(ground, last, before).size < before.size


def test_clear_protects_turns_and_tokens_of_results() -> None:
    """Results since the last two asks stay; so do those within the protected tokens (OpenCode's prune)."""
    log = Log()
    for turn in range(4):
        log.put(user(f"ask {turn}"), *run(f"c{turn}", f"ls {turn}"))
    after, _, _ = operated(seen(log), clear(Clear(keep=0, turns=2)))
    assert [is_line(text) for text in texts(after) if not text.startswith("ask")] == [True, True, False, False]
    whole_result = 200 * 8
    after, _, _ = operated(seen(log), clear(Clear(keep=0, protect=whole_result * 2)))
    kept = [not is_line(text) for text in texts(after) if not text.startswith("ask")]
    assert kept == sorted(kept)
    assert sum(kept) >= 2


@pytest.mark.parametrize("polling", [1, 3])
def test_mask_moves_in_steps_of_polling(polling: int) -> None:
    """The newest four stay, and with polling up to two more; what is cleared changes every `polling` results and no sooner."""
    parts = [run(f"c{n}", f"ls {n}") for n in range(14)]
    masked = []
    for count in range(1, 15):
        view = worked(*parts[:count])
        ground = ground_of(view, 10)
        steps = mask(Mask(n=4, polling=polling))
        after = apply(view, plan_of(ground, laid_out(ground, DROP_OLDEST, always=steps), "test"))
        lines = [is_line(text) for text in texts(after)[1:]]
        assert lines == sorted(lines, reverse=True)
        assert min(count, 4) <= count - sum(lines) < 4 + polling
        masked.append(sum(lines))
    assert sorted(set(masked)) == list(range(0, masked[-1] + 1, polling))


def test_cap_shows_the_beginning_of_an_output_from_the_first_time_on() -> None:
    """An output over the limit is never shown whole; one of an exempt tool is; a small one is."""
    words = cap(Cap(characters=1_000, shown=100, words=preview, exempt=frozenset({"read"})))
    view = worked(run("a", "cat big"), read("b", "src/a.py"), run("c", "ls", "small"))
    ground = ground_of(view, 10)
    after = texts(apply(view, plan_of(ground, laid_out(ground, DROP_OLDEST, always=words), "test")))
    assert after[1].endswith(PAGE[:100])
    assert is_line(after[1])
    assert after[2] == PAGE
    assert after[3] == "small"


# --- what is of no more use -------------------------------------------------------------------------------------------------


def test_r317_of_two_identical_results_one_is_shown_in_full() -> None:
    """The newer one; the older one names its handle. No model is asked."""
    view = worked(run("a", "cat x"), run("b", "ls"), run("c", "cat ./x"), run("d", "pwd", "/"))
    after, _, _ = operated(view, DEDUPE)
    assert [text == PAGE for text in texts(after)[1:]] == [False, False, True, False]
    assert [is_line(text) for text in texts(after)[1:]] == [True, True, False, False]


def test_r317_a_file_that_was_written_twice_is_shown_as_it_was_written_last() -> None:
    """The exchange of the first write leaves, with a line in its place; that of the last write stays whole."""
    view = worked(
        write("a", "src/a.py", PAGE), run("b", "ls", "a.py"), write("c", "src/a.py", PAGE + "x"), run("d", "ls", ".")
    )
    after, _, layout = operated(view, DROP_SUPERSEDED)
    assert [x.role.value for x in after.exchanges if x.derived] == ["user"]
    written = [
        b.content.args["content"]
        for x in after.exchanges
        for b in x.blocks()
        if isinstance(b.content, ToolCallContent) and b.content.name == "Write"
    ]
    assert written == [PAGE + "x"]
    assert [gone.reason for gone in after.omissions] == [Reason.SUPERSEDED]
    assert list(layout.holes) == [1]
    assert any("Write src/a.py" in text and is_line(text) for text in texts(after))


def test_a_partial_edit_supersedes_nothing_and_words_are_not_dropped_with_a_call() -> None:
    """An edit shows a part of the file only; a response that says more than its calls stays."""
    edit = did("c", "Edit", {"file_path": "src/a.py", "old_string": "a", "new_string": "b"})
    view = worked(write("a", "src/a.py"), edit, run("d", "ls", "."))
    after, _, _ = operated(view, DROP_SUPERSEDED)
    assert after.exchanges == view.exchanges
    talk = did("a", "Write", {"file_path": "src/a.py", "content": PAGE}, words="I decided " + "x" * 500)
    view = worked(talk, write("c", "src/a.py"), run("d", "ls", "."))
    assert operated(view, DROP_SUPERSEDED)[0].exchanges == view.exchanges


def test_r317_an_error_that_was_fixed_is_one_line() -> None:
    """A command that failed and later succeeded: the line that names the error stays, the rest has a handle."""
    trace = PAGE + "\nValueError: no such table\nexit code: 1"
    view = worked(
        run("a", "make"), run("b", "pytest -q", trace, failed=True), run("c", "pytest -q", "ok"), run("d", "ls", ".")
    )
    after, _, _ = operated(view, PURGE_FAILED)
    assert texts(after)[2].startswith("ValueError: no such table\n")
    assert is_line(texts(after)[2])
    assert texts(after)[1] == PAGE


def test_an_error_that_is_not_fixed_stays() -> None:
    """Nothing of it is taken: it may be what the work is about."""
    view = worked(run("a", "pytest", PAGE, failed=True), run("b", "ls", "."), run("c", "pwd", "."))
    assert operated(view, PURGE_FAILED)[0].exchanges == view.exchanges


def test_of_a_file_that_was_read_again_the_newest_reading_is_shown() -> None:
    """The same tool with the same arguments; other ranges of the same file are other looks."""
    part = did("b", "Read", {"file_path": "src/a.py", "limit": 5}, PAGE)
    view = worked(read("a", "src/a.py"), part, read("c", "src/a.py", PAGE + "new"), run("d", "ls", "."))
    after, _, _ = operated(view, OUTDATED_READS)
    assert [is_line(text) for text in texts(after)[1:]] == [True, False, False, False]
    runs = worked(run("a", "git status"), run("b", "git status", PAGE + "x"), run("c", "ls", "."))
    assert operated(runs, OUTDATED_READS)[0].exchanges == runs.exchanges
    assert is_line(texts(operated(runs, ASKED_AGAIN)[0])[1])


# --- reasoning and media ----------------------------------------------------------------------------------------------------


def test_t12_thinking_goes_with_finished_turns_and_stays_with_the_tool_loop() -> None:
    """Before the newest ask it goes; since then it stays; a response of nothing but thinking is left alone."""
    log = Log()

    def thought(call: str) -> AssistantMessage:
        call_block = ToolCallContent(id=call, name="Bash", args={"command": call})
        return AssistantMessage(contents=(ThinkingContent(content="hm " * 50, signature="s"), call_block))

    only = AssistantMessage(contents=(ThinkingContent(content="hm", signature="s"),))
    log.put(
        user("a"),
        thought("c1"),
        result("c1"),
        only,
        user("b"),
        thought("c2"),
        result("c2"),
        thought("c3"),
        result("c3"),
    )
    after, _, layout = operated(seen(log), DROP_REASONING)
    thinks = [any(isinstance(b.content, ThinkingContent) for b in x.blocks()) for x in after.exchanges]
    assert thinks[1] is False
    assert thinks[-2:] == [True, True]
    assert faults(after) == []
    assert layout.size == sum(map(ground_of(after).whole, range(len(after.exchanges))))


# --- cutting ----------------------------------------------------------------------------------------------------------------


def test_t4_one_batch_of_results_larger_than_the_window_is_made_smaller() -> None:
    """Nothing but a batch at the end, larger than the room: its results are shortened, the calls stay."""
    log = Log()
    log.put(user("look"), model("", "a", "b", "c"), *(result(call, PAGE * 5) for call in "abc"))
    view = seen(log)
    after, ground, layout = operated(view, DROP_OLDEST, 0.2)
    assert layout.size <= ground.room.high
    assert [b.content.id for b in after.exchanges[1].turns[0].blocks if isinstance(b.content, ToolCallContent)] == [
        "a",
        "b",
        "c",
    ]


def test_keeping_the_first_messages_and_so_many_at_the_end() -> None:
    """R298: of 200 messages, one in front and ten at the end are kept, and something stands for the rest: twelve in all."""
    log = Log()
    log.put(*(message for n in range(100) for message in (user(f"ask {n}"), model(f"answer {n}"))))
    ground = ground_of(seen(log), 1.0, keeps=(first_messages(1),))
    cut = dropping(Cut(border=False, messages=11))
    after = apply(ground.view, plan_of(ground, cut(ground, 199, whole(ground)), "test"))
    assert len(after.exchanges) == 12
    assert texts(after)[0] == "ask 0"
    assert texts(after)[-10:] == [text for n in range(95, 100) for text in (f"ask {n}", f"answer {n}")]


def test_r321_only_what_is_done_is_dropped() -> None:
    """Nothing after the newest words of the user leaves, however large it is (Aider's done and current)."""
    log = Log()
    for turn in range(5):
        log.put(user(f"ask {turn}"), *run(f"c{turn}", f"ls {turn}"), *run(f"d{turn}", f"ls {turn}"))
    view = seen(log)
    after, _, _ = operated(view, dropping(Cut(border=False, done=True)), 0.4)
    assert after.exchanges[-3:] == view.exchanges[-3:]
    assert len(after.exchanges) < len(view.exchanges)


def test_t10_t19_goal_and_plan_stay_where_there_is_room() -> None:
    """A cut leaves the first ask and the newest plan in, however old; a plan that was written anew goes."""
    plan = [did(f"p{n}", "TodoWrite", {"todos": [f"step {n}"]}) for n in range(2)]
    log = Log()
    log.put(user("GOAL"), *plan[0], *plan[1], *(m for n in range(12) for m in run(f"c{n}", f"ls {n}")), user("go on"))
    view = seen(log)
    ground = ground_of(view, 0.5, keeps=(first_asks(), latest_plan))
    after = apply(view, plan_of(ground, laid_out(ground, DROP_OLDEST), "test"))
    calls = [b.content.id for x in after.exchanges for b in x.blocks() if isinstance(b.content, ToolCallContent)]
    assert texts(after)[0] == "GOAL"
    assert "p1" in calls
    assert "p0" not in calls


def test_r307_the_files_worked_on_last_are_brought_back_once_each() -> None:
    """Five files, the newest first, each once, as last seen in the log; a file that was changed since is not made up."""
    parts = [read(f"r{n}", f"src/f{n}.py", f"content {n}\n") for n in range(8)]
    edit = did("e", "Edit", {"file_path": "src/f7.py", "old_string": "a", "new_string": "b"})
    view = worked(
        *parts, read("again", "src/f6.py", "content 6, newer\n"), edit, *(run(f"c{n}", f"ls {n}") for n in range(6))
    )
    ground = ground_of(view, 0.9)
    ground = type(ground)(ground.view, ground.meter, ground.room, Rehydrating(stand_in=NOTICE))
    after = apply(view, plan_of(ground, laid_out(ground, DROP_OLDEST), "test"))
    files = [
        texts(View(dialog_id=view.dialog_id, at=0, exchanges=(x,)))[0]
        for x in after.exchanges
        if x.turns[0].blocks[0].derived == "file"
    ]
    named = [text.split(",")[0].removeprefix("[") for text in files]
    assert named == ["src/f6.py", "src/f5.py", "src/f4.py", "src/f3.py", "src/f2.py"]
    assert "content 6, newer" in files[0]
    now = Rehydrating(stand_in=NOTICE, files=1, now={"src/f7.py": "as it is now"}.get)
    ground = type(ground)(ground.view, ground.meter, ground.room, now)
    after = apply(view, plan_of(ground, laid_out(ground, DROP_OLDEST), "test"))
    assert any("as it is now" in text for text in texts(after))


def test_a_file_that_is_too_large_comes_back_in_part() -> None:
    """Of a file larger than its share the beginning is shown, and how much more there is."""
    view = worked(read("r", "src/big.py", PAGE * 30), *(run(f"c{n}", f"ls {n}") for n in range(40)))
    ground = ground_of(view, 0.4)
    ground = type(ground)(ground.view, ground.meter, ground.room, Rehydrating(stand_in=NOTICE, each=500))
    after = apply(view, plan_of(ground, laid_out(ground, dropping(Cut(border=False))), "test"))
    back = next(text for text in texts(after) if text.startswith("[src/big.py"))
    assert "more characters]" in back
    assert ground.meter.text(back) <= 500


def test_the_facts_of_what_leaves_go_with_the_line_in_its_place() -> None:
    """What a superseded exchange did is not forgotten: the next record knows the file (decision 8)."""
    log = Log()
    log.put(user("GOAL"), *write("a", "src/a.py"), *write("b", "src/a.py"), *run("c", "ls", "."))
    after, _, _ = operated(seen(log), DROP_SUPERSEDED)
    line = next(x for x in after.exchanges if x.derived)
    assert [run.start for block in line.blocks() for run in block.sources] == [1]
    assert isinstance(line.turns[0].blocks[0].content, TextContent)
    assert size(after) < size(seen(log))


def test_what_was_found_of_a_view_is_not_looked_for_again_in_other_room() -> None:
    """A schedule asks for other room at every fold: what the view is made of is the same object there, and not gone through once more."""
    here = ground_of(worked(run("a", "ls"), run("b", "pwd")))
    for _ in range(2):
        other = here.within(Room(high=900, low=400))
        assert other.room.high == 900
        assert vars(other)["_newest"] is vars(here)["_newest"]
        assert vars(other)["_dialogs"] is vars(here)["_dialogs"]
        assert vars(other)["gone"] is here.gone


@pytest.mark.parametrize("words", ["seen", "", "seen " * 300])
def test_of_a_result_whose_images_are_large_all_words_stay(words: str) -> None:
    """Few words and a screenshot, in a room that the screenshot alone outgrows: the words stay, a line stands for the image, nothing counts below zero."""
    shot = ImageContent(images=[picture(1, 1_000)])
    shown = ToolResultContent(id="c", name="shell", content=(TextContent(content=words), shot))
    log = Log()
    log.put(user("look"), model("I look.", "c"), ToolMessage.from_result(shown))
    view = seen(log)
    for room in (60, 200, 900):
        rewrites, _ = shortened(view.exchanges[1], room, Meter(COUNTER), form=kept_ends)
        for each in rewrites:
            assert "recall " in each.text
            assert "[-" not in each.text
        if words == "seen" and room > 100:
            assert [each.text.partition("[")[0] for each in rewrites] == ["seen\n"]


@pytest.mark.parametrize(
    "operator",
    [
        clear(Clear(keep=0)),
        clear(Clear(keep=0, words=compact)),
        mask(Mask(n=1, words=lines_omitted)),
        cap(Cap(characters=500, shown=100, words=preview)),
        cap(Cap(characters=500, shown=100, words=kept_ends)),
        OFFLOAD,
        OUTDATED_READS,
        ASKED_AGAIN,
        DROP_OLDEST,
        DEGRADE_MEDIA,
    ],
    ids=["clear", "compact", "mask", "preview", "ends", "offload", "outdated", "again", "oldest", "degrade"],
)
def test_whatever_shows_a_result_in_another_form_names_the_images_that_leave_with_it(operator: Operator) -> None:
    """Nothing is missing without a handle and a reason: also where most of what is left out is words."""
    log, seen_files = Log(), ("a.py", "b.py", "a.py", "b.py", "c.py")
    log.put(user("Look at the pages."))
    for number, path in enumerate(seen_files):
        call = ToolCallContent(id=f"c{number}", name="Read", args={"file_path": path})
        parts = (TextContent(content=f"{number}\n{PAGE}"), ImageContent(images=[picture(number, 1_000)]))
        log.put(
            AssistantMessage(contents=(call,)),
            ToolMessage.from_result(ToolResultContent(id=call.id, content=parts, name="Read")),
        )
    view = seen(log)
    ground = ground_of(view, 0.2)
    layout = whole(ground)
    for upto in range(1, len(view.exchanges)):
        layout = operator(ground, upto, layout)
    rewrites = [each for form in layout.forms.values() for each in form.rewrites]
    assert rewrites
    for each in rewrites:
        assert "image/png" in each.text
        assert f"recall {each.target}" in each.text


def test_what_stands_for_a_result_without_images_speaks_of_none() -> None:
    """Beside an image a line more stands, and nothing else is other than it is without one."""
    said, shot = "word " * 2_000, ImageContent(images=[picture(1, 1_000)])
    plain, beside = Log(), Log()
    for log, content in ((plain, said), (beside, (TextContent(content=said), shot))):
        log.put(user("look"), model("I look.", "c"))
        log.put(ToolMessage.from_result(ToolResultContent(id="c", name="shell", content=content)))
    for form in (kept_end, kept_ends):
        (short,), (longer,) = (
            shortened(seen(log).exchanges[1], 1, Meter(COUNTER), form=form)[0] for log in (plain, beside)
        )
        assert short.text == form(short.target, said, 0)
        assert longer.text == f"{form(longer.target, said, 0)}\n[image/png left out; recall {longer.target}]"
