"""Presets: the constants that others published, what each does first and last, and the failures that others had with it."""

import inspect
import json
from collections.abc import Sequence
from typing import Any

import pytest

from palaver import Dialog
from palaver.context import POLICIES, Ledger, Meter, compose, fit, planner, policy
from palaver.context.manager import Policy
from palaver.context.presets import (
    LLLM,
    PRESETS,
    Aider,
    ClaudeCode,
    Dynamiq,
    Letta,
    Manus,
    OpenCode,
    OpenCodeDCP,
    OpenHands,
    Palaver,
    Pi,
    Preset,
    SummarizationConfig,
    SWEAgent,
)
from palaver.context.schedule.calls import Called, Calls
from palaver.context.work.acts import acts_of
from palaver.errors import InvalidInput
from palaver.log import Handle, Invocation, draft
from palaver.messages import Message, ToolCallContent, UserMessage
from palaver.testing.logs import Log, model, result, system, user
from palaver.testing.policy_laws import hold
from palaver.tokens import Budget, Rates
from palaver.view import Plan, View
from tests.context.helper import COUNTER, commit, faults, fitted, seen, size, texts
from tests.context.work import PAGE, did, read, run, write

NAMES = sorted(each.name for each in PRESETS)


def log_of(*parts: Sequence[Message], ask: str = "Make the tests pass. Never edit the tests.") -> Log:
    """Write a conversation down that begins with words of the user."""
    log = Log()
    log.put(system("Be brief."), user(ask), *(message for part in parts for message in part))
    return log


def working(turns: int) -> Log:
    """Read, write and run for so many turns."""
    log = log_of()
    for turn in range(turns):
        log.put(
            *read(f"r{turn}", f"src/f{turn % 7}.py"),
            *run(f"b{turn}", f"pytest -q tests/test_{turn}.py", PAGE + str(turn)),
        )
        if turn % 5 == 4:
            log.put(*write(f"w{turn}", f"src/f{turn % 7}.py", PAGE), model(f"did {turn}"), user(f"Go on with {turn}."))
    return log


def made(name: str) -> Preset:
    """Make a preset by its name, for a model."""
    found = policy(name, "gpt-4o")
    assert isinstance(found, Preset)
    return found


def derived(view: View) -> list[str]:
    """Give what stands for what was left out, by label."""
    return [exchange.turns[0].blocks[0].derived for exchange in view.exchanges if exchange.derived]


def limit(maker: type[Preset], **words: Any) -> int:  # noqa: ANN401 - the words of a preset
    """Give the tokens at which a preset acts, for a model with a window of 200,000 and answers of 64,000."""
    return maker("claude-sonnet-4-5", **words).budget.for_input


# --- constants --------------------------------------------------------------------------------------------------------------


def test_every_preset_acts_where_the_original_does() -> None:
    """For a window of 200,000 tokens: 167,000 for Claude Code, 183,616 for pi, 160,000 for dynamiq, and so on (R265, R304, R316)."""
    assert limit(ClaudeCode) == 200_000 - 20_000 - 13_000
    assert limit(Pi) == 200_000 - 16_384
    assert limit(Dynamiq) == 160_000
    assert limit(OpenCode) == 200_000 - 32_000 - 20_000  # of the longest answer at most 32,000 tokens
    assert limit(LLLM) == 200_000 - 16_384 - 5_000


@pytest.mark.parametrize("name", NAMES)
def test_what_the_caller_says_replaces_the_originals_budget(name: str) -> None:
    """A window of the caller's own counts; and without a model and a window the budget comes from the caller."""
    smaller = policy({"type": name, "max_tokens": 30_000}, "claude-sonnet-4-5")
    assert isinstance(smaller, Preset)
    assert smaller.budget.for_input <= 30_000
    assert fitted(seen(working(20)), policy(name), 8_000).tokens_after <= 8_000  # type: ignore[arg-type]


def test_a_preset_is_registered_by_name_and_says_where_it_comes_from() -> None:
    """Each is in the registry; each module names its source."""
    assert set(NAMES) <= set(POLICIES)
    for each in PRESETS:
        module = __import__(each.__module__, fromlist=["__doc__"])
        assert "Source" in (module.__doc__ or "") or each is Palaver


