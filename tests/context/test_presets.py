"""Presets: each does what its source says, by numbers that can be added up with a pencil.

The sessions are English text in o200k_base (`tests.context.pencil`). Where nothing is committed, a cut leaves out ceil((T - L) / (L - G)) * (L - G) tokens of T with limit L and target G, rounded up to a message;
the record that stands for them, here of some 1,200 tokens, counts in T. Where plans are committed, every cut lands at the preset's own tail, or is the first at or under the target.
Views are written as a letter for each exchange: `.` as it was said, `c` changed, `R` a record, `N` a notice.
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from math import ceil
from typing import Any

import pytest

from palaver.context import POLICIES, Composed, Policy, compose, policy
from palaver.context.fit import fit
from palaver.context.presets import Palaver, Preset
from palaver.context.presets.assistants import Dynamiq, SummarizationConfig
from palaver.context.presets.coding import ClaudeCode, OpenHands
from palaver.context.recall import LIST
from palaver.errors import InvalidInput
from palaver.messages import AssistantMessage, Message, UserMessage, words_of
from palaver.session import Session
from palaver.testing.logs import Log
from palaver.tokens import Budget
from palaver.view import View, fold, fold_messages
from tests.agent.helper import scripted
from tests.context.pencil import METER, compacted, composed, did, prose, shape, sizes, talk, text, work

CUTTING = sorted(set(POLICIES) - {"full"})


def named(name: str) -> Policy:
    """Return a policy for no model."""
    made = policy(name)
    assert isinstance(made, Policy)
    return made


def after(messages: list[Message], by: Any, limit: int) -> str:  # noqa: ANN401 - anything that names a policy
    """Return the shape of a view within so many tokens."""
    return shape(composed(messages, by, limit).view)


RECORD = 1.2
"""Thousands of tokens of a record, about."""


def dropped(total: int, step: int) -> int:
    """Return how many messages of 1,000 leave, of so many, at a limit of 10,000."""
    return ceil((total + RECORD - 10) / step) * step


# --- the cut, by a pencil -------------------------------------------------------------------------------------------------


def test_pencil_a_cut_drops_in_steps() -> None:
    """R327, R334: Messages of 1,000, L 10,000: `fold` drops five at a time, `letta` three tenths of the window, `pi` all but its recent tokens."""
    cases: list[tuple[str | dict[str, Any], int, tuple[int, ...]]] = [
        ("fold", 5, (11, 12, 13, 14, 16, 17, 19, 31, 61)),
        ("letta", 3, (11, 13, 14, 16, 19)),
        ({"type": "pi", "keep_recent_tokens": 3_000}, 7, (11, 12, 13, 15, 18, 19)),
    ]
    for by, step, totals in cases:
        for total in totals:
            assert after(talk(total), by, 10_000) == "R" + "." * (total - dropped(total, step)), (by, total)


def test_pencil_what_comes_first_stays() -> None:
    """R157, R324: `cat` keeps the task and `lllm` the first message before what stands for the dropped ones; `fold` and `default` keep neither."""
    cases: list[tuple[str, str]] = [("cat", "."), ("fold", ""), ("default", ""), ("lllm", ".")]
    for name, stays in cases:
        assert after(talk(13), name, 10_000).rstrip(".")[:-1] == stays, (name, stays)


def test_pencil_default_keeps_the_border_message() -> None:
    """Five leave, as in `fold`, but the last of them fits into half a step: 2,500 tokens."""
    for total in [11, 13, 17, 21]:
        left = total - ceil((total - 10) / 5) * 5
        assert after(talk(total), "default", 10_000) == "N" + "." * (left + 1), total


def test_of_a_large_border_message_the_end_stays() -> None:
    """A message of 7,000 of 11,000 tokens: its last 2,500 stay, after the mark of source document 000."""
    messages = [*talk(2), UserMessage(content=prose(7_000) + " and this is the end"), *talk(2)]
    view = composed(messages, "default", 10_000).view
    assert shape(view) == "Nc.."
    assert text(view, 1).startswith("[...earlier content truncated...]")
    assert text(view, 1).endswith("and this is the end")
    assert 2_300 <= sizes(view)[1] <= 2_500


def test_the_border_message_stays_in_any_prose() -> None:
    """R158, R159: English with few tokens, digits and Chinese with many: of a message at the border, as much stays as half a step has room for."""
    english = "The repository preserves every conversation between developers and assistants, together with decisions. "
    for said in (english, "3f2a 91c0 7b5e 44d1 9e0a ", "我们把所有的对话都按顺序保存在仓库里。"):
        for name in ("default", "lllm"):
            log = Log()
            log.put(UserMessage(content="begin"), *(UserMessage(content=f"{at} " + said * 120) for at in range(3)))
            view, by = fold(log.store, log.dialog), policy(name)
            assert by is not None
            limit = METER.view(view).total - 1
            shown = compose(view, by, Budget.of_input(limit), METER).view
            (border,) = [block for each in shown.exchanges for block in each.blocks() if block.reason]
            words = words_of(border.content)
            assert words.startswith("[...earlier content truncated...]"), name
            assert words.endswith(said), name
            assert limit // 4 * 0.9 < METER.block(border.content) <= limit // 4, name


def test_pencil_openhands_counts_messages() -> None:
    """R298, R301: max_size 12, keep_first 2: the 13th message leaves 2 + record + 3, half of 12; seven more until the next time."""
    by = {"type": "openhands", "max_size": 12}
    assert after(talk(12, 10), by, 10_000) == "." * 12
    for total in (13, 18, 19, 20, 26, 33):
        gone = 13 - 5 + 7 * ((total - 13) // 7)
        assert after(talk(total, 10), by, 10_000) == "..R" + "." * (total - 2 - gone), total
    assert after(talk(13, 10), {**by, "minimum_progress": 0.9}, 10_000) == "." * 13, "8 of 13 are not worth it"
    ends = {"type": "openhands", "max_size": 199, "keep_first": 1, "keep_last": 10}
    assert after(talk(200, 10), ends, 10_000) == ".R" + "." * 10
    with pytest.raises(InvalidInput, match="leave nothing to condense of max_size=8"):
        OpenHands(max_size=8, keep_first=4)


# --- clearing before folding ----------------------------------------------------------------------------------------------


def test_pencil_clearing_that_suffices_ends_it() -> None:
    """A38, R280, R281: rounds of 1,000: at 10,000 of 11,000 or 13,000 one step of five is cleared, and nothing is folded."""
    for rounds in [11, 13]:
        for name in ["offload", "dynamiq", "manus", "claude-code"]:
            view = composed(work(rounds), name, 10_000).view
            assert shape(view) == "." + "c" * 5 + "." * (rounds - 5), (rounds, name)


def test_only_what_is_too_much_after_clearing_is_folded() -> None:
    """A39, R280, R308, R331: 200 rounds are too many for lines: then, and only then, a record."""
    for name in ("offload", "dynamiq", "manus"):
        assert "R" not in after(work(13), name, 10_000)
        assert set(after(work(200), name, 10_000)) & {"R", "N"}


def test_pencil_palaver_clears_then_folds() -> None:
    """Old rounds stay as lines within a twentieth of the target: 250 tokens; what is older is folded."""
    assert after(work(11), "palaver", 10_000) == ".Rccc" + "." * 6
    long = composed(work(41), "palaver", 10_000).view
    assert shape(long).startswith(".Rc")
    lines = [size for size, letter in zip(sizes(long), shape(long), strict=True) if letter == "c"]
    assert 0 < sum(lines) <= 250


def test_pencil_palaver_folds_nothing_where_lines_fit() -> None:
    """DESIGN 5.4: three cleared rounds of 3,900 are lines of some 300 tokens, within a twentieth of the target: 500; nothing is folded."""
    rounds = [each for at in range(6) for each in did(at, prose(3_898))]
    found = composed([*talk(1, 10), *rounds], "palaver", 20_000)
    assert shape(found.view) == ".ccc..."
    assert not found.plan.drops


def test_pencil_manus_clears_the_older_half_at_most() -> None:
    """R308: the newest half of the results stays in full."""
    for rounds in [9, 13, 14, 19]:
        found = after(work(rounds, 1_994), "manus", 2_000 * rounds - 2_000)
        assert 0 < found.count("c") <= ceil(rounds / 2), rounds
        assert found.endswith("." * (rounds // 2)), rounds


def test_pencil_claude_code_keeps_five_results() -> None:
    """R303: outputs over 50,000 characters are previews of 2,048 at once, Read exempt; near the limit all but five of its tools' outputs are cleared."""
    huge = "x" * 60_000
    at_once = composed([*did(0, huge), *did(1, huge, "Read"), *talk(1)], "claude-code", 200_000).view
    assert shape(at_once) == "c.."
    assert 2_048 < len(text(at_once)) < 2_200
    assert after(work(11), "claude-code", 10_000) == "." + "c" * 5 + "." * 6
    others = [each for at in range(11) for each in did(at, prose(990), "mcp__weather")]
    assert "c" not in after([*talk(1), *others], "claude-code", 11_000)


