"""Plain context managers: what they return is what is sent, or the turn fails (law 14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.context import Composed, WorkingDialog, compose, policy
from palaver.context.presets import Palaver
from palaver.context.presets.own import DefaultContextManager
from palaver.context.recall import LIST
from palaver.errors import InfeasibleBudget, InvalidInput, PalaverError, PolicyFailed
from palaver.messages import AssistantMessage, Message, Role, SystemMessage, UserMessage
from palaver.testing.logs import Log, assert_closed, model, result, system, user
from palaver.tokens import Budget
from palaver.view import Plan, Reason, View, fold_messages
from tests.context.logged import view_of
from tests.context.pencil import METER, Manager, did, talk

LARGE = Budget.of_input(10**6)


def returned(value: object, dialog: object) -> object:  # noqa: ARG001 - a manager's argument
    """Return a value, whatever the dialog."""
    return value


def sent(view: View) -> list[tuple[str, object]]:
    """Return what a view sends: roles and contents, instructions first."""
    said: list[tuple[str, object]] = [("system", block.content) for block in view.system]
    return said + [
        (turn.role.value, block.content) for each in view.exchanges for turn in each.turns for block in turn.blocks
    ]


def of(messages: Sequence[Message]) -> Sequence[tuple[str, object]]:
    """Return what messages say."""
    return [(message.role.value, content) for message in messages for content in message.contents]


def run(does: Callable[[Any], Any], messages: Sequence[Message] = (), budget: Budget = LARGE, **words: Any) -> Composed:  # noqa: ANN401 - as compose
    """Compose a list by a manager."""
    view = fold_messages([*messages], LIST)
    return compose(view, Manager(does), budget, METER, **words)


CHAT = [
    SystemMessage.text("Be brief."),
    UserMessage(content="task"),
    *did(1, "the key is hunter2"),
    AssistantMessage(content="done"),
    UserMessage(content="now"),
]


# --- law 14 -----------------------------------------------------------------------------------------------------------------


@given(st.data())
def test_law_14_what_a_manager_returns_is_sent(data: st.DataObject) -> None:
    """R153: any messages it keeps, drops, adds, rewrites or reorders: the view says exactly these, in its order."""
    kept: list[Message] = []

    def does(dialog: WorkingDialog) -> WorkingDialog:
        pairs = [
            message
            for message in dialog.messages
            if message.role in {Role.USER, Role.SYSTEM} or not message.is_function_call
        ]
        chosen = data.draw(st.permutations([each for each in pairs if each.role is not Role.TOOL]))
        chosen = chosen[: data.draw(st.integers(1, len(chosen)))]
        leading = [each for each in chosen if each.role is Role.SYSTEM]
        rest = [each for each in chosen if each.role is not Role.SYSTEM]
        for place in data.draw(st.lists(st.integers(0, len(rest)), max_size=2)):
            rest.insert(
                place, data.draw(st.sampled_from([UserMessage(content="new"), AssistantMessage(content="too")]))
            )
        kept[:] = [*leading, *rest]
        return dialog.with_messages(kept)

    composed = run(does, CHAT)
    assert sent(composed.view) == of(kept)
    assert not composed.plan


def test_law_14_a_redactor_redacts() -> None:
    """The secret is nowhere in what is sent; the calls keep their results."""

    def does(dialog: WorkingDialog) -> WorkingDialog:
        def clean(message: Message) -> Message:
            return Message.model_validate_json(message.model_dump_json().replace("hunter2", "*****"))

        return dialog.with_messages(
            [clean(message) if "hunter2" in str(message) else message for message in dialog.messages]
        )

    composed = run(does, CHAT)
    assert "hunter2" not in str(sent(composed.view))
    assert "*****" in str(sent(composed.view))
    assert_closed(composed.view)
    assert [gone.reason for gone in composed.view.omissions] == [Reason.MANAGER]


def test_what_a_manager_keeps_keeps_its_place_in_the_log() -> None:
    """The same exchanges, with their handles; what it leaves out is an omission with a handle."""
    log = Log()
    log.put(system("Be brief."), user("a"), model("b"), user("c"), model("", "x"), result("x"), user("d"))
    view = view_of(log)
    shown = compose(view, Manager(lambda dialog: dialog.fork(last_n=1, first_k=1)), LARGE, METER).view
    assert shown.exchanges == view.exchanges[-1:]
    assert shown.system == view.system
    gone = {handle for each in shown.omissions for handle in each.handles()}
    assert gone >= {log.at(seq) for seq in range(1, 6)}
    assert {each.by for each in shown.omissions if log.at(1) in set(each.handles())} == {"mine"}


def test_the_same_object_may_come_back() -> None:
    """A15, R150: then the view is the very same one, and nothing is left out."""
    view = fold_messages(CHAT, LIST)
    composed = compose(view, Manager(lambda dialog: dialog), LARGE, METER)
    assert composed.view.exchanges is view.exchanges
    assert composed.before == composed.after


def test_a_manager_that_returns_no_dialog_fails() -> None:
    """Such as None where the return was forgotten: the error says what came, and what to return."""
    cases: list[object] = [None, 5, "text", object(), [], Plan(policy="x")]
    for wrong in cases:
        with pytest.raises(PolicyFailed, match=f"returned an? {type(wrong).__name__}") as caught:
            run(partial(returned, wrong), CHAT)
        assert "return" in caught.value.hint, wrong


def test_a_manager_that_raises_fails_the_turn() -> None:
    """`PolicyFailed` has the error; one of palaver's own stays what it is."""
    with pytest.raises(PolicyFailed, match="mine") as caught:
        run(lambda dialog: dialog.nothing, CHAT)
    assert isinstance(caught.value.__cause__, AttributeError)
    with pytest.raises(InvalidInput) as own:
        run(lambda dialog: dialog.fork(last_n="x") and Budget(max_tokens=0), CHAT)
    assert isinstance(own.value, PalaverError)