@pytest.mark.parametrize("name", [*NAMES, "scheduled", "default"])
def test_a_policy_object_made_for_no_model_takes_the_dialogs(name: str) -> None:
    """`DefaultContextManager()` given as an object composes as its name does: by the budget of the model that is asked, and stays as it is."""
    by_name, by_object = policy(name, "gpt-4o"), policy(name)
    assert isinstance(by_name, Policy)
    assert isinstance(by_object, Policy)
    dialog = Dialog(owner="a")
    dialog.put_text("hi")
    assert dialog.compose(by_object, model="gpt-4o").tokens_after
    assert by_object.budget_for("gpt-4o") == by_name.budget
    assert by_name.budget_for("gpt-5") == by_name.budget
    with pytest.raises(InvalidInput):
        by_object.budget_for("")


ROWS: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("n", (-1, 0, "5", 1.5, True, None)),
    ("polling", (0, "1", None)),
    ("largest", (0, "x", None)),
    ("share", (7, -0.1, "half", float("nan"), None, True)),
    ("keep_results", (-3, "5", None)),
    ("keep_tail", (-1, 0.5)),
    ("files", (-1, "5", None)),
    ("pause", (0, -1, "1h", float("inf"))),
    ("max_size", ("240", 0, None)),
    ("keep_first", (-1, "2")),
    ("keep_last", (0, "2")),
    ("minimum_progress", (5, "0.1", None)),
    ("history", (-5, "1", 1.5)),
    ("map_tokens", (-1, "1", float("nan"))),
    ("map_mul_no_files", (-1, None)),
    ("evict", (0, 1, "0.3", None)),
    ("threshold", (-1, "1", None)),
    ("enabled", (1, "yes", None)),
    ("incremental", ("no",)),
    ("compaction_enabled", (0,)),
    ("max_token_context_length", (0, "1")),
    ("context_usage_ratio", (0, 1.5, "0.8", None)),
    ("token_budget_ratio", (0, 2, "x")),
    ("preserve_last_messages", (-1, "2", 1.5, None)),
    ("compaction_token_threshold", (-1, "500", None)),
    ("max_preserved_tokens", (-1, "x")),
    ("newest", (-1, "10", 1.5)),
    ("fold", ("no", 1, None)),
    ("keep", (-1, "x")),
    ("seed", (3, b"x")),
)


def of_its_own(maker: type[Policy]) -> set[str]:
    """Give the names of the parameters of a policy that are neither the model's nor a budget's."""
    found = set(inspect.signature(maker.__init__).parameters) - {"self", "model_name", "max_tokens", "budget", "words"}
    if maker is Dynamiq:
        found |= set(SummarizationConfig.__dataclass_fields__) - {"config"}
    return found - {"config", "repo_map", "policy", "prices"}  # values with classes of their own


@pytest.mark.parametrize("maker", POLICIES.values(), ids=list(POLICIES))
def test_every_parameter_of_every_policy_is_held_to_what_it_may_be(maker: type[Policy]) -> None:
    """Out of range, of another kind, as text: an `InvalidInput` that names it, when the policy is made and not in the middle of a turn."""
    rows = dict(ROWS)
    for name in of_its_own(maker):
        for value in rows[name]:
            for model_name in ("", "gpt-4o"):
                with pytest.raises(InvalidInput, match=name):
                    policy({"type": maker.name, name: value}, model_name)
    for word, value in (("model_name", 3), ("max_tokens", "many"), ("reserve", -1)):
        with pytest.raises(InvalidInput):
            policy({"type": maker.name, word: value, **({} if word == "model_name" else {"model_name": "gpt-4o"})})


def test_what_is_no_parameter_is_refused_also_without_a_model() -> None:
    """A slip of the pen is told with the parameter that it is close to; so are prices that are none, by the words there are."""
    with pytest.raises(InvalidInput, match="evict"):
        policy({"type": "letta", "evct": 0.5})
    with pytest.raises(InvalidInput, match="polling"):
        policy({"type": "swe-agent", "poling": 2})
    for prices, told in (({"ttl": 0}, "lifetime"), ({"raed": 0.1}, "read"), ("cheap", "PriceSheet"), (3, "PriceSheet")):
        with pytest.raises(InvalidInput, match=told):
            policy({"type": "scheduled", "policy": "letta", "prices": prices})
    with pytest.raises(InvalidInput, match="SummarizationConfig"):
        policy({"type": "dynamiq", "config": {"enabled": True}})


@pytest.mark.parametrize("given", [None, "drop it", 3, [], {"drops": []}])
def test_a_plan_that_is_none_is_refused_in_words(given: object) -> None:
    """Whatever a policy gives in the place of a plan: an `InvalidInput` with its name, as for a plain manager that forgets its return."""

    class Mine(Policy):
        name = "mine"

        def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
            del view, ledger, budget, prices
            return given  # type: ignore[return-value]

    with pytest.raises(InvalidInput, match=r"'mine' gave a .*, not a plan.*palaver.Plan"):
        fitted(seen(working(3)), Mine(), 8_000)


