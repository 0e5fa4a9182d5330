"""Failures that other systems had, by the numbers under which they were collected: D of what users report, T of documented failure modes."""

from __future__ import annotations

from palaver import providers, wire
from palaver.context import POLICIES, policy
from palaver.context.meter import Bytes, Meter
from palaver.log import Pin, Place
from palaver.messages import (
    AssistantMessage,
    ThinkingContent,
    ToolCallContent,
    canonical_json,
)
from palaver.testing.logs import Log, assert_closed, model, result, system, user
from palaver.testing.policy_checks import check_policy, commit
from palaver.tokens import Budget
from palaver.view import View
from tests.context.lists import MODELS
from tests.context.logged import composed_from, text_of, view_of
from tests.context.pencil import Characters, Manager, did

NAMES = tuple(name for name in POLICIES if name != "full")
"""Every policy that leaves something out."""
METER = Meter(Characters())
PAGE = "\n".join(f"line {number} of some output" for number in range(40))


def said(view: View) -> list[str]:
    """Return what a view says, block by block."""
    return [str(getattr(block.content, "content", "")) for each in view.exchanges for block in each.blocks()]


def cut(log: Log, by: str, limit: int) -> View:
    """Compose a dialog by a policy, and hold the view to the laws."""
    manager = policy(by)
    assert manager is not None
    composed = check_policy(view_of(log), manager, Budget.of_input(limit), Characters())
    assert composed is not None
    require_valid(composed.view)
    return composed.view


def require_valid(view: View) -> None:
    """Assert that a view is closed, that every provider takes it, and that its bytes are not underestimated."""
    assert_closed(view)
    most = Bytes().view(view).total
    for name, model_name in MODELS.items():
        profile = providers.profile(name, model_name)
        request = wire.compile(view, profile, wire.Call(model=model_name), lambda digest: digest.encode())
        assert wire.validate(request.body, profile, as_history=True) == ()
        assert len(canonical_json(request.body)) <= most, name


def working(rounds: int, size: int, *, task: str = "Fix the parser.", signed: bool = False, batch: int = 1) -> Log:
    """Return a task, and so many rounds of calls with outputs."""
    log = Log()
    log.put(system("rules"), user(task))
    for number in range(rounds):
        ids = [f"c{number}-{each}" for each in range(batch)]
        thought = [ThinkingContent("hm", signature="c2ln", provider="anthropic")] if signed else []
        calls = [ToolCallContent(each, "shell", args={"cmd": f"run {each}"}) for each in ids]
        log.put(AssistantMessage(contents=(*thought, *calls)))
        log.put(*(result(each, PAGE.ljust(size, ".")[:size]) for each in ids))
    return log


def keeping_last(count: int) -> Manager:
    """Return what many write: the last so many messages, wherever that cuts."""
    return Manager(lambda dialog: dialog.with_messages(dialog.messages[-count:]))


def test_truncation_by_count_parts_no_pair() -> None:
    """D1: `U, A[c1], R1, A` cut to its last messages by a plain manager is valid, and the log stays as it was."""
    for keep in range(1, 6):
        log = Log()
        log.put(user("ask"), model("look", "c1"), result("c1"), model("done"))
        before = list(log.store.bodies(log.dialog))
        require_valid(composed_from(log, keeping_last(keep), 1_000).view)
        assert list(log.store.bodies(log.dialog)) == before, keep


def test_instructions_in_front_hide_no_orphan() -> None:
    """D2: two runs of `sys, U, A[c], R, A`, one message pinned, cut to any number of messages: valid."""
    for keep in range(1, 11):
        log = Log()
        for run in "ab":
            call = f"c{run}"
            log.put(system(f"rules {run}"), user(f"ask {run}"), model("", call), result(call), model(f"done {run}"))
        log.put(Pin(target=Place(dialog=log.dialog, seq=1)))
        require_valid(composed_from(log, keeping_last(keep), 1_000).view)


def test_compactions_while_a_call_is_open() -> None:
    """D3: thirty-four compactions, each between a call and its result: every view is valid, and the call has its result."""
    log = Log()
    log.put(user("go on"))
    for number in range(34):
        log.put(model(f"step {number}", f"c{number}"))
        commit(log, composed_from(log, "fold", max(METER.view(view_of(log)).total * 3 // 4, 2_000)))
        log.put(result(f"c{number}", PAGE[: 20 * (number % 7)]), model(f"done {number}"))
        view = view_of(log)
        require_valid(view)
        assert f"c{number}" in {getattr(block.content, "id", "") for each in view.exchanges for block in each.blocks()}
        assert not any(block.derived == "waiting" for each in view.exchanges for block in each.blocks())


def test_one_long_tool_loop_is_cut_inside() -> None:
    """D13: one ask and sixty signed calls: the ask stays, the cut is between calls, the newest call stays."""
    for name in NAMES:
        log = working(60, 1_500, signed=True)
        view = cut(log, name, 24_000)
        assert "Fix the parser." in said(view), name
        assert view.exchanges[-1].first == view_of(log).exchanges[-1].first, name


def test_what_the_user_stated_survives_compactions() -> None:
    """D25: eight facts in 48 turns, at least five compactions: each is in the last view, word for word."""
    for seed in range(4):
        log = Log()
        log.put(user("Build the service."))
        facts = [f"The number of thing {each} must always be {each * 7_919 + seed}." for each in range(8)]
        compactions = 0
        for number in range(48):
            fact = facts[number // 6] if number % 6 == (seed + number // 6) % 6 else ""
            log.put(user(f"Turn {number}. {fact}"), model("", f"c{number}"), result(f"c{number}", PAGE), model("ok"))
            made = composed_from(log, "fold", 14_000)
            if made.plan:
                commit(log, made)
                compactions += 1
        final = "\n".join(said(view_of(log)))
        assert compactions >= 5, seed
        assert [fact for fact in facts if fact not in final] == [], seed


def test_batches_stay_whole() -> None:
    """T12: batches of three calls with thinking before them, at any budget: no batch is split."""
    for name in NAMES:
        log = working(8, 1_000, signed=True, batch=3)
        for limit in (6_000, 12_000, 20_000):
            for each in cut(log, name, limit).exchanges:
                if each.role.value == "assistant" and not each.derived:
                    kinds = [type(block.content) for block in each.turns[0].blocks]
                    assert kinds == [ThinkingContent, *[ToolCallContent] * 3], name


def test_notes_of_a_harness_part_no_pair() -> None:
    """T13: system messages between a call and its result, at any budget: valid."""
    for name in NAMES:
        log = Log()
        log.put(user("go"))
        for number in range(12):
            log.put(model("", f"c{number}"), system(f"note {number}"), result(f"c{number}", PAGE))
        for limit in (3_500, 6_000, 9_000):
            cut(log, name, limit)


def test_a_history_in_chinese_is_cut_alike() -> None:
    """T14: within the budget, no half characters, the task in the user's words wherever a record is."""
    for name in NAMES:
        log = Log()
        log.put(user("请让测试通过,不要修改测试文件。"))
        for number in range(30):
            log.put(*did(number, "输出内容很长," * 150))
        log.put(user("继续"))
        view = cut(log, name, 9_000)
        assert "继续" in said(view), name
        told = text_of(view)
        assert not told.startswith("[Record") or "请让测试通过" in "".join(said(view)), name