def test_what_is_too_large_is_an_answer_not_a_cut() -> None:
    """A manager's result is never cut further: the error has the breakdown and names the manager."""
    with pytest.raises(InfeasibleBudget) as caught:
        run(lambda dialog: dialog, talk(9), budget=Budget.of_input(5_000))
    assert caught.value.needed == sum(caught.value.breakdown.values()) == 9_000
    assert "mine" in str(caught.value)


# --- the dialog that a manager is called with ---------------------------------------------------------------------------------


def test_a_manager_sees_a_dialog() -> None:
    """Messages, head and tail, owner and id, forks with a parent (as under an agent)."""
    view = fold_messages(CHAT, LIST)
    dialog = WorkingDialog(view, owner="coder")
    assert of(dialog.messages) == of(CHAT)
    assert dialog.head is dialog.messages[0]
    assert dialog.tail is dialog.messages[-1]
    assert (dialog.owner, dialog.dialog_id) == ("coder", LIST)
    child = dialog.fork(last_n=2, first_k=1)
    assert child.messages == (*dialog.messages[:1], *dialog.messages[-2:])
    assert (child.owner, child.parent) == ("coder", dialog)
    assert dialog.fork(last_n=4, first_k=3).messages == dialog.messages
    assert dialog.view() is view
    child.append(UserMessage(content="x"))
    assert dialog.messages != child.messages


def test_results_that_lost_their_call_are_still_valid() -> None:
    """R152: a manager that parts a call from its result is obeyed as far as a request can be: pairs are made whole by the rules of the fold."""
    view = run(
        lambda dialog: dialog.with_messages([each for each in dialog.messages if not each.is_function_call]), CHAT
    ).view
    assert_closed(view)
    assert "hunter2" in str(sent(view))


# --- making managers ----------------------------------------------------------------------------------------------------------


def test_none_and_null_disable() -> None:
    """R170: then there is no manager."""
    cases: list[object] = [None, {"type": None}, {"type": "null"}, {}]
    for config in cases:
        assert policy(config) is None, config  # type: ignore[arg-type]


def test_what_is_not_a_policy_is_named_with_what_is_close() -> None:
    """R174: an error for each way to get it wrong, and what to do."""
    cases: list[tuple[object, str]] = [
        ("pallaver", "Close: palaver"),
        ({"max_tokens": 5}, "has no 'type'"),
        (5, "policy is 5"),
        (Manager, "is the class Manager"),
        ({"type": "letta", "evct": 0.5}, "evict"),
    ]
    for config, says in cases:
        with pytest.raises(PalaverError, match=says):
            policy(config)  # type: ignore[arg-type]


def test_a_policy_is_a_manager_too() -> None:
    """C15: called with a dialog it returns the same object, or another one; the dialog does not change."""
    cut = policy({"type": "default", "max_tokens": 900}, "gpt-4o")
    assert cut is not None
    small, large = (
        WorkingDialog(fold_messages([UserMessage(content=f"{at} word " * 20) for at in range(count)], LIST), owner="me")
        for count in (1, 40)
    )
    assert cut(small) is small
    after = cut(large)
    assert len(after.messages) < len(large.messages) == 40
    assert after.owner == "me"
    with pytest.raises(InvalidInput, match="no model"):
        policy("default")(large)  # type: ignore[misc]


def test_law_14_a_policy_whose_call_would_be_ignored_is_refused() -> None:
    """A shipped policy decides by its plan: a subclass, or a class mixed in, that overrides `__call__` is told what to do instead."""

    class Redacts:
        def __call__(self, dialog: object) -> object:
            return dialog

    for bases, words in [((DefaultContextManager,), {"__call__": Redacts.__call__}), ((Redacts, Palaver), {})]:
        with pytest.raises(InvalidInput, match="Mine overrides __call__") as caught:
            type("Mine", bases, words)
        assert "plan()" in caught.value.hint
        assert "ContextManager" in caught.value.hint
