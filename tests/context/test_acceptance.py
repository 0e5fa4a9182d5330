"""The acceptance scenarios of the source documents that are about context, by their numbers."""

from typing import Any

import pytest

from palaver.context import POLICIES, ContextManager, DefaultContextManager, Meter, Policy, Shown, compose, policy
from palaver.context.texts import TRUNCATED
from palaver.errors import InvalidInput, UnknownPolicy
from palaver.messages import TextContent
from palaver.prompts import Runtime
from palaver.testing.logs import Log, model, result, system, user
from palaver.tokens import Budget
from palaver.view import View
from tests.context.helper import COUNTER, fitted, manager, seen, size, texts

PAGE = "\n".join(f"line {number} of some output" for number in range(400))


def long_session() -> Log:
    """Instructions, many turns of talk, and one very long answer in the middle."""
    log = Log()
    log.put(system("You are careful."))
    for number in range(30):
        log.put(
            user(f"ask {number} {PAGE[:2_000]}"), model(f"BEGIN {PAGE[: 30_000 if number == 20 else 900]} END {number}")
        )
    log.put(user("the newest ask"))
    return log


# --- A15: the contract of a context manager ----------------------------------------------------------------------------------


class DropsTheMiddle(ContextManager):
    """Keeps the first and the last two exchanges."""

    name = "drops-the-middle"

    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - the signature of every manager
        """Give a dialog without the middle; the same one when there is none."""
        view: View = dialog.view()
        if len(view.exchanges) <= 3:
            return dialog
        ends = (*view.exchanges[:1], *view.exchanges[-2:])
        return dialog.derive(type(view)(dialog_id=view.dialog_id, at=view.at, system=view.system, exchanges=ends))


def test_a15_a_manager_drops_the_middle_and_the_canonical_log_has_all() -> None:
    """The model sees what the manager left; the log is as it was, and what was dropped has the manager's name and a handle."""
    log = long_session()
    bodies = list(log.store.bodies(log.dialog))
    view = seen(log)
    pruned = fitted(view, DropsTheMiddle(), size(view)).view
    assert [text[:5] for text in texts(pruned)] == ["ask 0", "BEGIN", "the n"]
    assert {gone.by for gone in pruned.omissions} == {"drops-the-middle"}
    assert {gone.reason.value for gone in pruned.omissions} == {"manager"}
    assert list(log.store.bodies(log.dialog)) == bodies
    assert seen(log) == view


def test_a15_the_same_object_may_come_back() -> None:
    """A manager that gives back what it got changes nothing: the view is the very same object."""
    log = Log()
    log.put(user("hi"))
    view = seen(log)
    assert fitted(view, DropsTheMiddle(), 1_000).view is view


def test_a15_a_manager_without_a_call_cannot_be_made() -> None:
    """ContextManager and Policy are abstract (R149)."""

    class Half(ContextManager):
        """Lacks __call__."""

        name = "half"

    for kind in (ContextManager, Policy, Half):
        with pytest.raises(TypeError, match="abstract"):
            kind()  # type: ignore[abstract] # that is the point


# --- A16: DefaultContextManager ----------------------------------------------------------------------------------------------


def test_a16_made_by_position_or_keyword_it_knows_model_and_window() -> None:
    """Both forms work (R154); without max_tokens the window is the model's input window, not its longest answer (R155)."""
    assert DefaultContextManager("gpt-4o").max_tokens == 128_000
    capped = DefaultContextManager("gpt-4o", max_tokens=32_000)
    named = DefaultContextManager(model_name="gpt-4o", max_tokens=32_000)
    assert (capped.model_name, capped.max_tokens) == (named.model_name, named.max_tokens) == ("gpt-4o", 32_000)
    assert DefaultContextManager.name == "default"
    assert DefaultContextManager.SAFETY_BUFFER == 5_000
    assert capped.budget.for_input == 32_000 - 5_000


@pytest.mark.parametrize("most", [10_000, 25_000, 30_000])
def test_a16_called_with_a_dialog_it_keeps_head_and_tail_and_cuts_the_border(most: int) -> None:
    """Instructions first, the newest last, before the tail the end of the border message behind the mark; all within max_tokens - buffer."""
    log = long_session()
    view = seen(log)
    cm = DefaultContextManager("gpt-4o", max_tokens=most)
    pruned = cm(Shown(view)).view()
    assert pruned.system == view.system
    assert texts(pruned)[-1] == "the newest ask"
    assert size(pruned) <= most - 5_000
    border = [text for text in texts(pruned) if text.startswith(TRUNCATED)]
    assert len(border) == 1
    mark, end = border[0].split("\n", 1)
    handle = mark.rsplit("recall ", 1)[1].rstrip("]")
    whole = next(
        block.content.content
        for exchange in view.exchanges
        for block in exchange.blocks()
        if str(block.origin) == handle and isinstance(block.content, TextContent)
    )
    assert f"{len(whole) - len(end):,} of {len(whole):,} characters left out" in mark
    assert whole.endswith(end)
    assert 0 < len(end) < len(whole)


def test_a16_within_the_limit_or_empty_the_same_object_comes_back() -> None:
    """Nothing to do is nothing done (R150, R162)."""
    log = Log()
    empty = Shown(seen(log))
    cm = DefaultContextManager("gpt-4o")
    assert cm(empty) is empty
    log.put(system("s"), user("hi"))
    short = Shown(seen(log))
    assert cm(short) is short


def test_a16_system_and_tools_count_and_what_counts_is_the_whole_request() -> None:
    """The size is the request's: instructions and tool schemas are in it (C17), and the parts add up."""
    log = long_session()
    view = seen(log)
    composed = compose(view, DefaultContextManager("gpt-4o"), Budget.of_input(9_000), COUNTER)
    parts = composed.after.parts()
    assert parts["instructions"] > 0
    assert sum(parts.values()) == composed.tokens_after <= 9_000