# --- every preset -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_leaves_alone_what_fits(name: str) -> None:
    """A conversation that is far from every limit: the very same view, but for outputs that are masked at every step."""
    log = log_of(run("a", "ls", "x"), run("b", "pwd", "y"))
    composed = fitted(seen(log), made(name), 100_000)
    assert composed.view is seen(log) or composed.view == seen(log)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.15, 0.4, 0.8])
def test_t11_t19_the_newest_ask_is_in_every_view_and_the_goal_is_told(name: str, share: float) -> None:
    """However small the budget: the newest words are there as they were said; the goal is shown, or told with what stands for it."""
    view = seen(working(24))
    composed = hold(view, made(name), Budget.of_input(int(size(view) * share)), COUNTER)
    assert composed is not None
    newest = view.newest_user()
    assert newest is not None
    assert texts(View(dialog_id=view.dialog_id, at=0, exchanges=(view.exchanges[newest],)))[0] in texts(composed.view)
    facts = [block.facts for x in composed.view.exchanges for block in x.blocks() if block.facts]
    assert any("Make the tests pass." in said for said in (*texts(composed.view), *facts))


@pytest.mark.parametrize("name", NAMES)
def test_t5_t20_fifty_compactions_in_a_row_keep_the_view_bounded_and_the_facts_in_reach(name: str) -> None:
    """Committed again and again: within the budget each time, the goal still told, and what stands for the past does not grow."""
    log = log_of()
    policy_made, commits, largest = made(name), 0, 0
    for turn in range(60):
        log.put(*run(f"b{turn}", f"pytest tests/test_{turn}.py", PAGE), user(f"Go on with {turn}."))
        composed = fitted(seen(log), policy_made, 3_500)
        assert composed.tokens_after <= 3_500
        if composed.view is not seen(log) and composed.tokens_after < size(seen(log)) * 0.95:
            commit(log, composed)
            commits += 1
        stand_ins = [text for text in texts(composed.view) if text.startswith(("[Record", "[Earlier"))]
        largest = max([largest, *map(len, stand_ins)])
    assert commits >= 15
    assert largest < 8_000
    facts = "".join(block.facts for x in seen(log).exchanges for block in x.blocks())
    assert "Make the tests pass." in facts + "".join(texts(seen(log)))


@pytest.mark.parametrize("name", NAMES)
def test_t13_notes_of_the_harness_do_not_part_calls_from_results(name: str) -> None:
    """System messages between a call and its result, cut at any budget: closed and valid for four providers."""
    log = log_of()
    for turn in range(12):
        call, answer = run(f"c{turn}", f"ls {turn}")
        log.put(call, system(f"note {turn}"), answer)
    view = seen(log)
    for share in (0.1, 0.3, 0.6):
        composed = fitted(view, made(name), int(size(view) * share))
        assert faults(composed.view) == []