def test_pencil_claude_code_compacts_everything() -> None:
    """What no clearing helps is folded whole: at 11,000 of 10,000 the last message is left; `keep_tail` keeps more."""
    assert after(talk(11), "claude-code", 10_000) == "R."
    assert after(talk(11), {"type": "claude-code", "keep_tail": 4_000}, 10_000) == "R" + "." * 5


def test_a_compaction_that_is_asked_for_always_folds() -> None:
    """R305: below every limit, and although clearing would do: the view becomes smaller, with a record or a notice."""
    for name in CUTTING:
        made = policy(name)
        assert isinstance(made, Preset), name
        view = fold_messages(work(20, then="next"), LIST)
        plan = made.compact(view, Budget.of_input(100_000), METER, asked=True)
        assert plan.drops, name
        assert plan.inserts, name


def turns(count: int) -> list[Message]:
    """Return so many turns: words of the user, and an output of 2,000 tokens."""
    return [each for at in range(count) for each in (UserMessage(content=f"ask {at}"), *did(at, prose(2_000)))]


def test_pencil_opencode_never_prunes_the_newest_40_000() -> None:
    """R313: of T tokens of outputs, 40,000 stay in full, nothing is folded as long as pruning the rest suffices, and the tool `skill` is never pruned."""
    cases: list[tuple[int, int]] = [(60, 100_000), (50, 90_000), (80, 130_000)]
    for count, limit in cases:
        found = composed(turns(count), "opencode", limit)
        assert shape(found.view).count("R") == 0, (count, limit)
        kept = [
            size
            for size, letter in zip(sizes(found.view), shape(found.view), strict=True)
            if letter == "." and size > 1_000
        ]
        assert sum(kept) >= 40_000, (count, limit)
        assert found.after.total <= limit, (count, limit)
        skills = [each for at in range(count) for each in (UserMessage(content="ask"), *did(at, prose(2_000), "skill"))]
        assert "c" not in after(skills, "opencode", limit), (count, limit)