# --- A18: a manager of one's own, from a configuration -----------------------------------------------------------------------


class SummaryCompressor(ContextManager):
    """As the source documents write it."""

    name = "summary"

    def __init__(self, model_name: str, max_tokens: int | None = None) -> None:
        """Keep what the configuration says."""
        self.model_name = model_name
        self.max_tokens = max_tokens

    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - the signature of every manager
        """Leave the dialog as it is."""
        return dialog


def test_a18_a_registered_manager_is_made_from_its_configuration() -> None:
    """`{type: summary, max_tokens: 64000}` gives an instance of the class with the agent's model."""
    runtime = Runtime()
    runtime.register_context_manager(SummaryCompressor)
    made = policy({"type": "summary", "max_tokens": 64_000}, "gpt-4o", runtime=runtime)
    assert isinstance(made, SummaryCompressor)
    assert (made.model_name, made.max_tokens) == ("gpt-4o", 64_000)


def test_a18_none_and_null_disable_and_a_misspelt_name_is_told_with_close_matches() -> None:
    """R170; and an unknown name is a typed error that knows what was meant."""
    assert policy(None) is None
    assert policy({"type": None}) is None
    assert policy({"type": "null"}) is None
    with pytest.raises(UnknownPolicy) as caught:
        policy("defualt")
    assert caught.value.close == ("default",)
    with pytest.raises(InvalidInput):
        policy({"type": 3})
    assert {"default", "fold", "full", "offload"} <= set(POLICIES)


def test_a18_a_class_without_a_name_is_refused() -> None:
    """Registering it is a ValueError (R165)."""

    class Nameless(ContextManager):
        """Has no name."""

        def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - the signature of every manager
            """Leave the dialog as it is."""
            return dialog

    with pytest.raises(ValueError, match="name"):
        Runtime().register_context_manager(Nameless)


# --- A38: tool outputs set aside ---------------------------------------------------------------------------------------------


def test_a38_only_the_large_old_output_is_replaced_and_comes_back_byte_for_byte() -> None:
    """A large old output, a small old one and a large recent one: the first alone becomes a reference; the log has it whole."""
    log = Log()
    log.put(user("look"), model("", "large"), result("large", PAGE), model("", "small"), result("small", "ok"))
    log.put(model("", "recent"), result("recent", PAGE[:6_000]))
    bodies = list(log.store.bodies(log.dialog))
    view = seen(log)
    composed = fitted(view, "offload", size(view) - 1)
    old, small, recent = texts(composed.view)[1:]
    assert old.startswith(f"[Output set aside: {len(PAGE):,} characters, 400 lines; recall {log.at(2, 0)}]")
    assert (small, recent) == ("ok", PAGE[:6_000])
    assert not composed.fallback
    assert not composed.plan.drops
    assert list(log.store.bodies(log.dialog)) == bodies
    (block,) = [block for x in view.exchanges for block in x.blocks() if block.origin == log.at(2, 0)]
    assert texts(View(dialog_id=view.dialog_id, at=0, exchanges=(view.exchanges[1],))) == [PAGE]
    assert block.reason is None


def test_a38_a_reference_is_never_replaced_by_a_reference() -> None:
    """Composing again, tighter, leaves the references as they are (R282)."""
    log = Log()
    log.put(user("look"))
    for number in range(12):
        log.put(model("", f"c{number}"), result(f"c{number}", PAGE[:4_000]))
    view = seen(log)
    once = fitted(view, "offload", size(view) - 1).view
    references = {text for text in texts(once) if "set aside" in text}
    again = fitted(once, "offload", size(once) - 1).view
    assert references
    assert {text for text in texts(again) if "set aside" in text} <= references
    assert not any("characters, 5 lines; recall" in text for text in texts(again))


def test_a38_reversible_comes_first_and_lossy_only_if_still_over() -> None:
    """Where references are enough nothing is dropped (R280, R281, R308); with less room the oldest go as well."""
    log = Log()
    log.put(user("look"))
    for number in range(12):
        log.put(model("", f"c{number}"), result(f"c{number}", PAGE[:4_000]))
    view = seen(log)
    assert not fitted(view, "offload", size(view) - 1).plan.drops
    assert fitted(view, "offload", size(view) // 12).plan.drops
    assert manager("offload").name == "offload"


def test_a38_the_threshold_is_taken_in_either_word_and_counts_strictly() -> None:
    """`compaction_token_threshold` and `threshold` are one; an output of exactly so many tokens stays (R275, R276)."""
    log = Log()
    log.put(user("look"), model("", "a"), result("a", PAGE[:3_000]), model("", "b"), result("b", "ok"), model("done"))
    view = seen(log)
    (block,) = [block for x in view.exchanges for block in x.blocks() if block.origin == log.at(2, 0)]
    tokens = Meter(COUNTER).block(block.content)
    for word in ("threshold", "compaction_token_threshold"):
        for threshold, aside in ((tokens, False), (tokens - 1, True)):
            made = policy({"type": "offload", word: threshold}, "gpt-4o")
            assert made is not None
            shown = texts(fitted(view, made, size(view) - 1).view)
            assert any("set aside" in text for text in shown) is aside
    with pytest.raises(InvalidInput, match="threshold"):
        policy({"type": "offload", "threshold": -1}, "gpt-4o")


def test_a18_a_misspelt_word_of_a_configuration_is_refused_with_the_close_ones() -> None:
    """What the constructor does not know is loudly refused (R172), whichever policy it is for."""
    for name in POLICIES:
        with pytest.raises(InvalidInput, match="no word for a budget"):
            policy({"type": name, "max_tokns": 3}, "gpt-4o")