@pytest.mark.parametrize("name", NAMES)
def test_fit_with_a_preset_gives_a_list_that_fits(name: str) -> None:
    """A plain list, over-long: within the budget, and what was left out can be recalled."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Make the tests pass."}]
    for number in range(30):
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": f"ls {number}"})},
        }
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": PAGE},
        ]
    messages.append({"role": "user", "content": "Go on."})
    done = fit(messages, model="gpt-4o", policy=name, budget=6_000)
    assert done.tokens <= 6_000
    assert done.messages[-1] == messages[-1]
    for gone in done.omitted:
        for handle in gone.handles():
            assert done.recall(handle) is not None


# --- OpenHands --------------------------------------------------------------------------------------------------------------


def talked(messages: int) -> Log:
    """Say so many messages, in turn."""
    log = Log()
    said = (f"{'answer' if n % 2 else 'ask'} {n}" for n in range(messages))
    log.put(
        *(model(f"{text} {PAGE[:1_000]}") if n % 2 else user(f"{text} {PAGE[:1_000]}") for n, text in enumerate(said))
    )
    return log


def test_r298_of_200_events_one_in_front_ten_at_the_end_and_a_summary() -> None:
    """N_first 1, N_last 10: exactly 1 + summary + 10."""
    composed = fitted(seen(talked(200)), OpenHands(max_size=199, keep_first=1, keep_last=10), 100_000)
    assert len(composed.view.exchanges) == 12
    assert texts(composed.view)[0].startswith("ask 0")
    assert texts(composed.view)[-1].startswith("answer 199")
    assert derived(composed.view) == ["record"]


def test_r300_r301_event_121_triggers_and_half_is_left() -> None:
    """120 events are left alone; with the 121st at most a half and one message is left."""
    held = OpenHands(max_size=120, keep_first=4)
    assert not fitted(seen(talked(120)), held, 100_000).plan
    after = fitted(seen(talked(121)), held, 100_000).view
    assert len(after.exchanges) <= 61
    assert [text.split()[:2] for text in texts(after)[:4]] == [
        ["ask", "0"],
        ["answer", "1"],
        ["ask", "2"],
        ["answer", "3"],
    ]


def test_a_condensation_that_makes_no_progress_is_not_made() -> None:
    """Everything is pinned but one event: condensing it would save less than a tenth (minimum_progress)."""
    tiny = OpenHands(max_size=6, keep_first=4, keep_last=1)
    log = Log()
    log.put(*(user("x" * 4_000) for _ in range(4)), model("y"), user("z"), model("w"))
    assert fitted(seen(log), tiny, 100_000).view == seen(log)


def test_sizes_that_leave_nothing_to_condense_are_refused() -> None:
    """As the original does: keep_first must be less than half of max_size."""
    with pytest.raises(InvalidInput, match=r"^4 events in front leave nothing to condense of max_size=8"):
        OpenHands(max_size=8, keep_first=4)
    with pytest.raises(InvalidInput, match=r"^1 events in front and 7 at the end leave nothing"):
        OpenHands(max_size=8, keep_first=1, keep_last=7)


# --- Claude Code ------------------------------------------------------------------------------------------------------------


def test_r303_large_outputs_are_previews_at_once_and_the_newest_results_stay_full() -> None:
    """Over 50,000 characters: the first 2 KB and the handle, long before the budget is near; a Read is exempt."""
    huge = "x" * 60_000
    view = seen(log_of(run("a", "cat big", huge), read("b", "big.txt", huge), run("c", "ls")))
    after = texts(fitted(view, ClaudeCode("claude-sonnet-4-5"), 100_000).view)
    assert len(after[1]) < 2_300
    assert "recall" in after[1]
    assert after[2] == huge


def test_r303_old_results_are_cleared_before_anything_is_compacted() -> None:
    """Over the limit by a little: all but the newest five results become lines, no exchange leaves (A38, R281)."""
    view = seen(log_of(*(run(f"c{n}", f"ls {n}") for n in range(20))))
    composed = fitted(view, ClaudeCode(), int(size(view) * 0.9))
    assert len(composed.view.exchanges) == len(view.exchanges)
    whole = [text == PAGE for text in texts(composed.view)[1:]]
    assert whole == sorted(whole)
    assert 5 <= sum(whole) <= 7  # those that came since the edit stay too


def test_r307_compaction_brings_the_five_files_back_that_were_worked_on_last() -> None:
    """After a compaction the newest five are there, within their share, each once."""
    log = log_of(*(read(f"r{n}", f"src/f{n}.py", f"content of {n}\n") for n in range(9)))
    log.put(*(message for n in range(60) for message in run(f"c{n}", f"ls {n}")), user("go on"))
    composed = fitted(seen(log), ClaudeCode(), 9_000)
    files = [text for text in texts(composed.view) if ", as it was last seen" in text]
    assert [text.split(",")[0] for text in files] == [f"[src/f{n}.py" for n in (8, 7, 6, 5, 4)]
    ledger = Ledger(meter=Meter(COUNTER), files={"src/f8.py": "what it says now"}.get)
    again = compose(seen(log), planner(ClaudeCode()), Budget.of_input(9_000), COUNTER, ledger=ledger)
    assert any("what it says now" in text for text in texts(again.view))


def test_the_five_files_have_their_five_thousand_tokens_each() -> None:
    """At the original's limit of 167,000: each of five large files has all but a few of its 5,000 tokens."""
    page = "\n".join(f"line {n} of a long file" for n in range(1_200))
    log = log_of(*(read(f"r{n}", f"src/f{n}.py", f"content of {n}\n{page}") for n in range(5)))
    log.put(*(message for n in range(16) for message in run(f"c{n}", f"ls {n}", PAGE * 8)), user("go on"))
    composed = fitted(seen(log), ClaudeCode(keep_results=100), 167_000)
    files = [x for x in composed.view.exchanges if x.turns[0].blocks[0].derived == "file"]
    sizes = [Meter(COUNTER).exchange(each) for each in files]
    assert len(sizes) == 5
    assert all(4_900 <= each <= 5_000 for each in sizes), sizes