def test_pencil_opencode_folds_when_pruning_frees_too_little() -> None:
    """Of 42,000 tokens pruning could free 2,000, less than PRUNE_MINIMUM: a tail of 10,000 (a quarter of the limit) is left, and a record."""
    found = composed(turns(21), "opencode", 40_000)
    assert shape(found.view).startswith("R")
    tail = sum(sizes(found.view)[1:])
    assert 8_000 <= tail <= 14_000


def test_dcp_cleans_up_first() -> None:
    """R317: two equal calls: the last output counts. A file written twice: the last write. A failure made good: the success. No model, nothing else changed."""
    page = prose(2_000)
    messages = [
        UserMessage(content="go"),
        *did(0, "wrote", "Write", {"file_path": "a.py", "content": page}),
        *did(1, page, "bash", {"command": "git status"}),
        *did(2, page, "bash", {"command": "pytest"}),
        *did(3, "wrote", "Write", {"file_path": "a.py", "content": page}),
        *did(4, page, "bash", {"command": "git status"}),
        *did(5, "ok", "bash", {"command": "pytest"}),
        *did(6, "x", "bash", {"command": "ls"}),
    ]
    assert after(messages, "opencode-dcp", 5_000) == ".cc...."


def test_pencil_swe_agent_masks_at_every_step() -> None:
    """Of t outputs t - max(0, (t + 1) // p * p - 6) are whole: five, with polling up to three more; others are one line, far from every limit."""
    for polling in [1, 4]:
        for rounds in range(1, 16):
            whole = rounds - max(0, (rounds + 1) // polling * polling - 6)
            found = after(work(rounds), {"type": "swe-agent", "polling": polling}, 1_000_000)
            assert found == "." + "c" * (rounds - whole) + "." * whole, polling


def test_oversized_output_names_size_and_handle() -> None:
    """R322: more than 100,000 characters: a beginning of 105 lines of 80, how much there is, and the handle."""
    view = composed([*did(0, "x" * 200_000), *talk(1)], "swe-agent", 1_000_000).view
    assert "8,400 of 200,000 characters" in text(view)
    assert "recall" in text(view)


def test_pencil_aider_folds_what_is_done() -> None:
    """R319-R321: far below the window: what is done has 4,000 tokens and is cut to 2,000; nothing while the user's task is still current."""
    for rounds in [11, 21]:
        by = {"type": "aider", "history": 4_000}
        assert after(work(rounds), by, 100_000) == "." * (rounds + 1), rounds
        found = composed(work(rounds, then="next"), by, 100_000).view
        assert shape(found).startswith("R."), rounds
        assert shape(found).endswith("."), rounds
        done = sum(sizes(found)[:-1])
        assert done <= 4_000, rounds


def test_pencil_dynamiq_keeps_request_and_end() -> None:
    """R266, R274, R334: when references are not enough: the original request, a record, the last two messages."""
    assert after(talk(11), "dynamiq", 10_999) == ".R.."
    assert after(talk(11), {"type": "dynamiq", "preserve_last_messages": 4}, 10_999) == ".R...."
    assert after(talk(11), {"type": "dynamiq", "max_preserved_tokens": 5_000}, 10_999) == ".R....."


def test_dynamiq_never_touches_what_it_preserves() -> None:
    """One of the last two messages is larger than the room: it stays whole as long as it fits at all."""
    messages = [*talk(5), *did(0, prose(6_000, "large and new")), *talk(2)]
    for words in ({}, {"preserve_last_messages": 4}):
        view = composed(messages, {"type": "dynamiq", **words}, 12_000).view
        assert shape(view).endswith("..." if words else "..")


def test_only_large_old_outputs_become_references() -> None:
    """A38, R275, R276: large and old: a reference. Small and old, large and newest: as they were."""
    messages = [*talk(1), *did(0, prose(3_000)), *did(1, "small"), *did(2, prose(400)), *did(3, prose(3_000))]
    assert after(messages, "dynamiq", 7_000) == ".c..."


# --- committed plans --------------------------------------------------------------------------------------------------------


def tail(view: View) -> int:
    """Return how many exchanges come after the last derived text."""
    return len(shape(view).rpartition("R")[2].rpartition("N")[2])


def test_every_compaction_lands_on_the_sources_tail() -> None:
    """R316, R324: messages of 1,000 in 10,000: the first, the second and the tenth compaction leave what the source says."""
    cases: list[tuple[str | dict[str, Any], int]] = [
        ({"type": "pi", "keep_recent_tokens": 3_000}, 3),
        ("opencode", 2),  # a quarter of the limit
        ({"type": "claude-code", "keep_tail": 4_000}, 4),
        ("dynamiq", 2),
        ({"type": "dynamiq", "preserve_last_messages": 4}, 4),
        ({"type": "dynamiq", "max_preserved_tokens": 5_000}, 5),
        ({"type": "openhands", "max_size": 8, "keep_first": 1}, 2),
    ]
    for by, left in cases:
        made = compacted(talk(110), by, 10_000)
        assert len(made) >= 10, by
        assert [tail(each.view) for each in made] == [left] * len(made), by
    whole = compacted(
        talk(110), "claude-code", 10_000
    )  # the original leaves none; the newest messages of user and model stay
    assert len(whole) >= 10
    assert {tail(each.view) for each in whole} <= {1, 2}


def test_every_compaction_lands_at_the_target() -> None:
    """Where the source states a size or none, the first cut at or under it, record included: every time, not only the first."""
    for by, target in (
        ("fold", 5_000),
        ("palaver", 5_000),
        ("cat", 5_000),
        ("openhands", 5_000),
        ("letta", 7_000),
        ("default", 5_000),
    ):
        made = compacted(talk(160, 500), by, 10_000)
        assert len(made) >= 10, by
        for each in made:
            assert target - 500 < each.after.total <= target, by


def test_every_clearing_leaves_what_the_source_leaves() -> None:
    """R303, R308, R313: the newest five results of Claude Code, the newest half of Manus, 40,000 tokens of OpenCode; nothing older, at every compaction."""

    def whole(made: Composed) -> list[int]:
        exchanges = zip(made.view.exchanges, shape(made.view), strict=True)
        return [METER.exchange(each) for each, letter in exchanges if letter == "." and each.results]

    def cleared(by: str, messages: list[Message], limit: int) -> list[Composed]:
        made = compacted(messages, by, limit)
        clearing = [each for each in made if not each.plan.drops]
        assert len(clearing) >= 3, by
        return clearing

    for each in cleared("claude-code", work(60), 10_000):
        assert len(whole(each)) == 5
    for each in cleared("manus", work(60), 10_000):
        assert len(whole(each)) == sum(bool(exchange.results) for exchange in each.view.exchanges) // 2
    for each in cleared("opencode", turns(64), 65_000):
        assert 38_000 < sum(whole(each)) <= 42_000


def test_no_later_message_takes_the_place_of_the_task() -> None:
    """A dialog that does not begin with the human has no task to keep: what stayed first in a compacted view may leave with the next one."""
    begun = [AssistantMessage(content=prose(1_000)), UserMessage(content=prose(500, "look"))]
    said = [AssistantMessage(content=prose(1_000))] * 20
    for name in ("dynamiq", "cat"):
        made = compacted([*begun, *said, UserMessage(content="go on"), *said], name, 10_000)
        shown = [
            words_of(block.content) for each in made[-1].view.exchanges if not each.derived for block in each.blocks()
        ]
        assert not any(words.startswith("look") for words in shown), name


def test_nothing_changes_after_a_commit() -> None:
    """Law 8: a committed view fits, and the next plan of the same view is empty."""
    for name in CUTTING:
        for each in compacted(work(40), name, 10_000)[:3]:
            again = policy(name)
            assert isinstance(again, Policy)
            assert not compose(each.view, again, Budget.of_input(10_000), METER, committed=True).plan, name


# --- the numbers of the sources -------------------------------------------------------------------------------------------


def test_presets_act_where_their_source_does() -> None:
    """R265, R304, R316: for a window of 200,000 tokens and answers of 64,000."""
    cases: list[tuple[str, int]] = [
        ("claude-code", 200_000 - 20_000 - 13_000),
        ("pi", 200_000 - 16_384),
        ("dynamiq", 160_000),
        ("opencode", 200_000 - 32_000 - 20_000),
        ("default", 200_000 - 16_384 - 5_000),
    ]
    for name, limit in cases:
        made = policy(name, "claude-sonnet-4-5")
        assert isinstance(made, Policy), (name, limit)
        assert made.budget.limit == limit, (name, limit)


def test_the_callers_words_replace_the_sources_budget() -> None:
    """A smaller window counts; an object made for no model takes the caller's model."""
    for name in POLICIES:
        smaller = policy({"type": name, "max_tokens": 30_000}, "claude-sonnet-4-5")
        assert isinstance(smaller, Policy), name
        assert smaller.budget.limit <= 30_000, name
        by_name = policy(name, "gpt-4o")
        assert isinstance(by_name, Policy), name
        assert named(name).budget_for("gpt-4o") == by_name.budget == by_name.budget_for("gpt-5"), name


def test_no_source_s_constant_fills_a_small_window() -> None:
    """T3: reserves chosen for 200,000 tokens leave room in a window of a few hundred."""
    for name in sorted(POLICIES):
        for tokens in (600, 5_000):
            made = policy({"type": name, "max_tokens": tokens}, "gpt-4o")
            assert isinstance(made, Policy), name
            assert 0 < made.budget.limit <= tokens, name


# --- laws -----------------------------------------------------------------------------------------------------------------


def test_law_10_ask_and_pins_are_in_every_view() -> None:
    """R161, T11, T19: the newest words of the user and what is pinned, as they were said; the task is shown or told; the view fits."""
    for name in CUTTING:
        for share in (0.2, 0.5, 0.9):
            messages = work(30, task="Make the tests pass.", then="And now the docs.")
            found = composed(messages, name, int(30_000 * share), pinned=[7])
            kept = [each for each, letter in zip(found.view.exchanges, shape(found.view), strict=True) if letter == "."]
            said = [words_of(block.content) for each in kept for block in each.blocks()]
            assert any("And now the docs." in each for each in said), name
            assert any(each.pinned for each in kept), name
            told = [words_of(block.content) for each in found.view.exchanges for block in each.blocks()]
            assert any("Make the tests pass." in each for each in told) or "N" in shape(found.view), name
            assert found.after.total <= 30_000 * share, name


def test_what_a_budget_leaves_alone_is_left_alone() -> None:
    """Neither cleared nor dropped, where there is room for it."""
    for words in ({"keep_last": 9}, {"keep_recent": 4_000}):
        budget = Budget.parse({"max_tokens": 19_000, "safety_buffer": 0, **words})
        for name in set(CUTTING) - {"swe-agent", "openhands", "aider"}:  # they act by their own numbers
            tail = shape(composed(work(20), name, budget).view)[::-1]
            assert len(tail) - len(tail.lstrip(".")) >= 4, (words, name)


# --- parameters -----------------------------------------------------------------------------------------------------------


def test_every_parameter_has_bounds() -> None:
    """Out of range, of another type, unknown: an InvalidInput that names it, when the policy is made."""
    wrong: list[object] = [-7, "x", [], float("nan")]
    for name in POLICIES:
        own = SummarizationConfig.__dataclass_fields__ if name == "dynamiq" else named(name).parameters
        for parameter in own:
            for value in wrong:
                with pytest.raises(InvalidInput, match=parameter):
                    policy({"type": name, parameter: value})
        for word, value in (("max_tokens", "many"), ("reserve", -1), ("no_such_word", 1)):
            with pytest.raises(InvalidInput):
                policy({"type": name, word: value}, "gpt-4o")


def test_a_parameter_has_its_effect() -> None:
    """More of it leaves more as it was said, or more that is folded whole, step by step."""
    cases: list[tuple[str, str, tuple[float, ...], str]] = [
        ("claude-code", "keep_results", (2, 25, 35), "."),
        ("manus", "share", (0.4, 0.6, 0.9), "."),
        ("swe-agent", "n", (1, 4, 9), "."),
        ("offload", "threshold", (10, 5_000), "R."),
        ("letta", "evict", (0.8, 0.5, 0.2), "."),
        ("aider", "history", (1_500, 4_000, 12_000), "."),
        ("dynamiq", "compaction_token_threshold", (100, 5_000), "R."),
    ]
    for name, parameter, values, letters in cases:
        limit = 1_000_000 if name in {"swe-agent", "aider"} else 39_500
        views = [after(work(40, then="next"), {"type": name, parameter: value}, limit) for value in values]
        counts = [sum(letter in letters for letter in view) for view in views]
        assert all(one < other for one, other in pairwise(counts)) or len(set(views)) == len(views), views


# --- dynamiq's configuration ------------------------------------------------------------------------------------------------


def test_dynamiqs_configuration_has_its_names_and_defaults() -> None:
    """R264: enabled where somebody names the policy. What no summary has a use for is not accepted."""
    stated = {
        "enabled": False,
        "max_token_context_length": None,
        "context_usage_ratio": 0.8,
        "preserve_last_messages": 2,
    }
    stated |= {"incremental": True, "compaction_enabled": True, "compaction_token_threshold": 500}
    assert asdict(SummarizationConfig()).items() >= stated.items()
    by_words = policy({"type": "dynamiq", "max_token_context_length": 9_000, "compaction_token_threshold": 100})
    assert isinstance(by_words, Dynamiq)
    assert (by_words.config.compaction_token_threshold, by_words.config.enabled) == (100, True)
    with pytest.raises(InvalidInput, match="SummarizationConfig"):
        policy({"type": "dynamiq", "config": {"enabled": True}})
    with pytest.raises(InvalidInput, match="token_budget_ratio"):
        policy({"type": "dynamiq", "token_budget_ratio": 0.5})
    wrong: list[tuple[str, object]] = [("token_budget_ratio", 0.5), ("preserve_last_message", 2), ("enabled", 1)]
    for name, value in wrong:
        with pytest.raises(InvalidInput, match=name):
            SummarizationConfig(**{name: value})  # type: ignore[arg-type]


def test_dynamiqs_configuration_is_a_policys() -> None:
    """It is accepted as it is wherever a configuration is: by the registry, a dialog, `fit` and an agent."""
    config = SummarizationConfig(enabled=True, preserve_last_messages=4)
    assert dict(config) == {"type": "dynamiq", **asdict(config)}
    made = policy(config, "gpt-4o")
    assert isinstance(made, Dynamiq)
    assert made.config == config
    dialog = Session.create().root
    messages = [{"role": "user", "content": f"{number}: {'long ' * 50}"} for number in range(200)]
    dialog.append(messages)
    off = SummarizationConfig(enabled=False)
    assert dialog.view(off, budget=6_000, model="gpt-5") == dialog.view()
    assert fit(messages, policy=off, budget=6_000, model="gpt-5").messages == messages
    by_name = dialog.view("dynamiq", budget=6_000, model="gpt-5")
    assert dialog.view(SummarizationConfig(enabled=True), budget=6_000, model="gpt-5") == by_name != dialog.view()
    agent, provider = scripted(["done"], context_manager=off)
    agent.receive("go")
    agent.respond()
    assert provider.requests


def test_a_policy_that_is_not_enabled_does_not_act() -> None:
    """R264: neither a plan nor an error, also above the limit, in a committed view and in a list."""
    for off in (
        Dynamiq("gpt-4o", config=SummarizationConfig()),
        policy({"type": "dynamiq", "enabled": False}, "gpt-4o"),
    ):
        assert isinstance(off, Policy)
        view = fold_messages(talk(20), LIST)
        for committed in (False, True):
            assert compose(view, off, Budget.of_input(10_000), METER, committed=committed).view is view
        messages = [{"role": "user", "content": "long " * 3_000}]
        assert fit(messages, policy=off, budget=1_000, model="gpt-4o").messages == messages


def test_of_dynamiqs_limits_the_less_counts() -> None:
    """The length, or the share of the window that `max_tokens` says; a share that nobody said gives way to the window."""
    cases: list[tuple[dict[str, Any], int]] = [
        ({"context_usage_ratio": 0.5}, 15_000),
        ({"max_token_context_length": 9_000}, 9_000),
        ({"max_token_context_length": 29_000}, 24_000),
        ({"config": SummarizationConfig(enabled=True), "context_usage_ratio": 0.5}, 15_000),
        ({}, 25_000),
    ]
    for words, most in cases:
        assert Dynamiq("gpt-4o", max_tokens=30_000, **words).budget.limit == most, (words, most)


def test_headings_and_newest_files_come_after_compaction() -> None:
    """R306, R307: Claude Code asks a summariser for nine sections and has five files of 5,000 tokens read again; every preset that summarises has headings."""
    assert (ClaudeCode().restore_files, ClaudeCode().restore_tokens) == (5, 5_000)
    assert Palaver().restore_files == 0
    assert ClaudeCode.headings[0] == "Primary Request and Intent"
    assert len(ClaudeCode.headings) == 9
    summarising = set(CUTTING) - {"palaver", "fold", "offload", "default", "lllm", "swe-agent", "aider", "provider"}
    assert all(named(name).headings for name in summarising)


def test_an_old_output_outlives_no_newer_message() -> None:
    """One output of 3,000 tokens, then 80 messages: what `palaver` leaves out is older than everything that it shows."""
    messages = [UserMessage(content="task"), *did(1, prose(3_000)), *talk(80, 200)]
    made = composed(messages, "palaver", 9_000)
    assert made.plan.drops
    gone = [index for each in made.plan.drops for index in range(each.index, each.stop or each.index + 1)]
    assert gone == list(range(len(gone)))
    assert 4_500 < made.after.total <= 9_000
