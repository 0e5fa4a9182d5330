"""Where the source documents disagree: the conflicts about context, by their numbers, as they were settled."""

import subprocess
import sys

import pytest

from palaver import wire
from palaver.context import Meter, Shown, fit, policy
from palaver.errors import InfeasibleBudget
from palaver.log import Toolset, ToolSpec
from palaver.messages import CompactionSummaryMessage, CustomMessage
from palaver.testing.logs import Log, model, result, user
from palaver.tokens import Budget, counter
from palaver.wire import Call
from tests.context.helper import COUNTER, fitted, manager, no_media, record, seen, size, texts

PAGE = "\n".join(f"line {number} of some output" for number in range(300))


def test_c10_compaction_is_seen_in_the_view_and_never_in_the_log() -> None:
    """What was set aside is a reference in the view; every entry of the log has the bytes it had."""
    log = Log()
    log.put(user("go"), model("", "a"), result("a", PAGE), model("", "b"), result("b", "ok"), model("done"))
    bodies = list(log.store.bodies(log.dialog))
    view = seen(log)
    assert any("set aside" in text for text in texts(fitted(view, "offload", size(view) - 1).view))
    assert list(log.store.bodies(log.dialog)) == bodies
    assert PAGE in texts(seen(log))


def test_c14_summaries_are_marked_words_and_custom_messages_stay_out_unless_asked() -> None:
    """A compaction summary reaches the model as marked text in a user's turn; a custom message does not, and the fold carries the summary on."""
    log = Log()
    log.put(
        CompactionSummaryMessage(summary="They chose tabs.", tokens_before=9),
        CustomMessage(custom_type="note", content="private"),
    )
    log.put(user("go"), *(part for n in range(20) for part in (model("", f"c{n}"), result(f"c{n}", PAGE[:1_500]))))
    view = seen(log)
    request = wire.compile(view, wire.profile("openai-chat"), Call(model="gpt-4o"), no_media)
    assert request.body["messages"][0]["content"].startswith(
        '<from-harness kind="summary" note="not said by the user">'
    )
    assert "private" not in str(request.body)
    assert "They chose tabs." in record(fitted(view, "fold", size(view) // 3).view)


def test_c15_calling_a_manager_writes_nothing() -> None:
    """A policy called with a dialog gives another one; the first and its log are as they were."""
    log = Log()
    log.put(user("go"), *(part for n in range(20) for part in (model("", f"c{n}"), result(f"c{n}", PAGE[:1_500]))))
    dialog, last = Shown(seen(log)), log.store.last(log.dialog)
    made = policy({"type": "default", "max_tokens": 4_000}, "gpt-4o")
    assert made is not None
    assert made(dialog) is not dialog
    assert dialog.view() == seen(log)
    assert log.store.last(log.dialog) == last


@pytest.mark.parametrize(
    ("words", "input_tokens"),
    [
        ({"max_tokens": 32_000}, 27_000),
        ({"max_token_context_length": 20_000, "preserve_last_messages": 4}, 20_000),
        ({"context_usage_ratio": 0.5}, 64_000),
        ({"reserve_tokens": 8_192}, 128_000 - 8_192),
        ({"buffer": 20_000}, 128_000 - 16_384 - 20_000),
    ],
)
def test_c16_a_policy_takes_its_budget_in_every_vocabulary(words: dict[str, float], input_tokens: int) -> None:
    """The words of all the source documents and of their siblings come to one budget."""
    made = policy({"type": "offload", **words}, "gpt-4o")
    assert made is not None
    assert made.budget.for_input == input_tokens  # type: ignore[attr-defined] # every policy of ours has one


def test_c17_the_size_is_that_of_one_request_with_system_tools_and_media() -> None:
    """Adding a tool adds its schema to the size; the parts add up; nothing is a sum over calls."""
    log = Log()
    log.put(user("go"), model("done"))
    bare = Meter(COUNTER).view(seen(log))
    log.put(Toolset(tools=(ToolSpec(name="sh", description="runs " * 50),)))
    with_tools = Meter(COUNTER).view(seen(log))
    assert with_tools.tools > 50
    assert with_tools.total == bare.total + with_tools.tools == sum(with_tools.parts().values())
    assert Meter(counter("claude-sonnet-4-5")).view(seen(log)).total > with_tools.total


def test_full_leaves_nothing_out_and_says_what_is_too_large() -> None:
    """The policy `full` is infeasible rather than cut: the breakdown names the parts of the request."""
    log = Log()
    log.put(user("go"), model("", "a"), result("a", PAGE), user("more"))
    view = seen(log)
    assert fitted(view, "full", size(view)).view is view
    with pytest.raises(InfeasibleBudget) as caught:
        fitted(view, manager("full"), size(view) - 1)
    assert caught.value.needed == sum(caught.value.breakdown.values()) == size(view)


_PROGRAM = """
from hashlib import sha256
from palaver.context import fit
page = "\\n".join(f"line {n} of src/a{n}.py" for n in range(300))
messages = [{"role": "user", "content": "go, but never touch main"}]
for n in range(30):
    call = {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": '{"command": "cat src/a.py b.py"}'}}
    messages += [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": f"c{n}", "content": page}]
out = [fit(messages, model="gpt-4o", policy=name, budget=9_000) for name in ("default", "offload", "fold")]
print(sha256(repr([(each.messages, each.omitted, each.report) for each in out]).encode()).hexdigest())
"""


def test_t17_every_process_gives_the_same_bytes() -> None:
    """Under two seeds of Python's hashes the same list is fitted to the same bytes: no order of a set or a dict leaks in."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert fit([{"role": "user", "content": "hi"}], model="gpt-4o", budget=Budget.of_input(100)).tokens < 100