@pytest.mark.parametrize("tool", ["bash", "run_shell", "execute_bash", "shell", "exec_command", "local_shell"])
def test_old_results_are_cleared_whatever_a_harness_calls_its_shell(tool: str) -> None:
    """The same work by a shell of another name: as many results are cleared, and nothing is folded; a tool of no such kind is left alone."""
    view = seen(log_of(*(did(f"c{n}", tool, {"command": f"ls {n}"}, PAGE) for n in range(20))))
    composed = fitted(view, ClaudeCode(), int(size(view) * 0.9))
    assert len(composed.view.exchanges) == len(view.exchanges)
    assert 5 <= sum(text == PAGE for text in texts(composed.view)) <= 7
    other = seen(log_of(*(did(f"c{n}", "mcp__weather", {"town": f"t{n}"}, PAGE) for n in range(20))))
    assert "clear" not in " ".join(fitted(other, ClaudeCode(), int(size(other) * 0.9)).plan.notes)


def test_after_an_hour_old_results_are_cleared_and_stay_so() -> None:
    """60 minutes after the last call, far from every limit: all but the newest five; also in the requests that come then, which go on from it."""
    dialog = Dialog(owner="a")
    dialog.put_text("Make the tests pass.")
    dialog.append([message for n in range(20) for message in run(f"c{n}", f"ls {n}")])
    last = dialog.store.last(dialog.dialog_id).at

    def shown(when: float | None) -> int:
        composed = dialog.compose("claude-code", model="claude-sonnet-4-5", when=when)
        return sum(text == PAGE for text in texts(composed.view))

    assert [shown(None), shown(last + 3_000), shown(last + 3_700)] == [20, 20, 5]
    never = dialog.compose({"type": "claude-code", "pause": None}, model="claude-sonnet-4-5", when=last + 9_000)
    assert never.view == dialog.view()


def test_what_was_cleared_after_a_pause_is_composed_again_as_it_was_sent() -> None:
    """A call after two hours, then others at once: each request goes on from the one before, although nothing was committed."""
    log = log_of(*(run(f"c{n}", f"ls {n}") for n in range(12)))
    calls: list[Called] = []

    def called(at: float) -> None:
        place = log.store.annotate(log.dialog, draft(Invocation(model="m"))[0])
        calls.append(Called(Handle(log.dialog, place.seq), at, "m"))

    def composed(now: float) -> list[str]:
        ledger = Ledger(meter=Meter(COUNTER), calls=Calls(made=tuple(calls), now=now, model="m"))
        made = compose(seen(log), planner(ClaudeCode()), Budget.of_input(100_000), COUNTER, ledger=ledger)
        return texts(made.view)

    called(0.0)
    log.put(*run("x0", "ls"))
    assert composed(60.0).count(PAGE) == 13
    before = composed(7_300.0)
    assert before.count(PAGE) == 5
    called(7_300.0)
    for turn in range(4):
        log.put(*run(f"y{turn}", f"pwd {turn}"))
        now = 7_360.0 + 60 * turn
        after = composed(now)
        assert after[: len(before)] == before
        assert after.count(PAGE) == 6 + turn
        before = after
        called(now)


# --- Manus, OpenCode, DCP ---------------------------------------------------------------------------------------------------


def test_r308_the_oldest_half_of_the_results_goes_first() -> None:
    """Compact before summary: the newest half of the results stays in full while that is enough."""
    view = seen(log_of(*(run(f"c{n}", f"ls {n}") for n in range(20))))
    composed = fitted(view, Manus(), int(size(view) * 0.8))
    assert len(composed.view.exchanges) == len(view.exchanges)
    whole = [text == PAGE for text in texts(composed.view)[1:]]
    assert whole == sorted(whole)
    assert 8 <= sum(whole) <= 14  # half of those there were when it became too much, and what came since
    assert "recall" in texts(composed.view)[1]


def planned_log(*first: Message, calls: int = 59) -> Log:
    """Write a plan down, then work."""
    log = log_of(first)
    for n in range(calls):
        log.put(*run(f"c{n}", f"ls {n}", PAGE[:1_200]))
    return log


TODO = "- [ ] measure the heron\n- [ ] draw it\n"


@pytest.mark.parametrize(
    "first",
    [
        write("w", "todo.md", TODO),
        did("w", "create_file", {"path": "/home/user/todo.md", "content": TODO}),
        did("w", "bash", {"command": f"cat > todo.md <<'EOF'\n{TODO}EOF"}),
        did("w", "TodoWrite", {"todos": [{"content": "measure the heron", "status": "pending"}]}),
        did("w", "update_plan", {"plan": [{"step": "measure the heron", "status": "in_progress"}]}),
    ],
)
def test_manus_recites_its_plan_in_the_tail(first: list[Message]) -> None:
    """Written down at the first call, in whatever way: behind the record, before what was newest at the last edit, and not at the front only."""
    view = seen(planned_log(*first))
    composed = fitted(view, Manus(), 8_000)
    places = [n for n, x in enumerate(composed.view.exchanges) if x.turns[0].blocks[0].derived == "plan"]
    assert len(composed.view.exchanges) - 12 <= places[-1]
    recital = composed.view.exchanges[places[-1]]
    assert "measure the heron" in texts(View(dialog_id=view.dialog_id, at=0, exchanges=(recital,)))[0]
    assert faults(composed.view) == []
    for name in ("cat", "palaver"):
        kept = fitted(view, made(name), 8_000).view
        said = json.dumps(
            [b.content.args for x in kept.exchanges for b in x.blocks() if isinstance(b.content, ToolCallContent)]
        )
        assert "measure the heron" in said


@pytest.mark.parametrize("tokens", [5_000, 6_500, 8_000, 11_000, 14_000])
@pytest.mark.parametrize("calls", [40, 65])
def test_what_was_recited_is_not_recited_again(tokens: int, calls: int) -> None:
    """Composing twice is composing once, however many recitals stand in the view: what is settled has its own."""
    log = planned_log(*write("w", "todo.md", TODO), calls=calls // 2)
    log.put(
        *write("w2", "todo.md", TODO + "- [ ] and paint it\n"),
        *(m for n in range(calls) for m in run(f"e{n}", f"pwd {n}", PAGE[:900])),
    )
    composed = fitted(seen(log), Manus(), tokens)
    assert fitted(composed.view, Manus(), tokens).view is composed.view


def test_the_plan_is_recited_as_it_stands_and_from_compaction_to_compaction() -> None:
    """What was changed in a part of the file since is changed in the recital; committed, it is carried on although its file's call has left."""
    log = planned_log(*write("w", "todo.md", TODO), calls=20)
    edit = {"path": "todo.md", "old_str": "- [ ] measure", "new_str": "- [x] measure"}
    log.put(*did("e", "str_replace_editor", {"command": "str_replace", **edit}))
    held: set[Handle] = set()
    acts = acts_of(seen(log).exchanges).all
    wrote = {act.call.origin._replace(block=None) for act in acts if act.deed.wrote and act.call.origin is not None}
    assert len(wrote) == 2
    for turn in range(3):
        log.put(*(m for n in range(25) for m in run(f"d{turn}-{n}", f"pwd {n}", PAGE[:1_200])), user(f"go on {turn}"))
        composed = fitted(seen(log), Manus(), 6_000)
        told = [text for text in texts(composed.view) if text.startswith("[The plan")]
        assert 1 <= len(told) <= 3
        assert "- [x] measure the heron\n- [ ] draw it" in told[-1]
        sources = [b.sources for x in composed.view.exchanges for b in x.blocks() if b.derived == "plan"]
        for each in sources[-1]:
            held |= {Handle(each.dialog, seq) for seq in range(each.start, each.stop)}
        commit(log, composed)
        assert wrote <= held  # what is erased of them is erased of the recital, too


def test_a_recital_stays_where_it_is_until_the_next_edit() -> None:
    """As the conversation grows, requests go on from each other between two edits, recital and all; a long plan is recited in part."""
    log = log_of(write("w", "todo.md", TODO + "- [ ] and more of it\n" * 2_000))
    before: list[str] = []
    edits = recited = 0
    for n in range(80):
        log.put(*run(f"c{n}", f"ls {n}", PAGE[:1_200]))
        composed = fitted(seen(log), Manus(), 20_000)
        after = texts(composed.view)
        assert composed.tokens_after <= 20_000
        edits += after[: len(before)] != before
        recited += any(text.startswith("[The plan") for text in after)
        before = after
    assert 1 <= edits <= 10
    assert recited >= 40


def test_r313_opencode_prunes_old_results_but_never_the_newest_40_000_tokens() -> None:
    """Results of 120,000 tokens in turns of their own: what is older than the protected ones is pruned, and no exchange leaves."""
    log = log_of()
    for turn in range(12):
        log.put(*run(f"c{turn}", f"cat big{turn}", PAGE * 6), user(f"next {turn}"))
    view = seen(log)
    composed = fitted(view, OpenCode(), int(size(view) * 0.9))
    whole = [text for text in texts(composed.view) if text == PAGE * 6]
    assert len(composed.view.exchanges) == len(view.exchanges)
    assert Meter(COUNTER).text("".join(whole)) >= 40_000
    assert len(whole) < 12


def test_r317_the_plugin_cleans_up_before_anything_else() -> None:
    """The same call made again, a failure since fixed, a file written twice: cleaned without a model call; then OpenCode's own."""
    trace = PAGE + "\nValueError: boom\nexit code: 1"
    parts = [
        write("c", "src/a.py"),
        write("f", "src/a.py", PAGE + "new"),
        run("a", "git status"),
        run("b", "pytest -q", trace, failed=True),
        run("d", "git status", PAGE + "2"),
        run("e", "pytest -q", "ok\n"),
        run("g", "ls", "."),
        run("h", "make", PAGE + "3"),
    ]
    view = seen(log_of(*parts))
    mild = " ".join(fitted(view, OpenCodeDCP(), int(size(view) * 0.9)).plan.notes)
    assert "asked_again" in mild
    assert "clear" not in mild
    small = fitted(view, OpenCodeDCP(), int(size(view) * 0.75))
    assert "drop_superseded" in " ".join(small.plan.notes)
    written = [
        block.content.args["content"]
        for x in small.view.exchanges
        for block in x.blocks()
        if isinstance(block.content, ToolCallContent) and block.content.name == "Write"
    ]
    assert written == [PAGE + "new"]


# --- Aider, SWE-agent, Letta ------------------------------------------------------------------------------------------------


def test_r320_r321_what_is_done_has_a_small_budget_and_what_is_current_stays() -> None:
    """Far below the window: done work beyond the history's budget is folded as soon as the user begins anew; nothing current is."""
    log = log_of(*(run(f"c{n}", f"ls {n}") for n in range(10)))
    assert not fitted(seen(log), Aider(history=1_500), 100_000).plan
    log.put(model("done"), user("Now something else."), *run("d", "ls"))
    composed = fitted(seen(log), Aider(history=1_500), 100_000)
    kept = [text for text in texts(composed.view) if text == PAGE]
    assert len(kept) <= 2
    assert composed.view.exchanges[-2:] == seen(log).exchanges[-2:]
    assert derived(composed.view) == ["record"]


def test_the_published_clamp_of_aiders_history() -> None:
    """A sixteenth of the input, at least 1,024 and at most 8,192 tokens."""
    log = log_of(*(run(f"c{n}", f"ls {n}") for n in range(12)))
    log.put(user("next"))
    assert fitted(seen(log), Aider(), 1_000_000).plan
    assert fitted(seen(log_of(run("a", "ls", "x" * 3_000), ask="a")), Aider(), 1_000_000).plan.drops == ()


@pytest.mark.parametrize("polling", [1, 4])
def test_swe_agents_last_observations(polling: int) -> None:
    """After so many observations the newest five are whole, with polling up to three more; all others are lines."""
    for count in range(3, 16):
        view = seen(log_of(*(run(f"c{n}", f"ls {n}") for n in range(count))))
        shown = [text == PAGE for text in texts(fitted(view, SWEAgent(polling=polling), 1_000_000).view)[1:]]
        assert shown == sorted(shown)
        assert min(count, 5) <= sum(shown) < 5 + polling


def test_r322_oversized_output_is_a_warning_with_size_and_handle() -> None:
    """The view has its beginning, its size and where it is; the log has all of it."""
    view = seen(log_of(run("a", "cat big", "x" * 200_000), run("b", "ls")))
    text = texts(fitted(view, SWEAgent(), 1_000_000).view)[1]
    assert "200,000 characters" in text
    assert "recall" in text
    assert len(text) < 10_000


def test_r327_letta_evicts_three_tenths() -> None:
    """One token over: at most 70 % are left, and nearly as much; the oldest went, at a pair's boundary."""
    view = seen(log_of(*(run(f"c{n}", f"ls {n}") for n in range(60))))
    composed = fitted(view, Letta(), size(view) - 1)
    assert 0.5 * size(view) < composed.tokens_after <= 0.7 * size(view) + 100
    with pytest.raises(InvalidInput, match="evict"):
        Letta(evict=1.5)


# --- dynamiq, pi, LLLM, ours ------------------------------------------------------------------------------------------------


def test_r264_the_configuration_has_the_rfcs_names_and_defaults() -> None:
    """Names, defaults and ranges; its words are understood in a configuration of ours."""
    assert SummarizationConfig() == SummarizationConfig(
        enabled=False,
        max_token_context_length=None,
        context_usage_ratio=0.8,
        preserve_last_messages=2,
        incremental=True,
        compaction_enabled=True,
        compaction_token_threshold=500,
    )
    with pytest.raises(InvalidInput, match="context_usage_ratio"):
        SummarizationConfig(context_usage_ratio=0)
    by_words = policy({"type": "dynamiq", "max_token_context_length": 9_000, "compaction_token_threshold": 100})
    assert isinstance(by_words, Dynamiq)
    assert by_words.config.compaction_token_threshold == 100
    assert by_words.config.enabled


def test_a38_only_large_old_outputs_become_references_and_the_log_stays() -> None:
    """Large and old: a reference that resolves. Small and old, large and newest: as they were. The log: untouched."""
    log = log_of(
        run("a", "cat big"),
        run("b", "ls", "small"),
        *(run(f"c{n}", "x", "y" * 1_000) for n in range(3)),
        run("z", "cat new"),
    )
    bodies = list(log.store.bodies(log.dialog))
    composed = fitted(seen(log), Dynamiq(), int(size(seen(log)) * 0.9))
    said = texts(composed.view)
    assert said[1].startswith("[Output set aside")
    assert said[2] == "small"
    assert said[-1] == PAGE
    assert list(log.store.bodies(log.dialog)) == bodies


def test_r266_r274_the_layout_is_request_summary_and_the_last_messages() -> None:
    """When references are not enough: the original request, a record, and the last two messages, verbatim."""
    log = log_of(*([user("u" * 3_000)], [model("m" * 3_000)]) * 12)
    composed = fitted(seen(log), Dynamiq(), size(seen(log)) - 1)
    assert derived(composed.view) == ["record"]
    assert len(composed.view.exchanges) == 4
    assert texts(composed.view)[0].startswith("Make the tests pass.")
    assert texts(composed.view)[-2:] == ["u" * 3_000, "m" * 3_000]


def test_a_configuration_that_is_not_enabled_does_nothing_of_its_own() -> None:
    """`enabled` false: the plan is empty; what does not fit is still made to fit, by the last resort."""
    composed = fitted(seen(working(12)), Dynamiq(config=SummarizationConfig()), 5_000)
    assert not composed.plan
    assert composed.tokens_after <= 5_000


def test_pi_keeps_the_newest_tokens_and_the_lists_of_files() -> None:
    """About 20,000 tokens at the end stay; the files that were read and changed before are told with what stands for the rest."""
    view = seen(working(60))
    composed = fitted(view, Pi("claude-sonnet-4-5"), size(view) - 1)
    assert 15_000 < composed.tokens_after < 26_000
    record = next(text for text in texts(composed.view) if text.startswith("[Record"))
    assert "src/f3.py" in record


def test_ours_cleans_up_before_it_drops_and_keeps_the_plan() -> None:
    """The same output twice, failures since fixed and large outputs go first; goal and newest plan stay as they were said."""
    log = log_of(did("p", "TodoWrite", {"todos": ["first this", "then that"]}))
    log.put(*(m for n in range(30) for m in run(f"c{n}", "pytest -q", PAGE + str(n % 3))), user("go on"))
    view = seen(log)
    mild = fitted(view, Palaver(), int(size(view) * 0.9))
    assert len(mild.view.exchanges) == len(view.exchanges)
    small = fitted(view, Palaver(), int(size(view) * 0.3))
    assert texts(small.view)[0].startswith("Make the tests pass.")
    calls = [b.content.name for x in small.view.exchanges for b in x.blocks() if isinstance(b.content, ToolCallContent)]
    assert "TodoWrite" in calls


def test_t14_a_history_in_chinese_is_cut_like_any_other() -> None:
    """Counts, records and cuts by tokens: within the budget, no half characters, the goal in the user's words."""
    log = Log()
    log.put(user("请让测试通过,不要修改测试文件。"))
    for n in range(30):
        log.put(model("我先看一下", f"c{n}"), result(f"c{n}", "输出内容很长," * 200))
    log.put(UserMessage.text("继续"))
    view = seen(log)
    for name in NAMES:
        composed = hold(view, made(name), Budget.of_input(size(view) // 4), COUNTER)
        assert composed is not None
        facts = "".join(block.facts for x in composed.view.exchanges for block in x.blocks())
        assert "请让测试通过" in "".join(texts(composed.view)) + facts
